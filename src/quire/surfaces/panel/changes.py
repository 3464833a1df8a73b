"""What changed in the ledger since the last look: one request if nothing did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.client.client import Client
from quire.errors import NotFound
from quire.explain.why import Around
from quire.model.change import Query, Standing
from quire.model.event import Event
from quire.model.record import ENDED, Record, Status
from quire.surfaces.panel.table import Row, cut, row_of

_OPEN = tuple(status for status in Status if status not in ENDED)
#: Records that ended before the panel was there, and are shown all the same.
NEWEST = 200
PAGE = 1000


class Changes(NamedTuple):
    records: list[Record]
    #: For each record what may be why it does not move.
    around: dict[str, Around]
    standing: Standing | None


class Watcher:
    """Follows the log."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ledger = client.ledger
        self._seq = -1
        self._definitions: dict[str, dict[str, Any] | None] = {}

    async def changes(self, known: Sequence[str] = ()) -> Changes:
        """The records whose log has grown; at first all that are open, the newest of the others, and the known."""
        last: dict[str, Event] = {}
        if self._seq < 0:
            records = await self._all(known)
        else:
            while events := await self._ledger.events(after=self._seq, limit=PAGE):
                self._seq = events[-1].seq
                for line in events:
                    last[line.record_id] = line
                if len(events) < PAGE:
                    break
            records = await self._ledger.load(list(last)) if last else []
        if not records:
            return Changes([], {}, None)
        standing, workers = await self._ledger.standing(), await self._ledger.workers()
        around = {}
        for record in records:
            event: Event | None = last.get(record.record_id)
            if record.status is Status.CANCELLED and event is None:
                log = await self._ledger.events(record_id=record.record_id, limit=100_000)
                event = log[-1] if log else None
            definition = await self.definition(record.workflow)
            around[record.record_id] = Around(standing.now, standing, workers, definition, ended=event)
        return Changes(records, around, standing)

    async def _all(self, known: Sequence[str]) -> list[Record]:
        newest = await self._ledger.find(Query(order="updated", limit=NEWEST))
        seq = 0
        if newest:
            log = await self._ledger.events(record_id=newest[0].record_id, limit=100_000)
            seq = log[-1].seq if log else 0
        found = {record.record_id: record for record in newest}
        after = ""
        while rows := await self._ledger.find(Query(status=_OPEN, after=after, limit=PAGE)):
            after = rows[-1].record_id
            found |= {record.record_id: record for record in rows}
        for at in range(0, len(known), PAGE):
            wanted = [record_id for record_id in known[at : at + PAGE] if record_id not in found]
            found |= {record.record_id: record for record in await self._ledger.load(wanted)}
        self._seq = seq
        return sorted(found.values(), key=lambda record: (record.created_at, record.record_id))

    async def definition(self, workflow: str) -> dict[str, Any] | None:
        if workflow not in self._definitions:
            try:
                self._definitions[workflow] = await self._client.definition(workflow)
            except NotFound:
                return None
        return self._definitions[workflow]

    def begin_anew(self) -> None:
        """Something was lost on the way: look at everything again."""
        self._seq = -1
        self._definitions.clear()


def rows_of(changes: Changes, state: Mapping[int, Row], replies: Mapping[str, str]) -> dict[str, Row]:
    """What the hidden rows that change should say."""
    before = {row.record_id: row for row in state.values()}
    rows: dict[str, Row] = {}
    for record in changes.records:
        old = before.get(record.record_id)
        rows[record.record_id] = row_of(record, changes.around[record.record_id], old.reply if old else "")
    for record_id, reply in replies.items():
        row = rows.get(record_id) or before.get(record_id)
        if row is not None:
            rows[record_id] = row._replace(reply=cut(reply))
    return rows
