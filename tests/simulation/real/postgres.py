"""A PostgreSQL server that is restarted, stopped at once, and robbed of its connections, while records run on it."""

from __future__ import annotations

import asyncio
import random
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from quire.testing.postgres import PostgresServer
from tests.simulation.pace import PACE
from tests.simulation.plan import BUSY_SECONDS, Fault, Plan
from tests.simulation.real.stores import Store

RESTARTS, STOPS, ENDS = "restarts", "stops at once and starts again", "ends all connections"


class Postgres(Store):
    lease = 20.0 * PACE
    skews = True

    def __init__(self) -> None:
        self._server = PostgresServer(durable=True)  # what it said is so must outlive it
        self._schema = ""

    def __enter__(self) -> Self:
        self._server.start()
        self.port = urlsplit(self._server.url).port or 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    async def begin(self, seed: int) -> None:
        self._schema = f"seed_{seed}"
        self._restarting = asyncio.Lock()  # one restart at a time

    async def end(self) -> None:
        await asyncio.to_thread(self._execute, f'DROP SCHEMA IF EXISTS "{self._schema}" CASCADE')

    def address(self, port: int) -> str:
        parts = urlsplit(self._server.url)
        return parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}", query=f"schema={self._schema}").geturl()

    def faults(self, dice: random.Random, plan: Plan) -> list[Fault]:
        found = []
        for kind, often in ((RESTARTS, 0.25), (STOPS, 0.35), (ENDS, 0.35)):
            if dice.random() < often:
                found.append(Fault("the server", kind, at=dice.uniform(3.0, BUSY_SECONDS) * PACE, span=5.0 * PACE))
        return found

    async def strike(self, fault: Fault) -> None:
        async with self._restarting:
            if fault.kind == ENDS:
                others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                await asyncio.to_thread(self._execute, others)
            else:
                await asyncio.to_thread(self._server.restart, immediate=fault.kind == STOPS)

    async def calm(self) -> None:
        async with self._restarting:
            pass

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(statement.encode())
