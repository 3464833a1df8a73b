"""What Drive answers and refuses: permissions, searches, trash, comments, shared drives, and the calls of v2."""

from __future__ import annotations

import email
import email.policy
from typing import Any

import pytest

from emulator_api import Refused
from emulator_direct import Direct

FOLDER = "application/vnd.google-apps.folder"
FILES = "/drive/v3/files"


@pytest.fixture
def api() -> Direct:
    return Direct()


def made(api: Direct, name: str, **more: Any) -> str:
    return str(api("POST", FILES, {"name": name, **more})["id"])


def refused(api: Direct, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, str, str, str | None]:
    with pytest.raises(Refused) as caught:
        api(method, path, body, **query)
    [item] = caught.value.body["error"]["errors"]
    assert item["message"] == caught.value.message
    return caught.value.status, item["reason"], item["message"], item.get("location")


RANGE = "Invalid value '0'. Values must be within the range: [1, 1000]"
UNFIT = "The specified {} is invalid or not applicable for the given permission type."
TRANSFER = "The transferOwnership parameter must be enabled when the permission role is 'owner'."
CONSENT = "Consent is required to transfer ownership of a file to another user."
PENDING = "The target user cannot be a pending owner because the target user does not have a writer role for the file."
OWNER = {"type": "user", "role": "owner", "emailAddress": "a@b.co"}


@pytest.mark.parametrize(
    ("given", "query", "answer"),
    [
        ({}, {}, (400, "required", "The permission type field is required.", "permission.type")),
        ({"type": "user"}, {}, (400, "required", "The permission role field is required.", "permission.role")),
        ({**OWNER, "role": "boss"}, {}, (400, "invalid", UNFIT.format("role"), "permission.role")),
        (
            {"type": "user", "role": "reader"},
            {},
            (400, "invalid", UNFIT.format("emailAddress"), "permission.emailAddress"),
        ),
        ({"type": "domain", "role": "reader"}, {}, (400, "invalid", UNFIT.format("domain"), "permission.domain")),
        (OWNER, {}, (403, "forbidden", TRANSFER, "transferOwnership")),
        (OWNER, {"transferOwnership": "true"}, (403, "consentRequiredForOwnershipTransfer", CONSENT, None)),
        ({**OWNER, "role": "reader", "pendingOwner": True}, {}, (403, "pendingOwnerWriterRequired", PENDING, None)),
    ],
)
def test_permissions_that_are_refused(api: Direct, given: Any, query: Any, answer: Any) -> None:
    assert refused(api, "POST", f"{FILES}/{made(api, 'x')}/permissions", given, **query) == answer


def test_an_owner_gives_a_file_away_in_two_steps(api: Direct) -> None:
    path = f"{FILES}/{made(api, 'x')}/permissions"
    given = {"type": "user", "role": "writer", "emailAddress": "a@b.co", "pendingOwner": True}
    key = api("POST", path, given)["id"]

    assert api("PATCH", f"{path}/{key}", {"role": "owner"}, transferOwnership="true")["role"] == "owner"
    roles = {
        p["emailAddress"]: p["role"] for p in api("GET", path, fields="permissions(emailAddress,role)")["permissions"]
    }
    assert sorted(roles.values()) == ["owner", "writer"]
    assert roles["a@b.co"] == "owner"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"q": "'me' in owners", "orderBy": "name"}, ["in", "other", "top"]),
        ({"q": '"root" in parents', "orderBy": "name desc"}, ["top", "other"]),
        ({"q": "trashed = false", "orderBy": "name"}, ["other"]),
        ({"q": "trashed", "orderBy": "name"}, ["in", "top"]),
        ({"q": "sharedWithMe and trashed = false"}, []),
        ({"q": "visibility = 'limited' and name = 'other'"}, ["other"]),
        ({"q": "modifiedTime >= '2026-03-04T13:00:00+01:00' and name contains 'oth'"}, ["other"]),
        ({"q": f"mimeType = '{FOLDER}' and name != 'x'"}, ["top"]),
    ],
)
def test_searches(api: Direct, query: dict[str, str], names: list[str]) -> None:
    top = made(api, "top", mimeType=FOLDER)
    made(api, "in", parents=[top])
    made(api, "other")
    api("PATCH", f"{FILES}/{top}", {"trashed": True})

    assert [f["name"] for f in api("GET", FILES, **query)["files"]] == names


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ({"pageSize": "0"}, ("invalidParameter", RANGE, "pageSize")),
        ({"pageSize": "x"}, ("invalid", "Invalid value at 'page_size' (TYPE_INT32), \"x\"", None)),
        ({"q": "modifiedTime > 'soon'"}, ("invalid", "Invalid Value", "q")),
        ({"orderBy": "size"}, ("invalid", "Invalid Value", "orderBy")),
        ({"fields": "items"}, ("invalidParameter", "Invalid field selection items", "fields")),
    ],
)  # fmt: skip
def test_lists_that_are_refused(api: Direct, query: dict[str, str], answer: tuple[str, str, str | None]) -> None:
    assert refused(api, "GET", FILES, **query) == (400, *answer)


