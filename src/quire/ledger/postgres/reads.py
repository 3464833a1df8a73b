"""Reads: what people and surfaces ask, and what is copied, on connections of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quire.ledger import columns as rows
from quire.ledger.base import Row
from quire.ledger.blobs import resolved
from quire.ledger.postgres.gathered import GatheredReads
from quire.ledger.postgres.pages import LINES
from quire.ledger.postgres.reading import READ_BLOBS, READ_RECORDS, RECEIPT, Reading
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.view import CLOCK, View
from quire.ledger.postgres.wire import Param, array
from quire.ledger.queries import query_sql
from quire.model.change import Count, Query, Standing
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.model.side import Control, Fanin, Setting, Signal, Worker
from quire.rules.conditions import acting_sql, as_seen, seen_status_sql


class Reads:
    """The verbs that only read, but for the log."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._gathered = GatheredReads(server)
        self._controls: Iterable[Control] = ()

    async def rows(self, type_: type[Any], sql: str, *params: Param, alone: bool = False) -> tuple[View, list[Any]]:
        """Return the rows of one statement, with their long values. ``alone``: the statement may take long."""
        view, found = await (self._gathered.alone if alone else self._gathered.together)(sql, *params)
        made = [rows.row_of(type_, row) for row in found]
        if references := rows.references(made, type_):
            _, texts = await self._gathered.together(READ_BLOBS, array("text", sorted(references)))
            blobs: dict[str, str] = dict(texts)
            made = [rows.with_blobs(row, type_, lambda ref, where: resolved(ref, blobs, where)) for row in made]
        return view, made

    async def now(self) -> float:
        if self._server.clock is not None:
            return self._server.clock.now()
        view, _ = await self._gathered.together("SELECT 1")
        return view.now

    async def standing(self) -> Standing:
        now = f"coalesce($1::float8, {CLOCK})"
        sql = f"SELECT {RECEIPT} FROM receipts WHERE {acting_sql(now=now)}"
        view, under_way = await self.rows(Receipt, sql, self._server.given_now)
        return Standing(view.now, view.epoch, tuple(view.controls.values()), tuple(under_way), view.sealed)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        view, found = await self.rows(Record, READ_RECORDS, array("text", sorted(set(record_ids))))
        known = {row.record_id: as_seen(row, view.controls.values()) for row in found}
        return [known[record_id] for record_id in record_ids if record_id in known]

    async def find(self, query: Query) -> list[Record]:
        sql, args = self._query_sql(query)
        while True:
            # The statement depends on the halts: it is made from those read last, and made again if they are old.
            view, found = await self.rows(Record, sql, *args, alone=not query.parent_id)
            self._controls = controls = view.controls.values()
            asked, (sql, args) = sql, self._query_sql(query)
            if sql == asked:
                return [as_seen(row, controls) for row in found]

    def _query_sql(self, query: Query) -> tuple[str, list[Any]]:
        sql, args = query_sql(query, self._controls, "\0", "queue IS NOT NULL", "= ANY (ARRAY({}))")
        first, *rest = sql.split("\0")
        return first + "".join(f"${place}{part}" for place, part in enumerate(rest, 1)), args

    async def counts(self) -> list[Count]:
        while True:
            seen = seen_status_sql(self._controls)
            sql = f"SELECT workflow, step, {seen} AS seen, count(*) FROM records GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
            view, found = await self._gathered.alone(sql)
            self._controls = view.controls.values()
            if seen_status_sql(self._controls) == seen:
                return [Count(w, s, Status(status), count) for w, s, status, count in found]

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        found: list[Receipt] = []
        for column, values in (("record_id", record_ids), ("key", keys)):
            if values:
                sql = f"SELECT {RECEIPT} FROM receipts WHERE {column} = ANY($1::text[])"
                found += (await self.rows(Receipt, sql, array("text", list(values))))[1]
        return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

    async def signals(self, record_id: str) -> list[Signal]:
        sql = f"SELECT {rows.columns(Signal)} FROM signals WHERE record_id = $1 ORDER BY seq"
        return (await self.rows(Signal, sql, record_id))[1]

    async def fanins(self, parent_id: str) -> list[Fanin]:
        sql = f"SELECT {rows.columns(Fanin)} FROM fanins WHERE parent_id = $1 ORDER BY generation"
        return (await self.rows(Fanin, sql, parent_id))[1]

    async def workers(self) -> list[Worker]:
        sql = f"SELECT {rows.columns(Worker)} FROM workers ORDER BY started_at, worker_id"
        return (await self.rows(Worker, sql))[1]

    async def identity(self) -> str:
        """Return the number of the database cluster and its timeline, which a promoted standby raises."""
        ((found,),) = await self._server.ask(
            "SELECT system_identifier || '/' || CASE WHEN pg_is_in_recovery() THEN '' "
            "ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END FROM pg_control_system()"
        )
        return str(found)

    async def warnings(self) -> list[str]:
        """Name the settings of the server that weaken the promise that an acknowledged commit is kept."""
        names = ("fsync", "synchronous_commit", "full_page_writes")
        ((fsync, commits, pages),) = await self._server.ask(
            f"SELECT {', '.join(f'current_setting({chr(39)}{name}{chr(39)})' for name in names)}"
        )
        warnings = []
        if fsync == "off":
            warnings.append("fsync is off: a crash of the machine may lose commits or the whole database; turn it on")
        if commits == "off":
            warnings.append(
                "synchronous_commit is off: a crash may lose commits that were acknowledged; "
                f"ALTER DATABASE {self._server.address.database} SET synchronous_commit = on"
            )
        if pages == "off":
            warnings.append("full_page_writes is off: a crash in the middle of a write may damage pages; turn it on")
        return warnings + self._server.pooler_warnings()

    async def setting(self, name: str) -> Setting | None:
        sql = "SELECT name, value, version FROM settings WHERE name = $1"
        _, found = await self.rows(Setting, sql, name)
        return found[0] if found else None

    async def settings(self, prefix: str) -> list[Setting]:
        sql = "SELECT name, value, version FROM settings WHERE starts_with(name, $1) ORDER BY name"
        return (await self.rows(Setting, sql, prefix))[1]

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        table, keys = rows.TABLES[type_]
        named = ", ".join(map(rows.quoted, keys))
        marks = ", ".join(f"${place}" for place in range(2, 2 + len(keys)))
        where = f"WHERE ({named}) > ({marks})" if after else ""
        sql = f"SELECT {rows.columns(type_)} FROM {table} {where} ORDER BY {named} LIMIT $1"
        params: tuple[Param, ...] = (limit, *after)
        if type_ is Event:  # some of them stand in pages of lines
            sql, params = LINES, (after[0] if after else 0, (1 << 63) - 1, limit)

        def make(values: Sequence[Any]) -> Row:
            row: Row = rows.row_of(type_, values)
            return row

        return await self._server.transacted(
            self._server.long_reads, lambda wire: Reading(View(), wire).all(type_, make, sql, *params)
        )
