"""Quire, the same adapter for both of its stores.

Settings: uvloop, up to 2,000 records at once (the default is 100), and the effect of W8 with a timeout of 5 s and a
settle of 1 s (not 30 s and 60 s: they bound how long a doubtful act waits). W0 and W12 have the defaults of a worker
and of an effect. One client and one worker in the process. W2 is a declared machine of ten steps, W4 a ``run.map`` over
child records, W5 a workflow with a cap. The steps of W8 and W12 act through an effect whose probe looks into the
journal, so that an act that happened is found and not repeated.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
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
    sqlite_bytes,
    stopwatch,
    text_of,
    versions,
)
from _profiled import Profiled

import quire
from quire import Act, Client, NotDone, Record, Run, Status, Workflow, effect
from quire.ledger.postgres.pages import COLUMNS, ROOM

#: The steps do nothing, so a worker takes many at a time; its default of 100 is made for steps that wait for a model.
AT_ONCE = 2000
OPEN = [status for status in Status if status not in (Status.DONE, Status.ERROR, Status.CANCELLED)]
#: W6: so many finished records are copied, in statements of so many copies; and this is the id of a copy.
ORIGINALS = 500
COPIES = 100
COPIED = "record_id || '~' || copy.i"
#: W9: whether any record is left that has not ended, by the first entry of an index.
ANY_OPEN = """
    SELECT count(*) FROM (
        SELECT 1 FROM quire.records WHERE queue IS NOT NULL UNION ALL
        SELECT 1 FROM quire.records WHERE status = 'RUNNING' LIMIT 1
    ) AS open
"""
#: W6: leaves of the log, with the lines of those records only; and the number after those of all their copies.
LEAF = [*COLUMNS[1:], "before"]
ORIGINAL_LEAVES = f"""
    CREATE TABLE bench_leaves AS SELECT seq, array_agg(line.record_id ORDER BY place) AS record_id, {
    ", ".join(
        f"CASE WHEN cardinality({name}) = 1 THEN {name} ELSE array_agg({name}[place] ORDER BY place) END AS {name}"
        for name in LEAF
    )
} FROM quire.leaves AS leaf CROSS JOIN LATERAL unnest(leaf.record_id) WITH ORDINALITY AS line (record_id, place)
    WHERE line.record_id IN (SELECT record_id FROM bench_originals) GROUP BY seq
"""
DRAW_AFTER = f"""
    SELECT setval('quire.events_seq_seq', greatest(last_value, {{copies}} * (max(seq) + {ROOM})))
    FROM quire.events_seq_seq, bench_leaves GROUP BY last_value
