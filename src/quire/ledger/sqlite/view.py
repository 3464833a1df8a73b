"""The rows that a transaction decides over, and that a read sees."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.blobs import blob_of, resolved
from quire.model.change import Slot
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.row import from_values, replace
from quire.model.side import Bucket, Control, Fanin, Signal, Worker
from quire.rules import conditions
from quire.rules.conditions import WAITS

RECORD = rows.columns(Record)
RECEIPT = rows.columns(Receipt)
OPEN_WORKERS = f"SELECT {rows.columns(Worker)} FROM workers WHERE closed IS NULL"
_QUEUED = conditions.queued_sql(workflow="?", step="?")
_DUE = (
    f"SELECT {RECORD} FROM records WHERE {conditions.due_sql(_QUEUED, now='?', floor='?', version='?')} "
    "ORDER BY rank LIMIT ?"
)
_NEXT_DUE = f"SELECT due_at FROM records WHERE {_QUEUED} AND due_at > ? ORDER BY rank LIMIT 1"


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """Read everything in the block as of one moment."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


class View:
    """The rows of one transaction, read when they are asked for. Implements ``rules.rows.Rows``."""

    def __init__(self, db: sqlite3.Connection, images: Mapping[str, Record] | None = None) -> None:
        self.db = db
        #: For the leases: the id of this boot, and what is added to its clock to have the wall clock.
        self.boot: tuple[str, float] = ("", 0.0)
        #: Records as this process left them, which need not be read.
        self.images = images or {}
        self.epoch, self.sealed = db.execute("SELECT epoch, sealed FROM ledger").fetchone()
        self.controls = {
            row[0]: rows.control_of(row) for row in db.execute(f"SELECT {rows.columns(Control)} FROM controls")
        }
        self._records: dict[str, Record | None] = {}

    def blob(self, reference: str, where: str) -> str:
        name = blob_of(reference)
        found = self.db.execute("SELECT text FROM blobs WHERE hash = ?", (name,)).fetchone()
        return resolved(reference, {name: found[0]} if found else {}, where)

    def record_of(self, row: Sequence[Any]) -> Record:
        record: Record = rows.with_blobs(rows.record_of(row), Record, self.blob)
        return record

    def read(self, row: Sequence[Any]) -> Record:
        """Read a record that is likely to change."""
        record = self._records[row[0]] = self.record_of(row)
        return record

    def prefetch(self, record_ids: Iterable[str]) -> None:
        """Read many records by one statement."""
        images = self.images
        ids = []
        for record_id in record_ids:
            if record_id in images:
                self._records[record_id] = images[record_id]
            else:
                ids.append(record_id)
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            self._records |= dict.fromkeys(part)
            marks = ",".join("?" * len(part))
            for row in self.db.execute(f"SELECT {RECORD} FROM records WHERE record_id IN ({marks})", part):
                self._records[row[0]] = self.record_of(row)

    def record(self, record_id: str) -> Record | None:
        if record_id not in self._records:
            self.prefetch([record_id])
        return self._records[record_id]

    def known(self, record_id: str) -> Record | None:
        """Return the record as it was before this transaction, if it was read as one that may change."""
        return self._records.get(record_id)

    def receipt_of(self, row: Sequence[Any]) -> Receipt:
        receipt: Receipt = rows.with_blobs(rows.receipt_of(row), Receipt, self.blob)
        return receipt

    def receipt(self, key: str) -> Receipt | None:
        row = self.db.execute(f"SELECT {RECEIPT} FROM receipts WHERE key = ?", (key,)).fetchone()
        return None if row is None else self.receipt_of(row)

    def intents(self, record_id: str) -> list[Receipt]:
        found = self.db.execute(
            f"SELECT {RECEIPT} FROM receipts WHERE record_id = ? AND stage = 'intended'", (record_id,)
        )
        return [self.receipt_of(row) for row in found]

    def fanin(self, parent_id: str, generation: int) -> Fanin | None:
        row = self.db.execute(
            f"SELECT {rows.columns(Fanin)} FROM fanins WHERE parent_id = ? AND generation = ?", (parent_id, generation)
        ).fetchone()
        return None if row is None else rows.fanin_of(row)

    def fanins(self, parent_id: str) -> list[Fanin]:
        found = self.db.execute(f"SELECT {rows.columns(Fanin)} FROM fanins WHERE parent_id = ?", (parent_id,))
        return [rows.fanin_of(row) for row in found]

    def signals(self, record_id: str) -> list[Signal]:
        return [signal for signal in self.signals_of(record_id) if signal.taken_by is None]

    def signals_of(self, record_id: str) -> list[Signal]:
        found = self.db.execute(
            f"SELECT {rows.columns(Signal)} FROM signals WHERE record_id = ? ORDER BY seq", (record_id,)
        )
        return [rows.with_blobs(from_values(Signal, row), Signal, self.blob) for row in found]

    def signal(self, signal_id: str) -> Signal | None:
        row = self.db.execute(
            f"SELECT {rows.columns(Signal)} FROM signals WHERE signal_id = ?", (signal_id,)
        ).fetchone()
        return None if row is None else from_values(Signal, row)

    def worker(self, worker_id: str) -> Worker | None:
        row = self.db.execute(
            f"SELECT {rows.columns(Worker)} FROM workers WHERE worker_id = ?", (worker_id,)
        ).fetchone()
        return None if row is None else from_values(Worker, row)

    def control(self, scope: str) -> Control | None:
        return self.controls.get(scope)

    def bucket(self, name: str) -> Bucket | None:
        row = self.db.execute("SELECT name, tokens, at FROM buckets WHERE name = ?", (name,)).fetchone()
        return None if row is None else from_values(Bucket, row)

    def running(self, workflow: str, step: str | None) -> int:
        sql = "SELECT count(*) FROM records WHERE status = 'RUNNING' AND workflow = ?"
        args: tuple[Any, ...] = (workflow,)
        if step is not None:
            sql, args = sql + " AND step = ?", (workflow, step)
        (count,) = self.db.execute(sql, args).fetchone()
        return int(count)

    def change_at(self, record_id: str, version: int) -> str | None:
        row = self.db.execute(
            "SELECT change_id FROM events WHERE record_id = ? AND version = ? ORDER BY n LIMIT 1", (record_id, version)
        ).fetchone()
        return None if row is None else str(row[0])

    def has_line(self, record_id: str, change_id: str) -> bool:
        sql = "SELECT 1 FROM events WHERE record_id = ? AND change_id = ? LIMIT 1"
        return self.db.execute(sql, (record_id, change_id)).fetchone() is not None

    # -- rules.rows.Rows: by condition -------------------------------------------------------------------------

    def orders(self) -> Iterable[Control]:
        return self.controls.values()

    def due(self, slot: Slot, now: float, floor: int, limit: int) -> list[Record]:
        found = self.db.execute(_DUE, (slot.workflow, slot.step, now, floor, slot.version, limit)).fetchall()
        return [self.read(row) for row in found]

    def next_due(self, slot: Slot, now: float) -> float | None:
        found = self.db.execute(_NEXT_DUE, (slot.workflow, slot.step, now)).fetchone()
        return None if found is None else float(found[0])

    def held_by(self, worker_id: str) -> list[Record]:
        sql = f"SELECT {RECORD} FROM records WHERE status = 'RUNNING' AND worker = ?"
        return [self.record_of(row) for row in self.db.execute(sql, (worker_id,))]

    def open_workers(self) -> list[Worker]:
        """A lease of this boot ends by the clock of the boot."""
        found = [from_values(Worker, row) for row in self.db.execute(OPEN_WORKERS)]
        boot_id, passed = self.boot
        leases = dict(self.db.execute("SELECT worker_id, ends_at FROM leases WHERE boot_id = ?", (boot_id,)))
        return [
            replace(worker, expires_at=leases[worker.worker_id] + passed) if worker.worker_id in leases else worker
            for worker in found
        ]

    def overdue(self, now: float) -> list[Record]:
        sql = f"SELECT {RECORD} FROM records WHERE {conditions.overdue_sql(now='?')}"
        return [self.read(row) for row in self.db.execute(sql, (now,)).fetchall()]

    def cancelled(self, controls: Iterable[Control], limit: int) -> list[Record]:
        cancelled = conditions.cancelled_sql(WAITS, scope=":scope", floor=":floor")
        sql = f"SELECT {RECORD} FROM records WHERE {cancelled} LIMIT :limit"
        found: dict[str, Record] = {}
        for control in controls:
            args = {"floor": control.floor, "scope": control.scope, "limit": limit}
            found |= {row[0]: self.read(row) for row in self.db.execute(sql, args).fetchall()}
        return list(found.values())

    def abandoned(self, limit: int) -> list[tuple[Record, Fanin]]:
        fanins = f"SELECT {rows.columns(Fanin)} FROM fanins WHERE {conditions.LEFT_ALONE}"
        children = f"parent_id = ? AND generation = ? AND {conditions.abandoned_sql(WAITS)}"
        sql = f"SELECT {RECORD} FROM records WHERE {children} LIMIT ?"
        found: list[tuple[Record, Fanin]] = []
        for row in self.db.execute(fanins).fetchall():
            fanin = rows.fanin_of(row)
            args = (fanin.parent_id, fanin.generation, limit - len(found))
            found += [(self.read(child), fanin) for child in self.db.execute(sql, args).fetchall()]
            if len(found) >= limit:
                break
        return found
