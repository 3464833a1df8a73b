"""Functions that look things up. Exact look-ups in one column use a table made once per version of the book."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hectograph.sheets.a1 import MAX_COLUMNS, Box, Rect, cells, letters, split
from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.formulas.formula import Area, Calculation, Failed, Node, Result, compare, fail, rank, text_of

Nodes = tuple[Node, ...]


def key_of(value: Value) -> Any:
    if isinstance(value, str):
        return ("s", value.casefold())
    if isinstance(value, bool):
        return ("b", value)
    return ("n", value) if isinstance(value, (int, float)) else None


def _exact(calc: Calculation, values: Result, wanted: Value, *, last: bool = False) -> int | None:
    """The position of the first (or last) equal value in a row or column."""
    if wanted is None:
        wanted = 0.0
    if isinstance(wanted, CellError):
        raise Failed(wanted)
    pattern = None
    if isinstance(wanted, str) and re.search(r"(?<!~)[*?]", wanted):
        parts = [".*" if c == "*" else "." if c == "?" else re.escape(c) for c in wanted]
        pattern = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
    if isinstance(values, Area) and pattern is None:
        memo_key = ("index", values, last)
        index = calc.book.memo.get(memo_key)
        if index is None:
            index = {}
            column = values.box.width == 1
            for row, col, _ in calc.cells(values.sheet_id, values.box):
                key = key_of(calc.value(values.sheet_id, row, col))
                at = row - values.box.top if column else col - values.box.left
                if key is not None and (last or key not in index):
                    index[key] = at
            calc.book.memo[memo_key] = index
        found: int | None = index.get(key_of(wanted))
        return found
    flat = [value for row in calc.rows(values) for value in row]
    order = range(len(flat) - 1, -1, -1) if last else range(len(flat))
    for at in order:
        value = flat[at]
        if pattern is not None:
            if isinstance(value, str) and pattern.fullmatch(value):
                return at
        elif value is not None and key_of(value) == key_of(wanted):
            return at
    return None


def _near(calc: Calculation, values: Result, wanted: Value, *, descending: bool = False) -> int | None:
    """The last position of a sorted row or column whose value does not pass the wanted one."""
    found = None
    for at, value in enumerate(value for row in calc.rows(values) for value in row):
        if value is None or rank(value) != rank(wanted):
            continue
        order = compare(value, wanted)
        if (order > 0 and not descending) or (order < 0 and descending):
            break
        found = at
    return found


def _part(calc: Calculation, values: Result, top: int, left: int, height: int, width: int) -> Result:
    if isinstance(values, Area):
        box = values.box
        return Area(
            values.sheet_id, Box(box.top + top, box.top + top + height, box.left + left, box.left + left + width)
        )
    rows = calc.rows(values)
    return [row[left : left + width] for row in rows[top : top + height]]


def _size(calc: Calculation, values: Result) -> tuple[int, int]:
    if isinstance(values, Area):
        return values.box.height, values.box.width
    rows = calc.rows(values)
    return len(rows), len(rows[0]) if rows else 0


def _table_lookup(calc: Calculation, nodes: Nodes, name: str) -> Result:
    wanted = calc.scalar(calc.run(nodes[0]))
    table = calc.run(nodes[1])
    index = int(calc.number(calc.run(nodes[2])))
    near = calc.truth(calc.run(nodes[3])) if len(nodes) > 3 else True
    height, width = _size(calc, table)
    across = name == "HLOOKUP"
    if not 1 <= index <= (height if across else width):
        raise fail("#REF!", f"{name} evaluates to an out of bounds range.")
    line = _part(calc, table, 0, 0, 1, width) if across else _part(calc, table, 0, 0, height, 1)
    at = _near(calc, line, wanted) if near else _exact(calc, line, wanted)
    if at is None:
        raise fail("#N/A", f"Did not find value '{text_of(wanted)}' in {name} evaluation.")
    cell = _part(calc, table, index - 1, at, 1, 1) if across else _part(calc, table, at, index - 1, 1, 1)
    return _value(calc, cell)


def _value(calc: Calculation, result: Result) -> Value:
    value = calc.scalar(result)
    if isinstance(value, CellError):
        raise Failed(value)
    return value


def _xlookup(calc: Calculation, nodes: Nodes) -> Result:
    wanted = calc.scalar(calc.run(nodes[0]))
    keys, results = calc.run(nodes[1]), calc.run(nodes[2])
    mode = int(calc.number(calc.run(nodes[4]))) if len(nodes) > 4 else 0
    last = len(nodes) > 5 and calc.number(calc.run(nodes[5])) < 0
    at = _exact(calc, keys, wanted, last=last)
    if at is None and mode in (-1, 1):
        flat = [value for row in calc.rows(keys) for value in row]
        best: Value = None
        for position, value in enumerate(flat):
            if value is None or rank(value) != rank(wanted) or compare(value, wanted) * mode < 0:
                continue
            if best is None or compare(value, best) * mode < 0:
                best, at = value, position
    if at is None:
        if len(nodes) > 3 and nodes[3] != ("value", None):
            return calc.run(nodes[3])
        raise fail("#N/A", f"Did not find value '{text_of(wanted)}' in XLOOKUP evaluation.")
    _, width = _size(calc, keys)
    rows, columns = _size(calc, results)
    upright = width == 1
    return _part(calc, results, at, 0, 1, columns) if upright else _part(calc, results, 0, at, rows, 1)


def _match(calc: Calculation, nodes: Nodes) -> Result:
    wanted, values = calc.scalar(calc.run(nodes[0])), calc.run(nodes[1])
    kind = calc.number(calc.run(nodes[2])) if len(nodes) > 2 else 1.0
    if kind == 0:
        at = _exact(calc, values, wanted)
    else:
        at = _near(calc, values, wanted, descending=kind < 0)
    if at is None:
        raise fail("#N/A", f"Did not find value '{text_of(wanted)}' in MATCH evaluation.")
    return float(at + 1)


def _index(calc: Calculation, nodes: Nodes) -> Result:
    values = calc.whole(nodes[0])
    height, width = _size(calc, values)
    row = int(calc.number(calc.run(nodes[1]))) if len(nodes) > 1 else 0
    column = int(calc.number(calc.run(nodes[2]))) if len(nodes) > 2 else 0
    if len(nodes) == 2 and height == 1 and width > 1:
        row, column = 1, row
    if row > height or column > width or row < 0 or column < 0:
        raise fail(
            "#REF!", f"Function INDEX parameter 2 value is {row}. Valid values are between 0 and {height} inclusive."
        )
    return _part(
        calc, values, max(row - 1, 0), max(column - 1, 0), 1 if row else height, 1 if column or width == 1 else width
    )


def _indirect(calc: Calculation, nodes: Nodes) -> Result:
    text = calc.text(calc.run(nodes[0]))
    title, inner = split(text)
    sheet_id = calc.sheet_id if title is None else calc.book.sheet_named(title)
    rect: Rect | None = None
    if sheet_id is not None:
        rect = cells(inner, sheet_id) or calc.book.range_named(inner)
    if rect is None:
        raise fail("#REF!", f"Function INDIRECT parameter 1 value is '{text}'. It is not a valid cell/range reference.")
    return calc.bounded(rect)


def _offset(calc: Calculation, nodes: Nodes) -> Result:
    area = calc.run(nodes[0])
    if not isinstance(area, Area):
        raise fail("#REF!", "Argument must be a range.")
    down, right = int(calc.number(calc.run(nodes[1]))), int(calc.number(calc.run(nodes[2])))
    height = int(calc.number(calc.run(nodes[3]))) if len(nodes) > 3 else area.box.height
    width = int(calc.number(calc.run(nodes[4]))) if len(nodes) > 4 else area.box.width
    top, left = area.box.top + down, area.box.left + right
    if top < 0 or left < 0:
        raise fail("#REF!", "Function OFFSET evaluates to an out of bounds range.")
    return calc.bounded(Rect(area.sheet_id, top, top + height, left, left + width))


def _place(calc: Calculation, nodes: Nodes, *, row: bool) -> Result:
    if not nodes:
        return float((calc.row if row else calc.column) + 1)
    area = calc.run(nodes[0])
    if not isinstance(area, Area):
        raise fail("#N/A", "Argument must be a range.")
    if calc.arrays and not area.single:
        if row:
            return [[float(at + 1)] for at in range(area.box.top, area.box.bottom)]
        return [[float(at + 1) for at in range(area.box.left, area.box.right)]]
    return float((area.box.top if row else area.box.left) + 1)


def _address(calc: Calculation, nodes: Nodes) -> Result:
    row, column = int(calc.number(calc.run(nodes[0]))), int(calc.number(calc.run(nodes[1])))
    mode = int(calc.number(calc.run(nodes[2]))) if len(nodes) > 2 else 1
    if row < 1 or not 1 <= column <= MAX_COLUMNS:
        raise fail("#VALUE!", "Function ADDRESS has a row or column that is out of range.")
    return f"{'$' if mode in (1, 3) else ''}{letters(column - 1)}{'$' if mode in (1, 2) else ''}{row}"


def _xmatch(calc: Calculation, nodes: Nodes) -> Result:
    wanted, values = calc.scalar(calc.run(nodes[0])), calc.run(nodes[1])
    at = _exact(calc, values, wanted, last=len(nodes) > 3 and calc.number(calc.run(nodes[3])) < 0)
    if at is None:
        raise fail("#N/A", f"Did not find value '{text_of(wanted)}' in XMATCH evaluation.")
    return float(at + 1)


def _lookup(calc: Calculation, nodes: Nodes) -> Result:
    wanted, values = calc.scalar(calc.run(nodes[0])), calc.run(nodes[1])
    at = _near(calc, values, wanted)
    if at is None:
        raise fail("#N/A", f"Did not find value '{text_of(wanted)}' in LOOKUP evaluation.")
    results = calc.run(nodes[2]) if len(nodes) > 2 else values
    return [value for row in calc.rows(results) for value in row][at]


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {
    "VLOOKUP": lambda calc, nodes: _table_lookup(calc, nodes, "VLOOKUP"),
    "HLOOKUP": lambda calc, nodes: _table_lookup(calc, nodes, "HLOOKUP"),
    "XLOOKUP": _xlookup,
    "MATCH": _match,
    "INDEX": _index,
    "INDIRECT": _indirect,
    "OFFSET": _offset,
    "ROW": lambda calc, nodes: _place(calc, nodes, row=True),
    "COLUMN": lambda calc, nodes: _place(calc, nodes, row=False),
    "ROWS": lambda calc, nodes: float(_size(calc, calc.run(nodes[0]))[0]),
    "COLUMNS": lambda calc, nodes: float(_size(calc, calc.run(nodes[0]))[1]),
    "ADDRESS": _address,
    "XMATCH": _xmatch,
    "LOOKUP": _lookup,
}