"""
bodies = Tally()
#: The calls of W0.
calls = httpx2.AsyncClient(timeout=30, limits=httpx2.Limits(max_connections=200))
journal: Journal | None = None
journal_path = ""
Data = dict[str, Any]


def line(name: str, steps: int) -> Workflow[Data, int, None]:
    """A machine of that many no-op steps, one after the other."""
    made: Workflow[Data, int, None] = Workflow(name, result=int)

    async def quiet(run: Run[Data, None]) -> None:
        return None

    async def last(run: Run[Data, None]) -> int:
        bodies.hit()
        return int(run.data["number"])

    for step in range(steps - 1):
        following = f"s{step + 1}"
        quiet_step: Any = _renamed(quiet, f"s{step}")
        made.step(then=following)(quiet_step)
    made.step(_renamed(last, f"s{steps - 1}"))
    return made


def _renamed(function: Any, name: str) -> Any:
    async def step(run: Any) -> Any:
        return await function(run)

    step.__name__ = step.__qualname__ = name
    step.__annotations__ = dict(function.__annotations__)
    return step


one: Workflow[Data, int, None] = Workflow("one", result=int)
child: Workflow[Data, int, None] = Workflow("child", result=int)
parent: Workflow[Data, int, None] = Workflow("parent", result=int)
capped: Workflow[Data, int, None] = Workflow("capped", result=int, cap=5)
conversation: Workflow[Data, int, None] = Workflow("conversation", result=int)


@one.step
async def only(run: Run[Data, None]) -> int:
    bodies.hit()
    return int(run.data["number"])


@child.step
async def add(run: Run[Data, None]) -> int:
    return int(run.data["number"])


@parent.step
async def gather(run: Run[Data, None]) -> int:
    return sum(await run.map(child, [{"number": number} for number in range(run.data["children"])]))


@capped.step
async def nap(run: Run[Data, None]) -> int:
    await asyncio.sleep(run.data["seconds"])
    bodies.hit()
    return 1


def speak(size: int, turn: int) -> str:
    return text_of(size, turn)


@conversation.step
async def talk(run: Run[Data, None]) -> int:
    total = 0
    for turn in range(run.data["turns"]):
        total += len(await run.call(speak, run.data["size"], turn))
    return total


async def written(act: Act[None], record: int, step: int, seconds: float) -> int | NotDone:
    lines = await asyncio.to_thread(Path(journal_path).read_text)
    return step if f"{record} {step}" in lines.splitlines() else NotDone()


@effect(probe=written, timeout="5s", settle="1s")
async def write_down(act: Act[None], record: int, step: int, seconds: float) -> int:
    await asyncio.sleep(seconds)
    assert journal is not None
    journal.act(record, step)
    return step


@effect(probe=written)
async def write_down_by_default(act: Act[None], record: int, step: int, seconds: float) -> int:
    """W12: the same with the time-outs that nobody has touched."""
    await asyncio.sleep(seconds)
    assert journal is not None
    journal.act(record, step)
    return step


@effect
async def hand_over(act: Act[None], number: int) -> int:
    bodies.hit()
    return number


async def fetched(site: str) -> str:
    return (await calls.get(site)).text


errand: Workflow[Data, int, None] = Workflow("errand", result=int)


@errand.step
async def fetch_and_send(run: Run[Data, None]) -> int:
    await run.call(fetched, run.data["site"])
    return await run.once(hand_over, run.data["number"])


def journey(steps: int, name: str = "journey", act: Any = write_down) -> Workflow[Data, None, None]:
    made: Workflow[Data, None, None] = Workflow(name)

    def declare(step: int) -> Any:
        async def travel(run: Run[Data, None]) -> None:
            await run.once(act, run.data["record"], step, run.data["seconds"])

        return _renamed(travel, f"s{step}")

    for step in range(steps - 1):
        made.step(then=f"s{step + 1}")(declare(step))
    made.step(declare(steps - 1))
    return made


def fast_loop() -> asyncio.AbstractEventLoop:
    """The event loop that PgQueuer is given, too; where it is not installed, the one of Python."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class QuireAdapter(Profiled, Adapter):
    loop_factory = staticmethod(fast_loop)
    round = (1000, 10)

    async def setup(self, url: str, directory: str) -> Answer:
        self.url = url
        self.directory = directory
        self.all_ended = asyncio.Event()
        self.on_postgres = url.startswith("postgresql")
        self.lines: dict[int, Workflow[Data, int, None]] = {}
        self.ended: dict[str, asyncio.Future[None]] = {}
        self.expect_ends(0)
        self.filler = Filler()
        self.running: asyncio.Task[None] | None = None
        self.worker: Any = None
        self.client = await self.opened()
        worker = self.client.worker()
        return {
            "settings": {
                "at once": AT_ONCE,
                "loop": type(asyncio.get_running_loop()).__module__.partition(".")[0],
                "effect of W8": "timeout 5 s, settle 1 s (defaults 30 s and 60 s), with a probe",
                "lease_seconds": worker.lease.seconds,
                "poll_seconds": self.client.ledger.traits.poll_seconds,
                "durability": "synchronous_commit=on" if self.on_postgres else "WAL, synchronous=FULL",
            },
            "versions": versions("quire", *(["uvloop"] if "uvloop" in sys.modules else [])),
        }

    async def opened(self) -> Client:
        """A client that knows ten-step and five-step machines; those that differ are added when they are asked for."""
        self.lines = {10: line("line-10", 10)}
        self.journey = journey(5)
        self.journey_by_default = journey(5, "journey_by_default", write_down_by_default)
        journeys = [self.journey, self.journey_by_default]
        workflows = [one, child, parent, capped, conversation, errand, *journeys, *self.lines.values()]
        return await quire.aopen(self.url, workflows=workflows).__aenter__()

    async def launch(self, concurrency: int = AT_ONCE) -> None:
        self.worker = self.client.worker(concurrency=concurrency)
        self.worker.watchers.append(self.watch)
        self.running = asyncio.create_task(self.worker.run())

    def expect_ends(self, n: int) -> None:
        """``all_ended`` is set when the worker has committed the ends of so many records."""
        self.open_left = n
        self.all_ended.clear()

    def watch(self, record: Record) -> None:
        """Called with every record that the worker has settled, after the commit."""
        if not record.ended:
            return
        self.open_left -= 1
        if self.open_left == 0:
            self.all_ended.set()
        waiting = self.ended.get(record.record_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def land(self) -> None:
        if self.running is not None:
            self.worker.stop()
            await self.running
        self.running = self.worker = None

    async def close(self) -> None:
        await self.land()
        await self.client.__aexit__(None, None, None)

    async def done(self) -> int:
        return sum(count.count for count in await self.client.counts() if count.status is Status.DONE)

    async def await_all(self, every: float = 0.02) -> None:
        """Until no record is open, whoever ended it."""

        async def empty() -> bool:
            return not await self.client.find(status=OPEN, limit=1)

        await poll_until_async(empty, every=every)

    async def w0(self, n: int, alone: int, site: str) -> Answer:
        """At the defaults of a worker: a call over HTTP, then an effect; many at once, then one after the other."""
        if self.running is None:
            await self.launch(self.client.worker().concurrency)
        bodies.expect(n)
        self.expect_ends(n)
        with stopwatch() as ran:
            await self.client.start_many(errand, ({"number": number, "site": site} for number in range(n)))
            await self.all_ended.wait()
            seconds = ran()
        bodies.check()
        took = []
        bodies.expect(alone)
        for number in range(alone):
            name = f"w0-{os.getpid()}-{time.monotonic_ns()}"
            self.ended = {name: asyncio.get_running_loop().create_future()}
            with stopwatch() as one_took:
                await self.client.start(errand, {"number": number, "site": site}, id=name)
                await self.ended[name]
                took.append(one_took() * 1000)
        return {"n": n, "seconds": seconds, "alone_ms": took}

    async def w1(self, n: int) -> Answer:
        await self.land()
        bodies.expect(n)
        self.expect_ends(n)
        before = await self.done()
        with stopwatch() as enqueued:
            await self.client.start_many(one, ({"number": number} for number in range(n)))
            enqueue_seconds = enqueued()
        with stopwatch() as drained:
            await self.launch()
            await self.all_ended.wait()
            drain_seconds = drained()
        bodies.check()
        expect_equal("records done", await self.done() - before, n)
        return {"n": n, "enqueue_seconds": enqueue_seconds, "drain_seconds": drain_seconds}

    async def w2(self, records: int, steps: int) -> Answer:
        if self.running is None:
            await self.launch()
        bodies.expect(records)
        self.expect_ends(records)
        before = await self.done()
        with stopwatch() as ran:
            await self.client.start_many(self.lines[steps], ({"number": number} for number in range(records)))
            await self.all_ended.wait()
            seconds = ran()
        bodies.check()
        expect_equal("records done", await self.done() - before, records)
        return {"steps": records * steps, "seconds": seconds}

    async def w3(self, n: int, pause: float) -> Answer:
        """Until the worker has committed the end; apart, to the end of the body, and until a waiting client has it."""
        if self.running is None:
            await self.launch()
            await asyncio.sleep(0.2)
        committed, ran, received = [], [], []
        for number, rest in enumerate(rests(n, pause)):
            await asyncio.sleep(rest)
            bodies.expect(1)
            name = f"w3-{os.getpid()}-{time.monotonic_ns()}"
            self.ended = {name: asyncio.get_running_loop().create_future()}
            begun = time.monotonic()
            with stopwatch() as took:
                await self.client.start(one, {"number": number}, id=name)
                await self.ended[name]
                committed.append(took() * 1000)
            ran.append((bodies.times[0] - begun) * 1000)
            record = await self.client.get(name)
            expect_equal("record", (str(record.status), record.result), ("DONE", str(number)))
        for number, rest in enumerate(rests(min(n, 50), pause)):
            await asyncio.sleep(rest)
            with stopwatch() as took:
                handle = await self.client.start(one, {"number": number})
                expect_equal("result", await handle.result(timeout="1m"), number)
                received.append(took() * 1000)
        return {"latencies_ms": committed, "body_latencies_ms": ran, "queue_latencies_ms": received}

    async def w4(self, children: int) -> Answer:
        if self.running is None:
            await self.launch()
        name = f"w4-{os.getpid()}-{time.monotonic_ns()}"
        self.ended = {name: asyncio.get_running_loop().create_future()}
        with stopwatch() as ran:
            await self.client.start(parent, {"children": children}, id=name)
            await self.ended[name]
            seconds = ran()
        expect_equal("sum", (await self.client.get(name)).result, str(children * (children - 1) // 2))
        return {"children": children, "seconds": seconds}

    async def w5(self, n: int, seconds: float, cap: int) -> Answer:
        expect_equal("cap", cap, capped.cap)
        if self.running is None:
            await self.launch()
            await asyncio.sleep(0.2)
        bodies.expect(n)
        self.expect_ends(n)
        with stopwatch() as ran:
            await self.client.start_many(capped, ({"seconds": seconds} for _ in range(n)))
            await self.all_ended.wait()
            total = ran()
        bodies.check()
        return {"seconds": total, "ideal": n * seconds / cap}

    async def fill(self, n: int) -> Answer:
        """Copies of records that really ran, with their logs, written by SQL: to run a million takes too long."""
        await self.land()
        first, last = self.filler.span(n, ORIGINALS)
        if self.on_postgres:
            await asyncio.to_thread(self._fill_postgres, first, last)
        else:
            await asyncio.to_thread(self._fill_sqlite, first, last)
        return {"filled": await self.done()}

    def _fill_postgres(self, first: int, last: int) -> None:
        import _postgres as postgres

        originals = "record_id IN (SELECT record_id FROM bench_originals)"
        if first == 1:
            postgres.execute(
                self.url,
                f"CREATE TABLE bench_originals AS SELECT record_id FROM quire.records LIMIT {ORIGINALS}",
                ORIGINAL_LEAVES,
            )
        # The numbers of copied leaves lie apart from each other, and from those that are drawn.
        apart = f"(copy.i * (SELECT max(seq) + {ROOM} FROM bench_leaves))"
        postgres.execute(self.url, DRAW_AFTER.format(copies=last + 2))
        new = {
            "quire.records": {"record_id": COPIED, "log_at": f"log_at + {apart}"},
            "quire.events": {"record_id": COPIED},
            "quire.leaves": {
                "seq": f"seq + {apart}",
                "record_id": "ARRAY(SELECT id || '~' || copy.i FROM unnest(record_id) AS id)",
                "before": f"ARRAY(SELECT leaf + {apart} FROM unnest(before) AS leaf)",
            },
        }
        # In parts: one statement over a million rows would spill its sort to disk.
        for begin in range(first, last + 1, COPIES):
            part = begin, min(begin + COPIES - 1, last)
            for table, changed in new.items():
                left_out = {*changed, "seq"}
                names = [name for name in postgres.columns(self.url, table) if name not in left_out]
                which, source = (originals, table) if table != "quire.leaves" else ("true", "bench_leaves")
                postgres.execute(self.url, clone_rows(table, changed, names, which, *part, source=source))
        postgres.execute(self.url, "VACUUM ANALYZE", "CHECKPOINT")

    def _fill_sqlite(self, first: int, last: int) -> None:
        import sqlite3

        originals = "record_id IN (SELECT record_id FROM bench_originals)"
        connection = sqlite3.connect(os.path.join(self.directory, "ledger.db"), isolation_level=None, timeout=60)
        # Room for the indexes while a million rows go in; the ledger's own connections keep their own settings.
        connection.execute("PRAGMA cache_size = -1000000")
        if first == 1:
            connection.execute(f"CREATE TABLE bench_originals AS SELECT record_id FROM records LIMIT {ORIGINALS}")
        for table, left_out in (("records", ()), ("events", ("seq",))):
            found = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            names = [name for name in found if name not in ("record_id", *left_out)]
            connection.execute(clone_rows(table, {"record_id": COPIED}, names, originals, first, last))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    async def idle(self) -> Answer:
        bodies.expect(10**9)
        await self.launch()
        return {"at": time.monotonic()}

    async def poke(self) -> Answer:
        at = time.monotonic()
        await self.client.start(one, {"number": 1})
        return {"at": at}

    async def woken(self) -> Answer:
        return {"at": list(bodies.times)}

    async def crash(
        self, records: int, steps: int, step_seconds: float, concurrency: int, path: str, by_default: bool = False
    ) -> Answer:
        self.keep_journal(path)
        journey = self.journey_by_default if by_default else self.journey
        expect_equal("steps", steps, len(self.journey.steps))
        items = ({"record": record, "seconds": step_seconds} for record in range(records))
        await self.client.start_many(journey, items)
        await self.launch(concurrency)
        return {"started": True}

    async def resume(
        self, records: int, steps: int, step_seconds: float, concurrency: int, path: str, by_default: bool = False
    ) -> Answer:
        self.keep_journal(path)
        await self.launch(concurrency)
        await self.await_all()
        expect_equal("records done", await self.done(), records)
        return {"finished": records}

    def keep_journal(self, path: str) -> None:
        global journal, journal_path
        journal, journal_path = Journal(path), path

    async def enqueue(self, n: int) -> Answer:
        await self.client.start_many(one, ({"number": number} for number in range(n)))
        return {"n": n}

    async def work(self, by_default: bool = False) -> Answer:
        bodies.expect(10**9)
        at = time.monotonic()
        await (self.launch(self.client.worker().concurrency) if by_default else self.launch())
        return {"at": at}

    async def drained(self, n: int) -> Answer:
        """Seen by looks that take the server next to nothing: what it does for them, the workers do not have."""
        import _postgres as postgres

        eye = postgres.Eye(self.url, enable_seqscan="off")

        async def empty() -> bool:
            return eye.count(ANY_OPEN) == 0

        await poll_until_async(empty, every=0.02)
        at = time.monotonic()
        expect_equal("records done", await self.done(), n)
        return {"at": at}

    async def w10(self, turns: int, turn_bytes: int) -> Answer:
        await self.launch()
        before = self.size()
        handle = await self.client.start(conversation, {"turns": turns, "size": turn_bytes})
        expect_equal("characters", await handle.result(timeout="2m"), turns * turn_bytes)
        return {"bytes": self.size() - before}

    def size(self) -> int:
        if not self.on_postgres:
            return sqlite_bytes(os.path.join(self.directory, "ledger.db"))
        import _postgres

        return _postgres.size(self.url)
