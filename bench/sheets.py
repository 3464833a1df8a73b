"""What the Sheets ledger costs, beside the naive pattern: lock, read everything, write one row.

    .venv/bin/python bench/sheets.py              # about seven minutes; writes docs/benchmarks-sheets.md
    .venv/bin/python bench/sheets.py --seconds 20 --out bench/.out

Google is the emulator in a process of its own: every call takes 300 ms of real time, and the real quotas are on (60
reads and 60 writes a minute for one user). Nothing is told or virtual.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import machine

from quire import Run, Table, Workflow, workflow
from quire.client.client import Client
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.record import Record
from quire.surfaces.panel import Panel
from quire.testing.conformance import new_start

LATENCY = 0.3
IN_FLIGHT = 200
STEPS = 20
ROWS = (100, 1_000, 10_000)

chain = Workflow("chain", result=str)


def _step(n: int) -> None:
    async def work(run: Run[dict[str, Any]]) -> Any:
        return None if n < STEPS else "done"

    work.__name__ = f"step{n}"
    if n < STEPS:
        chain.step(then=f"step{n + 1}")(work)
    else:
        chain.step(work)


for _n in range(1, STEPS + 1):
    _step(_n)

single = Workflow("single", result=str)


@single.step
async def only(run: Run[dict[str, Any]]) -> str:
    return "done"


class Google:
    """The emulator, as the bench steers it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = httpx2.Client(timeout=60.0, headers={"Authorization": "Bearer bench"})

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.request(method, f"{self.url.rstrip('/')}{path}", json=body)
        answer.raise_for_status()
        return answer.json()

    def real(self, on: bool) -> None:
        self("POST", "/emulator/settings", {"quotas": on, "latency_seconds": LATENCY if on else 0.0})

    def book(self) -> str:
        made: str = self(
            "POST", "/drive/v3/files", {"name": "Book", "mimeType": "application/vnd.google-apps.spreadsheet"}
        )["id"]
        return made

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = self("GET", "/emulator/counters")["counters"]
        return found


@contextmanager
def emulator() -> Iterator[Google]:
    process = subprocess.Popen([sys.executable, "-m", "hectograph", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Google(process.stdout.readline().split()[-1])
    finally:
        process.terminate()
        process.wait(20)


@asynccontextmanager
async def opened(google: Google, book: str, user: str = "bench") -> AsyncIterator[Client]:
    """A client that keeps Google's quota. Each measurement is a user of its own, so none pays for another."""
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}&quota=60&user={user}")
    async with Client(ledger, workflows=[chain, single], who=user) as client:
        yield client


async def filled(google: Google, book: str, count: int, workflow: str, step: str) -> None:
    """So many records that are due, put there before the clock starts."""
    google.real(False)
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}&user=filler")
    await ledger.open()
    try:
        now = await ledger.now()
        for first in range(0, count, 500):
            ids = range(first, min(first + 500, count))
            await ledger.commit([new_start(f"r{n:06}", now, step=step, workflow=workflow) for n in ids])
    finally:
        await ledger.close()


async def busy(google: Google, seconds: float) -> dict[str, Any]:
    """Records move side by side, 200 at a time; moves are counted when their commit is acknowledged."""
    book = google.book()
    await filled(google, book, max(400, int(seconds / 60 * 800)), "chain", "step1")
    async with opened(google, book, "busy") as client:
        google.real(True)
        worker = client.worker(concurrency=IN_FLIGHT)
        moves: list[float] = []
        warm = asyncio.Event()

        def moved(record: Record) -> None:
            moves.append(time.monotonic())
            if len(moves) >= 2 * IN_FLIGHT:
                warm.set()

        worker.watchers.append(moved)
        running = asyncio.ensure_future(worker.run())
        await warm.wait()  # everything is in flight
        before, began, done = google.counts(), time.monotonic(), len(moves)
        await asyncio.sleep(seconds)
        after, ended, made = google.counts(), time.monotonic(), len(moves)
        google.real(False)
        worker.stop()
        worker.grace = 0.0
        await running
    writes, reads = (after.get(kind, 0) - before.get(kind, 0) for kind in ("writes", "reads"))
    minutes = (ended - began) / 60
    return {
        "seconds": round(ended - began, 1),
        "transitions": made - done,
        "writes": writes,
        "reads": reads,
        "transitions_per_write": round((made - done) / max(1, writes), 1),
        "transitions_per_minute": round((made - done) / minutes),
        "refused_by_quota": after.get("refused by quota", 0) - before.get("refused by quota", 0),
    }


