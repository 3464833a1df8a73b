"""Requests about rows and columns: insert, delete, append, move, resize, group, push ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.sheets import dimension
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import EMPTY, Cell, Formula
from hectograph.sheets.reference import placed
from hectograph.sheets.textwidth import column_width

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch


def _noun(span: Mapping[str, Any]) -> str:
    return "column" if span.get("dimension") == "COLUMNS" else "row"


def _named(span: Mapping[str, Any]) -> None:
    if span.get("dimension", "DIMENSION_UNSPECIFIED") == "DIMENSION_UNSPECIFIED":
        raise Invalid("No dimension specified")


def insert_dimension(batch: Batch, request: dict[str, Any]) -> None:
    span = request.get("range", {})
    sheet = batch.book.grid(span.get("sheetId", 0))
    _named(span)
    size = sheet.column_count if span["dimension"] == "COLUMNS" else sheet.row_count
    start, end = span.get("startIndex", 0), span.get("endIndex", 0)
    before = request.get("inheritFromBefore", False)
    if end <= start:
        raise Invalid("range.endIndex must be greater than range.startIndex.")
    if before and start == 0:
        raise Invalid("inheritFromBefore cannot be true if range.startIndex is 0.")
    if start > size:
        raise Invalid(f"range.startIndex is larger than current grid size ({size})")
    if start == size and not before:
        raise Invalid(f"range.startIndex must be less than the grid size ({size}) if inheritFromBefore is false.")
    dimension.insert(batch.book, sheet.sheet_id, span["dimension"], start, end - start, from_before=before)


def delete_dimension(batch: Batch, request: dict[str, Any]) -> None:
    span = request.get("range", {})
    sheet = batch.book.grid(span.get("sheetId", 0))
    _named(span)
    size = sheet.column_count if span["dimension"] == "COLUMNS" else sheet.row_count
    noun = _noun(span)
    start, end = span.get("startIndex", 0), span.get("endIndex", size)
    if start >= size:
        raise Invalid(
            f"Cannot delete a {noun} that doesn't exist. Tried to delete {noun} index {start} but there are "
            f"only {size} {noun}s."
        )
    if end > size:
        raise Invalid(
            f"Cannot delete a {noun} that doesn't exist. Tried to delete until {noun} index {end} but there "
            f"are only {size} {noun}s."
        )
    if start >= end:
        raise Invalid("range.endIndex must be greater than range.startIndex.")
    if end - start >= size:
        raise Invalid(f"You can't delete all the {noun}s on the sheet.")
    frozen = sheet.properties["gridProperties"].get("frozenColumnCount" if noun == "column" else "frozenRowCount", 0)
    if frozen and start <= frozen and end == size:
        raise Invalid(f"Sorry, it is not possible to delete all non-frozen {noun}s.")
    dimension.delete(batch.book, sheet.sheet_id, span["dimension"], start, end)
    if batch.switches.name_dies_with_cells:
        drop_ghosts(batch.book)


def drop_ghosts(book: Book) -> None:
    book.named = {key: named for key, named in book.named.items() if named.get("range") is not None}


def append_dimension(batch: Batch, request: dict[str, Any]) -> None:
    sheet = batch.book.grid(request.get("sheetId", 0))
    _named(request)
    length = request.get("length", 0)
    if length < 1:
        raise Invalid("length must be greater than 0.")
    sheet = batch.book.write(sheet.sheet_id)
    if request["dimension"] == "COLUMNS":
        sheet.set_size(sheet.row_count, sheet.column_count + length)
    else:
        sheet.set_size(sheet.row_count + length, sheet.column_count)
    batch.book.check_size()


def move_dimension(batch: Batch, request: dict[str, Any]) -> None:
    span = request.get("source", {})
    sheet = batch.book.grid(span.get("sheetId", 0))
    _named(span)
    rows = span["dimension"] != "COLUMNS"
    size = sheet.row_count if rows else sheet.column_count
    start, end = span.get("startIndex", 0), span.get("endIndex", size)
    to = request.get("destinationIndex", 0)
    if start >= size or end > size or to > size or start >= end:
        raise Invalid(f"Index out of bounds: {start} to {end}, destination {to}, grid size {size}.")
    noun = _noun(span)
    for merge in sheet.merges:
        low, high = (merge.top, merge.bottom) if rows else (merge.left, merge.right)
        if low < to < high or (low < start < high) or (low < end < high):
            raise Invalid(
                f"Sorry, it is not possible to move a {noun} to a position that crosses a merged cell. "
                "Try unmerging all cells in your selection."
            )
    dimension.move(batch.book, sheet.sheet_id, span["dimension"], start, end, to)


def update_dimension_properties(batch: Batch, request: dict[str, Any]) -> None:
    span = request.get("range") or {}
    sheet = batch.book.grid(span.get("sheetId", 0))
    _named(span)
    mask = batch.mask(request, "DimensionProperties")
    given = request.get("properties", {})
    sheet = batch.book.write(sheet.sheet_id)
    rows = span["dimension"] != "COLUMNS"
    size = sheet.row_count if rows else sheet.column_count
    start, end = dimension.check_span(sheet, span)
    if start >= size or end > size:
        raise Invalid(f"range.endIndex[{end}] is larger than current grid size ({size})")
    if given.get("hiddenByUser") and end - start >= size:
        raise Invalid(f"You can't hide all the {_noun(span)}s in the sheet.")
    held = sheet.row_properties if rows else sheet.column_properties
    for at in range(start, end):
        new = {k: v for k, v in fieldmask.merged(held.get(at, {}), given, mask).items() if v is not False}
        if new:
            held[at] = new
        else:
            held.pop(at, None)


def auto_resize_dimensions(batch: Batch, request: dict[str, Any]) -> None:
    span = request.get("dimensions") or {}
    sheet = batch.book.grid(span.get("sheetId", 0))
    _named(span)
    sheet = batch.book.write(sheet.sheet_id)
    start, end = dimension.check_span(sheet, span)
    if span["dimension"] == "COLUMNS":
        reader = batch.reader()
        texts: dict[int, list[tuple[str, int]]] = {}
        box = Box(0, sheet.row_count, start, min(end, sheet.column_count))
        for row, column, cell in sheet.cells(box):
            if cell.value is not None:
                size = (cell.format or {}).get("textFormat", {}).get("fontSize", 10)
                texts.setdefault(column, []).append((reader.formatted(sheet, row, column, cell), size))
        for column, found in texts.items():
            width = max(column_width(text, size) for text, size in found)
            sheet.column_properties[column] = {**sheet.column_properties.get(column, {}), "pixelSize": width}
        return
    for at in range(start, min(end, sheet.row_count)):
        kept = {k: v for k, v in sheet.row_properties.get(at, {}).items() if k != "pixelSize"}
        if kept:
            sheet.row_properties[at] = kept
        else:
            sheet.row_properties.pop(at, None)


def _groups(sheet: Sheet, rows: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sheet.extras.get("rowGroups" if rows else "columnGroups", [])
    return found


def _depths(groups: list[dict[str, Any]]) -> dict[int, int]:
    depths: dict[int, int] = {}
    for group in groups:
        for at in range(group["range"]["startIndex"], group["range"]["endIndex"]):
            depths[at] = max(depths.get(at, 0), group["depth"])
    return depths


def _regroup(sheet: Sheet, rows: bool, depths: dict[int, int]) -> list[dict[str, Any]]:
    """Groups are runs of rows that are at least so deep; what was collapsed stays so."""
    old = {(g["range"]["startIndex"], g["range"]["endIndex"], g["depth"]): g for g in _groups(sheet, rows)}
    groups: list[dict[str, Any]] = []
    for depth in range(1, max(depths.values(), default=0) + 1):
        run: list[int] = []
        for at in [*sorted(i for i, d in depths.items() if d >= depth), None]:
            if run and (at is None or at != run[-1] + 1):
                key = (run[0], run[-1] + 1, depth)
                made = {
                    "range": {
                        "sheetId": sheet.sheet_id,
                        "dimension": "ROWS" if rows else "COLUMNS",
                        "startIndex": key[0],
                        "endIndex": key[1],
                    },
                    "depth": depth,
                }
                groups.append(old.get(key, made))
                run = []
            if at is not None:
                run.append(at)
    name = "rowGroups" if rows else "columnGroups"
    sheet.extras = {k: v for k, v in sheet.extras.items() if k != name}
    if groups:
        sheet.extras[name] = groups
    return groups


#: Parts of a text format, which are given back even where they are false.
_TOLD = {"bold", "italic", "strikethrough", "underline"}


def _left_out(name: str, value: Any) -> bool:
    return (name == "sheetId" and value == 0) or value is None or value == [] or (value is False and name not in _TOLD)


def without_zero_sheet(value: Any) -> Any:
    """An object for an answer: without what is nothing, false or an empty list, and without a sheet id of 0."""
    if isinstance(value, list):
        return [without_zero_sheet(item) for item in value]
    if isinstance(value, Mapping):
        return {k: without_zero_sheet(v) for k, v in value.items() if not _left_out(k, v)}
    return value


def _group(batch: Batch, request: dict[str, Any], change: int) -> list[dict[str, Any]]:
    span = request.get("range", {})
    sheet = batch.book.grid(span.get("sheetId", 0))
    _named(span)
    rows = span["dimension"] != "COLUMNS"
    sheet = batch.book.write(sheet.sheet_id)
    start, end = dimension.check_span(sheet, span)
    size = sheet.row_count if rows else sheet.column_count
    if start >= end or end > size:
        raise Invalid(f"range.endIndex[{end}] is larger than current grid size ({size})")
    depths = _depths(_groups(sheet, rows))
    if change < 0 and not any(depths.get(at) for at in range(start, end)):
        raise Invalid("Cannot delete a group over a range that has no groups.")
    for at in range(start, end):
        depths[at] = max(0, depths.get(at, 0) + change)
        if depths[at] > 8:
            raise Invalid("Cannot create more than 8 levels of groups.")
    if change > 0:
        name = "rowGroupControlAfter" if rows else "columnGroupControlAfter"
        sheet.properties = {**sheet.properties, "gridProperties": {**sheet.properties["gridProperties"], name: True}}
    return _regroup(sheet, rows, depths)


def add_dimension_group(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    return {"addDimensionGroup": {"dimensionGroups": without_zero_sheet(_group(batch, request, 1))}}


def delete_dimension_group(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    groups = without_zero_sheet(_group(batch, request, -1))
    return {"deleteDimensionGroup": {"dimensionGroups": groups} if groups else {}}


def update_dimension_group(batch: Batch, request: dict[str, Any]) -> None:
    given = request.get("dimensionGroup", {})
    span = given.get("range", {})
    sheet = batch.book.grid(span.get("sheetId", 0))
    mask = batch.mask(request, "DimensionGroup")
    sheet = batch.book.write(sheet.sheet_id)
    rows = span.get("dimension") != "COLUMNS"
    name = "rowGroups" if rows else "columnGroups"
    found = False
    groups: list[dict[str, Any]] = []
    for group in _groups(sheet, rows):
        same = (group["range"]["startIndex"], group["range"]["endIndex"]) == (
            span.get("startIndex", 0),
            span.get("endIndex"),
        )
        if same and group["depth"] == given.get("depth", 1):
            found = True
            kept = {k: v for k, v in group.items() if k != "collapsed" or not ("collapsed" in mask or "*" in mask)}
            group = {**kept, **({"collapsed": True} if given.get("collapsed") else {})}
            held = sheet.row_properties if rows else sheet.column_properties
            for at in range(span.get("startIndex", 0), span["endIndex"]):
                rest = {k: v for k, v in held.get(at, {}).items() if k != "hiddenByUser"}
                if given.get("collapsed"):
                    rest["hiddenByUser"] = True
                held[at] = rest
                if not rest:
                    del held[at]
        groups.append(group)
    if not found:
        raise Invalid("No dimension group found with that range and depth.")
    sheet.extras[name] = groups


def insert_range(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    sheet = batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    box = sheet.box(rect)
    down = request.get("shiftDimension") != "COLUMNS"
    if down:
        last = max((row for row, _, _ in sheet.cells(Box(box.top, sheet.row_count, box.left, box.right))), default=-1)
        sheet.grow(last + 1 + box.height, 0)
    else:
        last = max((c for _, c, _ in sheet.cells(Box(box.top, box.bottom, box.left, sheet.column_count))), default=-1)
        sheet.grow(0, last + 1 + box.width)
    batch.book.check_size()
    _push(sheet, box, down, out=True)


def delete_range(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    _push(sheet, sheet.box(rect), request.get("shiftDimension") != "COLUMNS", out=False)


def _push(sheet: Sheet, box: Box, down: bool, *, out: bool) -> None:
    """Move the cells beyond a box away from it (``out``) or into it."""
    bottom = sheet.row_count if down else box.bottom
    right = sheet.column_count if not down else box.right
    found = [
        (row, column, _still(cell, row)) for row, column, cell in sheet.cells(Box(box.top, bottom, box.left, right))
    ]
    for row, column, _ in found:
        sheet.put(row, column, EMPTY)
    step = (box.height if down else box.width) * (1 if out else -1)
    for row, column, cell in found:
        if not out and row < box.bottom and column < box.right:
            continue
        new = (row + step, column) if down else (row, column + step)
        if new[0] < sheet.row_count and new[1] < sheet.column_count:
            sheet.put(*new, cell)


def _still(cell: Cell, row: int) -> Cell:
    if isinstance(cell.value, Formula):
        return Cell(Formula(placed(cell.value, row)), cell.format, cell.note, cell.extra)
    return cell


HANDLERS = {
    "insertDimension": insert_dimension,
    "deleteDimension": delete_dimension,
    "appendDimension": append_dimension,
    "moveDimension": move_dimension,
    "updateDimensionProperties": update_dimension_properties,
    "autoResizeDimensions": auto_resize_dimensions,
    "addDimensionGroup": add_dimension_group,
    "deleteDimensionGroup": delete_dimension_group,
    "updateDimensionGroup": update_dimension_group,
    "insertRange": insert_range,
    "deleteRange": delete_range,
}
