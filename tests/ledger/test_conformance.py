from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import cast

import psycopg
import pytest

from quire.ledger.base import Ledger
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.testing import LedgerConformance
from quire.testing.conformance import start, the
from quire.testing.conformance.suite import Together
from tests.ledger.conftest import MakeLedger
from tests.ledger.stepping import empty_file, step_postgres, step_sqlite


class TestLedgers(LedgerConformance):
    """The whole contract, on every store of the ``ledger`` fixture."""

    @pytest.fixture
    def twin(self, ledger: Ledger, make_ledger: MakeLedger) -> Ledger:
        if not ledger.traits.shared:
            pytest.skip("this store lives within one process")
        return make_ledger()

    @pytest.fixture
    def emptied(self, ledger: Ledger, request: pytest.FixtureRequest) -> Callable[[], object]:
        if isinstance(ledger, SqliteLedger):
            return lambda: empty_file(ledger.path)
        return cast("Callable[[], object]", request.getfixturevalue("emptied_database"))

    @pytest.fixture
    def together(self, ledger: Ledger, request: pytest.FixtureRequest) -> Iterator[Together]:
        """One verb is held between its locks and its decision until the other waits for it (protocol 4)."""
        if isinstance(ledger, SqliteLedger):
            yield step_sqlite
            return
        assert isinstance(ledger, PostgresLedger)
        if not ledger.server.fast:
            pytest.skip("the verb that is held goes under locks in any case: see the store 'postgres'")
        with psycopg.connect(request.getfixturevalue("emptied_database")(), autocommit=True) as watcher:
            yield step_postgres(watcher)
            deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            assert watcher.execute(deadlocks).fetchone() == (0,)


async def test_many_open_a_new_store_at_the_same_moment(make_on_new_store: MakeLedger) -> None:
    ledgers = [make_on_new_store() for _ in range(6)]

    try:
        await asyncio.gather(*(ledger.open() for ledger in ledgers))

        for n, ledger in enumerate(ledgers):
            await start(ledger, f"r{n}")
        assert len(await ledgers[0].load([f"r{n}" for n in range(6)])) == 6
    finally:
        await asyncio.gather(*(ledger.close() for ledger in ledgers))


async def test_what_was_acknowledged_is_there_after_a_reopening(make_ledger: MakeLedger) -> None:
    ledger = make_ledger()
    if not ledger.traits.durable:
        pytest.skip("this store is gone with its process")
    await ledger.open()
    row = await start(ledger, data='"kept"')
    await ledger.close()

    ledger = make_ledger()
    await ledger.open()
    try:
        assert await the(ledger) == row
    finally:
        await ledger.close()
