"""Calendar v3, through Google's own client: ids, etags, guests, zones, recurrence and sync tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator
from receiver import receiving

EVENTS = "/calendar/v3/calendars/primary/events"


@pytest.fixture
def google() -> Iterator[Any]:
    with Emulator(account="ann@example.org", time_zone="Europe/Berlin") as running, building(running) as build:
        yield build("calendar", "v3")


@pytest.fixture
def api() -> Api:
    made = Direct()
    made.user = "ann@example.org"
    return made


def event(start: str = "2026-03-10T10:00:00Z", end: str = "2026-03-10T11:00:00Z", **more: Any) -> dict[str, Any]:
    return {"summary": "Kick-off", "start": {"dateTime": start}, "end": {"dateTime": end}, **more}


def reason(error: Any) -> tuple[int, str]:
    return error.value.status, error.value.body["error"]["errors"][0]["reason"]


def test_googles_client_makes_an_event_with_an_id_of_its_own_once(google: Any) -> None:
    from googleapiclient.errors import HttpError

    body = event(id="quire0123456789abcdefghijklmnopq", attendees=[{"email": "Client@Example.com"}])
    made = google.events().insert(calendarId="primary", body=body, sendUpdates="all").execute()

    with pytest.raises(HttpError) as twice:
        google.events().insert(calendarId="primary", body=body).execute()

    assert twice.value.status_code == 409 and twice.value.error_details[0]["reason"] == "duplicate"
    assert twice.value.reason == "The requested identifier already exists."
    assert made["iCalUID"] == made["id"] + "@google.com"
    assert made["start"] == {"dateTime": "2026-03-10T11:00:00+01:00", "timeZone": "Europe/Berlin"}
    assert made["attendees"] == [{"email": "client@example.com", "responseStatus": "needsAction"}]


def test_an_id_is_taken_also_when_its_event_was_deleted(api: Api) -> None:
    made = api("POST", EVENTS, event(id="abcde12345"))
    api("DELETE", f"{EVENTS}/{made['id']}")

    assert api("GET", f"{EVENTS}/{made['id']}")["status"] == "cancelled"
    with pytest.raises(Refused) as error:
        api("POST", EVENTS, event(id="abcde12345"))
    assert reason(error) == (409, "duplicate")
    with pytest.raises(Refused) as error:
        api("DELETE", f"{EVENTS}/{made['id']}")
    assert reason(error) == (410, "deleted")
    assert api("PATCH", f"{EVENTS}/{made['id']}", {"status": "confirmed"})["status"] == "confirmed"
    assert [one["id"] for one in api("GET", EVENTS)["items"]] == [made["id"]]


@pytest.mark.parametrize("key", ["abcd", "ABCDE", "wxyz0", "a" * 1025])
def test_an_id_that_is_none_is_refused(api: Api, key: str) -> None:
    with pytest.raises(Refused) as error:
        api("POST", EVENTS, event(id=key))
    assert error.value.status == 400 and error.value.message == "Invalid resource id value."


def test_etags_guard_changes_and_rise_with_each(api: Api) -> None:
    made = api("POST", EVENTS, event())
    path = f"{EVENTS}/{made['id']}"
    status, _, headers = api.raw("GET", path)
    assert (status, headers["etag"]) == (200, made["etag"])
    assert api.raw("GET", path, headers={"If-None-Match": made["etag"]})[0] == 304

    api.headers = {"If-Match": made["etag"]}
    changed = api("PATCH", path, {"location": "Hall 2"})
    assert changed["etag"] > made["etag"] and changed["sequence"] == 0
    for verb, body in (("PATCH", {"location": "Hall 3"}), ("PUT", event()), ("DELETE", None)):
        with pytest.raises(Refused) as error:
            api(verb, path, body)
        assert reason(error) == (412, "conditionNotMet")
    api.headers = {}
    assert api("GET", path)["location"] == "Hall 2"
    times = {"start": {"dateTime": "2026-03-11T10:00:00Z"}, "end": {"dateTime": "2026-03-11T11:00:00Z"}}
    assert api("PATCH", path, times)["sequence"] == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"start": {"dateTime": "2026-03-10T10:00:00"}}, "Missing time zone definition for start time."),
        ({"start": {"dateTime": "2026-03-10T10:00:00", "timeZone": "Mars/Base"}}, "Invalid time zone definition"),
        ({"start": {"dateTime": "soon"}}, "Invalid start time."),
        ({"start": {"date": "2026-03-10"}}, "Start and end times must either both be date or both be dateTime."),
        ({"start": {"date": "2026-03-10", "dateTime": "2026-03-10T10:00:00Z"}}, "Invalid start time."),
        ({"end": None}, "Missing end time."),
        ({"end": {"dateTime": "2026-03-10T09:00:00Z"}}, "The specified time range is empty."),
        ({"attendees": [{"email": "nobody"}]}, "Invalid attendee email."),
        ({"recurrence": ["RRULE:FREQ=DAILY"]}, "Missing time zone definition for start time."),
        ({"recurrence": ["RRULE:FREQ=HOURLY"], "start": {"dateTime": "2026-03-10T09:00:00", "timeZone": "UTC"},
          "end": {"dateTime": "2026-03-10T10:00:00", "timeZone": "UTC"}}, "the emulator does not play FREQ=HOURLY"),
    ],
)  # fmt: skip
def test_bad_events_are_refused_in_googles_words(api: Api, change: dict[str, Any], text: str) -> None:
    with pytest.raises(Refused) as error:
        api("POST", EVENTS, event() | change)
    assert error.value.status == 400 and text in error.value.message
    assert api("GET", EVENTS)["items"] == []


def test_a_patch_merges_objects_and_null_takes_away(api: Api) -> None:
    made = api("POST", EVENTS, {"start": {"date": "2026-03-10"}, "end": {"date": "2026-03-11"}, "description": "x"})
    path = f"{EVENTS}/{made['id']}"
    assert made["reminders"] == {"useDefault": False, "overrides": [{"method": "popup", "minutes": 30}]}
    timed = {name: {"dateTime": f"2026-03-10T1{at}:00:00Z"} for name, at in (("start", 0), ("end", 1))}

    with pytest.raises(Refused) as error:
        api("PATCH", path, timed)
    assert error.value.message == "Invalid start time."
    new = api("PATCH", path, {**{k: {**v, "date": None} for k, v in timed.items()}, "description": None})

    assert "date" not in new["start"] and "description" not in new
    marked = api("PATCH", path, {"extendedProperties": {"private": {"a": "1"}}})
    marked = api("PATCH", path, {"extendedProperties": {"private": {"b": "2"}}, "summary": "S"})
    assert marked["extendedProperties"]["private"] == {"a": "1", "b": "2"}


def test_a_guest_answers_and_the_organiser_sees_it(api: Api) -> None:
    made = api("POST", EVENTS, event(attendees=[{"email": "bob@example.com"}]), sendUpdates="all")
    path = f"{EVENTS}/{made['id']}"
    (left,) = api("GET", "/emulator/outbox")["left"]
    assert (left["kind"], left["to"]) == ("invitation", ["bob@example.com"])
    assert "METHOD:REQUEST" in left["content"] and f"UID:{made['iCalUID']}" in left["content"]

    api("POST", "/emulator/person", {"do": "calendar.answer", "as": "bob@example.com", "event": made["id"],
                                     "answer": "accepted"})  # fmt: skip

    seen = api("GET", path)
    assert seen["attendees"][0]["responseStatus"] == "accepted" and seen["etag"] != made["etag"]
    assert [one["to"] for one in api("GET", "/emulator/outbox")["left"]] == [["bob@example.com"], ["ann@example.org"]]
    api.user = "bob@example.com"
    mine = api("GET", path)
    assert mine["attendees"][0]["self"] is True and mine["organizer"] == {"email": "ann@example.org"}
    with pytest.raises(Refused) as error:
        api("PATCH", path, {"summary": "mine"})
    assert reason(error) == (403, "forbiddenForNonOrganizer")
    api("PATCH", path, {"attendees": [{"email": "bob@example.com", "responseStatus": "declined"}]})
    api.user = "ann@example.org"
    assert api("GET", path)["attendees"][0]["responseStatus"] == "declined"
    api("DELETE", path, sendUpdates="all")
    api.user = "bob@example.com"
    assert api("GET", path)["status"] == "cancelled"
    assert "METHOD:CANCEL" in api("GET", "/emulator/outbox")["left"][-1]["content"]


def test_nobody_is_mailed_unless_asked_for_and_only_outsiders_where_so_said(api: Api) -> None:
    guests: dict[str, Any] = {"attendees": [{"email": "in@example.org"}, {"email": "out@example.com"}]}
    api("POST", EVENTS, event(**guests))
    assert api("GET", "/emulator/outbox")["left"] == []
    api("POST", EVENTS, event(**guests), sendUpdates="externalOnly")
    assert [one["to"] for one in api("GET", "/emulator/outbox")["left"]] == [["out@example.com"]]


def test_private_properties_are_found_and_belong_to_one_copy(api: Api) -> None:
    mark: dict[str, Any] = {"extendedProperties": {"private": {"quire": "k1"}}}
    made = api("POST", EVENTS, event(attendees=[{"email": "bob@example.com"}], **mark))
    api("POST", EVENTS, event())

    found = api("GET", EVENTS, privateExtendedProperty=["quire=k1"])["items"]

    assert [one["id"] for one in found] == [made["id"]]
    api.user = "bob@example.com"
    assert "extendedProperties" not in api("GET", f"{EVENTS}/{made['id']}")


def test_the_same_request_makes_the_same_conference_and_none_without_the_parameter(api: Api) -> None:
    asked = event(conferenceData={"createRequest": {"requestId": "r1"}})
    assert "conferenceData" not in api("POST", EVENTS, asked)
    first, second = (api("POST", EVENTS, asked, conferenceDataVersion=1) for _ in range(2))
    assert first["conferenceData"]["conferenceId"] == second["conferenceData"]["conferenceId"]
    assert first["hangoutLink"].startswith("https://meet.google.com/")


def test_a_service_account_cannot_invite(api: Api) -> None:
    email = "bot@acme.iam.gserviceaccount.com"
    api("POST", "/emulator/accounts", {"token": "robot", "email": email})
    api.user = "robot"
    with pytest.raises(Refused) as error:
        api("POST", EVENTS, event(attendees=[{"email": "bob@example.com"}]))
    assert reason(error) == (403, "forbiddenForServiceAccounts")


def weekly(api: Api, **more: Any) -> dict[str, Any]:
    times = {
        n: {"dateTime": f"2026-03-23T{h}:00:00", "timeZone": "Europe/Berlin"} for n, h in (("start", 9), ("end", 10))
    }
    found: dict[str, Any] = api("POST", EVENTS, event(recurrence=["RRULE:FREQ=WEEKLY;COUNT=3"]) | _times(times) | more)
    return found


def _times(times: dict[str, Any]) -> dict[str, Any]:
    return {name: {**at, "dateTime": at["dateTime"].replace("T9", "T09")} for name, at in times.items()}


def test_a_series_keeps_its_clock_time_over_summer_time_and_takes_exceptions(api: Api) -> None:
    api("PATCH", "/calendar/v3/calendars/primary", {"timeZone": "Europe/Berlin"})
    made = weekly(api)
    found = api("GET", f"{EVENTS}/{made['id']}/instances")["items"]

    assert [one["start"]["dateTime"] for one in found] == [
        "2026-03-23T09:00:00+01:00", "2026-03-30T09:00:00+02:00", "2026-04-06T09:00:00+02:00",
    ]  # fmt: skip
    assert [one["id"] for one in found][1] == f"{made['id']}_20260330T070000Z"
    assert found[1]["recurringEventId"] == made["id"] and found[1]["originalStartTime"] == found[1]["start"]
    second = f"{EVENTS}/{found[1]['id']}"
    assert api("PATCH", second, {"summary": "moved"})["summary"] == "moved"
    api("DELETE", f"{EVENTS}/{found[2]['id']}")
    listed = api("GET", EVENTS, singleEvents="true", orderBy="startTime")
    assert [one["summary"] for one in listed["items"]] == ["Kick-off", "moved"] and "nextSyncToken" not in listed
    assert len(api("GET", EVENTS)["items"]) == 2  # the series and its exception


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("FREQ=DAILY;INTERVAL=2;COUNT=3", ["03-23", "03-25", "03-27"]),
        ("FREQ=DAILY;UNTIL=20260324T235959Z", ["03-23", "03-24"]),
        ("FREQ=WEEKLY;BYDAY=MO,WE;COUNT=4", ["03-23", "03-25", "03-30", "04-01"]),
        ("FREQ=MONTHLY;BYDAY=-1FR;COUNT=2", ["03-27", "04-24"]),
        ("FREQ=MONTHLY;BYMONTHDAY=31;COUNT=2", ["03-31", "05-31"]),
        ("FREQ=YEARLY;COUNT=2", ["03-23", "03-23"]),
    ],
)
def test_rules_are_followed(api: Api, rule: str, days: list[str]) -> None:
    made = weekly(api, recurrence=["RRULE:" + rule])
    found = api("GET", f"{EVENTS}/{made['id']}/instances")["items"]
    assert [one["start"]["dateTime"][5:10] for one in found] == days


def test_excluded_days_are_left_out(api: Api) -> None:
    made = weekly(api, recurrence=["EXDATE;TZID=Europe/Berlin:20260330T090000", "RRULE:FREQ=WEEKLY;COUNT=3"])
    found = api("GET", f"{EVENTS}/{made['id']}/instances")["items"]
    assert [one["start"]["dateTime"][5:10] for one in found] == ["03-23", "04-06"]


def test_a_list_has_bounds_pages_and_words(api: Api) -> None:
    for hour in range(8, 13):
        api(
            "POST",
            EVENTS,
            event(f"2026-03-10T{hour:02}:00:00Z", f"2026-03-10T{hour + 1:02}:00:00Z", summary=f"n{hour}"),
        )
    bounds = {"timeMin": "2026-03-10T09:00:00Z", "timeMax": "2026-03-10T11:00:00Z"}
    assert [one["summary"] for one in api("GET", EVENTS, **bounds)["items"]] == ["n9", "n10"]
    page = api("GET", EVENTS, maxResults=3)
    assert "nextSyncToken" not in page
    last = api("GET", EVENTS, maxResults=3, pageToken=page["nextPageToken"])
    assert [len(page["items"]), len(last["items"])] == [3, 2] and last["nextSyncToken"]
    assert [one["summary"] for one in api("GET", EVENTS, q="N11")["items"]] == ["n11"]
    with pytest.raises(Refused) as error:
        api("GET", EVENTS, orderBy="startTime")
    assert error.value.message == "The requested ordering is not available for the particular query."


def test_a_sync_token_gives_what_changed_and_runs_out(api: Api) -> None:
    one, two = (api("POST", EVENTS, event(summary=word)) for word in ("one", "two"))
    token = api("GET", EVENTS)["nextSyncToken"]
    assert api("GET", EVENTS, syncToken=token)["items"] == []
    api("DELETE", f"{EVENTS}/{one['id']}")
    api("PATCH", f"{EVENTS}/{two['id']}", {"summary": "2"})

    found = api("GET", EVENTS, syncToken=token)

    assert [(item["id"], item["status"]) for item in found["items"]] == [
        (one["id"], "cancelled"),
        (two["id"], "confirmed"),
    ]
    assert set(found["items"][0]) == {"kind", "etag", "id", "status"}
    assert api("GET", EVENTS, syncToken=found["nextSyncToken"])["items"] == []
    with pytest.raises(Refused) as error:
        api("GET", EVENTS, syncToken=token, q="one")
    assert error.value.status == 400
    api("POST", "/emulator/clock", {"advance_seconds": 29 * 86400})
    with pytest.raises(Refused) as error:
        api("GET", EVENTS, syncToken=token)
    assert reason(error) == (410, "fullSyncRequired")
    with pytest.raises(Refused) as error:
        api("GET", EVENTS, updatedMin="2026-01-01T00:00:00Z")
    assert reason(error) == (410, "updatedMinTooLongAgo")


@pytest.mark.parametrize("seed", range(6))
def test_a_follower_that_only_syncs_has_the_same_calendar(api: Api, seed: int) -> None:
    chance, token, mirror, last = random.Random(seed), "", dict[str, Any](), dict[str, str]()
    keys = [f"event{number}" for number in range(6)]
    for _ in range(60):
        key, path = chance.choice(keys), f"{EVENTS}/"
        held = {one["id"]: one for one in api("GET", EVENTS, showDeleted="true")["items"]}
        guests = [{"email": f"g{chance.randrange(3)}@example.com"}]
        if key not in held:
            made = api("POST", EVENTS, event(id=key, attendees=guests))
        elif held[key]["status"] == "cancelled":
            made = api("PATCH", path + key, {"status": "confirmed"})
        elif chance.random() < 0.3:
            api("DELETE", path + key)
            made = api("GET", path + key)
        elif chance.random() < 0.5:
            made = api("PATCH", path + key, {"attendees": guests, "summary": str(chance.random())})
        else:
            hour = chance.randrange(10, 20)
            times = {
                "start": {"dateTime": f"2026-03-10T{hour}:00:00Z"},
                "end": {"dateTime": f"2026-03-10T{hour}:30:00Z"},
            }
            made = api("PATCH", path + key, times)
            assert made["sequence"] - held[key]["sequence"] == any(made[n] != held[key][n] for n in times)
        changed = key not in held or made != held[key]
        assert made["etag"] > last.get(key, "") if changed else made["etag"] == last[key]
        last[key] = made["etag"]
        if chance.random() < 0.3:
            looked = api("GET", EVENTS, **({"syncToken": token} if token else {}))
            token = looked["nextSyncToken"]
            for one in looked["items"]:
                mirror.pop(one["id"], None)
                if one["status"] != "cancelled":
                    mirror[one["id"]] = one
    for one in api("GET", EVENTS, **({"syncToken": token} if token else {}))["items"]:
        mirror.pop(one["id"], None)
        if one["status"] != "cancelled":
            mirror[one["id"]] = one
    assert mirror == {one["id"]: one for one in api("GET", EVENTS)["items"]}


def test_a_move_leaves_a_stub_and_free_times_are_told(api: Api) -> None:
    there = api("POST", "/calendar/v3/calendars", {"summary": "Work"})["id"]
    made = api("POST", EVENTS, event())
    assert api("POST", f"{EVENTS}/{made['id']}/move", destination=there)["status"] == "cancelled"
    assert api("GET", f"{EVENTS}/{made['id']}")["start"]["dateTime"] == "2000-01-01T00:00:00Z"
    asked = {"timeMin": "2026-03-10T00:00:00Z", "timeMax": "2026-03-11T00:00:00Z"}
    found = api("POST", "/calendar/v3/freeBusy", asked | {"items": [{"id": "primary"}, {"id": there}, {"id": "x@y"}]})
    assert found["calendars"] == {
        "primary": {"busy": []},
        there: {"busy": [{"start": "2026-03-10T10:00:00Z", "end": "2026-03-10T11:00:00Z"}]},
        "x@y": {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []},
    }


def test_calendars_are_shared_by_rules(api: Api) -> None:
    there = api("POST", "/calendar/v3/calendars", {"summary": "Work", "timeZone": "Asia/Tokyo"})["id"]
    path = f"/calendar/v3/calendars/{there}"
    api.user = "bob@example.com"
    with pytest.raises(Refused) as error:
        api("GET", path)
    assert reason(error) == (404, "notFound")
    api.user = "ann@example.org"
    api("POST", path + "/acl", {"scope": {"type": "user", "value": "bob@example.com"}, "role": "reader"})
    api.user = "bob@example.com"
    assert there in [one["id"] for one in api("GET", "/calendar/v3/users/me/calendarList")["items"]]
    with pytest.raises(Refused) as error:
        api("POST", path + "/events", event())
    assert reason(error) == (403, "requiredAccessLevel")


@pytest.mark.parametrize(
    ("switch", "text", "summary", "start"),
    [
        ("words", "Lunch with Bob tomorrow at 1pm", "Lunch with Bob", "2026-03-05T13:00:00Z"),
        ("next_hour", "Lunch with Bob tomorrow at 1pm", "Lunch with Bob tomorrow at 1pm", "2026-03-04T13:00:00Z"),
    ],
)
def test_a_quick_event_reads_a_few_words(api: Api, switch: str, text: str, summary: str, start: str) -> None:
    api("POST", "/emulator/settings", {"switches": {"quick_add": switch}})
    made = api("POST", EVENTS + "/quickAdd", text=text)
    assert (made["summary"], made["start"]["dateTime"]) == (summary, start)


def test_an_import_is_known_by_its_uid_and_twice_is_no_error(api: Api) -> None:
    body = event(iCalUID="abc@elsewhere.example", organizer={"email": "boss@elsewhere.example"})
    first = api("POST", EVENTS + "/import", body)
    second = api("POST", EVENTS + "/import", body | {"summary": "again"})
    assert first["id"] == second["id"] and second["organizer"] == {"email": "boss@elsewhere.example"}
    assert [one["summary"] for one in api("GET", EVENTS, iCalUID="abc@elsewhere.example")["items"]] == ["again"]


def test_calls_over_the_quota_are_refused_as_calendar_does(api: Api) -> None:
    api("POST", "/emulator/settings", {"quotas": {"calendar": {"queries": {"per_user": 2}}}})
    api("GET", EVENTS), api("GET", EVENTS)
    with pytest.raises(Refused) as error:
        api("GET", EVENTS)
    assert reason(error) == (403, "userRateLimitExceeded")
    assert error.value.body["error"]["errors"][0]["domain"] == "usageLimits"


def test_a_calendar_survives_a_restart(tmp_path: Any) -> None:
    path = tmp_path / "world.json"
    with Emulator(path=path, account="ann@example.org") as first:
        made = first.call("POST", EVENTS, event(attendees=[{"email": "bob@example.com"}])).body
    with Emulator(path=path, account="ann@example.org") as second:
        import json

        key = json.loads(made)["id"]
        assert json.loads(second.call("GET", f"{EVENTS}/{key}").body) == json.loads(made)


def test_a_channel_tells_that_something_changed_until_it_is_stopped(emulator: Emulator) -> None:
    api = Api(emulator, "ann@example.org")
    with receiving() as receiver:
        asked = {"id": "ch1", "type": "web_hook", "address": receiver.url, "token": "t"}
        channel = api("POST", EVENTS + "/watch", asked)
        first = receiver.next().headers
        api("POST", EVENTS, event())
        second = receiver.next().headers
        with pytest.raises(Refused) as error:
            api("POST", EVENTS + "/watch", asked)
        stopped = {"id": "ch1", "resourceId": channel["resourceId"]}
        api("POST", "/calendar/v3/channels/stop", stopped)
        with pytest.raises(Refused) as gone:
            api("POST", "/calendar/v3/channels/stop", stopped)
        api("POST", EVENTS, event())
    assert (first["x-goog-resource-state"], second["x-goog-resource-state"]) == ("sync", "exists")
    assert (first["x-goog-message-number"], second["x-goog-message-number"]) == ("1", "2")
    assert second["x-goog-channel-token"] == "t" and second["x-goog-resource-id"] == channel["resourceId"]
    assert reason(error) == (400, "channelIdNotUnique") and gone.value.status == 404
    assert receiver.taken.empty()
    with pytest.raises(Refused) as error:
        api("POST", EVENTS + "/watch", {"id": "ch2", "type": "web_hook", "address": "http://example.com"})
    assert reason(error) == (400, "push.webhookUrlNotHttps")


def test_googles_client_makes_events_in_a_batch(google: Any) -> None:
    answers: dict[str, Any] = {}
    batch = google.new_batch_http_request(lambda key, answer, error: answers.update({key: error or answer}))
    for key in ("batch1", "batch2", "batch1"):
        batch.add(google.events().insert(calendarId="primary", body=event(id=key)))
    batch.execute()
    assert sorted(str(getattr(one, "status_code", 200)) for one in answers.values()) == ["200", "200", "409"]


def test_an_update_that_changes_nothing_keeps_the_etag_and_a_deletion_raises_the_sequence(api: Api) -> None:
    made = api("POST", EVENTS, event(attendees=[{"email": "bob@example.com"}]), sendUpdates="none")
    path = f"{EVENTS}/{made['id']}"
    assert api("PUT", path, made, sendUpdates="all")["etag"] == made["etag"]
    assert api("PATCH", path, {"summary": made["summary"]})["updated"] == made["updated"]
    assert api("GET", "/emulator/outbox")["left"] == []
    api("DELETE", path)
    gone = api("GET", path)
    assert (gone["status"], gone["sequence"]) == ("cancelled", 1) and gone["etag"] > made["etag"]


def test_addresses_and_ids_are_made_as_google_makes_them(api: Api) -> None:
    import base64

    made = api("POST", EVENTS, event(id="abcde12345"))
    there = api("POST", "/calendar/v3/calendars", {"summary": "Work"})["id"]
    other = api("POST", f"/calendar/v3/calendars/{there}/events", event())
    brought = api("POST", EVENTS + "/import", event(iCalUID="a@b.c"))

    def page(one: dict[str, Any]) -> str:
        text = one["htmlLink"].partition("eid=")[2]
        return base64.b64decode(text + "=" * (-len(text) % 4)).decode()

    assert page(made) == "abcde12345 ann@example.org"
    assert there.startswith("c_") and page(other) == f"{other['id']} {there.removesuffix('group.calendar.google.com')}g"
    assert brought["id"] == "_" + base64.b32hexencode(b"a@b.c").decode().rstrip("=").lower()


def test_whole_days_take_the_usual_reminders_of_the_calendar(api: Api) -> None:
    day: dict[str, Any] = {"start": {"date": "2026-03-10"}, "end": {"date": "2026-03-11"}}
    api("PATCH", "/calendar/v3/users/me/calendarList/primary", {"defaultReminders": []})
    assert api("POST", EVENTS, day)["reminders"] == {"useDefault": False}


def test_a_secondary_calendar_names_its_owner_where_the_switch_says_so(api: Api) -> None:
    path = "/calendar/v3/calendars"
    assert "dataOwner" not in api("POST", path, {"summary": "Work"})
    api("POST", "/emulator/settings", {"switches": {"calendar_data_owner": True}})
    assert api("POST", path, {"summary": "Work"})["dataOwner"] == "ann@example.org"
    assert "dataOwner" not in api("GET", path + "/primary")
    rule = api("POST", path + "/primary/acl", {"scope": {"type": "default"}, "role": "reader"})
    assert rule["scope"]["value"] == "__public_principal__@public.calendar.google.com"
    assert len(api("GET", "/calendar/v3/users/me/settings")["items"]) == 13
