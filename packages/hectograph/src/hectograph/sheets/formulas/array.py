"""Arrays in formulas: what is done to one value is done to each, and blocks are put beside and below one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.formulas.area import Area, Array, Result
from hectograph.sheets.formulas.scalar import Failed, fail

if TYPE_CHECKING:
    from hectograph.sheets.formulas.formula import Calculation


def many(result: Result) -> bool:
    """Whether a result is more than one value."""
    if isinstance(result, Area):
        return not result.single
    return isinstance(result, list)


def lifted(calc: Calculation, results: Sequence[Result], work: Callable[[list[Result]], Value]) -> Result:
    """Do some work on values, or on each of the values where arrays are wanted and one is given."""
    whole = [isinstance(r, list) or (calc.arrays and many(r)) for r in results]
    if not any(whole):
        return work(list(results))
    grids = [calc.rows(result) if is_whole else None for result, is_whole in zip(results, whole, strict=True)]
    height = max(len(grid) for grid in grids if grid is not None)
    width = max(len(grid[0]) if grid else 0 for grid in grids if grid is not None)
    out: Array = []
    for row in range(height):
        line: list[Value] = []
        for column in range(width):
            try:
                line.append(
                    work([_at(g, row, column) if g is not None else r for g, r in zip(grids, results, strict=True)])
                )
            except Failed as failed:
                line.append(failed.error)
            except (ArithmeticError, ValueError) as error:
                line.append(CellError("#NUM!", str(error)))
        out.append(line)
    return out


def _at(grid: Array, row: int, column: int) -> Value:
    """One value of an array; a single row or column counts for all of them."""
    row, column = (0 if len(grid) == 1 else row), (0 if grid and len(grid[0]) == 1 else column)
    if row < len(grid) and column < len(grid[row]):
        return grid[row][column]
    return CellError("#N/A", "Argument array is of a different size.")


def stacked(calc: Calculation, rows: list[list[Result]]) -> Array:
    """The blocks of an array literal, beside one another in a row and row below row."""
    out: Array = []
    width: int | None = None
    for blocks in rows:
        grids = [calc.rows(block) for block in blocks]
        height = len(grids[0]) if grids else 0
        for at, grid in enumerate(grids, 1):
            if len(grid) != height:
                text = f"Function ARRAY_ROW parameter {at} has mismatched row size. Expected: {height}. Actual: "
                raise fail("#VALUE!", f"{text}{len(grid)}.")
        lines = [[value for grid in grids for value in grid[row]] for row in range(height)]
        if width is not None and lines and len(lines[0]) != width:
            raise fail("#VALUE!", "In ARRAY_LITERAL, an Array Literal was missing values for one or more rows.")
        width = len(lines[0]) if lines else width
        out += lines
    return out
