"""Workers whose time ends: nothing is begun that cannot end in it, and what was done counts. Time is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quire import Act, Run, Workflow, effect
from quire.client.client import Client
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.record import Status
from quire.testing import ToldClock
from quire.worker.slices import STEP_TIMES, VALID_SECONDS, StepTime, StepTimes, step_times, too_long

Data = dict[str, Any]


def takes(clock: ToldClock, span: str, **options: Any) -> Workflow[Data, Any, Any]:
    """A workflow of one step that takes so long."""
    flow: Workflow[Data, Any, Any] = Workflow("takes", **options)

    @flow.step
    async def work(run: Run[Data]) -> None:
        clock.advance(span)
        await clock.sleep(0)

    return flow


async def slices(client: Client, budget: str, most: int = 20) -> int:
    """Slices, until nothing is left that one of them begins. How many moved something."""
    for number in range(most):
        before = len(await client.events(limit=100_000))
        await client.worker().run(budget=budget, until_idle=True)
        if len(await client.events(limit=100_000)) == before:
            return number
    return most


async def kinds(client: Client) -> list[str]:
    return [event.kind for event in await client.events(limit=100_000)]


async def test_a_slice_begins_nothing_that_cannot_end_in_it() -> None:
    clock = ToldClock()
    flow = takes(clock, "350ms", cap=1)
    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        for number in range(10):
            await client.start(flow, {}, id=f"r{number}")

        needed = await slices(client, "1500ms")

        assert needed == 5, "two fit into the second that a slice of 1.5 s has"
        told = await kinds(client)
        assert (told.count("claimed"), told.count("yielded"), told.count("done")) == (10, 0, 10)


async def test_a_step_that_ends_under_no_slice_is_begun_once_and_again_when_that_is_forgotten() -> None:
    clock = ToldClock()
    flow: Workflow[Data, Any, Any] = Workflow("endless")
    spans = ["3s", "6s", "3s"]

    @flow.step
    async def work(run: Run[Data]) -> None:
        for _ in range(50):  # until the worker rests: told time must wake it
            await clock.sleep(0)
        clock.advance(spans.pop(0))
        await asyncio.Event().wait()

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")

        assert await slices(client, "1500ms") == 1
        [known] = too_long(await step_times(client.ledger, clock.now())).values()
        assert (known.cuts, known.ended) == (1, False) and known.seconds >= 3
        longer = await slices(client, "5s")
        assert longer == 1, "a slice into which it may fit begins it"
        clock.advance(VALID_SECONDS)
        assert await slices(client, "1500ms") == 1, "the first slice after that tries it again"


async def test_a_step_that_keeps_what_it_did_ends_in_some_slice_however_long_it_is() -> None:
    clock = ToldClock()
    flow: Workflow[Data, Any, Any] = Workflow("parts")

    async def part(number: int) -> int:
        clock.advance("600ms")
        await clock.sleep(0)
        return number

    @flow.step
    async def work(run: Run[Data]) -> int:
        return sum([await run.call(part, number) for number in range(5)])

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")
        await slices(client, "1500ms")

        assert (await client.get("r")).status is Status.DONE


@pytest.mark.parametrize("budget", ["1s", "3s"])
async def test_a_small_budget_begins_an_act_that_may_be_repeated_however_much_time_it_wants(budget: str) -> None:
    clock = ToldClock()
    acted: list[str] = []

    @effect(repeat=True, timeout="20s")
    async def permit(act: Act[Any]) -> None:
        acted.append(act.record_id)

    flow: Workflow[Data, Any, Any] = Workflow("asks")

    @flow.step
    async def work(run: Run[Data]) -> None:
        clock.advance("450ms" if budget == "1s" else "2200ms")  # to begin takes most of the slice
        await run.once(permit)

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")
        await slices(client, budget)

        assert acted == ["r"]
        assert (await client.get("r")).status is Status.DONE


async def test_slices_side_by_side_keep_what_each_found_out_and_small_differences_are_not_written() -> None:
    clock = ToldClock()
    ledger = MemoryLedger(clock)
    await ledger.open()
    one, other = StepTimes(10.0), StepTimes(10.0)
    for times, step in ((one, "a"), (other, "b")):
        await times.load(ledger, 0.0)
        times.took(("w", step), 3.0, 0.0, ended=True)
        times.took(("w", "short"), 0.01, 0.0, ended=True)
        await times.save(ledger)

    kept = await ledger.setting(STEP_TIMES)
    again = StepTimes(10.0)
    await again.load(ledger, 1.0)
    again.took(("w", "a"), 3.1, 1.0, ended=True)
    await again.save(ledger)

    assert set(await step_times(ledger, 1.0)) == {("w", "a"), ("w", "b")}
    assert await ledger.setting(STEP_TIMES) == kept
    assert not too_long(again.known)
    assert StepTime(9.0, True, 0, 0.0, 10.0).fitting == 13
    await ledger.close()
