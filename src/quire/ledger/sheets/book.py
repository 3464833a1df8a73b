"""The book of a Sheets ledger: its two hidden tabs, its head, and the requests that make one commit.

The head is a named range whose *id* is the token of the last journal entry. A commit first updates the range of that
id, which fails if another commit has replaced it: that is the fence. Tabs are known by their ids, so people may rename
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.clock import iso, new_id
from quire.errors import LedgerError
from quire.google.budget import Urgency
from quire.google.error import Invalid
from quire.google.sheets import Sheets
from quire.ledger.sheets.journal_rows import ACCEPTED_AT, COLUMNS, WIDTH, Entry, cells
from quire.model.record import Record, Status

JOURNAL_ID = 1903000001
STATE_ID = 1903000002
HEAD = "QUIRE_HEAD"

#: The engine's own tab, one row per record, for whoever looks: nothing is decided by it.
STATE_COLUMNS = (
    "record_id",
    "status",
    "next_step",
    "dedupe_key",
    "last_run_id",
    "last_error",
    "updated_at",
    "why",
    "asks",
    "workflow",
    "version",
)
#: People look at these cells; the whole text is in the journal.
STATE_CHARACTERS = 2000

_LAST_COLUMN = chr(ord("A") + ACCEPTED_AT)


class Run(NamedTuple):
    """Rows of the tab ``state`` that follow each other and are brought up to date."""

    #: The first of them, counted from 0.
    start: int
    record_ids: tuple[str, ...]


class Shown(NamedTuple):
    """What a read shows. None: it was not asked for, or the book does not have all of it."""

    #: The journal from some row on.
    rows: list[list[Any]]
    #: Its header, and rows of it that were read before.
    header: list[list[Any]] | None = None
    seen: list[list[Any]] | None = None
    #: Rows of the tab ``state``.
    state: list[list[Any]] | None = None


class Echo(NamedTuple):
    """What the book shows after a batch."""

    #: (token, prev_token) of the journal's rows from the place of the entry on.
    tokens: list[list[str]]
    #: What the book had accepted just before this batch; empty: it does not tell.
    accepted: str
    #: Whether the rows of the tab ``state`` are still those that were meant.
    state_is_right: bool


class Book:
    """One spreadsheet."""

    def __init__(self, sheets: Sheets, spreadsheet_id: str) -> None:
        self.sheets = sheets
        self.spreadsheet_id = spreadsheet_id
        self.head_name = HEAD
        #: The journal has no column for what was accepted before; rows are identified by their places then.
        self.narrow = False
        self._journal = "journal"
        self._state = "state"

    # -- tabs ------------------------------------------------------------------------------------------------------

    async def look(self) -> tuple[set[int], set[str], bool]:
        """The ids of the tabs, their titles, and whether there is a head. Learns what the journal is called now."""
        fields = "sheets.properties(sheetId,title,gridProperties.columnCount),namedRanges(namedRangeId,name)"
        found = await self.sheets.spreadsheets_get(self.spreadsheet_id, fields=fields)
        about = {tab["properties"].get("sheetId", 0): tab["properties"] for tab in found.get("sheets", [])}
        tabs = {sheet_id: properties["title"] for sheet_id, properties in about.items()}
        wide = about.get(JOURNAL_ID, {}).get("gridProperties", {}).get("columnCount", ACCEPTED_AT + 1)
        self.narrow = wide <= ACCEPTED_AT
        self._journal = tabs.get(JOURNAL_ID, self._journal)
        self._state = tabs.get(STATE_ID, self._state)
        head = any(named.get("name", "").startswith(HEAD) for named in found.get("namedRanges", []))
        return set(tabs), set(tabs.values()), head

    async def renamed(self) -> bool:
        """Learn the titles of the tabs again. Say whether people have changed one since the last time."""
        before = self._journal, self._state
        await self.look()
        return before != (self._journal, self._state)

    async def create(self, first: Entry, titles: set[str]) -> None:
        """Make the tabs, the first entry and the head: all or nothing. Whoever comes second is refused."""
        journal = next(title for title in ("journal", "quire_journal", new_id("journal_")) if title not in titles)
        requests: list[dict[str, Any]] = [
            _add_sheet(JOURNAL_ID, journal, ACCEPTED_AT + 1),
            _write(JOURNAL_ID, 0, [COLUMNS]),
            _write(JOURNAL_ID, 0, [[first.token]], column=ACCEPTED_AT),
            *self.state_tab(titles),
            {"addNamedRange": {"namedRange": _head(first.token, self.head_name)}},
            *_insert(JOURNAL_ID, 1, cells(first)),
        ]
        await self.sheets.spreadsheets_batch_update(self.spreadsheet_id, requests, repeatable=True)
        self._journal = journal

    def state_tab(self, titles: set[str]) -> list[dict[str, Any]]:
        """Requests that make the tab ``state``."""
        title = next(title for title in ("state", "quire_state", new_id("state_")) if title not in titles)
        return [_add_sheet(STATE_ID, title, len(STATE_COLUMNS)), _write(STATE_ID, 0, [STATE_COLUMNS])]

    # -- reading ---------------------------------------------------------------------------------------------------

    async def rows(self, first: int, urgency: Urgency) -> list[list[Any]]:
        """Return the journal from this row on (counted from 1); empty if there is no such row."""
        return (await self.read(first, urgency)).rows

    async def read(
        self, first: int, urgency: Urgency, *, seen: tuple[int, int] | None = None, state: tuple[int, int] | None = None
    ) -> Shown:
        """Return the journal from this row on, in one request with what else is asked for. Rows are counted from 1.

        ``seen``: first and last of some rows of the journal, with which its header comes. ``state``: of the tab
        ``state``.
        """
        for again in (False, True):
            wanted = [_part(JOURNAL_ID, first, None, ACCEPTED_AT + 1)]
            if seen is not None:
                wanted += [_part(JOURNAL_ID, 1, 1, WIDTH), _part(JOURNAL_ID, *seen, WIDTH)]
            if state is not None:
                wanted.append(_part(STATE_ID, *state, len(STATE_COLUMNS)))
            try:
                found = await self.sheets.values_batch_get_by_data_filter(self.spreadsheet_id, wanted, urgency=urgency)
                rows, *rest = found
                header, some = (rest[0], rest[1]) if seen is not None else (None, None)
                return Shown(rows, header, some, rest[-1] if state is not None else None)
            except Invalid:
                if again and seen is None and state is None:
                    return Shown([])
                tabs, _, _ = await self.look()  # a tab is gone, or shorter than that
                if JOURNAL_ID not in tabs:
                    raise LedgerError(
                        f"the tab of the journal was deleted from the book {self.spreadsheet_id}; restore the book "
                        "to a version before that (File > Version history)"
                    ) from None
                if again:
                    return await self.read(first, urgency)
        return Shown([])

    # -- writing ---------------------------------------------------------------------------------------------------

    def commit(self, entry: Entry, after: int, fence: str) -> list[dict[str, Any]]:
        """Return the requests that append the entry after the row ``after``, if the head still is ``fence``."""
        rows = cells(entry)
        requests: list[dict[str, Any]] = [
            {"updateNamedRange": {"namedRange": {"namedRangeId": fence, "range": HEAD_RANGE}, "fields": "range"}},
            {"deleteNamedRange": {"namedRangeId": fence}},
            {"addNamedRange": {"namedRange": _head(entry.token, self.head_name)}},
            *_insert(JOURNAL_ID, after, rows),
            *([] if self.narrow else _accepted(entry.token, after)),
        ]
        if entry.snapshot and after > 1:
            span = {"sheetId": JOURNAL_ID, "dimension": "ROWS", "startIndex": 1, "endIndex": after}
            requests.append({"deleteDimension": {"range": span}})
        return requests

    async def send(
        self,
        requests: Sequence[Mapping[str, Any]],
        after: int,
        urgency: Urgency,
        *,
        runs: Sequence[Run] = (),
        paid: bool = False,
    ) -> Echo:
        """One batch, never repeated here. The answer shows what the cells in question say after it."""
        journal, state = _quoted(self._journal), _quoted(self._state)
        ranges = [f"{journal}!C{after + 1}:D"]
        ranges += [] if self.narrow else [f"{journal}!{_LAST_COLUMN}{after + 1}"]
        ranges += [f"{state}!A{run.start + 1}:A{run.start + len(run.record_ids)}" for run in runs]
        answer = await self.sheets.spreadsheets_batch_update(
            self.spreadsheet_id,
            requests,
            repeatable=False,
            urgency=urgency,
            paid=paid,
            response_ranges=ranges,
            fields="updatedSpreadsheet.sheets(properties.sheetId,data.rowData.values.effectiveValue.stringValue)",
        )
        tabs = {
            tab.get("properties", {}).get("sheetId", 0): [_texts(part) for part in tab.get("data", [])]
            for tab in answer.get("updatedSpreadsheet", {}).get("sheets", [])
        }
        if JOURNAL_ID not in tabs:
            await self.look()  # people gave its title to another tab: the answer of the next batch shows the right one
        tokens, *rest = tabs.get(JOURNAL_ID) or [[]]
        accepted = next((text for part in rest for row in part for text in row), "")
        shown = [tuple(row[0] if row else "" for row in part) for part in tabs.get(STATE_ID, [])]
        return Echo(tokens, accepted, shown == [run.record_ids for run in runs])

    async def heads(self) -> list[tuple[str, str]]:
        """(token, name) of the named ranges that are a head. No process plans over them (protocol 3)."""
        answer = await self.sheets.spreadsheets_get(self.spreadsheet_id, fields="namedRanges(namedRangeId,name)")
        named = answer.get("namedRanges", [])
        return [(range_["namedRangeId"], range_["name"]) for range_ in named if range_.get("name", "").startswith(HEAD)]

    async def stale_head_is_refused(self) -> bool:
        """Try to commit on a head that never was."""
        stale = new_id("h0_", length=32)
        fence = {"updateNamedRange": {"namedRange": {"namedRangeId": stale, "range": HEAD_RANGE}, "fields": "range"}}
        try:
            await self.sheets.spreadsheets_batch_update(self.spreadsheet_id, [fence], repeatable=True)
        except Invalid as refusal:
            return refusal.index == 0
        return False


def is_order(refusal: Invalid) -> bool:
    """Somebody took away the column that tells what was accepted before."""
    return refusal.index in (5, 6) and refusal.request in ("copyPaste", "updateCells")


HEAD_RANGE = {"sheetId": JOURNAL_ID, "startRowIndex": 0, "endRowIndex": 1, "startColumnIndex": 0, "endColumnIndex": 1}


def is_fence(refusal: Invalid) -> bool:
    """The head is another by now."""
    return refusal.index in (0, 1) and refusal.request in ("updateNamedRange", "deleteNamedRange")


def is_ghost(refusal: Invalid) -> bool:
    """The head's name is taken by a range that nobody can see or delete (google-facts 2)."""
    return refusal.index == 2 and refusal.request == "addNamedRange"


