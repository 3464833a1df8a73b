"""What a worker does when answers come late, or do not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from quire import Act, Run, Status, Workflow, effect, workflow
from quire.client.client import Client
from quire.errors import Moved
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Order
from quire.model.receipt import Stage
from quire.model.side import EVERYWHERE
from quire.run import passes as hold
from quire.testing import LossyLedger, ToldClock
from quire.testing.faults import Barrier, Fault, HoldingLedger
from quire.worker import committer
from quire.worker.worker import Worker
from quire.workflows.workflow import Registry

T = TypeVar("T")


async def until(clock: ToldClock, true: Callable[[], bool]) -> None:
    """Let the others run until this is so."""
    for _ in range(1000):
        if true():
            return
        await clock.sleep(0)
    raise AssertionError("it does not come about")


async def test_a_run_that_ends_while_an_empty_claim_is_under_way_is_not_the_end_of_the_work() -> None:
    clock = ToldClock()
    ledger = HoldingLedger(MemoryLedger(clock))
    go = asyncio.Event()
    barriers: list[Barrier] = []

    @workflow
    async def leaf(run: Run[dict[str, Any]]) -> None:
        barriers.append(ledger.hold_answer("claim"))
        await go.wait()

    @workflow
    async def tree(run: Run[dict[str, Any]]) -> str:
        await run.child(leaf, {})
        return "all"

    async with Client(ledger, workflows=[leaf, tree], clock=clock) as client:
        await client.start(tree, {}, id="t")
        worker = client.worker()
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await until(clock, lambda: bool(barriers))
        arrived = asyncio.ensure_future(barriers[0].arrived())
        await until(clock, lambda: clock.advance(0.1) > 0 and arrived.done())  # the next look: nothing is due
        go.set()
        await until(clock, lambda: not worker.holds.given)  # the child has ended, and its parent is due

        barriers[0].release()
        await working

        assert (await client.get("t")).status is Status.DONE


async def test_what_a_worker_held_that_died_meanwhile_is_done_before_the_work_ends() -> None:
    clock = ToldClock()
    dead = False

    @workflow
    async def kills(run: Run[dict[str, Any]]) -> str:
        nonlocal dead
        dead = run.record_id == "second"
        return run.record_id

    async with Client(MemoryLedger(clock), workflows=[kills], clock=clock) as client:
        other = client.worker()
        await other.lease.beat()
        await client.start(kills, {}, id="first")
        claimed, _ = await other.dispatcher.claim(client.registry.slots(), 1)
        assert [row.record_id for row in claimed.records] == ["first"]
        await client.start(kills, {}, id="second")
        worker = client.worker()
        worker.known_dead = lambda worker: dead and worker.worker_id == other.worker_id  # type: ignore[method-assign]

        await worker.run(until_idle=True)

        assert [record.status for record in await client.find()] == [Status.DONE, Status.DONE]


async def test_a_worker_of_an_older_version_does_not_run_what_a_newer_one_started() -> None:
    clock, ran = ToldClock(), []
    ledger = MemoryLedger(clock)

    def made(version: int) -> Workflow[Any, Any, None]:
        flow: Workflow[Any, Any, None] = Workflow("flow", version=version)

        @flow.step
        async def only(run: Run[Any, None]) -> None:
            ran.append((run.record_id, version))

        return flow

    async with Client(ledger, workflows=[made(1)], clock=clock) as old:
        await old.start("flow", {}, id="a")
        async with Client(ledger, workflows=[made(2)], clock=clock) as new:
            await new.start("flow", {}, id="b")
            await old.work()
            assert ran == [("a", 1)]

            await new.work()
            assert ran == [("a", 1), ("b", 2)]


class ClaimsCounted(HoldingLedger):
    claims = 0

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        self.claims += verb == "claim"
        return await super()._pass(verb, call)


@pytest.mark.parametrize("makes_due", [False, True], ids=["nothing", "another record"])
async def test_after_a_run_that_ended_during_a_claim_a_worker_asks_again_only_if_that_made_something_due(
    makes_due: bool,
) -> None:
    clock = ToldClock()
    ledger = ClaimsCounted(MemoryLedger(clock))
    go = {name: asyncio.Event() for name in "abcd"}

    @workflow
    async def leaf(run: Run[dict[str, Any]]) -> None:
        await go[run.data["name"]].wait()

    @workflow
    async def tree(run: Run[dict[str, Any]]) -> str:
        await run.child(leaf, {"name": "c"})
        return "all"

    async with Client(ledger, workflows=[leaf, tree], clock=clock) as client:
        await client.start(tree, {}) if makes_due else await client.start(leaf, {"name": "c"})
        worker = client.worker(concurrency=3)
        working = asyncio.ensure_future(worker.run())
        await until(clock, lambda: [one.workflow.name for one in worker.holds.passes.values()] == ["leaf"])
        await client.start_many(leaf, [{"name": name} for name in "abd"])
        await until(clock, lambda: len(worker.holds.passes) == 3)
        ledger.claims, barrier = 0, ledger.hold_answer("claim")
        go["a"].set()
        go["b"].set()
        await barrier.arrived()
        go["c"].set()
        await until(clock, lambda: len(worker.holds.given) == 0)
        barrier.release()
        await until(clock, lambda: len(worker.holds.given) == 1)
        go["d"].set()
        await until(clock, lambda: len(worker.holds.given) == 0)
        for _ in range(100):
            await clock.sleep(0)

        assert {record.status for record in await client.find()} == {Status.DONE}
        assert ledger.claims == (2 if makes_due else 1)
        worker.stop()
        await working


async def test_a_record_that_comes_back_before_a_lost_answer_has_one_hold() -> None:
    clock = ToldClock()
    passes: list[str] = []
    go = asyncio.Event()

    @workflow
    async def waiter(run: Run[dict[str, Any]]) -> str:
        passes.append("begun")
        value = await run.wait("go", str)
        await go.wait()
        return value

    def first_commit(verb: str, _number: int) -> Fault | None:
        return "answer-lost" if verb == "commit" and not ledger.lost else None

    store = MemoryLedger(clock)
    ledger = LossyLedger(store, first_commit)
    async with Client(store, workflows=[waiter], clock=clock) as client:
        await client.start(waiter, {}, id="w")
        assert client.keyring is not None
        registry = Registry()
        registry.add(waiter)
        worker = Worker(ledger, registry, keyring=client.keyring, clock=clock)
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await until(clock, lambda: bool(ledger.lost))
        await client.signal("w", "go", "now")
        await until(clock, lambda: len(passes) == 2)

        clock.advance(0.05)  # the lost change is sent again: it landed, and the record has gone on since
        await until(clock, lambda: len(worker.holds.lanes.tasks) == 1)
        # A beat: what this worker holds is not given back.
        await until(clock, lambda: clock.advance(0.1) > 0 and ledger.calls["beat"] == 2)
        go.set()
        await working

        record = await client.get("w")
        assert (record.status, record.result) == (Status.DONE, '"now"')
        assert passes == ["begun", "begun"]
        kinds = [event.kind for event in await client.events("w")]
        assert kinds == ["started", "claimed", "waited", "signalled", "woken", "claimed", "done"]


class Gate:
    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()


@effect
async def pass_gate(act: Act[Gate]) -> str:
    act.deps.begun.set()
    await act.deps.go.wait()
    return "through"


async def test_a_worker_whose_ledger_is_sealed_writes_its_receipts_and_ends_with_where_the_records_went() -> None:
    clock, gate = ToldClock(), Gate()
    after: list[str] = []

    @workflow
    async def through(run: Run[dict[str, Any], Gate]) -> None:
        await run.once(pass_gate)
        after.append("went on")

    store = MemoryLedger(clock)
    async with Client(store, workflows=[through], deps=gate, clock=clock) as client:
        await client.start(through, {}, id="t")
        working = asyncio.ensure_future(client.worker().run())
        await gate.begun.wait()
        await store.order(Order("seal", EVERYWHERE, "ann", target="postgresql://there"))
        await until(clock, lambda: clock.advance(0.1) > 0 and store.clock.boottime() > 8)  # a claim, or a beat
        gate.go.set()

        with pytest.raises(Moved, match="its records are at postgresql://there"):
            await working

        [receipt] = await store.receipts(record_ids=["t"])
        assert (receipt.stage, receipt.value) == (Stage.DONE, '"through"')
        assert after == []
        assert (await client.get("t")).status is Status.RUNNING  # as it is copied; taken over where it went


async def test_a_worker_that_comes_to_a_sealed_ledger_is_told_at_once() -> None:
    clock = ToldClock()

    @workflow
    async def any_(run: Run[dict[str, Any]]) -> None: ...

    async with Client(MemoryLedger(clock), workflows=[any_], clock=clock) as client:
        await client.ledger.order(Order("seal", EVERYWHERE, "ann", target="postgresql://there"))

        with pytest.raises(Moved, match="postgresql://there"):
            await client.work()


async def test_a_worker_claims_nothing_while_more_waits_for_the_ledger_than_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer, "QUEUE_BYTES", 5_000)
    clock = ToldClock()
    ledger = HoldingLedger(MemoryLedger(clock))
    begun: list[str] = []
    go = asyncio.Event()

    @workflow
    async def big(run: Run[dict[str, Any]]) -> str:
        begun.append(run.record_id)
        if len(begun) > 1:
            await go.wait()
        return "x" * 6000

    async with Client(ledger, workflows=[big], clock=clock) as client:
        await client.start_many(big, [{} for _ in range(8)])
        worker = client.worker(concurrency=3)
        barrier = ledger.hold("commit")
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await barrier.arrived()
        go.set()
        await until(clock, lambda: worker.committer.full)  # a commit is under way; others wait for it
        in_flight = len(begun)
        worker.concurrency = 100
        worker.changed.set()
        for _ in range(100):
            clock.advance(0.1)
            await clock.sleep(0)
        while_full = (worker.committer.full, len(begun))

        barrier.release()
        await working

        assert while_full == (True, in_flight)
        assert in_flight <= 3
        assert not worker.committer.full
        assert {record.status for record in await client.find()} == {Status.DONE}


async def test_after_a_halt_no_call_begins() -> None:
    """Workers hear of the halt as they hear of work, and end what they run: they do not wait for their next beat."""
    clock = ToldClock()
    ledger = LossyLedger(MemoryLedger(clock), lambda _verb, _number: None)
    called: list[int] = []
    go = asyncio.Event()

    async def call(number: int) -> None:
        called.append(number)
        await go.wait()

    @workflow
    async def calls(run: Run[dict[str, Any]]) -> None:
        for number in range(5):
            await run.call(call, number)

    async with Client(ledger, workflows=[calls], clock=clock) as client:
        await client.start(calls, {}, id="c")
        worker = client.worker()
        working = asyncio.ensure_future(worker.run())
        await until(clock, lambda: called == [0])
        beats = ledger.calls["beat"]

        await client.halt(reason="enough", by="ann@x.eu")
        await until(clock, lambda: ledger.calls["beat"] == beats + 1)  # and the clock stands still
        go.set()
        await until(clock, lambda: not worker.holds.given)
        worker.stop()
        await working

        assert called == [0]
        assert (await client.get("c")).status is Status.CANCELLED


async def test_the_verdict_on_a_receipt_tells_that_the_record_is_to_be_cancelled() -> None:
    clock = ToldClock()
    gate = Gate()
    after: list[str] = []

    @workflow
    async def through(run: Run[dict[str, Any], Gate]) -> None:
        await run.once(pass_gate)
        await run.call(after.append, "went on")

    async with Client(MemoryLedger(clock), workflows=[through], deps=gate, clock=clock) as client:
        await client.start(through, {}, id="t")
        working = asyncio.ensure_future(client.worker().run(until_idle=True))
        await gate.begun.wait()
        await client.cancel("t", by="ann@x.eu")
        gate.go.set()
        await working

        [receipt] = await client.ledger.receipts(record_ids=["t"])
        assert receipt.stage is Stage.DONE
        assert after == []
        assert (await client.get("t")).status is Status.CANCELLED


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_ledger_is_closed_after_what_works_there_has_said_farewell(tmp_path: Path, cancelled: bool) -> None:
    clock = ToldClock()

    @workflow
    async def any_(run: Run[dict[str, Any]]) -> None: ...

    def opened() -> Client:
        return Client(SqliteLedger(tmp_path / "ledger.db", clock), workflows=[any_], clock=clock)

    async with opened() as client:
        working = asyncio.ensure_future(client.work(forever=True))
        while not await client.workers():
            await clock.sleep(0)
        if cancelled:
            working.cancel()
    [ended] = await asyncio.gather(working, return_exceptions=True)

    assert isinstance(ended, asyncio.CancelledError) if cancelled else ended == 0
    async with opened() as client:
        assert [worker.closed for worker in await client.workers()] == ["farewell"]


async def test_what_a_step_left_waiting_does_not_suspend_what_comes_after_it() -> None:
    clock = ToldClock()
    ledger = HoldingLedger(MemoryLedger(clock))
    barriers: list[Barrier] = []
    line: Workflow[dict[str, Any], str, None] = Workflow("line", result=str)

    async def fails() -> None:
        barriers.append(ledger.hold_answer("commit"))
        raise ValueError

    @line.step(then="last")
    async def first(run: Run[dict[str, Any]]) -> None:
        try:
            await asyncio.gather(run.wait("never"), fails())
        except ValueError:
            return

    @line.step
    async def last(run: Run[dict[str, Any]]) -> str:
        return "done"

    async with Client(ledger, workflows=[line], clock=clock) as client:
        await client.start(line, {}, id="l")
        working = asyncio.ensure_future(client.work())
        await until(clock, lambda: bool(barriers))
        await barriers[0].arrived()
        for _ in range(20):
            await clock.sleep(0)  # the first step has settled; its verdict is not here yet
        barriers[0].release()
        await working

        assert (await client.get("l")).status is Status.DONE
        kinds = [event.kind for event in await client.events("l")]
        assert kinds == ["started", "claimed", "moved", "done"]


@pytest.mark.parametrize("takes", ["effect", "loop"])
@pytest.mark.parametrize("turns", range(5))
async def test_an_answer_that_another_commit_takes_in_the_moment_it_would_get_its_own_loses_no_record(
    monkeypatch: pytest.MonkeyPatch, turns: int, takes: str
) -> None:
    monkeypatch.setattr(hold, "RIDE_SECONDS", 0.0)
    clock = ToldClock()

    async def answer() -> int:
        return 1

    @workflow
    async def ask(run: Run[dict[str, Any]]) -> int:
        found = 0
        async for _ in run.each([1, 2], every=1):
            found += await run.call(answer)
            for _ in range(turns):  # the commit of its own is due, and something else of the step commits
                await clock.sleep(0)
            if takes == "effect":
                found += await run.once("act", answer)
        return found

    async with Client(MemoryLedger(clock), workflows=[ask], clock=clock) as client:
        await client.start(ask, {}, id="a")
        await client.work()
        record = await client.get("a")
        told = [line.kind for line in await client.ledger.events(record_id="a")]

    assert record.status is Status.DONE
    assert "orphaned" not in told
