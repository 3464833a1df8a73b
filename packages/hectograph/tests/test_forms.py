"""Forms v1: made by the API, filled by people, listed page by page, and written into a sheet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator


@pytest.fixture
def api() -> Api:
    made = Direct()
    made.user = "ann@example.org"
    return made


@pytest.fixture
def forms() -> Iterator[Any]:
    with Emulator() as running, building(running) as build:
        yield build("forms", "v1").forms()


def text(title: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "questionItem": {"question": {"textQuestion": {}, **more}}}


def choice(title: str, *options: str, kind: str = "RADIO") -> dict[str, Any]:
    held = {"type": kind, "options": [{"value": one} for one in options]}
    return {"title": title, "questionItem": {"question": {"choiceQuestion": held}}}


def created(*items: dict[str, Any]) -> dict[str, Any]:
    return {"requests": [{"createItem": {"item": one, "location": {"index": n}}} for n, one in enumerate(items)]}


@pytest.fixture
def form(api: Api) -> str:
    key = str(api("POST", "/v1/forms", {"info": {"title": "Onboarding"}})["formId"])
    api(
        "POST",
        f"/v1/forms/{key}:batchUpdate",
        created(text("Company", required=True), choice("Size", "small", "large")),
    )
    return key


def opened(api: Api, form: str) -> str:
    state = {"isPublished": True, "isAcceptingResponses": True}
    api("POST", f"/v1/forms/{form}:setPublishSettings", {"publishSettings": {"publishState": state}})
    api("POST", f"/drive/v3/files/{form}/permissions", {"type": "anyone", "role": "reader"})
    return form


def fill(api: Api, form: str, company: str, **more: Any) -> str:
    answers = {"Company": company, **more.pop("answers", {})}
    done = api("POST", "/emulator/person", {"do": "form.fill", "form": form, "answers": answers, **more})
    return str(done["response"])


def test_googles_client_makes_a_form_and_changes_it(forms: Any) -> None:
    made = forms.create(body={"info": {"title": "T", "documentTitle": "D"}}).execute()
    key = made["formId"]
    body = created(text("One"), text("Two")) | {"includeFormInResponse": True}
    answer = forms.batchUpdate(formId=key, body=body).execute()
    moved = [
        {"moveItem": {"originalLocation": {"index": 0}, "newLocation": {"index": 1}}},
        {"updateItem": {"item": {"title": "Zwei"}, "location": {"index": 0}, "updateMask": "title"}},
        {"updateFormInfo": {"info": {"description": "why"}, "updateMask": "description"}},
        {"updateSettings": {"settings": {"emailCollectionType": "VERIFIED"}, "updateMask": "emailCollectionType"}},
    ]
    forms.batchUpdate(formId=key, body={"requests": moved}).execute()

    got = forms.get(formId=key).execute()

    assert made["info"] == {"title": "T", "documentTitle": "D"} and made["publishSettings"] == {"publishState": {}}
    (item, question) = (answer["replies"][0]["createItem"][name] for name in ("itemId", "questionId"))
    assert answer["form"]["items"][0]["itemId"] == item
    assert answer["form"]["items"][0]["questionItem"]["question"]["questionId"] == question[0]
    assert [one["title"] for one in got["items"]] == ["Zwei", "One"] and got["info"]["description"] == "why"
    assert got["settings"] == {"emailCollectionType": "VERIFIED"} and got["revisionId"] > answer["form"]["revisionId"]


def test_only_its_title_is_set_when_a_form_is_made(api: Api) -> None:
    with pytest.raises(Refused) as error:
        api("POST", "/v1/forms", {"info": {"title": "T", "description": "x"}})
    assert error.value.message.startswith("Only info.title can be set when creating a form.")


def test_a_batch_lands_whole_or_not_at_all(api: Api, form: str) -> None:
    before = api("GET", f"/v1/forms/{form}")
    body = created(text("Three"))
    body["requests"].append({"deleteItem": {"location": {"index": 9}}})
    with pytest.raises(Refused) as error:
        api("POST", f"/v1/forms/{form}:batchUpdate", body)
    assert error.value.message.startswith("Invalid requests[1].deleteItem: Index 9 is out of bounds")
    control = {"writeControl": {"requiredRevisionId": "00000001"}}
    with pytest.raises(Refused) as error:
        api("POST", f"/v1/forms/{form}:batchUpdate", created(text("Three")) | control)
    assert "does not match the latest revision" in error.value.message
    assert api("GET", f"/v1/forms/{form}") == before


def test_nobody_answers_before_the_form_is_published_and_shared(api: Api, form: str) -> None:
    for words in ("is not published", "You need permission"):
        with pytest.raises(Refused) as error:
            fill(api, form, "Acme")
        assert words in error.value.message
        state = {"isPublished": True, "isAcceptingResponses": True}
        api("POST", f"/v1/forms/{form}:setPublishSettings", {"publishSettings": {"publishState": state}})
    api("POST", "/emulator/settings", {"switches": {"form_access": "anybody"}})
    fill(api, form, "Acme")
    state = {"isPublished": True}
    api("POST", f"/v1/forms/{form}:setPublishSettings", {"publishSettings": {"publishState": state}})
    with pytest.raises(Refused) as error:
        fill(api, form, "Acme")
    assert "no longer accepting responses" in error.value.message


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"Company": ""}, "This is a required question"),
        ({"Company": "A", "Size": "huge"}, "'huge' is none of small, large"),
        ({"Company": "A", "Age": "1"}, "the form has no question 'Age'"),
        ({"Company": ["A", "B"]}, "only one answer is possible"),
    ],
)
def test_what_a_person_may_not_answer_is_said(api: Api, form: str, answers: dict[str, Any], words: str) -> None:
    opened(api, form)
    with pytest.raises(Refused) as error:
        api("POST", "/emulator/person", {"do": "form.fill", "form": form, "answers": answers})
    assert words in error.value.message and api("GET", f"/v1/forms/{form}/responses") == {}


def test_an_edit_keeps_the_response_and_raises_its_time(api: Api, form: str) -> None:
    opened(api, form)
    key = fill(api, form, "Acme")
    (first,) = api("GET", f"/v1/forms/{form}/responses")["responses"]
    assert first["createTime"] == "2026-03-04T12:00:00.000Z"
    assert first["lastSubmittedTime"] == "2026-03-04T12:00:00.000342Z"  # they differ although nobody edited
    (answer,) = first["answers"].values()
    assert answer["textAnswers"] == {"answers": [{"value": "Acme"}]} and "respondentEmail" not in first
    api("POST", "/emulator/clock", {"advance_seconds": 60})
    fill(api, form, "Acme Ltd", response=key)
    (second,) = api("GET", f"/v1/forms/{form}/responses", filter="timestamp >= 2026-03-04T12:00:30Z")["responses"]
    assert (second["responseId"], second["createTime"]) == (key, first["createTime"])
    assert second["lastSubmittedTime"] == "2026-03-04T12:01:00.000000Z"
    later = "timestamp > 2026-03-04T12:01:00.000000Z"
    assert api("GET", f"/v1/forms/{form}/responses", filter=later) == {}
    assert api("GET", f"/v1/forms/{form}/responses/{key}")["formId"] == form


@pytest.mark.parametrize("text", ["timestamp < 2026-03-04T12:00:00Z", "timestamp > 2026-03-04", "company = x"])
def test_any_other_filter_is_refused(api: Api, form: str, text: str) -> None:
    with pytest.raises(Refused) as error:
        api("GET", f"/v1/forms/{form}/responses", filter=text)
    assert error.value.status == 400


def test_pages_hold_every_response_once_and_in_no_order(api: Api, form: str) -> None:
    opened(api, form)
    made = [fill(api, form, f"c{number}") for number in range(23)]
    found: list[str] = []
    page: dict[str, Any] = {"nextPageToken": ""}
    while "nextPageToken" in page:
        page = api("GET", f"/v1/forms/{form}/responses", pageSize=5, pageToken=page["nextPageToken"])
        found += [one["responseId"] for one in page["responses"]]
    assert sorted(found) == sorted(made) and found != made


def test_a_linked_sheet_gets_each_response_as_a_row(api: Api, form: str) -> None:
    opened(api, form)
    first = fill(api, form, "Acme", answers={"Size": "small"})
    book = api("POST", "/emulator/person", {"do": "form.link", "form": form})["book"]
    fill(api, form, "Beta")
    fill(api, form, "Acme Ltd", response=first)
    assert api("GET", f"/v1/forms/{form}")["linkedSheetId"] == book
    values = api("GET", f"/v4/spreadsheets/{book}/values/Form Responses 1!A1:C9".replace(" ", "%20"))["values"]
    assert values[0] == ["Timestamp", "Company", "Size"]
    assert [row[1:] for row in values[1:]] == [["Acme Ltd"], ["Beta"]]
    assert values[2][0] == "3/4/2026 12:00:00"


def test_a_watch_tells_a_topic_of_responses_for_a_week(api: Api, form: str) -> None:
    opened(api, form)
    topic, reader = "projects/acme/topics/forms", "/v1/projects/acme/subscriptions/reader"
    body = {"watch": {"target": {"topic": {"topicName": topic}}, "eventType": "RESPONSES"}, "watchId": "w1"}
    with pytest.raises(Refused):
        api("POST", f"/v1/forms/{form}/watches", body)
    api("PUT", f"/v1/{topic}", {})
    api("PUT", reader, {"topic": topic})
    watch = api("POST", f"/v1/forms/{form}/watches", body)
    assert watch["expireTime"] == "2026-03-11T12:00:00.000000Z" and watch["state"] == "ACTIVE"
    with pytest.raises(Refused) as error:
        api("POST", f"/v1/forms/{form}/watches", body | {"watchId": "w2"})
    assert error.value.status == 409
    fill(api, form, "Acme")
    (got,) = api("POST", reader + ":pull", {"maxMessages": 9})["receivedMessages"]
    assert got["message"]["attributes"] == {"formId": form, "eventType": "RESPONSES", "watchId": "w1"}
    assert "data" not in got["message"]
    api("POST", "/emulator/clock", {"advance_seconds": 8 * 86400})
    fill(api, form, "Beta")
    assert api("POST", reader + ":pull", {"maxMessages": 9})["receivedMessages"][0]["message"] == got["message"]
    with pytest.raises(Refused) as error:
        api("POST", f"/v1/forms/{form}/watches/w1:renew", {})
    assert error.value.status == 404


def test_a_copy_has_the_questions_and_none_of_the_answers(api: Api, form: str) -> None:
    opened(api, form)
    fill(api, form, "Acme")
    copy = api("POST", f"/drive/v3/files/{form}/copy", {"name": "Copy"})["id"]
    assert [one["title"] for one in api("GET", f"/v1/forms/{copy}")["items"]] == ["Company", "Size"]
    assert api("GET", f"/v1/forms/{copy}/responses") == {}


def test_answers_survive_a_restart(tmp_path: Any) -> None:
    path = tmp_path / "world.json"
    with Emulator(path=path) as first:
        api = Api(first)
        key = str(api("POST", "/v1/forms", {"info": {"title": "T"}})["formId"])
        api("POST", f"/v1/forms/{key}:batchUpdate", created(text("Company")))
        fill(api, opened(api, key), "Acme")
        before = api("GET", f"/v1/forms/{key}/responses")
    with Emulator(path=path) as second:
        assert Api(second)("GET", f"/v1/forms/{key}/responses") == before
