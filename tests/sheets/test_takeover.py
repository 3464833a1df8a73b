"""Who may be taken for dead on a Sheets ledger, and how many may write (protocol 9)."""

from __future__ import annotations

import asyncio

import pytest

from quire.client.client import Client
from quire.errors import Crowded
from quire.ledger import process
from quire.ledger.sheets.ledger import SheetsLedger
from quire.ledger.sheets.takeover import Witness
from quire.model.change import Holding
from quire.model.row import replace
from quire.model.side import Worker
from quire.testing import ToldClock
from quire.testing.conformance import a_worker, beat, run, start, the
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_engine import told
from tests.sheets.test_faults import opened


def silent(lease: float = 600.0, expires_at: float = 600.0) -> Worker:
    return replace(a_worker("silent", lease), expires_at=expires_at)


def test_silence_is_counted_on_this_process_s_own_clock() -> None:
    clock = ToldClock(0.0)
    witness = Witness(clock)
    witness.landed(0.0, None)
    witness.saw(["silent"], 0.0, live=True)
    clock.advance(599)
    assert not witness.judge(10_000.0, None)(silent())
    clock.advance(1)
    assert witness.judge(600.0, None)(silent())


def test_a_process_that_came_later_waits_a_minute_more_by_google_s_clock() -> None:
    clock = ToldClock(0.0)
    witness = Witness(clock)
    witness.saw(["silent"], 0.0, live=False)
    witness.landed(0.0, None)
    clock.advance(60)
    assert not witness.judge(660.0, None)(silent())
    assert witness.judge(661.0, None)(silent())


def test_who_was_not_able_to_write_for_a_minute_takes_nobody_for_dead() -> None:
    clock = ToldClock(0.0)
    witness = Witness(clock)
    assert not witness.judge(10_000.0, None)(silent())
    witness.landed(5.0, None)
    clock.advance(59)
    assert not witness.judge(10_000.0, None)(silent())
    clock.advance(1)
    assert witness.judge(10_000.0, None)(silent())
    # Trouble after that commit: it proves nothing any more, until another has landed a minute ago.
    assert not witness.judge(10_000.0, 6.0)(silent())
    witness.landed(7.0, 6.0)
    assert not witness.judge(10_000.0, 6.0)(silent())
    clock.advance(60)
    assert witness.judge(10_000.0, 6.0)(silent())


def test_somebody_else_s_row_after_the_lease_proves_that_writing_was_possible() -> None:
    witness = Witness(ToldClock(0.0))
    witness.saw(["other"], 610.0, live=False)
    assert not witness.judge(669.0, None)(silent())
    assert witness.judge(670.0, None)(silent())
    early = Witness(ToldClock(0.0))
    early.saw(["other"], 590.0, live=False)  # the silent one had no need to write by then
    early.saw(["silent"], 620.0, live=False)
    assert not early.judge(10_000.0, None)(silent())


async def test_after_an_outage_a_minute_of_writing_comes_before_any_takeover(
    make_ledger: MakeLedger, google: Google, clock: ToldClock
) -> None:
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        await beat(ledger, "w", lease=600.0)
        row = await run(ledger, worker="w")
        await start(twin, "by-the-twin")
        clock.advance(1000)
        google.fault("rate_limit", count=1)
        assert (await twin.recover()).workers == 0
        await start(twin, "after-the-outage")
        assert (await twin.recover()).workers == 0
        clock.advance(60)

        assert (await twin.recover()).workers == 1
        assert (await the(twin)).version == row.version + 1


def another(n: int) -> Worker:
    return replace(a_worker(f"w{n}", 600.0), pid=100 + n)


async def test_the_fifth_process_waits_for_one_of_four_to_end(make_ledger: MakeLedger, clock: ToldClock) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        for n in range(4):
            await ledger.beat(another(n), Holding({}, ()))
        with pytest.raises(Crowded, match=r"4 worker processes write .* this one waits"):
            await ledger.beat(another(4), Holding({}, ()))
        await ledger.beat(another(2), Holding({}, ()))  # who is known beats on
        await ledger.beat(replace(a_worker("second", 600.0), pid=101), Holding({}, ()))  # no more processes than before

        await ledger.farewell("w0")

        await ledger.beat(another(4), Holding({}, ()))
        with pytest.raises(Crowded):
            await ledger.beat(replace(another(0), worker_id="again"), Holding({}, ()))


async def test_a_worker_that_waits_for_its_turn_gets_it(google: Google, book: str, clock: ToldClock) -> None:
    """It looks for dead ones meanwhile, and begins when there is room."""
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}", clock)
    async with Client(ledger, workflows=[told], clock=clock, who="ann") as client:
        here = replace(a_worker("dead", 600.0), host=process.host(), boot_id=process.identity(), pid=2**22 + 1)
        for n in range(3):
            await ledger.beat(another(n), Holding({}, ()))
        await ledger.beat(replace(here, boot_id=process.identity().rpartition(" ")[0] + " 1"), Holding({}, ()))
        worker = client.worker()
        running = asyncio.ensure_future(worker.run(until_idle=True))
        while not running.done():
            await asyncio.wait({running}, timeout=0.05)
            clock.advance(10)
        await running

    rows = {row.worker_id: row.closed for row in ledger.replica.tables.all_workers.values()}
    assert rows["dead"] is not None
    assert rows["w0"] is None
