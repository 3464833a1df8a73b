"""What a ledger decides: pure, the same on every store.

A store locks the rows that a request may touch, reads them, and lets a ``Draft`` decide over them here; the draft then
holds the after-image of every row that changes, and the store writes these and commits. So version checks, fan-in,
signals, caps, halts and doubts are written once, and a store is only a way to lock, read and write (protocol 3, 4).

From the ground up: ``rules_sketch`` (what stands, what is written down), ``rules_meeting`` (children and signals),
``rules_claim`` (who may begin), ``rules_change`` (changes), and here workers, orders and sweeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.clock import made_after
from quire.model.change import Beaten, Holding, Order
from quire.model.event import Line
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import Control, Fanin, Worker
from quire.rules import moves as transition
from quire.rules import orders
from quire.rules.changes import Changing
from quire.rules.claims import of_claim
from quire.rules.orders import HALTED

#: A lease that ran out is honoured this much longer by others than by its worker (protocol 8).
GRACE = 0.1


class Draft(Changing):
    """Decisions over a view, and the after-images that they lead to. Nothing is written until the store does it."""

    # -- workers -----------------------------------------------------------------------------------------------

    def beat(self, worker: Worker, holding: Holding, held: Sequence[Record]) -> Beaten | None:
        """Renew the lease and agree on what the worker holds; None: it was closed. ``held``: its RUNNING rows."""
        self.open_to_work()
        known = self.workers.get(worker.worker_id) or self.view.worker(worker.worker_id)
        if known is not None and known.closed is not None:
            return None
        started_at = self.now if known is None else known.started_at
        self.workers[worker.worker_id] = replace(
            worker, started_at=started_at, expires_at=self.now + worker.lease_seconds, closed=None
        )
        given = {row.record_id: row for row in held}
        cancelled = []
        for row in held:
            if row.record_id in holding.versions:
                if row.cancel is not None or self.halted(row.workflow) is not None or self.outdated(row):
                    cancelled.append(row.record_id)
            elif not _expected(row, holding):
                self._give_back(row, f"orphan-{row.run_id}")
        lost = tuple(record_id for record_id in holding.versions if record_id not in given)
        return Beaten(self.now, lost, tuple(cancelled))

    def farewell(self, worker_id: str, held: Iterable[Record]) -> None:
        """The worker ends of its own will: what it still holds goes back unharmed. Not where the ledger is sealed."""
        known = self.workers.get(worker_id) or self.view.worker(worker_id)
        if known is None or known.closed is not None or self.view.sealed:
            return
        self.workers[worker_id] = replace(known, closed="farewell")
        for row in held:
            self._give_back(row, f"farewell-{row.run_id}")

    def _give_back(self, row: Record, change_id: str) -> None:
        go = self._stopped(row) or transition.orphan(row, self.now)
        self._finish(row, go.image, list(go.lines), change_id)

    def expired(self, worker: Worker) -> bool:
        return (
            not self.view.sealed
            and worker.closed is None
            and worker.expires_at + GRACE * worker.lease_seconds < self.now
        )

    def close(self, worker: Worker, held: Iterable[Record], *, dead: bool = False) -> int:
        """Take over from a worker whose lease ran out, or that is dead: it is closed, then its records are free.

        See protocol 8: a beat of a closed worker is refused, so it cannot believe in a lease that others deny.
        """
        if worker.closed is not None or self.view.sealed or not (dead or self.expired(worker)):
            return 0
        why = "its process is dead" if dead else "its lease ran out"
        self.workers[worker.worker_id] = replace(worker, closed=why)
        return sum(self.lose(row, why) for row in held)

    def overdue(self, row: Record) -> int:
        """A run past its hard end is taken over although its worker lives (protocol 7)."""
        if row.status is not Status.RUNNING or row.run_until is None or row.run_until >= self.now or self.view.sealed:
            return 0
        return self.lose(row, "its run is past its end")

    def lose(self, row: Record, why: str) -> int:
        halts = self.halted(row.workflow) is not None or self.outdated(row)
        stop = self._stopped(row)
        go = stop or transition.lose(row, self.now, why)
        image, lines = go.image, list(go.lines)
        if row.open_intents and (halts or image.ended):
            image = self._doubted(image, lines)
        elif halts and stop is None:
            image = replace(transition.halted(row), version=row.version + 1, updated_at=self.now)
            lines.append(HALTED)
        self._finish(row, image, lines, f"lost-{row.run_id}")
        return 1

    # -- orders and sweeps -------------------------------------------------------------------------------------

    def order(self, order: Order) -> None:
        """Halt, pause, resume: one small commit, whatever the number of records (protocol 15)."""
        known = self.control(order.scope) or Control(order.scope, False, 0, False, "", 0.0, "")
        told = replace(known, by=order.by, at=self.now, reason=order.reason)
        if order.word == "halt":
            self.epoch += 1
            told = replace(told, halted=True, floor=self.epoch)
            self.woke = True  # workers that wait for work hear of it, and end what they run
        elif order.word == "pause":
            told = replace(told, paused=True)
        elif order.word == "resume":
            if told.halted:
                self.epoch += 1
            told = replace(told, halted=False, paused=False)
            self.woke = True
        self.controls[order.scope] = told
        self._ordered.clear()

    def sweep_halted(self, row: Record) -> bool:
        """Write down what holds by definition: what waits in a halted epoch is CANCELLED."""
        if not self.cancelled(row) or self.view.sealed:
            return False
        if orders.may_be_obeyed(row):
            self._obey(row, f"obeyed-{row.record_id}-{row.version}")
            return True
        image = replace(transition.halted(row), version=row.version + 1, updated_at=self.now)
        self._finish(row, image, [HALTED], f"halt-{row.record_id}-{row.version}")
        return True

    def adopt(self, row: Record, by: str, why: str) -> bool:
        """A record of a book that was copied or restored asks a person before it goes on (protocol 11)."""
        if row.ended or self.sweep_halted(row):
            return False
        if self._stopped(row) is not None:
            row = self._obey(row, f"adopt-{row.record_id}-{row.version}")
            if row.ended:
                return False
        if row.status is Status.RUNNING:
            go = transition.orphan(row, self.now)
            row = self._put(row, go.image, go.lines, f"adopt-{row.run_id}")
        keys = [(receipt.key, receipt.name) for receipt in self._intents(row.record_id)]
        go = transition.adopt(row, self.now, by, why, self.epoch, keys)
        self._put(row, go.image, go.lines, f"adopt-{row.record_id}-{row.version}")
        return True

    def sweep_abandoned(self, row: Record, fanin: Fanin) -> bool:
        """A child whose parent went on without it is cancelled; one that undoes what it did does so to the end."""
        if row.ended or not fanin.abandoned or row.step == UNDO or self.view.sealed:
            return False
        reason = "its parent went on without it"
        if row.status is Status.RUNNING or row.open_intents:
            if row.cancel is None:
                wish = orders.wish("", reason, undo=False)
                self._put(row, replace(row, cancel=wish), [Line("cancel_asked", wish)], f"abandon-{row.record_id}")
                return True
            return False
        go = transition.stopped(row, self.now, reason, False)
        self._finish(row, go.image, list(go.lines), f"abandon-{row.record_id}-{row.version}")
        return True


def _expected(row: Record, holding: Holding) -> bool:
    """The worker's claim of this row is under way, or was made after it said what it holds."""
    if any(of_claim(row, claim_id) for claim_id in holding.claims):
        return True
    claim_id = (row.run_id or "").removeprefix("run_").rpartition("_")[0]
    return made_after(claim_id, holding.said)


def as_seen(record: Record, controls: Iterable[Control]) -> Record:
    """The record as people see it: what a halt cancelled by definition shows as CANCELLED before the sweep wrote it."""
    if record.ended or orders.under_way(record):
        return record
    if orders.outdated(record, controls):
        return replace(record, status=Status.CANCELLED, due_at=None)
    return record
