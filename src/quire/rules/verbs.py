"""The verbs of a ledger, decided over a draft: what a store calls between its reading and its writing. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.change import Beaten, Change, Holding, Order, Send, Verdict
from quire.model.record import Record
from quire.model.side import Worker
from quire.rules import changes as rules
from quire.rules import orders, waiting, workers
from quire.rules.draft import Draft


def commit(draft: Draft, changes: Sequence[Change]) -> list[Verdict]:
    """Decide these changes, in order; all or none of them, if one of them says so."""
    return rules.commit(draft, changes)


def change(draft: Draft, change: Change) -> Verdict:
    """Decide one change."""
    return rules.decide(draft, change)


def send(draft: Draft, sends: Sequence[Send]) -> list[Verdict]:
    """Decide these signals, in order."""
    return [waiting.send(draft, sent) for sent in sends]


def order(draft: Draft, order: Order) -> None:
    """Halt, pause or resume."""
    orders.order(draft, order)


def beat(draft: Draft, worker: Worker, holding: Holding, held: Sequence[Record]) -> Beaten | None:
    """Renew the lease of a worker and agree on what it holds; None: it was closed. ``held``: its RUNNING rows."""
    return workers.beat(draft, worker, holding, held)


def farewell(draft: Draft, worker_id: str, held: Sequence[Record]) -> None:
    """The worker ends of its own will. ``held``: its RUNNING rows, which go back unharmed."""
    workers.farewell(draft, worker_id, held)
