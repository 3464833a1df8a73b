"""Procrastinate: a queue, not a workflow engine. W2 is a chain of jobs; the fan-in of W4 is counted in the process.

Settings: the asynchronous worker on uvloop, LISTEN/NOTIFY on, 50 jobs at once, jobs deferred in bulk where it has a
bulk call, psycopg in C.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, ClassVar

import _postgres as postgres
import uvloop
from _adapter import (
    Adapter,
    Answer,
    Filler,
    Journal,
    Tally,
    clone_rows,
    expect_equal,
    poll_until_async,
    rests,
    serve,
    stopwatch,
    versions,
)
from procrastinate import App, PsycopgConnector

CONCURRENCY = 50
bodies = Tally()
journal: Journal | None = None
logging.getLogger("procrastinate").setLevel(logging.CRITICAL)


class ProcrastinateAdapter(Adapter):
    missing: ClassVar[dict[str, str]] = {"w10": "a queue: a job has no checkpoints"}
    loop_factory = staticmethod(uvloop.new_event_loop)

    async def setup(self, url: str, directory: str) -> Answer:
        self.url = url
        self.app = App(connector=PsycopgConnector(conninfo=url, min_size=4, max_size=20))
        self.worker: asyncio.Task[None] | None = None
        self.filler = Filler()
        self.total = 0
        self.declare()
        await self.app.open_async()
        if postgres.scalar(url, "SELECT to_regclass('procrastinate_jobs') IS NULL"):
            await self.app.schema_manager.apply_schema_async()
        self.eye = postgres.Eye(url)
        return {
            "settings": {
                "concurrency": CONCURRENCY,
                "listen_notify": True,
                "pool": 20,
                "loop": "uvloop",
                "enqueue": "batch_defer_async",
            },
            "versions": versions("procrastinate", "psycopg", "uvloop"),
        }

    def declare(self) -> None:
        @self.app.task(name="one")
        async def one(number: int) -> None:
            self.total += number
            bodies.hit()

        @self.app.task(name="chain")
        async def chain(left: int) -> None:
            if left > 1:
                await chain.defer_async(left=left - 1)
            bodies.hit()

        @self.app.task(name="sleeper")
        async def sleeper(seconds: float) -> None:
            await asyncio.sleep(seconds)
            bodies.hit()

        @self.app.task(name="journey", retry=True)
        async def journey(record: int, steps: int, seconds: float) -> None:
            assert journal is not None
            for step in range(steps):
                await asyncio.sleep(seconds)
                journal.act(record, step)

        self.one, self.chain, self.sleeper, self.journey = one, chain, sleeper, journey

    async def launch(self, concurrency: int = CONCURRENCY) -> None:
        self.worker = asyncio.create_task(
            self.app.run_worker_async(concurrency=concurrency, install_signal_handlers=False, listen_notify=True)
        )

    async def land(self) -> None:
        if self.worker is not None:
            self.worker.cancel()
            await asyncio.gather(self.worker, return_exceptions=True)
            self.worker = None

    async def close(self) -> None:
        await self.land()
        await self.app.close_async()

    async def unfinished(self) -> int:
        return self.eye.count("SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")

    async def await_all(self) -> None:
        async def empty() -> bool:
            return await self.unfinished() == 0

        await poll_until_async(empty)
        failed = self.eye.count(
            "SELECT count(*) FROM procrastinate_jobs WHERE status NOT IN ('succeeded', 'todo', 'doing')"
        )
        expect_equal("jobs that failed", failed, 0)

    async def w1(self, n: int) -> Answer:
        await self.land()
        bodies.expect(n)
        with stopwatch() as enqueued:
            await self.enqueue(n)
            enqueue_seconds = enqueued()
        expect_equal("unfinished before the drain", await self.unfinished(), n)
        with stopwatch() as drained:
            await self.launch()
            await bodies.wait_async()
            await self.await_all()
            drain_seconds = drained()
        bodies.check()
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    async def w2(self, records: int, steps: int) -> Answer:
        if self.worker is None:
            await self.launch()
        bodies.expect(records * steps)
        with stopwatch() as ran:
            await self.chain.batch_defer_async(*({"left": steps} for _ in range(records)))
            await bodies.wait_async()
            await self.await_all()
            seconds = ran()
        bodies.check()
        return {"steps": records * steps, "seconds": seconds}

    async def w3(self, n: int, pause: float) -> Answer:
        """Until the job is seen as succeeded, by looks half a millisecond apart; and, apart, to the end of the body."""
        if self.worker is None:
            await self.launch()
            await asyncio.sleep(0.5)
        committed, ran = [], []

        async def empty() -> bool:
            return await self.unfinished() == 0

        for number, rest in enumerate(rests(n, pause)):
            await asyncio.sleep(rest)
            bodies.expect(1)
            with stopwatch() as took:
                await self.one.defer_async(number=number)
                await bodies.wait_async()
                ran.append(took() * 1000)
                await poll_until_async(empty, every=0.0005)
                committed.append(took() * 1000)
        return {"latencies_ms": committed, "body_latencies_ms": ran}

    async def w4(self, children: int) -> Answer:
        if self.worker is None:
            await self.launch()
        bodies.expect(children)
        self.total = 0
        with stopwatch() as ran:
            await self.enqueue(children)
            await bodies.wait_async()
            seconds = ran()
        expect_equal("sum", self.total, children * (children - 1) // 2)
        await self.await_all()
        return {"children": children, "seconds": seconds}

    async def w5(self, n: int, seconds: float, cap: int) -> Answer:
        await self.land()
        await self.launch(concurrency=cap)
        await asyncio.sleep(0.3)
        bodies.expect(n)
        with stopwatch() as ran:
            await self.sleeper.batch_defer_async(*({"seconds": seconds} for _ in range(n)))
            await bodies.wait_async()
            await self.await_all()
            total = ran()
        bodies.check()
        return {"seconds": total, "ideal": n * seconds / cap}

    async def fill(self, n: int) -> Answer:
        """Clone finished jobs by SQL, with the triggers off."""
        await self.land()
        if not self.filler.originals:
            postgres.execute(self.url, "CREATE TABLE bench_originals AS SELECT id FROM procrastinate_jobs")
        first, last = self.filler.span(n, postgres.scalar(self.url, "SELECT count(*) FROM bench_originals"))
        copied = [name for name in postgres.columns(self.url, "procrastinate_jobs") if name not in ("id", "worker_id")]
        new = {"worker_id": "NULL::bigint"}
        where = "id IN (SELECT id FROM bench_originals)"
        postgres.execute(
            self.url,
            "SET session_replication_role = replica",
            clone_rows("procrastinate_jobs", new, copied, where, first, last),
            "SET session_replication_role = DEFAULT",
            "ANALYZE",
        )
        return {
            "filled": postgres.scalar(self.url, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'")
        }

    async def idle(self) -> Answer:
        bodies.expect(10**9)
        await self.launch()
        return {"at": time.monotonic()}

    async def poke(self) -> Answer:
        at = time.monotonic()
        await self.one.defer_async(number=1)
        return {"at": at}

    async def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    async def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        jobs = ({"record": record, "steps": steps, "seconds": step_seconds} for record in range(records))
        await self.journey.batch_defer_async(*jobs)
        await self.launch(concurrency)
        return {"started": True}

    async def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        """Stalled jobs are put back by the user's own task, as its documentation says; 30 s is its default."""
        global journal
        journal = Journal(path)
        await self.launch(concurrency)
        while await self.unfinished():
            for job in await self.app.job_manager.get_stalled_jobs(seconds_since_heartbeat=30):
                await self.app.job_manager.retry_job(job)
            await asyncio.sleep(0.5)
        return {"finished": records}

    async def enqueue(self, n: int) -> Answer:
        jobs: list[dict[str, Any]] = [{"number": number} for number in range(n)]
        await self.one.batch_defer_async(*jobs)
        return {"n": n}

    async def work(self) -> Answer:
        bodies.expect(10**9)
        at = time.monotonic()
        await self.launch()
        return {"at": at}

    async def drained(self, n: int) -> Answer:
        async def empty() -> bool:
            return await self.unfinished() == 0

        await poll_until_async(empty, every=0.02)
        return {"at": time.monotonic()}


if __name__ == "__main__":
    serve(ProcrastinateAdapter())
