"""What people left in the state table: which row is which record's, what was typed, what was damaged. Pure.

A row is a record's by what its cells refer to; if none of them refers to anything any more, by the id that stands in
it. Of several rows of one record the topmost whose cells are whole is the row; the others are copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from quire.surfaces.panel.binding import Bound, Gap, Grid, cell_at, hidden_cells, one_each
from quire.surfaces.panel.cells import refers
from quire.surfaces.panel.columns import PLAIN, Arrangement
from quire.surfaces.panel.layout import COMMAND, ENGINE, STATE, TABLE, TABLE_ID
from quire.surfaces.panel.table import Row

_HIDDEN = {name: STATE.index(name) for name in ENGINE}


class Line(NamedTuple):
    """One visible row of a record."""

    row: int
    #: The hidden row that it shows.
    place: int
    record_id: str
    #: What was typed as a command, as it stands; empty: nothing.
    command: Any
    damages: tuple[Gap, ...]


class Table(NamedTuple):
    """All of it."""

    header: int
    #: Each of our columns that is there: its name and place.
    columns: Mapping[str, int]
    lines: tuple[Line, ...]
    copies: tuple[Line, ...]
    #: Our columns that are not there.
    missing: tuple[str, ...]
    bound: Bound
    #: Ids in rows that show no hidden row any more.
    loose: frozenset[str] = frozenset()
    #: Cells of ours refer to a tab of another title: the hidden tab may have been renamed.
    renamed: bool = False
    #: Which of our columns stands there twice, in a sentence.
    doubled: str = ""


def header_of(grid: Grid, arrangement: Arrangement = PLAIN) -> tuple[int, dict[str, int]]:
    """Where the header is: the row with most of our names in it; and where each of our columns is."""
    best: tuple[int, dict[str, int]] = (0, {})
    for number, row in enumerate(grid[:50]):
        found = arrangement.find(row)
        if len(found) > len(best[1]):
            best = number, found
    return best


def read(grid: Grid, state: Mapping[int, Row], title: str, arrangement: Arrangement = PLAIN) -> Table:
    """``state``: the hidden rows by their place; ``title``: of the hidden tab."""
    header, columns = header_of(grid, arrangement)
    bound = Bound(TABLE_ID, columns, _HIDDEN, {place: row.record_id for place, row in state.items()}, title)
    lines, loose = [], set()
    for number, cells in enumerate(grid):
        if number == header:
            continue
        place = bound.place(cells)
        if place is None:
            loose.add(str(cell_at(cells, columns.get("record_id"))))
            continue
        command = cell_at(cells, columns.get(COMMAND))
        lines.append((place, Line(number, place, bound.ids[place], command, bound.gaps(number, cells, place))))
    chosen, copies = one_each(lines, lambda line: (len(line.damages), line.row))
    chosen.sort(key=lambda line: line.row)
    missing = tuple(name for name in TABLE if name not in columns)
    odd = bool(loose) or any(line.damages for line in chosen)
    renamed = odd and _renamed(grid, columns, title)
    doubled = arrangement.doubled(grid[header]) if grid else ""
    return Table(header, columns, tuple(chosen), tuple(copies), missing, bound, frozenset(loose), renamed, doubled)


def typed_step(line: Line, shown: Row) -> str:
    """What a person typed over ``next_step``: where the record shall go; empty: nothing was typed there."""
    found = next((gap.found for gap in line.damages if gap.name == "next_step"), "")
    text = found.strip() if isinstance(found, str) and not found.startswith("=") and "#REF!" not in found else ""
    return "" if text.casefold() == shown.next_step.casefold() else text


def _renamed(grid: Grid, columns: Mapping[str, int], title: str) -> bool:
    for cells in grid:
        for name, hidden in _HIDDEN.items():
            if name not in columns:
                continue
            found = refers(cell_at(cells, columns[name]))
            if found is not None and found.title != title and found.column == hidden:
                return True
    return False


def hidden_rows(grid: Grid) -> dict[int, Row]:
    """The hidden rows of records by their place; what is no row of ours is passed over."""
    return {place: Row._make(texts) for place, texts, _ in hidden_cells(grid, len(STATE))}
