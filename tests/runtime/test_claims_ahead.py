"""A worker that has two claims under way: each takes its own records, and what happens to one spares the other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quire import Run, Status, Workflow, workflow
from quire.client.client import Client
from quire.errors import LedgerUnavailable, Moved, WorkerClosed
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Beaten, Claim, Claimed, Holding, Order
from quire.model.row import replace
from quire.model.side import EVERYWHERE
from quire.model.side import Worker as WorkerRow
from quire.testing import ToldClock
from quire.testing.faults import PassingLedger
from quire.worker import dispatcher as workers
from quire.worker.worker import Worker
from tests.runtime.test_worker import until

#: How many records a first claim takes here, and how many a worker may hold.
LEAST, MOST = 2, 8


class Asked:
    """A claim that has come to the ledger, and what it took. Its answer waits for ``answer``."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.taken: tuple[str, ...] = ()
        self._answer = asyncio.get_running_loop().create_future()

    def answer(self, error: Exception | None = None) -> None:
        if error is not None:
            self._answer.set_exception(error)
        elif not self._answer.done():
            self._answer.set_result(None)

    async def answered(self) -> None:
        await self._answer

    @property
    def waits(self) -> bool:
        return not self._answer.done()


class Ahead(PassingLedger):
    """A ledger in memory that takes claims side by side, in their order, and answers when the test says so."""

    def __init__(self, clock: ToldClock) -> None:
        self.store = MemoryLedger(clock)
        super().__init__(self.store)
        self.clock = clock
        self.traits = self.traits._replace(side_by_side=True)
        self.asked: list[Asked] = []
        self._looks: list[tuple[Callable[[], bool], list[bool]]] = []
        #: Claims take nothing before they are answered.
        self.late = False
        #: From now on every claim is answered at once.
        self.at_once = False
        #: The most that was held, and asked for, at any time.
        self.most = 0
        #: Unset while beats that are refused wait for their answer.
        self.refuses = asyncio.Event()
        self.refuses.set()
        #: How often each worker has beaten.
        self.beats: Counter[str] = Counter()

    async def claim(self, claim: Claim) -> Claimed:
        asked = Asked(claim)
        self.asked.append(asked)
        for looked, found in self._looks:
            found.append(looked())
        self.most = max(self.most, self.held + sum(asked.claim.limit for asked in self.asked if asked.waits))
        if self.late:
            await asked.answered()
        claimed = await self.store.claim(claim)
        asked.taken = tuple(record.record_id for record in claimed.records)
        if self.at_once:
            await self.clock.sleep(0)
            asked.answer()
        await asked.answered()
        return replace(claimed, now=self.clock.now())

    def asked_when(self, looked: Callable[[], bool]) -> list[bool]:
        """What a look says at the moment of each claim from now on."""
        self._looks.append((looked, found := list[bool]()))
        return found

    async def beat(self, worker: WorkerRow, holding: Holding) -> Beaten:
        self.beats[worker.worker_id] += 1
        try:
            return await self.store.beat(worker, holding)
        except WorkerClosed:
            await self.clock.sleep(0)
            await self.refuses.wait()
            raise

    @property
    def held(self) -> int:
        """Records that run, beside those of claims that wait for their answer."""
        taken = {record_id for asked in self.asked if asked.waits for record_id in asked.taken}
        rows = self.store.tables.all_records.values()
        return sum(row.status is Status.RUNNING and row.record_id not in taken for row in rows)

    def answer_all(self) -> None:
        self.at_once = True
        for asked in self.asked:
            asked.answer()

    async def close_worker(self, worker_id: str) -> None:
        """Somebody takes over what it holds."""
        await self.store.recover(dead=[worker_id])


