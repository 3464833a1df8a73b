"""Gmail v1, through Google's own client and without it: mails, drafts, threads, labels, history."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator

ME = "/gmail/v1/users/me"
CLIENT = "client@example.com"


def source(to: str = CLIENT, subject: str = "Contract", text: str = "Please sign.", **headers: str) -> bytes:
    mail = EmailMessage()
    mail["To"], mail["Subject"] = to, subject
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content(text)
    return mail.as_bytes()


def raw(*given: Any, **more: Any) -> dict[str, str]:
    return {"raw": base64.urlsafe_b64encode(source(*given, **more)).decode()}


@pytest.fixture
def gmail() -> Iterator[Any]:
    with Emulator(account="ann@example.org") as running, building(running) as build:
        yield build("gmail", "v1").users()


@pytest.fixture
def api() -> Api:
    made = Direct()
    made.user = "ann@example.org"
    return made


def outbox(api: Api, kind: str = "mail") -> list[dict[str, Any]]:
    return [one for one in api("GET", "/emulator/outbox")["left"] if one["kind"] == kind]


def person(api: Api, do: str, **given: Any) -> Any:
    return api("POST", "/emulator/person", {"do": do, **given})


def as_user(api: Api, user: str, verb: str, path: str, **query: Any) -> Any:
    before, api.user = api.user, user
    try:
        return api(verb, path, **query)
    finally:
        api.user = before


def headers(mail: dict[str, Any]) -> dict[str, str]:
    return {one["name"].lower(): one["value"] for one in mail["payload"]["headers"]}


def test_googles_client_sends_a_file_and_reads_the_answer(gmail: Any) -> None:
    mail = EmailMessage()
    mail["To"], mail["Subject"] = "ann@example.org", "To myself"
    mail.set_content("See the file.")
    mail.add_attachment(b"%PDF-1.4 x", maintype="application", subtype="pdf", filename="a.pdf")
    body = {"raw": base64.urlsafe_b64encode(mail.as_bytes()).decode()}

    sent = gmail.messages().send(userId="me", body=body).execute()
    got = gmail.messages().get(userId="me", id=sent["id"]).execute()

    assert sent == {"id": sent["id"], "threadId": sent["id"], "labelIds": ["UNREAD", "SENT", "INBOX"]}
    assert got["snippet"] == "See the file." and got["payload"]["mimeType"] == "multipart/mixed"
    part = got["payload"]["parts"][1]
    assert (part["filename"], "data" in part["body"]) == ("a.pdf", False)
    key = part["body"]["attachmentId"]
    found = gmail.messages().attachments().get(userId="me", messageId=sent["id"], id=key).execute()
    assert base64.urlsafe_b64decode(found["data"]) == b"%PDF-1.4 x"


def test_googles_client_uploads_a_mail(gmail: Any) -> None:
    import io

    from googleapiclient.http import MediaIoBaseUpload

    for resumable in (False, True):
        media = MediaIoBaseUpload(io.BytesIO(source()), "message/rfc822", resumable=resumable)
        sent = gmail.messages().send(userId="me", body={}, media_body=media).execute()
        assert sent["labelIds"] == ["SENT"]
    assert len(gmail.messages().list(userId="me", q="in:sent").execute()["messages"]) == 2


def test_a_draft_is_a_token_that_works_once(api: Api) -> None:
    draft = api("POST", f"{ME}/drafts", {"message": raw(X_Quire_Key="k1")})
    assert draft["message"]["labelIds"] == ["DRAFT"] and outbox(api) == []
    assert api("GET", f"{ME}/drafts")["drafts"] == [
        {"id": draft["id"], "message": {key: draft["message"][key] for key in ("id", "threadId")}}
    ]

    sent = api("POST", f"{ME}/drafts/send", {"id": draft["id"]})

    assert sent["labelIds"] == ["SENT"] and sent["threadId"] == draft["message"]["threadId"]
    assert sent["id"] != draft["message"]["id"]
    for verb, path, body in (("POST", "/drafts/send", {"id": draft["id"]}), ("GET", f"/drafts/{draft['id']}", None)):
        with pytest.raises(Refused) as error:
            api(verb, ME + path, body)
        assert (error.value.status, error.value.message) == (404, "Requested entity was not found.")
    (left,) = outbox(api)
    assert left["to"] == [CLIENT] and "X-Quire-Key: k1" in left["content"]
    assert headers(api("GET", f"{ME}/messages/{sent['id']}"))["x-quire-key"] == "k1"


def test_of_two_racing_sends_of_a_draft_one_wins_unless_the_switch_says_both(api: Api) -> None:
    for word, count in (("one", 1), ("both", 2)):
        api("POST", "/emulator/settings", {"switches": {"draft_race": word}})
        before = len(outbox(api))
        draft = api("POST", f"{ME}/drafts", {"message": raw()})
        api("POST", f"{ME}/drafts/send", {"id": draft["id"]})
        status, _, _ = api.raw("POST", f"{ME}/drafts/send", f'{{"id": "{draft["id"]}"}}'.encode())
        assert (status, len(outbox(api)) - before) == (200 if count == 2 else 404, count)
    api("POST", "/emulator/clock", {"advance_seconds": 5})
    with pytest.raises(Refused):
        api("POST", f"{ME}/drafts/send", {"id": draft["id"]})


def test_an_edited_draft_keeps_its_id_and_a_new_subject_begins_a_thread(api: Api) -> None:
    draft = api("POST", f"{ME}/drafts", {"message": raw()})
    same = api("PUT", f"{ME}/drafts/{draft['id']}", {"message": raw(text="new text")})
    other = api("PUT", f"{ME}/drafts/{draft['id']}", {"message": raw(subject="Other")})
    assert same["id"] == other["id"] == draft["id"]
    assert (
        same["message"]["id"] != draft["message"]["id"] and same["message"]["threadId"] == draft["message"]["threadId"]
    )
    assert other["message"]["threadId"] != same["message"]["threadId"]
    api("DELETE", f"{ME}/drafts/{draft['id']}")
    assert api("GET", f"{ME}/drafts") == {"resultSizeEstimate": 0}


def test_a_mail_joins_a_thread_only_if_all_three_conditions_hold(api: Api) -> None:
    first = api("POST", f"{ME}/messages/send", raw())
    known = headers(api("GET", f"{ME}/messages/{first['id']}"))["message-id"]
    assert known.startswith("<CA") and known.endswith("@mail.gmail.com>")
    right = {"In_Reply_To": known, "References": known, "subject": "RE: contract"}
    thread = {"threadId": first["threadId"]}

    joined = api("POST", f"{ME}/messages/send", raw(**right) | thread)
    others = [
        api("POST", f"{ME}/messages/send", raw(**right)),
        api("POST", f"{ME}/messages/send", raw(subject="Re: Contract") | thread),
        api("POST", f"{ME}/messages/send", raw(**right | {"subject": "Other"}) | thread),
    ]

    assert joined["threadId"] == first["threadId"]
    assert [one["threadId"] == one["id"] for one in others] == [True] * 3
    with pytest.raises(Refused) as error:
        api("POST", f"{ME}/messages/send", raw() | {"threadId": "00000000000000ff"})
    assert error.value.status == 404


@pytest.mark.parametrize("word", ["replaced", "kept"])
def test_a_message_id_of_ones_own_is_kept_or_replaced(api: Api, word: str) -> None:
    api("POST", "/emulator/settings", {"switches": {"message_id": word}})
    sent = api("POST", f"{ME}/messages/send", raw(Message_ID="<mine@example.org>"))
    found = headers(api("GET", f"{ME}/messages/{sent['id']}"))["message-id"]
    assert (found == "<mine@example.org>") == (word == "kept")
    listed = api("GET", f"{ME}/messages", q="rfc822msgid:mine@example.org")
    assert (listed["resultSizeEstimate"] == 1) == (word == "kept")


def test_bcc_stays_with_the_sender_and_a_strange_sender_is_replaced(api: Api) -> None:
    sent = api("POST", f"{ME}/messages/send", raw(Bcc="hidden@example.com", From="Boss <boss@example.net>"))
    mine = headers(api("GET", f"{ME}/messages/{sent['id']}"))
    assert mine["bcc"] == "hidden@example.com" and mine["from"] == "ann@example.org"
    for user in (CLIENT, "hidden@example.com"):
        (arrived,) = as_user(api, user, "GET", f"{ME}/messages")["messages"]
        assert "bcc" not in headers(as_user(api, user, "GET", f"{ME}/messages/{arrived['id']}"))
    person(api, "mail.alias", **{"as": "ann@example.org", "address": "sales@example.org"})
    sent = api("POST", f"{ME}/messages/send", raw(From="sales@example.org"))
    assert headers(api("GET", f"{ME}/messages/{sent['id']}"))["from"] == "sales@example.org"
    assert [one["sendAsEmail"] for one in api("GET", f"{ME}/settings/sendAs")["sendAs"]] == [
        "ann@example.org", "sales@example.org",
    ]  # fmt: skip


def test_a_person_reads_and_answers_into_the_same_thread(api: Api) -> None:
    sent = api("POST", f"{ME}/messages/send", raw())
    (arrived,) = as_user(api, CLIENT, "GET", f"{ME}/messages", labelIds="UNREAD")["messages"]
    before = api("GET", f"{ME}/profile")["historyId"]

    person(api, "mail.reply", **{"as": CLIENT, "text": "Here it is.", "files": {"signed.pdf": "%PDF"}})

    thread = api("GET", f"{ME}/threads/{sent['threadId']}")
    assert [headers(one)["from"] for one in thread["messages"]] == ["ann@example.org", CLIENT]
    assert thread["messages"][1]["labelIds"] == ["UNREAD", "INBOX"]
    assert as_user(api, CLIENT, "GET", f"{ME}/messages/{arrived['id']}", format="minimal")["labelIds"] == ["INBOX"]
    (line,) = api("GET", f"{ME}/history", startHistoryId=before, historyTypes="messageAdded")["history"]
    assert line["messagesAdded"][0]["message"]["threadId"] == sent["threadId"]
    found = api("GET", f"{ME}/messages", q="filename:signed.pdf has:attachment")["messages"]
    assert [one["threadId"] for one in found] == [sent["threadId"]]


def test_a_bounce_comes_into_the_same_thread(api: Api) -> None:
    sent = api("POST", f"{ME}/messages/send", raw("nobody@invalid.example"))
    person(api, "mail.rule", address="*@closed.example", rule="bounce")
    api("POST", f"{ME}/messages/send", raw("x@closed.example"))
    second = api("POST", f"{ME}/messages/send", raw())
    person(api, "mail.bounce", **{"as": CLIENT})

    for thread in (sent["threadId"], second["threadId"]):
        bounce = api("GET", f"{ME}/threads/{thread}")["messages"][1]
        assert headers(bounce)["from"].endswith("<mailer-daemon@googlemail.com>")
        assert "Address not found" in bounce["snippet"]
    assert api("GET", f"{ME}/messages", q="from:mailer-daemon")["resultSizeEstimate"] == 3


def test_who_is_away_answers_once_and_says_that_it_is_automatic(api: Api) -> None:
    person(api, "mail.rule", address=CLIENT, rule="away", text="I am on holiday.")
    sent = api("POST", f"{ME}/messages/send", raw())
    api("POST", f"{ME}/messages/send", raw())
    answer = api("GET", f"{ME}/threads/{sent['threadId']}")["messages"][1]
    assert headers(answer)["auto-submitted"] == "auto-replied" and "on holiday" in answer["snippet"]
    assert api("GET", f"{ME}/messages", q="in:inbox")["resultSizeEstimate"] == 1


def test_a_vacation_set_by_the_api_answers_too(api: Api) -> None:
    api.user = CLIENT
    api("PUT", f"{ME}/settings/vacation", {"enableAutoReply": True, "responseBodyPlainText": "Back on Monday."})
    api.user = "ann@example.org"
    sent = api("POST", f"{ME}/messages/send", raw())
    assert "Back on Monday" in api("GET", f"{ME}/threads/{sent['threadId']}")["messages"][1]["snippet"]


def test_formats_show_as_much_as_they_should(api: Api) -> None:
    sent = api("POST", f"{ME}/messages/send", raw(text="it wasn't <b>me</b> " + "x" * 300))
    path = f"{ME}/messages/{sent['id']}"
    minimal, metadata = (
        api("GET", path, format="minimal"),
        api("GET", path, format="metadata", metadataHeaders="subject"),
    )
    assert "payload" not in minimal and minimal["snippet"].startswith("it wasn&#39;t &lt;b&gt;me")
    assert metadata["payload"]["headers"] == [{"name": "Subject", "value": "Contract"}]
    assert b"Subject: Contract" in base64.urlsafe_b64decode(api("GET", path, format="raw")["raw"])
    data = api("GET", path)["payload"]["body"]["data"]
    assert base64.urlsafe_b64decode(data).decode().startswith("it wasn't")
    assert int(minimal["internalDate"]) == 1772625600000


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("from:ann", "abc"), ("to:bob", "b"), ("subject:offer", "ab"), ("subject:(offer new)", "b"),
        ("offer -new", "a"),
        ('"new offer"', "b"), ("bob OR carol", "bc"), ("{to:bob to:carol}", "bc"), ("is:starred", "a"),
        ("in:sent", "abc"),
        ("after:2026/03/05", "c"), ("before:2026/03/05", "ab"), ("after:1772668800", "c"), ("newer_than:1d", "c"),
        ("label:signed", "a"), ("(to:bob OR to:carol) new", "b"), ("nothing", ""), ("cc:dave", "c"),
    ],
)  # fmt: skip
def test_searches_find_what_they_say(api: Api, query: str, found: str) -> None:
    a = api("POST", f"{ME}/messages/send", raw("al@example.com", "offer"))
    b = api("POST", f"{ME}/messages/send", raw("bob@example.com", "new offer"))
    api("POST", "/emulator/clock", {"advance_seconds": 30 * 3600})
    c = api("POST", f"{ME}/messages/send", raw("carol@example.com", "thanks", Cc="dave@example.com"))
    label = api("POST", f"{ME}/labels", {"name": "Signed"})["id"]
    api("POST", f"{ME}/messages/{a['id']}/modify", {"addLabelIds": ["STARRED", label]})
    listed = api("GET", f"{ME}/messages", q=query).get("messages", [])
    names = {a["id"]: "a", b["id"]: "b", c["id"]: "c"}
    assert "".join(sorted(names[one["id"]] for one in listed)) == found


def test_a_search_finds_late_and_a_get_does_not(api: Api) -> None:
    api("POST", "/emulator/settings", {"switches": {"mail_lag": 30}})
    sent = api("POST", f"{ME}/messages/send", raw())
    assert api("GET", f"{ME}/messages", q="contract")["resultSizeEstimate"] == 0
    assert api("GET", f"{ME}/messages/{sent['id']}")["id"] == sent["id"]
    api("POST", "/emulator/clock", {"advance_seconds": 31})
    assert api("GET", f"{ME}/messages", q="contract")["resultSizeEstimate"] == 1


def test_history_that_is_too_old_is_404(api: Api) -> None:
    start = api("GET", f"{ME}/profile")["historyId"]
    sent = api("POST", f"{ME}/messages/send", raw())
    api("POST", f"{ME}/messages/{sent['id']}/modify", {"addLabelIds": ["STARRED"]})
    lines = api("GET", f"{ME}/history", startHistoryId=start)
    kinds = [key for line in lines["history"] for key in line if key not in {"id", "messages"}]
    assert kinds == ["messagesAdded", "labelsAdded"]
    assert "history" not in api("GET", f"{ME}/history", startHistoryId=lines["historyId"])
    api("POST", "/emulator/clock", {"advance_seconds": 8 * 86400})
    for number in (start, "99999999"):
        with pytest.raises(Refused) as error:
            api("GET", f"{ME}/history", startHistoryId=number)
        assert error.value.status == 404
    now = api("GET", f"{ME}/profile")["historyId"]
    person(api, "mail.forget", **{"as": "ann@example.org"})
    with pytest.raises(Refused):
        api("GET", f"{ME}/history", startHistoryId=now)


@pytest.mark.parametrize("seed", range(5))
def test_a_follower_that_only_reads_history_has_the_same_labels(api: Api, seed: int) -> None:
    chance, mirror = random.Random(seed), dict[str, set[str]]()
    at = api("GET", f"{ME}/profile")["historyId"]
    for _ in range(40):
        held = [one["id"] for one in api("GET", f"{ME}/messages", includeSpamTrash="true").get("messages", [])]
        act = chance.randrange(7) if held else 0
        key = chance.choice(held) if held else ""
        if act == 0:
            api("POST", f"{ME}/messages/send", raw("ann@example.org", text=str(chance.random())))
        elif act == 1:
            api("POST", f"{ME}/messages/{key}/trash")
        elif act == 2:
            api("DELETE", f"{ME}/messages/{key}")
        elif act == 3:
            draft = api("POST", f"{ME}/drafts", {"message": raw()})
            if chance.random() < 0.5:
                api("POST", f"{ME}/drafts/send", {"id": draft["id"]})
        else:
            body = {"addLabelIds": ["STARRED"]} if act % 2 else {"removeLabelIds": ["UNREAD", "STARRED"]}
            api("POST", f"{ME}/messages/{key}/modify", body)
    page: dict[str, Any] = {"nextPageToken": ""}
    while "nextPageToken" in page:
        page = api("GET", f"{ME}/history", startHistoryId=at, maxResults=7, pageToken=page["nextPageToken"])
        for line in page.get("history", []):
            for one in line.get("messagesAdded", []):
                mirror[one["message"]["id"]] = set(one["message"]["labelIds"])
            for one in line.get("labelsAdded", []):
                mirror[one["message"]["id"]] |= set(one["labelIds"])
            for one in line.get("labelsRemoved", []):
                mirror[one["message"]["id"]] -= set(one["labelIds"])
            for one in line.get("messagesDeleted", []):
                del mirror[one["message"]["id"]]
    listed = [
        one["id"] for one in api("GET", f"{ME}/messages", includeSpamTrash="true", maxResults=500).get("messages", [])
    ]
    real = {key: set(api("GET", f"{ME}/messages/{key}", format="minimal").get("labelIds", [])) for key in listed}
    assert mirror == real


@pytest.mark.parametrize(
    ("verb", "path", "body", "status", "text"),
    [
        ("GET", "/messages/zzz", None, 400, "Invalid id value"),
        ("GET", "/messages/ffffffffffffffff", None, 400, "Invalid id value"),
        ("GET", "/messages/18c0000000000000", None, 404, "Requested entity was not found."),
        ("POST", "/messages/send", {"raw": "a+b/"}, 400, "Base64 decoding failed"),
        ("POST", "/messages/send", {}, 400, "'raw' RFC822 payload"),
        (
            "POST",
            "/messages/send",
            {"raw": base64.urlsafe_b64encode(b"Subject: x\n\ny").decode()},
            400,
            "Recipient address",
        ),
        ("POST", "/messages/send", {"raw": base64.urlsafe_b64encode(b"To: x\n\ny").decode()}, 400, "Invalid To header"),
        ("POST", "/watch", {"topicName": "projects/p/topics/none"}, 404, "Resource not found"),
        ("POST", "/labels", {"name": "inbox"}, 409, "Label name exists or conflicts"),
        ("GET", "/settings/delegates", None, 501, "gmail.users.settings.delegates.list"),
        ("GET", "/messages?fieldz=1", None, 400, "Cannot bind query parameter"),
    ],
)
def test_what_cannot_be_is_refused_in_googles_words(
    api: Api, verb: str, path: str, body: Any, status: int, text: str
) -> None:
    with pytest.raises(Refused) as error:
        api(verb, ME + path, body)
    assert error.value.status == status and text in error.value.message
    assert outbox(api) == []


def test_labels_that_nobody_may_set_are_refused(api: Api) -> None:
    sent = api("POST", f"{ME}/messages/send", raw())
    for label in ("Label_99", "SENT", "DRAFT"):
        with pytest.raises(Refused) as error:
            api("POST", f"{ME}/messages/{sent['id']}/modify", {"addLabelIds": [label]})
        assert error.value.message == f"Invalid label: {label}"
    api("POST", f"{ME}/messages/{sent['id']}/trash")
    assert api("GET", f"{ME}/messages")["resultSizeEstimate"] == 0
    assert api("GET", f"{ME}/messages", includeSpamTrash="true")["resultSizeEstimate"] == 1


def test_scopes_and_accounts_limit_what_is_read(api: Api) -> None:
    scope = "https://www.googleapis.com/auth/gmail.metadata"
    sent = api("POST", f"{ME}/messages/send", raw())
    api("POST", "/emulator/accounts", {"token": "meta", "email": "ann@example.org", "scopes": [scope]})
    api("POST", "/emulator/accounts", {"token": "robot", "email": "bot@acme.iam.gserviceaccount.com"})
    for user, path, status, text in (
        ("meta", f"{ME}/messages?q=x", 403, "Metadata scope does not support 'q' parameter"),
        ("meta", f"{ME}/messages/{sent['id']}?format=full", 403, "Metadata scope doesn't allow format FULL"),
        ("robot", f"{ME}/messages", 400, "Precondition check failed."),
        ("bob@example.com", "/gmail/v1/users/ann@example.org/messages", 403, "Delegation denied for bob@example.com"),
    ):
        api.user = user
        with pytest.raises(Refused) as error:
            api("GET", path)
        assert (error.value.status, error.value.message) == (status, text)


def test_a_minute_has_sixty_mails(api: Api) -> None:
    api("POST", "/emulator/settings", {"quotas": True})
    for _ in range(60):
        api("POST", f"{ME}/messages/send", raw())
    with pytest.raises(Refused) as error:
        api("POST", f"{ME}/messages/send", raw())
    assert error.value.status == 403 and error.value.body["error"]["errors"][0]["reason"] == "userRateLimitExceeded"
    api("POST", "/emulator/clock", {"advance_seconds": 60})
    api("POST", "/emulator/settings", {"switches": {"mail_daily": 61}})
    api("POST", f"{ME}/messages/send", raw())
    with pytest.raises(Refused) as error:
        api("POST", f"{ME}/messages/send", raw())
    assert error.value.status == 429 and "Retry after 2026-03-05T12:00:00" in error.value.message
    assert len(outbox(api)) == 61


def test_a_lost_answer_leaves_the_mail_sent_and_the_fault_is_named_by_method(emulator: Emulator) -> None:
    import http.client

    api = Api(emulator, "ann@example.org")
    draft = api("POST", f"{ME}/drafts", {"message": raw()})
    api("POST", "/emulator/faults", {"fault": "lost_answer", "kind": "gmail.users.drafts.send"})
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        api("POST", f"{ME}/drafts/send", {"id": draft["id"]})
    with pytest.raises(Refused) as error:
        api("GET", f"{ME}/drafts/{draft['id']}")
    assert error.value.status == 404 and len(outbox(api)) == 1


def test_a_watch_tells_the_topic_and_an_invitation_arrives_as_mail(api: Api) -> None:
    topic = "projects/acme/topics/mail"
    api("PUT", f"/v1/{topic}", {})
    api("PUT", "/v1/projects/acme/subscriptions/reader", {"topic": topic})
    api.user = CLIENT
    begun = api("POST", f"{ME}/watch", {"topicName": topic})
    assert int(begun["expiration"]) == (1772625600 + 7 * 86400) * 1000
    api.user = "ann@example.org"
    times = {"start": {"dateTime": "2026-03-10T10:00:00Z"}, "end": {"dateTime": "2026-03-10T11:00:00Z"}}
    event = {"summary": "Kick-off", "attendees": [{"email": CLIENT}], **times}
    api("POST", "/calendar/v3/calendars/primary/events", event, sendUpdates="all")

    (pushed,) = api("POST", "/v1/projects/acme/subscriptions/reader:pull", {"maxMessages": 5})["receivedMessages"]

    import json

    notice = json.loads(base64.b64decode(pushed["message"]["data"]))
    assert notice["emailAddress"] == CLIENT and notice["historyId"] > int(begun["historyId"])
    api.user = CLIENT
    (arrived,) = api("GET", f"{ME}/messages", q="invitation")["messages"]
    parts = api("GET", f"{ME}/messages/{arrived['id']}")["payload"]["parts"]
    assert [one["mimeType"] for one in parts] == ["text/plain", "text/calendar"]


def test_mail_survives_a_restart(tmp_path: Any) -> None:
    path = tmp_path / "world.json"
    with Emulator(path=path, account="ann@example.org") as first:
        first.call("POST", f"{ME}/messages/send", raw())
        before = first.call("GET", f"{ME}/messages").body
    with Emulator(path=path, account="ann@example.org") as second:
        assert second.call("GET", f"{ME}/messages").body == before


def test_a_draft_is_complete_as_google_completes_it_and_is_sent_as_it_stands(api: Api) -> None:
    draft = api("POST", f"{ME}/drafts", {"message": raw(Bcc="hidden@example.com", X_Quire_Key="k")})
    got = api("GET", f"{ME}/drafts/{draft['id']}")["message"]
    names = [one["name"] for one in got["payload"]["headers"]]
    assert names[0] == "Received" and names[-2:] == ["Date", "Message-Id"]
    assert headers(got)["from"] == "ann@example.org" and headers(got)["bcc"] == "hidden@example.com"

    sent = api("POST", f"{ME}/drafts/send", {"id": draft["id"]})

    mine = headers(api("GET", f"{ME}/messages/{sent['id']}"))
    assert mine["message-id"] == headers(got)["message-id"] and mine["bcc"] == "hidden@example.com"
    (arrived,) = as_user(api, CLIENT, "GET", f"{ME}/messages")["messages"]
    theirs = headers(as_user(api, CLIENT, "GET", f"{ME}/messages/{arrived['id']}"))
    assert "bcc" not in theirs and theirs["x-quire-key"] == "k"


def test_a_change_that_changes_nothing_is_answered_with_more_than_one_that_does(api: Api) -> None:
    sent = api("POST", f"{ME}/messages/send", raw("ann@example.org"))
    path, thread = f"{ME}/messages/{sent['id']}", f"{ME}/threads/{sent['threadId']}"
    short = {"id", "threadId", "labelIds"}
    assert set(api("POST", path + "/modify", {"removeLabelIds": ["UNREAD"]})) == short
    more = api("POST", path + "/modify", {"removeLabelIds": ["UNREAD"]})
    assert set(more) == short | {"snippet", "sizeEstimate", "historyId", "internalDate"}
    assert set(api("POST", thread + "/trash")) == {"id", "messages"}
    again = api("POST", thread + "/trash")
    assert set(again) == {"id", "historyId", "messages"} and again["messages"][0]["labelIds"] == ["TRASH", "SENT"]


def test_one_change_of_a_thread_is_one_line_for_each_label(api: Api) -> None:
    first = api("POST", f"{ME}/messages/send", raw("nobody@invalid.example"))
    at = api("GET", f"{ME}/profile")["historyId"]
    api("POST", f"{ME}/threads/{first['threadId']}/trash")
    added, removed = api("GET", f"{ME}/history", startHistoryId=at)["history"]
    assert [one["labelIds"] for one in added["labelsAdded"]] == [["TRASH"], ["TRASH"]]
    assert [one["message"]["labelIds"] for one in removed["labelsRemoved"]] == [["UNREAD", "TRASH", "CATEGORY_UPDATES"]]


def test_a_filter_labels_what_arrives_and_settings_are_kept(api: Api) -> None:
    label = api("POST", f"{ME}/labels", {"name": "Clients"})["id"]
    body = {"criteria": {"from": CLIENT}, "action": {"addLabelIds": [label], "removeLabelIds": ["INBOX"]}}
    made = api("POST", f"{ME}/settings/filters", body)
    person(api, "mail.send", **{"as": CLIENT, "to": "ann@example.org", "subject": "Hi", "text": "x"})
    (found,) = api("GET", f"{ME}/messages", labelIds=label)["messages"]
    assert api("GET", f"{ME}/messages/{found['id']}", format="minimal")["labelIds"] == [label, "UNREAD"]
    assert api("GET", f"{ME}/settings/filters") == {"filter": [made]}
    api("DELETE", f"{ME}/settings/filters/{made['id']}")
    assert api("GET", f"{ME}/settings/filters") == {}
    assert api("PUT", f"{ME}/settings/imap", {"enabled": True})["expungeBehavior"] == "archive"
    assert api("GET", f"{ME}/settings/imap")["enabled"] is True
    assert api("GET", f"{ME}/settings/vacation")["enableAutoReply"] is False
    shown = api("PATCH", f"{ME}/settings/sendAs/ann@example.org", {"displayName": "Ann"})
    assert (shown["displayName"], shown["isPrimary"]) == ("Ann", True)
    labels = {one["id"]: one for one in api("GET", f"{ME}/labels")["labels"]}
    assert labels["TRASH"]["labelListVisibility"] == "labelHide" and "labelListVisibility" not in labels["INBOX"]


def test_an_emulator_in_a_test_has_people_an_outbox_and_a_clock(emulator: Emulator) -> None:
    before = emulator.world.now()
    emulator.person("mail.send", who=CLIENT, to="ann@example.org", subject="Question", text="When?")
    emulator.advance(3600)
    with pytest.raises(ValueError, match=r"nobody knows how to do 'mail\.burn'"):
        emulator.person("mail.burn", who=CLIENT)
    found = Api(emulator, "ann@example.org")("GET", f"{ME}/messages", q="from:client")
    assert found["resultSizeEstimate"] == 1 and [one["summary"] for one in emulator.outbox] == ["Question"]
    assert (emulator.world.now() - before).total_seconds() >= 3600
