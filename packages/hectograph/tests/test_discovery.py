"""Routes, parameters and schemas come from Google's discovery documents."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import googleapiclient
import pytest

from emulator_api import Api, Book, Refused
from hectograph.apis import VERSIONS
from hectograph.core import discovery
from hectograph.core.http import Request

INSTALLED = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents"


def called(version: str, verb: str, target: str) -> tuple[str, dict[str, str]] | None:
    found = discovery.api(version).find(Request.of(verb, target, {}, b""))
    return None if found is None else (found[0].name, found[1])


@pytest.mark.parametrize(
    ("version", "verb", "target", "name", "parts"),
    [
        ("sheets.v4", "POST", "/v4/spreadsheets/B:batchUpdate", "spreadsheets.batchUpdate", {"spreadsheetId": "B"}),
        ("sheets.v4", "POST", "/v4/spreadsheets/B/:batchUpdate", "spreadsheets.batchUpdate", {"spreadsheetId": "B"}),
        ("sheets.v4", "POST", "/v4/spreadsheets/B%3AbatchUpdate", "spreadsheets.batchUpdate", {"spreadsheetId": "B"}),
        (
            *("sheets.v4", "GET", "/v4/spreadsheets/B/values/'a/b'!A1%3AB2", "spreadsheets.values.get"),
            {"spreadsheetId": "B", "range": "'a/b'!A1:B2"},
        ),
        ("drive.v3", "GET", "/drive/v3/files/generateIds", "files.generateIds", {}),
        ("drive.v3", "GET", "/drive/v3/files/a%2Fb?fields=id", "files.get", {"fileId": "a/b"}),
        (
            *("calendar.v3", "GET", "/calendar/v3/calendars/ann%40x.eu/events/e1", "events.get"),
            {"calendarId": "ann@x.eu", "eventId": "e1"},
        ),
        ("chat.v1", "POST", "/v1/spaces/S/messages", "spaces.messages.create", {"parent": "spaces/S"}),
        ("docs.v1", "POST", "/v1/documents/D:batchUpdate", "documents.batchUpdate", {"documentId": "D"}),
    ],
)
def test_a_path_leads_to_googles_method(version: str, verb: str, target: str, name: str, parts: dict[str, str]) -> None:
    assert called(version, verb, target) == (name, parts)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stored_document_has_the_methods_of_the_client_librarys(version: str) -> None:
    installed = json.loads((INSTALLED / f"{version}.json").read_text(encoding="utf-8"))
    stored = json.loads(lzma.decompress((discovery.DOCUMENTS / f"{version}.json.xz").read_bytes()))
    if stored["revision"] != installed["revision"]:
        pytest.skip("the client library carries another revision")

    assert sorted(stored["schemas"]) == sorted(installed["schemas"])
    assert len(discovery.api(version).methods) == json.dumps(installed).count('"httpMethod"')


def test_what_reads_and_what_writes_is_counted_apart() -> None:
    writes = {method.name: method.write for version in VERSIONS for method in discovery.api(version).methods}

    assert writes["spreadsheets.values.batchGetByDataFilter"] is False
    assert writes["spreadsheets.developerMetadata.search"] is False
    assert writes["files.copy"] is True
    assert writes["events.insert"] is True


@pytest.mark.parametrize(
    ("verb", "path", "method"),
    [
        ("GET", "/drive/v3/apps", "drive.apps.list"),
        ("GET", "/drive/v2/apps", "drive.v2.apps.list"),
        ("GET", "/gmail/v1/users/me/settings/cse/keypairs", "gmail.users.settings.cse.keypairs.list"),
    ],
)
def test_a_method_that_is_not_played_says_so_by_its_name(api: Api, verb: str, path: str, method: str) -> None:
    with pytest.raises(Refused) as refused:
        api(verb, path, {} if verb == "POST" else None)

    assert refused.value.status == 501
    assert refused.value.message == f"The emulator knows the method {method} but does not play it."


def test_an_unknown_path_is_not_found(api: Api) -> None:
    with pytest.raises(Refused) as refused:
        api("GET", "/v1/nothing")

    assert refused.value.status == 404


def test_a_parameter_that_the_document_does_not_have_is_refused(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.api("GET", f"{book.path}/values/A1", nonsense="1")

    assert "Cannot bind query parameter" in refused.value.message
