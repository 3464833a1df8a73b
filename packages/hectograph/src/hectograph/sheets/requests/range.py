"""Requests that rearrange ranges: sort, find and replace, copy, cut, fill."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from hectograph.core.error import Invalid
from hectograph.sheets import reference
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import EMPTY, Cell, Formula, Value
from hectograph.sheets.dimension import change_formulas
from hectograph.sheets.formulas.formula import compare
from hectograph.sheets.parse import entered
from hectograph.sheets.requests.cells import in_grid
from hectograph.sheets.values import put

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch


def _moved(cell: Cell, row: int, down: int, right: int) -> Cell:
    """A cell of a row as it reads when copied elsewhere."""
    value = cell.value
    if isinstance(value, Formula):
        if value.home is not None and not right and not reference.uses(value.text).drifts:
            return cell  # it follows its row by itself
        return replace(cell, value=Formula(reference.copied(reference.placed(value, row), down, right)))
    return cell


def _still(cell: Cell, row: int) -> Cell:
    """A cell of a row that keeps its references as they read there."""
    if isinstance(cell.value, Formula):
        return replace(cell, value=Formula(reference.placed(cell.value, row)))
    return cell


def sort_range(batch: Batch, request: dict[str, Any]) -> None:
    rect = Rect.of(request.get("range", {}))
    batch.book.grid(rect.sheet_id)
    reader = batch.reader()
    sheet = batch.book.write(rect.sheet_id)
    box = in_grid(sheet, rect)
    specs = request.get("sortSpecs", [])
    if any(merge.meets(box) and merge.height > 1 for merge in sheet.merges):
        raise Invalid("You can't sort a range with vertical merges.")
    rows = list(range(box.top, box.bottom))
    keys: dict[int, list[Value]] = {}
    for row in rows:
        keys[row] = []
        for spec in specs:
            column = spec.get("dimensionIndex", 0)
            keys[row].append(reader.effective(sheet, row, column, sheet.get(row, column)))
    sort_rows(sheet, box, _order(rows, keys, specs))


def _order(rows: list[int], keys: Mapping[int, list[Value]], specs: list[dict[str, Any]]) -> list[int]:
    """Rows in the wanted order; equal rows keep theirs and blanks come last either way."""

    def by(a: int, b: int) -> int:
        for at, spec in enumerate(specs):
            x, y = keys[a][at], keys[b][at]
            if x is None or y is None or x == "" or y == "":
                blank = (x is None or x == "") - (y is None or y == "")
                if blank:
                    return blank
                continue
            order = compare(x, y)
            if order:
                return -order if spec.get("sortOrder") == "DESCENDING" else order
        return 0

    return sorted(rows, key=cmp_to_key(by))


def sort_rows(sheet: Sheet, box: Box, order: list[int]) -> None:
    """Put the rows of a box into an order; relative references go with their rows."""
    held = {row: {c: x for c, x in sheet.row(row).items() if box.left <= c < box.right} for row in order}
    for to, source in zip(range(box.top, box.bottom), order, strict=True):
        if to == source:
            continue
        for column in held[to].keys() - held[source].keys():
            sheet.put(to, column, EMPTY)
        for column, cell in held[source].items():
            sheet.put(to, column, _moved(cell, source, to - source, 0))


def find_replace(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    find, new = request.get("find", ""), request.get("replacement", "")
    if not find:
        raise Invalid("Must specify a 'find' string.")
    book = batch.book
    if "range" in request:
        rect = Rect.of(request["range"])
        scope = [(rect.sheet_id, book.grid(rect.sheet_id).box(rect))]
    elif "sheetId" in request:
        scope = [(request["sheetId"], book.sheet(request["sheetId"]).whole())]
    elif request.get("allSheets"):
        scope = [(sheet.sheet_id, sheet.whole()) for sheet in book.all_sheets()]
    else:
        raise Invalid("Must specify a scope: 'range', 'sheetId' or 'allSheets'.")
    flags = 0 if request.get("matchCase") else re.IGNORECASE
    try:
        pattern = re.compile(find if request.get("searchByRegex") else re.escape(find), flags)
    except re.error as error:
        raise Invalid(f"Invalid regular expression: {find}") from error
    template = re.sub(r"\$(\d)", r"\\\1", new) if request.get("searchByRegex") else new.replace("\\", "\\\\")
    whole = request.get("matchEntireCell", False)
    counts = dict.fromkeys(
        ("valuesChanged", "formulasChanged", "rowsChanged", "sheetsChanged", "occurrencesChanged"), 0
    )
    reader = batch.reader()
    year = batch.now().year
    for sheet_id, box in scope:
        sheet = book.sheets[sheet_id]
        hits: list[tuple[int, int, bool, str, int]] = []
        if "range" in request and batch.switches.find_replace_sees_blanks and pattern.fullmatch(""):
            hits += [(row, column, False, template, 1) for row, column in _blanks(sheet, box)]
        for row, column, cell in sheet.cells(box):
            formula = isinstance(cell.value, Formula)
            if cell.value is None or (formula and not request.get("includeFormulas")):
                continue
            text = (
                reference.placed(cell.value, row)
                if isinstance(cell.value, Formula)
                else reader.formatted(sheet, row, column, cell)
            )
            if whole and not pattern.fullmatch(text):
                continue
            replaced, count = pattern.subn(template, text, count=1 if whole else 0)
            if count:
                hits.append((row, column, formula, replaced, count))
        if not hits:
            continue
        sheet = book.write(sheet_id)
        for row, column, formula, replaced, count in hits:
            put(sheet, row, column, entered(replaced, year=year, locale=batch.locale))
            counts["formulasChanged" if formula else "valuesChanged"] += 1
            counts["occurrencesChanged"] += count
        counts["rowsChanged"] += len({hit[0] for hit in hits})
        counts["sheetsChanged"] += 1
    return {"findReplace": {name: count for name, count in counts.items() if count}}


def _blanks(sheet: Sheet, box: Box) -> list[tuple[int, int]]:
    """The places in a box where nothing stands."""
    filled = {(row, column) for row, column, cell in sheet.cells(box) if cell.value is not None}
    places = ((row, column) for row in range(box.top, box.bottom) for column in range(box.left, box.right))
    return [place for place in places if place not in filled]


def copy_paste(batch: Batch, request: dict[str, Any]) -> None:
    book = batch.book
    source_rect, rect = Rect.of(request.get("source", {})), Rect.of(request.get("destination", {}))
    source = book.grid(source_rect.sheet_id)
    book.grid(rect.sheet_id)
    from_box = source.box(source_rect)
    sheet = book.write(rect.sheet_id)
    source = book.sheets[source_rect.sheet_id]
    box = sheet.box(rect)
    turned = request.get("pasteOrientation") == "TRANSPOSE"
    kind = request.get("pasteType", "PASTE_NORMAL")
    block = {(r - from_box.top, c - from_box.left): cell for r, c, cell in source.cells(from_box)}
    height, width = from_box.height, from_box.width
    if turned:
        block = {(c, r): cell for (r, c), cell in block.items()}
        height, width = width, height
    reader = batch.reader()
    plain = (
        {
            at: reader.effective(
                source, from_box.top + (at[1] if turned else at[0]), from_box.left + (at[0] if turned else at[1]), cell
            )
            for at, cell in block.items()
        }
        if kind == "PASTE_VALUES"
        else {}
    )
    times_down, times_right = max(1, box.height // max(1, height)), max(1, box.width // max(1, width))
    sheet.grow(box.top + times_down * height, box.left + times_right * width)
    book.check_size()
    for down in range(times_down * height):
        for right in range(times_right * width):
            key = down % height, right % width
            cell = block.get(key, EMPTY)
            row, column = box.top + down, box.left + right
            origin = (key[1], key[0]) if turned else key
            from_row = from_box.top + origin[0]
            new = _moved(cell, from_row, row - from_row, column - from_box.left - origin[1])
            sheet.put(row, column, _pasted(sheet.get(row, column), new, kind, plain.get(key)))
    if kind == "PASTE_NORMAL" and not turned and source.merges:
        for merge in [m for m in source.merges if from_box.holds(m)]:
            down, right = box.top - from_box.top, box.left - from_box.left
            made = Box(merge.top + down, merge.bottom + down, merge.left + right, merge.right + right)
            sheet.merges = [m for m in sheet.merges if not m.meets(made)] + [made]


def _pasted(old: Cell, new: Cell, kind: str, plain: Value) -> Cell:
    match kind:
        case "PASTE_VALUES":
            return old.with_value(plain)
        case "PASTE_FORMULA":
            return old.with_value(new.value)
        case "PASTE_FORMAT" | "PASTE_CONDITIONAL_FORMATTING":
            return old.with_format(new.format)
        case "PASTE_DATA_VALIDATION":
            return old.with_extra("dataValidation", (new.extra or {}).get("dataValidation"))
        case "PASTE_NO_BORDERS":
            return new.with_format({k: v for k, v in (new.format or {}).items() if k != "borders"})
        case _:
            return new


def cut_paste(batch: Batch, request: dict[str, Any]) -> None:
    book = batch.book
    source_rect, to = Rect.of(request.get("source", {})), request.get("destination", {})
    book.grid(source_rect.sheet_id)
    book.grid(to.get("sheetId", 0))
    cut(
        book,
        source_rect,
        to.get("sheetId", 0),
        to.get("rowIndex", 0),
        to.get("columnIndex", 0),
        request.get("pasteType", "PASTE_NORMAL"),
    )


def cut(book: Book, rect: Rect, sheet_id: int, row: int, column: int, kind: str = "PASTE_NORMAL") -> None:
    """Move cells; references to them follow, their own references stay."""
    source = book.write(rect.sheet_id)
    box = source.box(rect)
    sheet = book.write(sheet_id)
    found = {(r, c): _still(cell, r) for r, c, cell in source.cells(box)}
    for r, c in found:
        source.put(r, c, EMPTY)
    down, right = row - box.top, column - box.left
    sheet.grow(box.bottom + down, box.right + right)
    book.check_size()
    for r in range(box.top, box.bottom):
        for c in range(box.left, box.right):
            cell = found.get((r, c), EMPTY)
            sheet.put(r + down, c + right, _pasted(sheet.get(r + down, c + right), cell, kind, None))
    if kind == "PASTE_NORMAL":
        moved = [merge for merge in source.merges if box.holds(merge)]
        source.merges = [merge for merge in source.merges if not box.holds(merge)]
        sheet.merges += [Box(m.top + down, m.bottom + down, m.left + right, m.right + right) for m in moved]
    old_title, new_title = source.title, sheet.title

    def follow(held: Sheet) -> Any:
        def new(ref: reference.Ref) -> reference.Ref | None:
            aimed = (
                held.sheet_id == rect.sheet_id if ref.title is None else ref.title.casefold() == old_title.casefold()
            )
            if not aimed or not box.holds(source.box(ref.rect(rect.sheet_id))):
                return ref
            sides = [
                s
                and replace(
                    s,
                    row=None if s.row is None else s.row + down,
                    column=None if s.column is None else s.column + right,
                )
                for s in (ref.first, ref.last)
            ]
            title = ref.title if sheet_id == rect.sheet_id else new_title
            assert sides[0] is not None  # a reference has a first side
            return reference.Ref(title, sides[0], sides[1])

        return new

    change_formulas(book, follow, placed=True)


def auto_fill(batch: Batch, request: dict[str, Any]) -> None:
    book = batch.book
    if "sourceAndDestination" in request:
        given = request["sourceAndDestination"]
        rect = Rect.of(given.get("source", {}))
        box = book.grid(rect.sheet_id).box(rect)
        length, rows = given.get("fillLength", 0), given.get("dimension") != "COLUMNS"
    else:
        rect = Rect.of(request.get("range", {}))
        whole = book.grid(rect.sheet_id).box(rect)
        filled = [row for row, _, cell in book.sheets[rect.sheet_id].cells(whole) if cell.value is not None]
        last = max(filled, default=whole.top) + 1
        box, rows, length = Box(whole.top, last, whole.left, whole.right), True, whole.bottom - last
    if not box.height or not box.width:
        raise Invalid("The source range is empty.")
    sheet = book.write(rect.sheet_id)
    alternate = request.get("useAlternateSeries", False)
    lines = range(box.left, box.right) if rows else range(box.top, box.bottom)
    for line in lines:
        places = [
            (at, line) if rows else (line, at)
            for at in (range(box.top, box.bottom) if rows else range(box.left, box.right))
        ]
        _fill(sheet, places, abs(length), rows, backwards=length < 0, copy=alternate)


def _fill(sheet: Sheet, places: list[tuple[int, int]], length: int, rows: bool, *, backwards: bool, copy: bool) -> None:
    source = [sheet.get(*place) for place in places]
    numbers = [c.value for c in source if isinstance(c.value, float) and not isinstance(c.value, bool)]
    series = len(numbers) == len(source) and len(numbers) > 1 and not copy
    step = (numbers[-1] - numbers[0]) / (len(numbers) - 1) if series else 0.0
    for n in range(1, length + 1):
        index = len(places) - 1 + n if not backwards else -n
        base = source[index % len(source)]
        start = places[0]
        place = (start[0] + index, start[1]) if rows else (start[0], start[1] + index)
        if place[0] < 0 or place[1] < 0 or place[0] >= sheet.row_count or place[1] >= sheet.column_count:
            continue
        from_place = places[index % len(source)]
        new = _moved(base, from_place[0], place[0] - from_place[0], place[1] - from_place[1])
        if series:
            new = replace(new, value=numbers[0] + step * index)
        sheet.put(*place, new)


HANDLERS = {
    "sortRange": sort_range,
    "findReplace": find_replace,
    "copyPaste": copy_paste,
    "cutPaste": cut_paste,
    "autoFill": auto_fill,
}
