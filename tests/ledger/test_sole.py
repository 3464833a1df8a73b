"""Of many processes one writes; whoever is cut off while writing loses nothing and blocks nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quire.client.client import Client
from quire.ledger.sole import LEASE_SECONDS, Sole
from quire.model.side import Setting
from quire.testing.clock import ToldClock


def sole(client: Client) -> Sole:
    return Sole(client.ledger, "x", client.clock, {"n": 0})


async def test_one_writes_until_it_gives_back_or_its_lease_runs_out() -> None:
    clock = ToldClock()
    async with Client("memory:", clock=clock) as client:
        one, two = sole(client), sole(client)
        assert await one.take() == (True, {"n": 0})
        assert await one.take() == (True, None)
        assert await two.take() == (False, None)
        await one.keep({"n": 1})
        await one.release({"n": 2})
        assert await two.take() == (True, {"n": 2})
        clock.advance(LEASE_SECONDS * 1.2)
        assert await one.take() == (True, {"n": 2})
        assert await two.keep({"n": 3}) is False
        assert (await two.take())[0] is False


async def test_whoever_is_cut_off_while_writing_reads_anew_and_can_give_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Client("memory:") as client:
        one = sole(client)
        await one.take()
        real = client.ledger.keep

        async def cut_off(setting: Setting) -> bool:
            await real(setting)
            raise asyncio.CancelledError

        monkeypatch.setattr(client.ledger, "keep", cut_off)
        with pytest.raises(asyncio.CancelledError):
            await one.keep({"n": 1})
        monkeypatch.setattr(client.ledger, "keep", real)
        found: tuple[bool, Any] = await one.take()
        await one.release({"n": 2})

        assert found == (True, {"n": 1})
        assert await sole(client).take() == (True, {"n": 2})


async def test_a_write_that_lands_after_it_was_given_up_does_not_shut_its_owner_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Client("memory:") as client:
        one = sole(client)
        await one.take()
        real = client.ledger.keep
        held: list[Setting] = []

        async def late(setting: Setting) -> bool:
            if not held:
                held.append(setting)
                raise asyncio.CancelledError
            await real(held.pop())
            monkeypatch.setattr(client.ledger, "keep", real)
            return await real(setting)

        monkeypatch.setattr(client.ledger, "keep", late)
        with pytest.raises(asyncio.CancelledError):
            await one.keep({"n": 1})
        assert await one.take() == (True, {"n": 1})
