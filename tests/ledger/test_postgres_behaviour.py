"""Engines that speak PostgreSQL's protocol and behave otherwise are refused when a ledger is opened there."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from quire.errors import LedgerError
from quire.ledger.postgres import behaviour
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.wire import Wire

#: How another engine answers, by a part of the statement.
ENGINES: dict[str, tuple[list[tuple[Any, ...]], str]] = {
    "pg_try_advisory_xact_lock": ([(True,)], "hold the same advisory lock"),
    "SKIP LOCKED": ([(1,)], "is not skipped"),
    "pg_snapshot_xmin": ([(0.0,)], "snapshots are not PostgreSQL's"),
    "SELECT nextval": ([(7,)], "are not in order"),
}


async def test_postgresql_behaves_as_itself(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    await ledger.examine()
    await ledger.close()


@pytest.mark.parametrize("part", ENGINES)
async def test_an_engine_that_only_speaks_the_protocol_is_refused_and_nothing_is_left_there(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    answer, why = ENGINES[part]
    real, drawn = Wire.ask, [9, 8, 7, 6]

    async def ask(self: Wire, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        if part not in sql:
            return await real(self, sql, *params)
        return [(drawn.pop(0),)] if part == "SELECT nextval" else list(answer)

    monkeypatch.setattr(Wire, "ask", ask)
    ledger = PostgresLedger(postgres_url)
    with pytest.raises(LedgerError, match=f"{why}.*use PostgreSQL 14 or newer"):
        await ledger.open()
    await ledger.close()
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'quire'").fetchone() is None


def test_engines_that_are_known_have_a_name() -> None:
    error = behaviour.refusal("h:1/d", "CockroachDB CCL v24.1", "something is not so")
    assert "is CockroachDB, which speaks" in str(error)
