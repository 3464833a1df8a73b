"""What the simulation found about halts and undoing, each as the smallest case that shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from quire import Act, Run, effect, workflow
from quire.client.client import Client
from quire.explain.why import around, why_of
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Claim, Holding, Query
from quire.model.record import Status
from quire.testing import ToldClock, Trial
from quire.testing.conformance import a_worker
from quire.testing.faults import PassingLedger
from quire.worker.returns import LEAVE_SECONDS
from quire.workflows.workflow import Workflow

T = TypeVar("T")


class Killed(Exception):
    pass


class MortalLedger(PassingLedger):
    """The process that asks dies at its nth commit."""

    commits_left = 1_000_000

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        if verb == "commit":
            self.commits_left -= 1
            if self.commits_left < 0:
                self.commits_left = 1_000_000
                raise Killed
        return await call()


def _resting(name: str) -> Workflow[dict[str, object], None, None]:
    flow: Workflow[dict[str, object], None, None] = Workflow(name)
    flow.state("desk", then=["done"])
    flow.state("done")
    return flow


async def _cut_short(client: Client, ledger: MortalLedger) -> None:
    """Three records rest, a halt cancels them, and whoever brings them back dies when one of them is back."""
    for record_id in ("a", "b", "c"):
        await client.start("held", id=record_id)
    await client.halt()
    ledger.commits_left = 1
    with pytest.raises(Killed):
        await client.resume(cancelled=True)
    assert [record.status for record in await client.find()].count(Status.CANCELLED) == 2


async def test_a_resume_whose_person_dies_on_the_way_is_finished_by_a_worker() -> None:
    """Before, some of the records were back, and the others only when somebody gave the order again."""
    clock = ToldClock()
    ledger = MortalLedger(MemoryLedger(clock))
    async with Client(ledger, workflows=[_resting("held")], clock=clock) as client:
        await _cut_short(client, ledger)

        clock.advance(LEAVE_SECONDS + 1)
        worker = client.worker()
        await worker.lease.beat()
        await worker.look_after()

        assert {record.status for record in await client.find()} == {Status.WAITING}
        assert not (await ledger.recover()).returning


async def test_a_halt_that_comes_before_all_is_back_holds_also_what_is_not() -> None:
    clock = ToldClock()
    ledger = MortalLedger(MemoryLedger(clock))
    async with Client(ledger, workflows=[_resting("held")], clock=clock) as client:
        await _cut_short(client, ledger)
        await client.halt("held")
        await client.resume("held")

        clock.advance(LEAVE_SECONDS + 1)
        worker = client.worker()
        await worker.lease.beat()
        await worker.look_after()

        assert {record.status for record in await client.find()} == {Status.CANCELLED}
        await client.resume("held", cancelled=True)
        assert {record.status for record in await client.find()} == {Status.WAITING}


async def test_a_halted_record_is_shown_as_cancelled_by_every_answer_about_it() -> None:
    """Before, the answer to a new priority showed it as waiting until a sweep had written down what the halt did."""
    clock = ToldClock()
    async with Client(MemoryLedger(clock), workflows=[_resting("held")], clock=clock) as client:
        await client.start("held", id="a")
        await client.halt()
        assert (await client.prioritise("a", 3)).status is Status.CANCELLED


@pytest.mark.parametrize("earlier", [True, False], ids=["before-the-halt", "after-the-halt"])
async def test_an_undoing_waits_for_a_halt_and_is_held_only_by_one_that_came_later(*, earlier: bool) -> None:
    """Before, that depended on whether a worker held the record at that moment."""
    clock = ToldClock()
    ledger = MemoryLedger(clock)
    flow: Workflow[dict[str, object], None, None] = Workflow("undone")

    @flow.step
    async def work(run: Run[dict[str, object], None]) -> None: ...

    async with Client(ledger, workflows=[flow], clock=clock) as client:
        await client.start(flow, id="a")
        await ledger.beat(a_worker("w"), Holding({}))
        await ledger.claim(Claim("c", "w", tuple(flow.slots()), 10))
        for undoes in (True, False) if earlier else (False, True):
            await (client.cancel("a", undo=True) if undoes else client.halt())
        clock.advance(60)
        await ledger.recover()  # the worker is lost
        await client.resume()
        assert (await client.get("a")).status is (Status.CANCELLED if earlier else Status.PENDING)


async def test_the_doubt_about_an_undoing_is_resolved_although_the_parent_has_gone_on() -> None:
    """Before, the answer was refused, and the record asked for ever."""

    async def back(act: Act[None], what: str) -> None:
        raise OSError("the connection broke")

    @effect(undo=back)
    async def put(act: Act[None]) -> str:
        return "put"

    @workflow
    async def child(run: Run[dict[str, Any]]) -> None:
        await run.once(put)

    @workflow
    async def parent(run: Run[dict[str, Any]]) -> None:
        await run.child(child, {}, id="one")
        await run.wait("never")

    async with Trial(parent, also=[child]) as trial:
        await trial.start({}, id="p")
        await trial.settle()
        [row] = await trial.client.ledger.find(Query(parent_id="p"))
        await trial.client.cancel(row.record_id, undo=True)
        await trial.settle()
        assert (await trial.client.get(row.record_id)).status is Status.NEEDS_APPROVAL

        await trial.client.resolve(row.record_id, happened=True)
        await trial.settle()

        assert (await trial.client.get(row.record_id)).status is Status.CANCELLED


async def test_why_does_not_say_of_a_stopped_undoing_that_all_was_undone() -> None:
    """Before, it said that what the record did was undone."""
    clock = ToldClock()
    flow: Workflow[dict[str, object], None, None] = Workflow("undone")

    @flow.step
    async def work(run: Run[dict[str, object], None]) -> None: ...

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, id="a")
        await client.cancel("a", undo=True)
        await client.cancel("a")
        row = await client.get("a")
        why = why_of(row, await around(client.ledger, row))
        assert "before all that it did was undone" in why.sentence
        assert why.remedy == "quire retry a"
