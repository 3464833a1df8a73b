"""Absurd. Its schema comes from its own tool, ``absurdctl``, at the version of the SDK.

Settings: eight workers in threads, each with its own connection (one client shares one connection between its tasks),
polling every 10 ms instead of every 250; W7 stays at the default. The claim timeout is 30 s instead of 120.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import _postgres as postgres
from _adapter import (
    Adapter,
    Answer,
    Filler,
    Journal,
    Tally,
    clone_rows,
    expect_equal,
    poll_until,
    rests,
    serve,
    stopwatch,
    text_of,
    versions,
)
from absurd_sdk import Absurd

POLL = 0.01
WORKERS = 8
CLAIM_SECONDS = 30
bodies = Tally()
journal: Journal | None = None


class AbsurdAdapter(Adapter):
    def setup(self, url: str, directory: str) -> Answer:
        self.url = url
        self.workers: list[tuple[Absurd, threading.Thread]] = []
        self.filler = Filler()
        if postgres.scalar(url, "SELECT to_regnamespace('absurd') IS NULL"):
            tool = Path(sys.executable).with_name("absurdctl")
            subprocess.run(
                [str(tool), "init", "-d", url], check=True, stdout=sys.stderr, env=dict(os.environ), timeout=60
            )
        self.client = self.app("work")
        self.kids = self.app("kids")
        for app in (self.client, self.kids):
            app.create_queue()
        self.eye = postgres.Eye(url)
        return {
            "settings": {
                "workers": f"{WORKERS} threads, a connection each",
                "poll": f"{POLL} s",
                "claim timeout": f"{CLAIM_SECONDS} s",
            },
            "versions": versions("absurd-sdk", "absurdctl", "psycopg"),
        }

    def app(self, queue: str) -> Absurd:
        app = Absurd(self.url, queue_name=queue)

        @app.register_task(name="one")
        def one(params: Any, ctx: Any) -> Any:
            return ctx.step("touch", lambda: _touch(params["number"]))

        @app.register_task(name="many")
        def many(params: Any, ctx: Any) -> Any:
            for step in range(params["steps"] - 1):
                ctx.step(f"s{step}", lambda step=step: step)
            return ctx.step("last", lambda: _touch(params["number"]))

        @app.register_task(name="child")
        def child(params: Any, ctx: Any) -> Any:
            return ctx.step("add", lambda: params["number"])

        @app.register_task(name="parent")
        def parent(params: Any, ctx: Any) -> Any:
            spawner = ctx.step("spawn", lambda: [self.kids_spawner(number) for number in range(params["children"])])
            return sum(ctx.await_task_result(task, queue_name="kids").result for task in spawner)

        @app.register_task(name="sleeper")
        def sleeper(params: Any, ctx: Any) -> Any:
            return ctx.step("nap", lambda: time.sleep(params["seconds"]))

        @app.register_task(name="journey")
        def journey(params: Any, ctx: Any) -> Any:
            for step in range(params["steps"]):
                ctx.step(f"s{step}", lambda step=step: _journaled(params["record"], step, params["seconds"]))

        @app.register_task(name="conversation")
        def conversation(params: Any, ctx: Any) -> Any:
            return sum(
                len(ctx.step(f"t{turn}", lambda turn=turn: text_of(params["size"], turn)))
                for turn in range(params["turns"])
            )

        return app

    def kids_spawner(self, number: int) -> str:
        return str(self.kids.spawn("child", {"number": number}, queue="kids")["task_id"])

    def launch(
        self, count: int = WORKERS, *, queue: str = "work", poll: float = POLL, concurrency: int = 1, batch: int = 8
    ) -> None:
        for number in range(count):
            app = self.app(queue)
            thread = threading.Thread(
                target=app.start_worker,
                kwargs={
                    "worker_id": f"{queue}-{os.getpid()}-{number}",
                    "claim_timeout": CLAIM_SECONDS,
                    "concurrency": concurrency,
                    "batch_size": batch,
                    "poll_interval": poll,
                },
                daemon=True,
            )
            thread.start()
            self.workers.append((app, thread))

    def land(self) -> None:
        for app, _ in self.workers:
            app.stop_worker()
        for app, thread in self.workers:
            thread.join(30)
            app.close()
        self.workers.clear()

    def close(self) -> None:
        self.land()

    def unfinished(self, queue: str = "work") -> int:
        return self.eye.count(
            f"SELECT count(*) FROM absurd.t_{queue} WHERE state NOT IN ('completed', 'failed', 'cancelled')"
        )

    def await_all(self, queue: str = "work") -> None:
        poll_until(lambda: self.unfinished(queue) == 0)
        failed = self.eye.count(f"SELECT count(*) FROM absurd.t_{queue} WHERE state <> 'completed'")
        expect_equal("tasks that failed", failed, 0)

    def w1(self, n: int) -> Answer:
        self.land()
        bodies.expect(n)
        with stopwatch() as enqueued:
            for number in range(n):
                self.client.spawn("one", {"number": number})
            enqueue_seconds = enqueued()
        expect_equal("unfinished before the drain", self.unfinished(), n)
        with stopwatch() as drained:
            self.launch()
            bodies.wait()
            self.await_all()
            drain_seconds = drained()
        bodies.check()
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    def w2(self, records: int, steps: int) -> Answer:
        if not self.workers:
            self.launch()
        bodies.expect(records)
        with stopwatch() as ran:
            for number in range(records):
                self.client.spawn("many", {"number": number, "steps": steps})
            bodies.wait()
            self.await_all()
            seconds = ran()
        bodies.check()
        return {"steps": records * steps, "seconds": seconds}

    def w3(self, n: int, pause: float) -> Answer:
        self.land()
        self.launch(1, batch=1)
        latencies = []
        for number, rest in enumerate(rests(n, pause)):
            time.sleep(rest)
            bodies.expect(1)
            with stopwatch() as took:
                task = self.client.spawn("one", {"number": number})["task_id"]
                bodies.wait()
                while (found := self.client.fetch_task_result(task)) is None or found.state != "completed":
                    time.sleep(0.0005)
                latencies.append(took() * 1000)
        return {"latencies_ms": latencies}

    def w4(self, children: int) -> Answer:
        self.land()
        self.launch(1, batch=1)
        self.launch(WORKERS, queue="kids")
        with stopwatch() as ran:
            task = self.client.spawn("parent", {"children": children})["task_id"]
            result = self.client.await_task_result(task, timeout=600)
            seconds = ran()
        expect_equal("sum", result.result, children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    def w5(self, n: int, seconds: float, cap: int) -> Answer:
        self.land()
        self.launch(cap, batch=1)
        time.sleep(0.3)
        with stopwatch() as ran:
            for _ in range(n):
                self.client.spawn("sleeper", {"seconds": seconds})
            self.await_all()
            total = ran()
        return {"seconds": total, "ideal": n * seconds / cap}

    def fill(self, n: int) -> Answer:
        """Clone finished tasks and their runs by SQL."""
        self.land()
        if not self.filler.originals:
            postgres.execute(self.url, "CREATE TABLE bench_originals AS SELECT task_id FROM absurd.t_work")
        first, last = self.filler.span(n, postgres.scalar(self.url, "SELECT count(*) FROM bench_originals"))
        fresh = "md5({}::text || '~' || copy.i)::uuid"
        where = "task_id IN (SELECT task_id FROM bench_originals)"
        for table in ("absurd.t_work", "absurd.r_work", "absurd.c_work"):
            names = postgres.columns(self.url, table)
            uuids = [name for name in names if name in ("task_id", "run_id", "last_attempt_run", "owner_run_id")]
            new = {name: fresh.format(f'"{name}"') for name in uuids}
            copied = [name for name in names if name not in new]
            postgres.execute(self.url, clone_rows(table, new, copied, where, first, last))
        postgres.execute(self.url, "ANALYZE")
        return {"filled": postgres.scalar(self.url, "SELECT count(*) FROM absurd.t_work")}

    def idle(self) -> Answer:
        bodies.expect(10**9)
        self.launch(1, poll=0.25, concurrency=8)
        return {"at": time.monotonic()}

    def poke(self) -> Answer:
        at = time.monotonic()
        self.client.spawn("one", {"number": 1})
        return {"at": at}

    def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        for record in range(records):
            self.client.spawn("journey", {"record": record, "steps": steps, "seconds": step_seconds})
        self.launch(WORKERS, concurrency=max(1, concurrency // WORKERS))
        return {"started": True}

    def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        self.launch(WORKERS, concurrency=max(1, concurrency // WORKERS))
        self.await_all()
        return {"finished": records}

    def enqueue(self, n: int) -> Answer:
        for number in range(n):
            self.client.spawn("one", {"number": number})
        return {"n": n}

    def work(self) -> Answer:
        bodies.expect(10**9)
        at = time.monotonic()
        self.launch()
        return {"at": at}

    def drained(self, n: int) -> Answer:
        poll_until(lambda: self.unfinished() == 0, every=0.02)
        return {"at": time.monotonic()}

    def w10(self, turns: int, turn_bytes: int) -> Answer:
        self.launch(1)
        before = postgres.size(self.url)
        task = self.client.spawn("conversation", {"turns": turns, "size": turn_bytes})["task_id"]
        expect_equal("characters", self.client.await_task_result(task, timeout=300).result, turns * turn_bytes)
        return {"bytes": postgres.size(self.url) - before}


def _touch(number: int) -> int:
    bodies.hit()
    return number


def _journaled(record: int, step: int, seconds: float) -> int:
    time.sleep(seconds)
    assert journal is not None
    journal.act(record, step)
    return step


if __name__ == "__main__":
    serve(AbsurdAdapter())
