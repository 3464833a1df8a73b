"""Real processes, really killed: every record ends, nothing is done twice, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from quire import Status, aopen
from quire.clock import SYSTEM
from quire.model.codec import parse
from quire.model.event import first_break
from quire.model.receipt import Stage
from tests.runtime.conftest import StartWorker
from tests.runtime.desk import STEPS, WORKFLOWS, Sink


@pytest.mark.slow
async def test_workers_killed_at_random_instants_do_everything_once(
    store: str, sink_path: Path, start_worker: StartWorker
) -> None:
    chance = random.Random(7)
    records = 200
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start_many("desk", [{} for _ in range(records)], ids=[f"d{n}" for n in range(records)])
        workers = [start_worker("--forever", "--lease", "30s"), start_worker("--forever", "--lease", "30s")]
        for _ in range(6):
            await SYSTEM.sleep(chance.uniform(0.05, 0.5))
            victim = workers.pop(chance.randrange(len(workers)))
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            workers.append(start_worker("--forever", "--lease", "30s"))
        for number in range(records):
            record = await client.until_ended(f"d{number}", timeout="60s")
            if record.status is Status.ERROR and "its worker was lost 3 times" in (record.last_error or ""):
                await client.retry(record.record_id, by="ann@x.eu")  # three kills in a row hit the same record
                record = await client.until_ended(f"d{number}", timeout="60s")
            assert record.status is Status.DONE, record.last_error

        wanted = sorted(f"d{record}/{step}" for record in range(records) for step in range(STEPS))
        assert sorted(line.split(" ", 1)[1] for line in Sink(sink_path).lines()) == wanted
        receipts = await client.ledger.receipts(record_ids=[f"d{n}" for n in range(records)])
        assert sorted(parse(r.value) for r in receipts if r.stage is Stage.DONE) == wanted
        assert first_break(await client.events("d0", limit=10_000)) is None


async def test_a_second_process_that_joins_repeats_nothing(
    store: str, sink_path: Path, start_worker: StartWorker
) -> None:
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start_many("desk", [{} for _ in range(20)], ids=[f"d{n}" for n in range(20)])
        first = start_worker()
        second = start_worker()
        assert first.wait() == 0 and second.wait() == 0

        records = await client.find(workflow="desk")
        assert {record.status for record in records} == {Status.DONE}
        assert {record.attempt for record in records} == {0}
    assert len(Sink(sink_path).lines()) == 20 * STEPS


async def test_a_takeover_on_the_same_machine_waits_for_no_lease(
    store: str, sink_path: Path, start_worker: StartWorker
) -> None:
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start("labour", {}, id="l")
        victim = start_worker("--lease", "1h")
        while (await client.get("l")).status is not Status.RUNNING:
            await SYSTEM.sleep(0.01)
        victim.kill()
        victim.wait()
        start_worker("--lease", "1h")

        record = await client.until_ended("l", timeout="20s")

        assert record.status is Status.DONE
        assert "its process is dead" in str(await client.events("l"))


@pytest.mark.slow
async def test_a_chain_of_processes_each_killed_after_two_seconds_finishes_a_minute_of_work(
    store: str, sink_path: Path, start_worker: StartWorker
) -> None:
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start_many("labour", [{} for _ in range(30)], ids=[f"l{n}" for n in range(30)])
        links = 0
        while links < 40:
            links += 1
            worker = start_worker("--forever")
            await SYSTEM.sleep(2.0)
            worker.kill()
            worker.wait()
            if all(record.ended for record in await client.find(workflow="labour")):
                break

        assert links > 3
        assert [record.status for record in await client.find(workflow="labour")] == [Status.DONE] * 30


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.slow
async def test_a_worker_frozen_at_a_commit_acts_on_nothing_that_another_has_taken(
    store: str, sink_path: Path, start_worker: StartWorker, nth: int, after: bool
) -> None:
    async with aopen(store, workflows=WORKFLOWS, deps=Sink(sink_path)) as client:
        await client.start("one_act", {}, id="a")
        frozen = start_worker("--stop-at", str(nth), "--lease", "1s", *(["--after"] if after else []))
        os.waitpid(frozen.pid, os.WUNTRACED)  # noqa: ASYNC222 - it has stopped itself; nothing else runs here
        other = start_worker("--forever", "--lease", "1s")
        record = await client.get("a")
        first_run = record.run_id
        for _ in range(600):
            record = await client.get("a")
            if record.ended or record.status is Status.NEEDS_APPROVAL:
                break
            await SYSTEM.sleep(0.05)
        before = len(await client.events("a"))

        os.kill(frozen.pid, signal.SIGCONT)
        record = await client.get("a")
        if record.status is Status.NEEDS_APPROVAL and Sink(sink_path).lines():
            await client.resolve("a", happened=True, value="a", by="ann@x.eu")
        record = await client.until_ended("a", timeout="20s")  # "it did not act" wakes what was in doubt
        other.kill()
        frozen.wait()

        later = [event for event in (await client.events("a"))[before:] if event.run_id == first_run]
        assert all(event.kind.startswith("effect.") for event in later)
        assert record.status is Status.DONE
        assert len(Sink(sink_path).lines()) == 1
