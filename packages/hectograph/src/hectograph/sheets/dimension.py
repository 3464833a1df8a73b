"""Rows and columns inserted, deleted and moved, with all that points at them: merges, ranges, formulas, metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hectograph.core.error import Invalid
from hectograph.sheets import reference
from hectograph.sheets.a1 import Box
from hectograph.sheets.book import Book, Row, Sheet
from hectograph.sheets.cell import Cell, Formula

#: Where objects keep ranges of cells.
_RANGE_KEYS = {"range", "ranges", "unprotectedRanges", "sources", "tableRange", "dataRange"}


@dataclass(frozen=True, slots=True)
class Shift:
    """What happens to the indexes of one dimension of one sheet."""

    sheet_id: int
    rows: bool
    #: The new index of an index, or nothing if it is gone.
    index: Callable[[int], int | None]
    #: The new span of a half-open span, or nothing if all of it is gone; an open end stays open.
    span: Callable[[int, int | None], tuple[int, int | None] | None]


def inserting(sheet_id: int, rows: bool, at: int, count: int) -> Shift:
    def span(start: int, end: int | None) -> tuple[int, int | None]:
        new_end = end if end is None or end <= at else end + count
        return (start + count if start >= at else start), new_end

    return Shift(sheet_id, rows, lambda i: i + count if i >= at else i, span)


def deleting(sheet_id: int, rows: bool, start: int, end: int) -> Shift:
    count = end - start

    def index(i: int) -> int | None:
        return i if i < start else None if i < end else i - count

    def edge(i: int) -> int:
        return i if i <= start else start if i <= end else i - count

    def span(first: int, last: int | None) -> tuple[int, int | None] | None:
        if last is None:
            return edge(first), None
        new = edge(first), edge(last)
        return None if new[0] >= new[1] and last > first else new

    return Shift(sheet_id, rows, index, span)


def moving(sheet_id: int, rows: bool, start: int, end: int, to: int) -> Shift:
    count = end - start

    def index(i: int) -> int:
        if start <= i < end:
            return i + (to - start if to < start else to - end)
        if to < start and to <= i < start:
            return i + count
        return i - count if to > end and end <= i < to else i

    def span(first: int, last: int | None) -> tuple[int, int | None]:
        if last is None:
            return first, None
        a, b = index(first), index(last - 1)
        return (a, b + 1) if a <= b and b - a == last - 1 - first else (first, last)

    return Shift(sheet_id, rows, index, span)


def insert(book: Book, sheet_id: int, dimension: str, at: int, count: int, *, from_before: bool = False) -> None:
    """Insert empty rows or columns; they take the formats of their neighbour."""
    sheet = book.write(sheet_id)
    rows = dimension != "COLUMNS"
    neighbour = at - 1 if from_before else at
    if rows:
        pattern = _formats(sheet.row(neighbour)) if 0 <= neighbour < len(sheet.rows) else {}
        if at < len(sheet.rows) or pattern:
            while len(sheet.rows) < at:
                sheet.writable(len(sheet.rows))
            fresh: list[Row] = [dict(pattern) for _ in range(count)]
            sheet.rows[at:at] = fresh
            sheet.adopt(fresh)
        sheet.set_size(sheet.row_count + count, sheet.column_count)
    else:
        made: list[Row] = []
        for held in sheet.rows:
            row = {c + count if c >= at else c: cell for c, cell in held.items()}
            beside = held.get(neighbour)
            if beside is not None and (beside.format or beside.extra):
                form = _format_only(beside)
                row.update({at + n: form for n in range(count)})
            made.append(row)
        sheet.own_rows(made)
        sheet.set_size(sheet.row_count, sheet.column_count + count)
    book.check_size()
    apply(book, inserting(sheet_id, rows, at, count))


def _format_only(cell: Cell) -> Cell:
    kept = {k: v for k, v in (cell.extra or {}).items() if k == "dataValidation"}
    return Cell(None, cell.format, None, kept or None)


def _formats(row: Row) -> Row:
    out = {column: _format_only(cell) for column, cell in row.items()}
    return {column: cell for column, cell in out.items() if not cell.blank}


def delete(book: Book, sheet_id: int, dimension: str, start: int, end: int) -> None:
    sheet = book.write(sheet_id)
    rows = dimension != "COLUMNS"
    if rows:
        del sheet.rows[start:end]
        sheet.set_size(sheet.row_count - (end - start), sheet.column_count)
    else:
        count = end - start
        sheet.own_rows(
            [{c if c < start else c - count: x for c, x in held.items() if not start <= c < end} for held in sheet.rows]
        )
        sheet.set_size(sheet.row_count, sheet.column_count - count)
    apply(book, deleting(sheet_id, rows, start, end))


def move(book: Book, sheet_id: int, dimension: str, start: int, end: int, to: int) -> None:
    if start <= to <= end:
        return
    sheet = book.write(sheet_id)
    rows = dimension != "COLUMNS"
    shift = moving(sheet_id, rows, start, end, to)
    if rows:
        while len(sheet.rows) < max(end, to):
            sheet.writable(len(sheet.rows))
        block = sheet.rows[start:end]
        del sheet.rows[start:end]
        at = to if to < start else to - (end - start)
        sheet.rows[at:at] = block
    else:
        sheet.own_rows([{_kept(shift.index(c)): x for c, x in held.items()} for held in sheet.rows])
    apply(book, shift)


def _kept(index: int | None) -> int:
    assert index is not None  # a move loses nothing
    return index


def apply(book: Book, shift: Shift) -> None:
    """Tell everything that points at the shifted rows or columns."""
    sheet = book.write(shift.sheet_id)
    sheet.merges = [box for box in (_box(box, shift) for box in sheet.merges) if box is not None]
    properties = sheet.row_properties if shift.rows else sheet.column_properties
    if properties:
        moved = {shift.index(at): held for at, held in properties.items()}
        kept = {at: held for at, held in moved.items() if at is not None}
        if shift.rows:
            sheet.row_properties = kept
        else:
            sheet.column_properties = kept
    _frozen(sheet, shift)
    for held in book.sheets.values():
        if held.extras:
            writable = book.write(held.sheet_id) if _points(held.extras, shift.sheet_id, held.sheet_id) else None
            if writable is not None:
                writable.extras = {
                    name: value
                    for name, value in ((n, shifted(v, shift)) for n, v in writable.extras.items())
                    if value not in (None, [])
                }
    for name, named in list(book.named.items()):
        if named.get("range") is not None and int(named["range"].get("sheetId", 0)) == shift.sheet_id:
            book.named[name] = {**named, "range": _grid(named["range"], shift)}
    for key, item in list(book.metadata.items()):
        span = item["location"].get("dimensionRange")
        if span and span.get("sheetId", 0) == shift.sheet_id and (span.get("dimension") != "COLUMNS") == shift.rows:
            new = shift.span(span.get("startIndex", 0), span.get("endIndex"))
            if new is None:
                del book.metadata[key]
            elif new != (span.get("startIndex", 0), span.get("endIndex")):
                moved_span = {**span, "startIndex": new[0], "endIndex": new[1]}
                book.metadata[key] = {**item, "location": {**item["location"], "dimensionRange": moved_span}}
    rewrite(book, shift)


def _frozen(sheet: Sheet, shift: Shift) -> None:
    name = "frozenRowCount" if shift.rows else "frozenColumnCount"
    frozen = sheet.properties["gridProperties"].get(name)
    if frozen:
        new = shift.span(0, frozen)
        grid = {**sheet.properties["gridProperties"], name: (new[1] or 0) if new else 0}
        if not grid[name]:
            del grid[name]
        sheet.properties = {**sheet.properties, "gridProperties": grid}


def _box(box: Box, shift: Shift) -> Box | None:
    new = shift.span(box.top, box.bottom) if shift.rows else shift.span(box.left, box.right)
    if new is None or new[1] is None:
        return None
    start, end = new[0], new[1]
    made = Box(start, end, box.left, box.right) if shift.rows else Box(box.top, box.bottom, start, end)
    return made if made.height * made.width > 1 else None


def _points(extras: Mapping[str, Any], sheet_id: int, owner: int) -> bool:
    return sheet_id == owner or "charts" in extras


def _grid(grid: Mapping[str, Any], shift: Shift) -> dict[str, Any] | None:
    if int(grid.get("sheetId", 0)) != shift.sheet_id:
        return dict(grid)
    start_key, end_key = ("startRowIndex", "endRowIndex") if shift.rows else ("startColumnIndex", "endColumnIndex")
    if start_key not in grid and end_key not in grid:
        return dict(grid)
    new = shift.span(grid.get(start_key, 0), grid.get(end_key))
    if new is None:
        return None
    out = dict(grid)
    if start_key in grid or new[0]:
        out[start_key] = new[0]
    if new[1] is not None:
        out[end_key] = new[1]
    return out


def _span(span: Mapping[str, Any], shift: Shift) -> dict[str, Any] | None:
    if int(span.get("sheetId", 0)) != shift.sheet_id or (span.get("dimension") != "COLUMNS") != shift.rows:
        return dict(span)
    new = shift.span(span.get("startIndex", 0), span.get("endIndex"))
    return None if new is None else {**span, "startIndex": new[0], "endIndex": new[1]}


def shifted(value: Any, shift: Shift) -> Any:
    """An object with its ranges shifted; nothing if what it was about is gone."""
    if isinstance(value, list):
        return [new for new in (shifted(item, shift) for item in value) if new is not None]
    if not isinstance(value, Mapping):
        return value
    out: dict[str, Any] = {}
    for name, item in value.items():
        if name in _RANGE_KEYS and isinstance(item, Mapping):
            new = _span(item, shift) if "dimension" in item else _grid(item, shift)
            if new is None:
                return None
            out[name] = new
        elif name in _RANGE_KEYS and isinstance(item, list) and all(isinstance(i, Mapping) for i in item):
            kept = [new for new in (_grid(i, shift) for i in item) if new is not None]
            if item and not kept:
                return None
            out[name] = kept
        elif isinstance(item, (Mapping, list)):
            out[name] = shifted(item, shift)
        else:
            out[name] = item
    return out


def rewrite(book: Book, shift: Shift) -> None:
    """Rewrite the references of all formulas that point at the shifted sheet."""
    title = book.title_of(shift.sheet_id).casefold()

    def change(sheet: Sheet) -> Change | None:
        own = sheet.sheet_id == shift.sheet_id
        if not own and title not in sheet.mentions:
            return None

        def new(ref: reference.Ref) -> reference.Ref | None:
            aimed = own if ref.title is None else ref.title.casefold() == title
            return _ref(ref, shift) if aimed else ref

        return new

    change_formulas(book, change, bound=not shift.rows, title=title)


def _ref(ref: reference.Ref, shift: Shift) -> reference.Ref | None:
    first, last = ref.first, ref.last
    a = first.row if shift.rows else first.column
    if last is None:
        if a is None:
            return ref
        at = shift.index(a)
        if at is None:
            return None
        return replace(ref, first=replace(first, row=at) if shift.rows else replace(first, column=at))
    b = last.row if shift.rows else last.column
    if a is None or (b is not None and b < a):
        return ref
    new = shift.span(a, None if b is None else b + 1)
    if new is None:
        return None
    end = None if new[1] is None else new[1] - 1
    if shift.rows:
        return replace(ref, first=replace(first, row=new[0]), last=replace(last, row=end))
    return replace(ref, first=replace(first, column=new[0]), last=replace(last, column=end))


Change = Callable[[reference.Ref], reference.Ref | None]


def change_formulas(
    book: Book,
    change: Callable[[Sheet], Change | None],
    *,
    bound: bool = True,
    title: str | None = None,
    placed: bool = False,
) -> None:
    """Put every formula's references through ``change``, which may pass over a whole sheet.

    Without ``bound``, formulas that follow their own row are left alone unless they name ``title``. With ``placed``,
    references are shown as they read where the formula stands.
    """
    for sheet_id in list(book.order):
        sheet = book.sheets[sheet_id]
        new = change(sheet) if sheet.formulas else None
        if new is None:
            continue
        found: list[tuple[int, int, Cell, Formula]] = []
        for row, held in enumerate(sheet.rows):
            for column, cell in held.items():
                value = cell.value
                if isinstance(value, Formula) and (
                    bound or value.home is None or title in reference.uses(value.text).titles
                ):
                    found.append((row, column, cell, value))
        for row, column, cell, value in found:
            text = reference.placed(value, row) if placed else value.text
            rewritten = reference.rewritten(text, new)
            if rewritten != text:
                made = Formula(rewritten, None if placed else value.home)
                book.write(sheet_id).put(row, column, Cell(made, cell.format, cell.note, cell.extra))


def check_span(sheet: Sheet, span: Mapping[str, Any]) -> tuple[int, int]:
    """The bounded start and end of a DimensionRange."""
    size = sheet.row_count if span.get("dimension") != "COLUMNS" else sheet.column_count
    start = span.get("startIndex", 0)
    end = span.get("endIndex", size)
    if start < 0 or end < 0:
        raise Invalid(f"Invalid range[{start}:{end}]")
    return start, end
