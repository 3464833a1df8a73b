"""The PostgreSQL server that holds the ledger: its address, its connections, transactions, migrations and time.

Commits, claims, beats, small reads and long reads each have a pool of connections of their own: none of them waits for
another. The pool of claims also takes a worker's first beat (its first claim follows), large commits, which go between
claims (docs/decisions/033), and what is rare: takeovers, orders, settings, rotation.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from quire.clock import Clock
from quire.errors import LedgerError, LedgerUnavailable
from quire.ledger.base import PATIENCE_SECONDS
from quire.ledger.busy import lock_timeout
from quire.ledger.postgres.address import Address
from quire.ledger.postgres.behaviour import fault, refusal
from quire.ledger.postgres.liveness import Liveness
from quire.ledger.postgres.pool import Lent, Pool
from quire.ledger.postgres.pooler import Mode, is_pooled, mode_of
from quire.ledger.postgres.wire import Clash, Lost, Param, Spoiled, Wire
from quire.ledger.queries import migrations

T = TypeVar("T")

#: What the address of a ledger says besides the address of its database.
OPTIONS = ("schema", "fast", "direct", "connections")
#: A process has at most so many connections, and needs at least so many: one for each purpose.
MOST_CONNECTIONS, LEAST_CONNECTIONS = 14, 6
#: The server ends a transaction whose process has gone silent (frozen, suspended) and frees what it locked.
SILENCE_SECONDS = 10
#: How often a transaction that met another one is repeated.
MOST_TRIES = 25
#: How many flushes of small reads may be under way at once.
READS_UNDER_WAY = 2

#: The part of a number of the log that fits into the name of a lock.
NUMBER_BITS = (1 << 40) - 1

_BEFORE = (
    "SELECT pg_backend_pid(), current_setting('server_encoding'), current_setting('default_transaction_isolation'), "
    "current_setting('max_connections')::int"
)
#: Wait until every transaction that began before has ended; the next one sees what this one did.
EXCLUSIVE = "SELECT pg_advisory_xact_lock($1::bigint)"


class Server:
    """The way to one ledger: ``url`` is ``postgresql://…?schema=NAME&fast=off&direct=URL``, without options as well.

    ``direct`` is the address of the server itself if the ledger's own address leads to a pooler.
    """

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        own = {name: value for name, value in options if name in OPTIONS}
        self.schema = own.get("schema", "quire")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema) or self.schema.startswith("pg_"):
            raise LedgerError(
                f"{self.schema!r} cannot be the schema of a ledger; take lower-case letters, digits and underscores"
            )
        if own.get("fast", "on") not in ("on", "off"):
            raise LedgerError(f"the address of the ledger says fast={own['fast']!r}; write fast=on or fast=off")
        #: Whether the short ways of ``quire.ledger.postgres.fast`` are taken.
        self.fast = own.get("fast", "on") == "on"
        others = urlencode([(name, value) for name, value in options if name not in own])
        self.address = Address(urlunsplit(parts._replace(query=others)))
        #: Where notifications come from; None: behind a pooler that does not pass them on.
        self.direct = Address(own["direct"]) if own.get("direct") else None
        self.mode: Mode | None = None
        #: How long a verb waits for its answer.
        self.patience = PATIENCE_SECONDS
        #: How often a connection was lost, or could not be made.
        self.interruptions = 0
        self.clock = clock
        more = _connections(own.get("connections", "")) - LEAST_CONNECTIONS  # beyond one for each purpose
        commits = min(2, more // 2)
        reads = min(READS_UNDER_WAY - 1, more - commits)
        self.commits = Pool(lambda: self.connected(by_index=True), 1 + commits)
        self.claims = Pool(lambda: self.connected(by_index=True), 1)
        self.beats = Pool(lambda: self.connected(by_index=True), 1)
        self.reads = Pool(lambda: self.connected(by_index=True), 1 + reads)
        self.long_reads = Pool(lambda: self.connected(by_index=False), 1 + more - commits - reads)
        self.pools = (self.commits, self.claims, self.beats, self.reads, self.long_reads)
        self.liveness = Liveness(self.address, self.drop)
        self.control_key = self.key("control")
        #: Marks the advisory locks that name open transactions for readers of the log; the low bits are a number.
        self.events_key = (self.key("events") & 0x3FFFFF | 0x400000) << 40

    def key(self, *parts: str) -> int:
        """Return the number of an advisory lock: signed, 64 bits, one for each name in each schema."""
        text = "\0".join((self.schema, *parts)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)

    @property
    def given_now(self) -> float | None:
        """The time of the clock that this ledger was given; None: the server's own clock counts."""
        return None if self.clock is None else self.clock.now()

    def pooler_warnings(self) -> list[str]:
        """Say what a pooler before the server costs. What is written is correct in every mode."""
        found = []
        if self.mode is Mode.TRANSACTION and self.direct is None:
            found.append(
                f"a pooler in transaction mode stands at {self.address.shown}, and notifications do not arrive through "
                "it: workers see new work only when they look, every few seconds; add &direct=URL with the address of "
                "the server itself"
            )
        if not self.address.manner.named:
            found.append(
                f"the pooler at {self.address.shown} does not carry prepared statements, so the server plans each "
                "statement anew; set max_prepared_statements (PgBouncer 1.21 or newer)"
            )
        return found

    # -- connections -------------------------------------------------------------------------------------------

    async def connected(self, *, by_index: bool, address: Address | None = None) -> Wire:
        settings = {
            "idle_in_transaction_session_timeout": f"{SILENCE_SECONDS}s",
            "lock_timeout": f"{int(1000 * min(lock_timeout(self.patience / 2), self.patience))}ms",
            "statement_timeout": f"{self.patience * 1000:.0f}ms",
            # A statement that waits for a lock although its process is gone gives up.
            "client_connection_check_interval": "2s",
            "jit": "off",
            # Numbers are written in full, as Python writes them, because the server hashes lines of logs, too.
            "extra_float_digits": "1",
        }
        if by_index:
            # Every statement of these connections uses an index. Tables that are new have no statistics yet, and a
            # plan that reads a whole table while it is small would be kept while the table grows.
            settings |= {"plan_cache_mode": "force_generic_plan"} | dict.fromkeys(
                ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"
            )
        return await (address or self.address).connect(settings, self.schema)

    async def open(self) -> None:
        new = False

        async def migrated(wire: Wire) -> None:
            nonlocal new
            ((backend, encoding, isolation, self.address.most),) = await wire.ask(_BEFORE)
            # A transaction without BEGIN has the isolation that the database chose.
            self.fast &= isolation == "read committed"
            if self.mode is None:
                self.mode = await mode_of(self.address) if is_pooled(wire, backend) else Mode.DIRECT
            if encoding != "UTF8":
                raise LedgerError(
                    f"the database {self.address.shown} keeps texts in {encoding}; a ledger needs one in UTF8"
                )
            wire.send("BEGIN")
            # For the names in the scripts, and for this transaction alone.
            wire.send("SELECT set_config('search_path', $1, true)", f'"{self.schema}"')
            # Two processes may open a new ledger at the same moment: the second one finds the tables made.
            wire.send(EXCLUSIVE, self.key("migration"))
            wire.send("SELECT count(*) FROM pg_namespace WHERE nspname = $1", self.schema)
            ((exists,),) = (await wire.flush())[-1].rows()
            new = not exists
            if not exists:
                await wire.ask(f'CREATE SCHEMA "{self.schema}"')
            await self._migrate(wire)
            wire.send("COMMIT")
            await wire.flush()

        try:
            await self.transacted(self.reads, migrated)
            if new:
                await self._examine_new()
        except LedgerUnavailable as error:
            await self.reads.drop()
            cut = isinstance(error.__cause__, Lost | Clash)
            if not cut or await self.address.takes_transactions():
                raise
            raise LedgerError(
                f"the pooler at {self.address.shown} takes single statements only (pool_mode = statement), and a "
                "ledger needs transactions; set pool_mode = transaction or session for this database"
            ) from error
        except BaseException:
            await self.reads.drop()
            raise

    async def _examine_new(self) -> None:
        """Take the tables away again if the server does not behave as PostgreSQL."""
        try:
            await self.examine()
        except LedgerUnavailable:
            raise
        except LedgerError:
            await self.changed(f'DROP SCHEMA "{self.schema}" CASCADE')
            raise

    async def examine(self) -> None:
        """Refuse a server that does not behave as PostgreSQL.

        Behind a pooler this is asked over the direct address, if there is one: a pooler may have one session for all,
        and then two transactions are never open at the same time.
        """
        address = self.direct if self.address.manner.pooled else self.address
        if address is None:
            return
        one, other = await address.connect({}, self.schema), await address.connect({}, self.schema)
        try:
            ((version,),) = await one.ask("SELECT version()")
            what = await fault(one, other, self.key("behaviour"))
        finally:
            await one.close()
            await other.close()
        if what:
            raise refusal(self.address.shown, str(version), what)

    async def _migrate(self, wire: Wire) -> None:
        tables = {
            str(name)
            for (name,) in await wire.ask(
                "SELECT relname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
                "WHERE nspname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'f')",
                self.schema,
            )
        }
        version = 0
        if "ledger" in tables and "records" in tables:
            ((version,),) = await wire.ask("SELECT schema_version FROM ledger")
        elif tables:
            raise LedgerError(
                f"the schema {self.schema!r} of {self.address.shown} has tables, but is not a Quire ledger; "
                "choose another (?schema=NAME)"
            )
        scripts = migrations("postgres")
        if version > len(scripts):
            raise LedgerError(
                f"the ledger {self.address.shown} (schema {self.schema!r}) was made by a newer Quire "
                f"(schema {version}, this one knows {len(scripts)}); update Quire to open it"
            )
        for number, script in enumerate(scripts[version:], version + 1):
            for statement in _statements(script):
                await wire.ask(statement)
            await wire.ask("UPDATE ledger SET schema_version = $1", number)

    async def close(self) -> None:
        await self.liveness.close()
        for pool in self.pools:
            await pool.close()

    async def drop(self) -> None:
        """Close all connections that nobody uses at this moment."""
        for pool in self.pools:
            await pool.drop()

    # -- transactions ------------------------------------------------------------------------------------------

    async def transacted(
        self, pool: Pool, body: Callable[[Wire], Awaitable[T]], *, once: bool = False, behind: bool = False
    ) -> T:
        """Run the body on a connection of the pool, and again if another transaction or a stale connection stopped it.

        ``once``: if another transaction was in the way, raise ``Clash`` at once, because the caller has another way.
        ``behind``: see ``Pool.wire``.
        """
        for tries in range(1, MOST_TRIES + 1):
            try:
                lent = pool.wire(behind=behind)
                async with lent as wire, asyncio.timeout(self.patience):
                    with self.liveness.watched(wire):
                        return await self._tried(lent, wire, body)
            except TimeoutError:
                self.interruptions += 1
                raise LedgerUnavailable(
                    f"the PostgreSQL server at {self.address.shown} did not answer for {self.patience:g} seconds"
                ) from None
            except LedgerUnavailable:
                self.interruptions += 1
                raise
            except Lost as error:
                self.interruptions += 1
                # A connection may have died while nobody used it. Before a COMMIT was sent, nothing can have landed.
                if error.landed or tries > 3:
                    raise LedgerUnavailable(
                        f"the connection to the PostgreSQL server at {self.address.shown} was lost: {error}"
                    ) from error
            except Clash as error:
                if once:
                    raise
                if tries == MOST_TRIES and error.exists:
                    raise Spoiled(str(error)) from error
                if tries == MOST_TRIES:
                    raise LedgerUnavailable(
                        f"other transactions stood in the way {tries} times at {self.address.shown}: {error}"
                    ) from error
        raise AssertionError("unreachable")

    async def _tried(self, lent: Lent, wire: Wire, body: Callable[[Wire], Awaitable[T]]) -> T:
        """Run the body once, and undo what it sent if it fails."""
        try:
            return await body(wire)
        except asyncio.CancelledError:
            raise  # the body may be in the middle of a flush: the pool closes the connection
        except BaseException:
            if not lent.passed_on:
                await wire.rollback()
            raise

    async def ask(self, sql: str, *params: Param, pool: Pool | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, which is a transaction of its own."""
        return await self.transacted(pool or self.long_reads, lambda wire: wire.ask(sql, *params))

    async def changed(self, sql: str, *params: Param) -> int:
        """Run one statement in a transaction, and return how many rows it changed."""

        async def body(wire: Wire) -> int:
            wire.send("BEGIN")
            place = wire.send(sql, *params)
            wire.send("COMMIT")
            return (await wire.flush())[place].count

        return await self.transacted(self.claims, body)


def _connections(text: str) -> int:
    """How many connections a process may have, by the address of the ledger."""
    if not text:
        return MOST_CONNECTIONS
    if not text.isdecimal() or not LEAST_CONNECTIONS <= int(text) <= MOST_CONNECTIONS:
        raise LedgerError(
            f"the address of the ledger says connections={text}; write a number from {LEAST_CONNECTIONS}, one for each "
            f"purpose, to {MOST_CONNECTIONS}"
        )
    return int(text)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a migration: each ends with a semicolon at the end of a line."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    for statement in re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE):
        if statement.strip():
            yield statement
