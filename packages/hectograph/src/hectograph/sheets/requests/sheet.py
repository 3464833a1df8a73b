"""Requests about whole sheets and about the spreadsheet's own properties."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.sheets import locales, reference
from hectograph.sheets.a1 import MAX_COLUMNS
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.color import paired, twin_fields
from hectograph.sheets.dimension import change_formulas, delete

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch

MAX_SHEETS = 200


def check_title(book: Book, title: str, but: int | None = None) -> None:
    if not title:
        raise Invalid("The sheet name cannot be empty.")
    if len(title) > 100:
        raise Invalid("The sheet name cannot be greater than 100 characters.")
    taken = book.sheet_named(title)
    if taken is not None and taken != but:
        raise Invalid(f'A sheet with the name "{title}" already exists. Please enter another name.')


def free_title(book: Book, wanted: str) -> str:
    title, count = wanted, 0
    while book.sheet_named(title) is not None:
        count += 1
        title = f"{wanted} {count}"
    return title


def properties_json(book: Book, sheet: Sheet) -> dict[str, Any]:
    """SheetProperties in an answer: the index is the place among the tabs."""
    held = sheet.properties
    out: dict[str, Any] = {"sheetId": sheet.sheet_id, "title": held["title"], "index": book.order.index(sheet.sheet_id)}
    chart = held.get("sheetType") == "OBJECT"
    out |= {n: v for n, v in held.items() if n not in out and not (chart and n == "gridProperties")}
    return out


def make_sheet(book: Book, given: Mapping[str, Any]) -> Sheet:
    sheet_id = given.get("sheetId")
    if sheet_id is not None and sheet_id in book.sheets:
        raise Invalid(f"Cannot add sheet with ID: {sheet_id}, a sheet with that ID already exists.")
    if sheet_id is not None and sheet_id < 0:
        raise Invalid(f"Invalid sheetId: {sheet_id}")
    if len(book.sheets) >= MAX_SHEETS:
        raise Invalid(
            f"This action would increase the number of sheets in the workbook above the limit of {MAX_SHEETS}."
        )
    title = given.get("title")
    if title is None:
        count = len(book.sheets) + 1
        while book.sheet_named(f"Sheet{count}") is not None:
            count += 1
        title = f"Sheet{count}"
    check_title(book, title)
    grid = given.get("gridProperties", {})
    sheet = Sheet(
        book.mint() if sheet_id is None else sheet_id, title, grid.get("rowCount", 1000), grid.get("columnCount", 26)
    )
    if sheet.row_count < 1 or sheet.column_count < 1:
        raise Invalid("Sheets must have at least one row and one column.")
    if sheet.column_count > MAX_COLUMNS:
        raise Invalid(f"This action would increase the number of columns above the limit of {MAX_COLUMNS} columns.")
    plain = {k: v for k, v in given.items() if k not in {"sheetId", "title", "index", "gridProperties"}}
    sheet.properties = tidy(
        paired({**sheet.properties, **plain, "gridProperties": {**sheet.properties["gridProperties"], **grid}})
    )
    return sheet


def tidy(properties: dict[str, Any]) -> dict[str, Any]:
    """Leave out what Google leaves out: false and zero."""
    out = {k: v for k, v in properties.items() if v is not False}
    out["gridProperties"] = {k: v for k, v in out.get("gridProperties", {}).items() if v is not False and v != 0}
    out["sheetId"] = properties["sheetId"]
    return out


def add_sheet(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    given = request.get("properties", {})
    sheet = make_sheet(batch.book, given)
    batch.book.add(sheet, given.get("index"))
    batch.book.check_size()
    return {"addSheet": {"properties": properties_json(batch.book, sheet)}}


def delete_sheet(batch: Batch, request: dict[str, Any]) -> None:
    book = batch.book
    sheet = book.sheet(request.get("sheetId", 0))
    others = [held for held in book.all_sheets() if held is not sheet]
    if not others:
        raise Invalid("You can't remove all the sheets in a document.")
    if all(held.properties.get("hidden") for held in others):
        raise Invalid("You can't remove all the visible sheets in a document.")
    drop_sheet(batch, sheet)


def drop_sheet(batch: Batch, sheet: Sheet) -> None:
    book = batch.book
    title = sheet.title.casefold()

    def dead(ref: reference.Ref) -> reference.Ref | None:
        return None if ref.title is not None and ref.title.casefold() == title else ref

    change_formulas(book, lambda held: dead if title in held.mentions else None)
    book.drop(sheet.sheet_id)
    book.memo.clear()
    for key, named in list(book.named.items()):
        if named.get("range") is not None and named["range"].get("sheetId", 0) == sheet.sheet_id:
            if batch.switches.name_dies_with_cells:
                del book.named[key]
            else:
                book.named[key] = {**named, "range": None}
    for number, item in list(book.metadata.items()):
        place = item["location"]
        if (
            place.get("sheetId") == sheet.sheet_id
            or place.get("dimensionRange", {}).get("sheetId", -1) == sheet.sheet_id
        ):
            del book.metadata[number]


def update_sheet_properties(batch: Batch, request: dict[str, Any]) -> None:
    book = batch.book
    given = request.get("properties", {})
    sheet_id = given.get("sheetId", 0)
    book.sheet(sheet_id)
    mask = batch.mask(request, "SheetProperties")
    sheet = book.write(sheet_id)
    every = "*" in mask
    if every:
        mask = {name: {} for name in given if name != "sheetId"}
    if "title" in mask:
        _rename(book, sheet, given.get("title", ""))
    if "gridProperties" in mask:
        _resize(batch, sheet, given.get("gridProperties", {}), mask["gridProperties"])
    simple = {n: b for n, b in mask.items() if n not in {"title", "index", "gridProperties", "sheetId"}}
    if simple:
        sheet.properties = tidy(fieldmask.merged(sheet.properties, paired(given), twin_fields(simple)))
    if "hidden" in mask and given.get("hidden") and all(s.properties.get("hidden") for s in book.all_sheets()):
        raise Invalid("You can't hide all the sheets in a document.")
    if "index" in mask:
        _reorder(book, sheet_id, given.get("index", 0))


def _rename(book: Book, sheet: Sheet, title: str) -> None:
    check_title(book, title, sheet.sheet_id)
    old = sheet.title.casefold()
    sheet.properties = {**sheet.properties, "title": title}

    def renamed(ref: reference.Ref) -> reference.Ref | None:
        if ref.title is not None and ref.title.casefold() == old:
            return reference.Ref(title, ref.first, ref.last)
        return ref

    change_formulas(book, lambda held: renamed if old in held.mentions else None)


def _resize(batch: Batch, sheet: Sheet, given: Mapping[str, Any], mask: fieldmask.Mask) -> None:
    book = batch.book
    wanted = dict(given) if not mask or "*" in mask else {name: given.get(name, 0) for name in mask}
    rows, columns = wanted.get("rowCount", sheet.row_count), wanted.get("columnCount", sheet.column_count)
    if rows < 1:
        raise Invalid("You can't delete all the rows on the sheet.")
    if columns < 1:
        raise Invalid("You can't delete all the columns on the sheet.")
    frozen_rows = wanted.get("frozenRowCount", sheet.properties["gridProperties"].get("frozenRowCount", 0))
    frozen_columns = wanted.get("frozenColumnCount", sheet.properties["gridProperties"].get("frozenColumnCount", 0))
    if frozen_rows and frozen_rows >= rows:
        raise Invalid("You can't freeze all visible rows on the sheet.")
    if frozen_columns and frozen_columns >= columns:
        raise Invalid("You can't freeze all visible columns on the sheet.")
    if rows < sheet.row_count:
        delete(book, sheet.sheet_id, "ROWS", rows, sheet.row_count)
    if columns < sheet.column_count:
        delete(book, sheet.sheet_id, "COLUMNS", columns, sheet.column_count)
    sheet.properties = tidy(
        {
            **sheet.properties,
            "gridProperties": {
                **sheet.properties["gridProperties"],
                **wanted,
                "rowCount": rows,
                "columnCount": columns,
            },
        }
    )
    book.check_size()


def _reorder(book: Book, sheet_id: int, index: int) -> None:
    """Move a tab; the index counts the tabs as they are before the move."""
    now = book.order.index(sheet_id)
    if index < 0 or index > len(book.order):
        raise Invalid(f"The index {index} is out of range.")
    if index in (now, now + 1):
        return
    book.order.remove(sheet_id)
    book.order.insert(index if index < now else index - 1, sheet_id)


def _zone(name: str) -> bool:
    if re.fullmatch(r"GMT[+-]\d\d:\d\d", name):
        return True
    try:
        return bool(name) and zoneinfo.ZoneInfo(name) is not None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False


def check_settings(given: Mapping[str, Any]) -> None:
    """Refuse a time zone or a locale that Sheets does not have."""
    if "timeZone" in given and not _zone(given["timeZone"]):
        raise Invalid(f"Invalid time zone: {given['timeZone']}")
    if "locale" in given and not locales.known(given["locale"]):
        raise Invalid(f"Unsupported locale: {given['locale']}")


def update_spreadsheet_properties(batch: Batch, request: dict[str, Any]) -> None:
    given = request.get("properties", {})
    mask = batch.mask(request, "SpreadsheetProperties")
    book = batch.book
    if "*" in mask:
        mask = {name: {} for name in given}
    check_settings({name: given.get(name, "") for name in ("timeZone", "locale") if name in mask})
    if mask:
        book.properties = fieldmask.merged(book.properties, paired(given), twin_fields(mask))


def twin_of(book: Book, source: Sheet, sheet_id: int, title: str) -> Sheet:
    """A copy of a sheet under another id and title; its ranges point at itself."""
    twin = source.fork()
    twin.sheet_id = sheet_id
    twin.properties = {**source.properties, "sheetId": sheet_id, "title": title}
    twin.extras = {name: _moved(book, value, source.sheet_id, sheet_id, name) for name, value in source.extras.items()}
    return twin


_IDS = {
    "protectedRanges": "protectedRangeId",
    "filterViews": "filterViewId",
    "bandedRanges": "bandedRangeId",
    "charts": "chartId",
    "slicers": "slicerId",
    "tables": "tableId",
}


def _moved(book: Book, value: Any, old: int, new: int, name: str) -> Any:
    if isinstance(value, list):
        out = [_moved(book, item, old, new, "") for item in value]
        key = _IDS.get(name)
        if key is not None:
            out = [{**item, key: str(book.mint()) if name == "tables" else book.mint()} for item in out]
        return out
    if isinstance(value, Mapping):
        made = {k: _moved(book, v, old, new, "") for k, v in value.items()}
        ranged = {"startRowIndex", "endRowIndex", "startColumnIndex", "startIndex", "sheetId"} & made.keys()
        if ranged and made.get("sheetId", 0) == old:
            made["sheetId"] = new
        return made
    return value


def duplicate_sheet(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    source = book.sheet(request.get("sourceSheetId", 0))
    sheet_id = request.get("newSheetId")
    if sheet_id is not None and sheet_id in book.sheets:
        raise Invalid(f"Cannot add sheet with ID: {sheet_id}, a sheet with that ID already exists.")
    title = request.get("newSheetName") or free_title(book, f"Copy of {source.title}")
    check_title(book, title)
    twin = twin_of(book, source, book.mint() if sheet_id is None else sheet_id, title)
    twin.properties = {k: v for k, v in twin.properties.items() if k != "hidden"}
    book.add(twin, request.get("insertSheetIndex", 0))
    book.check_size()
    return {"duplicateSheet": {"properties": properties_json(book, twin)}}


HANDLERS = {
    "addSheet": add_sheet,
    "deleteSheet": delete_sheet,
    "updateSheetProperties": update_sheet_properties,
    "updateSpreadsheetProperties": update_spreadsheet_properties,
    "duplicateSheet": duplicate_sheet,
}
