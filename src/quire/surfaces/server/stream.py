"""Server-sent events of what changes. One look at the ledger serves all who listen.

The feed reads the log after the last line that it saw, a few times a second, and tells each record that changed once,
as it is now. ``id`` is the ``seq`` of the last line, so a listener that comes again with ``Last-Event-ID`` misses
nothing; one that was away for too long, or is too slow, gets the request to load anew (``reset``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from pydantic_core import to_json

from quire.client.client import Client
from quire.clock import iso
from quire.errors import LedgerError
from quire.model.change import Query, Standing
from quire.model.record import Record
from quire.surfaces.server.history import SAMPLE_SECONDS, History
from quire.surfaces.server.refusal import Refusal, log

#: Between two looks at the ledger.
LOOK_SECONDS = 0.4
#: So many lines are read at one look, and missed lines are made up for.
LINES = 5000
#: At most so many rows are sent at once; beyond it listeners load anew.
ROWS = 2000
#: A listener that is so many messages behind is reset.
BEHIND = 64
BEAT_SECONDS = 15.0
#: A stream ends after so long and the listener comes again: so a token that was revoked stops hearing, too.
STREAM_SECONDS = 600.0

COLUMNS = (
    "record_id",
    "workflow",
    "status",
    "next_step",
    "attempt",
    "priority",
    "updated_at",
    "created_at",
    "due_at",
    "version",
    "about",
    "hash",
)


def row(record: Record) -> list[Any]:
    """Return a record as a row of the grid: values in the order of ``COLUMNS``."""
    return [
        record.record_id,
        record.workflow,
        str(record.status),
        record.step,
        record.attempt,
        record.priority,
        round(record.updated_at, 3),
        round(record.created_at, 3),
        None if record.due_at is None else round(record.due_at, 3),
        record.version,
        _about(record),
        _hash(record),
    ]


def _about(record: Record) -> str:
    """What a person wants to know of it first: the error, the question, the note; or else the beginning of its data."""
    text = record.last_error if record.status == "ERROR" else record.question or record.note
    if text:
        return " ".join(text[:400].split())[:200]
    if record.result is not None and record.result != "null":
        return record.result[:120]
    return record.data[:120] if record.data != "{}" else ""


def _hash(record: Record) -> str:
    """What an answer is bound to, if the record asks one question."""
    if record.status != "NEEDS_APPROVAL" or not record.waits:
        return ""
    from quire.model.wait import On, load_waits

    asked = [wait for wait in load_waits(record.waits) if wait.on is On.QUESTION]
    return str((asked[0].about or {}).get("hash", "")) if asked else ""


def controls_json(standing: Standing) -> list[dict[str, Any]]:
    """What holds for all records or for a workflow: halted or paused, by whom and why."""
    return [
        {
            "scope": control.scope,
            "halted": control.halted,
            "paused": control.paused,
            "by": control.by,
            "at": iso(control.at),
            "reason": control.reason,
        }
        for control in standing.controls
        if control.halted or control.paused
    ]


async def counts_json(client: Client) -> list[list[Any]]:
    return [[count.workflow, count.step, str(count.status), count.count] for count in await client.counts()]


def message(event: str, data: Any, seq: int | None = None) -> bytes:
    head = f"id: {seq}\n" if seq is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + to_json(data, inf_nan_mode="null") + b"\n\n"


class Feed:
    """Looks at the ledger while somebody listens."""

    def __init__(self, client: Client, most: int = 500) -> None:
        self.client = client
        self.most = most
        self.seq = 0
        self.history = History()
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        #: Two that come at the same moment begin one look.
        self._beginning = asyncio.Lock()
        self._standing: list[dict[str, Any]] = []
        self._counted_at = 0.0
        self._uncounted = False
        self._closed = False
        self._keeping: asyncio.Task[None] | None = None

    def keep_history(self) -> None:
        """Count now and then, also while nobody looks, so that whoever comes sees the last hour."""
        self._keeping = asyncio.ensure_future(self._keep_history())

    async def _keep_history(self) -> None:
        clock = self.client.clock
        while True:
            begun = clock.boottime()
            try:
                self.history.add(await self.client.ledger.now(), await counts_json(self.client))
            except LedgerError as error:
                log.warning("the history cannot read the ledger: %s", error)
            # Counting takes a hundredth of the time at the most.
            await clock.sleep(max(SAMPLE_SECONDS, 100 * (clock.boottime() - begun)))

    async def close(self) -> None:
        self._closed = True
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
            self._keeping = None
        for queue in self._listeners:
            _put(queue, None)
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None

    @asynccontextmanager
    async def listening(self, last: int | None) -> AsyncIterator[AsyncIterator[bytes]]:
        """Messages for one listener, from the line after ``last``; refused if too many listen.

        The listener is counted before the first await: of many that come at the same moment, no more are let in.
        """
        if len(self._listeners) >= self.most:
            raise Refusal(503, "TooMany", f"{self.most} streams are open; close some", {"Retry-After": "5"})
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(BEHIND)
        self._listeners.add(queue)
        try:
            await self._begin()
            yield self._messages(queue, last)
        finally:
            self._listeners.discard(queue)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def _begin(self) -> None:
        """Look at the ledger from now on, unless that is done already."""
        async with self._beginning:
            if self._looking is None and not self._closed:
                self.seq = await self._end(self.seq)
                self._standing = controls_json(await self.client.standing())
                self._looking = asyncio.ensure_future(self._look_for_ever())

    async def _messages(self, queue: asyncio.Queue[bytes | None], last: int | None) -> AsyncIterator[bytes]:
        yield b"retry: 2000\n\n"
        yield await self._hello(last)
        yield message("standing", controls_json(await self.client.standing()))
        counts = await counts_json(self.client)
        self.history.add(await self.client.ledger.now(), counts)
        yield message("counts", counts)
        until = self.client.clock.boottime() + STREAM_SECONDS
        while not self._closed and self.client.clock.boottime() < until:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    text = await queue.get()
            except TimeoutError:
                yield b": beat\n\n"
                continue
            if text is None:
                if self._closed:
                    return
                yield message("reset", {}, self.seq)
                continue
            yield text

    async def _hello(self, last: int | None) -> bytes:
        """Return the first message: what a listener that comes again has missed."""
        if last is None:
            return message("hello", {"seq": self.seq}, self.seq)
        events = await self.client.events(after=last, limit=LINES) if last <= self.seq else []
        ids = list(dict.fromkeys(event.record_id for event in events))
        if last > self.seq or len(events) == LINES or len(ids) > ROWS:
            return message("reset", {}, self.seq)
        rows = [row(record) for record in await self.client.ledger.load(ids)] if ids else []
        return message("changes", {"rows": rows}, max(self.seq, last))

    async def _end(self, known: int) -> int:
        """The last line's seq: found from the record that changed last, not by reading the log from its start."""
        latest = await self.client.ledger.find(Query(order="updated", limit=1))
        for record in latest:
            log_ = await self.client.events(record.record_id, limit=100_000)
            known = max([known, *(event.seq for event in log_)])
        while True:
            events = await self.client.events(after=known, limit=LINES)
            if not events:
                return known
            known = events[-1].seq

    async def _look_for_ever(self) -> None:
        while True:
            await self.client.clock.sleep(LOOK_SECONDS)
            try:
                await self._look()
            except LedgerError as error:
                log.warning("the stream cannot read the ledger: %s", error)

    async def _look(self) -> None:
        events = await self.client.events(after=self.seq, limit=LINES)
        if events:
            self.seq = events[-1].seq
            self._uncounted = True
            ids = list(dict.fromkeys(event.record_id for event in events))
            if len(events) == LINES or len(ids) > ROWS:
                self.seq = await self._end(self.seq)
                self._tell(message("reset", {}, self.seq))
            else:
                records = await self.client.ledger.load(ids)
                self._tell(message("changes", {"rows": [row(record) for record in records]}, self.seq))
        standing = controls_json(await self.client.standing())
        if standing != self._standing:
            self._standing = standing
            self._uncounted = True
            self._tell(message("standing", standing))
            # What a halt cancels is cancelled by definition, without a line for each: everything is looked at anew.
            self._tell(message("reset", {}, self.seq))
        await self._count()

    async def _count(self) -> None:
        clock = self.client.clock
        begun = clock.boottime()
        if not self._uncounted or begun < self._counted_at:
            return
        self._uncounted = False
        counts = await counts_json(self.client)
        ended = clock.boottime()
        # Counting may take a tenth of the time at the most, however many records there are.
        self._counted_at = ended + max(0.8, 10 * (ended - begun))
        self.history.add(await self.client.ledger.now(), counts)
        self._tell(message("counts", counts))

    def _tell(self, text: bytes) -> None:
        for queue in self._listeners:
            _put(queue, text)


def _put(queue: asyncio.Queue[bytes | None], text: bytes | None) -> None:
    if queue.full() or text is None:
        while not queue.empty():
            queue.get_nowait()
        text = None
    queue.put_nowait(text)
