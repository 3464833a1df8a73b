"""The way to a PostgreSQL ledger: its address, its connections and migrations, transactions that are tried again.

Commits, claims, beats, small looks and long reads have lanes of connections of their own: none of them waits for
another. With the claims go a worker's first beat, which they follow, large commits, which go between them
(docs/decisions/033), and what is rare: takeovers, orders, settings, rotation.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError, LedgerUnavailable
from quire.ledger.base import Ledger
from quire.ledger.postgres.flushes import MOST_UNDER_WAY
from quire.ledger.postgres.notifications import Bell
from quire.ledger.postgres.pool import Lane
from quire.ledger.postgres.view import CLOCK
from quire.ledger.postgres.wire import Address, Clash, Lost, Param, Spoiled, Wire
from quire.ledger.queries import migrations

T = TypeVar("T")

#: A verb that has no answer by then is given up.
PATIENCE_SECONDS = 60.0
#: The server ends a transaction whose process has gone silent (frozen, suspended) and frees what it locked.
SILENCE_SECONDS = 10
#: How often a transaction that met another one is repeated.
MOST_TRIES = 25

#: Alone: every transaction that began before has ended, and the next will see what this one did.
EXCLUSIVE = "SELECT pg_advisory_xact_lock($1::bigint)"


class PostgresLink(Ledger):
    """What all verbs stand on: where the ledger is, and how to be connected to it."""

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.url = url
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
        self.schema = dict(options).get("schema", "quire")
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", self.schema) or self.schema.startswith("pg_"):
            raise LedgerError(
                f"{self.schema!r} cannot be the schema of a ledger; take lower-case letters, digits and underscores"
            )
        others = urlencode([(name, value) for name, value in options if name != "schema"])
        self._address = Address(urlunsplit(parts._replace(query=others)))
        self.clock = clock
        self._commits = Lane(lambda: self._connected(driven=True), 3)
        self._claims = Lane(lambda: self._connected(driven=True), 1)
        self._beats = Lane(lambda: self._connected(driven=True), 1)
        self._looks = Lane(lambda: self._connected(driven=True), MOST_UNDER_WAY)
        self._reads = Lane(lambda: self._connected(driven=False), 6)
        self._control_key = self._key("control")
        #: Marks the advisory locks that tell event readers of open transactions; the low 40 bits are a number.
        self._events_key = (self._key("events") & 0x3FFFFF | 0x400000) << 40
        self._bell = Bell(
            f"quire_{self._key('work') & 0xFFFFFFFFFFFF:x}",
            lambda body: self._transacted(self._reads, body),
            lambda: self._connected(driven=False),
        )

    def _key(self, *parts: str) -> int:
        """A number for an advisory lock: signed, 64 bits, one for each name in each schema."""
        text = "\0".join((self.schema, *parts)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big", signed=True)

    # -- connections -------------------------------------------------------------------------------------------

    async def _connected(self, *, driven: bool) -> Wire:
        settings = {
            "search_path": f'"{self.schema}"',
            "client_encoding": "UTF8",
            "default_transaction_isolation": "read committed",
            "idle_in_transaction_session_timeout": f"{SILENCE_SECONDS}s",
            "lock_timeout": f"{int(PATIENCE_SECONDS / 2)}s",
            "statement_timeout": f"{int(PATIENCE_SECONDS)}s",
            # Whoever waits for a lock although its process is gone, gives up.
            "client_connection_check_interval": "2s",
            "jit": "off",
            # Numbers are written in full, as Python writes them: the server hashes lines of logs, too (postgres_claim).
            "extra_float_digits": "1",
        }
        if driven:
            # Every statement of these connections goes by an index. Tables that are new have no statistics yet, and a
            # plan that reads a whole table while it is small would be kept while it grows.
            settings |= {"plan_cache_mode": "force_generic_plan"} | dict.fromkeys(
                ("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"
            )
        return await self._address.connect(settings)

    async def open(self) -> None:
        async def migrated(wire: Wire) -> None:
            ((encoding,),) = await wire.ask("SHOW server_encoding")
            if encoding != "UTF8":
                raise LedgerError(
                    f"the database {self._address.shown} keeps texts in {encoding}; a ledger needs one in UTF8"
                )
            wire.send("BEGIN")
            # Two processes may open a new ledger at the same moment: the second finds it made.
            wire.send(EXCLUSIVE, self._key("migration"))
            wire.send("SELECT count(*) FROM pg_namespace WHERE nspname = $1", self.schema)
            ((exists,),) = (await wire.flush())[-1].rows()
            if not exists:
                await wire.ask(f'CREATE SCHEMA "{self.schema}"')
            await self._migrate(wire)
            wire.send("COMMIT")
            await wire.flush()

        try:
            await self._transacted(self._looks, migrated)
        except BaseException:
            await self._looks.drop()
            raise

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
                f"the schema {self.schema!r} of {self._address.shown} has tables, but is not a Quire ledger; "
                "choose another (?schema=NAME)"
            )
        scripts = migrations("postgres")
        if version > len(scripts):
            raise LedgerError(
                f"the ledger {self._address.shown} (schema {self.schema!r}) was made by a newer Quire "
                f"(schema {version}, this one knows {len(scripts)}); update Quire to open it"
            )
        for number, script in enumerate(scripts[version:], version + 1):
            for statement in _statements(script):
                await wire.ask(statement)
            await wire.ask("UPDATE ledger SET schema_version = $1", number)

    async def close(self) -> None:
        await self._bell.close()
        for lane in (self._commits, self._claims, self._beats, self._looks, self._reads):
            await lane.close()

    async def now(self) -> float:
        if self.clock is not None:
            return self.clock.now()
        ((now,),) = await self._asked(f"SELECT {CLOCK}")
        return float(now)

    @property
    def _told(self) -> float | None:
        return None if self.clock is None else self.clock.now()

    async def wait_for_work(self, timeout: float) -> None:
        await self._bell.heard(timeout, self.clock or SYSTEM)

    # -- transactions ------------------------------------------------------------------------------------------

    async def _transacted(
        self, lane: Lane, body: Callable[[Wire], Awaitable[T]], *, once: bool = False, behind: bool = False
    ) -> T:
        """Run the body on a connection; again, if another transaction was in the way or the connection was stale.

        ``once``: where another was in the way, the caller goes another way.
        """
        for tries in range(1, MOST_TRIES + 1):
            try:
                lent = lane.wire(behind=behind)
                async with lent as wire, asyncio.timeout(PATIENCE_SECONDS):
                    try:
                        return await body(wire)
                    except asyncio.CancelledError:
                        raise  # it may be in the middle of a flush: the lane closes the connection
                    except BaseException:
                        if not lent.passed_on:
                            await wire.rollback()
                        raise
            except TimeoutError:
                raise LedgerUnavailable(
                    f"the PostgreSQL server at {self._address.shown} did not answer for {PATIENCE_SECONDS:.0f} seconds"
                ) from None
            except Lost as error:
                # A connection may have died while nobody used it. Nothing can have landed before a COMMIT was sent.
                if error.landed or tries > 3:
                    raise LedgerUnavailable(
                        f"the connection to the PostgreSQL server at {self._address.shown} was lost: {error}"
                    ) from error
            except Clash as error:
                if once:
                    raise
                if tries == MOST_TRIES and error.exists:
                    raise Spoiled(str(error)) from error
                if tries == MOST_TRIES:
                    raise LedgerUnavailable(
                        f"other transactions stood in the way {tries} times at {self._address.shown}: {error}"
                    ) from error
        raise AssertionError("unreachable")

    async def _asked(self, sql: str, *params: Param, lane: Lane | None = None) -> list[tuple[Any, ...]]:
        """One statement by itself."""
        return await self._transacted(lane or self._reads, lambda wire: wire.ask(sql, *params))

    async def _changed(self, sql: str, *params: Param) -> int:
        """One small transaction; answers how many rows it changed."""

        async def body(wire: Wire) -> int:
            wire.send("BEGIN")
            place = wire.send(sql, *params)
            wire.send("COMMIT")
            return (await wire.flush())[place].count

        return await self._transacted(self._claims, body)


def _statements(script: str) -> Iterator[str]:
    """The statements of a migration: each ends with a semicolon at the end of a line."""
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    for statement in re.split(r";[ \t]*$", "\n".join(lines), flags=re.MULTILINE):
        if statement.strip():
            yield statement
