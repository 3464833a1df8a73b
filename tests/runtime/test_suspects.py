"""One record that ends its worker harms none of its neighbours (protocol 23). Real processes, really killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from quire import Record, Run, Status, aopen, workflow
from quire.client.client import Client
from quire.clock import SYSTEM, new_id, next_id
from quire.ledger import process
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Claim, Holding
from quire.model.codec import parse
from quire.rules import moves as transition
from quire.testing import ToldClock
from quire.testing.conformance.asking import a_worker
from tests.runtime import suspects
from tests.runtime.conftest import ROOT
from tests.runtime.suspects import Data, blocks, eats, exits, innocent, long, never_ends, waits

ALL = [innocent, exits, blocks, never_ends, eats, waits, long]
#: Long enough that a busy machine does not miss it, and short enough to wait for it.
LEASE = "8s"
PATIENCE = "300s"

StartQuire = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start_quire(store: str) -> Iterator[StartQuire]:
    """Start ``quire worker`` with the flow file; whatever is left of it is killed in the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        command = [*before, sys.executable, "-m", "quire.surfaces.cli", "--ledger", store, "worker", suspects.__file__]
        started.append(subprocess.Popen([*command, *options], cwd=ROOT, stdout=subprocess.DEVNULL))
        return started[-1]

    yield start

    for worker in started:
        if worker.poll() is None:
            worker.kill()
        worker.wait()


async def made_suspects(client: Client, *record_ids: str) -> None:
    """These records, which are due, were with workers that died, as often as it takes."""
    for _ in range(transition.SUSPECT_LOSSES):
        worker = new_id("w_")
        await client.ledger.beat(a_worker(worker), Holding({}))
        slots = tuple(client.registry.slots())
        claimed = await client.ledger.claim(Claim(next_id(), worker, slots, len(record_ids)))
        assert {record.record_id for record in claimed.records} == set(record_ids)
        await client.ledger.recover(dead=[worker])


async def ended(client: Client, count: int) -> list[Record]:
    """All records, once all of them have ended."""
    for record in await client.find(limit=1000):
        await client.until_ended(record.record_id, timeout=PATIENCE)
    records = await client.find(limit=1000)
    assert len(records) == count
    return records


def told(records: Sequence[Record]) -> Counter[tuple[Status, int]]:
    return Counter((record.status, record.attempt) for record in records)


def begun(place: Path, record_id: str) -> set[int]:
    """The processes in which the record ran."""
    return {int(path.suffix[1:]) for path in place.glob(f"{record_id}.*")}


async def pids_of(place: Path, record_id: str, known: set[int]) -> int:
    """The process in which the record runs now."""
    while True:
        if found := begun(place, record_id) - known:
            return found.pop()
        await SYSTEM.sleep(0.02)


async def gone(worker: subprocess.Popen[bytes]) -> int:
    return await asyncio.to_thread(worker.wait)


@pytest.mark.slow
async def test_one_record_that_ends_its_worker_is_an_error_and_its_99_neighbours_are_done(
    store: str, start_quire: StartQuire
) -> None:
    async with aopen(store, workflows=ALL) as client:
        await client.start_many(innocent, [{"seconds": 0.1}] * 50, ids=[f"a{n}" for n in range(50)])
        await client.start(exits, {}, id="poison")
        await client.start_many(innocent, [{"seconds": 0.1}] * 49, ids=[f"b{n}" for n in range(49)])

        deaths = 0
        while await gone(start_quire("--until-idle")):
            deaths += 1

        records = await ended(client, 100)
        assert told(records) == {(Status.DONE, 0): 99, (Status.ERROR, 3): 1}
        [poison] = [record for record in records if record.status is Status.ERROR]
        assert poison.record_id == "poison"
        assert poison.last_error == "step 'exits' ended 3 processes in which it ran alone (it ended with exit code 1)"
        lost = [parse(event.body) for event in await client.events("poison") if event.kind == "lost"]
        assert [line.get("alone", False) for line in lost].count(True) == 3
        assert deaths == transition.SUSPECT_LOSSES


@pytest.mark.slow
async def test_whoever_kills_workers_from_outside_condemns_nobody(store: str, start_quire: StartQuire) -> None:
    chance = random.Random(11)
    async with aopen(store, workflows=ALL) as client:
        await client.start_many(long, [{} for _ in range(100)], ids=[f"r{n}" for n in range(100)])
        for _ in range(10):
            worker = start_quire()
            await SYSTEM.sleep(chance.uniform(0.1, 1.5))
            worker.kill()
            await gone(worker)
        start_quire()

        assert told(await ended(client, 100)) == {(Status.DONE, 0): 100}


@pytest.mark.slow
async def test_only_a_parent_that_lives_counts_the_death_of_a_process(
    store: str, start_quire: StartQuire, tmp_path: Path
) -> None:
    async with aopen(store, workflows=ALL) as client:
        await client.start(waits, {"place": str(tmp_path)}, id="r")
        await made_suspects(client, "r")
        seen: set[int] = set()
        for _ in range(transition.MOST_DEATHS):
            worker = start_quire()
            seen.add(child := await pids_of(tmp_path, "r", seen))
            assert child != worker.pid
            worker.kill()
            await gone(worker)
            os.kill(child, signal.SIGKILL)
        worker = start_quire()
        seen.add(child := await pids_of(tmp_path, "r", seen))
        both_died = (await client.get("r")).attempt
        os.kill(child, signal.SIGKILL)
        await pids_of(tmp_path, "r", seen)
        child_died = (await client.get("r")).attempt
        (tmp_path / "word").touch()

        assert (both_died, child_died) == (0, 1)
        [record] = await ended(client, 1)
        assert (record.status, worker.poll()) == (Status.DONE, None)


