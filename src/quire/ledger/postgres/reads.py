"""Looks at a PostgreSQL ledger: what people and surfaces ask, and what is copied, on connections of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quire.clock import Clock
from quire.ledger import columns as rows
from quire.ledger.base import Row
from quire.ledger.blobs import resolved
from quire.ledger.postgres.flushes import Asking
from quire.ledger.postgres.pages import LINES, NEWER, ROOM, log_of
from quire.ledger.postgres.server import PostgresLink
from quire.ledger.postgres.view import CLOCK, READ_BLOBS, READ_RECORDS, RECEIPT, Reading, View
from quire.ledger.postgres.wire import Param, Wire, array
from quire.ledger.queries import query_sql, seen_status
from quire.model.change import Count, Query, Standing
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.model.side import Control, Fanin, Setting, Signal, Worker
from quire.rules.draft import as_seen

#: The part of a number of the log that fits into the name of a lock.
WORD = (1 << 40) - 1
#: The numbers after which transactions that are still open may put events (see ``events``). One look at the locks: the
#: server tells of all advisory locks as they are at one moment.
_HORIZON = f"""
    SELECT DISTINCT word FROM (
        SELECT min(key & {WORD}) FILTER (WHERE key & ~{WORD}::bigint = $1::bigint) AS word
        FROM (
            SELECT pid, classid::bigint << 32 | objid::bigint AS key FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        ) AS held
        GROUP BY pid HAVING bool_or(key = $2::bigint)
    ) AS open WHERE word IS NOT NULL
