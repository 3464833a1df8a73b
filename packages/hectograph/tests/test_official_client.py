"""Google's own client, unchanged but for the address in its discovery document."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from hectograph import Emulator

discovery = pytest.importorskip("googleapiclient.discovery", reason="google-api-python-client is not installed")
pytest.importorskip("google_auth_httplib2", reason="google-auth-httplib2 is not installed")

# The library's own use of deprecated names is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")


@pytest.fixture
def service(emulator: Emulator) -> Iterator[Any]:
    from google.auth.credentials import AnonymousCredentials
    from googleapiclient.discovery_cache import get_static_doc

    made: list[Any] = []

    def build(name: str, version: str) -> Any:
        document = json.loads(get_static_doc(name, version))
        document["rootUrl"] = emulator.url
        document.pop("mtlsRootUrl", None)
        made.append(discovery.build_from_document(document, credentials=AnonymousCredentials()))  # type: ignore[no-untyped-call]  # untyped
        return made[-1]

    yield build
    for one in made:
        one.close()


def test_sheets(service: Any) -> None:
    sheets = service("sheets", "v4").spreadsheets()
    body = {"properties": {"title": "Book"}, "sheets": [{"properties": {"title": "data", "sheetId": 4}}]}
    book = sheets.create(body=body).execute()["spreadsheetId"]

    sheets.values().update(
        spreadsheetId=book, range="data!A1", valueInputOption="USER_ENTERED", body={"values": [["=1+1", "x"]]}
    ).execute()
    reply = sheets.batchUpdate(
        spreadsheetId=book,
        body={
            "requests": [
                {"addNamedRange": {"namedRange": {"name": "head", "namedRangeId": "h1", "range": {"sheetId": 4}}}}
            ],
            "includeSpreadsheetInResponse": True,
            "responseRanges": ["data!A1:B1"],
            "responseIncludeGridData": True,
        },
    ).execute()

    assert sheets.values().get(spreadsheetId=book, range="data!A1:B1").execute()["values"] == [["2", "x"]]
    assert reply["replies"][0]["addNamedRange"]["namedRange"]["namedRangeId"] == "h1"
    [row] = reply["updatedSpreadsheet"]["sheets"][0]["data"][0]["rowData"]
    assert [cell["formattedValue"] for cell in row["values"]] == ["2", "x"]


def test_drive_uploads_of_every_kind(service: Any) -> None:
    from googleapiclient.http import MediaIoBaseDownload, MediaIoBaseUpload

    files = service("drive", "v3").files()
    for resumable, size in ((False, 10), (True, 10), (True, 600_000)):
        content = bytes(range(256)) * (size // 256 + 1)
        media = MediaIoBaseUpload(
            io.BytesIO(content), "application/octet-stream", chunksize=262144, resumable=resumable
        )
        made = files.create(body={"name": "f.bin"}, media_body=media, fields="id,size,md5Checksum").execute()
        assert made["size"] == str(len(content))
        out = io.BytesIO()
        download = MediaIoBaseDownload(out, files.get_media(fileId=made["id"]))
        done = False
        while not done:
            _, done = download.next_chunk()
        assert out.getvalue() == content
        files.update(fileId=made["id"], media_body=MediaIoBaseUpload(io.BytesIO(b"new"), "text/plain")).execute()
        assert files.get_media(fileId=made["id"]).execute() == b"new"


def test_a_batch_of_calls_and_a_refusal(service: Any) -> None:
    from googleapiclient.errors import HttpError

    drive = service("drive", "v3")
    answers: dict[str, Any] = {}
    batch = drive.new_batch_http_request(callback=lambda key, answer, error: answers.update({key: error or answer}))
    batch.add(drive.files().create(body={"name": "one"}), request_id="1")
    batch.add(drive.files().get(fileId="nope"), request_id="2")
    batch.execute()

    assert answers["1"]["name"] == "one"
    assert isinstance(answers["2"], HttpError)
    assert answers["2"].status_code == 404
    with pytest.raises(HttpError) as refused:
        drive.files().get(fileId="nope").execute()
    assert refused.value.reason == "File not found: nope."


def test_a_very_long_get_is_understood(service: Any) -> None:
    sheets = service("sheets", "v4").spreadsheets()
    book = sheets.create(body={}).execute()["spreadsheetId"]

    found = sheets.values().batchGet(spreadsheetId=book, ranges=[f"Sheet1!A{n}:Z{n}" for n in range(1, 200)]).execute()

    assert len(found["valueRanges"]) == 199