def test_a_sort_key_counts_once_and_a_blank_mask_wants_nothing(api: Direct) -> None:
    twice = refused(api, "GET", FILES, orderBy="name,name_natural desc")

    assert twice[:2] == (403, "orderByContainsDuplicateSortKeys")
    assert api("GET", FILES, fields="") == {}


def test_an_export_is_refused_in_the_order_of_its_faults(api: Direct) -> None:
    book = api.book()
    plain = made(api, "x", mimeType="text/plain")

    assert refused(api, "GET", f"{FILES}/nothing/export")[2] == "Required parameter: mimeType"
    assert refused(api, "GET", f"{FILES}/nothing/export", mimeType="a/b")[1] == "notFound"
    assert refused(api, "GET", f"{FILES}/{plain}/export", mimeType="a/b")[1] == "fileNotExportable"
    assert refused(api, "GET", f"{FILES}/{book.book_id}/export", mimeType="a/b")[3] == "convertTo"
    _, _, headers = api.raw("GET", f"{FILES}/{book.book_id}/export?mimeType=TEXT/CSV")
    assert headers["content-type"] == "TEXT/CSV"


def test_a_deleted_comment_keeps_its_place_and_loses_its_words(api: Direct) -> None:
    path = f"{FILES}/{made(api, 'x')}/comments"
    comment = api("POST", path, {"content": "c"}, fields="*")
    reply = api("POST", f"{path}/{comment['id']}/replies", {"content": "r", "action": "resolve"}, fields="*")
    assert api("GET", f"{path}/{comment['id']}", fields="resolved,replies(action)") == {
        "resolved": True,
        "replies": [{"action": "resolve"}],
    }
    api("DELETE", f"{path}/{comment['id']}/replies/{reply['id']}")
    api("DELETE", f"{path}/{comment['id']}")

    assert api("GET", path, fields="comments(id)") == {"comments": []}
    assert api("GET", path, fields="comments(deleted,content)", includeDeleted="true") == {
        "comments": [{"deleted": True}]
    }
    assert refused(api, "GET", f"{path}/{comment['id']}", fields="*")[1] == "notFound"


def test_shared_drives(api: Direct) -> None:
    assert refused(api, "POST", "/drive/v3/drives", {"name": "n"})[2] == "Required parameter: requestId"
    drive = api("POST", "/drive/v3/drives", {"name": "n"}, requestId="1")
    assert drive == {"kind": "drive#drive", "id": drive["id"], "name": "n"}
    inside = made(api, "inside", parents=[drive["id"]])

    assert api("GET", "/drive/v3/drives")["drives"] == [drive]
    assert api("GET", "/drive/v3/teamdrives")["teamDrives"][0]["kind"] == "drive#teamDrive"
    assert refused(api, "DELETE", f"/drive/v3/drives/{drive['id']}")[0] == 403
    api("DELETE", f"{FILES}/{inside}")
    api("DELETE", f"/drive/v3/drives/{drive['id']}")
    assert api("GET", "/drive/v3/drives") == {"kind": "drive#driveList", "drives": []}


def test_a_shortcut_tells_what_it_points_at(api: Direct) -> None:
    target = made(api, "x", mimeType=FOLDER)
    given = {"name": "s", "mimeType": "application/vnd.google-apps.shortcut", "shortcutDetails": {"targetId": target}}

    found = api("POST", FILES, given, fields="shortcutDetails")

    assert found == {"shortcutDetails": {"targetId": target, "targetMimeType": FOLDER}}


def test_the_same_files_in_the_words_of_v2(api: Direct) -> None:
    v2 = "/drive/v2/files"
    folder = api("POST", v2, {"title": "f", "mimeType": FOLDER})["id"]
    file = api("POST", v2, {"title": "x", "parents": [{"id": folder}]})["id"]

    assert [f["title"] for f in api("GET", v2, q="title = 'x' and trashed = false")["items"]] == ["x"]
    assert [c["id"] for c in api("GET", f"{v2}/{folder}/children")["items"]] == [file]
    assert [p["id"] for p in api("GET", f"{v2}/{file}/parents")["items"]] == [folder]
    given = api("POST", f"{v2}/{file}/permissions", {"type": "anyone", "role": "reader", "withLink": True})
    assert (given["id"], given["withLink"]) == ("anyoneWithLink", True)
    api("POST", f"{v2}/{file}/properties", {"key": "k", "value": "v", "visibility": "PUBLIC"})
    assert api("GET", f"{FILES}/{file}", fields="properties") == {"properties": {"k": "v"}}
    assert api("POST", f"{v2}/{file}/trash")["labels"]["trashed"] is True
    assert api("POST", f"{v2}/{file}/untrash")["labels"]["trashed"] is False
    assert api("GET", f"{v2}/{file}", fields="title") == {"title": "x"}


def test_a_book_of_somebody_else_is_forbidden_and_a_deleted_one_is_gone(api: Direct) -> None:
    api.world.switches.set({"foreign_ids_exist": True})
    book = api.book()
    api("DELETE", f"{FILES}/{book.book_id}")

    for path, status in ((book.path, 404), ("/v4/spreadsheets/" + "1" * 44, 403), ("/v4/spreadsheets/nothing", 404)):
        with pytest.raises(Refused) as caught:
            api("GET", path)
        assert caught.value.status == status
    assert caught.value.message == "Requested entity was not found."


