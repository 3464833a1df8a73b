"""Passes share a task until one of them waits; none of them can tell (see docs/decisions/027)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from quire import Record, Retry, Run, Status, Workflow, workflow
from quire.client.client import Client
from quire.ledger.memory.ledger import MemoryLedger
from quire.testing import ToldClock

Data = dict[str, Any]


@asynccontextmanager
async def started(flow: Workflow[Data, Any, None], count: int, clock: ToldClock | None = None) -> AsyncIterator[Client]:
    """A client whose ledger has so many records of this workflow: r0, r1, …"""
    clock = clock or ToldClock()
    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start_many(
            flow, ({"number": number} for number in range(count)), ids=map("r{}".format, range(count))
        )
        yield client


async def ended(client: Client) -> dict[str, Any]:
    """Work until nothing moves; every record's status, and its result if it is done."""
    await client.worker().run(until_idle=True)
    found = await client.find(limit=1000)
    return {record.record_id: record.result if record.status is Status.DONE else record.status for record in found}


async def test_steps_that_wait_for_nothing_share_a_task() -> None:
    tasks = set()

    @workflow
    async def quick(run: Run[Data]) -> int:
        tasks.add(asyncio.current_task())
        return int(run.data["number"])

    async with started(quick, 20) as client:
        assert await ended(client) == {f"r{number}": str(number) for number in range(20)}

    assert len(tasks) == 1


@pytest.mark.parametrize(("seconds", "turns"), [(0, 1), (1, 4)])
async def test_what_steps_came_to_is_committed_while_others_that_take_long_are_still_to_come(
    seconds: float, turns: int
) -> None:
    told: list[str] = []
    clock = ToldClock()

    @workflow
    async def calculates(run: Run[Data]) -> None:
        told.append("ran")
        clock.advance(seconds)

    async with started(calculates, 4, clock) as client:
        worker = client.worker()
        worker.watchers.append(lambda record: told.append("committed"))
        await worker.run(until_idle=True)

    each = 4 // turns
    assert told == (["ran"] * each + ["committed"] * each) * turns


async def test_steps_that_wait_for_each_other_run_side_by_side() -> None:
    here = 0
    all_here = asyncio.Event()

    @workflow
    async def meet(run: Run[Data]) -> str:
        nonlocal here
        here += 1
        if here == 20:
            all_here.set()
        await all_here.wait()
        return "met"

    async with started(meet, 20) as client:
        assert set((await ended(client)).values()) == {'"met"'}


async def test_what_a_step_leaves_in_its_context_does_not_reach_the_next_record() -> None:
    left: ContextVar[str] = ContextVar("left", default="")
    found = []

    @workflow
    async def careless(run: Run[Data]) -> None:
        found.append(left.get())
        left.set(run.record_id)

    async with started(careless, 5) as client:
        await ended(client)

    assert found == [""] * 5


async def test_a_step_that_changes_nothing_of_its_context_in_the_end_shares_its_task() -> None:
    left: ContextVar[str] = ContextVar("left", default="")
    tasks = set()

    @workflow
    async def careful(run: Run[Data]) -> None:
        tasks.add(asyncio.current_task())
        token = left.set(run.record_id)
        left.reset(token)

    async with started(careful, 5) as client:
        await ended(client)

    assert len(tasks) == 1


async def test_a_step_that_fails_takes_no_other_with_it() -> None:
    @workflow(retry=Retry(attempts=1))
    async def shaky(run: Run[Data]) -> int:
        if run.data["number"] == 1:
            raise ValueError("no")
        return 7

    async with started(shaky, 3) as client:
        assert await ended(client) == {"r0": "7", "r1": Status.ERROR, "r2": "7"}


async def test_a_timeout_of_a_steps_own_ends_what_it_is_around_and_no_other_step() -> None:
    @workflow
    async def patient(run: Run[Data]) -> str:
        if run.data["number"] != 1:
            return "at once"
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "in time"
        return "never"

    async with started(patient, 3) as client:
        assert await ended(client) == {"r0": '"at once"', "r1": '"in time"', "r2": '"at once"'}


async def test_a_step_that_is_cancelled_takes_no_other_with_it() -> None:
    waits, cancelled = asyncio.Event(), []

    @workflow
    async def slow(run: Run[Data]) -> str:
        if run.data["number"] != 0:
            await waits.wait()
            return "done"
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(run.record_id)
            raise
        return "never"

    async with started(slow, 3) as client:
        worker = client.worker()
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await waits.wait()
        await client.cancel("r0")
        await worker.lease.beat()  # which tells that somebody asked
        await working

        assert await ended(client) == {"r0": Status.CANCELLED, "r1": '"done"', "r2": '"done"'}
        assert cancelled == ["r0"]


async def test_a_cancellation_that_comes_out_of_a_step_by_itself_ends_no_other_step() -> None:
    @workflow
    async def odd(run: Run[Data]) -> str:
        if run.data["number"] == 0:
            raise asyncio.CancelledError  # as from a task of its own that was cancelled
        return "done"

    async with started(odd, 3) as client:
        assert await ended(client) == {"r0": Status.PENDING, "r1": '"done"', "r2": '"done"'}


async def test_a_watcher_that_fails_keeps_no_record_from_leaving() -> None:
    @workflow
    async def quick(run: Run[Data]) -> str:
        return "done"

    def fails(record: Record) -> None:
        raise ValueError(record.record_id)

    async with started(quick, 3) as client:
        worker = client.worker()
        worker.watchers.append(fails)
        await worker.run(until_idle=True)

        assert {record.status for record in await client.find()} == {Status.DONE}


async def test_a_record_that_stays_for_its_next_steps_is_done_in_one_stay() -> None:
    line: Workflow[Data, int, None] = Workflow("line", result=int)
    runs = set()

    @line.step(then="second")
    async def first(run: Run[Data]) -> None:
        run.data["number"] += 1

    @line.step(then="third")
    async def second(run: Run[Data]) -> None:
        run.data["number"] += 1

    @line.step
    async def third(run: Run[Data]) -> int:
        return int(run.data["number"])

    async with started(line, 4) as client:
        assert await ended(client) == {f"r{number}": str(number + 2) for number in range(4)}
        for number in range(4):
            runs.add(
                len({event.run_id for event in await client.ledger.events(record_id=f"r{number}") if event.run_id})
            )

    assert runs == {1}


async def test_records_that_are_started_together_run_in_the_order_in_which_they_were_given() -> None:
    ran: list[int] = []

    @workflow
    async def one(run: Run[Data, None]) -> None:
        ran.append(run.data["number"])

    clock = ToldClock()
    async with Client(MemoryLedger(clock), workflows=[one], clock=clock) as client:
        await client.start_many(one, ({"number": number} for number in range(200)))
        await client.worker().run(until_idle=True)

    assert ran == list(range(200))