def _part(sheet_id: int, first: int, last: int | None, columns: int) -> dict[str, Any]:
    """Return a filter for rows of a tab, counted from 1. A tab is named by its id, since people may rename it."""
    area: dict[str, Any] = {"sheetId": sheet_id, "endColumnIndex": columns}
    if first > 1:
        area["startRowIndex"] = first - 1
    if last is not None:
        area["endRowIndex"] = last
    return {"gridRange": area}


def _quoted(title: str) -> str:
    return "'" + title.replace("'", "''") + "'"


def _texts(part: Mapping[str, Any]) -> list[list[str]]:
    """Return the texts of a block of cells."""
    rows = part.get("rowData", [])
    return [[cell.get("effectiveValue", {}).get("stringValue", "") for cell in row.get("values", [])] for row in rows]


def _head(token: str, name: str) -> dict[str, Any]:
    return {"namedRangeId": token, "name": name, "range": HEAD_RANGE}


def _add_sheet(sheet_id: int, title: str, columns: int) -> dict[str, Any]:
    grid = {"rowCount": 1, "columnCount": columns}
    return {
        "addSheet": {"properties": {"sheetId": sheet_id, "title": title, "hidden": True, "gridProperties": grid}},
    }


def protection(sheet_id: int, what: str) -> dict[str, Any]:
    """A request that keeps people's hands off a tab."""
    return {
        "addProtectedRange": {"protectedRange": {"range": {"sheetId": sheet_id}, "description": what}},
    }