class Scene:
    """Records, a worker that has asked for some of them twice, and how often each of them has run."""

    def __init__(self, client: Client, ledger: Ahead, clock: ToldClock, worker: Worker) -> None:
        self.client = client
        self.ledger = ledger
        self.clock = clock
        self.worker = worker
        self.runs: Counter[str] = Counter()

    def begin(self, **fields: Any) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.worker.run(**fields))

    async def both_asked(self) -> list[Asked]:
        await until(self.clock, lambda: len(self.ledger.asked) == 2 and all(asked.taken for asked in self.ledger.asked))
        return self.ledger.asked[:2]

    async def turns(self, count: int = 50) -> None:
        for _ in range(count):
            await self.clock.sleep(0)

    async def ended(self, working: asyncio.Task[None]) -> BaseException | None:
        """Let the time go on until the worker has ended."""
        await until(self.clock, lambda: self.clock.advance(0.05) > 0 and working.done())
        return None if working.cancelled() else working.exception()

    async def statuses(self) -> set[Status]:
        return {record.status for record in await self.client.find()}

    def running(self) -> list[str]:
        rows = self.ledger.store.tables.all_records.values()
        return [row.record_id for row in rows if row.status is Status.RUNNING]


@asynccontextmanager
async def scene(
    monkeypatch: pytest.MonkeyPatch, count: int = 6, turns: int = 0, span: float = 0.0, timeout: float = 3600.0
) -> AsyncIterator[Scene]:
    monkeypatch.setattr(workers, "LEAST_CLAIM", LEAST)
    clock = ToldClock()
    ledger = Ahead(clock)

    @workflow(timeout=timeout)
    async def any_(run: Run[dict[str, Any]]) -> None:
        it.runs[run.record_id] += 1
        for _ in range(turns):
            await clock.sleep(0)
        if span:
            await clock.sleep(span)

    flow: Workflow[Any, Any, Any] = any_
    async with Client(ledger, workflows=[flow], clock=clock) as client:
        await client.start_many(flow, [{} for _ in range(count)])
        it = Scene(client, ledger, clock, client.worker(concurrency=MOST))
        yield it


async def test_a_worker_that_begins_asks_twice_before_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin(until_idle=True)
        one, two = await it.both_asked()
        await it.turns()

        assert len(it.ledger.asked) == 2
        assert len(one.taken) == len(two.taken) == LEAST
        assert set(one.taken).isdisjoint(two.taken)
        it.ledger.answer_all()
        assert await it.ended(working) is None
        assert await it.statuses() == {Status.DONE}
        assert set(it.runs.values()) == {1}


async def test_the_next_claim_goes_out_before_what_the_last_one_took_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin(until_idle=True)
        one, _ = await it.both_asked()
        ran_before = it.ledger.asked_when(lambda: bool(it.runs))
        one.answer()
        await until(it.clock, lambda: bool(it.runs))
        it.ledger.answer_all()
        assert await it.ended(working) is None

        assert ran_before[0] is False
        assert set(it.runs.values()) == {1}


@pytest.mark.parametrize("turns", [0, 1, 7, 40])
async def test_what_is_held_and_what_is_asked_for_are_together_never_more_than_its_places(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    async with scene(monkeypatch, 100, turns) as it:
        it.ledger.at_once = True
        working = it.begin(until_idle=True)

        assert await it.ended(working) is None
        assert await it.statuses() == {Status.DONE}
        assert LEAST < it.ledger.most <= MOST


async def test_what_the_second_claim_took_begins_while_the_first_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch, span=1.0) as it:
        working = it.begin(until_idle=True)
        one, two = await it.both_asked()
        two.answer()
        await it.turns()
        begun = set(it.runs)
        await it.worker.lease.beat()
        kept = set(it.running())

        it.ledger.answer_all()
        assert await it.ended(working) is None
        assert begun == set(two.taken)
        assert kept >= {*one.taken, *two.taken}
        assert set(it.runs.values()) == {1}
        assert it.ledger.most <= MOST
        assert not it.worker.dispatcher.claims


async def test_what_the_second_claim_took_does_not_time_out_while_the_first_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch, timeout=1.0) as it:
        working = it.begin(until_idle=True)
        one, two = await it.both_asked()
        one.answer(LedgerUnavailable("no answer"))
        two.answer()
        await it.turns()
        it.clock.advance(30.0)  # the claim that is sent again gets no answer in all this time
        await it.turns()
        done = {record.record_id for record in await it.client.find() if record.status is Status.DONE}

        it.ledger.answer_all()
        assert await it.ended(working) is None
        assert done == set(two.taken)
        assert await it.statuses() == {Status.DONE}
        assert all(it.runs[record_id] == 1 for record_id in two.taken)


