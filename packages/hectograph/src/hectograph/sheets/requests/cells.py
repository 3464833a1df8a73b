"""Requests that write cells: updateCells, repeatCell, appendCells, validation, borders, merges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.core.fieldmask import Mask
from hectograph.sheets import locales, reference
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.book import Sheet
from hectograph.sheets.cell import EMPTY, MAX_CHARACTERS, Cell, Entered, Formula
from hectograph.sheets.color import paired, twin_fields
from hectograph.sheets.locales import EN, Locale

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch

_KEPT = ("dataValidation", "textFormatRuns", "pivotTable", "chipRuns", "dataSourceTable", "dataSourceFormula")


def value_of(given: Mapping[str, Any] | None, locale: Locale = EN) -> Entered:
    """The content that an ExtendedValue stands for."""
    if not given:
        return None
    if "boolValue" in given:
        return bool(given["boolValue"])
    if "numberValue" in given:
        return float(given["numberValue"])
    text = str(given.get("formulaValue", given.get("stringValue", "")))
    if len(text) > MAX_CHARACTERS:
        raise Invalid(f"Your input contains more than the maximum of {MAX_CHARACTERS} characters in a single cell.")
    if "formulaValue" in given:
        return Formula(locales.kept(text if text.startswith("=") else "=" + text, locale))
    if "errorValue" in given:
        raise Invalid("userEnteredValue.errorValue is read-only.")
    return text or None


def changed(old: Cell, data: Mapping[str, Any], mask: Mask, locale: Locale = EN) -> Cell:
    """A cell with the fields that a mask names taken from a CellData."""
    every = "*" in mask
    cell = old
    if every or "userEnteredValue" in mask:
        cell = cell.with_value(value_of(data.get("userEnteredValue"), locale))
    if every or "userEnteredFormat" in mask:
        branch = {} if every else mask["userEnteredFormat"]
        given = paired(data.get("userEnteredFormat") or {})
        if branch and "*" not in branch:
            form = fieldmask.merged(cell.format or {}, given, twin_fields(branch))
        else:
            form = given
        if form.get("borders"):
            form = {**form, "borders": _borders(form["borders"])}
        cell = cell.with_format({k: v for k, v in form.items() if v not in ({}, None) or k.endswith("Color")} or None)
    if every or "note" in mask:
        cell = cell.with_note(data.get("note"))
    for name in _KEPT:
        if every or name in mask:
            cell = cell.with_extra(name, _tidied(name, data.get(name)) or None)
    return cell


def _tidied(name: str, given: Any) -> Any:
    """What a cell carries besides its value, without what Google leaves out: false, empty, the start at nothing."""
    if not given:
        return None
    if name == "textFormatRuns":
        return [
            {k: v for k, v in run.items() if not (k == "startIndex" and v == 0)} for run in paired({"x": given})["x"]
        ]
    if name == "dataValidation":
        kept = {k: v for k, v in given.items() if v is not False and v != ""}
        if "condition" in kept:
            kept["condition"] = {k: v for k, v in kept["condition"].items() if v != []}
        return kept
    return given


def update_cells(batch: Batch, request: dict[str, Any]) -> None:
    mask = batch.mask(request, "CellData")
    rows = request.get("rows", [])
    if "start" in request:
        start = request["start"]
        sheet_id = start.get("sheetId", 0)
        top, left = start.get("rowIndex", 0), start.get("columnIndex", 0)
        batch.book.grid(sheet_id)
        sheet = batch.book.write(sheet_id)
        box = Box(top, sheet.row_count, left, sheet.column_count)
        clears = False
    elif "range" in request:
        rect = Rect.of(request["range"])
        batch.book.grid(rect.sheet_id)
        sheet = batch.book.write(rect.sheet_id)
        box = in_grid(sheet, rect)
        clears = True
    else:
        raise Invalid("Must specify either 'start' or 'range'.")
    if len(rows) > box.height:
        raise Invalid(f"Attempting to write row: {box.bottom}, beyond the last requested row of: {box.bottom - 1}")
    covered: set[tuple[int, int]] = set()
    for down, row in enumerate(rows):
        values = row.get("values", [])
        if len(values) > box.width:
            raise Invalid(
                f"Attempting to write column: {box.right}, beyond the last requested column of: {box.right - 1}"
            )
        for right, data in enumerate(values):
            at = box.top + down, box.left + right
            sheet.put(*at, changed(sheet.get(*at), data, mask, batch.locale))
            covered.add(at)
    if clears:
        for row_at, column, cell in list(sheet.cells(box)):
            if (row_at, column) not in covered:
                sheet.put(row_at, column, changed(cell, {}, mask))


def in_grid(sheet: Sheet, rect: Rect) -> Box:
    """The box of a range, refused where it lies outside the grid."""
    for name, value, size, noun in (
        ("startRowIndex", None if rect.top is None else rect.top + 1, sheet.row_count, "row"),
        ("endRowIndex", rect.bottom, sheet.row_count, "row"),
        ("startColumnIndex", None if rect.left is None else rect.left + 1, sheet.column_count, "column"),
        ("endColumnIndex", rect.right, sheet.column_count, "column"),
    ):
        if value is not None and value > size:
            shown = value - 1 if name.startswith("start") else value
            raise Invalid(f"range.{name}[{shown}] is after last {noun} in grid[{size}]")
    return sheet.box(rect)


def repeat_cell(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    mask = batch.mask(request, "CellData")
    sheet = batch.book.write(rect.sheet_id)
    box = in_grid(sheet, rect)
    data = request.get("cell", {})
    formula = data.get("userEnteredValue", {}).get("formulaValue")
    probe = changed(EMPTY, data, mask, batch.locale)
    if formula is not None:
        formula = locales.kept(formula, batch.locale)
    if probe.blank:
        # Nothing is added, so only cells that exist can change.
        for row, column, cell in list(sheet.cells(box)):
            sheet.put(row, column, changed(cell, data, mask))
        return
    for row in range(box.top, box.bottom):
        for column in range(box.left, box.right):
            old = sheet.get(row, column)
            new = probe if old is EMPTY else changed(old, data, mask)
            if formula is not None and ("*" in mask or "userEnteredValue" in mask):
                text = reference.copied(formula, row - box.top, column - box.left)
                new = Cell(Formula(text), new.format, new.note, new.extra)
            sheet.put(row, column, new)


def append_cells(batch: Batch, request: dict[str, Any]) -> None:
    sheet_id = request.get("sheetId", 0)
    batch.book.grid(sheet_id)
    mask = batch.mask(request, "CellData")
    sheet = batch.book.write(sheet_id)
    last = -1
    for row, held in enumerate(sheet.rows):
        if any(cell.value is not None for cell in held.values()):
            last = row
    rows = request.get("rows", [])
    sheet.grow(last + 1 + len(rows), 0)
    batch.book.check_size()
    for down, given in enumerate(rows):
        values = given.get("values", [])
        if len(values) > sheet.column_count:
            raise Invalid(
                f"Attempting to write column: {sheet.column_count}, beyond the last requested column of: "
                f"{sheet.column_count - 1}"
            )
        for right, data in enumerate(values):
            at = last + 1 + down, right
            sheet.put(*at, changed(sheet.get(*at), data, mask, batch.locale))


def set_data_validation(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    rule = request.get("rule")
    if rule is not None and not rule.get("condition", {}).get("type"):
        raise Invalid("No condition type specified.")
    kind = (rule or {}).get("condition", {}).get("type", "")
    if kind in {"ONE_OF_LIST", "ONE_OF_RANGE"} and not rule["condition"].get("values"):  # type: ignore[index]  # as kind
        raise Invalid(f"ConditionType '{kind}' requires at least one ConditionValue, but 0 values were supplied.")
    sheet = batch.book.write(rect.sheet_id)
    box = in_grid(sheet, rect)
    if rule is None:
        for row, column, cell in list(sheet.cells(box)):
            sheet.put(row, column, cell.with_extra("dataValidation", None))
        return
    kept = _tidied("dataValidation", rule)
    for row in range(box.top, box.bottom):
        for column in range(box.left, box.right):
            sheet.put(row, column, sheet.get(row, column).with_extra("dataValidation", kept))


_SIDES = ("top", "bottom", "left", "right", "innerHorizontal", "innerVertical")


def update_borders(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    box = in_grid(sheet, rect)
    given = {side: paired(request[side]) for side in _SIDES if side in request}
    for row in range(box.top, box.bottom):
        for column in range(box.left, box.right):
            sides = {
                "top": given.get("top" if row == box.top else "innerHorizontal"),
                "bottom": given.get("bottom" if row == box.bottom - 1 else "innerHorizontal"),
                "left": given.get("left" if column == box.left else "innerVertical"),
                "right": given.get("right" if column == box.right - 1 else "innerVertical"),
            }
            chosen = {side: border for side, border in sides.items() if border is not None}
            if not chosen:
                continue
            cell = sheet.get(row, column)
            borders = {**(cell.format or {}).get("borders", {}), **chosen}
            borders = _borders(borders)
            form = {k: v for k, v in (cell.format or {}).items() if k != "borders"}
            if borders:
                form["borders"] = borders
            sheet.put(row, column, cell.with_format(form))


def _borders(given: Mapping[str, Any]) -> dict[str, Any]:
    """Borders that are drawn, with their widths and colours."""
    return {
        side: _bordered(border) for side, border in given.items() if border and border.get("style", "NONE") != "NONE"
    }


def _bordered(border: Mapping[str, Any]) -> dict[str, Any]:
    width = {"SOLID_MEDIUM": 2, "SOLID_THICK": 3, "DOUBLE": 3}.get(border.get("style", ""), 1)
    return {"style": border.get("style"), "width": width, "color": {}, "colorStyle": {"rgbColor": {}}, **border}


def merge_cells(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    box = in_grid(sheet, rect)
    _whole_merges(sheet, box)
    sheet.merges = [merge for merge in sheet.merges if not box.meets(merge)]
    kind = request.get("mergeType", "MERGE_ALL")
    if kind == "MERGE_ROWS":
        parts = [Box(row, row + 1, box.left, box.right) for row in range(box.top, box.bottom)]
    elif kind == "MERGE_COLUMNS":
        parts = [Box(box.top, box.bottom, column, column + 1) for column in range(box.left, box.right)]
    else:
        parts = [box]
    for part in parts:
        if part.height * part.width < 2:
            continue
        sheet.merges.append(part)
        for row, column, cell in list(sheet.cells(part)):
            if (row, column) != (part.top, part.left) and cell.value is not None:
                sheet.put(row, column, cell.with_value(None))


def _whole_merges(sheet: Sheet, box: Box) -> None:
    if any(box.meets(merge) and not box.holds(merge) for merge in sheet.merges):
        raise Invalid("You must select all cells in a merged range to merge or unmerge them.")


def unmerge_cells(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    sheet = batch.book.write(rect.sheet_id)
    box = sheet.box(rect)
    _whole_merges(sheet, box)
    sheet.merges = [merge for merge in sheet.merges if not box.meets(merge)]


HANDLERS = {
    "updateCells": update_cells,
    "repeatCell": repeat_cell,
    "appendCells": append_cells,
    "setDataValidation": set_data_validation,
    "updateBorders": update_borders,
    "mergeCells": merge_cells,
    "unmergeCells": unmerge_cells,
}
