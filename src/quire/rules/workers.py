"""Workers: the lease, what a worker holds, and the takeover of what it held. Pure (protocol 7, 8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.clock import made_after
from quire.model.change import Beaten, Holding
from quire.model.record import Record
from quire.model.row import replace
from quire.model.side import Worker
from quire.rules import conditions, effects, ending, moves, orders
from quire.rules.claims import of_claim
from quire.rules.draft import Draft
from quire.rules.orders import HALTED


def expired(draft: Draft, worker: Worker) -> bool:
    """Return whether the worker may be taken over from. No worker of a sealed ledger is."""
    return not draft.view.sealed and conditions.expired(worker, draft.now)


# -- the worker speaks -----------------------------------------------------------------------------------------


def beat(draft: Draft, worker: Worker, holding: Holding, held: Sequence[Record]) -> Beaten | None:
    """Renew the lease and agree on what the worker holds; None: it was closed. ``held``: its RUNNING rows."""
    orders.open_to_work(draft)
    known = draft.worker(worker.worker_id)
    if known is not None and known.closed is not None:
        return None
    started_at = draft.now if known is None else known.started_at
    draft.workers[worker.worker_id] = replace(
        worker, started_at=started_at, expires_at=draft.now + worker.lease_seconds, closed=None
    )
    given = {row.record_id: row for row in held}
    cancelled = []
    for row in held:
        if row.record_id in holding.versions:
            if row.cancel is not None or orders.held_back(draft, row):
                cancelled.append(row.record_id)
        elif not _expected(row, holding):
            _give_back(draft, row, f"orphan-{row.run_id}")
    lost = tuple(record_id for record_id in holding.versions if record_id not in given)
    return Beaten(draft.now, lost, tuple(cancelled))


def _expected(row: Record, holding: Holding) -> bool:
    """Return whether the worker's claim of this row is under way, or was made after it said what it holds."""
    if any(of_claim(row, claim_id) for claim_id in holding.claims):
        return True
    claim_id = (row.run_id or "").removeprefix("run_").rpartition("_")[0]
    return made_after(claim_id, holding.said)


def farewell(draft: Draft, worker_id: str, held: Iterable[Record]) -> None:
    """Close a worker that ends by itself. What it still holds goes back unharmed, unless the ledger is sealed."""
    known = draft.worker(worker_id)
    if known is None or known.closed is not None or draft.view.sealed:
        return
    draft.workers[worker_id] = replace(known, closed="farewell")
    for row in held:
        _give_back(draft, row, f"farewell-{row.run_id}")


def _give_back(draft: Draft, row: Record, change_id: str) -> None:
    go = ending.stop_of(draft, row) or moves.orphan(row, draft.now)
    ending.put_by_itself(draft, row, go.image, list(go.lines), change_id)


# -- others take over ------------------------------------------------------------------------------------------


def close(draft: Draft, worker: Worker, held: Iterable[Record], *, dead: bool = False) -> int:
    """Take over from a worker whose lease ran out, or that is dead. Return how many records are free by that.

    The worker is closed in the same commit: a beat of a closed worker is refused, so it cannot believe in a lease that
    others deny (protocol 8).
    """
    if worker.closed is not None or draft.view.sealed or not (dead or expired(draft, worker)):
        return 0
    why = "its process is dead" if dead else "its lease ran out"
    draft.workers[worker.worker_id] = replace(worker, closed=why)
    for row in (rows := list(held)):
        _lose(draft, row, why)
    return len(rows)


def overdue(draft: Draft, row: Record) -> int:
    """Take over a run past its hard end, although its worker lives (protocol 7). Return 1 if it was so."""
    if draft.view.sealed or not conditions.overdue(row, draft.now):
        return 0
    _lose(draft, row, "its run is past its end")
    return 1


def _lose(draft: Draft, row: Record, why: str) -> None:
    """Take the record from a worker that is gone: it is due again, or what an order or a doubt makes of it."""
    halts = orders.held_back(draft, row)
    stop = ending.stop_of(draft, row)
    go = stop or moves.lose(row, draft.now, why)
    image, lines = go.image, list(go.lines)
    if row.open_intents and (halts or image.ended):
        image = effects.doubted(draft, image, lines)
    elif halts and stop is None:
        image = replace(moves.halted(row), version=row.version + 1, updated_at=draft.now)
        lines.append(HALTED)
    ending.put_by_itself(draft, row, image, lines, f"lost-{row.run_id}")
