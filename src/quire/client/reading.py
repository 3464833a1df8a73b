"""Reading: records, their logs, the workers, and the orders that hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quire.client import arguments
from quire.client.link import Link
from quire.clock import Span, iso, seconds
from quire.errors import NotFound, ResultMissing, StepFailed, did_you_mean
from quire.model.change import Count, Query, Standing
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Signal, Worker
from quire.model.trace import last_trace, trace_lines
from quire.model.wait import Wait, load_waits
from quire.rules.lines import LineKind


class Shown(NamedTuple):
    """Everything about one record."""

    record: Record
    waits: tuple[Wait, ...]
    events: list[Event]
    receipts: list[Receipt]
    signals: list[Signal]
    children: list[Record]


class Reading:
    """The verbs that only read."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, record_id: str) -> Record:
        found = await self._link.ledger.load([arguments.asked_id(record_id)])
        if not found:
            raise NotFound(f"Record with ID {record_id} not found.{await self._nearest(record_id)}")
        return found[0]

    async def _nearest(self, record_id: str) -> str:
        """Suggest an id that may be meant: first among those that share most of its beginning, then less of it."""
        for part in dict.fromkeys(record_id[:length] for length in (16, 8, 4, 2, 1)):
            near = await self._link.ledger.find(Query(text=part, limit=50))
            if hint := _hint(record_id, [record.record_id for record in near if record.record_id != record_id]):
                return hint
        return ""

    async def find(
        self,
        *,
        workflow: str = "",
        step: str = "",
        status: Status | str | Sequence[Status] = (),
        parent_id: str = "",
        text: str = "",
        after: str = "",
        limit: int = 100,
        order: str = "id",
    ) -> list[Record]:
        """Find records by workflow, step, status, parent, or part of their id; ``order``: id, updated or place."""
        for word in (workflow, step, parent_id, text, after):
            arguments.name(word, "what is to be found")
        arguments.count(limit, "limit", 0)
        arguments.order(order)
        words = arguments.statuses(status)
        query = Query(workflow, step, words, parent_id, text=text, after=after, limit=limit, order=order)
        return await self._link.ledger.find(query)

    async def counts(self) -> list[Count]:
        return await self._link.counts()

    async def show(self, record_id: str) -> Shown:
        record = await self.get(record_id)
        log = await self._link.ledger.events(record_id=record_id, limit=100_000)
        if record.status is Status.RUNNING:  # the newest note is in the log before it is in the row
            notes = (parse(line.body)["note"] for line in reversed(log) if line.kind == LineKind.NOTED)
            record = replace(record, note=next(notes, record.note))
        return Shown(
            record,
            load_waits(record.waits) if not record.ended else (),
            log,
            await self._link.ledger.receipts(record_ids=[record_id]),
            await self._link.ledger.signals(record_id),
            await self._link.ledger.find(Query(parent_id=record_id, order="place", limit=100_000)),
        )

    async def events(self, record_id: str = "", *, after: int = 0, limit: int = 1000) -> list[Event]:
        arguments.count(limit, "limit", 0)
        return await self._link.ledger.events(record_id=arguments.asked_id(record_id), after=after, limit=limit)

    async def workers(self) -> list[Worker]:
        return await self._link.ledger.workers()

    async def standing(self) -> Standing:
        return await self._link.ledger.standing()

    async def until_ended(self, record_id: str, *, timeout: Span | None = None) -> Record:
        """Wait until the record has ended, and return it."""
        arguments.asked_id(record_id)
        deadline = None if timeout is None else self._link.clock.boottime() + seconds(timeout)
        pause = 0.01
        try:
            while True:
                ended = self._link.awaited.setdefault(record_id, asyncio.Event())
                record = await self.get(record_id)
                if record.ended:
                    return record
                if deadline is not None and self._link.clock.boottime() >= deadline:
                    raise ResultMissing(await self._not_in_time(record)) from await self.failed(record)
                waits = [asyncio.ensure_future(wait) for wait in (self._link.clock.sleep(pause), ended.wait())]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in waits:
                        task.cancel()
                pause = min(pause * 1.5, 0.5)
        finally:
            self._link.awaited.pop(record_id, None)

    async def failed(self, record: Record) -> StepFailed | None:
        """Return what the last try of this record raised, if it failed and nothing was done since."""
        if record.last_error is None:
            return None
        event = last_trace(record, await self._link.ledger.events(record_id=record.record_id, limit=100_000))
        return StepFailed(record.last_error, trace_lines(event) if event is not None else ())

    async def _not_in_time(self, record: Record) -> str:
        text = f"{record.record_id!r} has not ended in time: it is {record.status} at {record.step!r}"
        if not record.attempt or record.last_error is None:
            return text
        text += f"; try {record.attempt} failed: {record.last_error}"
        if record.status is Status.PENDING and record.due_at is not None:
            left = record.due_at - await self._link.ledger.now()
            text += f"; the next try is at {iso(record.due_at)}" + (f", in {left:.3g} s" if left > 0 else "")
        return text

    def settled(self, record: Record) -> None:
        """Wake those who wait for the end of this record, because a worker of this client has settled it."""
        if record.ended and (waiting := self._link.awaited.pop(record.record_id, None)) is not None:
            waiting.set()

    async def made(self, record_id: str, change_id: str) -> bool:
        """Whether the log of this record has a line of this change, so that the change need not be made again."""
        return any(
            line.change_id == change_id for line in await self._link.ledger.events(record_id=record_id, limit=100_000)
        )


def _hint(word: str, known: Iterable[str]) -> str:
    near = did_you_mean(word, known)
    return near.replace("; d", " D") if near.startswith("; did") else ""
