from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from emulator_api import SPREADSHEET, Api, Book, Refused, upload
from hectograph import Emulator

FOLDER = "application/vnd.google-apps.folder"


def test_a_file_is_made_read_changed_and_deleted(api: Api) -> None:
    file = upload(api, "a.txt", b"hello", description="d")

    found = api("GET", f"/drive/v3/files/{file}", fields="name,size,md5Checksum,mimeType,description,parents,version")
    assert found["size"] == "5"
    assert found["md5Checksum"] == "5d41402abc4b2a76b9719d911017c592"
    assert api.raw("GET", f"/drive/v3/files/{file}?alt=media")[1] == b"hello"
    api.raw("PATCH", f"/upload/drive/v3/files/{file}?uploadType=media", b"new", {"Content-Type": "text/plain"})
    assert api.raw("GET", f"/drive/v3/files/{file}?alt=media")[1] == b"new"
    assert len(api("GET", f"/drive/v3/files/{file}/revisions")["revisions"]) == 2
    status, body, _ = api.raw("DELETE", f"/drive/v3/files/{file}")
    assert (status, body) == (204, b"")
    with pytest.raises(Refused) as refused:
        api("GET", f"/drive/v3/files/{file}")
    text = f"File not found: {file}."
    assert refused.value.body == {
        "error": {
            "code": 404,
            "message": text,
            "errors": [
                {
                    "message": text,
                    "domain": "global",
                    "reason": "notFound",
                    "location": "fileId",
                    "locationType": "parameter",
                }
            ],
        }
    }


def test_a_generated_id_makes_one_file_however_often_it_is_sent(api: Api) -> None:
    [file_id, other] = api("GET", "/drive/v3/files/generateIds", count=2)["ids"]

    api("POST", "/drive/v3/files", {"id": file_id, "name": "once", "mimeType": FOLDER})
    with pytest.raises(Refused) as refused:
        api("POST", "/drive/v3/files", {"id": file_id, "name": "once", "mimeType": FOLDER})
    assert refused.value.status == 409
    assert refused.value.body["error"]["errors"][0]["reason"] == "fileIdInUse"
    assert refused.value.message == "A file already exists with the provided ID."
    with pytest.raises(Refused, match="Generated IDs are not supported"):
        api("POST", "/drive/v3/files", {"id": other, "mimeType": SPREADSHEET})
    with pytest.raises(Refused, match="not usable"):
        api("POST", "/drive/v3/files", {"id": "invented", "name": "x"})


def test_names_are_not_unique_and_searches_find_all_of_them(api: Api) -> None:
    folder = api("POST", "/drive/v3/files", {"name": "folder", "mimeType": FOLDER})["id"]
    for n in range(3):
        upload(api, "same name", b"x", parents=[folder], appProperties={"n": str(n)}, properties={"all": "yes"})
    upload(api, "it's other", b"x")

    def names(q: str, **more: object) -> list[str]:
        return [f["name"] for f in api("GET", "/drive/v3/files", q=q, **more)["files"]]

    assert len(names("name = 'same name'")) == 3
    assert len(names(f"'{folder}' in parents and trashed = false")) == 3
    assert names("appProperties has { key='n' and value='1' }") == ["same name"]
    assert (
        len(names("properties has { key='all' and value='yes' } and not appProperties has {key='n' and value='1'}"))
        == 2
    )
    assert names(f"mimeType = '{FOLDER}'") == ["folder"]
    assert names("name contains 'same'", pageSize=2) == ["same name"] * 2
    assert names(r"name = 'it\'s other' or name = 'folder'", orderBy="name") == ["folder", "it's other"]
    assert names("'root' in parents", orderBy="name desc") == ["it's other", "folder"]
    with pytest.raises(Refused) as refused:
        names("nonsense ~ 1")
    assert refused.value.message == "Invalid Value"


