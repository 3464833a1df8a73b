"""What Sheets refuses, and in which words: bodies, parameters, masks, filters, files that are no spreadsheets."""

from __future__ import annotations

from typing import Any

import pytest

from emulator_api import Book, Refused
from emulator_direct import Direct

CHART = "Cannot add chart to new sheet with ID: 0, a sheet with that ID already exists."
NO_PLACE = (
    "A locationMatchingStrategy was specified, but no metadataLocation was specified: lookups must always specify a "
    "metadataLocation when specifying a locationMatchingStrategy."
)
UNKNOWN = 'Invalid JSON payload received. Unknown name "{}"{}'


@pytest.fixture
def book() -> Book:
    return Direct().book()


def text_of(book: Book, method: str, rest: str, body: Any = None, **query: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        book.api(method, book.path + rest, body, **query)
    return refused.value.status, refused.value.message


@pytest.mark.parametrize(
    ("request_body", "text"),
    [
        ([1], UNKNOWN.format("", ": Root element must be a message.")),
        ({"requests": [{"addSheet": []}]},
         UNKNOWN.format("addSheet", " at 'requests[0]': Proto field is not repeating, cannot start list.")),
        ({"requests": [{"addSheet": {}, "deleteSheet": {}}]},
         "Invalid value at 'requests[0]' (oneof), oneof field 'kind' is already set. Cannot set 'deleteSheet'"),
        ({"requests": [{"deleteRange": {"range": {"startRowIndex": "x"}}}]},
         "Invalid value at 'requests[0].delete_range.range.start_row_index.value' (TYPE_INT32), \"x\""),
        ({"requests": [{"insertDimension": {"range": {"dimension": "ROWS", "startIndex": -1, "endIndex": 1}}}]},
         "Invalid requests[0].insertDimension: DimensionRange indexes must be >= 0"),
        ({"requests": [{"mergeCells": {"range": {"startRowIndex": -1}}}]},
         "Invalid requests[0].mergeCells: GridRange indexes must be >= 0"),
        ({"requests": [{"mergeCells": {"range": {"startRowIndex": 5, "endRowIndex": 3}}}]},
         "Invalid requests[0].mergeCells: endRowIndex[3] cannot be before startRowIndex[5]"),
        ({"requests": [{"insertDimension": {"range": {"startIndex": 0, "endIndex": 1}}}]},
         "Invalid requests[0].insertDimension: No dimension specified"),
        ({"requests": [{"deleteProtectedRange": {"protectedRangeId": 5}}]},
         "Invalid requests[0].deleteProtectedRange: No protected range with id: 5"),
        ({"requests": [{"addProtectedRange": {"protectedRange": {"range": {"sheetId": 0}}}}] * 2},
         'Invalid requests[1].addProtectedRange: Sheet "Sheet1" already has sheet protection.'),
        ({"requests": [{"addChart": {"chart": {"position": {"sheetId": 0}}}}]},
         f"Invalid requests[0].addChart: {CHART}"),
    ],
)  # fmt: skip
def test_batches(book: Book, request_body: Any, text: str) -> None:
    assert text_of(book, "POST", ":batchUpdate", request_body) == (400, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"includeGridData": "maybe"}, "Invalid value at 'include_grid_data' (TYPE_BOOL), \"maybe\""),
        ({"uploadType": "media"},
         UNKNOWN.format("uploadType", ": Cannot bind query parameter. Field 'uploadType' could not be found in "
                        "request message.")),
        ({"fields": "sheets.nothing"}, "Request contains an invalid argument."),
        ({"fields": " sheets"}, "Request contains an invalid argument."),
        ({"ranges": "A2000"}, "Range (Sheet1!A2000) exceeds grid limits. Max rows: 1000, max columns: 26"),
    ],
)  # fmt: skip
def test_reads(book: Book, query: dict[str, str], text: str) -> None:
    assert text_of(book, "GET", "", None, **query) == (400, text)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ([], "Must specify at least one dataFilter."),
        ([{"a1Range": "A1"}, {}], "Invalid dataFilter[1]: dataFilter.filter must be specified."),
        ([{"gridRange": {"sheetId": 9}}], "Invalid dataFilter[0]: No grid with id: 9"),
        ([{"gridRange": {"startRowIndex": 1000}}],
         "Invalid dataFilter[0]: Range (Sheet1!1001:) exceeds grid limits. Max rows: 1000, max columns: 26"),
        ([{"developerMetadataLookup": {"locationMatchingStrategy": "EXACT_LOCATION"}}],
         f"Invalid dataFilter[0]: {NO_PLACE}"),
    ],
)  # fmt: skip
def test_filters(book: Book, wanted: list[Any], text: str) -> None:
    assert text_of(book, "POST", "/values:batchGetByDataFilter", {"dataFilters": wanted}) == (400, text)


