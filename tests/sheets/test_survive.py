"""What a Sheets ledger must survive, over HTTP.

``QUIRE_FULL_SCALE=1`` runs the counts that were asked for; otherwise a part of them runs, so that everybody can afford
it. The outcome of a full run is in ``docs/sheets.md``.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from quire import Status, aopen
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.google.budget import Urgency
from quire.ledger.sheets.book import Book, Echo
from quire.ledger.sheets.journal_rows import entries
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Query
from quire.model.codec import dump
from quire.model.side import Setting
from quire.rules.outcome import Done
from quire.testing import ToldClock
from quire.testing.conformance import beat, new_settle, start_all
from tests.sheets.asking import take
from tests.sheets.clerk import STEPS, clerk, lines
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.contender import OVER, contend
from tests.sheets.test_engine import acts, told
from tests.sheets.test_faults import BATCH, opened

FULL = bool(os.environ.get("QUIRE_FULL_SCALE"))
ROOT = Path(__file__).parents[2]


def scaled(asked: int, part: int) -> int:
    return asked if FULL else part


async def journal_is_sound(ledger: SheetsLedger) -> None:
    """Every entry stands there once, and none is missing."""
    found = entries(await ledger.book.rows(1, Urgency.VIEW), 1)
    first = min(entry.seq for entry in found)
    assert sorted(entry.seq for entry in found) == list(range(first, first + len(found)))
    assert len({entry.commit_id for entry in found}) == len(found)


@pytest.mark.slow
@pytest.mark.timeout(scaled(3600, 300))
@pytest.mark.parametrize(("cap", "parties"), [(None, 8), (5, 5)], ids=["no-cap", "cap-of-5"])
async def test_eight_processes_and_a_barrier_between_their_reads_and_their_writes(
    google: Google, book: str, cap: int | None, parties: int
) -> None:
    """One winner per record, and a cap that is never exceeded. A round is a barrier that all parties have come to.

    One that did not fill in time does not count, and another takes its place.
    """
    rounds = scaled(1000, 12)
    url = f"sheets://{book}?endpoint={google.url}"
    ledger = SheetsLedger(url)
    ids: list[str] = []
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.sheets.contender"])
    async with opened(ledger):

        async def more(count: int) -> None:
            new = [f"r{len(ids) + n:04}" for n in range(count)]
            ids.extend(new)
            await start_all(ledger, new)

        await more(rounds // 2 + 24)
        rule = {"kind": BATCH, "contains": "insertDimension", "user": "fighter", "parties": parties}
        google.fault("barrier", **rule, count=rounds, timeout_seconds=5.0)
        loop = asyncio.get_running_loop()
        with ProcessPoolExecutor(8, mp_context=context) as pool:
            fights = [loop.run_in_executor(pool, contend, f"{url}&user=fighter", f"w{n}", cap) for n in range(8)]
            while google("GET", "/emulator/faults")["faults"][0]["left"]:
                if sum(count.count for count in await ledger.counts() if count.status is Status.PENDING) < 16:
                    await more(24)
                await asyncio.wait(fights, timeout=0.2, return_when=asyncio.FIRST_EXCEPTION)
                assert not any(fight.done() for fight in fights), [fight.exception() for fight in fights]
            await ledger.keep(Setting(OVER, "1", 0))
            fought = await asyncio.gather(*fights)
        google.calm()

        assert len({pid for pid, _ in fought}) == 8
        won = sorted(record_id for _, won in fought for record_id in won)
        assert len(won) >= 0.4 * rounds
        running, lines = 0, dict[str, list[str]]()
        for event in await ledger.events(limit=100_000):
            lines.setdefault(event.record_id, []).append(event.kind)
            running += {"claimed": 1, "done": -1}.get(event.kind, 0)
            assert cap is None or running <= cap
        assert running == 0
        assert won == sorted(record_id for record_id, told_ in lines.items() if "claimed" in told_)
        assert all(lines[record_id] == ["started", "claimed", "done"] for record_id in won)
        await journal_is_sound(ledger)


@pytest.mark.timeout(scaled(3600, 300))
async def test_a_person_sorts_inserts_and_deletes_between_every_read_and_every_write(
    make_ledger: MakeLedger, google: Google, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the engine's tabs and in their own: no write lands on a wrong row, nothing of the person's is lost."""
    rounds, records = scaled(500, 50), 12
    chance = random.Random(11)
    ledger, late = make_ledger(), make_ledger()
    google.person(book, "edit", sheet="Sheet1", range="A1:B3", values=[["mine", 1], ["my own", 2], ["too", 3]])
    notes: list[str] = []
    real = Book.send

    async def disturbed(
        self: Book, requests: Sequence[Mapping[str, Any]], after: int, urgency: Urgency, **given: Any
    ) -> Echo:
        person(chance.randrange(10**6))
        return await real(self, requests, after, urgency, **given)

    def person(seed: int) -> None:
        moves = ["insert_rows", "sort", "move_rows", "paste_rows"]
        google.person(book, "random", sheet="journal", rounds=1, seed=seed, keep_rows=1, only=moves)
        google.person(book, "random", sheet="state", rounds=1, seed=seed, keep_rows=1, only=[*moves, "delete_rows"])
        google.person(book, "random", sheet="Sheet1", rounds=1, seed=seed, keep_rows=0, only=["insert_rows", "sort"])
        if seed % 10 == 0:  # a note in a row of the person's own, in the journal
            notes.append(f"note {seed}")
            google.person(book, "insert_rows", sheet="journal", at=2, count=1)
            google.person(book, "edit", sheet="journal", cell="B2", text=notes[-1])

    done: Counter[str] = Counter()
    async with opened(ledger):
        await beat(ledger, "w", lease=1e6)
        monkeypatch.setattr(Book, "send", disturbed)
        for round_ in range(rounds):
            ids = [f"r{round_:03}-{n}" for n in range(records)] if round_ % 10 == 0 else []
            if ids:
                await start_all(ledger, ids)
            rows = (await take(ledger, worker="w", limit=3)).records
            await ledger.commit([new_settle(row, Done("1", dump(row.record_id)), await ledger.now()) for row in rows])
            done.update(row.record_id for row in rows)
            if round_ % 25 == 24:
                await ledger.recover()  # mends the tab state
        monkeypatch.undo()
        await ledger.recover()
        async with opened(late):
            found = await late.find(Query(limit=10_000))
            assert {row.record_id: row.data for row in found if row.status is Status.DONE} == {
                record_id: dump(record_id) for record_id in done
            }
            assert found == await ledger.find(Query(limit=10_000))
        await ledger.rewrite_state()
        cells = google("GET", f"/v4/spreadsheets/{book}/values/state!A2:B")["values"]
        assert cells == [[row.record_id, row.status.value] for row in ledger.replica.tables.all_records.values()]
        kept = google("GET", f"/v4/spreadsheets/{book}/values/journal!B2:B").get("values", [])
        assert set(notes) <= {row[0] for row in kept if row}
        own = google("GET", f"/v4/spreadsheets/{book}/values/Sheet1!A1:B")["values"]
        assert sorted(row for row in own if row) == [["mine", "1"], ["my own", "2"], ["too", "3"]]
    assert set(done.values()) == {1}