@pytest.mark.parametrize(
    ("name", "wanted", "found"),
    [
        ("Hello_World", "World", False),
        ("Hello_World", "hello_w", True),
        ("Hello World", "world", True),
        ("Hello-World", "World", True),
        ("HelloWorld", "World", False),
    ],
)
def test_a_name_is_found_by_the_beginnings_of_its_words(api: Direct, name: str, wanted: str, found: bool) -> None:
    made(api, name)

    assert len(api("GET", FILES, q=f"name contains '{wanted}'")["files"]) == found


def test_app_properties_belong_to_the_oauth_client(api: Direct) -> None:
    for token, client in (("a", "client-a"), ("b", "client-b")):
        api("POST", "/emulator/accounts", {"token": token, "email": "ann@example.com", "client": client})
    api.user = "a"
    key = made(api, "x", appProperties={"k": "v"}, properties={"all": "see"})
    wanted = {"q": "appProperties has { key='k' and value='v' }"}

    assert api("GET", f"{FILES}/{key}", fields="appProperties") == {"appProperties": {"k": "v"}}
    assert len(api("GET", FILES, **wanted)["files"]) == 1
    api.user = "b"
    assert api("GET", f"{FILES}/{key}", fields="appProperties,properties") == {"properties": {"all": "see"}}
    assert api("GET", FILES, **wanted)["files"] == []
    api("PATCH", f"{FILES}/{key}", {"appProperties": {"k": "mine"}})
    api.user = "a"
    api("PATCH", f"{FILES}/{key}", {"appProperties": {"k": None}})
    assert api("GET", f"{FILES}/{key}", fields="appProperties") == {}
    api.user = "b"
    assert api("GET", f"{FILES}/{key}", fields="appProperties") == {"appProperties": {"k": "mine"}}


def test_sharing_mails_each_time_unless_it_is_asked_not_to(api: Direct) -> None:
    path = f"{FILES}/{made(api, 'plan')}/permissions"
    given = {"type": "user", "role": "reader", "emailAddress": "bob@example.com"}

    first = api("POST", path, given)
    again = api("POST", path, given | {"role": "writer"}, emailMessage="look")
    api("POST", path, given, sendNotificationEmail="false")
    api("POST", path, {"type": "anyone", "role": "reader"})

    assert first["id"] == again["id"] and again["role"] == "writer"
    left = api("GET", "/emulator/outbox")["left"]
    assert [(one["kind"], one["to"], one["summary"]) for one in left] == [
        ("share", ["bob@example.com"], "shared plan with bob@example.com as reader"),
        ("share", ["bob@example.com"], "shared plan with bob@example.com as writer"),
    ]
    mail = email.message_from_string(left[1]["content"], policy=email.policy.default)
    assert mail["Subject"] == "Item shared with you: “plan”" and "look" in mail.get_content()


def test_an_export_of_more_than_ten_megabytes_is_refused(api: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    from hectograph.drive import api as drive_api

    monkeypatch.setattr(drive_api, "LARGEST_EXPORT", 3)
    key = api("POST", "/v1/documents", {})["documentId"]
    api(
        "POST",
        f"/v1/documents/{key}:batchUpdate",
        {"requests": [{"insertText": {"text": "long", "location": {"index": 1}}}]},
    )

    status, raw, _ = api.raw("GET", f"{FILES}/{key}/export?mimeType=text/plain")
    assert status == 403 and b'"reason":"exportSizeLimitExceeded"' in raw
    assert b"This file is too large to be exported." in raw


def test_sharing_too_fast_is_a_fault_with_its_own_reason(api: Direct) -> None:
    key = made(api, "x")
    rule = {"fault": "error", "kind": "permissions.create", "status": 403, "reason": "sharingRateLimitExceeded"}
    api("POST", "/emulator/faults", rule)

    assert refused(api, "POST", f"{FILES}/{key}/permissions", {"type": "anyone", "role": "reader"})[:2] == (
        403,
        "sharingRateLimitExceeded",
    )


@pytest.mark.parametrize(("given", "kept"), [(0.5, 127), (0.9, 229), (1, 255), (0.8, 204), (0.7372549, 188)])
def test_a_colour_is_cut_to_255ths(api: Direct, given: float, kept: int) -> None:
    book = api.book()

    def stored(red: float) -> float:
        properties = {"sheetId": 0, "tabColor": {"red": red}}
        book.batch({"updateSheetProperties": {"properties": properties, "fields": "tabColor"}})
        return float(book.meta()["sheets"][0]["properties"]["tabColor"]["red"])

    color = stored(given)
    assert round(color * 255, 4) == kept
    assert stored(color) == color


def test_a_slash_before_the_verb_of_a_method_is_taken(api: Direct) -> None:
    book = api.book()

    assert api("POST", f"{book.path}/:batchUpdate", {"requests": [{"addSheet": {}}]})["replies"][0]["addSheet"]
