"""The lease of a worker: its beats, what a beat agrees on, and what is lost with the lease.

A worker process is a fresh incarnation (its id). If its lease runs out, the ledger closes it: others get what it holds,
and the worker goes on under a new id (protocol 8).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from quire.clock import new_id, next_id
from quire.errors import LedgerUnavailable, Moved, WorkerClosed
from quire.model.change import Holding
from quire.model.record import Status
from quire.rules.outcome import Stopped

if TYPE_CHECKING:
    from quire.worker.worker import Worker

log = logging.getLogger("quire.worker")


class Lease:
    """One worker's lease. ``seconds``: how long a beat keeps it."""

    worker_id: str
    #: What the ledger's clock shows beyond this process's own.
    offset: float
    #: The end of the lease, on ``clock.boottime``.
    ends_at: float

    def __init__(self, worker: Worker, seconds: float) -> None:
        self._worker = worker
        self._clock = worker.clock
        self._ledger = worker.ledger
        self.seconds = seconds
        self.begin_anew()

    @property
    def left(self) -> float:
        """For how many seconds the lease is sure to last."""
        return self.ends_at - self._clock.boottime()

    def begin_anew(self) -> None:
        self.worker_id = new_id("w_")
        self.offset = self._clock.now() - self._clock.boottime()
        self.ends_at = self._clock.boottime()

    async def beat(self) -> None:
        """Renew the lease, counted from before the beat was sent, and agree on what this worker holds."""
        sent = self._clock.boottime()
        passes = self._worker.holds.passes
        held = self._worker.holds.given | {record_id: pass_.record.version for record_id, pass_ in passes.items()}
        holding = Holding(held, tuple(self._worker.dispatcher.claims), next_id())
        beaten = await self._ledger.beat(self._worker.row(), holding)
        self.ends_at = max(self.ends_at, sent + self.seconds)
        self.hear_time(beaten.now, sent)
        for record_id in beaten.lost:
            pass_ = passes.get(record_id)
            if pass_ is not None and pass_.record.version == held[record_id] and pass_.record.status is Status.RUNNING:
                pass_.lose()
        for record_id in beaten.cancelled:
            pass_ = passes.get(record_id)
            if pass_ is not None:
                pass_.halt(Stopped("it was cancelled, or halted"))

    def hear_time(self, now: float, asked: float) -> None:
        """Set the worker's idea of the ledger's time by an answer that said ``now``.

        The ledger said so between the moment at which it was asked and this one. An answer that came late says little:
        then the idea changes only as far as it must. Otherwise the worker's time would be behind by as much as the
        answer was late, and what it writes down, such as the end of a sleep or of an act, would come too early.
        """
        received = self._clock.boottime()
        self.offset = min(max(self.offset, now - received), now - asked)

    async def beating(self) -> None:
        """Beat a few times a lease, end runs that are past their end, and give up when the lease is in danger."""
        away = False
        while True:
            rest = min(self.seconds / 4, self._ledger.traits.poll_seconds * 3)
            await self._clock.sleep(rest)
            worker_id = self.worker_id
            try:
                await self.beat()
                if away:
                    away, self._worker.back_since = False, self._worker.now()
                await self._worker.look_back()
            except WorkerClosed:
                self.die(worker_id, "its lease ran out")
            except Moved as error:
                return self._worker.moved_away(error)
            except LedgerUnavailable as error:
                log.warning("beat of %s failed: %s", self.worker_id, error)
                away = True
                if self._clock.boottime() > self.ends_at - self.seconds / 3:
                    self.die(worker_id, "its lease cannot be renewed")

    def die(self, worker_id: str, why: str) -> None:
        """End this incarnation: other workers have its records, or soon will."""
        if worker_id != self.worker_id:  # somebody else has found out before
            return
        log.warning("worker %s stops its runs: %s", worker_id, why)
        for pass_ in list(self._worker.holds.passes.values()):
            pass_.lose()
        self._worker.apart.forget()
        self._worker.marks.heard = False
        self.begin_anew()
        self._worker.changed.set()  # what it held is due again, here as well as elsewhere