@pytest.mark.slow
@pytest.mark.timeout(scaled(3600, 300))
async def test_a_storm_while_five_hundred_records_run(google: Google, book: str) -> None:
    """429s, resets and lost answers: every record ends, every entry stands once, no effect is done twice."""
    acts.clear()
    count = 500
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}")
    async with Client(ledger, workflows=[told], who="ann") as client:
        for seed, fault in enumerate(("rate_limit", "reset", "lost_answer", "error_after")):
            google.fault(fault, kind="batchUpdate|values", probability=0.12, count=None, seed=seed)
        await client.start_many(told, [{} for _ in range(count)], ids=[f"r{n}" for n in range(count)])
        await client.work(concurrency=200)
        google.calm()

        records = await ledger.find(Query(limit=1000))
        assert [record.status for record in records] == [Status.DONE] * count
        assert acts == {f"r{n}": 1 for n in range(count)}
        assert all(event.kind != "effect.twice" for event in await ledger.events(limit=100_000))
        await journal_is_sound(ledger)


@pytest.mark.slow
@pytest.mark.timeout(scaled(3600, 300))
async def test_workers_killed_at_random_and_the_book_alone_goes_on(google: Google, book: str, tmp_path: Path) -> None:
    """Nothing but the book, and the files in Drive that it points to, is needed on the next machine."""
    chance, records, sink = random.Random(5), scaled(100, 20), tmp_path / "sink.txt"
    store = f"sheets://{book}?endpoint={google.url}"
    long = "long " * 20_000
    started: list[subprocess.Popen[str]] = []

    def worker() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.sheets.clerk", store, str(sink)]
        started.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None and started[-1].stdout.readline() == "ready\n"
        return started[-1]

    try:
        async with aopen(store, workflows=[clerk], deps=sink) as client:
            data = [{"long": long + str(n)} for n in range(records)]
            await client.start_many("clerk", data, ids=[f"d{n}" for n in range(records)])
        running = worker()
        for _ in range(scaled(12, 2)):
            await SYSTEM.sleep(chance.uniform(0.1, 0.6))
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
            running = worker()
        async with aopen(store, workflows=[clerk], deps=sink) as client:
            while open_ := [record for record in await client.find(limit=1000) if record.status is not Status.DONE]:
                for record in open_:
                    if record.status is Status.NEEDS_APPROVAL:  # three kills in a row hit it between intent and receipt
                        value = f"{record.record_id}/{record.step.removeprefix('step')}"
                        happened = any(line.endswith(f" {value}") for line in lines(sink))
                        await client.resolve(record.record_id, happened=happened, value=value if happened else None)
                    elif record.status is Status.ERROR:
                        assert "ended 3 processes in which it ran alone" in (record.last_error or "")
                        await client.retry(record.record_id)
                await SYSTEM.sleep(0.2)
            for record in await client.find(limit=1000):
                assert long + record.record_id.removeprefix("d") in record.data
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()
    wanted = sorted(f"d{record}/{step}" for record in range(records) for step in range(STEPS))
    assert sorted(line.split(" ", 1)[1] for line in lines(sink)) == wanted


