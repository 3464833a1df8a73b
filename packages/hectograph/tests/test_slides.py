"""Google Slides through Google's own client: what a presentation is, how it changes, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from emulator_api import Api
from google_client import building
from hectograph import Emulator

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

PRESENTATION = "application/vnd.google-apps.presentation"


@dataclass
class Deck:
    slides: Any
    drive: Any
    key: str

    def batch(self, *requests: dict[str, Any], **control: Any) -> list[Any]:
        body = {"requests": list(requests), **({"writeControl": control} if control else {})}
        found = self.slides.presentations().batchUpdate(presentationId=self.key, body=body).execute()
        self.revision = found["writeControl"]["requiredRevisionId"]
        return list(found["replies"])

    def refused(self, *requests: dict[str, Any], **control: Any) -> str:
        from googleapiclient.errors import HttpError

        with pytest.raises(HttpError) as error:
            self.batch(*requests, **control)
        return f"{error.value.resp.status} {error.value.reason}"

    def get(self) -> dict[str, Any]:
        found: dict[str, Any] = self.slides.presentations().get(presentationId=self.key).execute()
        return found

    def elements(self, slide: int = 0) -> dict[str, dict[str, Any]]:
        return {one["objectId"]: one for one in self.get()["slides"][slide].get("pageElements", [])}

    def text(self, object_id: str, slide: int = 0) -> str:
        return text_of(self.elements(slide)[object_id]["shape"].get("text", {}))


def text_of(text: dict[str, Any]) -> str:
    return "".join(one.get("textRun", {}).get("content", "") for one in text.get("textElements", []))


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[Any, Any]]:
    with Emulator() as emulator, building(emulator) as build:
        yield build("slides", "v1"), build("drive", "v3")


@pytest.fixture
def deck(clients: tuple[Any, Any]) -> Deck:
    slides, drive = clients
    return Deck(slides, drive, slides.presentations().create(body={"title": "Pitch"}).execute()["presentationId"])


def insert(text: str, object_id: str = "i0", at: int = 0, **more: Any) -> dict[str, Any]:
    return {"insertText": {"objectId": object_id, "text": text, "insertionIndex": at, **more}}


def replace(text: str, new: str, **more: Any) -> dict[str, Any]:
    return {"replaceAllText": {"containsText": {"text": text, "matchCase": True}, "replaceText": new, **more}}


def on(page: str) -> dict[str, Any]:
    side = {"magnitude": 100, "unit": "PT"}
    return {"pageObjectId": page, "size": {"width": side, "height": side}}


def test_a_new_presentation_has_a_title_slide_with_two_empty_placeholders(deck: Deck) -> None:
    made = deck.get()

    [slide] = made["slides"]
    assert made["title"] == "Pitch" and made["pageSize"]["width"]["magnitude"] == 9144000
    assert [one["shape"]["placeholder"]["type"] for one in slide["pageElements"]] == ["CENTERED_TITLE", "SUBTITLE"]
    assert [one["objectId"] for one in slide["pageElements"]] == ["i0", "i1"]
    assert "text" not in slide["pageElements"][0]["shape"]
    assert slide["slideProperties"]["notesPage"]["notesProperties"]["speakerNotesObjectId"] == "i3"
    assert {one["layoutProperties"]["name"] for one in made["layouts"]} >= {"BLANK", "TITLE", "TITLE_AND_BODY"}
    assert deck.drive.files().get(fileId=deck.key).execute()["mimeType"] == PRESENTATION


def test_text_counts_from_0_in_utf_16_and_ends_in_a_line_end_that_nobody_wrote(deck: Deck) -> None:
    deck.batch(insert("a😀b\nc"), insert("!", at=4))

    text = deck.elements()["i0"]["shape"]["text"]["textElements"]
    assert [(one.get("startIndex", 0), one["endIndex"]) for one in text] == [(0, 6), (0, 6), (6, 8), (6, 8)]
    assert text_of({"textElements": text}) == "a😀b!\nc\n"
    assert "grapheme cluster" in deck.refused(insert("x", at=2))
    ranged = {"objectId": "i0", "textRange": {"type": "FIXED_RANGE", "startIndex": 1, "endIndex": 3}}
    deck.batch({"deleteText": ranged})
    assert deck.text("i0") == "ab!\nc\n"
    deck.batch({"deleteText": {"objectId": "i0", "textRange": {"type": "ALL"}}})
    assert "text" not in deck.elements()["i0"]["shape"]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (insert("x", "no_such"), "insertText: The object (no_such) could not be found."),
        (insert("x", at=4), "The insertion index (4) should not be greater than the existing text length (0)."),
        ({"deleteObject": {"objectId": "no_such"}}, "deleteObject: The object (no_such) could not be found."),
        ({"deleteText": {"objectId": "i1", "textRange": {}}}, "The startIndex 0 must be less than the endIndex 0."),
        (
            {"createSlide": {"objectId": "p_slide_is_longer_than_fifty_characters_in_this_test"}},
            "should have a length of 5 to 50 characters",
        ),
        ({"createSlide": {"objectId": "four"}}, "should have a length of 5 to 50 characters"),
        ({"createSlide": {"objectId": "no spaces"}}, "contains characters that are not allowed"),
        ({"createSlide": {"insertionIndex": 9}}, "createSlide: The insertion index (9) should not be greater"),
        (
            {"createShape": {"shapeType": "TEXT_BOX", "elementProperties": {"pageObjectId": "nowhere"}}},
            "createShape: The page (nowhere) could not be found.",
        ),
        (replace("a", "b", pageObjectIds=["n"]), "replaceAllText: The page (n) is a notes master"),
        (replace("a", "b", pageObjectIds=["gone"]), "replaceAllText: The page (gone) could not be found."),
        ({"insertComment": {"objectId": "NO_SUCH", "content": "x"}}, "The object (NO_SUCH) could not be found."),
        ({"createVideo": {}}, "createVideo: This request is not supported by the emulator."),
        ({"createImage": {"url": "ftp://x", "elementProperties": {"pageObjectId": "p"}}}, "retrieving the image"),
    ],
)  # fmt: skip
def test_a_refusal_says_which_request_and_changes_nothing(deck: Deck, request_: dict[str, Any], text: str) -> None:
    before = deck.get()

    refusal = deck.refused({"createSlide": {}}, request_)

    assert refusal.startswith("400 Invalid requests[1].") and text in refusal
    assert deck.get() == before


def test_an_object_id_of_the_caller_is_kept_and_taken_once(deck: Deck) -> None:
    layout = {"predefinedLayout": "TITLE_AND_BODY"}
    ids = [{"layoutPlaceholder": {"type": "BODY"}, "objectId": "my_body"}]
    deck.batch({"createSlide": {"objectId": "slide_two", "slideLayoutReference": layout, "placeholderIdMappings": ids}})

    assert deck.get()["slides"][1]["objectId"] == "slide_two"
    assert deck.elements(1)["my_body"]["shape"]["placeholder"]["type"] == "BODY"
    unique = "The object ID (my_body) should be unique among all pages and page elements in the presentation."
    assert unique in deck.refused({"createSlide": {"objectId": "my_body"}})
    wrong = {"layoutPlaceholder": {"type": "SUBTITLE"}, "objectId": "other"}
    assert "does not match any placeholder" in deck.refused({"createSlide": {"placeholderIdMappings": [wrong]}})


def test_text_is_replaced_in_shapes_tables_and_notes_or_on_named_pages_only(deck: Deck) -> None:
    deck.batch(
        {"createSlide": {"objectId": "second"}},
        {"createTable": {"objectId": "table", "rows": 1, "columns": 2, "elementProperties": on("second")}},
        insert("{{x}} and {{x}}"),
        insert("{{x}}", "table", cellLocation={"columnIndex": 1}),
        insert("{{x}}", "i3"),
    )
    [only] = deck.batch(replace("{{x}}", "one", pageObjectIds=["second"]))
    [rest] = deck.batch(replace("{{x}}", "😀"))

    assert only == {"replaceAllText": {"occurrencesChanged": 1}}
    assert rest == {"replaceAllText": {"occurrencesChanged": 3}}
    assert deck.batch(replace("{{x}}", "y")) == [{"replaceAllText": {}}]
    assert deck.text("i0") == "😀 and 😀\n"
    [row] = deck.elements(1)["table"]["table"]["tableRows"]
    assert [text_of(cell.get("text", {})) for cell in row["tableCells"]] == ["", "one\n"]
    assert row["tableCells"][0]["location"] == {}
    notes = deck.get()["slides"][0]["slideProperties"]["notesPage"]["pageElements"][0]
    assert text_of(notes["shape"]["text"]) == "😀\n"


def test_a_placeholder_becomes_a_picture(deck: Deck) -> None:
    deck.batch(insert("{{logo}}"))

    criteria = {"containsText": {"text": "{{LOGO}}"}, "imageUrl": "https://example.com/a.png"}
    [reply] = deck.batch({"replaceAllShapesWithImage": criteria})

    assert reply == {"replaceAllShapesWithImage": {"occurrencesChanged": 1}}
    assert deck.elements()["i0"]["image"]["sourceUrl"] == "https://example.com/a.png"
    assert "does not allow text editing" in deck.refused(insert("x"))


def test_a_slide_is_duplicated_moved_and_deleted(deck: Deck) -> None:
    deck.batch(insert("one"), {"duplicateObject": {"objectId": "p", "objectIds": {"p": "slide_b", "i0": "title_b"}}})
    deck.batch(insert("two ", "title_b"), {"createSlide": {"objectId": "slide_c", "insertionIndex": 0}})
    deck.batch({"updateSlidesPosition": {"slideObjectIds": ["slide_c"], "insertionIndex": 3}})

    assert [slide["objectId"] for slide in deck.get()["slides"]] == ["p", "slide_b", "slide_c"]
    assert (deck.text("i0"), deck.text("title_b", 1)) == ("one\n", "two one\n")
    deck.batch({"deleteObject": {"objectId": "p"}}, {"deleteObject": {"objectId": "title_b"}})
    assert [slide["objectId"] for slide in deck.get()["slides"]] == ["slide_b", "slide_c"]
    assert "title_b" not in deck.elements()


def test_styles_lists_tables_and_places_are_kept(deck: Deck) -> None:
    where = {"objectId": "i0", "textRange": {"type": "FIXED_RANGE", "startIndex": 0, "endIndex": 3}}
    deck.batch(
        insert("bold rest"),
        {"updateTextStyle": {**where, "style": {"bold": True}, "fields": "bold"}},
        {"updateParagraphStyle": {"objectId": "i0", "style": {"alignment": "CENTER"}, "fields": "alignment"}},
        {"createParagraphBullets": {"objectId": "i0", "bulletPreset": "NUMBERED_DIGIT_ALPHA_ROMAN"}},
        {"updatePageElementTransform": {"objectId": "i1", "applyMode": "RELATIVE", "transform": {"translateX": 5}}},
        {"updatePageElementAltText": {"objectId": "i1", "description": "a box"}},
        {"createTable": {"objectId": "table", "rows": 1, "columns": 1, "elementProperties": on("p")}},
        {"insertTableRows": {"tableObjectId": "table", "cellLocation": {}, "insertBelow": True, "number": 2}},
        {"insertTableColumns": {"tableObjectId": "table", "cellLocation": {}, "insertRight": True, "number": 1}},
        {"deleteTableRow": {"tableObjectId": "table", "cellLocation": {"rowIndex": 1}}},
    )
    held = deck.elements()
    marker, bold, rest = held["i0"]["shape"]["text"]["textElements"]
    assert marker["paragraphMarker"]["style"]["alignment"] == "CENTER"
    assert marker["paragraphMarker"]["bullet"]["glyph"] == "1."
    assert (bold["textRun"]["style"], rest["textRun"]["style"]) == ({"bold": True}, {})
    assert held["i1"]["description"] == "a box"
    assert (held["table"]["table"]["rows"], held["table"]["table"]["columns"]) == (2, 2)
    deck.batch({"deleteParagraphBullets": {"objectId": "i0"}})
    assert "lists" not in deck.elements()["i0"]["shape"]["text"]


def test_a_stale_revision_is_refused(deck: Deck) -> None:
    old = deck.get()["revisionId"]
    deck.batch(insert("one"))

    assert deck.get()["revisionId"] == deck.revision != old
    text = f"400 The required revision ID '{old}' does not match the latest revision."
    assert deck.refused(insert("two"), requiredRevisionId=old) == text
    deck.batch(insert("two "), requiredRevisionId=deck.revision)
    assert deck.text("i0") == "two one\n"
    before = deck.revision
    deck.batch(replace("nothing", "x"))
    assert deck.revision == before


def test_drive_copies_exports_and_finds_a_presentation(deck: Deck) -> None:
    deck.batch(insert("Hello {{name}}"), {"createSlide": {}})
    copy = deck.drive.files().copy(fileId=deck.key, body={"name": "For Ann"}).execute()["id"]
    other = Deck(deck.slides, deck.drive, copy)

    other.batch(replace("{{name}}", "Ann"))

    assert (deck.text("i0"), other.text("i0"), other.get()["title"]) == ("Hello {{name}}\n", "Hello Ann\n", "For Ann")
    assert deck.drive.files().export(fileId=copy, mimeType="text/plain").execute() == b"Hello Ann"
    pdf = deck.drive.files().export(fileId=copy, mimeType="application/pdf").execute()
    assert b"(Hello Ann) Tj" in pdf and b"/Count 2" in pdf and b"[0 0 720 405]" in pdf
    found = deck.drive.files().list(q="fullText contains 'hello ann'").execute()["files"]
    assert [one["id"] for one in found] == [copy]


def test_a_single_page_is_read_and_one_that_is_not_there_is_not_found(deck: Deck) -> None:
    pages = deck.slides.presentations().pages()

    page = pages.get(presentationId=deck.key, pageObjectId="p").execute()

    assert page["objectId"] == "p" and page["revisionId"] == deck.get()["revisionId"]
    from googleapiclient.errors import HttpError

    with pytest.raises(HttpError, match="Requested entity was not found"):
        pages.get(presentationId=deck.key, pageObjectId="gone").execute()
    with pytest.raises(HttpError, match="does not play it"):
        pages.getThumbnail(presentationId=deck.key, pageObjectId="p").execute()


def test_a_presentation_outlives_the_emulator(tmp_path: Path) -> None:
    place = tmp_path / "world.json"
    with Emulator(path=place) as first:
        api = Api(first)
        path = "/v1/presentations/" + api("POST", "/v1/presentations", {"title": "Kept"})["presentationId"]
        table = {"createTable": {"objectId": "table", "rows": 1, "columns": 2, "elementProperties": on("p")}}
        bold = {"updateTextStyle": {"objectId": "i0", "style": {"bold": True}, "fields": "bold"}}
        requests = [insert("a😀\nb"), bold, table, insert("cell", "table", cellLocation={"columnIndex": 1})]
        api("POST", f"{path}:batchUpdate", {"requests": requests})
        before = api("GET", path)
    with Emulator(path=place) as second:
        assert Api(second)("GET", path) == before
        Api(second)("POST", "/emulator/reset")
        assert second.call("GET", path).status == 404