async def naive(google: Google, seconds: float) -> dict[str, Any]:
    """A lock, all rows read, one row written: what a status column with a loop does. Backs off when it is refused."""
    book, lock = google.book(), asyncio.Lock()
    rows = [[f"r{n}", "PENDING"] for n in range(IN_FLIGHT)]
    google.real(False)
    google("PUT", f"/v4/spreadsheets/{book}/values/Sheet1!A1:B{IN_FLIGHT}?valueInputOption=RAW", {"values": rows})
    google.real(True)
    base, made, refused = f"{google.url}v4/spreadsheets/{book}/values", 0, 0
    ends = time.monotonic() + seconds

    async def call(client: httpx2.AsyncClient, method: str, path: str, body: Any = None) -> Any:
        nonlocal refused
        pause = 1.0
        while time.monotonic() < ends:
            answer = await client.request(method, base + path, json=body)
            if answer.status_code == 429:
                refused += 1
                await asyncio.sleep(pause)
                pause = min(32.0, pause * 2)
                continue
            answer.raise_for_status()
            return answer.json()
        return None

    async def loop(client: httpx2.AsyncClient) -> None:
        nonlocal made
        while time.monotonic() < ends:
            async with lock:
                found = await call(client, "GET", "/Sheet1!A1:B")
                if found is None:
                    return
                values = found["values"]
                place = next((n for n, row in enumerate(values) if row[1] == "PENDING"), 0)
                body = {"values": [[values[place][0], "DONE"]]}
                where = f"/Sheet1!A{place + 1}:B{place + 1}?valueInputOption=RAW"
                if await call(client, "PUT", where, body) is not None:
                    made += 1

    async with httpx2.AsyncClient(timeout=60.0, headers={"Authorization": "Bearer naive"}) as client:
        await asyncio.gather(*(loop(client) for _ in range(8)))
    google.real(False)
    return {
        "seconds": seconds,
        "transitions": made,
        "transitions_per_minute": round(made / seconds * 60),
        "refused_by_quota": refused,
    }


async def idle(google: Google, seconds: float) -> dict[str, Any]:
    """A worker with nothing to do."""
    book = google.book()
    google.real(False)
    async with opened(google, book, "idle") as client:
        google.real(True)
        worker = client.worker()
        running = asyncio.ensure_future(worker.run())
        await asyncio.sleep(3 * LATENCY + 2.0)
        before = google.counts()
        await asyncio.sleep(seconds)
        after = google.counts()
        google.real(False)
        worker.stop()
        await running
    minutes = seconds / 60
    return {
        "seconds": seconds,
        "reads_per_minute": round((after.get("reads", 0) - before.get("reads", 0)) / minutes, 1),
        "writes_per_minute": round((after.get("writes", 0) - before.get("writes", 0)) / minutes, 1),
    }


async def one_at_a_time(google: Google, records: int = 8) -> dict[str, Any]:
    """A record of one step, started and ended on an idle ledger: it is started, claimed and settled."""
    book = google.book()
    google.real(False)
    async with opened(google, book, "one") as client:
        google.real(True)
        worker = client.worker()
        ended: asyncio.Queue[str] = asyncio.Queue()
        worker.watchers.append(lambda record: ended.put_nowait(record.record_id))
        running = asyncio.ensure_future(worker.run())
        await asyncio.sleep(3 * LATENCY + 2.0)
        before, began = google.counts(), time.monotonic()
        for n in range(records):
            await client.start(single, {}, id=f"r{n}")
            await ended.get()
        took, after = time.monotonic() - began, google.counts()
        google.real(False)
        worker.stop()
        await running
    writes, reads = (after.get(kind, 0) - before.get(kind, 0) for kind in ("writes", "reads"))
    return {
        "records": records,
        "transitions": 3 * records,
        "writes": writes,
        "reads": reads,
        "calls_per_transition": round((writes + reads) / (3 * records), 2),
        "seconds_per_record": round(took / records, 2),
    }


