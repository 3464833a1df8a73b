"""Requests that tidy ranges: split texts, trim, deduplicate, paste, shuffle."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hectograph.core.error import Invalid
from hectograph.sheets.a1 import Rect
from hectograph.sheets.cell import EMPTY, Cell, Value
from hectograph.sheets.parse import entered
from hectograph.sheets.requests.range import sort_rows
from hectograph.sheets.values import put

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch


def text_to_columns(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("source", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    box = sheet.box(rect)
    if box.width != 1:
        raise Invalid("The source range must span exactly one column.")
    kind = request.get("delimiterType", "AUTODETECT")
    mark = {"COMMA": ",", "SEMICOLON": ";", "PERIOD": ".", "SPACE": " "}.get(kind, request.get("delimiter", ""))
    cells = [(row, cell) for row, _, cell in sheet.cells(box) if isinstance(cell.value, str)]
    if not mark:
        mark = next((m for m in (",", ";", "\t", "|", " ") if any(m in str(c.value) for _, c in cells)), ",")
    for row, cell in cells:
        parts = str(cell.value).split(mark)
        sheet.grow(0, box.left + len(parts))
        for at, part in enumerate(parts):
            put(sheet, row, box.left + at, entered(part.strip() if kind == "AUTODETECT" else part, locale=batch.locale))


def trim_whitespace(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    count = 0
    for row, column, cell in list(sheet.cells(sheet.box(rect))):
        if isinstance(cell.value, str):
            trimmed = re.sub(r"[ \t\n]+", " ", cell.value).strip()
            if trimmed != cell.value:
                sheet.put(row, column, cell.with_value(trimmed or None))
                count += 1
    return {"trimWhitespace": {"cellsChangedCount": count} if count else {}}


def delete_duplicates(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    reader = batch.reader()
    sheet = batch.book.write(rect.sheet_id)
    box = sheet.box(rect)
    columns = [
        c
        for span in request.get("comparisonColumns", [])
        for c in range(span.get("startIndex", 0), span.get("endIndex", 0))
    ] or list(range(box.left, box.right))
    seen: set[tuple[Any, ...]] = set()
    kept: list[dict[int, Cell]] = []
    removed = 0
    for row in range(box.top, box.bottom):
        held = {c: x for c, x in sheet.row(row).items() if box.left <= c < box.right}
        key = tuple(_folded(reader.effective(sheet, row, c, sheet.get(row, c))) for c in columns)
        if key in seen and any(part is not None for part in key):
            removed += 1
            continue
        seen.add(key)
        kept.append(held)
    for at in range(box.height):
        row = box.top + at
        new = kept[at] if at < len(kept) else {}
        for column in range(box.left, box.right):
            sheet.put(row, column, new.get(column, EMPTY))
    return {"deleteDuplicates": {"duplicatesRemovedCount": removed} if removed else {}}


def _folded(value: Value) -> Any:
    return value.casefold() if isinstance(value, str) else value


def paste_data(batch: Batch, request: dict[str, Any]) -> None:
    place = request.get("coordinate", {})
    sheet_id = place.get("sheetId", 0)
    batch.book.grid(sheet_id)
    sheet = batch.book.write(sheet_id)
    top, left = place.get("rowIndex", 0), place.get("columnIndex", 0)
    mark = request.get("delimiter") or "\t"
    rows = [line.split(mark) for line in request.get("data", "").split("\n")]
    sheet.grow(top + len(rows), left + max(map(len, rows), default=0))
    for down, row in enumerate(rows):
        for right, text in enumerate(row):
            put(sheet, top + down, left + right, entered(text, year=batch.now().year, locale=batch.locale))


def randomize_range(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    box = sheet.box(rect)
    order = sorted(range(box.top, box.bottom), key=lambda row: batch.book.mint())
    sort_rows(sheet, box, order)


HANDLERS = {
    "textToColumns": text_to_columns,
    "trimWhitespace": trim_whitespace,
    "deleteDuplicates": delete_duplicates,
    "pasteData": paste_data,
    "randomizeRange": randomize_range,
}
