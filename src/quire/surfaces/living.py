"""Which workers live, and which steps they know."""

from __future__ import annotations

from collections.abc import Iterable

from quire.ledger.rules import GRACE
from quire.model.codec import parse
from quire.model.side import Worker


def alive(worker: Worker, now: float) -> bool:
    """The worker is open and its lease, with the others' grace, has not run out."""
    return worker.closed is None and worker.expires_at + GRACE * worker.lease_seconds >= now


def knowers(workers: Iterable[Worker], workflow: str, step: str, now: float) -> list[Worker]:
    """The live workers that can run this step."""
    return [worker for worker in workers if alive(worker, now) and [workflow, step] in parse(worker.knows)]
