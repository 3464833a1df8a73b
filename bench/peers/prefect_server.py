"""Prefect with its local server (SQLite). Flows are called in this process, without a work pool.

Settings: asynchronous flows, four at once (more, and its server answers 503), results persisted, so that a step
leaves a trace that survives.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, ClassVar

from _adapter import Adapter, Answer, Tally, expect_equal, rests, serve, stopwatch, versions

AT_ONCE = 4
bodies = Tally()


class PrefectAdapter(Adapter):
    round = (4, 10)
    missing: ClassVar[dict[str, str]] = {
        "idle": "no worker: flows are called in the process",
        "poke": "no worker: flows are called in the process",
        "fill": "no queue in this set-up",
        "crash": "a flow called in a process that dies is not taken up again",
        "enqueue": "no queue in this set-up",
        "w10": "results are files, not rows of a ledger",
    }

    async def setup(self, url: str, directory: str) -> Answer:
        os.environ.update(
            PREFECT_API_URL=url,
            PREFECT_HOME=os.path.join(directory, "home"),
            PREFECT_LOGGING_LEVEL="CRITICAL",
            PREFECT_LOCAL_STORAGE_PATH=os.path.join(directory, "results"),
            DO_NOT_TRACK="1",
            PREFECT_CLIENT_ENABLE_LIFESPAN_EVENTS="false",
        )
        from prefect import flow, task
        from prefect.task_runners import ThreadPoolTaskRunner

        @task(persist_result=True)
        async def touch(number: int, step: int = 0) -> int:
            # Each step has arguments of its own: equal ones would be answered from the cache.
            bodies.hit()
            return number

        @task(persist_result=True)
        async def nap(seconds: float, number: int) -> int:
            await asyncio.sleep(seconds)
            bodies.hit()
            return 1

        @flow(persist_result=True)
        async def many_steps(number: int, steps: int) -> int:
            for step in range(steps):
                await touch(number, step)
            return number

        @flow(persist_result=True)
        async def parent(children: int) -> int:
            return sum(future.result() for future in [touch.submit(number) for number in range(children)])

        def capped(cap: int) -> Any:
            @flow(task_runner=ThreadPoolTaskRunner(max_workers=cap), persist_result=True)
            async def sleepers(n: int, seconds: float) -> int:
                return sum(future.result() for future in [nap.submit(seconds, number) for number in range(n)])

            return sleepers

        self.many_steps, self.parent, self.capped = many_steps, parent, capped
        return {"settings": {"at once": AT_ONCE, "results": "persisted"}, "versions": versions("prefect", "fastapi")}

    async def crowd(self, records: int, steps: int) -> list[int]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> int:
            async with gate:
                return int(await self.many_steps(number, steps))

        return await asyncio.gather(*(one(number) for number in range(records)))

    async def w1(self, n: int) -> Answer:
        bodies.expect(n)
        with stopwatch() as ran:
            results = await self.crowd(n, 1)
            seconds = ran()
        bodies.check()
        expect_equal("results", results, list(range(n)))
        return {"n": n, "drain_seconds": seconds}

    async def w2(self, records: int, steps: int) -> Answer:
        bodies.expect(records * steps)
        with stopwatch() as ran:
            await self.crowd(records, steps)
            seconds = ran()
        bodies.check()
        return {"steps": records * steps, "seconds": seconds}

    async def w3(self, n: int, pause: float) -> Answer:
        latencies = []
        for number, rest in enumerate(rests(n, pause)):
            await asyncio.sleep(rest)
            with stopwatch() as took:
                expect_equal("result", await self.many_steps(number, 1), number)
                latencies.append(took() * 1000)
        return {"latencies_ms": latencies}

    async def w4(self, children: int) -> Answer:
        bodies.expect(children)
        with stopwatch() as ran:
            total = await self.parent(children)
            seconds = ran()
        bodies.check()
        expect_equal("sum", total, children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    async def w5(self, n: int, seconds: float, cap: int) -> Answer:
        bodies.expect(n)
        with stopwatch() as ran:
            expect_equal("sum", await self.capped(cap)(n, seconds), n)
            total = ran()
        bodies.check()
        return {"seconds": total, "ideal": n * seconds / cap}


if __name__ == "__main__":
    serve(PrefectAdapter())
