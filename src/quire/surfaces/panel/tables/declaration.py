"""A table as a workflow declares it, and where its columns stand in a tab. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.model.record import Record, Status
from quire.model.state import declared_state
from quire.surfaces.panel.binding import RECORD_ID, Grid, cell_at
from quire.surfaces.panel.cells import letters
from quire.surfaces.panel.inbox import normal
from quire.workflows.sources import Cron
from quire.workflows.words import AGENT_COLUMNS, AGENT_CONTEXT, AGENT_ID, STEP

#: The columns that a table gets if the tab has none for it.
OWN_ID, OWN_NOTE = "Quire_ID", "Quire_Note"
#: So far down the header is looked for.
TOP_ROWS = 30
_LETTER = re.compile(r"([A-Za-z]{1,3})(?::\1)?", re.IGNORECASE)

STATUS, NOTE, CONTEXT = "status", "note", "context"


class Declared(NamedTuple):
    """A table of one workflow."""

    tab: str
    workflow: str
    status: str
    words: Mapping[str, str]
    agent: bool
    id: str | None
    header: int | None
    columns: Mapping[str, str]
    show: Mapping[str, str]
    write_back: tuple[str, ...]
    context: str | None
    blank: str
    yes: bool
    fields: tuple[str, ...]
    required: tuple[str, ...]
    schema: Mapping[str, Any] | None
    #: The first step of the workflow, and whether it is a state.
    first: str
    rests: bool
    #: What is cancelled is undone.
    undo: bool
    #: Rows that are ready start by this schedule; None: at once.
    at: Cron | None = None

    @property
    def ready(self) -> str:
        return self.words["ready"]

    @property
    def slots(self) -> tuple[str, ...]:
        """What the hidden row holds beside the word and the note, by the names of our columns."""
        shown = [f"show {name}" for name in ("attempts", "updated_at", "why", "asks", RECORD_ID, "link")]
        return (*shown, CONTEXT, *(f"back {name}" for name in self.write_back))

    @property
    def begun_word(self) -> str:
        """What a row says that is about to start."""
        return self.first if self.rests else self.words["runs"].replace(STEP, self.first.upper())


def declared(definition: Mapping[str, Any]) -> list[Declared]:
    """The tables that a registered workflow has."""
    schema = definition.get("schema") or {}
    first = next(step for step in definition["steps"] if step["name"] == definition["first"])
    found = []
    for source in definition.get("sources", ()):
        if source.get("kind") != "table":
            continue
        given = {name: source[name] for name in Declared._fields if name in source}
        more = {
            "workflow": definition["name"],
            "fields": tuple(schema.get("properties", {})),
            "required": tuple(schema.get("required", ())),
            "schema": definition.get("schema"),
            "first": first["name"],
            "rests": first["rests"],
            "undo": definition.get("on_failure") == "undo",
            "write_back": tuple(source["write_back"]),
        }
        at = source.get("at")
        more["at"] = Cron(at["spec"], tz=at["tz"]) if at else None
        found.append(Declared(**{**given, **more}))
    return found


def word_of(table: Declared, record: Record, kind: str = "") -> str:
    """What the status column says of a record. ``kind``: of the last line of its log."""
    if state := declared_state(record):
        return state
    match record.status:
        case Status.DONE:
            name = "done"
        case Status.ERROR:
            name = "error"
        case Status.CANCELLED:
            name = "cancelled"
        case Status.NEEDS_APPROVAL:
            name = "asks"
        case Status.WAITING:
            name = "waits"
        case Status.PENDING if kind == "yielded":
            name = "yielded"
        case _:
            name = "runs"
    return table.words[name].replace(STEP, record.step.lstrip("@").upper())


# -- columns ---------------------------------------------------------------------------------------------------------


class Columns(NamedTuple):
    """Where the columns of a table stand."""

    #: The row of the header, from 0.
    header: int
    #: Ours, by name: the status, the note, what is shown and written back; our own id if people have none.
    ours: Mapping[str, int]
    #: The column of people's ids.
    id: int | None
    inputs: Mapping[str, int]
    #: The names of columns that we add at the end.
    missing: tuple[str, ...]
    #: What is wrong with the header; nothing is written then.
    problem: str = ""
    #: How columns that were named by a range or a letter are called, to be followed by that.
    called: Mapping[str, str] = {}


class _Header:
    """The header row of a tab, and how a column in it is found."""

    def __init__(
        self, table: Declared, grid: Grid, row: int, ranges: Mapping[str, int], called: Mapping[str, str]
    ) -> None:
        self.row = row
        self.texts = [str(text).strip() for text in (grid[row] if row < len(grid) else ())]
        self.names = [normal(text) for text in self.texts]
        self.wide = max([len(cells) for cells in grid[row:]], default=0)
        self._ranges = ranges
        self._called = called
        self._tab = table.tab
        self.called: dict[str, str] = {}
        self.problems: list[str] = []

    def named(self, name: str) -> int | None:
        """The one column of this name, if there is one."""
        return self.names.index(normal(name)) if normal(name) in self.names else None

    def find(self, name: str) -> int | None:
        """The column that a header, a named range or a letter means; None, with a problem: none, or several do."""
        wanted = self._called.get(name, name)
        places = [at for at, text in enumerate(self.names) if text and text == normal(wanted)]
        if len(places) > 1:
            where = " and ".join(letters(at) for at in places[:2])
            self.problems.append(f"{self._tab!r} has two columns {wanted!r}, {where}: rename one of them")
            return None
        if places:
            return places[0]
        column = self._ranges.get(name.casefold())
        if column is None and (letter := _LETTER.fullmatch(name)) is not None and name not in self._called:
            column = -1
            for each in letter[1].upper():
                column = (column + 1) * 26 + ord(each) - ord("A")
        if column is None or column >= len(self.texts) or not self.texts[column]:
            where = f"in row {self.row + 1}" if column is None else f"with a header in row {self.row + 1}"
            self.problems.append(f"{self._tab!r} has no column {wanted!r} {where}")
            return None
        self.called[name] = self.texts[column]
        return column


def header_row(table: Declared, grid: Grid, ranges: Mapping[str, int], called: Mapping[str, str]) -> int | None:
    """The first row that names the status column and a field; or a field, if a range or a letter names that column."""
    if table.header is not None:
        return table.header - 1
    status = normal(called.get(table.status, table.status))
    known = [
        *table.fields,
        *table.columns,
        *table.write_back,
        *table.show.values(),
        table.id or "",
        table.context or "",
    ]
    known += [AGENT_ID, AGENT_CONTEXT, *AGENT_COLUMNS.values()] if table.agent else []
    others = {normal(name) for name in known} - {"", status}
    for row, cells in enumerate(grid[:TOP_ROWS]):
        names = {normal(text) for text in cells} - {""}
        by_name = status in names
        enough = bool(names & others) or (not table.fields and len(names) > 1)
        if by_name and (enough or len(names) == 1):
            return row
        if enough and not by_name and (table.status.casefold() in ranges or _LETTER.fullmatch(table.status)):
            return row
    return None


def find_columns(table: Declared, grid: Grid, ranges: Mapping[str, int], called: Mapping[str, str]) -> Columns:
    """``ranges``: the named ranges of this tab and their columns; ``called``: how columns were called before."""
    row = header_row(table, grid, ranges, called)
    if row is None:
        text = (
            f"{table.tab!r} has no header: no row names the column {table.status!r} and a field of {table.workflow!r}"
        )
        return Columns(0, {}, None, {}, (), text)
    head = _Header(table, grid, row, ranges, called)
    ours, missing = _ours(table, head)
    key = head.find(table.id) if table.id else None
    inputs = _inputs(table, head, set(ours.values()))
    if CONTEXT not in ours:
        head.problems += [
            f"{table.tab!r} has no column for {field!r} in row {row + 1}, which {table.workflow!r} needs"
            for field in table.required
            if field not in inputs
        ]
    return Columns(row, ours, key, inputs, tuple(missing), "; ".join(head.problems), head.called)


def _ours(table: Declared, head: _Header) -> tuple[dict[str, int], list[str]]:
    """Our columns that are there, and the names of those that we add."""
    found: dict[str, int | None] = {}
    missing: list[str] = []

    def own(name: str, columns: Sequence[str]) -> None:
        found[name] = next((at for at in map(head.named, columns) if at is not None), None)
        if found[name] is None:
            missing.append(columns[-1])

    agent = AGENT_COLUMNS if table.agent else {}
    found[STATUS] = head.find(table.status)
    if table.id is None:
        own(RECORD_ID, (AGENT_ID, OWN_ID) if table.agent else (OWN_ID,))
    if "error" in table.show:
        found[NOTE] = head.find(table.show["error"])
    else:
        own(NOTE, (agent["error"], OWN_NOTE) if agent else (OWN_NOTE,))
    shown = {name: column for name, column in agent.items() if name != "error" and head.named(column) is not None}
    for name, column in {**shown, **table.show}.items():
        if name != "error":
            found[f"show {name}"] = head.find(column)
    if table.context or (table.agent and head.named(AGENT_CONTEXT) is not None):
        found[CONTEXT] = head.find(table.context or AGENT_CONTEXT)
    mapped = {field: column for column, field in table.columns.items()}
    for field in table.write_back:
        found[f"back {field}"] = head.find(mapped.get(field) or _called_like(head, field))
    return {name: at for name, at in found.items() if at is not None}, missing


def _inputs(table: Declared, head: _Header, taken: set[int]) -> dict[str, int]:
    """The columns of the fields: those that the declaration names, then those that are called like them."""
    inputs: dict[str, int] = {}
    for column, field in table.columns.items():
        if field not in table.write_back and (found := head.find(column)) is not None:
            inputs[field] = found
    fields = {normal(field): field for field in table.fields}
    for at, name in enumerate(head.names):
        if not name or at in taken or at in inputs.values():
            continue
        wanted = fields.get(name, "") if table.fields else head.texts[at]
        if wanted and wanted not in inputs:
            inputs[wanted] = at
    return inputs


def _called_like(head: _Header, field: str) -> str:
    found = head.named(field)
    return head.texts[found] if found is not None else field


def cells_of(table: Declared, columns: Columns) -> dict[str, int]:
    """Our columns, and the hidden column that each of them shows."""
    from quire.surfaces.panel.layout import TABLE_STATE

    hidden = {RECORD_ID: 0, STATUS: 1, NOTE: 2}
    hidden |= {name: len(TABLE_STATE) + at for at, name in enumerate(table.slots)}
    return {name: hidden[name] for name in columns.ours}


def is_form(columns: Columns, grid: Grid) -> bool:
    """Whether a form fills the tab: its first column says when each answer came."""
    return normal(cell_at(grid[columns.header], 0)) in ("timestamp", "zeitstempel")
