"""Leases: beats, and taking over from workers whose lease ran out.

A lease is taken and compared on the clock of the boot (table ``leases``), so that a step of the wall clock closes no
live worker and keeps no dead one. Only after a reboot the wall clock decides (protocol 8).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from quire.clock import boot_id
from quire.errors import WorkerClosed
from quire.ledger import columns as rows
from quire.ledger.base import Recovered
from quire.ledger.sqlite.claims import OPEN
from quire.ledger.sqlite.file import LedgerFile
from quire.ledger.sqlite.view import RECORD, View
from quire.ledger.sqlite.writes import Writes
from quire.model.change import Beaten, Holding
from quire.model.record import UNDO
from quire.model.row import from_values, replace
from quire.model.side import Fanin, Worker
from quire.rules import sweeps, verbs
from quire.rules.draft import Draft
from quire.rules.workers import GRACE, close, expired, overdue

_OPEN_WORKERS = f"SELECT {rows.columns(Worker)} FROM workers WHERE closed IS NULL"
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
            return verbs.beat(draft, worker, holding, view.held_by(worker.worker_id))

        beaten = await self._writes.decided(decide, "beat")
        if beaten is None:
            raise WorkerClosed(f"worker {worker.worker_id} was closed: its lease ran out")
        return beaten

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        needed, alive = await self._file.run("read", self._needs_recovery)
        if not needed and not dead:
            return Recovered(open=alive)

        def decide(draft: Draft, view: View) -> Recovered:
            db = view.db
            workers = [from_values(Worker, row) for row in db.execute(_OPEN_WORKERS)]
            leases = dict(db.execute("SELECT worker_id, ends_at FROM leases WHERE boot_id = ?", (self.boot_id,)))
            passed = draft.now - self._file.clock.boottime()  # from the clock of the boot to the wall clock
            freed = 0
            for worker in workers:
                if (ends_at := leases.get(worker.worker_id)) is not None:
                    worker = replace(worker, expires_at=ends_at + passed)
                if worker.worker_id in dead or expired(draft, worker):
                    held = view.held_by(worker.worker_id)
                    freed += close(draft, worker, held, dead=worker.worker_id in dead)
            late = f"SELECT {RECORD} FROM records WHERE status = 'RUNNING' AND run_until < ?"
            for row in db.execute(late, (draft.now,)).fetchall():
                record = view.record_of(row)
                freed += overdue(draft, draft.record(record.record_id) or record)
            swept = 0
            for control in view.controls.values():
                scope = "" if control.scope == "*" else "AND workflow = :scope"
                sql = (
                    f"SELECT {RECORD} FROM records WHERE {OPEN} "
                    f"AND NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0) AND epoch < :floor {scope} LIMIT :limit"
                )
                args = {"floor": control.floor, "scope": control.scope, "limit": limit}
                for row in db.execute(sql, args).fetchall():
                    record = view.record_of(row)
                    swept += sweeps.halted(draft, draft.record(record.record_id) or record)
            swept += self._sweep_abandoned(draft, view, limit)
            alive = tuple(worker for worker in workers if worker.worker_id not in draft.workers)
            return Recovered(len(draft.workers), freed, swept, swept >= limit, alive)

        return await self._writes.decided(decide)

    @staticmethod
    def _sweep_abandoned(draft: Draft, view: View, limit: int) -> int:
        fanins = f'SELECT {rows.columns(Fanin)} FROM fanins WHERE abandoned AND "left" > 0'
        swept = 0
        for row in view.db.execute(fanins).fetchall():
            fanin = rows.fanin_of(row)
            sql = (
                f"SELECT {RECORD} FROM records WHERE parent_id = ? AND generation = ? "
                f"AND step <> '{UNDO}' AND ({OPEN} AND (open_intents = 0 OR cancel IS NULL) "
                "OR status = 'RUNNING' AND cancel IS NULL) LIMIT ?"
            )
            for found in view.db.execute(sql, (fanin.parent_id, fanin.generation, limit - swept)).fetchall():
                record = view.record_of(found)
                swept += sweeps.abandoned(draft, draft.record(record.record_id) or record, fanin)
            if swept >= limit:
                break
        return swept

    def _needs_recovery(self, db: sqlite3.Connection) -> tuple[bool, tuple[Worker, ...]]:
        """Read, without the write lock, whether there is anything to take over or to sweep, and the open workers."""
        now = self._file.clock.now()
        (found,) = db.execute(
            f"""SELECT EXISTS (SELECT 1 FROM workers
                               LEFT JOIN leases ON leases.worker_id = workers.worker_id AND leases.boot_id = :boot
                               WHERE closed IS NULL AND CASE WHEN ends_at IS NULL THEN expires_at - :now
                                   ELSE ends_at - :boottime END + {GRACE} * lease_seconds < 0)
                OR EXISTS (SELECT 1 FROM records WHERE status = 'RUNNING' AND run_until < :now)
                OR EXISTS (SELECT 1 FROM fanins WHERE abandoned AND "left" > 0)
                OR EXISTS (SELECT 1 FROM controls CROSS JOIN records ON scope IN ('*', workflow)
                           WHERE floor > epoch AND {OPEN}
                             AND NOT (status = 'NEEDS_APPROVAL' AND open_intents > 0))""",
            {"now": now, "boot": self.boot_id, "boottime": self._file.clock.boottime()},
        ).fetchone()
        return bool(found), tuple(from_values(Worker, row) for row in db.execute(_OPEN_WORKERS))
