"""The rows of a table: which record each belongs to, what a person typed as its status, what is to be corrected. Pure.

A row is known by the id that stands in it: in a column of people's, or in one that we add. Whoever sorts between our
read and our write makes a reference of ours meet another row. Such a *foreign* reference says which text it took the
place of (``TableRow.was``): that is what its row says until it is put right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.surfaces.panel.binding import RECORD_ID, Bound, Gap, Grid, cell_at, hidden_cells, one_each
from quire.surfaces.panel.cells import At
from quire.surfaces.panel.inbox import fingerprint
from quire.surfaces.panel.layout import TABLE_STATE
from quire.surfaces.panel.starting import id_text
from quire.surfaces.panel.tables.declaration import CONTEXT, NOTE, STATUS, Columns, Declared, cells_of

#: What a hidden row is: about to start; lacking something, or refused; started.
NEW, WAITS, STARTED = "NEW", "WAITS", "STARTED"

COPY = "a copy of another row: not started; give it an id of its own and a status to start it"
TWICE = "not started: another row has the same id"
NO_ID = "not started: its id is blank"
FORMULA = "not started: its status is a formula, which Quire does not write over"
#: Notes that stand in rows which have no hidden row.
SAID = frozenset({COPY, TWICE, NO_ID, FORMULA})


class TableRow(NamedTuple):
    """The hidden row of a row."""

    record_id: str
    word: str
    note: str
    tab: str
    key: str
    mark: str
    fingerprint: str
    #: The text that our reference takes the place of, until it was seen in its cell.
    was: str
    version: str
    code: str
    #: The data that the context column held before our reference took its place.
    started: str
    slots: tuple[Any, ...] = ()


class Line(NamedTuple):
    """One row."""

    row: int
    key: str
    place: int | None
    #: What a person typed as its status; None: our reference stands there, or nothing that we may touch.
    typed: Any
    #: Our reference to another row stands there.
    foreign: bool
    #: A formula of people's stands there.
    formula: bool
    #: Our reference to its own hidden row stands there.
    shows: bool
    gaps: tuple[Gap, ...]
    given: dict[str, Any]
    context: Any
    fingerprint: str
    cells: Sequence[Any]
    note: Any


class Sheet(NamedTuple):
    """The tab as it was read."""

    bound: Bound
    columns: Columns
    lines: tuple[Line, ...]
    copies: tuple[Line, ...]
    #: Rows that share their id with another one and are bound to nothing.
    twice: tuple[Line, ...]
    #: Cells of ours in columns of people's, or beside blank rows.
    strays: tuple[tuple[At, str], ...]
    #: Hidden rows whose visible row is not there.
    gone: frozenset[int]


def hidden_rows(grid: Grid) -> dict[int, TableRow]:
    return {place: TableRow._make([*texts, rest]) for place, texts, rest in hidden_cells(grid, len(TABLE_STATE))}


def read(
    table: Declared, columns: Columns, sheet_id: int, grid: Grid, hidden: Mapping[int, TableRow], title: str
) -> Sheet:
    reader = _Reader(
        columns,
        sheet_id,
        grid,
        hidden,
        Bound(
            sheet_id,
            columns.ours,
            cells_of(table, columns),
            {place: row.record_id for place, row in hidden.items() if row.tab == str(sheet_id)},
            title,
        ),
    )
    found: list[tuple[int | str, Line]] = []
    for number, row in enumerate(grid):
        line = reader.line(number, list(row)) if number > columns.header else None
        if line is not None:
            found.append((line.place if line.place is not None else f"new {number}", line))
    lines, copies = one_each(found, lambda line: (len(line.gaps), line.row))
    twice = [line for line in lines if line.place is None and line.key and reader.standing[line.key] > 1]
    lines = sorted((line for line in lines if line not in twice), key=lambda line: line.row)
    gone = frozenset(reader.mine) - {line.place for line in lines if line.place is not None}
    return Sheet(reader.bound, columns, tuple(lines), tuple(copies), tuple(twice), tuple(reader.strays), gone)


class _Reader:
    """Reads one row after the other."""

    def __init__(
        self, columns: Columns, sheet_id: int, grid: Grid, hidden: Mapping[int, TableRow], bound: Bound
    ) -> None:
        self.columns = columns
        self.bound = bound
        self.mine = {place: hidden[place] for place in bound.ids}
        self.strays: list[tuple[At, str]] = []
        self._sheet_id = sheet_id
        self._keys = {row.key: place for place, row in self.mine.items() if row.key}
        own = columns.id is None
        column = columns.ours.get(RECORD_ID) if own else columns.id
        self._texts = [_key(bound, cell_at(cells, column)) for cells in grid]
        self.standing = Counter(text for text in self._texts[columns.header + 1 :] if text)
        # Where people have ids of their own, ours stand nowhere as text: who types one means it.
        places = frozenset(bound.places)
        self._known = places & frozenset(self.standing) if own else places
        self._theirs = set(columns.inputs.values()) | ({columns.id} if columns.id is not None else set())

    def line(self, number: int, cells: list[Any]) -> Line | None:
        """The row; None: it is blank, but for cells of ours that met it."""
        columns, bound = self.columns, self.bound
        for at in bound.misplaced(number, cells, self._theirs, self._known):
            self.strays.append((at, cells[at.column]))
            cells[at.column] = ""
        key = self._texts[number]
        given = {field: cell_at(cells, column) for field, column in columns.inputs.items()}
        status = cell_at(cells, columns.ours[STATUS])
        blank = not key and all(str(value).strip() == "" for value in given.values())
        if blank and (bound.shown(status) is not None or str(status).strip() == ""):
            self.strays += [(at, text) for at, text, _ in bound.beside(number, cells)]
            return None
        place = bound.place(cells)
        if columns.id is None:
            if place is not None and _id_alone(bound, cells, place, given, self.mine):
                # Somebody sorted between our read and our write.
                at = At(self._sheet_id, number, columns.ours[RECORD_ID])
                self.strays.append((at, str(cells[at.column])))
                cells[at.column], key, place = "", "", None
        elif key:
            place = self._named(key, place)
        return _line(columns, bound, self.mine, number, cells, key, place, given)

    def _named(self, key: str, place: int | None) -> int | None:
        """The hidden row of this id; or the one that the cells refer to, if the id was edited in its row."""
        named = self._keys.get(key)
        edited = named is None and place is not None and self.mine[place].key not in self.standing
        return place if edited else named


def _id_alone(
    bound: Bound, cells: Sequence[Any], place: int, given: Mapping[str, Any], mine: Mapping[int, TableRow]
) -> bool:
    """Whether nothing but our id says that this is the row of that record, and it says other things than that one."""
    return not bound.refers_to(cells, place) and fingerprint(given) != mine[place].fingerprint


def _key(bound: Bound, cell: Any) -> str:
    place = bound.shown(cell)
    return bound.ids.get(place, "") if place is not None else id_text(cell)


def _line(
    columns: Columns,
    bound: Bound,
    mine: Mapping[int, TableRow],
    number: int,
    cells: Sequence[Any],
    key: str,
    place: int | None,
    given: dict[str, Any],
) -> Line:
    status = cell_at(cells, columns.ours[STATUS])
    shown = bound.shown(status)
    gaps = bound.gaps(number, cells, place) if place is not None else ()
    shows = place is not None and shown == place and all(gap.name != STATUS for gap in gaps)
    foreign = shown is not None and not shows
    formula = isinstance(status, str) and status.startswith("=") and shown is None and "#REF!" not in status
    typed: Any = status
    if foreign:
        typed = mine[shown].was if shown is not None and shown in mine else ""
    elif shows or formula or (isinstance(status, str) and "#REF!" in status):
        typed = None
    context = cell_at(cells, columns.ours.get(CONTEXT))
    other = bound.shown(context)
    if other is not None:
        context = mine[other].started if other in mine else ""
    note = cell_at(cells, columns.ours.get(NOTE))
    print_ = fingerprint(given)
    return Line(number, key, place, typed, foreign, formula, shows, gaps, given, context, print_, cells, note)
