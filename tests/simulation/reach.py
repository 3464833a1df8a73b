"""Which cells of the table of orders a simulation reaches: which order a person gave to a record in which state."""

from __future__ import annotations

from typing import cast

from quire.ledger.base import Ledger
from quire.model.record import ENDED, Record, Status
from quire.model.side import Worker
from quire.rules import conditions
from quire.rules.order_table import Family, Lease, State, Verb, states

Cell = tuple[str, State]
#: Every cell that there is.
ALL: frozenset[Cell] = frozenset((verb.value, state) for verb in Verb for state in states())
_VERBS = frozenset(verb.value for verb in Verb)


async def cells(ledger: Ledger, verb: str, record: str, what: str) -> set[Cell]:
    """The cells that this order reaches now. An order to a workflow, or to all, reaches each of their records."""
    if verb not in _VERBS:
        return set()
    standing = await ledger.standing()
    rows = cast(list[Record], await ledger.dump(Record, limit=10_000))
    known = {row.record_id: row for row in rows}
    workers = {worker.worker_id: worker for worker in await ledger.workers()}
    asked = [known[record]] if record in known else [row for row in rows if what in ("", row.workflow) and not record]
    found: set[Cell] = set()
    for row in asked:
        over = row.status in ENDED
        halted = conditions.stopped(row, standing.controls)
        for family in _families(row, known, rows):
            found.add(
                (
                    verb,
                    State(
                        row.status,
                        _lease(row, workers, standing.now),
                        row.open_intents > 0 and not over,
                        halted,
                        family,
                    ),
                )
            )
    return found & ALL


def _lease(row: Record, workers: dict[str, Worker], now: float) -> Lease:
    if row.status is not Status.RUNNING:
        return Lease.NOBODY
    worker = workers.get(row.worker or "")
    return Lease.RUNS if worker is not None and worker.expires_at >= now else Lease.RAN_OUT


def _families(row: Record, known: dict[str, Record], rows: list[Record]) -> set[Family]:
    found = set()
    if row.status not in ENDED and any(one.parent_id == row.record_id and not one.counted for one in rows):
        found.add(Family.PARENT)
    parent = known.get(row.parent_id or "")
    if parent is not None and parent.status is Status.WAITING:
        found.add(Family.CHILD)
    return found or {Family.ALONE}
