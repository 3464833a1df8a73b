"""Spreads the results of array formulas over the cells beside and below them, unless something is there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from hectograph.sheets.a1 import Box, letters
from hectograph.sheets.book import Sheet
from hectograph.sheets.cell import EMPTY, Cell, CellError, Formula, Value
from hectograph.sheets.formulas.area import Array
from hectograph.sheets.formulas.syntax import spreads

if TYPE_CHECKING:
    from hectograph.sheets.formulas.formula import Calculation

Place = tuple[int, int, int]

#: A formula may read what another spreads; after so many rounds what still changes is left as it is.
_ROUNDS = 4


def spread(calc: Calculation) -> None:
    """Work out for the whole book which values lie in cells that hold nothing of their own."""
    memo = calc.book.memo
    running, calc.running = calc.running, set()
    try:
        memo["spills"] = {}
        for _ in range(_ROUNDS):
            before = dict(memo["spills"])
            found = _round(calc)
            if found == before:
                return
            memo.clear()
            memo["spills"] = found
        _round(calc)
    finally:
        calc.running = running


def _round(calc: Calculation) -> dict[Place, Value]:
    found: dict[Place, Value] = {}
    memo = calc.book.memo
    for sheet in calc.book.all_sheets():
        if not sheet.spills:
            continue
        for row, held in enumerate(sheet.rows):
            for column in sorted(held):
                value = held[column].value
                if not isinstance(value, Formula) or not spreads(value.text):
                    continue
                key = (sheet.sheet_id, row, column)
                calc.value(*key)
                array = memo.get(("array", key))
                if array is not None:
                    refused = _place(sheet, key, array, found)
                    if refused is not None:
                        memo[key] = refused
                    else:
                        memo["spills"].update(found)
    return found


def _place(sheet: Sheet, key: Place, array: Array, found: dict[Place, Value]) -> CellError | None:
    _, top, left = key
    width = max(map(len, array), default=0)
    if left + width > sheet.column_count:
        more = left + width - sheet.column_count
        return CellError("#REF!", f"Result was not automatically expanded, please insert more columns ({more}).")
    if top + len(array) > sheet.row_count:
        more = top + len(array) - sheet.row_count
        return CellError("#REF!", f"Result was not automatically expanded, please insert more rows ({more}).")
    new: dict[Place, Value] = {}
    for down, line in enumerate(array):
        for right, value in enumerate(line):
            at = (sheet.sheet_id, top + down, left + right)
            if at == key:
                continue
            if at in found or sheet.get(at[1], at[2]).value is not None:
                name = f"{letters(at[2])}{at[1] + 1}"
                return CellError("#REF!", f"Array result was not expanded because it would overwrite data in {name}.")
            new[at] = value
    found.update(new)
    return None


def joined(sheet: Sheet, box: Box, spills: Mapping[Place, Value]) -> Iterator[tuple[int, int, Cell]]:
    """The cells of a box with those that are spread into, row by row, left to right."""
    own = {(row, column): cell for row, column, cell in sheet.cells(box)}
    for (sheet_id, row, column), value in spills.items():
        inside = box.top <= row < box.bottom and box.left <= column < box.right
        if sheet_id == sheet.sheet_id and inside and value is not None:
            own.setdefault((row, column), EMPTY)
    for row, column in sorted(own):
        yield row, column, own[row, column]
