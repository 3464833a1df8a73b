"""Suspects: records whose step may be what ends its workers. Each runs where nothing else runs (protocol 23).

The worker hands a suspect to a process of its own, a few of them side by side, and goes on with the rest. Such a
process is a worker incarnation (``worker.lone``): leases, beats, commits and intents follow the same rules as
everywhere. The worker watches it. If the process dies by itself, or does not answer any more, the worker counts a try
that failed. If the worker dies too, nobody is left to count: then the record is only a suspect, as before.

A process serves several suspects, one after the other. If it dies under one that was not its first, another one may
have damaged it: nothing is counted, and that record gets a fresh process the next time.

Where no process can be started (a ledger in memory, a test clock, workflows that only this process has), a suspect runs
alone in the worker itself: the worker claims nothing, waits until all else has ended, and runs one suspect at a time.
Nobody watches that worker, so its death is counted before it happens (``transition.apart``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from quire.clock import next_id
from quire.errors import LedgerError
from quire.model.change import Applied, Change, Conflict
from quire.model.record import UNDO, Record, Status
from quire.model.row import field_values
from quire.rules import moves as transition
from quire.worker.child import Child, Ended

if TYPE_CHECKING:
    from quire.worker.hold import Hold
    from quire.worker.worker import Worker

log = logging.getLogger("quire.worker")

#: So many processes for suspects run side by side; one, where the store has room for few workers.
MOST = 4
#: A process that has not begun to work by then will not.
START_SECONDS = 120.0
#: A process that was silent for this part of its lease is ended: soon the ledger would close its worker.
SILENT = 0.75
#: How much longer than its grace period a process may take to end.
END_SECONDS = 2.0


class Spawn(NamedTuple):
    """How a process is started that works on the same ledger with the same workflows."""

    command: Sequence[str]
    #: What it reads first, as JSON.
    setup: Mapping[str, Any]


class Apart:
    """The suspects of one worker."""

    def __init__(self, worker: Worker, spawn: Spawn | None) -> None:
        self._worker = worker
        self.spawn = spawn
        #: Those that wait for a process, or for silence in the worker.
        self.waiting: deque[Hold] = deque()
        #: The one that runs alone in the worker itself.
        self.inside: Hold | None = None
        self._children: set[Child] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = False
        self._closing = False
        #: How many are with processes.
        self._away = 0
        #: Records under which a process died that another one may have damaged.
        self._fresh: set[str] = set()

    def __len__(self) -> int:
        """Return how many of the worker's records take no place of its concurrency."""
        return len(self.waiting) + self._away

    @property
    def pids(self) -> set[int]:
        """The processes whose end this worker counts itself."""
        return {child.pid for child in self._children}

    @property
    def wants_silence(self) -> bool:
        """Whether the worker must end all else, for a suspect runs in it next, or does."""
        return self.inside is not None or (self.spawn is None and bool(self.waiting))

    def add(self, hold: Hold) -> None:
        self.waiting.append(hold)
        self._go()

    def _go(self) -> None:
        """Start one more process, if a suspect waits and the last process that was started works."""
        most = 1 if self._worker.ledger.traits.most_writers is not None else MOST
        if self.spawn is None:
            self._worker.changed.set()
        elif self.waiting and not self._starting and not self._closing and len(self._tasks) < most:
            self._starting = True
            task = asyncio.ensure_future(self._serving(self.spawn))
            self._tasks.add(task)
            task.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a process for suspects ended badly: %s", error, exc_info=error)
        self._go()

    # -- in a process of its own -------------------------------------------------------------------------------

    async def _serving(self, spawn: Spawn) -> None:
        """Serve suspects by one process after the other, until none waits."""
        child: Child | None = None
        begins = True
        try:
            while self.waiting and not self._closing and self.spawn is not None:
                if child is not None and (child.ended or not self._may_serve(child, self.waiting[0])):
                    await self._end(child)
                    child = None
                if child is None:
                    child = self._begun(spawn)
                    if child is None or not await child.ready(START_SECONDS):
                        self._cannot(child)
                        return
                    if begins:
                        begins = self._starting = False
                        self._go()
                    continue  # the queue has moved on meanwhile
                await self._attended(child, self.waiting.popleft())
        finally:
            if begins:
                self._starting = False
            if child is not None:
                await self._end(child)

    def _may_serve(self, child: Child, hold: Hold) -> bool:
        return child.alone or hold.record.record_id not in self._fresh

    def _begun(self, spawn: Spawn) -> Child | None:
        worker = self._worker
        setup = {**spawn.setup, "lease": worker.lease.seconds, "grace": worker.grace, "label": f"{worker.label}, alone"}
        try:
            child = Child(spawn.command, setup)
        except OSError as error:
            log.warning("no process can be started: %s", error)
            return None
        self._children.add(child)
        return child

    def _cannot(self, child: Child | None) -> None:
        if self._closing:
            return
        self.spawn = None
        how = f" ({child.ended.text})" if child is not None and child.ended is not None else ""
        log.warning(
            "records that may be what ended their workers get no process of their own: it did not begin to work%s; "
            "they run alone in this worker, one at a time",
            how,
        )

    async def _attended(self, child: Child, hold: Hold) -> None:
        """Keep one suspect in a process of its own until the record has left it."""
        self._away += 1
        record = hold.record
        try:
            timeout = self._timeout(record)
            if timeout is None or record.worker != self._worker.worker_id or self._closing:
                return
            child.send({"record": field_values(record), "timeout": timeout})
            ended = await child.served(SILENT * self._worker.lease.seconds)
            if ended is not None:
                await self._died(child, hold, ended)
            else:
                self._fresh.discard(record.record_id)
            await self._announced(record)
        except LedgerError as error:  # the ledger frees the record when the lease of the process runs out
            log.warning("what became of %r in its process is not known yet: %s", record.record_id, error)
        finally:
            self._away -= 1
            self._worker.holds.let_go(hold)

    async def _died(self, child: Child, hold: Hold, ended: Ended) -> None:
        """Settle what became of a record whose process is gone. If the process died by itself, the try failed."""
        worker, record_id = self._worker, hold.record.record_id
        first, child.alone = child.alone, False
        if not first:
            self._fresh.add(record_id)
        [row] = await worker.ledger.load([record_id])
        for _ in range(5 if first and not ended.asked else 0):
            if row.status is not Status.RUNNING or row.run_id != hold.run_id or row.worker == worker.worker_id:
                break  # the process had ended with it, or not begun
            go = transition.died(row, worker.now(), ended.text, undo=self._undoes(row))
            change = Change(next_id(), record_id, row.version, go.image, row.worker, go.lines, frees=True)
            verdict = await worker.submit(change)
            if not isinstance(verdict, Conflict) or verdict.record is None:
                break
            row = verdict.record
        self._children.discard(child)
        await worker.tidy_up()  # closes the process's worker

    def _undoes(self, record: Record) -> bool:
        """Whether the workflow wants undone what a record did that failed."""
        workflow = self._worker.registry.get(record.workflow)
        return workflow is not None and workflow.on_failure == "undo"

    async def _announced(self, record: Record) -> None:
        for row in await self._worker.ledger.load([record.record_id]):
            if row.version > record.version and row.status is not Status.RUNNING:
                self._worker.holds.tell(row)

    def _timeout(self, record: Record) -> float | None:
        workflow = self._worker.registry.get(record.workflow)
        step = workflow.find(record.step) if workflow is not None else None
        if workflow is None or (step is None and record.step != UNDO):
            return None
        return 3600.0 if step is None else workflow.slot(step).timeout

    async def _end(self, child: Child) -> None:
        child.close()
        await child.gone(self._worker.grace + END_SECONDS)
        self._children.discard(child)

    async def close(self, grace: float) -> None:
        """End the processes: their steps may finish within the grace period. What waits goes back to the ledger."""
        self._closing = True
        try:
            self.forget()
            for child in list(self._children):
                child.close(at_once=grace <= 0)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=grace + END_SECONDS)
            for child in list(self._children):
                child.kill(asked=True)
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self._closing = False

    def forget(self) -> None:
        """Forget the suspects that wait: they belong to other workers now."""
        while self.waiting:
            self._worker.holds.let_go(self.waiting.popleft())

    def end_now(self) -> None:
        for child in list(self._children):
            child.close(at_once=True)

    # -- alone in the worker itself ----------------------------------------------------------------------------

    async def inside_next(self) -> None:
        """Run the next suspect in this worker, which holds nothing else; return when the record has left it."""
        worker, hold = self._worker, self.waiting.popleft()
        record, timeout = hold.record, self._timeout(hold.record)
        self.inside = hold
        try:
            if timeout is None:
                return worker.holds.let_go(hold)
            undo = self._undoes(record)
            go = transition.apart(record, worker.now(), worker.worker_id, timeout, counted=True, undo=undo)
            change = Change(next_id(), record.record_id, record.version, go.image, record.worker, go.lines)
            verdict = await worker.submit(change)
            if isinstance(verdict, Applied) and worker.stopping:
                return worker.holds.let_go(hold)
            worker.holds.settled(hold, verdict)
            while len(worker.holds.given) > len(self.waiting) and not worker.stopping:
                await worker.nudged()
        except BaseException:
            with suppress(Exception):
                worker.holds.let_go(hold)
            raise
        finally:
            self.inside = None
