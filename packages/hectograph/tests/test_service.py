"""What is done for every API alike: sign-in, scopes, quotas, switches, uploads and paths."""

from __future__ import annotations

from typing import Any

import pytest

from emulator_api import Api, Refused
from emulator_direct import Direct

AUTH = "https://www.googleapis.com/auth/"


@pytest.fixture
def api() -> Api:
    return Direct()


def refused(api: Api, verb: str, path: str, body: Any = None, **query: Any) -> Refused:
    with pytest.raises(Refused) as found:
        api(verb, path, body, **query)
    return found.value


def declared(api: Api, **given: Any) -> None:
    api("POST", "/emulator/accounts", {"token": "t1", "email": "ann@example.com", **given})
    api.user = "t1"


def test_a_token_with_the_wrong_scope_is_refused_by_calendar_with_the_methods_name(api: Api) -> None:
    declared(api, scopes=[AUTH + "drive"])

    error = refused(api, "GET", "/calendar/v3/users/me/calendarList").body["error"]

    assert (error["code"], error["status"]) == (403, "PERMISSION_DENIED")
    assert error["message"] == "Request had insufficient authentication scopes."
    assert error["errors"][0] | {"domain": ""} == {
        "message": "Insufficient Permission",
        "domain": "",
        "reason": "insufficientPermissions",
    }
    assert error["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    assert error["details"][0]["metadata"]["method"] == "calendar.v3.CalendarList.List"


def test_drive_refuses_a_scope_in_its_older_form_and_sheets_without_a_list(api: Api) -> None:
    declared(api, scopes=[AUTH + "gmail.send"])

    drive = refused(api, "GET", "/drive/v3/files").body["error"]
    sheets = refused(api, "POST", "/v4/spreadsheets", {}).body["error"]

    assert drive["message"] == "Insufficient Permission: Request had insufficient authentication scopes."
    assert "status" not in drive and drive["errors"][0]["reason"] == "insufficientPermissions"
    assert sheets["status"] == "PERMISSION_DENIED" and "errors" not in sheets


def test_any_one_of_a_methods_scopes_is_enough(api: Api) -> None:
    declared(api, scopes=[AUTH + "drive.file"])

    assert api("POST", "/v4/spreadsheets", {})["spreadsheetId"]


@pytest.mark.parametrize(
    ("path", "listed"), [("/v4/spreadsheets/x", False), ("/gmail/v1/users/me/profile", True), ("/drive/v3/about", True)]
)
def test_a_token_that_has_run_out_is_401(api: Api, path: str, listed: bool) -> None:
    declared(api, valid=False)

    found = refused(api, "GET", path)

    assert found.status == 401 and found.body["error"]["status"] == "UNAUTHENTICATED"
    assert found.body["error"]["message"].startswith("Request had invalid authentication credentials.")
    assert found.headers["www-authenticate"].endswith('error="invalid_token"')
    assert ("errors" in found.body["error"]) == listed


@pytest.mark.parametrize("given", [{"token": "t"}, {"email": "a@b.c"}, {"token": "t", "email": "a@b.c", "role": "x"}])
def test_a_token_is_declared_whole_or_not_at_all(api: Api, given: dict[str, Any]) -> None:
    assert "a token needs token and email" in refused(api, "POST", "/emulator/accounts", given).message
    assert api("GET", "/emulator/accounts") == {"accounts": []}


def test_quotas_of_an_unknown_counter_are_refused_by_name(api: Api) -> None:
    found = refused(api, "POST", "/emulator/settings", {"quotas": {"sheets": {"reads": {"per_user": 1}}}})

    assert found.message.startswith("unknown quota sheets.reads; known: ")
    assert api("GET", "/emulator/settings")["quotas"]["enabled"] is False


def test_a_quota_is_set_for_one_counter_of_one_api(api: Api) -> None:
    book = api.book()
    api("POST", "/emulator/settings", {"quotas": {"sheets": {"write": {"per_user": 1}}}})

    book.put("A1", [[1]])
    assert refused(api, "PUT", f"{book.path}/values/A1", {"values": [[2]]}, valueInputOption="RAW").status == 429
    assert [book.values("A1") for _ in range(3)] == [[["1"]]] * 3


def test_the_tokens_of_one_account_share_its_limits(api: Api) -> None:
    api("POST", "/emulator/settings", {"quotas": {"tasks": {"queries": {"per_user": 2}}}})
    for token in ("t1", "t2"):
        declared(api, token=token)
        api.user = token
        api("GET", "/tasks/v1/users/@me/lists")
    assert refused(api, "GET", "/tasks/v1/users/@me/lists").status == 403
    api.user = "another"
    assert api("GET", "/tasks/v1/users/@me/lists")["items"]


def called(api: Api) -> list[str]:
    return [name.removeprefix("kind ") for name in api("GET", "/emulator/counters")["counters"] if "kind" in name]


def test_an_upload_path_of_the_document_leads_to_its_method(api: Api) -> None:
    api.raw("POST", "/upload/gmail/v1/users/me/messages/send?uploadType=media", b"From: a@b.c")

    assert called(api) == ["gmail.users.messages.send"]


def test_a_calendar_client_may_leave_out_the_services_path(api: Api) -> None:
    api.raw("GET", "/calendars/primary/events")

    assert called(api) == ["calendar.events.list"]
    assert api("GET", "/files")["files"] == []
