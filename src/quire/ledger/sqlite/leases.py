"""Leases: beats, and taking over from workers whose lease ran out.

A lease is taken and compared on the clock of the boot (table ``leases``), so that a step of the wall clock closes no
live worker and keeps no dead one. Only after a reboot the wall clock decides (protocol 8).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from quire.clock import boot_id
from quire.errors import WorkerClosed
from quire.ledger.base import Recovered
from quire.ledger.sqlite.file import LedgerFile
from quire.ledger.sqlite.view import OPEN_WORKERS, View
from quire.ledger.sqlite.writes import Writes
from quire.model.change import Beaten, Holding
from quire.model.row import from_values
from quire.model.side import Worker
from quire.rules import conditions, returning, verbs
from quire.rules.conditions import WAITS
from quire.rules.draft import Draft

_PUT_LEASE = "INSERT OR REPLACE INTO leases VALUES (?, ?, ?)"


class Leases:
    """The verbs ``beat`` and ``recover``."""

    def __init__(self, file: LedgerFile, writes: Writes) -> None:
        self._file = file
        self._writes = writes
        self.boot_id = boot_id()

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        def decide(draft: Draft, view: View) -> Beaten | None:
            ends_at = self._file.clock.boottime() + worker.lease_seconds
            view.db.execute(_PUT_LEASE, (worker.worker_id, self.boot_id, ends_at))
            return verbs.beat(draft, view, worker, holding)

        beaten = await self._writes.decided(decide, "beat")
        if beaten is None:
            raise WorkerClosed(f"worker {worker.worker_id} was closed: its lease ran out")
        return beaten

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        needed, alive = await self._file.run("read", self._needs_recovery)
        if not needed and not dead:
            return Recovered(open=alive)

        def decide(draft: Draft, view: View) -> Recovered:
            view.boot = (self.boot_id, draft.now - self._file.clock.boottime())
            return verbs.recover(draft, view, limit, dead)

        return await self._writes.decided(decide)

    def _needs_recovery(self, db: sqlite3.Connection) -> tuple[bool, tuple[Worker, ...]]:
        """Read, without the write lock, whether there is anything to take over or to sweep, and the open workers."""
        now = self._file.clock.now()
        lease = "CASE WHEN ends_at IS NULL THEN expires_at ELSE ends_at + :passed END"
        (found,) = db.execute(
            f"""SELECT EXISTS (SELECT 1 FROM workers
                               LEFT JOIN leases ON leases.worker_id = workers.worker_id AND leases.boot_id = :boot
                               WHERE {conditions.expired_sql(now=":now", expires_at=lease)})
                OR EXISTS (SELECT 1 FROM records WHERE {conditions.overdue_sql(now=":now")})
                OR EXISTS (SELECT 1 FROM fanins WHERE {conditions.LEFT_ALONE})
                OR EXISTS (SELECT 1 FROM controls WHERE {returning.UNDER_WAY})
                OR EXISTS (SELECT 1 FROM controls CROSS JOIN records
                           WHERE {conditions.cancelled_sql(WAITS, scope="scope", floor="floor")})""",
            {"now": now, "boot": self.boot_id, "passed": now - self._file.clock.boottime()},
        ).fetchone()
        return bool(found), tuple(from_values(Worker, row) for row in db.execute(OPEN_WORKERS))
