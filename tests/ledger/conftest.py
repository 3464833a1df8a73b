"""One ``ledger`` fixture for all stores: empty, not open yet, told the time by ``clock``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.testing import ToldClock
from quire.testing.postgres import PostgresServer
from tests.ledger.stepping import SteppedSqlite

#: PostgreSQL twice: with the short ways of its ledger, and under locks alone.
STORES = ["memory", "sqlite", "postgres", "postgres-locked"]

MakeLedger = Callable[[], Ledger]
EmptiedDatabase = Callable[[], str]


@pytest.fixture
def clock() -> ToldClock:
    return ToldClock()


@pytest.fixture(scope="session", autouse=True)
def server_before_tests(request: pytest.FixtureRequest) -> None:
    """Start the server, if it is needed, before the first test: nothing that a test starts may outlive it."""
    if any("postgres" in item.nodeid and "ledger" in item.nodeid for item in request.session.items):
        with suppress(pytest.skip.Exception, pytest.fail.Exception):  # told by the tests that need it
            request.getfixturevalue("postgres_server")


def statements_that_empty(connection: psycopg.Connection[Any]) -> sql.Composed | None:
    """Make of a ledger what it was when it was new; nothing while it has no tables."""
    tables = "SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'quire' AND relname <> 'ledger'"
    names = [name for (name,) in connection.execute(tables)]
    if not names:
        return None
    statements = [sql.SQL("DELETE FROM quire.{}").format(sql.Identifier(name)) for name in names]
    return sql.SQL("; ").join([*statements, sql.SQL("UPDATE quire.ledger SET epoch = 1, sealed = ''")])


@pytest.fixture(scope="session")
def emptied_database(postgres_server: PostgresServer) -> Iterator[EmptiedDatabase]:
    """One database for each test process, emptied for each test: to make one takes longer than most tests."""
    url = postgres_server.create_database()
    statements: sql.Composed | None = None
    with psycopg.connect(url, autocommit=True, options="-c lock_timeout=10s") as connection:

        def emptied() -> str:
            nonlocal statements
            statements = statements or statements_that_empty(connection)
            if statements is not None:
                connection.execute(statements)
            return url

        yield emptied
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def empty_ledger_in_postgres(postgres_server: PostgresServer) -> str:
    """A database with the tables of a ledger, to be copied: that is much quicker than to make them again."""
    from quire.ledger.postgres.ledger import PostgresLedger

    url = postgres_server.create_database()

    async def migrated() -> None:
        ledger = PostgresLedger(url)
        await ledger.open()
        await ledger.close()

    with ThreadPoolExecutor(1) as thread:  # a loop may run in this one
        thread.submit(lambda: asyncio.run(migrated())).result()
    return url


def postgres_ledgers(url: str, clock: ToldClock) -> MakeLedger:
    from quire.ledger.postgres.ledger import PostgresLedger

    return lambda: PostgresLedger(url, clock)


@pytest.fixture(params=STORES)
def make_ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: ToldClock) -> MakeLedger:
    """Each call gives another instance, all on one store."""
    match request.param:
        case "memory":
            return lambda: MemoryLedger(clock)
        case "sqlite":
            return lambda: SteppedSqlite(tmp_path / "quire.db", clock)
        case _:
            emptied: EmptiedDatabase = request.getfixturevalue("emptied_database")
            fast = "?fast=off" if request.param == "postgres-locked" else ""
            return postgres_ledgers(emptied() + fast, clock)


@pytest.fixture(params=["sqlite", "postgres"])
def make_on_new_store(request: pytest.FixtureRequest, tmp_path: Path, clock: ToldClock) -> MakeLedger:
    """As ``make_ledger``, on a store that nobody has opened yet."""
    if request.param == "sqlite":
        return lambda: SqliteLedger(tmp_path / "new" / "quire.db", clock)
    return postgres_ledgers(request.getfixturevalue("postgres_url"), clock)


@pytest.fixture
def ledger(make_ledger: MakeLedger) -> Ledger:
    return make_ledger()


@pytest.fixture
def twin(ledger: Ledger, make_ledger: MakeLedger) -> Ledger:
    """A second process on the same store."""
    if not ledger.traits.shared:
        pytest.skip("this store lives within one process")
    return make_ledger()
