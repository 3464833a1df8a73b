"""The rows of inboxes become records, once each: an id first, in the sheet; then the start, under that id.

Whoever dies between the two leaves a row with an id and no record: the next look starts it, under the same id. Whoever
dies after the start leaves a record: the ledger answers the same start with the record that is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.client.arguments import checked_id
from quire.client.client import Client
from quire.clock import new_id
from quire.errors import QuireError
from quire.ledger.definition import Mould
from quire.model.change import Applied, Refused
from quire.model.codec import PLAIN, parse
from quire.model.record import Record
from quire.model.row import replace
from quire.surfaces.panel import inbox as pure
from quire.surfaces.panel.binding import RECORD_ID, Written, cell_at, hidden_rows
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.cells import At, Request, cell, fill
from quire.surfaces.panel.inbox import INCOMPLETE, NEW, REFUSED, SCHEDULED, UNSTARTED, Hidden, Inbox, Line, Sheet
from quire.surfaces.panel.layout import INBOX_ID, INBOX_STATE, INBOX_WIDTH, wider
from quire.surfaces.panel.table import cut
from quire.worker.schedule import first_record

#: New rows that one batch gives ids.
MOST_ROWS = 100


class Pass(NamedTuple):
    """What one look at the inboxes asks for."""

    requests: list[Request]
    #: Ids were given, or records started: look again at once, to start and to show them.
    again: bool
    #: Rows stand there that may still be typed in: look again soon.
    soon: bool


class Given(NamedTuple):
    """What was typed in a row, by field: the values, and how their cells look where that counts."""

    values: dict[str, Any]
    shown: dict[str, Any]


class Inboxes:
    def __init__(self, client: Client, book: Book) -> None:
        self._client = client
        self._book = book
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
            sheet = pure.read(inbox, sheet_id, grids.get(sheet_id, ()), wanted, title)
            if sheet.missing:
                requests += _columns(sheet, columns.get(sheet_id, 0), blanks=blanks)
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
                record_id = line.id_text if _is_id(line.id_text) else new_id(f"{_slug(inbox.workflow)}_")
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
                wanted[place] = _edited(row, line)
            elif row.status in ("", NEW, SCHEDULED) or self._tried.get(place) != line.fingerprint:
                waiting[place] = line
        if not waiting:
            return False
        begun = False
        ledger = self._client.ledger
        there = {record.record_id: record for record in await ledger.load([hidden[p].record_id for p in waiting])}
        looks: list[list[Any]] = []
        values: list[list[Any]] | None = None
        for place, line in waiting.items():
            row = hidden[place]
            self._tried[place] = line.fingerprint
            record = there.get(row.record_id)
            if record is None:
                if values is None:
                    # How the cells look first: what does not change from the look before to their values looked so.
                    if any(pure.must_be_shown(inbox, each.given) for each in waiting.values()):
                        looks = await self._book.look(sheet.bound.sheet_id)
                    values = await self._book.values(sheet.bound.sheet_id)
                given = _given(inbox, sheet, values, looks, row.record_id, line)
                if given is None:
                    self._tried.pop(place, None)
                    continue  # it was moved between the reads
                status, why, record = await self._started(inbox, sheet.bound.sheet_id, row, line, given)
                if record is None:
                    wanted[place] = row._replace(status=status, why=cut(why), fingerprint=line.fingerprint)
                    continue
                begun = True
            elif record.workflow != inbox.workflow:
                text = f"a record {row.record_id!r} of {record.workflow!r} is there already"
                wanted[place] = row._replace(status=REFUSED, why=text)
                continue
            wanted[place] = _told(inbox, row._replace(fingerprint=line.fingerprint), record)
        return begun

    async def _started(
        self, inbox: Inbox, sheet_id: int, row: Hidden, line: Line, typed: Given
    ) -> tuple[str, str, Record | None]:
        given = typed.values
        lacks = pure.lacking(inbox, given)
        if lacks:
            return INCOMPLETE, f"needed, but blank: {', '.join(lacks)}", None
        broken = [field for field, value in given.items() if isinstance(value, str) and value.startswith("#")]
        broken = [field for field in broken if str(given[field]).partition(" (")[0].rstrip("!?") in _ERRORS]
        if broken:
            return REFUSED, f"the formula in {', '.join(broken)} has no value", None
        now = await self._client.ledger.now()
        if inbox.at is not None and not inbox.at.between(float(row.at or now), now, most=1):
            self._tried.pop(line.place or 0, None)
            return SCHEDULED, "it is started by the schedule of its workflow", None
        try:
            data = pure.data_of(inbox, given, typed.shown, self._book.time_zone)
            record = await self._record(inbox, row.record_id, data, now)
            record = replace(record, dedupe_key=f"inbox|{sheet_id}|{row.record_id}")
            [verdict] = await self._client.start_records([record])
        except QuireError as error:
            if _passing(error):
                raise
            return REFUSED, str(error), None
        if isinstance(verdict, Refused):
            return REFUSED, verdict.reason, None
        return "", "", verdict.record if isinstance(verdict, Applied) else None

    async def _record(self, inbox: Inbox, record_id: str, data: dict[str, Any], now: float) -> Record:
        known = self._client.registry.get(inbox.workflow)
        if known is None:
            mould = Mould(await self._client.definition(inbox.workflow), now, None, 0)
            return mould.record(record_id, data, "the row")
        return first_record(known, record_id, known.taken(data, "the row"), now)

    # -- results -------------------------------------------------------------------------------------------------

    def _write_back(
        self, inboxes: Mapping[int, Inbox], wanted: dict[int, Hidden], changed: Mapping[str, Record]
    ) -> None:
        for place, row in wanted.items():
            record = changed.get(row.record_id)
            inbox = inboxes.get(int(row.tab)) if row.tab.isdigit() else None
            if record is not None and inbox is not None and record.workflow == inbox.workflow:
                wanted[place] = _told(inbox, row, record)


_ERRORS = frozenset({"#REF", "#N/A", "#VALUE", "#NAME", "#DIV/0", "#NUM", "#NULL", "#ERROR"})
_EDITED = "edited after it was started; the record keeps what it was started with"


def _passing(error: QuireError) -> bool:
    from quire.errors import LedgerUnavailable
    from quire.google.error import GoogleError

    return isinstance(error, LedgerUnavailable | GoogleError)


def _is_id(text: str) -> bool:
    """Something that could be an id stands in the column already: the row was ours before its hidden row was lost."""
    try:
        return bool(text) and not text.startswith(("=", "#")) and checked_id(text) == text
    except QuireError:
        return False


def _slug(name: str) -> str:
    return pure.normal(name).encode("ascii", "ignore").decode().strip("_") or "row"


def _given(
    inbox: Inbox,
    sheet: Sheet,
    values: Sequence[Sequence[Any]],
    looks: Sequence[Sequence[Any]],
    record_id: str,
    line: Line,
) -> Given | None:
    """The values of the row beside which this id stands, if it still says what was read: its copies may not."""
    column = sheet.bound.columns[RECORD_ID]
    for number, cells in enumerate(values):
        if cell_at(cells, column) == record_id:
            given = {field: cell_at(cells, at) for field, at in sheet.inputs.items()}
            if all(_formula(line.given[field]) or value == line.given[field] for field, value in given.items()):
                look = looks[number] if number < len(looks) else ()
                if cell_at(look, column) != record_id and pure.must_be_shown(inbox, line.given):
                    return None
                return Given(given, {field: cell_at(look, at) for field, at in sheet.inputs.items()} if look else {})
    return None


def _formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")


def _edited(row: Hidden, line: Line) -> Hidden:
    if not pure.unedited(line, row):
        return row if row.why.endswith(_EDITED) else row._replace(why=cut(f"{row.why}; {_EDITED}".lstrip("; ")))
    return row._replace(fingerprint=line.fingerprint, why=row.why.removesuffix(_EDITED).removesuffix("; "))


def _told(inbox: Inbox, row: Hidden, record: Record) -> Hidden:
    why = record.last_error or record.question or ""
    if row.why.endswith(_EDITED):
        why = f"{why}; {_EDITED}".lstrip("; ")
    return row._replace(status=record.status.value, why=cut(why), written=_written(inbox, record))


def _written(inbox: Inbox, record: Record) -> tuple[Any, ...]:
    data = parse(record.data)
    result = parse(record.result) if record.result else None
    sources = [source for source in (result, data) if isinstance(source, dict)]
    found = []
    for name in inbox.write_back:
        value: Any = next((source[name] for source in sources if name in source), "")
        if name == "result" and not any(name in source for source in sources):
            value = "" if result is None else result
        if not isinstance(value, str | int | float | bool):
            value = "" if value is None else PLAIN.encode(value, name)
        found.append(cut(value) if isinstance(value, str) else value)
    return pure.trimmed(found)


def _columns(sheet: Sheet, wide: int, *, blanks: bool) -> list[Request]:
    """Give the tab our columns, after the last that is used."""
    first = len(sheet.header)
    requests: list[Request] = []
    if first + len(sheet.missing) > wide:
        requests.append(wider(sheet.bound.sheet_id, first + len(sheet.missing) - wide))
    for number, name in enumerate(sheet.missing):
        requests += fill(At(sheet.bound.sheet_id, 0, first + number), name, blanks=blanks)
    return requests


def _cells(row: Hidden) -> list[dict[str, Any]]:
    made = [cell(str(text)) for text in row[: len(INBOX_STATE)]]
    for value in row.written[: INBOX_WIDTH - len(INBOX_STATE)]:
        if isinstance(value, bool):
            made.append({"userEnteredValue": {"boolValue": value}})
        elif isinstance(value, int | float):
            made.append({"userEnteredValue": {"numberValue": value}})
        else:
            made.append(cell(str(value)))
    return made
