"""PgBouncer in every mode: two ledgers of one database do not meet, and nothing is left in a session."""

from __future__ import annotations

import pytest

from quire.errors import LedgerError
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.pooler import Mode
from tests.conftest import missing
from tests.outgrow.pgbouncer import PgBouncer, binaries
from tests.outgrow.two_ledgers import run_two, session


@pytest.fixture(params=binaries() or [""])
def binary(request: pytest.FixtureRequest) -> str:
    if not request.param:
        missing("There is no PgBouncer on this machine: install the package pgbouncer, or set QUIRE_TEST_PGBOUNCERS.")
    return str(request.param)


@pytest.mark.parametrize(("mode", "size"), [("transaction", 1), ("transaction", 4), ("session", 40)])
async def test_two_ledgers_of_one_database_behind_a_pooler(
    postgres_url: str, binary: str, mode: str, size: int
) -> None:
    before = session(postgres_url)
    # DISCARD ALL would hide what is left in a session.
    with PgBouncer(binary, postgres_url, mode, size, "server_reset_query =") as pooler:
        ledgers = await run_two(pooler.url, 60)
        assert [ledger.server.mode for ledger in ledgers] == [Mode(mode)] * 2
        for _ in range(size + 1):
            assert session(pooler.url) == before


async def test_statements_keep_their_names_where_the_pooler_carries_them(postgres_url: str, binary: str) -> None:
    with PgBouncer(binary, postgres_url, "transaction") as pooler:
        ledger = PostgresLedger(pooler.url)
        await ledger.open()
        await ledger.close()
        assert ledger.server.address.manner.named is ("1.18" not in binary and "/usr/sbin" not in binary)


async def test_a_pooler_of_single_statements_is_refused(postgres_url: str, binary: str) -> None:
    with PgBouncer(binary, postgres_url, "statement") as pooler:
        ledger = PostgresLedger(pooler.url)
        with pytest.raises(LedgerError, match="set pool_mode = transaction or session"):
            await ledger.open()
        await ledger.close()


async def test_the_server_itself_is_known_as_such(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    await ledger.close()
    assert ledger.server.mode is Mode.DIRECT and ledger.server.address.manner.named
