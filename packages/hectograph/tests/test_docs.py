"""Google Docs through Google's own client: what a document is, how it changes, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from docs_api import Doc, delete, insert, replace, text_of
from google_client import building
from hectograph import Emulator

# The library's own use of deprecated names is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")

DOCUMENT = "application/vnd.google-apps.document"


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Emulator, Any, Any]]:
    """One emulator for all tests here, with its clients: to build them takes longer than to use them."""
    with Emulator() as emulator, building(emulator) as build:
        yield emulator, build("docs", "v1"), build("drive", "v3")


@pytest.fixture
def doc(shared: tuple[Emulator, Any, Any]) -> Doc:
    _, docs, drive = shared
    return Doc(docs, drive, docs.documents().create(body={"title": "Contract"}).execute()["documentId"])


@pytest.fixture
def emulator(shared: tuple[Emulator, Any, Any]) -> Iterator[Emulator]:
    """The emulator, for a test that changes its settings."""
    emulator = shared[0]
    before = emulator.world.settings()
    yield emulator
    emulator.world.clock.tell(None)
    emulator.world.set({"switches": before["switches"], "quotas": False})


def table(rows: int, columns: int, at: int = 1) -> dict[str, Any]:
    return {"insertTable": {"rows": rows, "columns": columns, "location": {"index": at}}}


def test_a_new_document_is_a_section_break_and_an_empty_paragraph(doc: Doc) -> None:
    made = doc.get()

    section, paragraph = made["body"]["content"]
    assert made["title"] == "Contract" and "tabs" not in made
    assert section["endIndex"] == 1 and "sectionBreak" in section and "startIndex" not in section
    assert (paragraph["startIndex"], paragraph["endIndex"]) == (1, 2)
    assert paragraph["paragraph"]["elements"][0]["textRun"]["content"] == "\n"
    assert doc.drive.files().get(fileId=doc.key).execute()["mimeType"] == DOCUMENT


def test_only_the_title_of_what_is_created_is_kept(doc: Doc) -> None:
    body = {"title": "x", "documentStyle": {"pageNumberStart": 7}, "revisionId": "mine"}
    made = doc.docs.documents().create(body=body).execute()

    assert made["documentStyle"]["pageNumberStart"] == 1
    assert made["revisionId"] != "mine"


def test_indices_count_utf_16_units_and_half_a_letter_is_refused(doc: Doc) -> None:
    doc.batch(insert("a😀b"))

    assert doc.get()["body"]["content"][1]["endIndex"] == 6
    assert "grapheme cluster" in doc.refused(insert("x", 3))
    assert "Cannot delete the requested range" in doc.refused(delete(2, 3))
    doc.batch(delete(2, 4))
    assert doc.text() == "ab\n"


def test_control_characters_are_stripped_and_do_not_count(doc: Doc) -> None:
    doc.batch(insert("a\x00\x08b\x0c\x1f\ue000c\t\x0bd"), insert("!", 4))

    assert doc.text() == "abc!\t\x0bd\n"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (insert("x", 9), "insertText: Index 9 must be less than the end index of the referenced segment, 5."),
        (insert("x", 0), "insertText: The insertion index must be inside the bounds of an existing paragraph."),
        (insert("x", 1, segmentId="kix.no"), "insertText: Segment with ID kix.no was not found."),
        (insert("x", 1, tabId="t.no"), "insertText: Tab with ID t.no was not found."),
        (delete(2, 2), "deleteContentRange: The range should not be empty."),
        (
            delete(1, 9),
            "deleteContentRange: The range cannot include the newline character at the end of the segment.",
        ),
        (delete(0, 2), "deleteContentRange: Invalid deletion range. Cannot delete the requested range."),
        (delete(90, 99), "deleteContentRange: Index 90 must be less than the end index of the referenced segment, 5."),
        ({"deleteNamedRange": {}}, "deleteNamedRange: ID or name for named range must be set"),
        ({"replaceNamedRangeContent": {"namedRangeId": "no", "text": "x"}}, "named range with ID no was not found"),
        ({"deleteTab": {"tabId": "t.0"}}, "deleteTab: The last tab of a document cannot be deleted."),
        ({"updateNamedStyle": {"fields": "*"}}, "updateNamedStyle: This request is not supported by the emulator."),
    ],
)
def test_what_is_refused_says_which_request_and_changes_nothing(doc: Doc, request_: dict[str, Any], text: str) -> None:
    doc.batch(insert("abc"))
    before = doc.revision

    refusal = doc.refused(insert("lost"), request_) if "Index" not in text else doc.refused(request_)

    number = 0 if "Index" in text else 1
    assert refusal.startswith(f"400 Invalid requests[{number}].")
    assert text in refusal
    assert (doc.text(), doc.revision) == ("abc\n", before)


def test_an_unknown_request_and_an_empty_batch(doc: Doc) -> None:
    assert "Unknown name \"createTab\" at 'requests[0]': Cannot find field." in doc.refused({"createTab": {}})
    assert doc.refused({}) == "400 Invalid requests[0]: No request set."
    assert doc.refused() == "400 Must specify at least one request."


def test_later_requests_count_after_the_earlier_ones(doc: Doc) -> None:
    doc.batch(insert("world"), insert("hello "), delete(1, 2), insert("H", 1))

    assert doc.text() == "Hello world\n"


def test_a_stale_revision_is_refused_and_the_latest_is_taken(doc: Doc) -> None:
    old = doc.revision
    new = doc.batch(insert("one"))["writeControl"]["requiredRevisionId"]

    assert new == doc.revision != old
    text = f"400 The required revision ID '{old}' does not match the latest revision."
    assert doc.refused(insert("two"), requiredRevisionId=old) == text
    doc.batch(insert("two "), requiredRevisionId=new)
    assert doc.text() == "two one\n"


def test_an_edit_for_an_older_revision_lands_where_its_writer_meant_it(doc: Doc) -> None:
    doc.batch(insert("red green blue"))
    old = doc.revision
    doc.batch(insert("very "), replace("green", "yellow"))

    doc.batch(insert("!", 15), delete(1, 4), targetRevisionId=old)

    assert doc.text() == "very  yellow blue!\n"
    assert doc.refused(insert("x"), targetRevisionId="gone").startswith("400 The target revision ID 'gone'")


def test_a_batch_that_changes_nothing_makes_no_revision(doc: Doc) -> None:
    before = doc.revision

    answer = doc.batch(replace("nowhere", "x"))

    assert answer["replies"] == [{"replaceAllText": {}}]
    assert answer["writeControl"]["requiredRevisionId"] == before


def test_text_is_replaced_everywhere_across_runs_in_the_look_of_its_first_letter(doc: Doc) -> None:
    doc.batch(insert("Dear {{name}}, {{name}}!\n"), {"createHeader": {"type": "DEFAULT"}}, table(1, 1, 1))
    header = next(iter(doc.get()["headers"]))
    doc.batch(insert("{{name}}", 0, segmentId=header), insert("{{name}}", 5))
    start = doc.text().index("{{name}}, ") + 5  # after the marks of the section and the table
    bold = {"range": {"startIndex": start, "endIndex": start + 3}, "textStyle": {"bold": True}, "fields": "bold"}
    found = doc.get()["body"]["content"]
    where = next(b for b in found if "Dear" in text_of([b]))["startIndex"] + 5
    bold["range"] = {"startIndex": where, "endIndex": where + 3}
    doc.batch({"updateTextStyle": bold})

    answer = doc.batch(replace("{{name}}", "Ann 😀"))

    assert answer["replies"] == [{"replaceAllText": {"occurrencesChanged": 4}}]
    whole = doc.get()
    assert text_of(whole["headers"][header]["content"]) == "Ann 😀\n"
    assert text_of(whole["body"]["content"]) == "\nAnn 😀\nDear Ann 😀, Ann 😀!\n\n"
    runs = next(b for b in whole["body"]["content"] if "Dear" in text_of([b]))["paragraph"]["elements"]
    assert [(r["textRun"]["content"], r["textRun"]["textStyle"].get("bold", False)) for r in runs] == [
        ("Dear ", False),
        ("Ann 😀", True),
        (", Ann 😀!\n", False),
    ]


@pytest.mark.parametrize(
    ("contains", "text", "count"),
    [
        ({"text": "AN", "matchCase": False}, "an AN An", 3),
        ({"text": "AN", "matchCase": True}, "an AN An", 1),
        ({"text": "aa", "matchCase": True}, "aaaaa", 2),
        ({"text": "a b", "matchCase": True}, "a\u00a0b a b", 1),
        ({"text": "[0-9]+", "searchByRegex": True}, "12 a 345", 2),
        ({"text": "x\ny", "matchCase": True}, "x\ny", 0),
    ],
)
def test_what_counts_as_an_occurrence(doc: Doc, contains: dict[str, Any], text: str, count: int) -> None:
    doc.batch(insert(text))

    answer = doc.batch({"replaceAllText": {"containsText": contains, "replaceText": "-"}})

    assert answer["replies"][0]["replaceAllText"].get("occurrencesChanged", 0) == count


def test_a_table_takes_one_index_for_itself_each_row_and_each_cell(doc: Doc) -> None:
    doc.batch(table(2, 2))

    block = doc.get()["body"]["content"][2]
    rows = block["table"]["tableRows"]
    assert (block["startIndex"], block["endIndex"]) == (2, 14)
    assert [(row["startIndex"], row["endIndex"]) for row in rows] == [(3, 8), (8, 13)]
    assert [cell["startIndex"] for row in rows for cell in row["tableCells"]] == [4, 6, 9, 11]
    assert rows[0]["tableCells"][0]["content"][0]["startIndex"] == 5
    assert (block["table"]["rows"], block["table"]["columns"]) == (2, 2)


def test_nothing_is_put_between_the_marks_of_a_table_and_no_part_of_it_is_deleted(doc: Doc) -> None:
    doc.batch(table(2, 2))

    for at in (2, 3, 4, 8, 13):
        assert "inside the bounds of an existing paragraph" in doc.refused(insert("x", at))
    for start, end in ((1, 2), (3, 8), (5, 6), (5, 8), (1, 9), (10, 14)):
        assert "Cannot delete the requested range" in doc.refused(delete(start, end))
    doc.batch(insert("x", 5), insert("y", 15))
    doc.batch(delete(2, 15))
    assert doc.text() == "\ny\n"


def test_rows_and_columns_come_and_go(doc: Doc) -> None:
    doc.batch(table(2, 2), insert("d", 12), insert("a", 5))

    def cell(row: int, column: int) -> dict[str, Any]:
        return {"tableCellLocation": {"tableStartLocation": {"index": 2}, "rowIndex": row, "columnIndex": column}}

    doc.batch(
        {"insertTableRow": {**cell(0, 0), "insertBelow": True}},
        {"insertTableColumn": {**cell(0, 1), "insertRight": False}},
        {"deleteTableRow": cell(0, 0)},
        {
            "updateTableCellStyle": {
                "tableRange": {**cell(0, 0), "rowSpan": 1, "columnSpan": 1},
                "tableCellStyle": {"contentAlignment": "BOTTOM"},
                "fields": "contentAlignment",
            }
        },
    )
    found = doc.get()["body"]["content"][2]["table"]
    assert (found["rows"], found["columns"], len(found["tableRows"][1]["tableCells"])) == (2, 3, 3)
    assert [text_of(c["content"]) for c in found["tableRows"][1]["tableCells"]] == ["\n", "\n", "d\n"]
    assert found["tableRows"][0]["tableCells"][0]["tableCellStyle"]["contentAlignment"] == "BOTTOM"
    assert "row index 9 is out of bounds" in doc.refused({"deleteTableRow": cell(9, 0)})
    doc.batch({"deleteTableColumn": cell(0, 2)}, {"deleteTableColumn": cell(0, 1)}, {"deleteTableColumn": cell(0, 0)})
    assert doc.text() == "\n\n"


def test_headers_footers_and_footnotes_are_segments_of_their_own(doc: Doc) -> None:
    doc.batch(insert("Body"))
    answer = doc.batch(
        {"createHeader": {"type": "DEFAULT"}},
        {"createFooter": {"type": "DEFAULT"}},
        {"createFootnote": {"location": {"index": 5}}},
    )
    header, footer, note = (
        reply[kind][key]
        for reply, (kind, key) in zip(
            answer["replies"],
            [("createHeader", "headerId"), ("createFooter", "footerId"), ("createFootnote", "footnoteId")],
            strict=True,
        )
    )
    doc.batch(insert("top", 0, segmentId=header), insert("see", None, segmentId=note))

    whole = doc.get()
    assert text_of(whole["headers"][header]["content"]) == "top\n"
    assert "startIndex" not in whole["headers"][header]["content"][0]
    assert text_of(whole["footnotes"][note]["content"]) == " see\n"
    assert whole["documentStyle"]["defaultFooterId"] == footer
    reference = whole["body"]["content"][1]["paragraph"]["elements"][1]
    assert reference["footnoteReference"]["footnoteNumber"] == "1" and reference["endIndex"] == 6
    assert "already exists" in doc.refused({"createHeader": {"type": "DEFAULT"}})
    assert "cannot be inserted inside a footnote" in doc.refused(
        {"insertTable": {"rows": 1, "columns": 1, "location": {"index": 0, "segmentId": note}}}
    )
    doc.batch({"deleteHeader": {"headerId": header}})
    assert "headers" not in doc.get()


def test_named_ranges_grow_shrink_vanish_and_are_filled(doc: Doc) -> None:
    doc.batch(insert("Pay now or never"))

    def name(start: int, end: int) -> dict[str, Any]:
        return {"createNamedRange": {"name": "k", "range": {"startIndex": start, "endIndex": end}}}

    answer = doc.batch(name(5, 8), name(9, 11))
    first = answer["replies"][0]["createNamedRange"]["namedRangeId"]
    assert first.startswith("kix.")
    doc.batch(insert("-", 6), delete(10, 12))
    [only] = doc.get()["namedRanges"]["k"]["namedRanges"]
    assert only == {"namedRangeId": first, "name": "k", "ranges": [{"startIndex": 5, "endIndex": 9}]}

    doc.batch({"replaceNamedRangeContent": {"namedRangeName": "k", "text": "later, dear"}})
    assert doc.text().startswith("Pay later, dear")
    [held] = doc.get()["namedRanges"]["k"]["namedRanges"]
    assert held["ranges"] == [{"startIndex": 5, "endIndex": 16}]
    doc.batch({"replaceNamedRangeContent": {"namedRangeName": "unknown", "text": "x"}})
    doc.batch({"deleteNamedRange": {"name": "k"}})
    assert "namedRanges" not in doc.get() and doc.text().startswith("Pay later, dear")
    long = {"createNamedRange": {"name": "x" * 257, "range": {"startIndex": 1, "endIndex": 2}}}
    assert "no more than 256 characters" in doc.refused(long)


def test_styles_are_stored_by_their_fields_and_runs_of_one_look_are_joined(doc: Doc) -> None:
    doc.batch(insert("one two\nthree"))
    whole = {"startIndex": 1, "endIndex": 4}
    doc.batch(
        {"updateTextStyle": {"range": whole, "textStyle": {"bold": True, "italic": True}, "fields": "bold"}},
        {"updateParagraphStyle": {"range": whole, "paragraphStyle": {"namedStyleType": "HEADING_2"},
                                  "fields": "namedStyleType"}},
    )  # fmt: skip
    first, second = doc.get()["body"]["content"][1:]
    assert [e["textRun"]["textStyle"] for e in first["paragraph"]["elements"]] == [{"bold": True}, {}]
    assert first["paragraph"]["paragraphStyle"]["namedStyleType"] == "HEADING_2"
    assert first["paragraph"]["paragraphStyle"]["headingId"].startswith("h.")
    assert second["paragraph"]["paragraphStyle"]["namedStyleType"] == "NORMAL_TEXT"

    doc.batch({"updateTextStyle": {"range": whole, "textStyle": {}, "fields": "*"}})
    assert len(doc.get()["body"]["content"][1]["paragraph"]["elements"]) == 1
    unknown = {"updateTextStyle": {"range": whole, "textStyle": {"bold": True}, "fields": "boldness"}}
    assert "Invalid field: boldness" in doc.refused(unknown)
    none = {"updateTextStyle": {"range": whole, "textStyle": {"bold": True}}}
    assert "At least one field must be listed in 'fields'" in doc.refused(none)


def test_lists_take_their_depth_from_tabs_and_take_the_tabs_out(doc: Doc) -> None:
    doc.batch(insert("a\n\tb\n\t\tc\nd"))
    doc.batch(
        {
            "createParagraphBullets": {
                "range": {"startIndex": 1, "endIndex": 8},
                "bulletPreset": "NUMBERED_DECIMAL_NESTED",
            }
        }
    )
    whole = doc.get()
    bullets = [b["paragraph"].get("bullet", {}) for b in whole["body"]["content"][1:]]
    assert text_of(whole["body"]["content"]) == "a\nb\nc\nd\n"
    assert [b.get("nestingLevel", 0) for b in bullets[:3]] == [0, 1, 2] and bullets[3] == {}
    levels = whole["lists"][bullets[0]["listId"]]["listProperties"]["nestingLevels"]
    assert len(levels) == 9 and levels[1]["glyphFormat"] == "%0.%1."
    doc.batch({"deleteParagraphBullets": {"range": {"startIndex": 1, "endIndex": 6}}})
    assert "lists" not in doc.get()


def test_a_page_break_and_a_picture_take_one_index_each(doc: Doc) -> None:
    doc.batch({"insertPageBreak": {"location": {"index": 1}}})
    size = {"height": {"magnitude": 50, "unit": "PT"}}
    picture = {"uri": "https://example.com/logo.png", "location": {"index": 3}, "objectSize": size}
    key = doc.batch({"insertInlineImage": picture})["replies"][0]["insertInlineImage"]["objectId"]

    whole = doc.get()
    assert [list(e)[-1] for b in whole["body"]["content"][1:] for e in b["paragraph"]["elements"]] == [
        *("pageBreak", "textRun", "inlineObjectElement", "textRun"),
    ]
    held = whole["inlineObjects"][key]["inlineObjectProperties"]["embeddedObject"]
    assert held["imageProperties"]["sourceUri"] == picture["uri"] and held["size"]["width"]["magnitude"] == 50
    doc.batch(table(1, 1, 3))
    assert "inside a table" in doc.refused({"insertPageBreak": {"location": {"index": 7}}})
    broken = {"insertInlineImage": {"uri": "file:///x", "location": {"index": 1}}}
    assert "problem retrieving the image" in doc.refused(broken)


def test_tabs_are_shown_with_their_content_and_text_is_replaced_in_all_of_them(doc: Doc) -> None:
    doc.batch(insert("{{x}}"))
    made = doc.batch({"addDocumentTab": {"tabProperties": {"title": "Annex"}}})["replies"][0]["addDocumentTab"]
    annex = made["tabProperties"]["tabId"]
    doc.batch(
        {"addDocumentTab": {"tabProperties": {"title": "Below", "parentTabId": annex}}},
        insert("{{x}}", 1, tabId=annex),
    )
    only = doc.batch(replace("{{x}}", "1", tabsCriteria={"tabIds": [annex]}), replace("{{x}}", "2"))

    assert [r["replaceAllText"]["occurrencesChanged"] for r in only["replies"]] == [1, 1]
    whole = doc.get(includeTabsContent=True)
    first, second = whole["tabs"]
    assert "body" not in whole and first["tabProperties"]["tabId"] == "t.0"
    assert [text_of(t["documentTab"]["body"]["content"]) for t in whole["tabs"]] == ["2\n", "1\n"]
    assert second["tabProperties"] | {"index": 1, "title": "Annex"} == second["tabProperties"]
    assert second["childTabs"][0]["tabProperties"]["nestingLevel"] == 1
    assert "tabs" in doc.get(fields="tabs(tabProperties(tabId))") and "body" not in doc.get(fields="tabs,body")

    rename = {"tabProperties": {"tabId": annex, "title": "B", "index": 0}, "fields": "title,index"}
    doc.batch({"updateDocumentTabProperties": rename})
    assert doc.text() == "1\n"
    doc.batch({"deleteTab": {"tabId": annex}})
    assert [t["tabProperties"]["tabId"] for t in doc.get(includeTabsContent=True)["tabs"]] == ["t.0"]


def test_a_suggestion_is_seen_accepted_or_taken_back(doc: Doc) -> None:
    doc.batch(insert("Delete freely."))

    answer = doc.batch(replace("freely", "happily"), writeMode="SUGGEST")
    [key] = answer["suggestionResponses"][0]["createdSuggestionIds"]
    assert answer["commentUpdateState"] == "ALL_SAVED"
    runs = [e["textRun"] for e in doc.get()["body"]["content"][1]["paragraph"]["elements"]]
    assert [(r["content"], r.get("suggestedInsertionIds"), r.get("suggestedDeletionIds")) for r in runs] == [
        ("Delete ", None, None),
        ("happily", [key], None),
        ("freely", None, [key]),
        (".\n", None, None),
    ]
    assert doc.text(suggestionsViewMode="PREVIEW_SUGGESTIONS_ACCEPTED") == "Delete happily.\n"
    assert doc.text(suggestionsViewMode="PREVIEW_WITHOUT_SUGGESTIONS") == "Delete freely.\n"
    assert doc.refused(delete(8, 12)).startswith("500 ")

    taken = doc.batch({"acceptSuggestion": {"suggestionId": key}})
    assert taken["suggestionResponses"] == [{"acceptedSuggestionIds": [key]}]
    assert doc.text() == "Delete happily.\n"
    again = doc.batch(delete(1, 8), insert("Please ", 1), writeMode="SUGGEST")
    made = [one["createdSuggestionIds"] for one in again["suggestionResponses"]]
    assert made == [["suggest.000000000001"], ["suggest.000000000002"]]
    doc.batch(*({"rejectSuggestion": {"suggestionId": one}} for [one] in made))
    assert doc.text() == "Delete happily.\n"


def test_comments_need_inline_suggestions_and_a_comment_is_kept_by_drive(doc: Doc) -> None:
    from googleapiclient.errors import HttpError

    doc.batch(insert("A clause."))
    with pytest.raises(HttpError, match="Comments may only be explicitly included if inline suggestions"):
        doc.get(commentsViewMode="COMMENTS_VIEW_MODE_INCLUDED")
    doc.batch({"insertComment": {"content": "why?", "range": {"startIndex": 3, "endIndex": 9}}})
    comments = doc.drive.comments().list(fileId=doc.key, fields="comments").execute()["comments"]
    assert [(c["content"], c["quotedFileContent"]["value"]) for c in comments] == [("why?", "clause")]


def test_answers_leave_out_the_preview_where_the_project_has_none(emulator: Emulator, doc: Doc) -> None:
    emulator.world.set({"switches": {"docs_preview": False}})

    assert sorted(doc.batch(insert("x"))) == ["documentId", "replies", "writeControl"]


def test_what_is_no_document_is_refused_as_docs_does(emulator: Emulator, doc: Doc) -> None:
    files = doc.drive.files()
    sheet = files.create(body={"name": "b", "mimeType": "application/vnd.google-apps.spreadsheet"}).execute()["id"]
    plain = files.create(body={"name": "t", "mimeType": "text/plain"}).execute()["id"]
    office = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    word = files.create(body={"name": "w.docx", "mimeType": office}).execute()["id"]

    for key, text in (
        ("unknown", "404 Requested entity was not found."),
        (sheet, "404 Requested entity was not found."),
        (plain, "400 Request contains an invalid argument."),
        (word, "400 This operation is not supported for this document. The document must not be an Office file."),
    ):
        assert Doc(doc.docs, doc.drive, key).refused(insert("x")) == text


def test_a_fields_mask_and_a_parameter_that_do_not_exist_are_refused(doc: Doc) -> None:
    from googleapiclient.errors import HttpError

    with pytest.raises(HttpError, match="Request contains an invalid argument"):
        doc.get(fields="nonsense")
    query = f"{doc.docs._baseUrl}v1/documents/{doc.key}?nonsense=1"
    answer, content = doc.docs._http.request(query)
    assert answer.status == 400 and b'Unknown name \\"nonsense\\": Cannot bind query parameter' in content


def test_sixty_writes_a_minute_and_then_429(emulator: Emulator, doc: Doc) -> None:
    emulator.world.clock.tell(emulator.world.now())
    emulator.world.set({"quotas": {"docs": {"write": {"per_user": 2}}}})

    doc.batch(insert("1"))
    doc.batch(insert("2"))
    refusal = doc.refused(insert("3"))

    assert refusal.startswith("429 ") and "service 'docs.googleapis.com'" in refusal
    assert doc.text() == "21\n"
