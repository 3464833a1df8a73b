"""``handle.result()`` works until there is one, or says who must do something; ``work()`` says why it ended."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import quire
from quire import Retry, Run, Workflow, aopen, workflow
from quire.errors import DefinitionError, ResultMissing
from quire.ledger.memory.ledger import MemoryLedger
from quire.testing import ToldClock

Data = dict[str, Any]


@workflow
async def sleeps(run: Run[Data]) -> str:
    await run.sleep("30ms")
    return "rested"


@workflow(retry=Retry(5, first="20ms"))
async def fails_twice(run: Run[Data]) -> int:
    if run.attempt < 3:
        raise RuntimeError("not yet")
    return run.attempt


@workflow
async def asks(run: Run[Data]) -> str:
    return (await run.ask("Pay 3 euros?", expires="3d")).choice


@workflow
async def listens(run: Run[Data]) -> Any:
    return await run.wait("paid")


@workflow
async def listens_for_a_moment(run: Run[Data]) -> Any:
    return await run.wait("paid", timeout="20ms") or "nobody paid"


@workflow
async def parent(run: Run[Data]) -> Any:
    return await run.child(asks, {})


@workflow
async def patient_parent(run: Run[Data]) -> Any:
    return await run.child(sleeps, {})


ALL = [sleeps, fails_twice, asks, listens, listens_for_a_moment, parent, patient_parent]


@pytest.mark.parametrize(
    ("flow", "value"),
    [(sleeps, "rested"), (fails_twice, 3), (listens_for_a_moment, "nobody paid"), (patient_parent, "rested")],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_first_script_of_a_newcomer_has_its_result(flow: Workflow[Any, Any, Any], value: object) -> None:
    """Timers, back-offs and children go on by themselves: the client works for them."""
    with quire.open("memory:", workflows=ALL) as q:
        assert q.start(flow, id="a").result() == value


@pytest.mark.parametrize(
    ("flow", "told"),
    [
        (asks, "'a' has no result yet: 'a' waits for a person: Pay 3 euros?"),
        (listens, "'a' has no result yet: 'a' waits for the signal 'paid'"),
        (parent, "'a' has no result yet: 'a/1' waits for a person: Pay 3 euros?"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_record_that_waits_for_somebody_says_for_whom(flow: Workflow[Any, Any, Any], told: str) -> None:
    with quire.open("memory:", workflows=ALL) as q:
        record = q.start(flow, id="a")

        with pytest.raises(ResultMissing) as refused:
            record.result()

        [child] = [row.record_id for row in q.find(parent_id="a")] or ["a"]
        assert str(refused.value) == told.replace("'a/1'", repr(child))


def test_a_state_without_a_function_and_a_pause_are_named() -> None:
    board = Workflow("board")
    board.state("TODO", then="DONE")
    board.state("DONE")
    with quire.open("memory:", workflows=[board, sleeps]) as q:
        with pytest.raises(ResultMissing, match="'b' rests at 'TODO' until somebody moves it"):
            q.start(board, id="b").result()
        q.pause("sleeps")
        with pytest.raises(ResultMissing, match="workflow 'sleeps' is paused; it goes on when somebody resumes it"):
            q.start(sleeps, id="s").result()


async def test_with_a_timeout_somebody_may_answer_meanwhile() -> None:
    async with aopen("memory:", workflows=ALL) as client:
        record = await client.start(listens, id="a")
        waiting = asyncio.ensure_future(record.result(timeout="60s"))
        await client.signal("a", "paid", 3)

        assert await waiting == 3


async def test_a_worker_runs_beside_a_block() -> None:
    async with aopen("memory:", workflows=ALL) as client, client.worker() as worker:
        assert await (await client.start(sleeps)).result() == "rested"
        assert worker.running
    assert not worker.running


def test_a_plain_worker_runs_beside_a_block() -> None:
    with quire.open("memory:", workflows=ALL) as q, q.worker():
        assert q.start(fails_twice).result() == 3


async def test_a_worker_that_cannot_begin_is_no_reason_to_wait() -> None:
    flow: Workflow[Any, Any, Any] = Workflow("needy", deps=Path)

    @flow.step
    async def only(run: Any) -> None: ...

    async with aopen("memory:", workflows=[flow]) as client:
        with pytest.raises(DefinitionError, match="workflow 'needy' works with a Path"):
            await (await client.start(flow)).result()


async def test_work_says_why_it_ended() -> None:
    clock = ToldClock()
    async with aopen(MemoryLedger(clock), workflows=ALL, clock=clock) as client:
        worked = await client.work()
        assert (worked, worked.why) == (0, "nothing is left to do")

        await client.start(sleeps, id="s")
        await client.start(asks, id="a")
        await client.start(listens, id="l")
        worked = await client.work()

        assert worked == 3
        assert worked.why.startswith("nothing is due: 1 record goes on when a person has answered, 'a' first: Pay")
        assert "; 1 record goes on by a clock, 's' first, at 20" in worked.why
        assert worked.why.endswith("; 1 record goes on when another record or somebody outside lets it")
        assert repr(worked).startswith("<3 records finished; nothing is due: ")
        assert (await client.work(until="s", budget="0s")).why == "its time is over, or it was stopped"
