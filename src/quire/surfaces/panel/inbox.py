"""Inboxes: which row of a tab is which, and what it says. Pure.

A row gets an id before anything starts: the id stands beside it, and a hidden row keeps it together with the
fingerprint of what was typed. The visible cells refer to that hidden row, so a row keeps its id wherever people sort
or move it. A row without an id whose text equals that of one that is gone *is* that one (it was cut and pasted); a
pasted copy that brings its id along is named and left alone; everything else is a new row (protocol 22).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from quire.client.arguments import checked_id
from quire.errors import QuireError
from quire.model.codec import dump
from quire.surfaces.panel.binding import RECORD_ID, Bound, Gap, cell_at, hidden_cells, one_each
from quire.surfaces.panel.cells import At, Request, letters, replace
from quire.surfaces.panel.layout import INBOX, INBOX_STATE, WRITE_BACK
from quire.surfaces.panel.starting import INCOMPLETE, REFUSED
from quire.workflows.sources import Cron

COPY = "a copy of another row: not started; clear the three cells to start it as a new one"
NEW, SCHEDULED = "NEW", "SCHEDULED"
#: Nothing was started for a row in one of these.
UNSTARTED = frozenset({"", NEW, INCOMPLETE, REFUSED, SCHEDULED})


class Inbox(NamedTuple):
    """An inbox as a workflow declares it."""

    tab: str
    workflow: str
    #: The fields of the data, and which of them are needed; empty: any column is a field.
    fields: tuple[str, ...]
    required: tuple[str, ...]
    schema: Mapping[str, Any] | None
    write_back: tuple[str, ...]
    at: Cron | None


class Hidden(NamedTuple):
    """The hidden row of a row."""

    record_id: str
    status: str
    why: str
    tab: str
    fingerprint: str
    at: str
    written: tuple[Any, ...] = ()


class Line(NamedTuple):
    """One row that somebody typed."""

    row: int
    #: What stands in each input column, formulas as formulas.
    given: dict[str, Any]
    fingerprint: str
    #: The hidden row; None: it has none yet.
    place: int | None
    #: What stands in the column ``record_id``.
    id_text: str
    cells: Sequence[Any]
    #: Our cells of this row that are not as they should be, with their column's name.
    gaps: tuple[Gap, ...] = ()
    copied: bool = False
    #: The fingerprint of the input cells alone, under which hidden rows of before kept the answers of forms.
    plain: str = ""


class Sheet(NamedTuple):
    """A tab as it was read."""

    bound: Bound
    header: tuple[str, ...]
    #: Input columns: the field and its place.
    inputs: Mapping[str, int]
    lines: tuple[Line, ...]
    copies: tuple[Line, ...]
    missing: tuple[str, ...]
    #: Cells of ours beside nothing at all: an id that met an inserted row.
    strays: tuple[tuple[At, str, int], ...] = ()
    #: Cells of ours in columns of people's: they met a column that was moved.
    misplaced: tuple[tuple[At, str], ...] = ()


def declared(definition: Mapping[str, Any]) -> list[Inbox]:
    """The inboxes that a registered workflow has."""
    schema = definition.get("schema")
    fields = tuple((schema or {}).get("properties", {}))
    required = tuple((schema or {}).get("required", ()))
    found = []
    for source in definition.get("sources", ()):
        if source.get("kind") == "inbox":
            at = source.get("at")
            cron = Cron(at["spec"], tz=at["tz"]) if at else None
            back = tuple(source.get("write_back", ()))[:WRITE_BACK]
            found.append(Inbox(source["tab"], definition["name"], fields, required, schema, back, cron))
    return found


def normal(name: Any) -> str:
    return re.sub(r"[\W_]+", "_", str(name).strip().casefold()).strip("_")


def hidden_rows(grid: Sequence[Sequence[Any]]) -> dict[int, Hidden]:
    return {place: Hidden._make([*texts, rest]) for place, texts, rest in hidden_cells(grid, len(INBOX_STATE))}


def _inputs(inbox: Inbox, header: Sequence[str], taken: Collection[int]) -> dict[str, int]:
    """The columns that hold a record's data, by field: those of the declaration, or all that are not taken."""
    fields = {normal(field): field for field in inbox.fields}
    inputs: dict[str, int] = {}
    for column, title in enumerate(header):
        name = normal(title)
        if column in taken or not name:
            continue
        field = fields.get(name) if fields else title.strip()
        if field is not None and field not in inputs:
            inputs[field] = column
    return inputs


def read(inbox: Inbox, sheet_id: int, grid: Sequence[Sequence[Any]], hidden: Mapping[int, Hidden], title: str) -> Sheet:
    """The rows of the tab. ``title``: of the hidden tab."""
    header = tuple(str(value) for value in grid[0]) if grid else ()
    names = [normal(name) for name in header]
    shown = columns_of(inbox)
    ours = {name: names.index(normal(name)) for name in shown if normal(name) in names}
    taken = set(ours.values())
    inputs = _inputs(inbox, header, taken)
    ids = {place: row.record_id for place, row in hidden.items() if row.tab == str(sheet_id)}
    bound = Bound(sheet_id, ours, shown, ids, title)
    standing = bound.standing(grid)
    timestamp = 0 if is_form(header) and 0 not in taken and 0 not in inputs.values() else None
    found: list[tuple[int | str, Line]] = []
    strays: list[tuple[At, str, int]] = []
    misplaced: list[tuple[At, str]] = []
    for number, row in enumerate(grid[1:], 1):
        cells = list(row)
        for at in bound.misplaced(number, cells, inputs.values(), standing):
            misplaced.append((at, cells[at.column]))
            cells[at.column] = ""
        line = _line(bound, number, cells, inputs, timestamp)
        if line is None:
            strays += bound.beside(number, cells)
        else:
            found.append((f"new {number}" if line.place is None else line.place, line))

    def rank(line: Line) -> tuple[bool, bool, int]:
        return line.place is not None and not unedited(line, hidden[line.place]), line.copied, line.row

    lines, copies = one_each(found, rank)
    lines.sort(key=lambda line: line.row)
    missing = tuple(name for name in shown if name not in ours)
    return Sheet(bound, header, inputs, tuple(lines), tuple(copies), missing, tuple(strays), tuple(misplaced))


