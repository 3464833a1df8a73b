"""What real processes found in the engine, each as the smallest case that shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from quire import Act, effect
from quire.client.client import Client
from quire.errors import NotFound
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.record import UNDO, Record, Status
from quire.rules.moves import MOST_DEATHS, SUSPECT_LOSSES, apart, suspected
from quire.rules.outcome import Broke
from quire.run.run import Run
from quire.testing import ToldClock
from quire.testing.conformance import beat, claim, move, settle, start
from quire.testing.faults import PassingLedger
from quire.workflows.workflow import Workflow

T = TypeVar("T")


class MeanwhileLedger(PassingLedger):
    """Before a record is read for the nth time, something happens."""

    def __init__(self, ledger: Ledger, happens: dict[int, Callable[[], Awaitable[object]]]) -> None:
        super().__init__(ledger)
        self.happens = happens
        self.reads = 0

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        if verb == "load":
            self.reads += 1
            if (happens := self.happens.pop(self.reads, None)) is not None:
                await happens()
        return await call()


def _flow() -> Workflow[dict[str, object], None, None]:
    flow: Workflow[dict[str, object], None, None] = Workflow("flow")

    @flow.step
    async def work(run: Run[dict[str, object], None]) -> None: ...

    return flow


async def test_a_cancel_is_not_refused_because_the_record_ran_for_a_moment() -> None:
    """Before: "cannot cancel: it is RUNNING", of a record that was claimed just then, and broke soon after."""
    clock, flow = ToldClock(), _flow()
    ledger = MemoryLedger(clock)
    taken: list[Record] = []

    async def is_claimed() -> None:
        await beat(ledger, "w")
        taken.extend((await claim(ledger, *flow.slots(), worker="w")).records)

    async def breaks() -> None:
        await settle(ledger, taken[0], Broke("no"))

    line = MeanwhileLedger(ledger, {2: is_claimed, 3: breaks})
    async with Client(line, workflows=[flow], clock=clock) as client:
        await client.start(flow, id="a")
        record = await client.cancel("a", undo=True)
        assert (record.status, record.step) == (Status.PENDING, UNDO)


async def test_a_record_that_a_halt_cancels_meanwhile_is_cancelled_for_good() -> None:
    """Before: "cannot cancel: it is CANCELLED", and ``resume --cancelled`` brought the record back."""
    clock, flow = ToldClock(), _flow()
    ledger = MemoryLedger(clock)
    async with Client(ledger, workflows=[flow], clock=clock) as other:

        async def is_halted() -> None:
            await other.halt()

        async with Client(MeanwhileLedger(ledger, {2: is_halted}), workflows=[flow], clock=clock) as client:
            await client.start(flow, id="a")
            await client.cancel("a")
            await client.resume(cancelled=True)
            assert (await client.get("a")).status is Status.CANCELLED


async def _is_back(act: Act[list[str]], value: None) -> None:
    act.deps.append("back")


@effect(undo=_is_back)
async def _put(act: Act[list[str]]) -> None:
    act.deps.append("put")


async def test_a_record_that_ended_its_processes_is_undone_if_its_workflow_wants_that() -> None:
    """Before: it was an ERROR, and what it had done stayed, although the workflow says ``on_failure="undo"``."""
    clock = ToldClock()
    ledger = MemoryLedger(clock)
    flow: Workflow[dict[str, object], None, list[str]] = Workflow("flow", on_failure="undo")

    @flow.step(then="deadly")
    async def work(run: Run[dict[str, object], list[str]]) -> str:
        await run.once(_put)
        return "deadly"

    @flow.step
    async def deadly(run: Run[dict[str, object], list[str]]) -> None:
        raise AssertionError("it is not called")

    happened: list[str] = []
    async with Client(ledger, workflows=[flow], deps=happened, clock=clock) as client:
        await client.start(flow, id="a")
        worker = client.worker()
        worker.watchers.append(lambda record: worker.stop() if record.step == "deadly" else None)
        worker.may_keep = lambda *_: False  # type: ignore[method-assign]
        await worker.run()
        for number in range(SUSPECT_LOSSES + MOST_DEATHS):
            await beat(ledger, name := f"w{number}")
            [row] = (await claim(ledger, *flow.slots(), worker=name)).records
            if suspected(row):
                go = apart(row, clock.now(), name, 60.0, counted=True)
                await move(ledger, row, go, worker=name)
            await ledger.recover(dead=[name])
            clock.advance(60)
        await client.work()
        assert (await client.get("a")).status is Status.CANCELLED
        assert happened == ["put", "back"]


async def test_an_id_that_is_not_there_yet_is_not_offered_for_itself() -> None:
    """Before: "Record with ID a not found. Did you mean 'a'?", of a record that was started between the two reads."""
    clock, flow = ToldClock(), _flow()
    ledger = MemoryLedger(clock)

    class Line(PassingLedger):
        async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
            if verb == "find":
                await start(ledger, "a1")
            return await call()

    async with Client(Line(ledger), workflows=[flow], clock=clock) as client:
        with pytest.raises(NotFound) as refused:
            await client.get("a1")
        assert "Did you mean" not in str(refused.value)
