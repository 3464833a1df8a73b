"""DBOS Transact, the same adapter for both of its stores.

Settings: synchronous workflows and steps in threads (faster here than its async ones), a queue polled every 10 ms
instead of every second, its limits stored before the first launch. W2, W3 and W4 start workflows directly, without
the queue.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa
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
    sqlite_bytes,
    stopwatch,
    text_of,
    versions,
)
from dbos import DBOS, DBOSClient

POLL = 0.01
THREADS = 64
APP_VERSION = "bench"
bodies = Tally()
journal: Journal | None = None


@DBOS.step()
def touch(number: int) -> int:
    bodies.hit()
    return number


@DBOS.step()
def quiet(number: int) -> int:
    return number


@DBOS.step()
def nap(seconds: float) -> None:
    time.sleep(seconds)


@DBOS.step()
def journaled(record: int, step: int, seconds: float) -> int:
    time.sleep(seconds)
    assert journal is not None
    journal.act(record, step)
    return step


@DBOS.step()
def speak(turn: int, size: int) -> str:
    return text_of(size, turn)


@DBOS.workflow()
def one_step(number: int) -> int:
    return touch(number)


@DBOS.workflow()
def many_steps(number: int, steps: int) -> int:
    for step in range(steps - 1):
        quiet(step)
    return touch(number)


@DBOS.workflow()
def child(number: int) -> int:
    return quiet(number)


@DBOS.workflow()
def parent(children: int) -> int:
    handles = [DBOS.start_workflow(child, number) for number in range(children)]
    return sum(handle.get_result() for handle in handles)


@DBOS.workflow()
def sleeper(seconds: float) -> None:
    nap(seconds)


@DBOS.workflow()
def journey(record: int, steps: int, seconds: float) -> None:
    for step in range(steps):
        journaled(record, step, seconds)


@DBOS.workflow()
def conversation(turns: int, size: int) -> int:
    return sum(len(speak(turn, size)) for turn in range(turns))


class DbosAdapter(Adapter):
    round = (20, 10)

    def setup(self, url: str, directory: str) -> Answer:
        self.directory = directory
        self.on_postgres = url.startswith("postgresql")
        self.url = url.replace("postgresql://", "postgresql+psycopg://") if self.on_postgres else url
        self.client: DBOSClient | None = None
        self.launched = False
        self.filler = Filler()
        self.workers = THREADS if self.on_postgres else 16
        return {
            "settings": {
                "queue poll": f"{POLL} s",
                "threads": self.workers,
                "mode": "sync workflows and steps",
                "journal": "PostgreSQL"
                if self.on_postgres
                else "SQLite rollback journal, synchronous=FULL (its own choice)",
            },
            "versions": versions("dbos", "SQLAlchemy", "psycopg"),
        }

    def configure(self) -> None:
        DBOS(
            config={
                "name": "bench",
                "system_database_url": self.url,
                "log_level": "ERROR",
                "application_version": APP_VERSION,
                "executor_id": "local",
                "sys_db_pool_size": min(self.workers, 32),
                "max_executor_threads": self.workers,
            }
        )

    def launch(self) -> None:
        if not self.launched:
            self.configure()
            DBOS.launch()
            self.launched = True

    def land(self) -> None:
        if self.launched:
            DBOS.destroy()
            self.launched = False

    def close(self) -> None:
        self.land()

    def queue(self, *, cap: int | None = None, name: str = "work", poll: float = POLL) -> DBOSClient:
        """The queue's limits are stored before any worker is launched."""
        if self.client is None:
            self.launch()
            self.land()
            self.client = DBOSClient(system_database_url=self.url, system_database_pool_size=8)
        limits: dict[str, Any] = {"global_concurrency": cap} if cap else {"worker_concurrency": 50}
        self.client.register_queue(name, polling_interval_sec=poll, **limits)
        return self.client

    def unfinished(self) -> int:
        assert self.client is not None
        return len(
            self.client.list_workflows(status=["ENQUEUED", "PENDING", "DELAYED"], load_input=False, load_output=False)
        )

    def start_queued(self, n: int) -> None:
        client = self.queue()

        def enqueue(number: int) -> None:
            client.enqueue(
                {"queue_name": "work", "workflow_name": one_step.__qualname__, "app_version": APP_VERSION}, number
            )

        with ThreadPoolExecutor(8 if self.on_postgres else 1) as pool:
            list(pool.map(enqueue, range(n)))

    def w1(self, n: int) -> Answer:
        self.land()
        bodies.expect(n)
        self.queue()
        with stopwatch() as enqueued:
            self.start_queued(n)
            enqueue_seconds = enqueued()
        expect_equal("unfinished before the drain", self.unfinished(), n)
        with stopwatch() as drained:
            self.launch()
            bodies.wait()
            poll_until(lambda: self.unfinished() == 0)
            drain_seconds = drained()
        bodies.check()
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    def w2(self, records: int, steps: int) -> Answer:
        self.launch()
        bodies.expect(records)
        with stopwatch() as ran:
            handles = [DBOS.start_workflow(many_steps, number, steps) for number in range(records)]
            results = [handle.get_result() for handle in handles]
            seconds = ran()
        bodies.check()
        expect_equal("results", results, list(range(records)))
        return {"steps": records * steps, "seconds": seconds}

    def w3(self, n: int, pause: float) -> Answer:
        self.queue()
        self.launch()
        bodies.expect(n)
        direct = []
        for number, rest in enumerate(rests(n, pause)):
            time.sleep(rest)
            with stopwatch() as took:
                expect_equal("result", DBOS.start_workflow(one_step, number).get_result(), number)
                direct.append(took() * 1000)
        bodies.check()
        queued = []
        for number, rest in enumerate(rests(min(n, 50), pause)):
            time.sleep(rest)
            with stopwatch() as took:
                handle = DBOS.enqueue_workflow("work", one_step, number)
                expect_equal("result", handle.get_result(polling_interval_sec=0.005), number)
                queued.append(took() * 1000)
        return {"latencies_ms": direct, "queue_latencies_ms": queued}

    def w4(self, children: int) -> Answer:
        self.launch()
        with stopwatch() as ran:
            total = DBOS.start_workflow(parent, children).get_result()
            seconds = ran()
        expect_equal("sum", total, children * (children - 1) // 2)
        return {"children": children, "seconds": seconds}

    def w5(self, n: int, seconds: float, cap: int) -> Answer:
        self.land()
        client = self.queue(cap=cap, name="capped")
        self.launch()
        time.sleep(0.3)
        with stopwatch() as ran:
            handles = [DBOS.enqueue_workflow("capped", sleeper, seconds) for _ in range(n)]
            for handle in handles:
                handle.get_result(polling_interval_sec=0.005)
            total = ran()
        self.client = client
        return {"seconds": total, "ideal": n * seconds / cap}

    def fill(self, n: int) -> Answer:
        """Clone finished rows by SQL, as no public call makes so many in bearable time."""
        engine = sa.create_engine(self.url)
        schema = "dbos" if self.on_postgres else None
        prefix = "dbos." if schema else ""
        with engine.begin() as connection:
            if not self.filler.originals:
                connection.execute(
                    sa.text(f"CREATE TABLE bench_originals AS SELECT workflow_uuid FROM {prefix}workflow_status")
                )
            present = connection.execute(sa.text("SELECT count(*) FROM bench_originals")).scalar_one()
            first, last = self.filler.span(n, present)
            for table in ("workflow_status", "operation_outputs"):
                names = [column["name"] for column in sa.inspect(engine).get_columns(table, schema=schema)]
                copied = [name for name in names if name not in ("workflow_uuid", "deduplication_id")]
                new = {"workflow_uuid": "workflow_uuid || '~' || copy.i"}
                where = "workflow_uuid IN (SELECT workflow_uuid FROM bench_originals)"
                connection.execute(sa.text(clone_rows(prefix + table, new, copied, where, first, last)))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("ANALYZE"))
            found = connection.execute(sa.text(f"SELECT count(*) FROM {prefix}workflow_status")).scalar_one()
        engine.dispose()
        return {"filled": found}

    def idle(self) -> Answer:
        """At the default poll of one second: at 10 ms it would cost a hundred times as much."""
        self.queue(poll=1.0)
        self.launch()
        bodies.expect(10**9)
        return {"at": time.monotonic()}

    def poke(self) -> Answer:
        if self.client is None:
            self.client = DBOSClient(system_database_url=self.url)
        at = time.monotonic()
        self.client.enqueue(
            {"queue_name": "work", "workflow_name": one_step.__qualname__, "app_version": APP_VERSION}, 1
        )
        return {"at": at}

    def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    def crash(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        client = self.queue()
        for record in range(records):
            options = {"queue_name": "work", "workflow_name": journey.__qualname__, "app_version": APP_VERSION}
            client.enqueue({**options, "workflow_id": f"journey-{record}"}, record, steps, step_seconds)
        self.launch()
        return {"started": True}

    def resume(self, records: int, steps: int, step_seconds: float, concurrency: int, path: str) -> Answer:
        global journal
        journal = Journal(path)
        self.launch()
        for record in range(records):
            DBOS.retrieve_workflow(f"journey-{record}").get_result(polling_interval_sec=0.02)
        return {"finished": records}

    def enqueue(self, n: int) -> Answer:
        self.start_queued(n)
        return {"n": n}

    def work(self) -> Answer:
        at = time.monotonic()
        self.launch()
        return {"at": at}

    def drained(self, n: int) -> Answer:
        poll_until(lambda: self.unfinished() == 0, every=0.02)
        return {"at": time.monotonic()}

    def w10(self, turns: int, turn_bytes: int) -> Answer:
        self.launch()
        before = self.size()
        length = DBOS.start_workflow(conversation, turns, turn_bytes).get_result()
        expect_equal("characters", length, turns * turn_bytes)
        return {"bytes": self.size() - before}

    def size(self) -> int:
        if not self.on_postgres:
            return sqlite_bytes(os.path.join(self.directory, "ledger.db"))
        engine = sa.create_engine(self.url)
        with engine.connect() as connection:
            found: int = connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one()
        engine.dispose()
        return found
