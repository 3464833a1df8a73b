"""Inboxes: which row of a tab is which, and what it says. Pure.

A row gets an id before anything starts: the id stands beside it, and a hidden row keeps it together with the
fingerprint of what was typed. The visible cells refer to that hidden row, so a row keeps its id wherever people sort
or move it. A row without an id whose text equals that of one that is gone *is* that one (it was cut and pasted); a
pasted copy that brings its id along is named and left alone; everything else is a new row (protocol 22).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.model.codec import dump
from quire.surfaces.panel.cells import At, Request, fill, reference, refers, replace
from quire.surfaces.panel.layout import INBOX, INBOX_STATE, WRITE_BACK
from quire.surfaces.panel.values import typed, wants_text
from quire.workflows.sources import Cron

COPY = "a copy of another row: not started; clear the three cells to start it as a new one"
NEW, INCOMPLETE, REFUSED, SCHEDULED = "NEW", "INCOMPLETE", "REFUSED", "SCHEDULED"
#: Nothing was started for a row in one of these.
UNSTARTED = frozenset({"", NEW, INCOMPLETE, REFUSED, SCHEDULED})
_SAFE = re.compile(r"[a-z][a-z0-9_]*_[a-z0-9_]+")


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
    #: Our cells of this row that are not as they should be, with their column's name.
    gaps: tuple[tuple[str, At, Any], ...] = ()
    copied: bool = False
    #: The fingerprint of the input cells alone, under which hidden rows of before kept the answers of forms.
    plain: str = ""


class Sheet(NamedTuple):
    """A tab as it was read."""

    sheet_id: int
    header: tuple[str, ...]
    #: Input columns: the field and its place.
    inputs: Mapping[str, int]
    #: Our columns, and those that are written back.
    ours: Mapping[str, int]
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
    found = {}
    wide = len(INBOX_STATE)
    for number, cells in enumerate(grid):
        if number >= 1 and cells and str(cells[0]) not in ("", "record_id"):
            id_, status, why, tab, print_, at = [str(cells[n]) if n < len(cells) else "" for n in range(wide)]
            found[number] = Hidden(id_, status, why, tab, print_, at, trimmed(cells[wide:]))
    return found


def trimmed(values: Sequence[Any]) -> tuple[Any, ...]:
    """Without the blanks at the end, which Google does not send."""
    kept = list(values)
    while kept and kept[-1] == "":
        kept.pop()
    return tuple(kept)


def read(inbox: Inbox, sheet_id: int, grid: Sequence[Sequence[Any]], hidden: Mapping[int, Hidden], title: str) -> Sheet:
    """The rows of the tab. ``title``: of the hidden tab."""
    header = tuple(str(value) for value in grid[0]) if grid else ()
    names = [normal(name) for name in header]
    ours = {name: names.index(normal(name)) for name in (*INBOX, *inbox.write_back) if normal(name) in names}
    taken = set(ours.values())
    fields = {normal(field): field for field in inbox.fields}
    inputs: dict[str, int] = {}
    for column, name in enumerate(names):
        if column in taken or not name:
            continue
        field = fields.get(name) if fields else header[column].strip()
        if field is not None and field not in inputs:
            inputs[field] = column
    found: dict[int | str, list[Line]] = {}
    strays: list[tuple[At, str, int]] = []
    places = {row.record_id: place for place, row in hidden.items() if row.tab == str(sheet_id)}
    misplaced: list[tuple[At, str]] = []
    standing = _standing(grid, ours.get("record_id"), hidden, title)
    timestamp = 0 if is_form(header) and 0 not in taken and 0 not in inputs.values() else None
    for number, row in enumerate(grid):
        cells = list(row)
        for column in inputs.values() if number else ():
            text = cells[column] if column < len(cells) else ""
            shown = refers(text)
            lost = isinstance(text, str) and text in places and text not in standing
            if lost or (shown is not None and shown.title == title):
                misplaced.append((At(sheet_id, number, column), text))
                cells[column] = ""
        line = _line(inbox, sheet_id, number, cells, inputs, ours, hidden, places, title, timestamp) if number else None
        if line is not None:
            found.setdefault(f"new {number}" if line.place is None else line.place, []).append(line)
        elif number:
            strays += _strays(At(sheet_id, number, 0), cells, ours, places, title)
    lines, copies = [], []
    for place, same in found.items():
        if isinstance(place, int):
            same.sort(key=lambda line: (not unedited(line, hidden[place]), line.copied, line.row))
        lines.append(same[0])
        copies += same[1:]
    missing = tuple(name for name in (*INBOX, *inbox.write_back) if name not in ours)
    lines.sort(key=lambda line: line.row)
    return Sheet(sheet_id, header, inputs, ours, tuple(lines), tuple(copies), missing, tuple(strays), tuple(misplaced))


def is_form(header: Sequence[str]) -> bool:
    """Whether a form fills the tab: it says in its first column when each answer came."""
    return bool(header) and normal(header[0]) in ("timestamp", "zeitstempel")


def unedited(line: Line, row: Hidden) -> bool:
    """Whether the row still says what it said when its hidden row was written."""
    return row.fingerprint in (line.fingerprint, line.plain)


def _standing(
    grid: Sequence[Sequence[Any]], column: int | None, hidden: Mapping[int, Hidden], title: str
) -> frozenset[str]:
    """The ids that stand where they belong: the same text elsewhere was typed by somebody who means it."""
    if column is None:
        return frozenset()
    found = set()
    for cells in grid[1:]:
        text = cells[column] if column < len(cells) else ""
        shown = refers(text)
        if shown is not None and shown.title == title and shown.row in hidden:
            found.add(hidden[shown.row].record_id)
        else:
            found.add(str(text))
    return frozenset(found)


def _strays(
    at: At, cells: Sequence[Any], ours: Mapping[str, int], places: Mapping[str, int], title: str
) -> list[tuple[At, str, int]]:
    found = []
    for column in ours.values():
        text = cells[column] if column < len(cells) else ""
        shown = refers(text)
        if shown is not None and shown.title == title:
            found.append((at._replace(column=column), text, shown.row))
        elif isinstance(text, str) and text in places:
            found.append((at._replace(column=column), text, places[text]))
    return found


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
    inbox: Inbox,
    sheet_id: int,
    number: int,
    cells: Sequence[Any],
    inputs: Mapping[str, int],
    ours: Mapping[str, int],
    hidden: Mapping[int, Hidden],
    places: Mapping[str, int],
    title: str,
    timestamp: int | None,
) -> Line | None:
    def at(column: int) -> Any:
        return cells[column] if column < len(cells) else ""

    given = {field: at(column) for field, column in inputs.items()}
    if all(str(value).strip() == "" for value in given.values()):
        return None
    place = None
    for column in ours.values():
        found = refers(at(column))
        if found is not None and found.title == title and found.row in hidden:
            place = found.row
            break
    id_text = str(at(ours["record_id"])) if "record_id" in ours else ""
    if place is None:
        place = places.get(id_text)
    gaps = []
    if place is not None:
        for name, column in ours.items():
            wanted = reference(title, column_of(inbox, name), place)
            if name == "record_id" and at(column) == hidden[place].record_id:
                continue
            if at(column) != wanted:
                gaps.append((name, At(sheet_id, number, column), at(column)))
    copied = "record_status" in ours and at(ours["record_status"]) == COPY
    plain = fingerprint(given)
    told = plain if timestamp is None else fingerprint(given | {"": at(timestamp)})
    return Line(number, given, told, place, id_text, tuple(gaps), copied, plain)


def column_of(inbox: Inbox, name: str) -> int:
    """The hidden column behind a visible one."""
    if name in INBOX:
        return INBOX.index(name)
    return len(INBOX_STATE) + inbox.write_back.index(name)


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
            if row.tab == str(sheet.sheet_id) and row.fingerprint == wanted and place not in visible
        ),
        None,
    )


def stamp(
    inbox: Inbox, sheet: Sheet, line: Line, place: int, record_id: str, title: str, *, blanks: bool
) -> list[Request]:
    """Put the id and the references beside a row that has none, where its cells are blank or broken."""
    requests: list[Request] = []
    for name, column in sheet.ours.items():
        at = At(sheet.sheet_id, line.row, column)
        text = reference(title, column_of(inbox, name), place)
        if name == "record_id":
            if line.id_text == record_id:
                continue
            if _SAFE.fullmatch(record_id):
                text = record_id
        found = _found(line, name)
        if found == "" or found is None:
            requests += fill(at, text, blanks=blanks)
        elif isinstance(found, str) and "#REF!" in found:
            requests.append(replace(at, found, text))
    return requests


def _found(line: Line, name: str) -> Any:
    return next((found for gap, _, found in line.gaps if gap == name), "" if name != "record_id" else line.id_text)


def heal(inbox: Inbox, line: Line, record_id: str, title: str, *, blanks: bool) -> list[Request]:
    """Our cells of a row that has its id: blank ones are filled, ours that were typed over are put back."""
    assert line.place is not None
    requests: list[Request] = []
    for name, at, found in line.gaps:
        text = reference(title, column_of(inbox, name), line.place)
        if found == "":
            requests += fill(at, text, blanks=blanks)
        elif isinstance(found, str) and (name in INBOX or "#REF!" in found or _ours(found, record_id, title)):
            requests.append(replace(at, found, text))
    return requests


def _ours(found: str, record_id: str, title: str) -> bool:
    """A cell of ours that stands in the wrong column."""
    shown = refers(found)
    return (shown is not None and shown.title == title) or found == record_id


def name_copy(inbox: Inbox, sheet: Sheet, line: Line, title: str) -> list[Request]:
    """Say of a pasted row that it is one."""
    column = sheet.ours.get("record_status")
    if column is None or line.copied or line.place is None:
        return []
    was = reference(title, column_of(inbox, "record_status"), line.place)
    return [replace(At(sheet.sheet_id, line.row, column), was, COPY)]


# -- what a row says ---------------------------------------------------------------------------------------------


def lacking(inbox: Inbox, given: Mapping[str, Any]) -> list[str]:
    """Required fields that are blank, or have no column at all."""
    return [field for field in inbox.required if str(given.get(field, "")).strip() == ""]


def must_be_shown(inbox: Inbox, given: Mapping[str, Any]) -> bool:
    """Whether how the cells look is needed: a number, or what may become one, stands where text is wanted."""
    properties = (inbox.schema or {}).get("properties", {})
    return any(
        wants_text(properties.get(field, {})) and (not isinstance(value, str) or value.startswith("="))
        for field, value in given.items()
    )


def data_of(inbox: Inbox, given: Mapping[str, Any], shown: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """The data that a row stands for: its filled cells, each as the type that its field wants if it can be one."""
    properties = (inbox.schema or {}).get("properties", {})
    data = {}
    for field, value in given.items():
        if isinstance(value, str) and value.strip() == "":
            continue
        data[field] = typed(value, str(shown.get(field, value)), properties.get(field, {}), zone)
    return data