@pytest.mark.parametrize("room", [True, False], ids=["in-drive", "no-room-in-drive"])
async def test_a_value_that_fits_no_cell_is_a_file_in_drive_or_many_cells(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, room: bool
) -> None:
    if not room:
        google.fault("error", kind="drive.files.create", status=403, message=_NO_ROOM, count=None)
    ledger, late = make_ledger(), make_ledger()
    text = dump(["=IMPORTXML(1)", "00123", "1e5", "2026-01-01", "👩‍👩‍👧", 2**53 + 1, "x" * 200_000])
    async with opened(ledger):
        await start_all(ledger, ["a", "b"], data=text)
        width = max(len(str(cell)) for row in await ledger.book.rows(1, Urgency.VIEW) for cell in row)
        assert bool(ledger.replica.files) is room
        assert (width < 10_000) is room
    async with opened(late):
        assert [row.data for row in await late.load(["a", "b"])] == [text, text]
        await beat(late, "w")
        [one, _] = (await take(late, worker="w")).records
        await late.commit([new_settle(one, Done("1", text + " "), await late.now())])
        assert await late.compact()
        assert [row.data for row in await late.load(["a", "b"])] == [text + " ", text]
    async with opened(make_ledger()):
        pass


_NO_ROOM = "Service Accounts do not have storage quota. Leverage shared drives instead."
