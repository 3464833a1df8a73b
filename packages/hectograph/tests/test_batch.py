"""``spreadsheets.batchUpdate`` and ``spreadsheets.get``."""

from __future__ import annotations

from typing import Any

import pytest

from emulator_api import Api, Book, Refused, named, swap

ROW = {"sheetId": 0, "dimension": "ROWS"}


def text(value: str) -> dict[str, Any]:
    return {"userEnteredValue": {"stringValue": value}}


def test_a_batch_is_applied_whole_or_not_at_all(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.batch(
            {"updateCells": {"start": {"sheetId": 0}, "fields": "*", "rows": [{"values": [text("x")]}]}},
            {"deleteSheet": {"sheetId": 99}},
        )

    assert refused.value.message == "Invalid requests[1].deleteSheet: No sheet with id: 99"
    assert book.values("A1") == []


def test_later_requests_see_what_earlier_ones_did(book: Book) -> None:
    book.batch(
        {
            "addSheet": {
                "properties": {"sheetId": 5, "title": "new", "gridProperties": {"rowCount": 2, "columnCount": 2}}
            }
        },
        {"updateCells": {"start": {"sheetId": 5}, "fields": "userEnteredValue", "rows": [{"values": [text("x")]}]}},
    )

    assert book.values("new!A1") == [["x"]]


def test_the_head_is_swapped_once(book: Book) -> None:
    book.batch(named("h1"))
    book.batch(*swap("h1", "h2"))

    with pytest.raises(Refused) as refused:
        book.batch(*swap("h1", "h3"))

    assert refused.value.message == "Invalid requests[0].updateNamedRange: No NamedRange with id: h1"
    assert [item["namedRangeId"] for item in book.meta(fields="namedRanges")["namedRanges"]] == ["h2"]


TRIED = "Tried to delete row index 1000 but there are only 1000 rows."

REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"addSheet": {"properties": {"title": "Sheet1"}}},
        'addSheet: A sheet with the name "Sheet1" already exists. Please enter another name.',
    ),
    ({"addSheet": {"properties": {"title": ""}}}, "addSheet: The sheet name cannot be empty."),
    (
        {"addSheet": {"properties": {"title": "x" * 101}}},
        "addSheet: The sheet name cannot be greater than 100 characters.",
    ),
    (
        {"addSheet": {"properties": {"gridProperties": {"rowCount": 1_000_000, "columnCount": 100}}}},
        "addSheet: This action would increase the number of cells in the workbook above the limit of 10000000 cells.",
    ),
    ({"deleteSheet": {"sheetId": 0}}, "deleteSheet: You can't remove all the sheets in a document."),
    (
        {"updateSheetProperties": {"properties": {"sheetId": 9, "title": "x"}, "fields": "title"}},
        "updateSheetProperties: No sheet with id: 9",
    ),
    (
        {"updateSheetProperties": {"properties": {"sheetId": 0, "hidden": True}, "fields": "hidden"}},
        "updateSheetProperties: You can't hide all the sheets in a document.",
    ),
    (
        {"updateSheetProperties": {"properties": {"title": "x"}}},
        "updateSheetProperties: At least one field must be listed in 'fields'. (Use '*' to indicate all fields.)",
    ),
    ({"repeatCell": {"range": {"sheetId": 9}, "cell": {}, "fields": "note"}}, "repeatCell: No grid with id: 9"),
    (
        {"deleteDimension": {"range": {**ROW, "startIndex": 1000, "endIndex": 1001}}},
        f"deleteDimension: Cannot delete a row that doesn't exist. {TRIED}",
    ),
    (
        {"deleteDimension": {"range": {**ROW, "startIndex": 0, "endIndex": 1000}}},
        "deleteDimension: You can't delete all the rows on the sheet.",
    ),
    (
        {"insertDimension": {"range": {**ROW, "startIndex": 1000, "endIndex": 1001}}},
        "insertDimension: range.startIndex must be less than the grid size (1000) if inheritFromBefore is false.",
    ),
    (
        {
            "updateCells": {
                "range": {"sheetId": 0, "endColumnIndex": 1},
                "fields": "note",
                "rows": [{"values": [{}, {}]}],
            }
        },
        "updateCells: Attempting to write column: 1, beyond the last requested column of: 0",
    ),
    (
        {"updateCells": {"start": {}, "fields": "*", "rows": [{"values": [text("x" * 50_001)]}]}},
        "updateCells: Your input contains more than the maximum of 50000 characters in a single cell.",
    ),
    (
        {"addProtectedRange": {"protectedRange": {"range": {}, "warningOnly": True, "editors": {"users": ["a@b.c"]}}}},
        "addProtectedRange: ProtectedRange is warningOnly. Editors cannot be set on it.",
    ),
    ({"deleteNamedRange": {"namedRangeId": "x"}}, "deleteNamedRange: No NamedRange with id: x"),
]


