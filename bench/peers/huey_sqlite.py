"""Huey: a queue, not a workflow engine. W2 is a pipeline of tasks, W4 a map whose results the caller gathers.

Settings: WAL, synchronous=FULL, four worker threads that poll every 10 ms; W7 stays at its defaults.
"""

from __future__ import annotations

import logging
import time
from typing import Any, ClassVar

from _adapter import Adapter, Answer, Journal, Tally, expect_equal, poll_until, rests, serve, stopwatch, versions
from huey import SqliteHuey

WORKERS = 4
POLL = 0.01
bodies = Tally()
journal: Journal | None = None
logging.getLogger("huey").setLevel(logging.CRITICAL)


class HueyAdapter(Adapter):
    missing: ClassVar[dict[str, str]] = {
        "w10": "a queue: a task has no checkpoints",
        "fill": "a finished task leaves only its result, until it is read",
    }

    def setup(self, url: str, directory: str) -> Answer:
        self.huey = SqliteHuey("bench", filename=url.removeprefix("sqlite:///"), fsync=True, timeout=30)
        self.consumer: Any = None
        self.declare()
        return {
            "settings": {"workers": f"{WORKERS} threads", "poll": f"{POLL} s", "journal": "WAL", "synchronous": "FULL"},
            "versions": versions("huey"),
        }

    def declare(self) -> None:
        @self.huey.task()
        def one(number: int) -> int:
            bodies.hit()
            return number

        @self.huey.task()
        def sleeper(seconds: float) -> int:
            time.sleep(seconds)
            bodies.hit()
            return 1

        @self.huey.task()
        def journey(record: int, steps: int, seconds: float) -> int:
            assert journal is not None
            for step in range(steps):
                time.sleep(seconds)
                journal.act(record, step)
            return 1

        self.one, self.sleeper, self.journey = one, sleeper, journey

    def launch(self, workers: int = WORKERS, **settings: Any) -> None:
        chosen = settings or {"initial_delay": POLL, "backoff": 1.0, "max_delay": POLL}
        self.consumer = self.huey.create_consumer(workers=workers, worker_type="thread", periodic=False, **chosen)
        self.consumer.start()

    def land(self) -> None:
        if self.consumer is not None:
            self.consumer.stop(graceful=True)
            self.consumer = None

    def close(self) -> None:
        self.land()

    def take(self, result: Any) -> Any:
        """The stored result; its own blocking read starts with a pause of 100 ms."""
        while (value := result.get()) is None:
            time.sleep(0.0005)
        return value

    def w1(self, n: int) -> Answer:
        self.land()
        self.huey.flush()
        bodies.expect(n)
        with stopwatch() as enqueued:
            for number in range(n):
                self.one(number)
            enqueue_seconds = enqueued()
        expect_equal("pending before the drain", self.huey.pending_count(), n)
        with stopwatch() as drained:
            self.launch()
            bodies.wait()
            poll_until(lambda: self.huey.result_count() == n)
            drain_seconds = drained()
        bodies.check()
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    def w2(self, records: int, steps: int) -> Answer:
        if self.consumer is None:
            self.launch()
        self.huey.flush()
        bodies.expect(records * steps)
        with stopwatch() as ran:
            for number in range(records):
                pipeline = self.one.s(number)
                for _ in range(steps - 1):
                    pipeline = pipeline.then(self.one)
                self.huey.enqueue(pipeline)
            bodies.wait()
            poll_until(lambda: self.huey.result_count() == records * steps)
            seconds = ran()
        bodies.check()
        return {"steps": records * steps, "seconds": seconds}

    def w3(self, n: int, pause: float) -> Answer:
        if self.consumer is None:
            self.launch(workers=1)
        latencies = []
        for number, rest in enumerate(rests(n, pause), 1):
            time.sleep(rest)
            with stopwatch() as took:
                expect_equal("result", self.take(self.one(number)), number)
                latencies.append(took() * 1000)
        return {"latencies_ms": latencies}

    def w4(self, children: int) -> Answer:
        if self.consumer is None:
            self.launch()
        bodies.expect(children)
        with stopwatch() as ran:
            results = self.one.map(range(children))
            bodies.wait()
            total = sum(self.take(result) for result in results)
            seconds = ran()
        expect_equal("sum", total, children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    def w5(self, n: int, seconds: float, cap: int) -> Answer:
        self.land()
        self.launch(workers=cap)
        time.sleep(0.3)
        bodies.expect(n)
        with stopwatch() as ran:
            results = [self.sleeper(seconds) for _ in range(n)]
            bodies.wait()
            for result in results:
                self.take(result)
            total = ran()
        return {"seconds": total, "ideal": n * seconds / cap}

    def idle(self) -> Answer:
        bodies.expect(10**9)
        self.launch(workers=1, initial_delay=0.1, backoff=1.15, max_delay=10.0)
        return {"at": time.monotonic()}

    def poke(self) -> Answer:
        at = time.monotonic()
        self.one(1)
        return {"at": at}

    def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        for record in range(records):
            self.journey(record, steps, step_seconds)
        self.launch(workers=concurrency)
        return {"started": True}

    def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        self.launch(workers=concurrency)
        poll_until(lambda: self.huey.pending_count() == 0, timeout=60)
        time.sleep(5 * steps * step_seconds + 1)
        done = self.huey.result_count()
        if done < records:
            raise AssertionError(f"{done} of {records} tasks finished; the queue is empty, the others are gone")
        return {"finished": records}


if __name__ == "__main__":
    serve(HueyAdapter())
