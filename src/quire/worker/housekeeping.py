"""Housekeeping: a periodic look after what no hint announces. It is the guarantee behind all hints.

It takes over from workers whose process is dead or whose lease ran out, writes down what halts cancelled, and starts
what is scheduled.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

from quire.errors import LedgerUnavailable
from quire.worker import forgetting, returns, schedule

if TYPE_CHECKING:
    from quire.worker.worker import Worker

log = logging.getLogger("quire.worker")

#: The housekeeping waits at least this long before it goes through the ledger again.
LEAST_LOOK_SECONDS = 0.5


class Housekeeping:
    """The periodic look of one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._clock = worker.clock
        self._ledger = worker.ledger
        #: Set if the next look is to come soon.
        self.soon = asyncio.Event()

    async def run(self) -> None:
        """Takeovers, sweeps, schedules: the periodic look that is the guarantee behind all hints."""
        more = False
        while True:
            if more:
                await self._clock.sleep(0.05)
            else:
                await self._until_look(self._ledger.traits.poll_seconds * random.uniform(1.0, 1.4))
            self.soon.clear()
            try:
                more = await self._worker.look_after()
            except LedgerUnavailable as error:
                log.warning("housekeeping failed: %s", error)
                more = False
            except Exception:
                log.exception("housekeeping failed")  # the next look is the guarantee: it must come
                more = False

    async def _until_look(self, span: float) -> None:
        """Rest for the span, or until the ledger announced what nobody can claim, and at least for a moment."""
        await self._clock.sleep(min(span, LEAST_LOOK_SECONDS))
        waits = [asyncio.ensure_future(wait) for wait in (self.soon.wait(), self._clock.sleep(span))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def look_after(self) -> bool:
        """Take over from dead workers, sweep, and start what is scheduled. Return whether there is more to sweep."""
        recovered = await self._ledger.recover()
        # Workers of this machine whose process is gone need not be waited for.
        own = self._worker.apart.pids  # what their ends mean is said by whoever watches them
        dead = [
            row.worker_id
            for row in recovered.open
            if row.worker_id != self._worker.lease.worker_id and row.pid not in own and self._worker.known_dead(row)
        ]
        if dead:
            recovered = await self._ledger.recover(dead=dead)
        if recovered.records or recovered.workers:
            self._worker.changed.set()
        for order in recovered.returning:
            if self._worker.now() > order.at + returns.LEAVE_SECONDS:
                await returns.bring_back(self._ledger, order)
                self._worker.changed.set()
        await schedule.start_due(self._ledger, self._worker.registry, self._worker.now())
        return await self._forget() or recovered.more

    async def _forget(self) -> bool:
        """Forget some of what ended long ago, if the worker was asked to. True: there may be more."""
        retention = self._worker.retention
        if retention is None:
            return False
        gone = await forgetting.forget_some(self._ledger, await self._ledger.now() - retention, "retention")
        return gone.records == forgetting.BATCH