async def test_what_a_run_of_the_second_claim_makes_due_is_found_when_the_first_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ToldClock()
    monkeypatch.setattr(workers, "LEAST_CLAIM", LEAST)
    ledger = Ahead(clock)
    ledger.late = True

    @workflow
    async def leaf(run: Run[dict[str, Any]]) -> None: ...

    @workflow
    async def tree(run: Run[dict[str, Any]]) -> None:
        await run.child(leaf, {})

    async with Client(ledger, workflows=[leaf, tree], clock=clock) as client:
        worker = client.worker(concurrency=MOST)
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await until(clock, lambda: len(ledger.asked) == 2)
        _, second = ledger.asked
        await client.start(tree, {})
        second.answer()
        # It waits for its child, which is due.
        await until(clock, lambda: bool(second.taken) and not worker.holds.given)
        ledger.late = False
        ledger.traits = ledger.traits._replace(poll_seconds=600.0)
        ledger.answer_all()
        await until(clock, working.done)

        assert {record.status for record in await client.find()} == {Status.DONE}


async def test_a_worker_that_was_closed_under_two_claims_begins_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin(until_idle=True)
        asked = await it.both_asked()
        first = it.worker.worker_id
        await it.ledger.close_worker(first)
        it.ledger.at_once = True
        for each in asked:
            each.answer(WorkerClosed("its lease ran out"))

        assert await it.ended(working) is None
        assert len(it.ledger.beats) == 2
        assert await it.statuses() == {Status.DONE}
        assert set(it.runs.values()) == {1}


async def test_a_worker_that_two_claims_find_without_a_lease_begins_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        worker = it.worker
        await worker.lease.beat()
        first = worker.worker_id
        await it.ledger.close_worker(first)
        it.clock.advance(worker.lease.seconds)
        it.ledger.at_once = True
        slots = worker.registry.slots()

        claims = await asyncio.gather(worker.dispatcher.claim(slots, 2), worker.dispatcher.claim(slots, 2))

        assert set(it.ledger.beats) == {first, worker.worker_id}
        assert {record.worker for claimed, _ in claims for record in claimed.records} == {worker.worker_id}


async def test_a_beat_of_the_incarnation_before_does_not_end_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin()
        one, two = await it.both_asked()
        first = it.worker.worker_id
        await it.ledger.close_worker(first)
        beats = it.ledger.beats[first]
        it.ledger.refuses.clear()
        it.clock.advance(it.worker.lease.seconds / 4)
        await until(it.clock, lambda: it.ledger.beats[first] > beats)
        it.ledger.at_once = True
        for each in (one, two):
            each.answer(WorkerClosed("its lease ran out"))
        await until(it.clock, lambda: len(it.runs) == 6)
        second = it.worker.worker_id
        it.ledger.refuses.set()
        await it.turns()

        assert it.worker.worker_id == second
        assert set(it.ledger.beats) == {first, second}
        it.worker.stop()
        assert await it.ended(working) is None


async def test_what_an_incarnation_took_that_is_over_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin(until_idle=True)
        one, two = await it.both_asked()
        it.ledger.at_once = True
        first = it.worker.worker_id
        one.answer(WorkerClosed("its lease ran out"))
        two.answer()
        await until(it.clock, lambda: it.worker.worker_id != first and len(it.runs) == 2)

        assert not {*one.taken, *two.taken} & set(it.runs)
        await it.ledger.close_worker(first)
        assert await it.ended(working) is None
        assert await it.statuses() == {Status.DONE}
        assert set(it.runs.values()) == {1}


