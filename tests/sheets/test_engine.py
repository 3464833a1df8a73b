"""The engine on a Sheets ledger: whole workflows, what they cost, and what an idle worker costs."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from quire import Act, Retry, Run, Workflow, effect
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.event import first_break
from quire.model.record import Status
from quire.model.trace import last_trace, trace_lines
from quire.rules.outcome import Done, Next
from quire.testing import ToldClock
from quire.testing.conformance import beat, new_settle, settle, start, start_all
from tests.folder.flows import ALL, publish
from tests.sheets.asking import take
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_faults import opened

told = Workflow("told", result=str)
acts: Counter[str] = Counter()


@effect
async def announce(act: Act[Any], whom: str) -> str:
    acts[whom] += 1
    return f"told {whom}"


@told.step(then="second")
async def first(run: Run[dict[str, Any]]) -> None:
    run.data["said"] = await run.once(announce, run.record_id)


@told.step
async def second(run: Run[dict[str, Any]]) -> str:
    return str(run.data["said"])


async def test_a_workflow_with_a_question_and_an_effect_runs_to_its_end(
    google: Google, book: str, clock: ToldClock
) -> None:
    address = f"sheets://{book}?endpoint={google.url}"
    async with Client(SheetsLedger(address, clock), workflows=ALL, clock=clock, who="ann") as client:
        await client.start(publish, {"keyword": "dashboards"}, id="r")
        await client.work()
    async with Client(SheetsLedger(address, clock), workflows=ALL, clock=clock, who="ann") as client:
        await client.answer("r", "approve")
        await client.work()
        record = await client.get("r")

    assert record.status is Status.DONE


async def test_a_failed_try_keeps_its_trace_in_the_book(google: Google, book: str, clock: ToldClock) -> None:
    flow = Workflow("falls")

    @flow.step(retry=Retry(2, first="1h"))
    async def fall(run: Run[dict[str, Any]]) -> None:
        raise KeyError("nope" * 40_000)

    address = f"sheets://{book}?endpoint={google.url}"
    async with Client(SheetsLedger(address, clock), workflows=[flow], clock=clock) as client:
        await client.start(flow, {}, id="r")
        await client.work()
    async with Client(SheetsLedger(address, clock), workflows=[flow], clock=clock) as client:
        record, events = await client.get("r"), await client.events("r")

    failed = last_trace(record, events)
    assert failed is not None
    assert '    raise KeyError("nope" * 40_000)' in trace_lines(failed)
    assert "cut here; it has" in str(record.last_error)
    assert first_break(events) is None


async def test_hundreds_of_transitions_share_one_write(make_ledger: MakeLedger, google: Google) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await beat(ledger, lease=600.0)
        google.forget_counters()
        await start_all(ledger, [f"r{n}" for n in range(200)])
        transitions = 200
        for _ in range(2):
            rows = (await take(ledger, limit=200)).records
            now = await ledger.now()
            verdicts = await ledger.commit([new_settle(row, Next("work", "{}"), now) for row in rows])
            transitions += len(rows) + len(verdicts)
        counted = google.counters()

    assert transitions == 1000
    assert transitions / counted["writes"] >= 100
    assert counted.get("reads", 0) == 0


async def test_a_transition_of_an_idle_ledger_is_one_call(make_ledger: MakeLedger, google: Google) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await beat(ledger, lease=600.0)
        google.forget_counters()
        await start(ledger)
        [row] = (await take(ledger)).records
        await settle(ledger, row, Done("1", "{}"))
        counted = google.counters()

    assert (counted["writes"], counted.get("reads", 0)) == (3, 0)


async def test_an_idle_worker_reads_twelve_times_a_minute_at_the_most(
    google: Google, book: str, clock: ToldClock
) -> None:
    """And writes once a minute at the most: its beats are not written while its lease is long."""
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}", clock)
    async with Client(ledger, workflows=[told], clock=clock, who="ann") as client:
        worker = client.worker()
        running = asyncio.ensure_future(worker.run())
        while not await ledger.workers():
            await SYSTEM.sleep(0.01)
        minutes = 5
        google.forget_counters()
        for _ in range(60 * minutes):
            clock.advance(1)
            await SYSTEM.sleep(0.015)
        counted = google.counters()
        worker.stop()
        clock.advance(60)
        await asyncio.wait_for(running, 20)

    assert counted.get("reads", 0) <= 12 * minutes
    assert counted.get("writes", 0) <= minutes


async def test_a_poll_is_one_read_and_a_commit_is_as_long_with_many_records_as_with_few(
    make_ledger: MakeLedger, google: Google
) -> None:
    ledger = make_ledger()
    lengths = []
    async with opened(ledger):
        for first in (0, 100):
            await start_all(ledger, [f"r{n:05}" for n in range(first, 20 * first + 100)])
            google.forget_counters()
            await ledger.counts()
            assert (google.counters()["reads"], google.counters().get("writes", 0)) == (1, 0)
            before = ledger.transport.sent_bytes
            await start(ledger, f"x{first:05}")
            lengths.append(ledger.transport.sent_bytes - before)
            assert (google.counters()["reads"], google.counters()["writes"]) == (1, 1)
    few, many = lengths
    assert many < 1.02 * few
