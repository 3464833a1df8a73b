"""The rows of inboxes become records, once each: an id first, in the sheet; then the start, under that id.

Whoever dies between the two leaves a row with an id and no record: the next look starts it, under the same id. Whoever
dies after the start leaves a record: the ledger answers the same start with the record that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.client.client import Client
from quire.clock import new_id
from quire.model.codec import PLAIN, parse
from quire.model.record import Record
from quire.surfaces.panel import inbox as pure
from quire.surfaces.panel.binding import RECORD_ID, Written, added, hidden_rows, trimmed
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.cells import Request, values
from quire.surfaces.panel.inbox import NEW, SCHEDULED, UNSTARTED, Hidden, Inbox, Line, Sheet
from quire.surfaces.panel.layout import INBOX_ID, INBOX_STATE, INBOX_WIDTH
from quire.surfaces.panel.starting import REFUSED, Starter, edited, says_edited, taken_already
from quire.surfaces.panel.table import cut
from quire.surfaces.panel.tables.kept import Problems

#: New rows that one batch gives ids.
MOST_ROWS = 100


class Pass(NamedTuple):
    """What one look at the inboxes asks for."""

    requests: list[Request]
    #: Ids were given, or records started: look again at once, to start and to show them.
    again: bool
    #: Rows stand there that may still be typed in: look again soon.
    soon: bool


class Inboxes:
    def __init__(self, client: Client, book: Book, problems: Problems) -> None:
        self._client = client
        self._problems = problems
        self._starter = Starter(client, book)
        #: What each tab's rows without an id said at the last look: a row that is being typed is let be.
        self._seen: dict[int, set[str]] = {}
        self._tried: dict[int, str] = {}
        self._written: Written[Hidden] = Written()

    async def look(
        self,
        inboxes: Mapping[int, Inbox],
        grids: Mapping[int, Sequence[Sequence[Any]]],
        changed: Mapping[str, Record],
        *,
        title: str,
        columns: Mapping[int, int],
        blanks: bool,
        at_once: bool,
    ) -> Pass:
        """``columns``: how many each tab has; ``at_once``: do not wait for a second look at new rows."""
        found = pure.hidden_rows(grids.get(INBOX_ID, ()))
        hidden = dict(found)
        self._written.restore(hidden)
        size = max(len(grids.get(INBOX_ID, ())), 1)
        wanted: dict[int, Hidden] = dict(hidden)
        requests: list[Request] = []
        again = False
        for sheet_id, inbox in inboxes.items():
            problem = pure.doubled(inbox, grids.get(sheet_id, ()))
            if await self._problems.name(sheet_id, inbox.tab, inbox.workflow, problem):
                continue
            sheet = pure.read(inbox, sheet_id, grids.get(sheet_id, ()), wanted, title)
            if sheet.missing:
                wide = columns.get(sheet_id, 0)
                requests += added(sheet_id, 0, sheet.missing, [sheet.header], wide, blanks=blanks)
                again = True
                continue
            requests += pure.clear_strays(sheet, wanted)
            for line in sheet.copies:
                requests += pure.name_copy(sheet, line)
            for line in sheet.lines:
                if line.place is not None:
                    requests += pure.heal(sheet, line, blanks=blanks)
            stamps = self._stamps(inbox, sheet, wanted, size, blanks=blanks, at_once=at_once)
            requests += stamps
            again |= bool(stamps)
            again |= await self._start(inbox, sheet, wanted, hidden)
        self._write_back(inboxes, wanted, changed)
        soon = any(self._seen.values())
        self._written.know(wanted)
        shown = hidden_rows(INBOX_ID, found, wanted, size, _cells)
        return Pass([*shown, *requests], again, soon)

    def forget(self) -> None:
        """What was written last is not sure any more."""
        self._written.forget()

    # -- ids -----------------------------------------------------------------------------------------------------

    def _stamps(
        self,
        inbox: Inbox,
        sheet: Sheet,
        wanted: dict[int, Hidden],
        size: int,
        *,
        blanks: bool,
        at_once: bool,
    ) -> list[Request]:
        fresh = [line for line in sheet.lines if line.place is None and not line.copied]
        before, self._seen[sheet.bound.sheet_id] = (
            self._seen.get(sheet.bound.sheet_id, set()),
            {line.fingerprint for line in fresh},
        )
        # A form's answer is whole when it comes; a row that is typed is whole when nobody types in it any more.
        form = pure.is_form(sheet.header)
        requests: list[Request] = []
        taken: set[int] = set()
        for line in fresh[:MOST_ROWS]:
            if not (form or at_once or line.fingerprint in before):
                continue
            place = pure.vanished(sheet, wanted, line.fingerprint, taken)
            if place is None:
                place = max([size - 1, *wanted]) + 1
                record_id = line.id_text if pure.is_id(line.id_text) else new_id(f"{pure.slug(inbox.workflow)}_")
                at = f"{self._client.clock.now():.3f}"
                wanted[place] = Hidden(record_id, NEW, "", str(sheet.bound.sheet_id), line.fingerprint, at)
            taken.add(place)
            requests += pure.stamp(sheet, line, place, wanted[place].record_id, blanks=blanks)
        return requests

    # -- starts --------------------------------------------------------------------------------------------------

    async def _start(self, inbox: Inbox, sheet: Sheet, wanted: dict[int, Hidden], hidden: Mapping[int, Hidden]) -> bool:
        """Start what has its id and is whole. Only rows whose id was read in the sheet: it is there for good."""
        waiting: dict[int, Line] = {}
        for line in sheet.lines:
            place = line.place
            if place is None or place not in hidden:
                continue
            row = hidden[place]
            if row.status not in UNSTARTED:
                same = pure.unedited(line, row)
                print_ = line.fingerprint if same else row.fingerprint
                wanted[place] = row._replace(fingerprint=print_, why=edited(row.why, is_edited=not same))
            elif row.status in ("", NEW, SCHEDULED) or self._tried.get(place) != line.fingerprint:
                waiting[place] = line
        if not waiting:
            return False
        begun = False
        there = await self._starter.there(hidden[place].record_id for place in waiting)
        reading = self._starter.reading(inbox, sheet.bound.sheet_id, [line.given for line in waiting.values()])
        now = await self._client.ledger.now()
        for place, line in waiting.items():
            row = hidden[place]
            self._tried[place] = line.fingerprint
            record = there.get(row.record_id)
            if record is None:
                given = await reading.given(sheet.inputs, sheet.bound.columns[RECORD_ID], row.record_id, line.given)
                if given is None:
                    self._tried.pop(place, None)
                    continue  # it was moved between the reads
                if inbox.at is not None and not inbox.at.between(float(row.at or now), now, most=1):
                    self._tried.pop(place, None)
                    status, why = SCHEDULED, "it is started by the schedule of its workflow"
                else:
                    dedupe = f"inbox|{sheet.bound.sheet_id}|{row.record_id}"
                    status, why, record = await self._starter.start(inbox, row.record_id, dedupe, given, now)
                if record is None:
                    wanted[place] = row._replace(status=status, why=cut(why), fingerprint=line.fingerprint)
                    continue
                begun = True
            elif record.workflow != inbox.workflow:
                wanted[place] = row._replace(status=REFUSED, why=taken_already(record))
                continue
            wanted[place] = _with_results(inbox, row._replace(fingerprint=line.fingerprint), record)
        return begun

    # -- results -------------------------------------------------------------------------------------------------

    def _write_back(
        self, inboxes: Mapping[int, Inbox], wanted: dict[int, Hidden], changed: Mapping[str, Record]
    ) -> None:
        for place, row in wanted.items():
            record = changed.get(row.record_id)
            inbox = inboxes.get(int(row.tab)) if row.tab.isdigit() else None
            if record is not None and inbox is not None and record.workflow == inbox.workflow:
                wanted[place] = _with_results(inbox, row, record)


def _with_results(inbox: Inbox, row: Hidden, record: Record) -> Hidden:
    why = edited(record.last_error or record.question or "", is_edited=says_edited(row.why))
    return row._replace(status=record.status.value, why=cut(why), written=trimmed(values_of(inbox.write_back, record)))


def values_of(names: Sequence[str], record: Record) -> list[Any]:
    """Fields of a record's result, or of its data, as cells hold them."""
    data = parse(record.data)
    result = parse(record.result) if record.result else None
    sources = [source for source in (result, data) if isinstance(source, dict)]
    found = []
    for name in names:
        value: Any = next((source[name] for source in sources if name in source), "")
        if name == "result" and not any(name in source for source in sources):
            value = "" if result is None else result
        if not isinstance(value, str | int | float | bool):
            value = "" if value is None else PLAIN.encode(value, name)
        found.append(cut(value) if isinstance(value, str) else value)
    return found


def _cells(row: Hidden) -> list[dict[str, Any]]:
    return values([*row[: len(INBOX_STATE)], *row.written[: INBOX_WIDTH - len(INBOX_STATE)]])
