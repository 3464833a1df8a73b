"""Following the log: the spans that became complete since the last look, with the traces that they belong to."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from quire.explain import spans
from quire.explain.spans import Span
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.event import Event
from quire.model.record import Record

LINES = 1000
_KNOWN_ROOTS = 20_000


class Traced(NamedTuple):
    trace_id: str
    span: Span


class Seen(NamedTuple):
    """One look: what became complete, up to which line, and whether there is more."""

    found: list[Traced]
    seq: int
    more: bool


async def last_seq(ledger: Ledger) -> int:
    """Return the place of the newest line, found from the record that changed last."""
    known = 0
    for record in await ledger.find(Query(order="updated", limit=1)):
        log = await ledger.events(record_id=record.record_id, limit=100_000)
        known = max([known, *(event.seq for event in log)])
    while events := await ledger.events(after=known, limit=LINES):
        known = events[-1].seq
    return known


class Following:
    """Reads the log after a place. It holds no place of its own."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._roots: OrderedDict[str, str] = OrderedDict()

    async def look(self, after: int) -> Seen:
        events = await self.ledger.events(after=after, limit=LINES)
        if not events:
            return Seen([], after, False)
        last = events[-1].seq
        touched = list(dict.fromkeys(event.record_id for event in events))
        receipts = await self.ledger.receipts(record_ids=touched)
        logs = await self.ledger.logs(touched)
        records = {record.record_id: record for record in await self.ledger.load(touched)}
        found: list[Traced] = []
        for record_id in touched:
            record, log = records.get(record_id), logs[record_id]
            if record is not None and log and log[-1].version != record.version:
                record, log = await self._whole(record_id)
            if record is None:
                continue
            own = [receipt for receipt in receipts if receipt.record_id == record_id]
            # What is complete only after this look's last line belongs to the next look: nothing is sent twice.
            made = [span for span in spans.spans(record, log, own) if after < span.seq <= last]
            if made:
                trace = spans.trace_id(await self._root(record))
                found += [Traced(trace, span) for span in made]
        return Seen(found, last, len(events) == LINES)

    async def _whole(self, record_id: str) -> tuple[Record | None, list[Event]]:
        """Return a record and its log as of the same version, as far as it holds still for that."""
        record, log = None, []
        for _ in range(3):
            log = await self.ledger.events(record_id=record_id, limit=100_000)
            record = next(iter(await self.ledger.load([record_id])), None)
            if record is None or not log or log[-1].version == record.version:
                break
        return record, log

    async def _root(self, record: Record) -> str:
        """Return the first ancestor's id."""
        path = []
        while record.parent_id is not None and record.record_id not in self._roots:
            path.append(record.record_id)
            above = await self.ledger.load([record.parent_id])
            if not above:
                break
            [record] = above
        root = self._roots.get(record.record_id, record.record_id)
        for record_id in path:
            self._roots[record_id] = root
        while len(self._roots) > _KNOWN_ROOTS:
            self._roots.popitem(last=False)
        return root
