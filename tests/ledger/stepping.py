"""Two verbs that meet in the middle: one is held between its locks and its decision until the other waits for it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from quire.clock import SYSTEM, Clock
from quire.ledger.base import Ledger
from quire.ledger.columns import TABLES
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.sqlite.ledger import SqliteLedger

if TYPE_CHECKING:
    from quire.testing.conformance.suite import Together

#: Sessions that wait for a lock.
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
#: Nothing takes this long, unless two wait for each other.
PATIENCE_SECONDS = 30.0


async def first_of(*awaited: Awaitable[Any]) -> None:
    """Return when one of these is done; tasks that were given go on."""
    futures = {asyncio.ensure_future(one) for one in awaited}
    done, pending = await asyncio.wait(futures, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    for future in pending - set(awaited):  # those that were made here
        future.cancel()
    assert done, "neither verb goes on"


class SteppedSqlite(SqliteLedger):
    """Tells of each statement in the thread that is about to execute it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        super().__init__(path, clock)
        self.tell: Callable[[str], None] | None = None
        connect = self.file.connected

        def connected() -> sqlite3.Connection:
            connection = connect()
            connection.set_trace_callback(self.tell)
            return connection

        setattr(self.file, "connected", connected)  # noqa: B010 - a method, which mypy lets nobody assign to

    def follow(self, tell: Callable[[str], None] | None) -> None:
        self.tell = tell
        for connection in self.file.connections.values():
            connection.set_trace_callback(tell)


def empty_file(path: Path) -> None:
    """Delete every row of an open ledger."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE_SECONDS)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        for table in [*(table for table, _ in TABLES.values()), "blobs"]:
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE ledger SET epoch = 1, sealed = ''")
        connection.execute("COMMIT")


async def step_sqlite(first: Ledger, one: Awaitable[Any], second: Ledger, two: Awaitable[Any]) -> tuple[Any, Any]:
    """``one`` has the write lock and has read nothing yet when ``two`` asks for it."""
    assert isinstance(first, SteppedSqlite) and isinstance(second, SteppedSqlite)
    loop = asyncio.get_running_loop()
    locked, go_on = threading.Event(), threading.Event()
    held, waits = asyncio.Event(), asyncio.Event()

    def hold(statement: str) -> None:
        if locked.is_set() and not held.is_set():
            loop.call_soon_threadsafe(held.set)
            go_on.wait(PATIENCE_SECONDS)
        elif statement == "BEGIN IMMEDIATE":
            locked.set()

    def watch(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            loop.call_soon_threadsafe(waits.set)

    first.follow(hold)
    second.follow(watch)
    try:
        earlier = asyncio.ensure_future(one)
        await first_of(held.wait(), earlier)
        later = asyncio.ensure_future(two)
        await first_of(waits.wait(), later)
        go_on.set()
        return await earlier, await later
    finally:
        go_on.set()
        first.follow(None)
        second.follow(None)


def step_postgres(watcher: psycopg.Connection[Any]) -> Together:
    """``one`` has its locks and has read what it decides on when ``two`` waits for a lock, or needs none of them."""

    async def together(first: Ledger, one: Awaitable[Any], _second: Ledger, two: Awaitable[Any]) -> tuple[Any, Any]:
        assert isinstance(first, PostgresLedger)
        held, go_on = asyncio.Event(), asyncio.Event()

        async def hold(_verb: str) -> None:
            held.set()
            await go_on.wait()

        first.locked.barrier = hold
        try:
            earlier = asyncio.ensure_future(one)
            await first_of(held.wait(), earlier)
            later = asyncio.ensure_future(two)
            while not later.done() and watcher.execute(WAITING).fetchone() == (0,):
                await SYSTEM.sleep(0.001)
            go_on.set()
            return await earlier, await later
        finally:
            go_on.set()
            first.locked.barrier = None

    return together
