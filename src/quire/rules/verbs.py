"""The verbs of a ledger, decided over a draft: what a store calls between its reading and its writing. Pure.

A store opens a transaction, makes a ``Draft`` over its ``Rows``, calls a verb, and writes the draft. A store that must
lock in several steps, as PostgreSQL, calls the parts of ``claim``, ``beat``, ``farewell`` and ``recover`` instead:
``claims.allowance`` and ``claims.take``, ``workers.beat``, ``workers.close``, ``sweeps.halted`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from quire.model.change import (
    Beaten,
    Change,
    Claim,
    Claimed,
    Holding,
    Order,
    Recovered,
    Send,
    Slot,
    Verdict,
)
from quire.model.record import Record, Status
from quire.model.side import Control, Worker
from quire.rules import changes as rules
from quire.rules import claims, conditions, orders, returning, sweeps, waiting, workers
from quire.rules.draft import Draft
from quire.rules.rows import Rows


def commit(draft: Draft, changes: Sequence[Change]) -> list[Verdict]:
    """Decide these changes, in order; all or none of them, if one of them says so."""
    return rules.commit(draft, changes)


def change(draft: Draft, change: Change) -> Verdict:
    """Decide one change."""
    return rules.decide(draft, change)


def send(draft: Draft, sends: Sequence[Send]) -> list[Verdict]:
    """Decide these signals, in order."""
    return [waiting.send(draft, sent) for sent in sends]


def order(draft: Draft, order: Order, known: Iterable[Control]) -> None:
    """Halt, pause or resume. ``known``: the orders as they stand."""
    orders.order(draft, order, known)


# -- claims ----------------------------------------------------------------------------------------------------


def claim(draft: Draft, rows: Rows, claim: Claim) -> Claimed:
    """Due records of these steps become the worker's. A claim that is sent again gets what it took before."""
    if claim.again and (before := claims.claimed_by(claim, _held(draft, rows, claim.worker))):
        return Claimed(tuple(before), draft.now)
    taken: list[Record] = []
    left = _Left(draft, rows)
    for slot in claim.slots:
        room = min(claims.allowance(draft, slot), claim.limit - len(taken))
        due = _due(draft, rows, slot, room + 1)
        taken += claims.take(draft, claim, slot, due[:room])
        left.add(slot, due[room:])
    return left.claimed(taken)


def peek(draft: Draft, rows: Rows, claim: Claim) -> Claimed | None:
    """Return the answer to a claim that takes nothing; None: it may take something. Nothing is decided."""
    if claim.again:
        return None
    left = _Left(draft, rows)
    for slot in claim.slots:
        claims.take(draft, claim, slot, ())
        due = _due(draft, rows, slot, 1)
        if due and min(claims.allowance(draft, slot), claim.limit) > 0:
            return None
        left.add(slot, due)
    return left.claimed(())


class _Left:
    """What a claim leaves: which records that are due, and when more will be."""

    def __init__(self, draft: Draft, rows: Rows) -> None:
        self._draft = draft
        self._rows = rows
        self._slots: list[Slot] = []
        self._priorities: list[int] = []
        self._moments: list[float] = []

    def add(self, slot: Slot, due: Sequence[Record]) -> None:
        """``due``: the records that stay at this step although they are due."""
        if due:
            self._slots.append(slot)
            self._priorities += [record.priority for record in due]
        elif (moment := self._rows.next_due(slot, self._draft.now)) is not None:
            self._moments.append(moment)

    def claimed(self, taken: Sequence[Record]) -> Claimed:
        next_due = claims.next_look(self._draft, self._slots, min(self._moments, default=None))
        most = max(self._priorities, default=None)
        return Claimed(tuple(taken), self._draft.now, next_due, most, self._draft.epoch)


def _due(draft: Draft, rows: Rows, slot: Slot, limit: int) -> Sequence[Record]:
    """Return the records that are due at this step, as they stand by now; at least the first of them, up to a limit."""
    floor = orders.floor(draft, slot.workflow)
    changed = draft.records
    if not changed:
        return rows.due(slot, draft.now, floor, limit)
    here = sum((row.workflow, row.step) == (slot.workflow, slot.step) for row in changed.values())
    found = [row for row in rows.due(slot, draft.now, floor, limit + here) if row.record_id not in changed]
    new = [row for row in changed.values() if conditions.due(row, slot, draft.now, floor)]
    return sorted(found + new, key=lambda row: (row.rank, row.record_id)) if new else found


# -- workers ---------------------------------------------------------------------------------------------------


def beat(draft: Draft, rows: Rows, worker: Worker, holding: Holding) -> Beaten | None:
    """Renew the lease of a worker and agree on what it holds; None: it was closed."""
    return workers.beat(draft, worker, holding, _held(draft, rows, worker.worker_id))


def farewell(draft: Draft, rows: Rows, worker_id: str) -> None:
    """The worker ends of its own will: what it still holds goes back unharmed."""
    workers.farewell(draft, worker_id, _held(draft, rows, worker_id))


def _held(draft: Draft, rows: Rows, worker_id: str) -> list[Record]:
    """Return the records that run under this worker, as they stand by now."""
    changed = draft.records
    found = [row for row in rows.held_by(worker_id) if row.record_id not in changed]
    return found + [row for row in changed.values() if row.status is Status.RUNNING and row.worker == worker_id]


def recover(
    draft: Draft, rows: Rows, limit: int, dead: Collection[str], *, silent: Callable[[Worker], bool] = lambda _: True
) -> Recovered:
    """Take over from workers whose lease ran out, and write down what orders and gone parents have cancelled.

    ``dead``: workers that are known to have ended. ``silent``: whether a worker whose lease ran out may be taken over
    from.
    """
    known = {worker.worker_id: worker for worker in rows.open_workers()} | draft.workers
    alive = [worker for worker in known.values() if worker.closed is None]
    freed = 0
    for worker in alive:
        ended = worker.worker_id in dead
        if ended or (workers.expired(draft, worker) and silent(worker)):
            freed += workers.close(draft, worker, _held(draft, rows, worker.worker_id), dead=ended)
    freed += sum(workers.overdue(draft, row) for row in _by_now(draft, rows.overdue(draft.now)))
    controls = {control.scope: control for control in rows.orders()} | draft.controls
    swept = sum(sweeps.halted(draft, row) for row in _by_now(draft, rows.cancelled(list(controls.values()), limit)))
    for row, fanin in rows.abandoned(limit):
        swept += sweeps.abandoned(draft, draft.record(row.record_id) or row, fanin)
    left = tuple(worker for worker in alive if draft.workers.get(worker.worker_id, worker).closed is None)
    back = returning.under_way(controls.values())
    return Recovered(len(alive) - len(left), freed, swept, swept >= limit, left, back)


def _by_now(draft: Draft, found: Iterable[Record]) -> Iterable[Record]:
    """These rows as they stand by now: each is looked up when its turn comes."""
    return (draft.record(row.record_id) or row for row in found)
