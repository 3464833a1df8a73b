"""Connections to PostgreSQL: how they are listened to, and what becomes of one that dies while nobody uses it."""

from __future__ import annotations

import asyncio

import pytest

from quire.ledger.postgres.address import Address
from quire.ledger.postgres.wire import Lost, Wire
from quire.model.record import Status
from quire.testing.conformance import run, the
from tests.ledger.test_postgres import kill_all, opened


class Came:
    """Told whenever something has come from the server, after the connection took it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._told = asyncio.Event()
        real = Wire._came

        def came(wire: Wire) -> None:
            real(wire)
            self._told.set()

        monkeypatch.setattr(Wire, "_came", came)

    async def until_dead(self, *wires: Wire) -> None:
        async with asyncio.timeout(10):
            while any(wire.alive for wire in wires):
                await self._told.wait()
                self._told.clear()


async def test_a_lane_full_of_connections_that_died_is_no_error(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = Came(monkeypatch)
    async with opened(postgres_url, 1) as [ledger]:
        await run(ledger)
        await asyncio.gather(*[ledger.server.ask("SELECT pg_sleep(0.05)") for _ in range(6)])
        dead = list(ledger.server.long_reads._idle)
        assert len(dead) == 6
        await kill_all(postgres_url)
        await came.until_dead(*dead)

        assert await ledger.server.ask("SELECT 1") == [(1,)]
        assert (await the(ledger)).status is Status.RUNNING
        assert len(ledger.server.long_reads._idle) == 1


async def test_a_connection_that_died_while_nobody_used_it_says_so(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = Came(monkeypatch)
    wire = await Address(postgres_url).connect({})
    assert await wire.ask("SELECT 2") == [(2,)]
    assert wire.alive
    await kill_all(postgres_url)
    await came.until_dead(wire)

    with pytest.raises(Lost) as lost:
        await wire.ask("SELECT 1")
    assert not lost.value.landed
    await wire.close()


def test_a_connection_goes_with_whoever_uses_it_from_loop_to_loop(postgres_url: str) -> None:
    async def asked(wire: Wire) -> None:
        async with asyncio.timeout(10):
            assert await wire.ask("SELECT 2") == [(2,)]

    wire = asyncio.run(Address(postgres_url).connect({}))
    asyncio.run(asked(wire))
    asyncio.run(asked(wire))
    asyncio.run(wire.close())


async def test_what_does_not_fit_into_the_socket_is_sent_when_there_is_room(postgres_url: str) -> None:
    wire = await Address(postgres_url).connect({})
    long = "x" * 20_000_000

    assert await wire.ask("SELECT length($1), $1", long) == [(len(long), long)]
    await wire.close()