def _write(sheet_id: int, row: int, rows: Sequence[Sequence[str]], column: int = 0) -> dict[str, Any]:
    """Plain text into cells, whatever it looks like: nothing is read as a formula, a number or a date."""
    data = [{"values": [{"userEnteredValue": {"stringValue": text}} if text else {} for text in row]} for row in rows]
    start = {"sheetId": sheet_id, "rowIndex": row, "columnIndex": column}
    return {"updateCells": {"rows": data, "fields": "userEnteredValue", "start": start}}


def _insert(sheet_id: int, row: int, rows: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    span = {"sheetId": sheet_id, "dimension": "ROWS", "startIndex": row, "endIndex": row + len(rows)}
    return [{"insertDimension": {"range": span, "inheritFromBefore": True}}, _write(sheet_id, row, rows)]


def _accepted(token: str, row: int) -> list[dict[str, Any]]:
    """Note beside the entry in this row what the book had accepted last, and that it is this entry now.

    The book does it when it applies the batch, so the order is that in which batches were applied, whatever their
    writers knew.
    """
    column = {"startColumnIndex": ACCEPTED_AT, "endColumnIndex": ACCEPTED_AT + 1}
    source = {"sheetId": JOURNAL_ID, "startRowIndex": 0, "endRowIndex": 1, **column}
    destination = {"sheetId": JOURNAL_ID, "startRowIndex": row, "endRowIndex": row + 1, **column}
    return [
        {"copyPaste": {"source": source, "destination": destination, "pasteType": "PASTE_VALUES"}},
        _write(JOURNAL_ID, 0, [[token]], column=ACCEPTED_AT),
    ]


def widened() -> dict[str, Any]:
    """A request that gives a journal of an earlier version the column that it lacks."""
    properties = {"sheetId": JOURNAL_ID, "gridProperties": {"columnCount": ACCEPTED_AT + 1}}
    return {"updateSheetProperties": {"properties": properties, "fields": "gridProperties.columnCount"}}


# -- the tab state -----------------------------------------------------------------------------------------------------


def state_row(record: Record) -> list[str]:
    ends = record.ended
    waits = record.status in (Status.WAITING, Status.NEEDS_APPROVAL)
    texts = (
        record.record_id,
        record.status.value,
        "" if ends else record.step,
        record.dedupe_key or "",
        record.run_id or "",
        record.last_error or "",
        iso(record.updated_at),
        record.note or "",
        (record.question or "") if waits else "",
        record.workflow,
        str(record.version),
    )
    return [text[:STATE_CHARACTERS] for text in texts]


def state_requests(records: Sequence[Record], places: Mapping[str, int]) -> tuple[list[dict[str, Any]], list[Run]]:
    """The requests that bring the rows of these records up to date; new ones come after the last place.

    A row's id is written when it is born and never again: if people moved the rows, the ids beside what was written
    tell, and the tab is written anew.
    """
    groups: list[list[tuple[int, list[str]]]] = []
    for place, row in sorted((places[r.record_id], state_row(r)) for r in records if r.record_id in places):
        if groups and place == groups[-1][-1][0] + 1:
            groups[-1].append((place, row))
        else:
            groups.append([(place, row)])
    requests = [_write(STATE_ID, group[0][0], [row[1:] for _, row in group], column=1) for group in groups]
    runs = [Run(group[0][0], tuple(row[0] for _, row in group)) for group in groups]
    if new := [state_row(record) for record in records if record.record_id not in places]:
        requests += _insert(STATE_ID, len(places) + 1, new)
    return requests, runs


def state_anew(records: Sequence[Record]) -> list[dict[str, Any]]:
    """The requests that write the whole tab again."""
    grid = {"rowCount": len(records) + 1, "columnCount": len(STATE_COLUMNS)}
    properties = {"sheetId": STATE_ID, "gridProperties": grid}
    fields = "gridProperties(rowCount,columnCount)"
    requests: list[dict[str, Any]] = [{"updateSheetProperties": {"properties": properties, "fields": fields}}]
    return [*requests, _write(STATE_ID, 0, [STATE_COLUMNS, *(state_row(record) for record in records)])]
