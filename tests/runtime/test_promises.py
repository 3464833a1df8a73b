"""Promises that need many records or many processes at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from quire import Act, Retry, Run, Status, Workflow, aopen, effect, workflow
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.run.dependencies import Dependencies
from quire.testing import ToldClock
from quire.testing.conformance import beat, claim, slot
from tests.runtime.conftest import ROOT


async def test_twenty_processes_never_hold_more_than_the_cap(store: str) -> None:
    """Each round begins at a barrier: some claim while others give back. The log tells what ran at every instant."""
    capped = Workflow("capped")

    @capped.step(cap=5)
    async def work(run: Run) -> None: ...

    rounds = 8
    async with aopen(store, workflows=[capped]) as client:
        await client.start_many(capped, [{} for _ in range(40)])
        command = [sys.executable, "-m", "tests.runtime.claiming", store, "20", str(rounds)]
        ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=120, check=True)  # noqa: ASYNC221
        held = [[int(count) for count in line.split()] for line in ended.stdout.splitlines()]
        instants = [0]
        for event in await client.events(limit=10_000):
            instants.append(instants[-1] + {"claimed": 1, "yielded": -1}.get(event.kind, 0))

        assert [len(line) for line in held] == [20] * rounds
        assert max(sum(line) for line in held) == 5
        assert max(instants) == 5
        assert instants[-1] == sum(held[-1])
        assert instants.count(5) > 3  # it was full again and again
        processes = {place for line in held for place, count in enumerate(line) if count}
        assert len(processes) > 3  # and not by the same few


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
        client.dependencies = Dependencies(world)
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


TERMINAL = """
import sys, quire
from quire import Workflow

one = Workflow("one")

@one.step
def only(run): ...

with quire.open(sys.argv[1], workflows=[one]) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(25):
        client.start(one, {}, id=f"{sys.argv[2]}{number}")
        client.find(limit=5)
    client.work()
"""


async def test_two_terminals_on_one_file_never_see_it_locked(tmp_path: Path) -> None:
    """Two processes start, look and work at the same moment, and so does this one."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    terminals = [
        subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here yet
            [sys.executable, "-c", TERMINAL, url, name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for terminal in terminals:
        assert terminal.stdout is not None
        assert terminal.stdout.readline() == "ready\n"
    one = Workflow("one")

    @one.step
    async def only(run: Run) -> None: ...

    async with aopen(url, workflows=[one]) as client:
        ends = [asyncio.ensure_future(asyncio.to_thread(terminal.communicate, "go\n", 60)) for terminal in terminals]
        for number in range(25):
            await client.start(one, {}, id=f"c{number}")
        told = await asyncio.gather(*ends)
        await client.work()

        assert told == [("", ""), ("", "")]
        assert [terminal.returncode for terminal in terminals] == [0, 0]
        assert [record.status for record in await client.find(limit=1000)] == [Status.DONE] * 75


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "sqlite"])
async def test_a_takeover_comes_within_one_lease_and_one_poll(tmp_path: Path, durable: bool) -> None:
    """A worker on another machine falls silent: nobody can know that it is dead before its lease is over."""
    clock = ToldClock()
    ledger = SqliteLedger(tmp_path / "ledger.db", clock) if durable else MemoryLedger(clock)

    @workflow
    async def quick(run: Run) -> str:
        return "done"

    async with Client(ledger, workflows=[quick], clock=clock) as client:
        await client.start(quick, {}, id="r")
        await beat(ledger, "silent", lease=30.0)
        await claim(ledger, slot("quick", "quick"), worker="silent")
        fell_silent = clock.now()
        worker = client.worker()
        working = asyncio.ensure_future(worker.run())
        while not (await client.get("r")).ended:
            await SYSTEM.sleep(0.001)
            clock.advance(0.1)
        worker.stop()
        await working

        [lost] = [event for event in await client.events("r") if event.kind == "lost"]
        poll = ledger.traits.poll_seconds
        assert 30.0 * 1.1 <= lost.at - fell_silent <= 30.0 * 1.1 + 1.4 * poll + 1
