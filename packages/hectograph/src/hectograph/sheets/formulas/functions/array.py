"""Functions that give arrays: sorting, filtering, stacking, counting up."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.formulas.area import Area, Array, Result
from hectograph.sheets.formulas.formula import Calculation, Node
from hectograph.sheets.formulas.functions.lookup import key_of
from hectograph.sheets.formulas.scalar import Failed, compare, fail, to_number

Nodes = tuple[Node, ...]


def _rows(calc: Calculation, node: Node) -> Array:
    return calc.rows(calc.whole(node))


def _flat(calc: Calculation, node: Node) -> list[Value]:
    return [value for row in _rows(calc, node) for value in row]


def _int(calc: Calculation, nodes: Nodes, at: int, default: int) -> int:
    if at >= len(nodes) or nodes[at] == ("value", None):
        return default
    return int(calc.number(calc.run(nodes[at])))


def _transpose(calc: Calculation, nodes: Nodes) -> Result:
    return [list(column) for column in zip(*_rows(calc, nodes[0]), strict=True)]


def _unique(calc: Calculation, nodes: Nodes) -> Result:
    across = len(nodes) > 1 and calc.truth(calc.run(nodes[1]))
    once = len(nodes) > 2 and calc.truth(calc.run(nodes[2]))
    rows = _rows(calc, nodes[0])
    lines = [list(column) for column in zip(*rows, strict=True)] if across else rows
    counts: dict[Any, int] = {}
    for line in lines:
        key = tuple(key_of(value) for value in line)
        counts[key] = counts.get(key, 0) + 1
    out, seen = [], set()
    for line in lines:
        key = tuple(key_of(value) for value in line)
        if key not in seen and not (once and counts[key] > 1):
            out.append(line)
        seen.add(key)
    return [list(column) for column in zip(*out, strict=True)] if across else out


def _filter(calc: Calculation, nodes: Nodes) -> Result:
    rows = _rows(calc, nodes[0])
    tests = [_rows(calc, node) for node in nodes[1:]]
    if not tests:
        raise IndexError
    across = len(tests[0]) == 1 and len(rows) != 1
    lines = [list(column) for column in zip(*rows, strict=True)] if across else rows
    flat = [[value for row in test for value in row] for test in tests]
    for at, test in enumerate(flat, 2):
        if len(test) != len(lines):
            text = "FILTER has mismatched range sizes. Expected row count: "
            raise fail("#N/A", f"{text}{len(lines)}. column count: 1. Actual row count: {len(test)}, column count: 1.")
        for value in test:
            if isinstance(value, CellError) and at:
                raise Failed(value)
    out = [line for at, line in enumerate(lines) if all(test[at] not in (None, False, 0.0, "") for test in flat)]
    if not out:
        raise fail("#N/A", "No matches are found in FILTER evaluation.")
    return [list(column) for column in zip(*out, strict=True)] if across else out


def ordered(rows: Array, keys: list[tuple[list[Value], bool]]) -> Array:
    """Rows by keys, each ascending or not; blanks come last either way and equal rows keep their order."""

    def by(a: int, b: int) -> int:
        for values, ascending in keys:
            x, y = values[a], values[b]
            if x is None or y is None:
                if (x is None) != (y is None):
                    return 1 if x is None else -1
                continue
            order = compare(x, y)
            if order:
                return order if ascending else -order
        return 0

    return [rows[at] for at in sorted(range(len(rows)), key=cmp_to_key(by))]


def _sort(calc: Calculation, nodes: Nodes) -> Result:
    rows = _rows(calc, nodes[0])
    keys: list[tuple[list[Value], bool]] = []
    for at in range(1, len(nodes), 2):
        given = calc.whole(nodes[at])
        up = calc.truth(calc.run(nodes[at + 1])) if at + 1 < len(nodes) else True
        if isinstance(given, (Area, list)):
            keys.append(([value for row in calc.rows(given) for value in row], up))
        else:
            column = int(to_number(given, "SORT", at + 1))
            if not 1 <= column <= (len(rows[0]) if rows else 0):
                raise fail("#VALUE!", f"Function SORT parameter {at + 1} value is {column}. It is out of range.")
            keys.append(([row[column - 1] for row in rows], up))
    if not keys:
        keys = [([row[column] for row in rows], True) for column in range(len(rows[0]) if rows else 0)]
    return ordered(rows, keys)


def _sequence(calc: Calculation, nodes: Nodes) -> Result:
    height, width = _int(calc, nodes, 0, 1), _int(calc, nodes, 1, 1)
    start = calc.number(calc.run(nodes[2])) if len(nodes) > 2 else 1.0
    step = calc.number(calc.run(nodes[3])) if len(nodes) > 3 else 1.0
    if height * width > 1_000_000:
        raise fail("#NUM!", "Function SEQUENCE gives more values than a sheet can hold.")
    if height < 1 or width < 1:
        at, wrong = (1, height) if height < 1 else (2, width)
        raise fail(
            "#NUM!", f"Function SEQUENCE parameter {at} value is {wrong}. It should be greater than or equal to 1."
        )
    return [[start + step * (row * width + column) for column in range(width)] for row in range(height)]


def _flatten(calc: Calculation, nodes: Nodes) -> Result:
    return [[value] for node in nodes for value in _flat(calc, node)]


def _stack(calc: Calculation, nodes: Nodes, *, down: bool) -> Result:
    blocks = [_rows(calc, node) for node in nodes]
    missing = CellError("#N/A", "")
    if down:
        width = max((len(row) for block in blocks for row in block), default=0)
        return [[*row, *[missing] * (width - len(row))] for block in blocks for row in block]
    height = max(map(len, blocks), default=0)
    return [
        [
            value
            for block in blocks
            for value in (block[row] if row < len(block) else [missing] * (len(block[0]) if block else 0))
        ]
        for row in range(height)
    ]


def _chosen(calc: Calculation, nodes: Nodes, *, rows: bool) -> Result:
    grid = _rows(calc, nodes[0])
    lines = grid if rows else [list(column) for column in zip(*grid, strict=True)]
    out: Array = []
    for node in nodes[1:]:
        for value in _flat(calc, node):
            at = int(to_number(value))
            if at == 0 or abs(at) > len(lines):
                raise fail("#VALUE!", f"Index {at} is out of range.")
            out.append(lines[at - 1 if at > 0 else at])
    return out if rows else [list(column) for column in zip(*out, strict=True)]


def _constrain(calc: Calculation, nodes: Nodes) -> Result:
    return [row[: _int(calc, nodes, 2, 1)] for row in _rows(calc, nodes[0])[: _int(calc, nodes, 1, 1)]]


def _mmult(calc: Calculation, nodes: Nodes) -> Result:
    a, b = _rows(calc, nodes[0]), _rows(calc, nodes[1])
    if not a or len(a[0]) != len(b):
        raise fail("#VALUE!", "Function MMULT has incompatible matrix sizes.")
    columns = list(zip(*b, strict=True))
    return [
        [sum(to_number(x) * to_number(y) for x, y in zip(row, column, strict=True)) for column in columns] for row in a
    ]


def _tall(calc: Calculation, nodes: Nodes, *, column: bool) -> Result:
    ignore = _int(calc, nodes, 1, 0)
    values = [
        value
        for value in _flat(calc, nodes[0])
        if not (ignore in (1, 3) and value is None) and not (ignore in (2, 3) and isinstance(value, CellError))
    ]
    return [[value] for value in values] if column else [values]


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {
    "ARRAYFORMULA": lambda calc, nodes: calc.whole(nodes[0]),
    "ARRAY_CONSTRAIN": _constrain,
    "TRANSPOSE": _transpose,
    "UNIQUE": _unique,
    "FILTER": _filter,
    "SORT": _sort,
    "SEQUENCE": _sequence,
    "FLATTEN": _flatten,
    "TOCOL": lambda calc, nodes: _tall(calc, nodes, column=True),
    "TOROW": lambda calc, nodes: _tall(calc, nodes, column=False),
    "HSTACK": lambda calc, nodes: _stack(calc, nodes, down=False),
    "VSTACK": lambda calc, nodes: _stack(calc, nodes, down=True),
    "CHOOSEROWS": lambda calc, nodes: _chosen(calc, nodes, rows=True),
    "CHOOSECOLS": lambda calc, nodes: _chosen(calc, nodes, rows=False),
    "MMULT": _mmult,
}