def doubled(inbox: Inbox, grid: Sequence[Sequence[Any]]) -> str:
    """Say which column that counts stands there twice: nobody knows which of the two is meant. Empty: none does."""
    names = [normal(name) for name in (grid[0] if grid else ())]
    counts = {normal(name) for name in [*columns_of(inbox), *inbox.fields]}
    for at, name in enumerate(names):
        if name and name in names[:at] and (name in counts or not inbox.fields):
            where = f"{letters(names.index(name))} and {letters(at)}"
            return f"{inbox.tab!r} has two columns {str(grid[0][at]).strip()!r}, {where}: rename one of them"
    return ""


def is_form(header: Sequence[str]) -> bool:
    """Whether a form fills the tab: it says in its first column when each answer came."""
    return bool(header) and normal(header[0]) in ("timestamp", "zeitstempel")


def unedited(line: Line, row: Hidden) -> bool:
    """Whether the row still says what it said when its hidden row was written."""
    return row.fingerprint in (line.fingerprint, line.plain)


def clear_strays(sheet: Sheet, hidden: Mapping[int, Hidden]) -> list[Request]:
    """Take away what met a wrong cell: in columns of people's, and beside blank rows.

    Beside a blank row only if nothing was started under the id, or its row is elsewhere.
    """
    visible = {line.place for line in sheet.lines}
    cleared = [(at, text) for at, text in sheet.misplaced]
    for at, text, place in sheet.strays:
        if place in visible or place not in hidden or hidden[place].status in UNSTARTED:
            cleared.append((at, text))
    return [replace(at, text, "") for at, text in cleared]


def _line(
    bound: Bound, number: int, cells: Sequence[Any], inputs: Mapping[str, int], timestamp: int | None
) -> Line | None:
    given = {field: cell_at(cells, column) for field, column in inputs.items()}
    if all(str(value).strip() == "" for value in given.values()):
        return None
    place = bound.place(cells)
    gaps = bound.gaps(number, cells, place) if place is not None else ()
    copied = cell_at(cells, bound.columns.get("record_status")) == COPY
    plain = fingerprint(given)
    full = plain if timestamp is None else fingerprint(given | {"": cell_at(cells, timestamp)})
    id_text = str(cell_at(cells, bound.columns.get(RECORD_ID)))
    return Line(number, given, full, place, id_text, cells, gaps, copied, plain)


def columns_of(inbox: Inbox) -> dict[str, int]:
    """Our columns of the tab, and the hidden column that each of them shows."""
    back = {name: len(INBOX_STATE) + number for number, name in enumerate(inbox.write_back)}
    return {name: number for number, name in enumerate(INBOX)} | back


def fingerprint(given: Mapping[str, Any]) -> str:
    """What was typed, in whatever order the columns stand; blank cells do not count.

    Of a form's answer also when it came: people give the same answer twice, and mean two.
    """
    filled = {field: value for field, value in sorted(given.items()) if str(value).strip() != ""}
    return hashlib.sha256(dump(filled).encode()).hexdigest()[:24]


def vanished(sheet: Sheet, hidden: Mapping[int, Hidden], wanted: str, taken: set[int]) -> int | None:
    """A hidden row with this fingerprint whose visible row is gone: the same row, pasted back."""
    visible = {line.place for line in sheet.lines} | taken
    return next(
        (
            place
            for place, row in hidden.items()
            if row.tab == str(sheet.bound.sheet_id) and row.fingerprint == wanted and place not in visible
        ),
        None,
    )


def stamp(sheet: Sheet, line: Line, place: int, record_id: str, *, blanks: bool) -> list[Request]:
    """Put the id and the references beside a row that has none, where its cells are blank or broken."""
    known = sheet.bound.also(place, record_id)
    gaps = known.gaps(line.row, line.cells, place)
    return [request for gap in gaps for request in known.repair(gap, kept=False, blanks=blanks)]


def heal(sheet: Sheet, line: Line, *, blanks: bool) -> list[Request]:
    """Our cells of a row that has its id: blank ones are filled, ours that were typed over are put back."""
    gaps = line.gaps
    return [request for gap in gaps for request in sheet.bound.repair(gap, kept=gap.name in INBOX, blanks=blanks)]


def name_copy(sheet: Sheet, line: Line) -> list[Request]:
    """Say of a pasted row that it is one."""
    if line.copied or line.place is None:
        return []
    return sheet.bound.name_copy("record_status", line.row, line.place, COPY)


def is_id(text: str) -> bool:
    """Something that could be an id stands in the column already: the row was ours before its hidden row was lost."""
    try:
        return bool(text) and not text.startswith(("=", "#")) and checked_id(text) == text
    except QuireError:
        return False


def slug(name: str) -> str:
    return normal(name).encode("ascii", "ignore").decode().strip("_") or "row"