@pytest.mark.parametrize(
    ("request_", "words"), REFUSALS, ids=[next(iter(r)) + str(n) for n, (r, _) in enumerate(REFUSALS)]
)
def test_what_google_refuses_in_a_batch(book: Book, request_: dict[str, Any], words: str) -> None:
    before = book.meta()
    with pytest.raises(Refused) as refused:
        book.batch(request_)

    assert refused.value.message == f"Invalid requests[0].{words}"
    assert refused.value.body["error"]["status"] == "INVALID_ARGUMENT"
    assert book.meta() == before


def test_unknown_names_are_refused_where_they_stand(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.batch({"DeleteRange": {}}, {"insertDimension": {"inheritBefore": True}})

    second = "\"inheritBefore\" at 'requests[1].insert_dimension'"
    assert refused.value.message.split("\n") == [
        "Invalid JSON payload received. Unknown name \"DeleteRange\" at 'requests[0]': Cannot find field.",
        f"Invalid JSON payload received. Unknown name {second}: Cannot find field.",
    ]
    assert refused.value.body["error"]["details"][0]["fieldViolations"][0]["field"] == "requests[0]"


def test_an_empty_batch_is_refused(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.batch()

    assert refused.value.message == "Must specify at least one request."


def test_find_replace_is_a_soft_compare_and_swap(book: Book) -> None:
    book.put("A1", [["APPROVE"], ["approve it"]])
    one = {"find": "APPROVE", "replacement": "", "matchEntireCell": True, "matchCase": True, "sheetId": 0}

    assert book.batch({"findReplace": one})["replies"] == [
        {"findReplace": {"valuesChanged": 1, "rowsChanged": 1, "sheetsChanged": 1, "occurrencesChanged": 1}}
    ]
    assert book.batch({"findReplace": one})["replies"] == [{"findReplace": {}}]
    assert book.values("A1:A2") == [[], ["approve it"]]


def test_metadata_is_unique_follows_its_row_and_dies_with_it(book: Book) -> None:
    def make(number: int, row: int) -> dict[str, Any]:
        place = {"dimensionRange": {**ROW, "startIndex": row, "endIndex": row + 1}}
        item = {"metadataId": number, "metadataKey": "k", "visibility": "DOCUMENT", "location": place}
        return {"createDeveloperMetadata": {"developerMetadata": item}}

    book.batch(make(1, 4))
    with pytest.raises(Refused, match="because developer metadata with that ID already exists"):
        book.batch(make(1, 5))
    book.person("insert_rows", at=1)
    found = book.api("GET", f"{book.path}/developerMetadata/1")
    assert found["location"] == {
        "locationType": "ROW",
        "dimensionRange": {"dimension": "ROWS", "startIndex": 5, "endIndex": 6},
    }
    search = {"dataFilters": [{"developerMetadataLookup": {"metadataKey": "k"}}]}
    assert len(book.api("POST", f"{book.path}/developerMetadata:search", search)["matchedDeveloperMetadata"]) == 1
    book.person("delete_rows", at=6)
    with pytest.raises(Refused) as refused:
        book.api("GET", f"{book.path}/developerMetadata/1")
    assert refused.value.status == 404


def test_ranges_of_every_kind_follow_inserted_rows(book: Book) -> None:
    grid = {"sheetId": 0, "startRowIndex": 2, "endRowIndex": 4, "startColumnIndex": 0, "endColumnIndex": 2}
    book.batch(
        {"addNamedRange": {"namedRange": {"name": "n", "range": grid}}},
        {"addProtectedRange": {"protectedRange": {"range": grid}}},
        {"mergeCells": {"range": grid, "mergeType": "MERGE_ALL"}},
        {"setBasicFilter": {"filter": {"range": grid}}},
        {"addBanding": {"bandedRange": {"range": grid, "rowProperties": {"firstBandColor": {"red": 1}}}}},
        {
            "addConditionalFormatRule": {
                "rule": {"ranges": [grid], "booleanRule": {"condition": {"type": "BLANK"}, "format": {}}}
            }
        },
        {"addDimensionGroup": {"range": {**ROW, "startIndex": 2, "endIndex": 4}}},
        {"insertDimension": {"range": {**ROW, "startIndex": 3, "endIndex": 5}}},
        {"insertDimension": {"range": {**ROW, "startIndex": 0, "endIndex": 1}}},
    )

    meta = book.meta()
    [sheet] = meta["sheets"]
    moved = {"startRowIndex": 3, "endRowIndex": 7, "startColumnIndex": 0, "endColumnIndex": 2}
    assert meta["namedRanges"][0]["range"] == moved
    assert sheet["protectedRanges"][0]["range"] == moved
    assert sheet["merges"] == [moved]
    assert sheet["basicFilter"]["range"] == moved
    assert sheet["bandedRanges"][0]["range"] == moved
    assert sheet["conditionalFormats"][0]["ranges"] == [moved]
    assert sheet["rowGroups"][0]["range"] == {"dimension": "ROWS", "startIndex": 3, "endIndex": 7}


def test_the_answer_can_hold_the_book_after_the_batch(book: Book) -> None:
    done = book.batch(
        {"updateCells": {"start": {}, "fields": "*", "rows": [{"values": [text("x")]}]}},
        includeSpreadsheetInResponse=True,
        responseRanges=["A1:A1"],
        responseIncludeGridData=True,
    )

    [row] = done["updatedSpreadsheet"]["sheets"][0]["data"][0]["rowData"]
    assert row["values"][0]["effectiveValue"] == {"stringValue": "x"}


def test_masks_choose_parts_and_unknown_parts_are_refused(book: Book) -> None:
    assert book.meta(fields="sheets(properties(title,sheetId))") == {
        "sheets": [{"properties": {"sheetId": 0, "title": "Sheet1"}}]
    }
    assert book.meta(fields="sheets/properties/title,spreadsheetId").keys() == {"sheets", "spreadsheetId"}
    with pytest.raises(Refused) as refused:
        book.meta(fields="sheets.nope")
    assert refused.value.body["error"]["details"][0]["fieldViolations"][0]["description"] == (
        "Error expanding 'fields' parameter. Cannot find matching fields for path 'sheets.nope'."
    )


def test_grid_data_shows_values_and_effective_formats(book: Book) -> None:
    book.type("B2", [["=1/2", "text"]])
    book.batch(
        {
            "addConditionalFormatRule": {
                "rule": {
                    "ranges": [{"sheetId": 0, "startColumnIndex": 2, "endColumnIndex": 3}],
                    "booleanRule": {
                        "condition": {"type": "TEXT_EQ", "values": [{"userEnteredValue": "text"}]},
                        "format": {"backgroundColor": {"green": 1}},
                    },
                }
            }
        }
    )

    [data] = book.meta(includeGridData="true", ranges="B2:C2")["sheets"][0]["data"]
    assert (data["startRow"], data["startColumn"]) == (1, 1)
    half, word = data["rowData"][0]["values"]
    assert half["userEnteredValue"] == {"formulaValue": "=1/2"}
    assert half["effectiveValue"] == {"numberValue": 0.5}
    assert half["effectiveFormat"]["horizontalAlignment"] == "RIGHT"
    assert word["effectiveFormat"]["backgroundColor"] == {"green": 1}
    assert data["columnMetadata"] == [{"pixelSize": 100}, {"pixelSize": 100}]


def test_colours_are_kept_in_eight_bits_beside_their_styles(book: Book) -> None:
    book.batch(
        {
            "repeatCell": {
                "range": {"sheetId": 0, "endRowIndex": 1, "endColumnIndex": 1},
                "cell": {"userEnteredFormat": {"backgroundColor": {"red": 0.1, "blue": 0}}},
                "fields": "userEnteredFormat.backgroundColor",
            }
        }
    )

    found = book.meta(fields="sheets.data.rowData.values.userEnteredFormat", ranges="A1")
    color = {"red": 0.09803922}
    assert found["sheets"][0]["data"][0]["rowData"][0]["values"][0]["userEnteredFormat"] == {
        "backgroundColor": color,
        "backgroundColorStyle": {"rgbColor": color},
    }


def test_copy_fill_and_deduplicate(book: Book) -> None:
    book.type("A1", [[1, "=A1*10"], [2], [2]])
    book.batch(
        {
            "copyPaste": {
                "source": {
                    "sheetId": 0,
                    "startRowIndex": 0,
                    "endRowIndex": 1,
                    "startColumnIndex": 1,
                    "endColumnIndex": 2,
                },
                "destination": {
                    "sheetId": 0,
                    "startRowIndex": 1,
                    "endRowIndex": 3,
                    "startColumnIndex": 1,
                    "endColumnIndex": 2,
                },
            }
        },
    )
    assert book.values("B1:B3", valueRenderOption="FORMULA") == [["=A1*10"], ["=A2*10"], ["=A3*10"]]
    done = book.batch({"deleteDuplicates": {"range": {"sheetId": 0, "endColumnIndex": 1, "endRowIndex": 3}}})
    assert done["replies"] == [{"deleteDuplicates": {"duplicatesRemovedCount": 1}}]
    fill = {"source": {"sheetId": 0, "endRowIndex": 2, "endColumnIndex": 1}, "dimension": "ROWS", "fillLength": 2}
    book.batch({"autoFill": {"sourceAndDestination": fill}})
    assert book.values("A1:A4") == [["1"], ["2"], ["3"], ["4"]]


def test_a_sheet_is_copied_to_another_book(api: Api, book: Book) -> None:
    other = api.book("Other")
    book.put("A1", [["x"]])

    done = api("POST", f"{book.path}/sheets/0:copyTo", {"destinationSpreadsheetId": other.book_id})

    assert (done["title"], done["index"]) == ("Copy of Sheet1", 1)
    assert other.values("'Copy of Sheet1'!A1") == [["x"]]


def test_groups_nest(book: Book) -> None:
    book.batch({"addDimensionGroup": {"range": {**ROW, "startIndex": 1, "endIndex": 5}}})
    done = book.batch({"addDimensionGroup": {"range": {**ROW, "startIndex": 2, "endIndex": 4}}})

    groups = done["replies"][0]["addDimensionGroup"]["dimensionGroups"]
    assert [(g["range"]["startIndex"], g["range"]["endIndex"], g["depth"]) for g in groups] == [(1, 5, 1), (2, 4, 2)]


def test_a_write_control_is_accepted_and_means_nothing(book: Book) -> None:
    """Measured on the live API: an id that matches nothing still gives 200."""
    done = book.batch(named("h"), writeControl={"requiredRevisionId": "x"})

    assert len(done["replies"]) == 1


def test_cells_look_as_measured_on_the_live_api(book: Book) -> None:
    """A formula that gives an empty text has no effective value; one that gives nothing has no link type either."""
    book.type("A1", [['=""', "=IF(,,)", '=HYPERLINK("https://example.com", "click")', "=DATE(2023, 3, 19)", "=Nope()"]])

    [data] = book.meta(includeGridData="true", ranges="A1:E1")["sheets"][0]["data"]
    empty, nothing, link, day, wrong = data["rowData"][0]["values"]
    assert empty.keys() == {"userEnteredValue", "effectiveFormat"}
    assert empty["effectiveFormat"]["hyperlinkDisplayType"] == "PLAIN_TEXT"
    assert empty["effectiveFormat"]["textFormat"]["fontFamily"] == "Arial"
    assert nothing.keys() == {"userEnteredValue", "effectiveFormat"}
    assert "hyperlinkDisplayType" not in nothing["effectiveFormat"]
    assert link["hyperlink"] == "https://example.com"
    assert link["effectiveFormat"]["textFormat"]["link"] == {"uri": "https://example.com"}
    assert link["effectiveFormat"]["textFormat"]["underline"] is True
    assert link["effectiveFormat"]["hyperlinkDisplayType"] == "LINKED"
    assert (day["formattedValue"], day["effectiveFormat"]["numberFormat"]) == ("3/19/2023", {"type": "DATE"})
    assert wrong["effectiveValue"] == {"errorValue": {"type": "NAME", "message": "Unknown function: 'Nope'."}}


def test_a_request_of_no_kind_is_refused(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.batch({})

    assert refused.value.message == "Invalid requests[0]: No request set."


def test_a_list_of_requests_inside_the_list_is_read_as_its_items(book: Book) -> None:
    book.api("POST", f"{book.path}:batchUpdate", {"requests": [[named("h1")], named("h2", "OTHER")]})

    assert [item["namedRangeId"] for item in book.meta()["namedRanges"]] == ["h1", "h2"]