"""
_ONE_LOG = log_of("SELECT $1::text AS record_id", as_long_as=f"older.seq > $2::bigint - {ROOM}")
_MANY_LOGS = log_of("SELECT DISTINCT unnest($1::text[]) AS record_id", many=True)


class PostgresLooks(PostgresLink):
    """The verbs that only read."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        self._asking = Asking(
            lambda body: self._transacted(self._looks, body),
            lambda body: self._transacted(self._reads, body),
            lambda: self._told,
        )
        self._controls: Iterable[Control] = ()

    async def _all(self, type_: type[Any], sql: str, *params: Param, alone: bool = False) -> tuple[View, list[Any]]:
        """The rows of one statement, with their long values. ``alone``: it may take long."""
        view, found = await (self._asking.alone if alone else self._asking.together)(sql, *params)
        made = [rows.row_of(type_, row) for row in found]
        if references := rows.references(made, type_):
            _, texts = await self._asking.together(READ_BLOBS, array("text", sorted(references)))
            blobs: dict[str, str] = dict(texts)
            made = [rows.with_blobs(row, type_, lambda ref, where: resolved(ref, blobs, where)) for row in made]
        return view, made

    async def now(self) -> float:
        if self.clock is not None:
            return self.clock.now()
        view, _ = await self._asking.together("SELECT 1")
        return view.now

    async def standing(self) -> Standing:
        now = f"coalesce($1::float8, {CLOCK})"
        sql = f"SELECT {RECEIPT} FROM receipts WHERE stage = 'intended' AND (act_by IS NULL OR act_by > {now})"
        view, under_way = await self._all(Receipt, sql, self._told)
        return Standing(view.now, view.epoch, tuple(view.controls.values()), tuple(under_way), view.sealed)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        view, found = await self._all(Record, READ_RECORDS, array("text", sorted(set(record_ids))))
        known = {row.record_id: as_seen(row, view.controls.values()) for row in found}
        return [known[record_id] for record_id in record_ids if record_id in known]

    async def find(self, query: Query) -> list[Record]:
        sql, args = self._query_sql(query)
        while True:
            # The statement depends on what is halted: it is made of what was seen last, and made again if that is old.
            view, found = await self._all(Record, sql, *args, alone=not query.parent_id)
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
            seen = seen_status(self._controls)
            sql = f"SELECT workflow, step, {seen} AS seen, count(*) FROM records GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
            view, found = await self._asking.alone(sql)
            self._controls = view.controls.values()
            if seen_status(self._controls) == seen:
                return [Count(w, s, Status(status), count) for w, s, status, count in found]

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        """One record's log, or the ledger's after a ``seq``.

        Numbers are drawn while a transaction is open, and a later number may be committed first. So each transaction
        holds, from before it draws its first number until its end, a shared advisory lock that names the last number
        drawn before. A reader takes the last number drawn, then looks at these locks, then reads up to the smallest of
        these numbers: three statements, each sees at least what the one before it saw. A transaction that the look at
        the locks missed either drew its numbers after the reader's first statement or had ended before its last. So no
        line is ever skipped, and no foreign transaction, however long, holds readers up (as ``xmin`` would).

        A transaction that ends is seen by all first, and gives its locks back then, one after the other. An order that
        waited for its control lock may be acknowledged while the other lock is still there. So a lock counts only with
        the control lock, which is taken before it: without that, what it tells of has ended.
        """

        if record_id:
            sql = f"{_ONE_LOG} SELECT * FROM log WHERE seq > $2 ORDER BY n LIMIT $3"
            return (await self._all(Event, sql, record_id, after, limit))[1]

        async def body(wire: Wire) -> list[Event]:
            reading = Reading(View(), wire)
            if not await wire.ask(NEWER, after):
                return []
            wire.send("SELECT last_value FROM events_seq_seq")
            wire.send(_HORIZON, self._events_key, self._control_key)
            last, words = (answer.rows() for answer in await wire.flush())
            horizon = _horizon(last[0][0], [word for (word,) in words])
            return await reading.all(Event, rows.event_of, LINES, after, horizon, limit)

        return await self._transacted(self._reads, body)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        async def body(wire: Wire) -> dict[str, list[Event]]:
            sql = f"{_MANY_LOGS} SELECT * FROM log ORDER BY record_id, n"
            found: dict[str, list[Event]] = {record_id: [] for record_id in record_ids}
            for event in await Reading(View(), wire).all(Event, rows.event_of, sql, array("text", record_ids)):
                found[event.record_id].append(event)
            return found

        return await self._transacted(self._reads, body)

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        found: list[Receipt] = []
        for column, values in (("record_id", record_ids), ("key", keys)):
            if values:
                sql = f"SELECT {RECEIPT} FROM receipts WHERE {column} = ANY($1::text[])"
                found += (await self._all(Receipt, sql, array("text", list(values))))[1]
        return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

    async def signals(self, record_id: str) -> list[Signal]:
        sql = f"SELECT {rows.columns(Signal)} FROM signals WHERE record_id = $1 ORDER BY seq"
        return (await self._all(Signal, sql, record_id))[1]

    async def fanins(self, parent_id: str) -> list[Fanin]:
        sql = f"SELECT {rows.columns(Fanin)} FROM fanins WHERE parent_id = $1 ORDER BY generation"
        return (await self._all(Fanin, sql, parent_id))[1]

    async def workers(self) -> list[Worker]:
        sql = f"SELECT {rows.columns(Worker)} FROM workers ORDER BY started_at, worker_id"
        return (await self._all(Worker, sql))[1]

    async def settings_warnings(self) -> list[str]:
        """What the server's settings take away from the promise that an acknowledged commit is kept."""
        names = ("fsync", "synchronous_commit", "full_page_writes")
        ((fsync, commits, pages),) = await self._asked(
            f"SELECT {', '.join(f'current_setting({chr(39)}{name}{chr(39)})' for name in names)}"
        )
        warnings = []
        if fsync == "off":
            warnings.append("fsync is off: a crash of the machine may lose commits or the whole database; turn it on")
        if commits == "off":
            warnings.append(
                "synchronous_commit is off: a crash may lose commits that were acknowledged; "
                f"ALTER DATABASE {self._address.database} SET synchronous_commit = on"
            )
        if pages == "off":
            warnings.append("full_page_writes is off: a crash in the middle of a write may damage pages; turn it on")
        return warnings

    async def setting(self, name: str) -> Setting | None:
        sql = "SELECT name, value, version FROM settings WHERE name = $1"
        _, found = await self._all(Setting, sql, name)
        return found[0] if found else None

    async def settings(self, prefix: str) -> list[Setting]:
        sql = "SELECT name, value, version FROM settings WHERE starts_with(name, $1) ORDER BY name"
        return (await self._all(Setting, sql, prefix))[1]

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        table, keys = rows.TABLES[type_]
        named = ", ".join(map(rows.quoted, keys))
        marks = ", ".join(f"${place}" for place in range(2, 2 + len(keys)))
        where = f"WHERE ({named}) > ({marks})" if after else ""
        sql = f"SELECT {rows.columns(type_)} FROM {table} {where} ORDER BY {named} LIMIT $1"
        params: tuple[Param, ...] = (limit, *after)
        if type_ is Event:  # not all of them are in their table
            sql, params = LINES, (after[0] if after else 0, (1 << 63) - 1, limit)

        def make(values: Sequence[Any]) -> Row:
            row: Row = rows.row_of(type_, values)
            return row

        return await self._transacted(self._reads, lambda wire: Reading(View(), wire).all(type_, make, sql, *params))


def _horizon(drawn: int, words: Iterable[int]) -> int:
    """The last number that no open transaction may still fill, given the last one drawn and what the locks tell.

    The name of a lock holds the lower part of a number only. What was drawn after the look at ``drawn`` does not count.
    """
    behind = [(drawn - word) & WORD for word in words]
    return drawn - max([back for back in behind if back <= WORD >> 1], default=0) + ROOM - 1
