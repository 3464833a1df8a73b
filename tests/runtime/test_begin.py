"""A record that is started beside an idle worker begins there at once, by one commit (decision 009)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quire import Run, Status, Workflow, workflow
from quire.client.client import Client
from quire.clock import SYSTEM, Clock
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Claim, Claimed
from quire.testing import LossyLedger, ToldClock
from quire.testing.faults import Barrier, Fault, HoldingLedger
from quire.worker import dispatcher as workers
from tests.runtime.test_worker import until

passes: list[str] = []


class Gate:
    """Where slow steps wait; a new one for each test, for an event belongs to its loop."""

    go: asyncio.Event


gate = Gate()


@workflow
async def quick(run: Run[dict[str, Any]]) -> str:
    passes.append(run.record_id)
    return "done"


@workflow
async def slow(run: Run[dict[str, Any]]) -> str:
    await gate.go.wait()
    return "done"


capped: Workflow[dict[str, Any], str] = Workflow("capped", cap=1, result=str)


@capped.step
async def alone(run: Run[dict[str, Any]]) -> str:
    await gate.go.wait()
    return "done"


@asynccontextmanager
async def working(ledger: Ledger, clock: Clock = SYSTEM, **options: Any) -> AsyncIterator[Client]:
    """A client beside a worker that has nothing to do."""
    passes.clear()
    gate.go = asyncio.Event()
    async with Client(ledger, workflows=[quick, slow, capped], clock=clock) as client:
        worker = client.worker(**options)
        task = asyncio.ensure_future(worker.run())
        while not worker.dispatcher.idle:
            await asyncio.wait({task}, timeout=0.001)
        try:
            yield client
        finally:
            gate.go.set()
            worker.stop()
            await task


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Any) -> Ledger:
    if request.param == "memory":
        return MemoryLedger()
    if request.param == "sqlite":
        return SqliteLedger(tmp_path / "ledger.db")
    from quire.ledger.postgres.ledger import PostgresLedger

    return PostgresLedger(request.getfixturevalue("postgres_url"))


async def kinds(client: Client, record_id: str) -> list[str]:
    return [event.kind for event in await client.events(record_id)]


async def test_a_started_record_runs_without_a_claim_of_its_own(ledger: Ledger) -> None:
    async with working(ledger) as client:
        handle = await client.start(quick, {}, id="r")

        assert await handle.result(timeout="20s") == "done"

        assert await kinds(client, "r") == ["started", "claimed", "done"]
        events = await client.events("r")
        assert events[0].change_id == events[1].change_id


async def test_the_same_start_again_runs_once(ledger: Ledger) -> None:
    async with working(ledger) as client:
        handles = [await client.start(quick, {}, id="r") for _ in range(3)]

        assert [await handle.result(timeout="20s") for handle in handles] == ["done"] * 3
        assert passes == ["r"]


async def test_a_full_worker_takes_no_more(ledger: Ledger) -> None:
    ledger.traits = ledger.traits._replace(poll_seconds=600.0)  # no look but those that it is told to make
    async with working(ledger, concurrency=1) as client:
        first = await client.start(slow, {}, id="a")
        second = await client.start(slow, {}, id="b")

        assert [(await handle.record()).status for handle in (first, second)] == [Status.RUNNING, Status.PENDING]
        gate.go.set()
        assert await second.result(timeout="20s") == "done"


async def test_a_run_that_ends_asks_for_no_more_where_nothing_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    claim, claims = ledger.claim, 0

    async def counted(asked: Claim) -> Claimed:
        nonlocal claims
        claims += 1
        return await claim(asked)

    monkeypatch.setattr(ledger, "claim", counted)
    async with working(ledger) as client:
        before = claims
        handle = await client.start(quick, {}, id="r")
        assert await handle.result(timeout="20s") == "done"
        for _ in range(20):
            await SYSTEM.sleep(0)

        assert claims == before


async def test_a_worker_whose_runs_were_taken_from_it_comes_back_at_once() -> None:
    ledger = MemoryLedger()
    ledger.traits = ledger.traits._replace(poll_seconds=600.0)  # no look and no beat but those that it is told to make
    async with working(ledger, lease=3600) as client:
        [worker] = client._workers
        before = worker.worker_id
        await client.start(slow, {}, id="r")

        worker.lease.die(worker.worker_id, "its lease ran out")

        async with asyncio.timeout(5):
            while len(known := [row.worker_id for row in await ledger.workers()]) < 2:
                await SYSTEM.sleep(0)
        assert {*known} == {before, worker.worker_id}


async def test_a_cap_holds_for_what_begins_at_once(ledger: Ledger) -> None:
    async with working(ledger) as client:
        handles = [await client.start(capped, {}, id=name) for name in "abc"]

        records = await client.find(workflow="capped")
        assert sorted(record.status for record in records) == [Status.PENDING, Status.PENDING, Status.RUNNING], [
            await kinds(client, name) for name in "abc"
        ]
        gate.go.set()
        assert [await handle.result(timeout="20s") for handle in handles] == ["done"] * 3


async def test_what_is_paused_does_not_begin(ledger: Ledger) -> None:
    async with working(ledger) as client:
        await client.pause()
        handle = await client.start(quick, {}, id="r")

        assert (await handle.record()).status is Status.PENDING
        assert passes == []
        await client.resume()
        assert await handle.result(timeout="20s") == "done"


@pytest.mark.parametrize("fault", ["write-lost", "answer-lost"])
async def test_a_start_whose_answer_is_lost_begins_once(fault: Fault) -> None:
    lossy = LossyLedger(MemoryLedger(), lambda *_: None)
    async with working(lossy) as client:
        lost: list[str] = []

        def lose_the_first(verb: str, _number: int) -> Fault | None:
            if verb != "commit" or lost:
                return None
            lost.append(verb)
            return fault

        lossy.lose = lose_the_first
        handle = await client.start(quick, {}, id="r")

        assert await handle.result(timeout="20s") == "done"
        assert passes == ["r"]
        assert (await kinds(client, "r"))[:2] == ["started", "claimed"]


# -- what is under way beside a start ------------------------------------------------------------------------------


class Scene:
    """A ledger that holds what the test tells it to, and beside it an idle worker that looks when it is told."""

    def __init__(self) -> None:
        self.clock = ToldClock()
        self.store = MemoryLedger(self.clock)
        self.ledger = HoldingLedger(self.store)
        self.ledger.traits = self.ledger.traits._replace(poll_seconds=600.0)
        self.client: Client
        self._barriers: list[Barrier] = []

    def hold(self, verb: str, *, answer: bool = False) -> Barrier:
        """Hold the next call of this verb, or its answer; to the end of the test at most."""
        barrier = self.ledger.hold_answer(verb) if answer else self.ledger.hold(verb)
        self._barriers.append(barrier)
        return barrier

    def release_all(self) -> None:
        for barrier in self._barriers:
            barrier.release()

    async def turns(self) -> None:
        for _ in range(50):
            await self.clock.sleep(0)

    def running(self) -> list[str]:
        rows = self.store.tables.all_records.values()
        return sorted(row.record_id for row in rows if row.status is Status.RUNNING)

    async def ends(self, count: int) -> None:
        """Everything runs to its end, and nothing waits for the next look."""
        gate.go.set()
        rows = self.store.tables.all_records
        await until(self.clock, lambda: len(rows) == count and {row.status for row in rows.values()} == {Status.DONE})


@asynccontextmanager
async def scene(concurrency: int, **traits: Any) -> AsyncIterator[Scene]:
    it = Scene()
    it.ledger.traits = it.ledger.traits._replace(**traits)
    async with working(it.ledger, it.clock, concurrency=concurrency) as it.client:
        try:
            yield it
        finally:
            it.release_all()


async def test_a_record_does_not_begin_in_a_place_that_a_claim_under_way_may_fill() -> None:
    async with scene(4) as it:
        claim = it.hold("claim", answer=True)
        await it.client.start_many(slow, [{}] * 4, ids=[*"abcd"])
        await claim.arrived()

        handles = [await it.client.start(slow, {}, id=name) for name in "ef"]
        claim.release()
        await it.turns()

        assert [(await handle.record()).status for handle in handles] == [Status.PENDING] * 2
        assert it.running() == [*"abcd"]
        await it.ends(6)


async def test_a_record_begins_beside_a_claim_that_leaves_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LEAST_CLAIM", 2)
    async with scene(4, side_by_side=True) as it:
        claim = it.hold("claim", answer=True)
        await it.client.start_many(slow, [{}] * 3, ids=[*"abc"])
        await claim.arrived()

        handles = [await it.client.start(slow, {}, id=name) for name in "def"]

        statuses = [(await handle.record()).status for handle in handles]
        assert statuses == [Status.RUNNING, Status.RUNNING, Status.PENDING]
        claim.release()
        await it.turns()
        assert it.running() == [*"abde"]
        await it.ends(6)


async def test_records_that_are_started_at_the_same_time_begin_in_as_many_places_as_there_are() -> None:
    async with scene(2) as it:
        commit = it.hold("commit")
        starts = [asyncio.ensure_future(it.client.start(slow, {}, id=name)) for name in "abcd"]
        await commit.arrived()
        await it.turns()
        commit.release()
        await asyncio.gather(*starts)
        await it.turns()

        assert it.running() == [*"ab"]
        await it.ends(4)


async def test_a_claim_leaves_a_place_for_a_record_whose_start_is_under_way() -> None:
    async with scene(2) as it:
        commit = it.hold("commit")
        start = asyncio.ensure_future(it.client.start(slow, {}, id="a"))
        await commit.arrived()
        await it.client.start_many(slow, [{}] * 2, ids=[*"bc"])
        await it.turns()
        assert len(it.running()) == 1

        commit.release()
        await start
        await it.turns()
        assert len(it.running()) == 2
        assert "a" in it.running()
        await it.ends(3)


@pytest.mark.parametrize("way", ["it exists", "its caller is gone"])
async def test_the_place_of_a_start_that_does_not_begin_is_for_what_waits(way: str) -> None:
    async with scene(1) as it:
        gate.go.set()
        await it.client.start(slow, {}, id="a")
        await it.ends(1)
        gate.go.clear()
        commit = it.hold("commit")
        start = asyncio.ensure_future(it.client.start(slow, {}, id="a"))
        await commit.arrived()
        await it.client.start_many(slow, [{}], ids=["b"])
        await it.turns()
        assert it.running() == []

        if way == "its caller is gone":
            start.cancel()
        else:
            commit.release()
        await it.turns()

        assert it.running() == ["b"]
        commit.release()
        await it.ends(2)
        assert start.done()


async def test_a_record_that_was_started_for_an_incarnation_that_is_over_is_not_begun_under_the_next() -> None:
    async with scene(2) as it:
        [worker] = it.client._workers
        first = worker.worker_id
        commit = it.hold("commit", answer=True)
        start = asyncio.ensure_future(it.client.start(quick, {}, id="a"))
        await commit.arrived()
        worker.lease.die(first, "its lease ran out")
        commit.release()
        await start
        await it.turns()
        assert passes == []

        await it.store.recover(dead=[first])
        it.clock.advance(600.0)
        await it.ends(1)
        assert passes == ["a"]