def test_filters_are_answered_where_their_ranges_lie_and_once_for_the_same_range(book: Book) -> None:
    book.put("A1", [["a", "b"], ["c", "d"]])
    corner = {"sheetId": 0, "startRowIndex": 0, "endRowIndex": 1, "startColumnIndex": 0, "endColumnIndex": 1}
    nothing = {"startRowIndex": 3, "endRowIndex": 3}
    wanted = [{"a1Range": "B1"}, {"a1Range": "A2"}, {"gridRange": corner}, {"a1Range": "A1"}, {"gridRange": nothing}]

    found = book.api("POST", f"{book.path}/values:batchGetByDataFilter", {"dataFilters": wanted})["valueRanges"]

    del corner["sheetId"]
    assert [(item["valueRange"]["range"], item["dataFilters"]) for item in found] == [
        ("Sheet1!A1", [{"gridRange": corner}, {"a1Range": "A1"}]),
        ("Sheet1!A2", [{"a1Range": "A2"}]),
        ("#REF!", [{"gridRange": nothing}]),
        ("Sheet1!B1", [{"a1Range": "B1"}]),
    ]


@pytest.mark.parametrize(("fields", "cells"), [("*", False), ("sheets", True), ("sheets.properties", False)])
def test_cells_are_shown_where_the_mask_reaches_them(book: Book, fields: str, cells: bool) -> None:
    [sheet] = book.meta(fields=fields)["sheets"]

    assert ("data" in sheet) == cells


@pytest.mark.parametrize(
    ("kind", "status", "text"),
    [
        ("application/vnd.google-apps.document", 404, "Requested entity was not found."),
        ("application/vnd.google-apps.folder", 400, "Request contains an invalid argument."),
        ("text/plain", 400, "Request contains an invalid argument."),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", 400,
         "This operation is not supported for this document. The document must not be an Office file."),
    ],
)  # fmt: skip
def test_files_that_are_no_spreadsheets(kind: str, status: int, text: str) -> None:
    api = Direct()
    other = Book(api, api("POST", "/drive/v3/files", {"name": "x", "mimeType": kind})["id"])

    assert text_of(other, "GET", "/values/A1") == (status, text)


def test_an_error_that_is_not_formatted_says_why(book: Book) -> None:
    book.type("A1", [["=1/0", "=NA()"]])

    found = book.values("A1:B1", valueRenderOption="UNFORMATTED_VALUE")

    assert found == [["#DIV/0! (Function DIVIDE parameter 2 cannot be zero.)", "#N/A ()"]]
    assert book.values("A1:B1") == [["#DIV/0!", "#N/A"]]


def test_taking_a_tab_colour_away_and_cutting_merged_cells(book: Book) -> None:
    def properties(style: Any) -> dict[str, Any]:
        change = {"properties": {"sheetId": 0, "tabColorStyle": style}, "fields": "tabColorStyle"}
        book.batch({"updateSheetProperties": change})
        [sheet] = book.meta()["sheets"]
        found: dict[str, Any] = sheet["properties"]
        return found

    assert properties({"rgbColor": {"red": 1}})["tabColor"] == {"red": 1}
    assert "tabColor" not in properties({"rgbColor": None})
    area = {"sheetId": 0, "startRowIndex": 0, "endRowIndex": 2, "startColumnIndex": 0, "endColumnIndex": 2}
    book.batch(
        {"mergeCells": {"range": area}},
        {"cutPaste": {"source": area, "destination": {"sheetId": 0, "rowIndex": 4, "columnIndex": 3}}},
    )
    [sheet] = book.meta(fields="sheets.merges")["sheets"]
    assert sheet["merges"] == [{"startRowIndex": 4, "endRowIndex": 6, "startColumnIndex": 3, "endColumnIndex": 5}]