def test_pages_of_a_list(api: Api) -> None:
    for n in range(5):
        upload(api, f"f{n}", b"")

    seen: list[str] = []
    token = ""
    while True:
        page = api("GET", "/drive/v3/files", pageSize=2, pageToken=token, fields="nextPageToken,files(name)")
        seen += [f["name"] for f in page["files"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert sorted(seen) == [f"f{n}" for n in range(5)]


def test_spreadsheets_are_files_and_files_copy_with_their_cells(api: Api, book: Book) -> None:
    book.put("A1", [["x", 'say "hi"'], ["1,2"]])
    api("PATCH", f"/drive/v3/files/{book.book_id}", {"name": "Renamed"})

    assert book.meta()["properties"]["title"] == "Renamed"
    twin = Book(api, api("POST", f"/drive/v3/files/{book.book_id}/copy", {"name": "Twin"})["id"])
    assert twin.values("A1") == [["x"]]
    twin.put("A1", [["changed"]])
    assert book.values("A1") == [["x"]]
    assert api.raw("GET", f"/drive/v3/files/{book.book_id}/export?mimeType=text/csv")[1] == b'x,"say ""hi"""\r\n"1,2",'
    assert api.raw("GET", f"/drive/v3/files/{book.book_id}/export?mimeType=application/pdf")[1].startswith(b"%PDF")
    with pytest.raises(Refused, match="conversion is not supported"):
        api("GET", f"/drive/v3/files/{book.book_id}/export", mimeType="image/png")
    with pytest.raises(Refused, match="Only files with binary content"):
        api("GET", f"/drive/v3/files/{book.book_id}", alt="media")


def test_an_export_to_excel_can_be_opened(api: Api, book: Book) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    import io

    book.type("A1", [["text", 1.5, "=1+1"]])
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    _, raw, _ = api.raw("GET", f"/drive/v3/files/{book.book_id}/export?mimeType={kind}")

    sheet = openpyxl.load_workbook(io.BytesIO(raw)).active
    assert [cell.value for cell in sheet[1]] == ["text", 1.5, 2]


def test_a_stale_etag_is_refused_with_412(api: Api) -> None:
    file = upload(api, "head", b"1")
    etag = api("GET", f"/drive/v2/files/{file}")["etag"]

    def write(content: bytes, tag: str) -> int:
        headers = {"If-Match": tag, "Content-Type": "text/plain"}
        return api.raw("PUT", f"/upload/drive/v2/files/{file}?uploadType=media", content, headers)[0]

    assert write(b"2", etag) == 200
    assert write(b"3", etag) == 412
    assert api.raw("GET", f"/drive/v3/files/{file}?alt=media")[1] == b"2"
    status, raw, _ = api.raw("DELETE", f"/drive/v2/files/{file}", b"", {"If-Match": etag})
    assert status == 412
    assert json.loads(raw)["error"]["errors"][0]["reason"] == "conditionNotMet"
    fresh = api("GET", f"/drive/v2/files/{file}")["etag"]
    assert api.raw("DELETE", f"/drive/v2/files/{file}", b"", {"If-Match": fresh})[0] == 204
    with pytest.raises(Refused) as refused:
        api("GET", "/drive/v3/files", fields="files(etag)")
    assert refused.value.message == "Invalid field selection files/etag"


def test_a_resumed_upload_goes_on_where_it_stopped(api: Api) -> None:
    body = json.dumps({"name": "big"}).encode()
    _, _, headers = api.raw("POST", "/upload/drive/v3/files?uploadType=resumable", body)
    place = "/" + headers["location"].split("/", 3)[3]

    status, _, headers = api.raw("PUT", place, b"01234", {"Content-Range": "bytes 0-4/10"})
    assert (status, headers["range"]) == (308, "bytes=0-4")
    status, _, headers = api.raw("PUT", place, b"", {"Content-Range": "bytes */10"})
    assert (status, headers["range"]) == (308, "bytes=0-4")
    status, raw, _ = api.raw("PUT", place, b"56789", {"Content-Range": "bytes 5-9/10"})
    assert status == 200
    assert api.raw("GET", f"/drive/v3/files/{json.loads(raw)['id']}?alt=media")[1] == b"0123456789"


def test_changes_say_which_files_changed(api: Api, book: Book) -> None:
    start = api("GET", "/drive/v3/changes/startPageToken")
    assert api("GET", "/drive/v3/changes", pageToken=start["startPageToken"]) == {
        "kind": "drive#changeList",
        "newStartPageToken": start["startPageToken"],
        "changes": [],
    }
    book.put("A1", [[1]])
    gone = upload(api, "x", b"")
    api("DELETE", f"/drive/v3/files/{gone}")

    found = api("GET", "/drive/v3/changes", pageToken=start["startPageToken"])
    assert [(c["fileId"], c["removed"]) for c in found["changes"]] == [(book.book_id, False), (gone, True)]


def test_permissions_and_comments(api: Api, book: Book) -> None:
    files = f"/drive/v3/files/{book.book_id}"
    made = api("POST", f"{files}/permissions", {"type": "user", "role": "reader", "emailAddress": "a@example.com"})
    assert made.keys() == {"kind", "id", "type", "role"}
    api("PATCH", f"{files}/permissions/{made['id']}", {"role": "writer"})
    listed = api("GET", f"{files}/permissions", fields="permissions(role,emailAddress)")["permissions"]
    assert {"role": "writer", "emailAddress": "a@example.com"} in listed
    anyone = api("POST", f"{files}/permissions", {"type": "anyone", "role": "reader", "withLink": True})
    assert anyone == {
        "kind": "drive#permission",
        "id": "anyoneWithLink",
        "type": "anyone",
        "role": "reader",
        "allowFileDiscovery": False,
    }
    api("DELETE", f"{files}/permissions/anyoneWithLink")
    with pytest.raises(Refused, match="Permission not found"):
        api("GET", f"{files}/permissions/anyoneWithLink")

    with pytest.raises(Refused, match="The 'fields' parameter is required"):
        api("POST", f"{files}/comments", {"content": "hi"})
    comment = api("POST", f"{files}/comments", {"content": "hi"}, fields="id,content")
    assert api("GET", f"{files}/comments", fields="comments/content") == {"comments": [{"content": "hi"}]}
    api("DELETE", f"{files}/comments/{comment['id']}")
    assert api("GET", "/drive/v3/about", fields="user/emailAddress")["user"]["emailAddress"]


def test_a_new_name_is_found_only_after_the_lag_and_by_id_at_once(emulator: Emulator, api: Api) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    api("POST", "/emulator/clock", {"now": start.isoformat()})
    api("POST", "/emulator/settings", {"name_lag_seconds": 60})
    file = upload(api, "young", b"")

    assert api("GET", "/drive/v3/files", q="name = 'young'")["files"] == []
    assert api("GET", f"/drive/v3/files/{file}")["name"] == "young"
    api("POST", "/emulator/clock", {"advance_seconds": 61})
    assert len(api("GET", "/drive/v3/files", q="name = 'young'")["files"]) == 1
    assert emulator.world.now() == start + timedelta(seconds=61)


def test_a_service_account_without_storage_is_told_so(api: Api) -> None:
    api("POST", "/emulator/settings", {"switches": {"service_account_has_quota": False}})

    with pytest.raises(Refused) as refused:
        api("POST", "/drive/v3/files", {"name": "x"})

    assert refused.value.status == 403
    assert refused.value.body["error"]["errors"][0]["reason"] == "storageQuotaExceeded"


def test_drive_says_what_can_be_imported_and_exported(api: Api) -> None:
    about = api("GET", "/drive/v3/about", fields="importFormats,exportFormats")

    assert SPREADSHEET in about["importFormats"]["text/csv"]
    assert "application/pdf" in about["exportFormats"][SPREADSHEET]


def test_a_file_belongs_to_the_account_that_made_it_and_about_says_who_calls(api: Api) -> None:
    ways = (("/drive/v3/files", "id"), ("/v1/documents", "documentId"), ("/v4/spreadsheets", "spreadsheetId"))
    for path, key in ways:
        for user in ("ann@example.org", "bob@example.com"):
            api.user = user
            made = api("POST", path, {})[key]
            found = api("GET", f"/drive/v3/files/{made}", fields="owners(emailAddress),permissions(emailAddress,role)")
            assert found["owners"] == [{"emailAddress": user}]
            assert found["permissions"] == [{"emailAddress": user, "role": "owner"}]
            assert api("GET", "/drive/v3/about", fields="user")["user"]["emailAddress"] == user
            assert api("GET", "/drive/v2/about")["user"]["emailAddress"] == user
