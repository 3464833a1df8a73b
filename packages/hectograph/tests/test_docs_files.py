"""Documents as files of Drive: copied, exported, uploaded, kept, and found."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from docs_api import Doc, delete, insert, replace, text_of
from emulator_api import Api, upload
from emulator_direct import Direct
from google_client import building
from hectograph import Emulator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

DOCUMENT = "application/vnd.google-apps.document"


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[Emulator, Any, Any]]:
    with Emulator() as emulator, building(emulator) as build:
        yield emulator, build("docs", "v1"), build("drive", "v3")


@pytest.fixture
def doc(clients: tuple[Emulator, Any, Any]) -> Doc:
    _, docs, drive = clients
    made = drive.files().create(body={"name": "Template", "mimeType": DOCUMENT}).execute()
    return Doc(docs, drive, made["id"])


def test_a_copy_is_a_document_of_its_own_whose_text_can_be_read_at_once(doc: Doc) -> None:
    doc.batch(insert("Dear {{name}}"), {"createHeader": {"type": "DEFAULT"}})
    body = {"name": "For Ann", "appProperties": {"quire": "k1"}}
    made = doc.drive.files().copy(fileId=doc.key, body=body, fields="id,name,mimeType,appProperties").execute()
    copy = Doc(doc.docs, doc.drive, made["id"])

    copy.batch(replace("{{name}}", "Ann"))

    assert made["appProperties"] == {"quire": "k1"} and made["mimeType"] == DOCUMENT
    assert (doc.text(), copy.text()) == ("Dear {{name}}\n", "Dear Ann\n")
    assert copy.get()["title"] == "For Ann" and len(copy.get()["headers"]) == 1


def test_a_rename_in_drive_is_the_documents_title(doc: Doc) -> None:
    doc.drive.files().update(fileId=doc.key, body={"name": "Renamed"}).execute()

    assert doc.get(fields="title") == {"title": "Renamed"}


def test_an_edit_is_a_change_of_the_file(doc: Doc) -> None:
    token = doc.drive.changes().getStartPageToken().execute()["startPageToken"]

    doc.batch(insert("x"))

    [change] = doc.drive.changes().list(pageToken=token).execute()["changes"]
    assert change["fileId"] == doc.key


def test_text_is_exported_with_its_mark_and_line_ends_of_windows(doc: Doc) -> None:
    doc.batch(insert("one\ntwo 😀"))

    assert doc.export("text/plain").decode() == "\ufeffone\r\ntwo 😀"


def test_html_and_markdown_show_headings_lists_links_and_tables(doc: Doc) -> None:
    doc.batch(
        insert("Head\nbold & link\nitem"),
        {"updateParagraphStyle": {"range": {"startIndex": 1, "endIndex": 2}, "fields": "namedStyleType",
                                  "paragraphStyle": {"namedStyleType": "HEADING_1"}}},
        {"updateTextStyle": {"range": {"startIndex": 6, "endIndex": 10}, "fields": "bold",
                             "textStyle": {"bold": True}}},
        {"updateTextStyle": {"range": {"startIndex": 13, "endIndex": 17}, "fields": "link",
                             "textStyle": {"link": {"url": "https://example.com/?a&b"}}}},
        {"createParagraphBullets": {"range": {"startIndex": 18, "endIndex": 19},
                                    "bulletPreset": "BULLET_STAR_CIRCLE_SQUARE"}},
    )  # fmt: skip

    html = doc.export("text/html").decode()
    assert "<h1>Head</h1><p><b>bold</b> &amp; " in html and '<a href="https://example.com/?a&amp;b">' in html
    assert "<ul><li>item</li></ul>" in html
    assert doc.export("text/markdown").decode() == "# Head\n\n**bold** & [link](https://example.com/?a&b)\n\n* item\n"


def test_a_pdf_holds_the_text_in_reading_order_of_any_alphabet(doc: Doc) -> None:
    doc.batch(insert("First (one) line\nДоговор 😀\nLast line"), {"insertPageBreak": {"location": {"index": 28}}})

    pdf = doc.export("application/pdf")

    assert pdf.startswith(b"%PDF-1.7") and pdf.endswith(b"%%EOF\n") and b"/Count 2" in pdf
    other = "<" + "Договор".encode("utf-16-be").hex()
    places = [pdf.index(mark) for mark in (rb"(First \(one\) line) Tj", other.encode(), b"(Last line) Tj")]
    assert places == sorted(places)
    table = int(pdf.rsplit(b"startxref\n", 1)[1].split()[0])
    entries = pdf[table:].split(b"\n")[3:]
    for number in range(1, 5):
        place = int(entries[number - 1][:10])
        assert pdf[place:].startswith(f"{number} 0 obj".encode())


def test_an_export_may_lag_behind_an_edit() -> None:
    api = Direct()
    key = api("POST", "/v1/documents", {})["documentId"]
    api("POST", "/emulator/settings", {"switches": {"export_lag": 30}})
    api("POST", f"/v1/documents/{key}:batchUpdate", {"requests": [insert("old")]})
    api("POST", "/emulator/clock", {"advance_seconds": 60})
    api("POST", f"/v1/documents/{key}:batchUpdate", {"requests": [replace("old", "new")]})

    path = f"/drive/v3/files/{key}/export?mimeType=text/plain"
    assert api.raw("GET", path)[1].decode() == "\ufeffold"
    api("POST", "/emulator/clock", {"advance_seconds": 31})
    assert api.raw("GET", path)[1].decode() == "\ufeffnew"


def test_what_cannot_be_exported_says_so(doc: Doc) -> None:
    from googleapiclient.errors import HttpError

    with pytest.raises(HttpError, match="The requested conversion is not supported"):
        doc.export("application/epub+zip")


@pytest.mark.parametrize(
    ("kind", "content", "text"),
    [
        ("text/plain", "one\r\ntwo\r\n", "one\ntwo\n"),
        ("text/html", "<title>no</title><h2>Head</h2><p>a <b>b</b> c</p><ul><li>x</li></ul>", "Head\na b c\nx\n"),
        ("text/html", "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "\n1\n2\n3\n\n\n"),
    ],
)
def test_an_upload_is_converted(doc: Doc, kind: str, content: str, text: str) -> None:
    from googleapiclient.http import MediaIoBaseUpload

    media = MediaIoBaseUpload(io.BytesIO(content.encode()), kind)
    made = doc.drive.files().create(body={"name": "u", "mimeType": DOCUMENT}, media_body=media).execute()

    found = Doc(doc.docs, doc.drive, made["id"])
    assert found.text() == text
    found.batch(insert("!", 1 if "<table" not in content else 5))


def test_a_document_outlives_the_emulator(tmp_path: Path) -> None:
    place = tmp_path / "world.json"
    with Emulator(path=place) as first:
        api = Api(first)
        key = api("POST", "/v1/documents", {"title": "Kept"})["documentId"]
        path = f"/v1/documents/{key}"
        range_ = {"startIndex": 2, "endIndex": 4}
        requests = [
            insert("a😀b\nc"),
            {"createNamedRange": {"name": "n", "range": range_}},
            {"updateTextStyle": {"range": range_, "textStyle": {"bold": True}, "fields": "bold"}},
            {"insertTable": {"rows": 1, "columns": 2, "location": {"index": 1}}},
            {"createFooter": {"type": "DEFAULT"}},
            {"addDocumentTab": {"tabProperties": {"title": "Two"}}},
        ]
        api("POST", f"{path}:batchUpdate", {"requests": requests})
        api("POST", f"{path}:batchUpdate", {"requests": [replace("c", "d")], "writeControl": {"writeMode": "SUGGEST"}})
        before = api("GET", path, includeTabsContent=True)
    with Emulator(path=place) as second:
        assert Api(second)("GET", path, includeTabsContent=True) == before
        Api(second)("POST", "/emulator/reset")
        assert second.call("GET", path).status == 404


@pytest.mark.parametrize("seed", range(8))
def test_random_batches_agree_with_a_text_in_utf_16(seed: int) -> None:
    """The model is a byte string of UTF-16; every batch has good requests, and some end with a bad one."""
    api, chance = Direct(), random.Random(seed)
    key = api("POST", "/v1/documents", {})["documentId"]
    model = "\n".encode("utf-16-le")
    letters = ["a", "b", "é", "😀", "\n", "𝕏", "  "]
    for _ in range(40):
        new, requests = model, []
        for _ in range(chance.randint(1, 4)):
            places = boundaries(new)
            if chance.random() < 0.6 or len(places) < 4:
                at, text = chance.choice(places[:-1]), "".join(chance.choices(letters, k=chance.randint(1, 5)))
                requests.append(insert(text, at + 1))
                new = new[: 2 * at] + text.encode("utf-16-le") + new[2 * at :]
            else:
                start, end = sorted(chance.sample(places[:-1], 2))
                requests.append(delete(start + 1, end + 1))
                new = new[: 2 * start] + new[2 * end :]
        bad = chance.random() < 0.3
        if bad:
            requests.append(insert("x", len(new) // 2 + 1))
        status = api.raw("POST", f"/v1/documents/{key}:batchUpdate", body(requests))[0]
        assert status == (400 if bad else 200)
        model = model if bad else new
        found = api("GET", f"/v1/documents/{key}")["body"]["content"]
        assert text_of(found).encode("utf-16-le") == model
        assert found[-1]["endIndex"] == len(model) // 2 + 1
        for before, after in pairwise(found):
            assert before["endIndex"] == after["startIndex"]


def body(requests: list[dict[str, Any]]) -> bytes:
    return json.dumps({"requests": requests}).encode()


def boundaries(model: bytes) -> list[int]:
    """Return the places between letters, in code units; the last is the end."""
    out, at = [0], 0
    for letter in model.decode("utf-16-le"):
        at += len(letter.encode("utf-16-le")) // 2
        out.append(at)
    return out


@pytest.mark.parametrize("seed", range(5))
def test_two_writers_with_a_target_revision_lose_nothing(seed: int) -> None:
    """Both read the same revision and edit; what each put in is there, and what each took out is gone."""
    api, chance = Direct(), random.Random(seed)
    key = api("POST", "/v1/documents", {})["documentId"]
    path = f"/v1/documents/{key}:batchUpdate"
    words = [f"w{n}" for n in range(20)]
    api("POST", path, {"requests": [insert(" ".join(words))]})
    for round_ in range(10):
        seen = api("GET", f"/v1/documents/{key}")
        text = text_of(seen["body"]["content"])
        gone = chance.sample([w for w in words if f"{w}" in text.split()], 2)
        for writer, word in enumerate(gone):
            start = 1 + (f" {text}".replace("\n", " ").index(f" {word} "))
            mark = f"<{round_}.{writer}>"
            requests = [delete(start, start + len(word)), insert(mark, start)]
            api("POST", path, {"requests": requests, "writeControl": {"targetRevisionId": seen["revisionId"]}})
        words = [w for w in words if w not in gone]
        text = text_of(api("GET", f"/v1/documents/{key}")["body"]["content"])
        assert all(f"<{round_}.{writer}>" in text for writer in (0, 1))
        assert not set(gone) & set(text.replace("<", " <").replace(">", "> ").split())
        if len(words) < 2:
            break


def test_a_search_over_the_full_text_finds_what_is_in_a_document(emulator: Emulator) -> None:
    api = Api(emulator)
    upload(api, "d", b"plain words", "text/plain", mimeType=DOCUMENT)

    assert [f["name"] for f in api("GET", "/drive/v3/files", q="fullText contains 'words'")["files"]] == ["d"]
