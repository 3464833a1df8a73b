"""Lose every write of a worker in turn, on every ledger: the world changes once."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from quire import Act, Run, Status, Workflow, effect, workflow
from quire.client.client import Client
from quire.ledger.base import Ledger
from quire.model.event import first_break
from quire.run.dependencies import Dependencies
from quire.testing import LossyLedger, ToldClock
from quire.testing.faults import Fault, lose_nth
from quire.worker.worker import Worker
from quire.workflows.workflow import Registry

#: The verbs of a worker whose loss it must bear.
VERBS = frozenset({"commit", "claim", "send", "beat", "recover"})


class Shop:
    def __init__(self) -> None:
        self.orders: list[str] = []


@effect
async def order(act: Act[Shop], what: str) -> str:
    act.deps.orders.append(what)
    return f"ordered {what}"


async def price(what: str) -> int:
    return len(what)


@workflow
async def pack(run: Run[dict[str, Any], Shop]) -> str:
    return str(run.data["item"])


buy = Workflow("buy", deps=Shop)


@buy.step(then="gather")
async def place(run: Run[dict[str, Any], Shop]) -> None:
    run.data["price"] = await run.call(price, run.data["what"])
    run.data["order"] = await run.once(order, run.data["what"])


@buy.step
async def gather(run: Run[dict[str, Any], Shop]) -> Any:
    items: list[dict[str, Any]] = [{"item": "a"}, {"item": "b"}]
    return await run.map(pack, items)


async def time_goes_by(clock: ToldClock) -> None:
    while True:
        await asyncio.sleep(0.001)  # noqa: TID251 - lets the others run; the time itself is told
        clock.advance(0.01)  # slowly: on a busy machine the lease must not run out meanwhile


@pytest.mark.parametrize("fault", ["write-lost", "answer-lost"])
async def test_losing_any_one_write_changes_nothing(ledger: Ledger, clock: ToldClock, fault: Fault) -> None:
    passing = asyncio.ensure_future(time_goes_by(clock))
    async with Client(ledger, workflows=[buy, pack], clock=clock) as client:
        for nth in count(1):
            shop = Shop()
            record_id = f"r{nth}"
            await client.start(buy, {"what": f"book {nth}"}, id=record_id)
            lossy = LossyLedger(ledger, lose_nth(nth, fault, VERBS))
            assert client.keyring is not None
            registry = Registry()
            for known in (buy, pack):
                registry.add(known)
            worker = Worker(lossy, registry, dependencies=Dependencies(shop), keyring=client.keyring, clock=clock)
            await worker.run(until_idle=True)

            record = await client.get(record_id)
            assert record.status is Status.DONE, record.last_error
            assert record.result == '["a","b"]'
            assert shop.orders == [f"book {nth}"]
            assert first_break(await client.events(record_id)) is None
            if not lossy.lost:
                break
        assert nth > 8
    passing.cancel()
