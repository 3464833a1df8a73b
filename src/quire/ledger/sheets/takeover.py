"""When a silent worker may be taken for dead on a Sheets ledger, where beats are rows and an outage is common.

A worker's rows in the journal are its beats. Its silence counts if it has lasted a lease on this process's own clock
since it first saw the worker's last row; a process that came later goes by Google's clock, and a minute more. And
silence means death only if writing was possible: this process has landed a commit a minute ago and had no trouble
since, or somebody else wrote after the silent worker should have, a minute ago (protocol 9).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quire.clock import Clock
from quire.model.side import Worker

#: How long writing must have been possible; shorter leases make do with a lease.
PROOF_SECONDS = 60.0


class _Row(NamedTuple):
    """A row of somebody, by its writer's clock."""

    workers: frozenset[str]
    at: float


class Witness:
    """What this process has seen of who writes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: When this process first saw a worker's last row, on its own clock.
        self._last: dict[str, float] = {}
        self._rows: deque[_Row] = deque(maxlen=100)
        #: Since when this process is able to write, on its own clock; None: it is not known to be.
        self._able_since: float | None = None
        #: The moment of the landed commit from which that counts, on the clock of ``troubled_at``.
        self._able_mark = 0.0

    def saw(self, workers: Iterable[str], at: float, *, live: bool) -> None:
        """A row of these workers; ``live``: it came while this process was reading, not before it began."""
        names = frozenset(workers)
        self._rows.append(_Row(names, at))
        if live:
            now = self._clock.boottime()
            self._last |= dict.fromkeys(names, now)

    def landed(self, mark: float, troubled_at: float | None) -> None:
        """A commit of this process landed, at ``mark`` on the clock of ``troubled_at``."""
        if self._able_since is None or (troubled_at is not None and troubled_at >= self._able_mark):
            self._able_since, self._able_mark = self._clock.boottime(), mark

    def judge(self, now: float, troubled_at: float | None) -> Callable[[Worker], bool]:
        """Whether a worker's silence is death. ``now``: Google's clock, as far as it is known."""
        boot = self._clock.boottime()
        able = self._able_since
        if troubled_at is not None and troubled_at >= self._able_mark:
            able = None

        def dead(worker: Worker) -> bool:
            proof = min(PROOF_SECONDS, worker.lease_seconds)
            seen = self._last.get(worker.worker_id)
            if seen is not None:
                silent = boot - seen >= worker.lease_seconds
            else:
                silent = now > worker.expires_at + PROOF_SECONDS
            if not silent:
                return False
            if able is not None and boot - able >= proof:
                return True
            return any(
                worker.worker_id not in row.workers and worker.expires_at < row.at <= now - PROOF_SECONDS
                for row in self._rows
            )

        return dead
