"""Promises that need many records or many processes at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quire import Act, Retry, Run, Status, Workflow, aopen, effect, workflow
from quire.clock import SYSTEM
from quire.surfaces.client import Client
from tests.runtime.conftest import ROOT


@pytest.mark.slow
async def test_twenty_processes_never_hold_more_than_the_cap(store: str, tmp_path: Path) -> None:
    capped = Workflow("capped")

    @capped.step(cap=5)
    async def work(run: Run) -> None: ...

    async with aopen(store, workflows=[capped]) as client:
        await client.start_many(capped, [{} for _ in range(40)])
        gate = tmp_path / "gate"
        command = [sys.executable, "-m", "tests.runtime.claiming", store, str(gate)]
        processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(20)]  # noqa: ASYNC220
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        gate.touch()
        told = [process.communicate(timeout=120)[0].split() for process in processes]

        assert [process.returncode for process in processes] == [0] * 20
        assert max(int(most) for most, _ in told) == 5
        assert sum(int(total) for _, total in told) >= 20
        assert {record.status for record in await client.find()} == {Status.PENDING}


async def test_a_thousand_children_end_and_one_reducer_runs(store: str) -> None:
    reduced: list[int] = []

    @workflow
    async def leaf(run: Run[dict[str, Any]]) -> int:
        return int(run.data["n"])

    @workflow
    async def tree(run: Run[dict[str, Any]]) -> int:
        numbers = await run.map(leaf, [{"n": n} for n in range(1000)])
        assert numbers == list(range(1000))
        reduced.append(1)
        return sum(numbers)

    async with aopen(store, workflows=[leaf, tree]) as client:
        handle = await client.start(tree, {}, id="t")
        await client.work(concurrency=300)

        assert await handle.result(timeout="1s") == 499_500
        assert reduced == [1]
        [fanin] = await client.ledger.fanins("t")
        assert (fanin.left, fanin.failed, fanin.abandoned) == (0, 0, False)


class World:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.halted = False
        self.acts = 0
        self.late = 0


@effect(timeout="5s")
async def touch(act: Act[World]) -> None:
    act.deps.acts += 1
    act.deps.late += act.deps.halted


@pytest.mark.slow
async def test_a_halt_with_a_thousand_records_in_flight_lets_nothing_begin_after_it(store: str) -> None:
    @workflow(retry=Retry(5, first="1ms"))
    async def child(run: Run[dict[str, Any], World]) -> None:
        await run.once(touch)

    @workflow(retry=Retry(5, first="1ms"))
    async def busy(run: Run[dict[str, Any], World]) -> None:
        await run.once(touch)
        if run.attempt == 1:
            raise RuntimeError("once more")
        await run.child(child, {})
        await run.sleep("1ms")
        await run.once(touch.named("again"))

    async with aopen(store, workflows=[busy, child]) as client:
        world = World(client)
        client.deps = world
        await client.start_many(busy, [{} for _ in range(1000)])
        worker = client.worker(concurrency=1000)
        worker.grace = 0.5
        working = asyncio.ensure_future(worker.run())
        while world.acts < 200:
            await SYSTEM.sleep(0.005)

        standing = await client.halt(reason="enough", by="ann@x.eu")
        begun = await _intents(client)
        world.halted = True
        world.acts = 0
        await SYSTEM.sleep(1.0)
        worker.stop()
        await working
        while (await client.ledger.recover()).more:
            pass

        assert standing.controls[0].halted
        assert await _intents(client) == begun  # an effect begins when its intent commits
        assert world.acts <= len(standing.under_way)
        statuses = {count.status for count in await client.counts()}
        assert statuses <= {Status.CANCELLED, Status.DONE, Status.NEEDS_APPROVAL, Status.ERROR}
        await client.resume(by="ann@x.eu")
        assert await client.work() == 0


async def _intents(client: Client) -> int:
    count, after = 0, 0
    while events := await client.events(after=after, limit=10_000):
        after = events[-1].seq
        count += sum(event.kind == "effect.intended" for event in events)
    return count


async def test_two_writers_on_one_file_never_see_it_locked(tmp_path: Path) -> None:
    one = Workflow("one")

    @one.step
    async def only(run: Run) -> None: ...

    url = f"sqlite:///{tmp_path}/ledger.db"
    async with aopen(url, workflows=[one]) as first, aopen(url, workflows=[one]) as second:

        async def write(client: Client, name: str) -> None:
            for number in range(60):
                await client.start(one, {}, id=f"{name}{number}")

        await asyncio.gather(*(write(client, name) for client, name in ((first, "a"), (second, "b")) for _ in "xy"))

        assert len(await first.find(limit=1000)) == 120
