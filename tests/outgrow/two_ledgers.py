"""Two ledgers of one database at the same time, each with a worker; whether each has what was started there."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from quire import Run, workflow
from quire.client.client import Client
from quire.ledger.postgres.ledger import PostgresLedger
from quire.model.change import Query
from quire.model.record import Status
from quire.upkeep.verify import verify

#: What a connection of another application says of its session.
_SESSION = (
    "search_path",
    "enable_seqscan",
    "enable_hashjoin",
    "plan_cache_mode",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "jit",
)


def session(url: str) -> dict[str, Any]:
    """The settings that another application finds on a connection of the pooler."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        found: dict[str, Any] = {}
        for name in _SESSION:
            row = connection.execute(f"SELECT current_setting('{name}')").fetchone()
            assert row is not None
            found[name] = row[0]
        return found


@workflow
async def order(run: Run[dict[str, Any]]) -> str:
    async def paid() -> str:
        return str(run.data["of"])

    return await run.call(paid)


async def run_two(url: str, count: int) -> list[PostgresLedger]:
    """Start ``count`` records in each of two ledgers, a few at a time, work on them, and compare."""
    ledgers = [PostgresLedger(f"{url}?schema=ledger_{name}") for name in "ab"]
    async with Client(ledgers[0], workflows=[order]) as a, Client(ledgers[1], workflows=[order]) as b:

        async def started(client: Client, name: str) -> None:
            for first in range(0, count, 10):
                ids = [f"{name}{n}" for n in range(first, first + 10)]
                await client.start_many(order, [{"of": name}] * 10, ids=ids)

        async with a.worker(), b.worker():
            await asyncio.gather(started(a, "a"), started(b, "b"))
            for client, name in ((a, "a"), (b, "b")):
                await asyncio.gather(*[client.until_ended(f"{name}{n}") for n in range(count)])
        for client, name in ((a, "a"), (b, "b")):
            found = await client.ledger.find(Query(limit=2 * count))
            assert {record.record_id for record in found} == {f"{name}{n}" for n in range(count)}
            assert all(record.status is Status.DONE and record.result == f'"{name}"' for record in found)
            report = await verify(client)
            assert report.ok, report
        return ledgers
