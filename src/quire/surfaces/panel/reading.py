"""What people left in the state table: which row is which record's, what was typed, what was damaged. Pure.

A row is a record's by what its cells refer to; if none of them refers to anything any more, by the id that stands in
it. Of several rows of one record the topmost whose cells are whole is the row; the others are copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.surfaces.panel.cells import At, reference, refers
from quire.surfaces.panel.layout import COMMAND, ENGINE, STATE, TABLE, TABLE_ID
from quire.surfaces.panel.table import Row

Grid = Sequence[Sequence[Any]]

_FIRST_COLUMN = STATE.index("record_id")


class Damage(NamedTuple):
    """A cell of the engine's that is not as it was made."""

    at: At
    #: What stands there; empty: it is blank.
    found: Any
    #: What belongs there.
    wanted: str
    column: str


class Line(NamedTuple):
    """One visible row of a record."""

    row: int
    #: The hidden row that it shows.
    place: int
    record_id: str
    #: What was typed as a command, as it stands; empty: nothing.
    command: Any
    damages: tuple[Damage, ...]


class Table(NamedTuple):
    """All of it."""

    header: int
    #: Each of our columns that is there: its name and place.
    columns: Mapping[str, int]
    lines: tuple[Line, ...]
    copies: tuple[Line, ...]
    #: Our columns that are not there.
    missing: tuple[str, ...]
    #: Ids in rows that show no hidden row any more.
    loose: frozenset[str] = frozenset()
    #: Cells of ours refer to a tab of another title: the hidden tab may have been renamed.
    renamed: bool = False


def header_of(grid: Grid) -> tuple[int, dict[str, int]]:
    """Where the header is: the row with most of our names in it; and where each of our columns is."""
    best: tuple[int, dict[str, int]] = (0, {})
    for number, row in enumerate(grid[:50]):
        names = [str(value).strip() for value in row]
        found = {name: names.index(name) for name in TABLE if name in names}
        if len(found) > len(best[1]):
            best = number, found
    return best


def read(grid: Grid, state: Mapping[int, Row], title: str) -> Table:
    """``state``: the hidden rows by their place; ``title``: of the hidden tab."""
    header, columns = header_of(grid)
    places = {row.record_id: place for place, row in state.items()}
    lines: dict[str, list[Line]] = {}
    loose = set()
    whole = _Whole(columns, state, title)
    for number, cells in enumerate(grid):
        if number == header:
            continue
        line = whole.line(number, cells) or _line(number, cells, columns, state, places, title)
        if line is not None:
            lines.setdefault(line.record_id, []).append(line)
        else:
            loose.add(str(_at(cells, columns.get("record_id"))))
    chosen, copies = [], []
    for same in lines.values():
        same.sort(key=lambda line: (len(line.damages), line.row))
        chosen.append(same[0])
        copies += same[1:]
    chosen.sort(key=lambda line: line.row)
    missing = tuple(name for name in TABLE if name not in columns)
    odd = bool(loose) or any(line.damages for line in chosen)
    renamed = odd and _renamed(grid, columns, title)
    return Table(header, columns, tuple(chosen), tuple(copies), missing, frozenset(loose), renamed)


def _renamed(grid: Grid, columns: Mapping[str, int], title: str) -> bool:
    wanted = {name: STATE.index(name) for name in columns if name in ENGINE}
    for cells in grid:
        for name, hidden in wanted.items():
            found = refers(_at(cells, columns[name]))
            if found is not None and found.title != title and found.column == hidden:
                return True
    return False


class _Whole:
    """Recognises a row that is as it was made, quickly: nearly all are."""

    def __init__(self, columns: Mapping[str, int], state: Mapping[int, Row], title: str) -> None:
        self._state = state
        self._command = columns.get(COMMAND)
        shown = [(columns[name], reference(title, STATE.index(name), 0)[:-1]) for name in ENGINE[1:] if name in columns]
        self._first = shown[0] if shown else None
        self._shown = shown[1:]
        self._id = columns.get("record_id")

    def line(self, number: int, cells: Sequence[Any]) -> Line | None:
        if self._first is None or self._id is None:
            return None
        column, start = self._first
        text = _at(cells, column)
        if not isinstance(text, str) or not text.startswith(start):
            return None
        row = text[len(start) :]
        place = int(row) - 1 if row.isdecimal() else -1
        record = self._state.get(place)
        if record is None or _at(cells, self._id) != record.record_id:
            return None
        if any(column >= len(cells) or cells[column] != start + row for column, start in self._shown):
            return None
        return Line(number, place, record.record_id, _at(cells, self._command), ())


def _line(
    number: int,
    cells: Sequence[Any],
    columns: Mapping[str, int],
    state: Mapping[int, Row],
    places: Mapping[str, int],
    title: str,
) -> Line | None:
    votes: Counter[int] = Counter()
    for name in ENGINE:
        found = refers(_at(cells, columns.get(name)))
        if found is not None and found.title == title and found.row in state:
            votes[found.row] += 1
    given = _at(cells, columns.get("record_id"))
    place = places.get(given) if isinstance(given, str) else None
    if votes:
        [(most, count)] = votes.most_common(1)
        # An id that was typed over is put back; a row of which only the id is left is that record's.
        place = most if count > 1 or place is None else place
    if place is None:
        return None
    record = state[place]
    damages = []
    for name in ENGINE:
        column = columns.get(name)
        if column is None:
            continue
        found_text = _at(cells, column)
        wanted = reference(title, STATE.index(name), place)
        if found_text == wanted or (name == "record_id" and found_text == record.record_id):
            continue
        found = refers(found_text)
        if found is not None and (found.title, found.column, found.row) == (title, STATE.index(name), place):
            continue  # the same in another spelling
        damages.append(Damage(At(TABLE_ID, number, column), found_text, wanted, name))
    return Line(number, place, record.record_id, _at(cells, columns.get(COMMAND)), tuple(damages))


def _at(cells: Sequence[Any], column: int | None) -> Any:
    return cells[column] if column is not None and column < len(cells) else ""


def hidden_rows(grid: Grid) -> dict[int, Row]:
    """The hidden rows of records by their place; what is no row of ours is passed over."""
    found: dict[int, Row] = {}
    for number, cells in enumerate(grid):
        if number >= 1 and cells and cells[_FIRST_COLUMN] not in ("", "record_id"):
            found[number] = Row(*[str(_at(cells, column)) for column in range(len(STATE))])
    return found