async def many_rows(google: Google) -> list[dict[str, Any]]:
    """What a poll and a commit cost when the ledger holds more and more live records."""
    found = []
    for count in ROWS:
        book = google.book()
        await filled(google, book, count, "elsewhere", "rest")
        async with opened(google, book, f"rows{count}") as client:
            ledger = client.ledger
            assert isinstance(ledger, SheetsLedger)
            google.real(True)
            before = google.counts()
            for _ in range(5):
                await ledger.standing()
            polled = google.counts()
            sent, cpu, began = ledger.transport.sent_bytes, time.process_time(), time.monotonic()
            now = await ledger.now()
            for n in range(5):
                await ledger.commit([new_start(f"new{n}", now, step="rest", workflow="elsewhere")])
            took = time.monotonic() - began
            after = google.counts()
            google.real(False)
            found.append(
                {
                    "rows": count,
                    "reads_per_poll": (polled.get("reads", 0) - before.get("reads", 0)) / 5,
                    "writes_per_commit": (after.get("writes", 0) - polled.get("writes", 0)) / 5,
                    "bytes_per_commit": round((ledger.transport.sent_bytes - sent) / 5),
                    "cpu_ms_per_commit": round((time.process_time() - cpu) / 5 * 1000, 1),
                    "seconds_per_commit": round(took / 5, 2),
                }
            )
    return found


@workflow(name="bound", on=[Table("Orders", status="Status", id="No", yes=True)])
async def bound(run: Run[dict[str, Any]]) -> None:
    await run.wait("go")


