"""Reads: what people and surfaces ask, and what is copied. Reads wait for nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from quire.ledger import columns as rows
from quire.ledger.base import Row
from quire.ledger.queries import query_sql
from quire.ledger.sqlite.at_once import ReadsAtOnce
from quire.ledger.sqlite.file import LedgerFile, quire_errors
from quire.ledger.sqlite.view import RECEIPT, View
from quire.model.change import Count, Query, Standing
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.model.row import from_values
from quire.model.side import Fanin, Setting, Signal, Worker
from quire.rules.conditions import acting_sql, as_seen, seen_status_sql

T = TypeVar("T")


class Reads:
    """The verbs that only read."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        self._at_once: ReadsAtOnce[View] = ReadsAtOnce(file.connected, View, partial(file.run, "read"))

    def close(self) -> None:
        self._at_once.close()

    async def read(self, question: Callable[[View], T]) -> T:
        with quire_errors(self._file.path):
            return await self._at_once.ask(question)

    async def standing(self) -> Standing:
        def found_in(view: View) -> Standing:
            now = self._file.clock.now()
            sql = f"SELECT {RECEIPT} FROM receipts WHERE {acting_sql(now='?')}"
            under_way = tuple(view.receipt_of(row) for row in view.db.execute(sql, (now,)))
            return Standing(now, view.epoch, tuple(view.controls.values()), under_way, view.sealed)

        return await self.read(found_in)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        def found_in(view: View) -> list[Record]:
            view.prefetch(record_ids)
            found = (view.record(record_id) for record_id in record_ids)
            return [as_seen(record, view.controls.values()) for record in found if record is not None]

        return await self.read(found_in)

    async def find(self, query: Query) -> list[Record]:
        def found_in(view: View) -> list[Record]:
            sql, args = query_sql(query, view.controls.values())
            return [as_seen(view.record_of(row), view.controls.values()) for row in view.db.execute(sql, args)]

        return await self.read(found_in)

    async def counts(self) -> list[Count]:
        def found_in(view: View) -> list[Count]:
            seen = seen_status_sql(view.controls.values())
            sql = f"SELECT workflow, step, {seen} AS seen, count(*) FROM records GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
            return [Count(w, s, Status(status), count) for w, s, status, count in view.db.execute(sql)]

        return await self._at_once.ask_aside(found_in)

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        def found_in(view: View) -> list[Event]:
            where, args = ("record_id = ? AND", (record_id,)) if record_id else ("", ())
            order = "n" if record_id else "seq"
            sql = f"SELECT {rows.columns(Event)} FROM events WHERE {where} seq > ? ORDER BY {order} LIMIT ?"
            found = view.db.execute(sql, (*args, after, limit))
            return [rows.with_blobs(from_values(Event, row), Event, view.blob) for row in found]

        return await self.read(found_in)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        def found_in(view: View) -> dict[str, list[Event]]:
            found: dict[str, list[Event]] = {record_id: [] for record_id in record_ids}
            for start in range(0, len(record_ids), 500):
                part = record_ids[start : start + 500]
                marks = ",".join("?" * len(part))
                sql = f"SELECT {rows.columns(Event)} FROM events WHERE record_id IN ({marks}) ORDER BY record_id, n"
                for row in view.db.execute(sql, part):
                    found[row[1]].append(rows.with_blobs(from_values(Event, row), Event, view.blob))
            return found

        return await self.read(found_in)

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        def found_in(view: View) -> list[Receipt]:
            found: list[Receipt] = []
            for column, values in (("record_id", list(record_ids)), ("key", list(keys))):
                for start in range(0, len(values), 500):
                    part = values[start : start + 500]
                    marks = ",".join("?" * len(part))
                    sql = f"SELECT {RECEIPT} FROM receipts WHERE {column} IN ({marks})"
                    found += [view.receipt_of(row) for row in view.db.execute(sql, part)]
            return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

        return await self.read(found_in)

    async def signals(self, record_id: str) -> list[Signal]:
        return await self.read(lambda view: view.signals_of(record_id))

    async def fanins(self, parent_id: str) -> list[Fanin]:
        return await self.read(lambda view: view.fanins(parent_id))

    async def workers(self) -> list[Worker]:
        sql = f"SELECT {rows.columns(Worker)} FROM workers ORDER BY started_at"
        return await self.read(lambda view: [from_values(Worker, row) for row in view.db.execute(sql)])

    async def setting(self, name: str) -> Setting | None:
        def found_in(view: View) -> Setting | None:
            sql = "SELECT name, value, version FROM settings WHERE name = ?"
            row = view.db.execute(sql, (name,)).fetchone()
            return None if row is None else from_values(Setting, row)

        return await self.read(found_in)

    async def settings(self, prefix: str) -> list[Setting]:
        sql = "SELECT name, value, version FROM settings WHERE substr(name, 1, ?) = ? ORDER BY name"
        return await self.read(
            lambda view: [from_values(Setting, row) for row in view.db.execute(sql, (len(prefix), prefix))]
        )

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        table, keys = rows.TABLES[type_]
        named = ", ".join(map(rows.quoted, keys))
        where = f"WHERE ({named}) > ({', '.join('?' * len(keys))})" if after else ""
        sql = f"SELECT {rows.columns(type_)} FROM {table} {where} ORDER BY {named} LIMIT ?"

        def found_in(view: View) -> list[Row]:
            found = view.db.execute(sql, (*after, limit)).fetchall()
            return [rows.with_blobs(rows.row_of(type_, row), type_, view.blob) for row in found]

        return await self._at_once.ask_aside(found_in)
