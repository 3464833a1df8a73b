"""Finds the table that ``values.append`` appends to.

A table is a block of filled cells that touch each other, also at corners; what is searched for is the last table that
the given range meets, counting from the top left. That is why a blank cell in the only row makes the next row slide to
the right: the row is two tables, and the second is the last.
"""

from __future__ import annotations

from collections.abc import Iterable

from hectograph.sheets.a1 import Box
from hectograph.sheets.book import Sheet


def tables(sheet: Sheet, spread: Iterable[tuple[int, int]] = ()) -> list[Box]:
    """All tables of a sheet, by their top left corners; what formulas spread into ``spread`` counts as filled."""
    boxes: list[Box] = []
    filled: dict[int, set[int]] = {}
    for row, column in spread:
        filled.setdefault(row, set()).add(column)
    for row in range(max(len(sheet.rows), max(filled, default=-1) + 1)):
        held = sheet.row(row)
        if not held and row not in filled:
            continue
        run: Box | None = None
        own = {column for column, cell in held.items() if cell.value is not None}
        for column in sorted(own | filled.get(row, set())):
            if run is not None and column == run.right:
                run = Box(row, row + 1, run.left, column + 1)
                continue
            if run is not None:
                _add(boxes, run)
            run = Box(row, row + 1, column, column + 1)
        if run is not None:
            _add(boxes, run)
    return sorted(boxes, key=lambda box: (box.top, box.left))


def _add(boxes: list[Box], new: Box) -> None:
    """Join a run of cells to the tables it touches; two tables that come to touch become one."""
    touching = [box for box in boxes if _touch(box, new)]
    while touching:
        for box in touching:
            boxes.remove(box)
            new = Box(
                min(box.top, new.top), max(box.bottom, new.bottom), min(box.left, new.left), max(box.right, new.right)
            )
        touching = [box for box in boxes if _touch(box, new)]
    boxes.append(new)


def _touch(a: Box, b: Box) -> bool:
    return a.top <= b.bottom and b.top <= a.bottom and a.left <= b.right and b.left <= a.right


def last_table(sheet: Sheet, box: Box, spread: Iterable[tuple[int, int]] = ()) -> Box | None:
    found = [table for table in tables(sheet, spread) if table.meets(box)]
    return found[-1] if found else None