async def table(google: Google, rows: int = 100, many: int = 10_000) -> dict[str, Any]:
    """A table of people's: rows that end together, an idle one beside the panel alone, and many bound rows."""
    google.real(False)
    found: dict[str, Any] = {"rows": rows, "many": many, "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")}
    for name, count in (("panel", 0), ("few", rows), ("many", many)):
        book = google.book()
        tab = {"addSheet": {"properties": {"title": "Orders", "gridProperties": {"rowCount": many + 20}}}}
        google("POST", f"/v4/spreadsheets/{book}:batchUpdate", {"requests": [tab]})
        values = [["No", "Client", "Status"], *([f"A-{n}", f"client {n}", "Ready"] for n in range(count))]
        google("PUT", f"/v4/spreadsheets/{book}/values/Orders!A1?valueInputOption=RAW", {"values": values})
        flows = [bound] if count else []
        async with (
            Client("memory:", workflows=flows, who=name) as client,
            Panel(client, f"sheets://{book}?endpoint={google.url}&user={name}") as panel,
        ):
            for _ in range(4 + count // 500):
                await panel.look()
                await client.work()
            while await panel.look():
                await client.work()
            assert len(await client.find(limit=100_000)) == count
            found[f"{name}_idle"] = await _calls(google, panel.look, 5) / 5
            if name == "few":
                for n in range(rows):
                    await client.signal(f"orders-A-{n}", "go")
                await client.work()
                found["ended_together"] = await _calls(google, panel.look, 1)
    return found


async def _calls(google: Google, act: Callable[[], Awaitable[object]], times: int) -> int:
    before = google.counts()
    for _ in range(times):
        await act()
    after = google.counts()
    return sum(after.get(kind, 0) - before.get(kind, 0) for kind in ("reads", "writes"))


async def measured(seconds: float, only: str) -> dict[str, Any]:
    with emulator() as google:
        figures: dict[str, Any] = {"latency_seconds": LATENCY, "in_flight": IN_FLIGHT, "quota": 60}
        for name, work in (
            ("busy", lambda: busy(google, seconds)),
            ("naive", lambda: naive(google, seconds)),
            ("idle", lambda: idle(google, seconds)),
            ("one", lambda: one_at_a_time(google)),
            ("rows", lambda: many_rows(google)),
            ("table", lambda: table(google)),
        ):
            if only and name != only:
                continue
            sys.stderr.write(f"{name} …\n")
            figures[name] = await work()
    return figures


def bars(figures: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """The figure, what was found, the bar, and whether it is reached."""
    fast, slow, idle_, one, rows = (figures[name] for name in ("busy", "naive", "idle", "one", "rows"))
    least, most, bound_ = rows[0], rows[-1], figures["table"]
    return [
        (
            f"transitions per write request, {IN_FLIGHT} records in flight",
            f"{fast['transitions_per_write']}",
            "≥ 100",
            fast["transitions_per_write"] >= 100,
        ),
        (
            "transitions a minute within one user's quota",
            f"{fast['transitions_per_minute']:,} (naive: {slow['transitions_per_minute']:,})",
            "≥ 5,000",
            fast["transitions_per_minute"] >= 5000,
        ),
        (
            "an idle worker, a minute",
            f"{idle_['reads_per_minute']} reads, {idle_['writes_per_minute']} writes",
            "≤ 12 reads, ≤ 1 write",
            idle_["reads_per_minute"] <= 12 and idle_["writes_per_minute"] <= 1,
        ),
        (
            "one transition, idle",
            f"{one['calls_per_transition']} calls",
            "≤ 2.5 calls",
            one["calls_per_transition"] <= 2.5,
        ),
        (
            f"{most['rows']:,} live rows: read requests per poll",
            f"{most['reads_per_poll']:g}",
            "1",
            most["reads_per_poll"] == 1,
        ),
        (
            f"{most['rows']:,} live rows: bytes of a commit",
            f"{most['bytes_per_commit']:,} ({least['rows']:,} rows: {least['bytes_per_commit']:,})",
            "does not grow",
            most["bytes_per_commit"] <= 1.1 * least["bytes_per_commit"],
        ),
        (
            f"{bound_['rows']} rows of a table that end together",
            f"{bound_['ended_together']} calls",
            "≤ 3 calls",
            bound_["ended_together"] <= 3,
        ),
        (
            "a look of an idle panel with a table",
            f"{bound_['few_idle']:g} calls (the panel alone: {bound_['panel_idle']:g})",
            "no more than the panel alone",
            bound_["few_idle"] <= bound_["panel_idle"],
        ),
        (f"{bound_['many']:,} bound rows: calls per look", f"{bound_['many_idle']:g}", "1", bound_["many_idle"] == 1),
    ]


def page(result: dict[str, Any]) -> str:
    figures, facts = result["figures"], result["machine"]
    lines = [
        "# What the Sheets ledger costs",
        "",
        "Written by `make bench-sheets` from `benchmarks/sheets.json`; nothing here is typed by hand. Google is the",
        f"emulator in a process of its own: every call takes {figures['latency_seconds'] * 1000:.0f} ms of real",
        "time, and the real quotas are on (60 reads and 60 writes a minute for one user, by Google's calendar minute).",
        "",
        f"{result['at']}, {facts['cpu']}, {facts['cores']} cores, Python {facts['python']}.",
        f"The part about tables: {figures['table']['at']}.",
        "",
        "| figure | found | bar | |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {what} | {found} | {bar} | {'reached' if ok else '**missed**'} |" for what, found, bar, ok in bars(figures)
    ]
    fast, slow, one = figures["busy"], figures["naive"], figures["one"]
    busy_text = (
        f"*Busy*: {fast['transitions']:,} moves of records to their next step or their end in {fast['seconds']} s, "
        f"with {fast['writes']} writes and {fast['reads']} reads; {fast['refused_by_quota']} calls were refused by the "
        "quota. A claim is not counted as a transition."
    )
    naive_text = (
        f"*Naive*: one lock, all rows read, one row written, eight loops: {slow['transitions']:,} transitions in "
        f"{slow['seconds']:g} s; {slow['refused_by_quota']} calls were refused by the quota."
    )
    one_text = (
        f"*One, idle*: {one['records']} records of one step, one after the other, are started, claimed and settled: "
        f"{one['writes']} writes, {one['reads']} reads, {one['seconds_per_record']} s each."
    )
    head = "| live rows | reads per poll | writes per commit | bytes per commit | CPU per commit | seconds per commit |"
    lines += ["", busy_text, "", naive_text, "", one_text, "", head, "|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {row['rows']:,} | {row['reads_per_poll']:g} | {row['writes_per_commit']:g} | {row['bytes_per_commit']:,} | "
        f"{row['cpu_ms_per_commit']} ms | {row['seconds_per_commit']} |"
        for row in figures["rows"]
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long each of the timed parts runs")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="where the page and the figures go")
    parser.add_argument("--only", default="", help="one part; the figures of the others stay as they were")
    given = parser.parse_args()
    kept = given.out / "benchmarks" / "sheets.json"
    known = json.loads(kept.read_text(encoding="utf-8")) if given.only else {}
    before = known.get("figures", {})
    result: dict[str, Any] = {
        "at": known.get("at") or datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine.facts(Path.cwd()),
        "figures": {**before, **asyncio.run(measured(given.seconds, given.only))},
    }
    (given.out / "benchmarks").mkdir(parents=True, exist_ok=True)
    (given.out / "benchmarks" / "sheets.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (given.out / "benchmarks-sheets.md").write_text(page(result), encoding="utf-8")
    sys.stdout.write(page(result))
    return 0 if all(ok for *_, ok in bars(result["figures"])) else 1


if __name__ == "__main__":
    raise SystemExit(main())
