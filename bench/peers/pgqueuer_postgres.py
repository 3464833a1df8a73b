"""PgQueuer: a queue, not a workflow engine. W2 is a chain of jobs; the fan-in of W4 is counted in the process.

Settings: asyncpg with a pool, uvloop, batches of 500. It writes completions in batches too, deleting the job and
inserting a line of its log in one statement; in W3 in batches of one, lest a completion wait for others. Its tables
are installed with its durable default, so nothing of it is unlogged. The pool is connected before W1's clock starts.
A worker drains about a tenth faster with two connections than with asyncpg's default of ten, so it has two; whoever
enqueues has ten.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import ClassVar

import asyncpg
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
from pgqueuer import AsyncpgPoolDriver, PgQueuer, Queries
from pgqueuer.models import Job

#: Larger batches take less CPU for a job, up to about this; completions are flushed in batches of it, too.
BATCH = 500
POOL = 10
WORKER_POOL = 2
bodies = Tally()
journal: Journal | None = None
logging.getLogger("pgqueuer").setLevel(logging.CRITICAL)


class PgQueuerAdapter(Adapter):
    missing: ClassVar[dict[str, str]] = {"w10": "a queue: a job has no checkpoints"}
    loop_factory = staticmethod(uvloop.new_event_loop)

    async def setup(self, url: str, directory: str) -> Answer:
        self.url = url
        self.pool = await self.connected(POOL)
        self.queries = Queries(AsyncpgPoolDriver(self.pool))
        self.workers: list[tuple[PgQueuer, asyncio.Task[None], asyncpg.Pool]] = []
        self.filler = Filler()
        self.total = 0
        if not await self.queries.schema_is_installed():
            await self.queries.install()
        unlogged = await self.pool.fetchval(
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'pgqueuer%' AND relpersistence <> 'p'"
        )
        expect_equal("tables that do not survive a crash", unlogged, 0)
        return {
            "settings": {
                "batch_size": BATCH,
                "driver": f"asyncpg, a pool of {WORKER_POOL} for a worker, of {POOL} for callers",
                "loop": "uvloop",
                "enqueue": "bulk",
            },
            "versions": versions("pgqueuer", "asyncpg", "uvloop"),
        }

    def declare(self, app: PgQueuer, cap: int = 0) -> None:
        @app.entrypoint("one")
        async def one(job: Job) -> None:
            self.total += int(job.payload or b"0")
            bodies.hit()

        @app.entrypoint("chain")
        async def chain(job: Job) -> None:
            left = int(job.payload or b"0")
            if left > 1:
                await self.queries.enqueue("chain", str(left - 1).encode())
            bodies.hit()

        @app.entrypoint("sleeper", concurrency_limit=cap)
        async def sleeper(job: Job) -> None:
            await asyncio.sleep(float(job.payload or b"0"))
            bodies.hit()

        @app.entrypoint("journey")
        async def journey(job: Job) -> None:
            record, steps, seconds = json.loads(job.payload or b"[]")
            assert journal is not None
            for step in range(steps):
                await asyncio.sleep(seconds)
                journal.act(record, step)

    async def connected(self, size: int = WORKER_POOL) -> asyncpg.Pool:
        return await asyncpg.create_pool(self.url, min_size=size, max_size=size)

    async def launch(
        self, cap: int = 0, batch: int = BATCH, most: int | None = None, pool: asyncpg.Pool | None = None
    ) -> None:
        pool = pool or await self.connected()
        app = PgQueuer(AsyncpgPoolDriver(pool))
        self.declare(app, cap)
        task = asyncio.create_task(app.run(batch_size=batch, max_concurrent_tasks=most))
        self.workers.append((app, task, pool))

    async def land(self) -> None:
        for app, task, pool in self.workers:
            app.shutdown.set()
            try:
                await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 40)
            except TimeoutError:
                task.cancel()
            await pool.close()
        self.workers.clear()

    async def close(self) -> None:
        await self.land()

    async def unfinished(self) -> int:
        found: int = await self.pool.fetchval("SELECT count(*) FROM pgqueuer")
        return found

    async def await_all(self) -> None:
        async def empty() -> bool:
            return await self.unfinished() == 0

        await poll_until_async(empty)

    async def w1(self, n: int) -> Answer:
        await self.land()
        bodies.expect(n)
        with stopwatch() as enqueued:
            await self.enqueue(n)
            enqueue_seconds = enqueued()
        expect_equal("unfinished before the drain", await self.unfinished(), n)
        pool = await self.connected()
        with stopwatch() as drained:
            await self.launch(pool=pool)
            await bodies.wait_async()
            await self.await_all()
            drain_seconds = drained()
        bodies.check()
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    async def w2(self, records: int, steps: int) -> Answer:
        if not self.workers:
            await self.launch()
        bodies.expect(records * steps)
        with stopwatch() as ran:
            await self.queries.enqueue(["chain"] * records, [str(steps).encode()] * records, [0] * records)
            await bodies.wait_async()
            await self.await_all()
            seconds = ran()
        bodies.check()
        return {"steps": records * steps, "seconds": seconds}

    async def w3(self, n: int, pause: float) -> Answer:
        """Until the commit that takes the job from its table; and, apart, to the end of the body before that.

        In batches of one: a larger buffer of completions is written after 0.1 s, or when it is full.
        """
        await self.land()
        await self.launch(batch=1)
        await asyncio.sleep(0.5)
        gone = asyncio.Event()
        listener = await asyncpg.connect(self.url)
        await listener.add_listener("ch_pgqueuer", lambda *told: gone.set() if '"delete"' in told[3] else None)
        committed, ran = [], []
        try:
            for number, rest in enumerate(rests(n, pause)):
                await asyncio.sleep(rest)
                bodies.expect(1)
                gone.clear()
                begun = time.monotonic()
                with stopwatch() as took:
                    await self.queries.enqueue("one", str(number).encode())
                    await gone.wait()
                    committed.append(took() * 1000)
                ran.append((bodies.times[0] - begun) * 1000)
                expect_equal("unfinished", await self.unfinished(), 0)
        finally:
            await listener.close()
        return {"latencies_ms": committed, "body_latencies_ms": ran}

    async def w4(self, children: int) -> Answer:
        if not self.workers:
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
        await self.launch(cap=cap, batch=cap)
        await asyncio.sleep(0.3)
        bodies.expect(n)
        with stopwatch() as ran:
            await self.queries.enqueue(["sleeper"] * n, [str(seconds).encode()] * n, [0] * n)
            await bodies.wait_async()
            total = ran()
        bodies.check()
        return {"seconds": total, "ideal": n * seconds / cap}

    async def fill(self, n: int) -> Answer:
        """A finished job leaves its table and becomes lines of the log; those are cloned."""
        await self.land()
        if not self.filler.originals:
            await self.pool.execute(
                "CREATE TABLE bench_originals AS SELECT id FROM pgqueuer_log WHERE status = 'successful'"
            )
        first, last = self.filler.span(n, await self.pool.fetchval("SELECT count(*) FROM bench_originals"))
        names = [
            row[0]
            for row in await self.pool.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'pgqueuer_log'"
            )
        ]
        copied = [name for name in names if name not in ("id", "job_id")]
        new = {"job_id": "job_id + 1000000000 + copy.i"}
        where = "id IN (SELECT id FROM bench_originals)"
        await self.pool.execute(clone_rows("pgqueuer_log", new, copied, where, first, last), timeout=600)
        await self.pool.execute("ANALYZE", timeout=600)
        return {"filled": await self.pool.fetchval("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'")}

    async def idle(self) -> Answer:
        bodies.expect(10**9)
        await self.launch(batch=10)
        return {"at": time.monotonic()}

    async def poke(self) -> Answer:
        at = time.monotonic()
        await self.queries.enqueue("one", b"1")
        return {"at": at}

    async def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    async def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        payloads = [json.dumps([record, steps, step_seconds]).encode() for record in range(records)]
        await self.queries.enqueue(["journey"] * records, list(payloads), [0] * records)
        await self.launch(batch=concurrency // 2, most=concurrency)
        return {"started": True}

    async def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        await self.launch(batch=concurrency // 2, most=concurrency)
        await self.await_all()
        return {"finished": records}

    async def enqueue(self, n: int) -> Answer:
        await self.queries.enqueue(["one"] * n, [str(number).encode() for number in range(n)], [0] * n)
        return {"n": n}

    async def work(self) -> Answer:
        bodies.expect(10**9)
        at = time.monotonic()
        await self.launch()
        return {"at": at}

    async def drained(self, n: int) -> Answer:
        """Seen by looks for any job: to count all of them takes the server longer the more there are."""

        async def empty() -> bool:
            return await self.pool.fetchval("SELECT 1 FROM pgqueuer LIMIT 1") is None

        await poll_until_async(empty, every=0.02)
        return {"at": time.monotonic()}


if __name__ == "__main__":
    serve(PgQueuerAdapter())
