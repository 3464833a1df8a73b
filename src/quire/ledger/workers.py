"""Which workers live, and which steps they know."""

from __future__ import annotations

from collections.abc import Iterable

from quire.ledger import process
from quire.model.codec import parse
from quire.model.side import Worker
from quire.rules import conditions


def alive(worker: Worker, now: float) -> bool:
    """It is open, its lease, with the others' grace, has not run out, and its process is not known to be dead."""
    leased = worker.closed is None and not conditions.expired(worker, now)
    return leased and not process.known_dead(worker)


def knowers(workers: Iterable[Worker], workflow: str, step: str, now: float, version: int = 0) -> list[Worker]:
    """The live workers that can run this step, of records of this version."""
    return [worker for worker in workers if alive(worker, now) and _knows(worker, workflow, step, version)]


def _knows(worker: Worker, workflow: str, step: str, version: int) -> bool:
    """A worker of an older Quire does not tell its versions, and takes all."""
    known_versions = [known[2:] for known in parse(worker.knows) if known[:2] == [workflow, step]]
    return any(version <= min(versions, default=version) for versions in known_versions)
