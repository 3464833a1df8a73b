"""Plain functions as effects: in a thread, which nobody can stop, and done at most once all the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from quire import Act, NotDone, Retry, Run, SyncRun, Workflow, effect
from quire.client.client import Client
from quire.model.record import Status
from quire.testing import ToldClock, Trial

#: What acted, in which thread, and how much time it had.
ACTED: list[tuple[str, str, timedelta]] = []
#: A stuck act waits for the one and says with the other that it has begun.
LET_GO = threading.Event()
BEGUN = threading.Event()
UNDONE: list[str] = []
RESULTS: list[str] = []
ONCE = Retry(1)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    ACTED.clear()
    UNDONE.clear()
    RESULTS.clear()
    LET_GO.clear()
    BEGUN.clear()
    yield
    LET_GO.set()


def take_back(act: Act, value: str) -> None:
    UNDONE.append(value)


def find(act: Act, to: str) -> str | NotDone:
    return NotDone()


@effect(probe=find, undo=take_back, settle="0s")
def send(act: Act, to: str) -> str:
    ACTED.append((to, threading.current_thread().name, act.time_left))
    return f"sent to {to}"


@effect(timeout="0.05s")
def stuck(act: Act, to: str) -> str:
    ACTED.append((to, threading.current_thread().name, act.time_left))
    BEGUN.set()
    LET_GO.wait()
    return f"sent to {to}"


@effect(probe=find, settle="0s", timeout="0.05s")
def stuck_and_probed(act: Act, to: str) -> str:
    ACTED.append((to, "", act.time_left))
    BEGUN.set()
    LET_GO.wait()
    if to == "nobody":
        raise NotDone("no such address")
    return f"sent to {to}"


def flow(act: Any, retry: Retry = ONCE) -> Workflow[dict[str, Any], str, None]:
    made: Workflow[dict[str, Any], str, None] = Workflow("mails", result=str, on_failure="undo")

    @made.step(retry=retry)
    async def go(run: Run[dict[str, Any]]) -> str:
        found: str = await run.once(act, run.data.get("to", "ann"))
        if run.data.get("fails"):
            raise ValueError("no")
        RESULTS.append(found)
        return found

    return made


async def test_a_plain_function_acts_in_a_thread_once_and_is_undone_by_a_plain_function() -> None:
    async with Client("memory:", workflows=[flow(send)], clock=ToldClock()) as client:
        await client.start("mails", {}, id="a")
        await client.start("mails", {"to": "bo", "fails": True}, id="b")
        await client.work()

        assert (await client.get("a")).result == '"sent to ann"'
        assert sorted(to for to, *_ in ACTED) == ["ann", "bo"] and UNDONE == ["sent to bo"]
        for _, thread, left in ACTED:
            assert thread != threading.main_thread().name and timedelta(0) < left <= timedelta(seconds=30)


async def test_a_plain_step_may_do_a_plain_effect_and_so_may_a_name_with_a_function() -> None:
    made: Workflow[dict[str, Any], list[str], None] = Workflow("mails", result=list[str])

    @made.step
    def go(run: SyncRun[dict[str, Any]]) -> list[str]:
        return [run.once(send, "ann"), run.once("shout", str.upper, "bo")]

    async with Client("memory:", workflows=[made], clock=ToldClock()) as client:
        for number in range(40):  # more than there are threads
            await client.start("mails", {}, id=str(number))
        await client.work()
        assert {record.result for record in await client.find()} == {'["sent to ann","BO"]'}


async def test_a_trial_does_plain_effects_too() -> None:
    async with Trial(flow(send)) as trial:
        record = await trial.start({})
        await trial.settle()
        assert record.result == "sent to ann" and trial.acts(send) == [("ann",)]
    assert await send(Act("key", None, "r"), "ann") == "sent to ann"


@asynccontextmanager
async def stuck_one(act: Any, to: str, retry: Retry) -> AsyncIterator[tuple[Client, asyncio.Queue[Status]]]:
    """A worker whose act has outlived its time, and what becomes of its record. At the end the act goes on."""
    clock = ToldClock()
    async with Client("memory:", workflows=[flow(act, retry)], clock=clock) as client:
        await client.start("mails", {"to": to}, id="a")
        worker = client.worker()
        settled: asyncio.Queue[Status] = asyncio.Queue()
        worker.watchers.append(lambda record: settled.put_nowait(record.status))
        working = asyncio.ensure_future(worker.run())
        try:
            await asyncio.to_thread(BEGUN.wait)
            yield client, settled
            [receipt] = await client.ledger.receipts(record_ids=["a"])
            assert receipt.open and len(worker.acting) == 1
        finally:
            worker.stop()
            LET_GO.set()
            await working
        [row] = [row for row in await client.ledger.workers() if row.worker_id == receipt.worker]
        [receipt] = await client.ledger.receipts(record_ids=["a"])
        assert row.closed == "farewell" and not worker.acting and not receipt.open
        clock.advance("5m")
        await client.work()


@pytest.mark.parametrize("act", [stuck, stuck_and_probed])
async def test_an_act_that_outlives_its_time_is_a_doubt_until_its_thread_ends(act: Any) -> None:
    async with stuck_one(act, "ann", Retry(1)) as (client, settled):
        assert await settled.get() is Status.NEEDS_APPROVAL
        [line] = [event.body for event in await client.events("a") if event.kind == "effect.unclear"]
        assert "still runs in its thread" in line
    assert [to for to, *_ in ACTED] == ["ann"]
    assert RESULTS == ["sent to ann"]


@pytest.mark.parametrize("act", [stuck, stuck_and_probed])
async def test_another_try_waits_for_the_thread_and_does_not_act_again(act: Any) -> None:
    async with stuck_one(act, "ann", Retry(3)) as (client, settled):
        assert await settled.get() is Status.PENDING
        await client.retry("a")
        assert await settled.get() is Status.WAITING
    assert [to for to, *_ in ACTED] == ["ann"] and RESULTS == ["sent to ann"]


async def test_an_act_that_did_not_happen_in_the_end_is_done_again() -> None:
    async with stuck_one(stuck_and_probed, "nobody", Retry(1)) as (_, settled):
        assert await settled.get() is Status.NEEDS_APPROVAL
    assert [to for to, *_ in ACTED] == ["nobody", "nobody"] and RESULTS == []


async def test_an_act_that_gets_its_thread_too_late_does_not_begin() -> None:
    async with Client("memory:", workflows=[flow(send)], clock=ToldClock()) as client:
        worker = client.worker()
        late: Act[Any] = Act("key", None, "r", lambda: 0.0)
        with pytest.raises(NotDone, match="it got no thread in time"):
            await worker.act(send, late, ("ann",), {})
        assert ACTED == []
        worker.acts.act_threads.shutdown()
