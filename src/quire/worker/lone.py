"""The worker in a process for suspects: it claims nothing, and runs one record at a time that its parent gives it."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from quire.clock import next_id
from quire.ledger.columns import record_of
from quire.model.change import Applied, Change, Verdict
from quire.model.record import Record, Status
from quire.rules import moves as transition
from quire.run.settling import settle
from quire.worker.child import ALIVE, LEFT, READY
from quire.worker.hold import Hold, late
from quire.worker.worker import Worker

#: A step that goes on for so long after the end of its run is left where it is, and the process ends.
FORCE_SECONDS = 0.25


class Lone(Worker):
    """``tell`` says one of the words of ``worker.child`` to the parent."""

    @property
    def alone(self) -> bool:
        return True

    def __init__(self, *args: Any, tell: Callable[[str], None], **options: Any) -> None:
        super().__init__(*args, concurrency=1, **options)
        self._say = tell
        self._handed: deque[tuple[Record, float]] = deque()

    def hand(self, given: Mapping[str, Any]) -> None:
        """Take a record that the parent gives."""
        self._handed.append((record_of(given["record"]), given["timeout"]))
        self.changed.set()

    def no_more(self) -> None:
        """End: the parent has ended, or wants this process to end."""
        self.stop()

    def may_keep(self, record: Record, step: str, steps: int, since: float) -> bool:
        return False  # from its next step on it is no suspect any more

    async def look_after(self) -> bool:
        return False  # that is its parent's work

    async def work(self) -> None:
        ticking = asyncio.ensure_future(self._ticking())
        self._say(READY)
        try:
            while not self.stopping:
                if not self._handed:
                    await self.nudged()
                    continue
                await self._attended(*self._handed.popleft())
                self._say(LEFT)
        finally:
            ticking.cancel()

    async def _ticking(self) -> None:
        while True:
            self._say(ALIVE)
            await self.clock.sleep(min(1.0, self.lease.seconds / 10))

    async def _attended(self, record: Record, timeout: float) -> None:
        """Take the record from the parent's worker and run its step."""
        if self.lease.ends_at <= self.clock.boottime():
            await self.patiently(self.lease.beat)
        go = transition.apart(record, self.now(), self.worker_id, timeout)
        change = Change(next_id(), record.record_id, record.version, go.image, record.worker, go.lines)
        claim_id = (record.run_id or "").removeprefix("run_").rpartition("_")[0]
        self.dispatcher.claims.add(claim_id)  # a beat on its way shall not give it back
        try:
            verdict = await self.submit(change)
            row = verdict.record if isinstance(verdict, Applied) else None
            if row is None or row.status is not Status.RUNNING or row.worker != self.worker_id:
                return
            self.holds.given[row.record_id] = row.version
        finally:
            self.dispatcher.claims.discard(claim_id)
        self.holds.lanes.begin(Hold(row, self.clock.boottime(), self.holds.settled))
        while self.holds.given and not self.stopping:
            await self.nudged()

    async def mind(self) -> None:
        """End the run at its hard end, also if its step cannot be ended: then this process ends with it."""
        while True:
            pass_ = next(iter(self.holds.passes.values()), None)
            end = pass_.record.run_until if pass_ is not None else None
            await self.clock.sleep(0.05 if end is None else min(max(end - self.now(), 0.05), 1.0))
            if pass_ is None or end is None or self.now() < (pass_.record.run_until or end):
                continue
            if not pass_.is_under_way:
                continue
            outcome = late(pass_)
            pass_.halt(outcome)
            await self.clock.sleep(FORCE_SECONDS)
            if pass_ in self.holds.passes.values() and pass_.is_under_way:
                settle(pass_, outcome, self._forced)

    def _forced(self, verdict: Verdict | BaseException) -> None:
        """The record is settled while its step goes on. Nobody can end the step but with the process."""
        self._say(LEFT)
        os._exit(0)
