"""What the simulation found in the engine, each as the smallest case that shows it."""

from __future__ import annotations

import asyncio

from quire.client.client import Client
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Claim, Holding
from quire.model.record import Status
from quire.run.run import Run
from quire.testing import ToldClock
from quire.testing.conformance import a_worker
from quire.testing.faults import HoldingLedger
from quire.workflows.workflow import Workflow


def _resting(name: str) -> Workflow[dict[str, object], None, None]:
    flow: Workflow[dict[str, object], None, None] = Workflow(name)
    flow.state("desk", then=["done"])
    flow.state("done")
    return flow


async def test_a_resume_of_everything_brings_back_all_that_no_other_halt_holds() -> None:
    """Before, it was refused in the middle: the ledger was resumed, and only some of the records were back."""
    clock = ToldClock()
    workflows = [_resting("held"), _resting("other")]
    async with Client(MemoryLedger(clock), workflows=workflows, clock=clock) as client:
        for name, record_id in (("held", "a"), ("other", "b"), ("held", "c")):
            await client.start(name, id=record_id)
        await client.halt("held")
        await client.halt()
        await client.resume(cancelled=True)
        assert [record.status for record in await client.find()] == [
            Status.CANCELLED,
            Status.WAITING,
            Status.CANCELLED,
        ]
        await client.resume("held", cancelled=True)
        assert {record.status for record in await client.find()} == {Status.WAITING}


async def test_an_answer_that_comes_late_does_not_put_a_worker_behind() -> None:
    """Before, the worker took its time to be a minute ago: its sleeps were too short, its effects settled too early."""
    clock = ToldClock()
    ledger = HoldingLedger(MemoryLedger(clock))
    async with Client(ledger, workflows=[_resting("held")], clock=clock) as client:
        worker = client.worker()
        answer = ledger.hold_answer("beat")
        beat = asyncio.ensure_future(worker.lease.beat())
        await answer.arrived()
        clock.advance(60)
        answer.release()
        await beat
        assert worker.now() == clock.now()


async def test_an_undoing_takes_a_place_under_the_cap_of_its_workflow() -> None:
    """Before, it ran beside as many records as the cap allows."""
    clock = ToldClock()
    ledger = MemoryLedger(clock)
    flow: Workflow[dict[str, object], None, None] = Workflow("capped", cap=1)

    @flow.step
    async def work(run: Run[dict[str, object], None]) -> None: ...

    async with Client(ledger, workflows=[flow], clock=clock) as client:
        await client.start(flow, id="a")
        await client.start(flow, id="b")
        await client.cancel("b", undo=True)
        await ledger.beat(a_worker("w"), Holding({}))
        claimed = await ledger.claim(Claim("c", "w", tuple(flow.slots()), 10))
        assert len(claimed.records) == 1
