"""How many connections a ledger has: capped, closed when idle, and what it says when the server is full."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from quire.errors import Full, LedgerError
from quire.ledger.postgres import pool
from quire.ledger.postgres.ledger import PostgresLedger
from quire.model.side import Setting
from quire.testing.conformance import beat


def count(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_cap_holds_over_all_purposes(postgres_url: str) -> None:
    ledger = PostgresLedger(f"{postgres_url}?connections=6")
    await ledger.open()
    try:
        await asyncio.gather(*[ledger.keep(Setting(f"s{n}", "1", 0)) for n in range(20)])
        await asyncio.gather(*[ledger.setting("s1") for _ in range(20)], *[ledger.counts() for _ in range(20)])
        assert count(postgres_url) <= 6
    finally:
        await ledger.close()


@pytest.mark.parametrize("text", ["5", "15", "many", "-1"])
def test_a_cap_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(LedgerError, match="from 6, one for each purpose, to 14"):
        PostgresLedger(f"postgresql://localhost/db?connections={text}")


async def test_what_is_idle_is_closed(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 1.01)
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    try:
        await ledger.keep(Setting("a", "1", 0))
        assert ledger.server.claims._idle
        while any(each._idle for each in ledger.server.pools):
            await asyncio.wait([each._pruning for each in ledger.server.pools if each._pruning] or [_turn()])
        assert count(postgres_url) == 0
        assert await ledger.setting("a") is not None
    finally:
        await ledger.close()


def _turn() -> asyncio.Future[None]:
    done = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(0.1, done.set_result, None)
    return done


async def test_a_full_server_is_named_and_beats_go_on(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    try:
        await beat(ledger)  # the first one goes over the connection of the claims
        name = postgres_url.rpartition("/")[2]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("CREATE ROLE narrow LOGIN CONNECTION LIMIT 0")
            connection.execute(f"GRANT ALL ON DATABASE {name} TO narrow")
            try:
                poor = PostgresLedger(postgres_url.replace("quire@", "narrow@"))
                with pytest.raises(Full, match="is full: it takes no more connections"):
                    await poor.open()
                await poor.close()
                ledger.server.address._conninfo = poor.server.address._conninfo
                await beat(ledger)  # it has no connection of its own yet, and cannot get one
                assert not ledger.server.beats._idle
                with pytest.raises(Full, match="is full: it takes"):
                    await ledger.counts()
            finally:
                connection.execute(f"REVOKE ALL ON DATABASE {name} FROM narrow")
                connection.execute("DROP ROLE narrow")
    finally:
        await ledger.close()
