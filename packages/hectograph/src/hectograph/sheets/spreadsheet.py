"""The Spreadsheet resource: what ``spreadsheets.get`` answers, and what ``spreadsheets.create`` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hectograph.core.error import Invalid
from hectograph.core.fieldmask import Mask, wants
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import EMPTY
from hectograph.sheets.color import paired
from hectograph.sheets.condition import holds
from hectograph.sheets.render import Reader
from hectograph.sheets.requests.cells import changed
from hectograph.sheets.requests.dimension import without_zero_sheet
from hectograph.sheets.requests.metadata import metadata_json
from hectograph.sheets.requests.named import named_json, protected_json
from hectograph.sheets.requests.sheet import check_settings, make_sheet, properties_json

ROW_PIXELS = 21
COLUMN_PIXELS = 100


def spreadsheet_json(
    book: Book,
    now: Callable[[], datetime],
    account: str,
    *,
    ranges: list[Rect] | None = None,
    grid_data: bool = False,
    mask: Mask | None = None,
) -> dict[str, Any]:
    """The resource; with ranges, only the sheets that they touch. Cells are shown where asked for or masked in."""
    mask = mask or {}
    data = "sheets" in mask and wants(mask, "sheets", "data") if mask else grid_data
    reader = Reader(book, now)
    out: dict[str, Any] = {"spreadsheetId": book.book_id, "properties": book.properties}
    out["sheets"] = [
        sheet_json(
            reader, sheet, account, [r for r in ranges if r.sheet_id == sheet.sheet_id] if ranges else None, data
        )
        for sheet in book.all_sheets()
        if not ranges or any(r.sheet_id == sheet.sheet_id for r in ranges)
    ]
    if book.named:
        out["namedRanges"] = [named_json(named) for named in book.named.values()]
    out["spreadsheetUrl"] = f"https://docs.google.com/spreadsheets/d/{book.book_id}/edit"
    top = [metadata_json(item) for item in book.metadata.values() if item["location"].get("spreadsheet")]
    if top:
        out["developerMetadata"] = top
    return out


def sheet_json(reader: Reader, sheet: Sheet, account: str, rects: list[Rect] | None, data: bool) -> dict[str, Any]:
    book = reader.book
    out: dict[str, Any] = {"properties": properties_json(book, sheet)}
    if data:
        boxes = [sheet.box(rect) for rect in rects] if rects else [sheet.whole()]
        out["data"] = [grid_json(reader, sheet, box) for box in boxes]
    if sheet.merges:
        out["merges"] = [box.rect(sheet.sheet_id).json() for box in sheet.merges]
    for name, held in sheet.extras.items():
        if name == "protectedRanges":
            out[name] = [protected_json(item, account) for item in held]
        else:
            out[name] = without_zero_sheet(held)
    own = [
        metadata_json(item)
        for item in book.metadata.values()
        if item["location"].get("locationType") == "SHEET" and item["location"]["sheetId"] == sheet.sheet_id
    ]
    if own:
        out["developerMetadata"] = own
    return out


def grid_json(reader: Reader, sheet: Sheet, box: Box) -> dict[str, Any]:
    """GridData of a box: rows up to the last cell that exists, sizes of all its rows and columns."""
    out: dict[str, Any] = {}
    if box.top:
        out["startRow"] = box.top
    if box.left:
        out["startColumn"] = box.left
    rows: list[dict[str, Any]] = []
    for row, column, cell in reader.calculation.cells(sheet.sheet_id, box):
        while len(rows) <= row - box.top:
            rows.append({})
        values: list[Any] = rows[row - box.top].setdefault("values", [])
        while len(values) < column - box.left:
            values.append({})
        values.append(reader.cell_data(sheet, row, column, cell))
    if rows:
        out["rowData"] = rows
    hidden = hidden_by_filter(reader, sheet)
    marks = dimension_metadata(reader.book, sheet.sheet_id)
    out["rowMetadata"] = [
        _dimension(sheet.row_properties.get(at), ROW_PIXELS, at in hidden, marks.get(("ROW", at)))
        for at in range(box.top, box.bottom)
    ]
    out["columnMetadata"] = [
        _dimension(sheet.column_properties.get(at), COLUMN_PIXELS, False, marks.get(("COLUMN", at)))
        for at in range(box.left, box.right)
    ]
    return out


def _dimension(
    held: Mapping[str, Any] | None, pixels: int, filtered: bool, marks: list[dict[str, Any]] | None
) -> dict[str, Any]:
    out: dict[str, Any] = {"pixelSize": pixels, **(held or {})}
    if filtered:
        out["hiddenByFilter"] = True
    if marks:
        out["developerMetadata"] = marks
    return out


def dimension_metadata(book: Book, sheet_id: int) -> dict[tuple[str, int], list[dict[str, Any]]]:
    out: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for item in book.metadata.values():
        span = item["location"].get("dimensionRange")
        if span and span.get("sheetId", 0) == sheet_id:
            key = (item["location"]["locationType"], span.get("startIndex", 0))
            out.setdefault(key, []).append(metadata_json(item))
    return out


def hidden_by_filter(reader: Reader, sheet: Sheet) -> set[int]:
    """The rows that the basic filter hides."""
    held = sheet.extras.get("basicFilter")
    if not held:
        return set()
    criteria: dict[int, Any] = {int(k): v for k, v in held.get("criteria", {}).items()}
    criteria |= {s.get("columnIndex", 0): s.get("filterCriteria", {}) for s in held.get("filterSpecs", [])}
    if not criteria:
        return set()
    box = sheet.box(Rect.of(held["range"]))
    out: set[int] = set()
    for row in range(box.top + 1, box.bottom):
        for column, wanted in criteria.items():
            cell = sheet.get(row, column)
            if reader.formatted(sheet, row, column, cell) in wanted.get("hiddenValues", []):
                out.add(row)
            elif "condition" in wanted:
                value = reader.effective(sheet, row, column, cell)
                if not holds(reader, sheet, (row, column), value, wanted["condition"]):
                    out.add(row)
    return out


def make_book(book_id: str, given: Mapping[str, Any], seed: int) -> Book:
    """A new book from the body of ``spreadsheets.create``."""
    properties = given.get("properties", {})
    try:
        check_settings(properties)
    except Invalid as error:
        raise Invalid(f"Invalid properties: {error}") from error
    book = Book(book_id, properties.get("title") or "Untitled spreadsheet", seed)
    book.properties = {**book.properties, **{k: v for k, v in paired(properties).items() if k != "title"}}
    for index, wanted in enumerate(given.get("sheets", [])):
        try:
            sheet = make_sheet(book, wanted.get("properties", {}))
        except Invalid as error:
            raise Invalid(f"Invalid sheets[{index}].properties: {error}") from error
        book.add(sheet)
        _fill(sheet, wanted)
    if not book.sheets:
        book.add(Sheet(0, "Sheet1"))
    for named in given.get("namedRanges", []):
        key = named.get("namedRangeId") or str(book.mint())
        book.named[key] = {"namedRangeId": key, "name": named.get("name", ""), "range": named.get("range", {})}
    book.check_size()
    return book


def _fill(sheet: Sheet, wanted: Mapping[str, Any]) -> None:
    for block in wanted.get("data", []):
        top, left = block.get("startRow", 0), block.get("startColumn", 0)
        for down, row in enumerate(block.get("rowData", [])):
            for right, data in enumerate(row.get("values", [])):
                cell = changed(EMPTY, data, {"*": {}})
                sheet.grow(top + down + 1, left + right + 1)
                sheet.put(top + down, left + right, cell)
        for held, sizes in ((sheet.row_properties, "rowMetadata"), (sheet.column_properties, "columnMetadata")):
            first = top if sizes == "rowMetadata" else left
            for at, item in enumerate(block.get(sizes, [])):
                if item:
                    held[first + at] = {k: v for k, v in item.items() if k != "developerMetadata"}
    sheet.merges = [sheet.box(Rect.of(grid)) for grid in wanted.get("merges", [])]
    for name in ("conditionalFormats", "bandedRanges", "basicFilter", "filterViews", "protectedRanges"):
        if wanted.get(name):
            held_objects = wanted[name]
            sheet.extras[name] = paired({"x": held_objects})["x"]