async def test_what_claims_take_after_a_worker_was_told_to_stop_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin()
        one, two = await it.both_asked()
        it.worker.stop()
        one.answer()
        await it.turns()
        two.answer()

        assert await it.ended(working) is None
        assert set(it.runs) == {*one.taken, *two.taken}
        assert len(it.ledger.asked) == 2
        assert it.running() == []


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one after the other"])
async def test_what_claims_take_after_the_budget_has_ended_is_given_back(
    monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    async with scene(monkeypatch, span=100.0) as it:
        began = it.clock.now()
        working = it.begin(budget=2.0)
        one, two = await it.both_asked()
        it.clock.advance(3.0)
        one.answer()
        if not at_once:
            await it.turns()
        two.answer()

        assert await it.ended(working) is None
        assert it.clock.now() - began < 10.0
        assert len(it.ledger.asked) == 2
        assert await it.statuses() == {Status.PENDING}


@pytest.mark.parametrize("answered", [None, 0, 1], ids=["neither", "the first", "the second"])
async def test_a_worker_that_is_cancelled_keeps_nothing_of_either_claim(
    monkeypatch: pytest.MonkeyPatch, answered: int | None
) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin()
        asked = await it.both_asked()
        if answered is not None:
            asked[answered].answer()
            await it.clock.sleep(0)
        working.cancel()
        await it.ended(working)

        assert working.cancelled()
        assert it.running() == []
        assert not it.worker.dispatcher.asked
        it.ledger.answer_all()
        await it.client.work()
        assert await it.statuses() == {Status.DONE}


async def test_a_run_that_ends_while_the_second_claim_is_under_way_is_not_the_end_of_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "LEAST_CLAIM", LEAST)
    clock = ToldClock()
    ledger = Ahead(clock)

    @workflow
    async def leaf(run: Run[dict[str, Any]]) -> None: ...

    @workflow
    async def tree(run: Run[dict[str, Any]]) -> None:
        await run.child(leaf, {})

    async with Client(ledger, workflows=[leaf, tree], clock=clock) as client:
        await client.start(tree, {})
        worker = client.worker(concurrency=MOST)
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await until(clock, lambda: len(ledger.asked) == 2 and bool(ledger.asked[0].taken))
        ledger.at_once = True
        ledger.asked[0].answer()
        await until(clock, lambda: not worker.holds.given)  # it waits for its child, which is due
        ledger.asked[1].answer()
        await until(clock, working.done)

        assert {record.status for record in await client.find()} == {Status.DONE}


async def test_an_empty_claim_is_not_the_end_of_the_work_while_another_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ToldClock()
    monkeypatch.setattr(workers, "LEAST_CLAIM", LEAST)
    ledger = Ahead(clock)
    ledger.late = True

    @workflow
    async def leaf(run: Run[dict[str, Any]]) -> None: ...

    @workflow
    async def tree(run: Run[dict[str, Any]]) -> None:
        await run.child(leaf, {})

    async with Client(ledger, workflows=[leaf, tree], clock=clock) as client:
        working = asyncio.ensure_future(client.worker(concurrency=MOST).run(until_idle=True))
        await until(clock, lambda: len(ledger.asked) == 2)
        ledger.asked[0].answer()
        for _ in range(20):
            await clock.sleep(0)
        await client.start(tree, {})
        ledger.late, ledger.at_once = False, True
        ledger.asked[1].answer()
        await until(clock, working.done)

        assert {record.status for record in await client.find()} == {Status.DONE}


async def test_a_worker_with_two_claims_in_a_sealed_ledger_says_once_where_its_records_went(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin()
        asked = await it.both_asked()
        await it.ledger.order(Order("seal", EVERYWHERE, "ann", target="postgresql://there"))
        for each in asked:
            each.answer(Moved("its records are at postgresql://there"))

        error = await it.ended(working)
        assert isinstance(error, Moved)
        assert not it.runs
        assert not it.worker.dispatcher.asked


async def test_a_claim_whose_answer_is_lost_beside_another_gets_its_own_records_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch, span=1.0) as it:
        working = it.begin(until_idle=True)
        one, two = await it.both_asked()
        it.ledger.at_once = True
        one.answer(LedgerUnavailable("no answer"))
        two.answer()
        await it.turns()
        await it.worker.lease.beat()
        assert set(it.running()) >= {*one.taken, *two.taken}

        assert await it.ended(working) is None
        again = it.ledger.asked[2]
        assert again.claim == replace(one.claim, again=True)
        assert again.taken == one.taken
        assert set(it.runs.values()) == {1}
        assert await it.statuses() == {Status.DONE}


async def test_a_claim_that_fails_for_good_does_not_take_the_records_of_the_other_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with scene(monkeypatch) as it:
        working = it.begin()
        one, two = await it.both_asked()
        it.worker.stop()  # who is to stop does not ask again
        one.answer(LedgerUnavailable("no answer"))
        await it.turns()
        two.answer()

        assert isinstance(await it.ended(working), LedgerUnavailable)
        assert set(it.runs) == set(two.taken)
        assert it.running() == []
