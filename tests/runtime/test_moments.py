"""What becomes due at a known moment is taken at that moment, and not by the next periodic look. Time is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from quire import Run, Workflow, rate
from quire.client.client import Client
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.record import Status
from quire.testing import ToldClock

Data = dict[str, Any]


@asynccontextmanager
async def working(clock: ToldClock, *flows: Workflow[Data, Any, Any]) -> AsyncIterator[Client]:
    """A client with a worker that goes on until the end."""
    async with Client(MemoryLedger(clock), workflows=flows, clock=clock) as client:
        worker = client.worker()
        task = asyncio.ensure_future(worker.run())
        try:
            yield client
        finally:
            worker.stop()
            await task


async def until(clock: ToldClock, holds: Callable[[], Any], *, step: float, most: float) -> float:
    """Let told time go by in small steps until something holds. How much went by; more than ``most`` is a failure."""
    began = clock.now()
    while True:
        for _ in range(60):  # whoever is woken has its turn
            await clock.sleep(0)
        if await holds():
            return clock.now() - began
        assert clock.now() - began < most, "the moment passed, and nothing was done"
        clock.advance(step)


async def test_a_rate_lets_records_through_as_fast_as_it_says() -> None:
    clock = ToldClock()
    flow: Workflow[Data, Any, Any] = Workflow("limited")

    @flow.step(rate=rate(10, "1s", "api"))
    async def act(run: Run[Data]) -> None: ...

    async with working(clock, flow) as client:
        for number in range(40):
            await client.start(flow, {}, id=f"r{number:02}")

        async def all_done() -> bool:
            return len(await client.find(status=(Status.DONE,), limit=100)) == 40

        took = await until(clock, all_done, step=0.02, most=4.0)

    assert 2.9 <= took <= 3.6, "ten at once, and the other thirty ten a second"


async def test_a_child_whose_parent_was_cancelled_is_cancelled_at_once() -> None:
    clock = ToldClock()
    child: Workflow[Data, Any, Any] = Workflow("child")
    parent: Workflow[Data, Any, Any] = Workflow("parent")

    @child.step
    async def rest(run: Run[Data]) -> None:
        await run.wait("never")

    @parent.step
    async def wait(run: Run[Data]) -> None:
        await run.child(child, {})

    async with working(clock, child, parent) as client:
        await client.start(parent, {}, id="p")

        async def child_waits() -> bool:
            return any(row.status is Status.WAITING for row in await client.find(parent_id="p"))

        await until(clock, child_waits, step=0.1, most=2.0)
        await client.cancel("p")

        async def child_is_cancelled() -> bool:
            return all(row.status is Status.CANCELLED for row in await client.find(parent_id="p"))

        took = await until(clock, child_is_cancelled, step=0.1, most=4.0)

    assert took <= 1.0