async def test_a_worker_that_ends_takes_the_processes_of_suspects_with_it(
    store: str, start_quire: StartQuire, tmp_path: Path
) -> None:
    async with aopen(store, workflows=ALL) as client:
        await client.start(waits, {"place": str(tmp_path)}, id="r")
        await made_suspects(client, "r")
        worker = start_quire("--grace", "0s")
        child = await pids_of(tmp_path, "r", set())
        worker.terminate()

        assert await gone(worker) == 0
        record = await client.get("r")
        assert (record.status, record.attempt, record.worker) == (Status.PENDING, 0, None)
        assert process.started(child) is None


@pytest.mark.slow
async def test_a_step_that_blocks_its_event_loop_is_ended_and_counted(store: str, start_quire: StartQuire) -> None:
    async with aopen(store, workflows=ALL) as client:
        await client.start(blocks, {}, id="poison")
        await client.start_many(innocent, [{}] * 5, ids=[f"a{n}" for n in range(5)])
        await made_suspects(client, "poison", *(f"a{n}" for n in range(5)))
        worker = start_quire("--lease", LEASE)

        records = await ended(client, 6)
        assert told(records) == {(Status.DONE, 0): 5, (Status.ERROR, 3): 1}
        assert "it did not answer for 6 s" in ((await client.get("poison")).last_error or "")
        assert worker.poll() is None


async def test_a_step_that_never_ends_is_tried_as_often_as_its_retry_says(store: str, start_quire: StartQuire) -> None:
    async with aopen(store, workflows=ALL) as client:
        await client.start(never_ends, {}, id="poison")
        await made_suspects(client, "poison")
        worker = start_quire()

        [record] = await ended(client, 1)
        assert (record.status, record.attempt) == (Status.ERROR, 2)
        assert "took longer than its timeout of 1 s" in (record.last_error or "")
        assert worker.poll() is None


async def test_a_step_that_eats_the_memory_runs_alone_before_it_is_counted(store: str, start_quire: StartQuire) -> None:
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    async with aopen(store, workflows=ALL) as client:
        await client.start(eats, {}, id="poison")
        await client.start_many(innocent, [{}] * 5)
        worker = start_quire("--until-idle", before=[sys.executable, "-c", limited])

        assert await gone(worker) == 0
        assert told(await ended(client, 6)) == {(Status.DONE, 0): 5, (Status.ERROR, 2): 1}
        kinds = [event.kind for event in await client.events("poison")]
        assert kinds[:5] == ["started", "claimed", "lost", "claimed", "apart"]
        assert "MemoryError" in ((await client.get("poison")).last_error or "")


SCRIPT = """
import os, sys, quire

@quire.workflow
async def flow(run: quire.Run) -> int:
    if run.data["exits"]:
        os._exit(1)
    return 1

if __name__ == "__main__":
    with quire.open(sys.argv[1], workflows=[flow]) as q:
        for n in range(20):
            q.start(flow, {"exits": n == 10}, id=f"r{n}")
        q.work()
"""


async def test_where_no_process_can_be_started_a_suspect_runs_alone_in_the_worker(store: str, tmp_path: Path) -> None:
    """Another process could not find the workflows of a script."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    deaths = 0
    while (await asyncio.to_thread(subprocess.run, [sys.executable, str(script), store], cwd=ROOT)).returncode:
        deaths += 1

    async with aopen(store) as client:
        records = await ended(client, 20)
    assert told(records) == {(Status.DONE, 0): 19, (Status.ERROR, 3): 1}
    assert deaths == transition.SUSPECT_LOSSES + transition.MOST_DEATHS
    assert [r.last_error for r in records if r.status is Status.ERROR] == [
        "step 'flow' ended 3 processes in which it ran alone (its worker was lost each time)"
    ]


async def test_nothing_runs_beside_a_suspect_in_the_worker() -> None:
    running: set[str] = set()
    beside: dict[str, set[str]] = {}
    clock = ToldClock()

    @workflow
    async def flow(run: Run[Data]) -> None:
        running.add(run.record_id)
        for _ in range(5):
            await clock.sleep(0)
            beside.setdefault(run.record_id, set()).update(running - {run.record_id})
        running.discard(run.record_id)

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start_many(flow, [{}, {}], ids=["s1", "s2"])
        await made_suspects(client, "s1", "s2")
        await client.start_many(flow, [{}, {}], ids=["a", "b"])
        await client.work()

        assert beside == {"s1": set(), "s2": set(), "a": {"b"}, "b": {"a"}}
        assert told(await client.find()) == {(Status.DONE, 0): 4}


async def test_a_suspect_that_waits_is_a_suspect_as_before_and_one_that_gets_on_is_none() -> None:
    clock = ToldClock()

    @workflow
    async def flow(run: Run[Data]) -> Any:
        return await run.wait("go")

    async with Client(MemoryLedger(clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")
        await made_suspects(client, "r")
        await client.work()
        waiting = await client.get("r")
        await client.signal("r", "go", 1)
        await client.work()

        assert (waiting.status, waiting.losses) == (Status.WAITING, transition.SUSPECT_LOSSES)
        assert (await client.get("r")).status is Status.DONE
