"""The projector: writes the folder behind the commits, in order, and is caught up after any crash.

The story of a batch: read lines after the cursor; load their records once, as they are now; plan the files; write them,
durable; then move the cursor. Killed anywhere in between, the next one starts at the same cursor and writes the same
files again: receipts and logs are written once, and a state file never gives way to an older one. It reads the ledger
and writes nothing there but its own cursor, a few times a second at the most, so no commit waits for it: when it cannot
keep up, it lags, and ``lag`` says how far.

One projector works on a folder at a time; the others wait to take over (see ``cursor``).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NamedTuple

from quire.clock import SYSTEM, Clock
from quire.errors import LeaseLost, LedgerError
from quire.folder import table
from quire.folder.base import Folder, FolderError, Gone, Replace, Write
from quire.folder.cursor import Cursor, Place
from quire.folder.projection import Planned, Projection, Shown, nothing
from quire.folder.segment import SETTING
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.model.event import Event
from quire.model.record import Record

log = logging.getLogger("quire.projector")

#: Lines that are read at a time.
BATCH = 1000
#: While it is behind it reads more at a time, up to so many times that: a record that moved twice is written once.
MOST_BATCHES = 8
#: Lines older than this that are not in the folder yet are warned of, and not more often than this.
LATE_SECONDS = 10.0
TELL_SECONDS = 60.0
#: Records that are read at a time where lines do not lead.
PAGE = 500
#: The cursor is moved at most this often: what is repeated after a crash is harmless.
SAVE_SECONDS = 0.5
#: How often a busy projector looks, and an idle one.
LOOK_SECONDS = (0.1, 2.0)
#: A busy projector leaves this many times its own time to others: a worker in its process goes on with its commits.
OTHERS = 2.0
MOST_REST = 0.25
#: A table is written anew not sooner than this many times what its last writing took.
TABLE_REST = 20.0
TABLE_SECONDS = 1.0


class Lag(NamedTuple):
    """How far the folder is behind the ledger."""

    #: Lines that are not in the folder yet, counted up to a limit.
    lines: int
    #: There are more than were counted.
    more: bool
    #: How old the oldest of them is.
    seconds: float

    def __bool__(self) -> bool:
        return self.lines > 0

    def __str__(self) -> str:
        some = f"{self.lines} lines, the oldest {self.seconds:.0f} s old"
        return f"more than {some}" if self.more else some


class Projector:
    """Writes one folder from one ledger. Both are open."""

    def __init__(
        self,
        ledger: Ledger,
        folder: Folder,
        clock: Clock = SYSTEM,
        *,
        lease: float = 30.0,
        batch: int = BATCH,
        shown: Shown = nothing,
    ) -> None:
        self.ledger = ledger
        self.folder = folder
        self.clock = clock
        self.batch = batch
        self.cursor = Cursor(ledger, folder.folder_id, clock, lease)
        self.projection = Projection(ledger, folder, clock.boottime, shown)
        self._prepared: set[str] = set()
        self._at = Place()
        self._saved_at = 0.0
        self._size = batch
        self._warned_at = -TELL_SECONDS
        self._late = False
        #: Lines of tables that are not written yet.
        self._rows: dict[str, dict[str, list[str]]] = {}
        self._table_after = 0.0
        #: What is in memory goes with the cursor.
        self._current = False
        self._stopping = False
        self._nudge = asyncio.Event()

    # -- ways in -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Project until ``stop``, or until cancelled. What fails is tried again; the ledger goes on meanwhile."""
        pause, failed = LOOK_SECONDS[0], 1.0
        try:
            while not self._stopping:
                try:
                    if not await self._hold():
                        await self._rest(self.cursor.lease / 4)
                        continue
                    began = self.clock.boottime()
                    moved = await self._step()
                    if not moved and not self._at.whole:
                        await self._fill()
                    await self._tables(every=False)
                    await self._save(every=False)
                    pause = LOOK_SECONDS[0] if moved else min(pause * 1.5, LOOK_SECONDS[1])
                    failed = 1.0
                    took = self.clock.boottime() - began
                    behind = moved >= self._size
                    await self._tell_lag(behind)
                    self._size = min(2 * self._size, MOST_BATCHES * self.batch) if behind else self.batch
                    await self._rest(max(min(OTHERS * took, MOST_REST), 0.0 if behind else pause))
                except LeaseLost as error:
                    log.info("%s", error)
                    self._lost()
                except (LedgerError, FolderError) as error:
                    log.warning("the folder is not written: %s; trying again", error)
                    self._lost()
                    await self._rest(failed)
                    failed = min(failed * 2, 60.0)
        finally:
            await asyncio.shield(self._leave())

    def stop(self) -> None:
        self._stopping = True
        self._nudge.set()

    async def catch_up(self, *, anew: bool = False, wait: bool = True) -> int:
        """Write everything that the ledger has by now and answer how many lines that was.

        ``anew``: from the first line on, also what is there already: repairs a folder that was tampered with, except
        receipts and logs, which are written once. If another one projects, it is waited for; without ``wait`` that is
        an error.
        """
        while not await self._hold():
            if not wait:
                raise FolderError("another process projects this folder; it is up to date when that one is")
            if not await self.lag():
                return 0
            await self._rest(min(1.0, self.cursor.lease / 4))
        count = 0
        try:
            if anew:
                self._at = Place()
            while moved := await self._step():
                count += moved
                await self._save(every=False)
            if not self._at.whole:
                await self._fill()
            await self._tables(every=True)
            await self._save(every=True)
        finally:
            await asyncio.shield(self._leave())
        return count

    async def lag(self, most: int = 2_000) -> Lag:
        """Return how far the folder is behind, whoever projects it."""
        place, _ = await self.cursor.look()
        seq = max(place.seq, self._at.seq if self.cursor.held else 0)
        late = await self.ledger.events(after=seq, limit=most)
        if not late:
            return Lag(0, False, 0.0)
        return Lag(len(late), len(late) == most, max(0.0, await self.ledger.now() - late[0].at))

    async def _tell_lag(self, behind: bool) -> None:
        """Say how far the folder is behind when it does not keep up, and that it has caught up again."""
        if not behind:
            if self._late:
                log.warning("the folder has caught up")
            self._late = False
            return
        if self.clock.boottime() - self._warned_at < TELL_SECONDS:
            return
        lag = await self.lag()
        if lag.seconds > LATE_SECONDS:
            self._warned_at, self._late = self.clock.boottime(), True
            log.warning("the folder is behind the ledger: %s", lag)

    # -- the lease ---------------------------------------------------------------------------------------------

    async def _hold(self) -> bool:
        if self.cursor.held and self._current:
            if self.cursor.fading:
                await self.cursor.save(self._at)
            return True
        self._lost()
        if not await self.cursor.take():
            return False
        self._at = self.cursor.place
        if not self._at.seq and await self.ledger.setting(SETTING) is None:
            self._at = replace(self._at, whole=True)  # every line is there: they lead to every record
        self._saved_at = self.clock.boottime()
        await self._late_rows()
        self._current = True
        return True

    def _lost(self) -> None:
        """What is in memory may be old: the ledger knows better."""
        self.projection.forget()
        self._rows.clear()
        self._prepared.clear()
        self._at = self.cursor.place
        self._current = False

    async def _leave(self) -> None:
        try:
            if self.cursor.held and self._current:
                await self._tables(every=True)
                await self._save(every=True)
            await self.cursor.release()
        except (LedgerError, LeaseLost, FolderError) as error:
            log.info("the projector's lease stays until it runs out: %s", error)

    async def _save(self, *, every: bool) -> None:
        if self._at == self.cursor.place:
            return
        if every or self.clock.boottime() - self._saved_at >= SAVE_SECONDS:
            await self.cursor.save(self._at)
            self._saved_at = self.clock.boottime()

    async def _rest(self, span: float, until: asyncio.Event | None = None) -> None:
        nudge = asyncio.ensure_future((until or self._nudge).wait())
        sleep = asyncio.ensure_future(self.clock.sleep(span))
        try:
            await asyncio.wait({nudge, sleep}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in (nudge, sleep):
                waiter.cancel()
            await asyncio.gather(nudge, sleep, return_exceptions=True)

    # -- files -------------------------------------------------------------------------------------------------

    async def _step(self) -> int:
        """One batch: read, plan, write. The cursor in memory moves when the files are durable."""
        events = await self.ledger.events(after=self._at.seq, limit=self._size)
        if events:
            await self._project(events)
            self._at = replace(self._at, seq=events[-1].seq)
        if self.cursor.fading:
            await self.cursor.save(self._at)
        return len(events)

    async def _project(self, events: Sequence[Event]) -> None:
        seen, paths, configs = await self.projection.gather(events)
        await self._prepare(part.record.workflow for part in seen)
        planned = await asyncio.to_thread(self.projection.plan, seen, paths, configs)
        await self._write(planned)

    async def _prepare(self, workflows: Iterable[str]) -> None:
        for workflow in {*workflows} - self._prepared:
            async with self._renewed():
                await self.folder.prepare(workflow)
            self._prepared.add(workflow)

    async def _put(self, writes: Sequence[Write]) -> None:
        async with self._renewed():
            await self.folder.write(writes, self.cursor.fence)

    @asynccontextmanager
    async def _renewed(self) -> AsyncIterator[None]:
        """Writing takes as long as it takes: the lease is renewed meanwhile."""
        done = asyncio.Event()
        renewing = asyncio.ensure_future(self._renewing(done))
        try:
            yield
        finally:
            done.set()
            await renewing

    async def _renewing(self, done: asyncio.Event) -> None:
        while not done.is_set():
            await self._rest(self.cursor.lease / 6, done)
            if not done.is_set() and self.cursor.held and self.cursor.fading:
                try:
                    await self.cursor.save(self.cursor.place)
                except (LedgerError, LeaseLost) as error:  # the fence stops the writing in time
                    log.warning("the projector's lease is not renewed: %s", error)

    async def _write(self, planned: Planned) -> None:
        await self._put(planned.writes)
        for workflow, rows in planned.rows.items():
            self._rows.setdefault(workflow, {}).update(rows)

    async def _fill(self) -> None:
        """Write every record as it is, whatever lines there are; and remove locks that nothing holds."""
        locks: set[str] = set()
        async for records in self._records(""):
            await self._prepare(record.workflow for record in records)
            planned = await self.projection.whole(records)
            await self._write(planned)
            locks |= {write.path for write in planned.writes if "/locks/" in write.path}
            if self.cursor.fading:
                await self.cursor.save(self._at)
        gone: list[Write] = []
        for workflow in self._prepared:
            there = await self.folder.paths(f"{self.folder.layout(workflow).base}/locks")
            gone += [Gone(path) for path in there if path not in locks]
        await self._put(gone)
        self._at = replace(self._at, whole=True)

    async def _records(self, workflow: str) -> AsyncIterator[list[Record]]:
        after = ""
        while records := await self.ledger.find(Query(workflow=workflow, after=after, limit=PAGE)):
            yield records
            after = records[-1].record_id

    # -- tables ------------------------------------------------------------------------------------------------

    async def _late_rows(self) -> None:
        """Records that changed after the tables were written last."""
        after = self._at.table_seq
        while after < self._at.seq:
            events = await self.ledger.events(after=after, limit=self.batch)
            if not events:
                break
            after = events[-1].seq
            ids = list(dict.fromkeys(event.record_id for event in events))
            self._note_rows(await self.ledger.load(ids))

    def _note_rows(self, records: Sequence[Record]) -> None:
        for record in records:
            self._rows.setdefault(record.workflow, {})[record.record_id] = self.projection.row(record)

    async def _tables(self, *, every: bool) -> None:
        """Write the tables whose records changed; a long table less often than a short one."""
        began = self.clock.boottime()
        if not self._rows or (not every and began < self._table_after):
            return
        hashes = dict(self._at.tables)
        for workflow in list(self._rows):
            rows = self._rows[workflow]
            layout = self.folder.layout(workflow)
            [old] = await self.folder.read(layout.table)
            known = hashes.get(workflow)
            if known is None or old is None or hashlib.sha256(old).hexdigest() != known:
                found = {
                    row.record_id: self.projection.row(row) async for part in self._records(workflow) for row in part
                }
                old, rows = b"", found | {key: cells for key, cells in rows.items() if key not in found}
            content = await asyncio.to_thread(table.merged, old, rows)
            await self._put([Replace(layout.table, content)])
            hashes[workflow] = hashlib.sha256(content).hexdigest()
        self._rows.clear()
        self._at = replace(self._at, table_seq=self._at.seq, tables=hashes)
        took = self.clock.boottime() - began
        self._table_after = self.clock.boottime() + max(TABLE_SECONDS, TABLE_REST * took)
