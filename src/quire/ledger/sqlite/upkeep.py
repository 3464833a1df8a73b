"""What is done to a ledger as a whole, and seldom: settings, sealing, deleting, taking over a copy."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from quire.errors import LedgerError
from quire.ledger import columns as rows
from quire.ledger.base import Row, Tidied
from quire.ledger.sqlite.file import LedgerFile
from quire.model.change import Order
from quire.model.event import Event
from quire.model.receipt import OWN
from quire.model.record import FORGOTTEN, Record
from quire.model.row import field_names, field_values
from quire.model.side import Setting
from quire.rules.conditions import forgotten_sql


class Upkeep:
    """The verbs ``keep``, ``forget``, ``tidy`` and ``restore``, and the order to seal."""

    def __init__(self, file: LedgerFile, inline_bytes: int) -> None:
        self._file = file
        self._inline_bytes = inline_bytes

    async def seal(self, order: Order) -> None:
        def work(db: sqlite3.Connection) -> None:
            with self._file.transaction(db):
                (now,) = db.execute("SELECT sealed FROM ledger").fetchone()
                db.execute("UPDATE ledger SET sealed = ?", (order.seal(now),))

        await self._file.run("write", work)

    async def keep(self, setting: Setting) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            with self._file.transaction(db):
                if setting.version == 0:
                    sql = "INSERT INTO settings VALUES (?, ?, 1) ON CONFLICT DO NOTHING"
                    return db.execute(sql, (setting.name, setting.value)).rowcount == 1
                sql = "UPDATE settings SET value = ?, version = version + 1 WHERE name = ? AND version = ?"
                return db.execute(sql, (setting.value, setting.name, setting.version)).rowcount == 1

        return await self._file.run("write", work)

    async def forget(self, events: Sequence[Event]) -> int:
        def work(db: sqlite3.Connection) -> int:
            with self._file.transaction(db):
                sql = "DELETE FROM events WHERE seq = ? AND hash = ?"
                return db.executemany(sql, [(event.seq, event.hash) for event in events]).rowcount

        return await self._file.run("write", work)

    async def strip(self, record_ids: Sequence[str]) -> int:
        def work(db: sqlite3.Connection) -> int:
            with self._file.transaction(db):
                gone = 0
                for record_id in record_ids:
                    of = f"IN (SELECT record_id FROM records WHERE record_id = ? AND attempt = {FORGOTTEN})"
                    sql = f"DELETE FROM receipts WHERE record_id {of} AND substr(key, 1, {len(OWN)}) <> ?"
                    gone += db.execute(sql, (record_id, OWN)).rowcount
                    db.execute(f"DELETE FROM fanins WHERE parent_id {of}", (record_id,))
                    db.execute(f"UPDATE signals SET value = 'null' WHERE record_id {of}", (record_id,))
                return gone

        return await self._file.run("write", work)

    async def tidy(self, before: float) -> Tidied:
        def work(db: sqlite3.Connection) -> Tidied:
            blobs = f"FROM blobs WHERE {rows.unnamed_blobs()}"
            # Blobs are looked for without the write lock first, because mostly there are none.
            some = db.execute(f"SELECT EXISTS (SELECT 1 FROM blobs) AND EXISTS (SELECT 1 {blobs})").fetchone()[0]
            with self._file.transaction(db):
                gone = db.execute(f"DELETE {blobs}").rowcount if some else 0
                old = f"SELECT worker_id FROM workers WHERE {forgotten_sql(before='?')}"
                workers = db.execute(old, (before,)).fetchall()
                for table in ("leases", "workers"):
                    db.executemany(f"DELETE FROM {table} WHERE worker_id = ?", workers)
            return Tidied(gone, len(workers))

        return await self._file.run("write", work)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        table, _ = rows.TABLES[type_]
        names = [*field_names(type_), *(["rank"] if type_ is Record else [])]
        marks = ", ".join("?" * len(names))
        sql = f"INSERT OR REPLACE INTO {table} ({', '.join(map(rows.quoted, names))}) VALUES ({marks})"

        def work(db: sqlite3.Connection) -> None:
            with self._file.transaction(db):
                if not db.execute("SELECT sealed FROM ledger").fetchone()[0]:
                    raise LedgerError(
                        f"the ledger {str(self._file.path)!r} is open; rows are copied into a closed one only"
                    )
                blobs: dict[str, str] = {}
                put: list[Any] = [rows.put_aside(row, type_, self._inline_bytes, blobs) for row in given]
                if type_ is Record:
                    put = [(*field_values(row), row.rank) for row in put]
                else:
                    put = [field_values(row) for row in put]
                db.executemany(sql, put)
                db.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", list(blobs.items()))
                db.execute("UPDATE ledger SET epoch = ?", (epoch,))

        await self._file.run("write", work)
