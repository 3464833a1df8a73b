"""What goes wrong between the ledger and Google, over HTTP: nothing is lost, nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import pytest

from quire.errors import LedgerUnavailable
from quire.google.budget import Urgency
from quire.ledger.base import Ledger
from quire.ledger.sheets.journal_rows import entries
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Applied, Query
from quire.model.record import Status
from quire.model.side import Setting
from quire.rules.outcome import Done
from quire.testing import ToldClock
from quire.testing.conformance import (
    beat,
    claim,
    commit,
    log,
    new_settle,
    new_start,
    order,
    run,
    settle,
    slot,
    start,
    start_all,
    the,
)
from tests.sheets.asking import take
from tests.sheets.conftest import Google, MakeLedger

T = TypeVar("T")

BATCH = "sheets.spreadsheets.batchUpdate"


@asynccontextmanager
async def opened(*ledgers: SheetsLedger) -> AsyncIterator[None]:
    await asyncio.gather(*(ledger.open() for ledger in ledgers))
    try:
        yield
    finally:
        await asyncio.gather(*(ledger.close() for ledger in ledgers))


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """As the engine does: the same again until there is an answer."""
    while True:
        try:
            return await call()
        except LedgerUnavailable:
            continue


async def journal(ledger: SheetsLedger) -> list[int]:
    """The sequence numbers in the book."""
    return sorted(entry.seq for entry in entries(await ledger.book.rows(1, Urgency.VIEW), 1))


@pytest.mark.parametrize(
    "fault",
    [
        {"fault": "reset"},
        {"fault": "error", "status": 503},
        {"fault": "rate_limit"},
        {"fault": "lost_answer"},
        {"fault": "error_after", "status": 500},
    ],
    ids=lambda fault: fault["fault"],
)
async def test_losing_every_commit_in_turn_changes_nothing(
    make_ledger: MakeLedger, google: Google, fault: dict[str, Any]
) -> None:
    """13: whether it was lost before or after it landed."""
    ledger = make_ledger()
    async with opened(ledger):
        for nth in range(6):
            record_id = f"r{nth}"
            google.fault(**fault, kind=BATCH, skip=nth, count=1)

            await beat(ledger, f"w{nth}")
            await start(ledger, record_id)
            [row] = (await claim(ledger, worker=f"w{nth}")).records
            assert isinstance(await settle(ledger, row, Done("1", "{}")), Applied)
            assert await ledger.keep(Setting(f"s{nth}", "1", 0))
            await order(ledger, "pause", "other")
            google.calm()

            assert await log(ledger, record_id) == ["started", "claimed", "done"]
        seqs = await journal(ledger)
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) == 1 + 6 * 6


async def test_an_answer_that_stays_lost_is_told_and_settled_before_anything_else(
    make_ledger: MakeLedger, google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.ledger.sheets.journal.PATIENCE", 0.0)
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        change = new_start("r", await ledger.now(), change_id="first")
        google.fault("lost_answer", kind=BATCH, count=1)
        with pytest.raises(LedgerUnavailable):
            await commit(ledger, change)
        await start(twin, "other")

        verdict = await commit(ledger, change)

        assert isinstance(verdict, Applied) and verdict.again
        assert await log(ledger) == ["started"]


async def test_a_stale_read_is_no_verdict_on_a_lost_answer(make_ledger: MakeLedger, google: Google) -> None:
    """13 (a)."""
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        google.fault("lost_answer", kind=BATCH, count=1)
        google.fault("stale_read", versions=1, count=2)

        await start(ledger, "b")

        assert await log(ledger, "b") == ["started"]
        assert await journal(ledger) == [1, 2, 3]


async def test_a_read_that_lags_behind_is_not_taken_for_a_restored_book(
    make_ledger: MakeLedger, google: Google
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start_all(ledger, ["a"])
        await start_all(ledger, ["b"])
        google.fault("stale_read", versions=1, count=3)

        assert len(await ledger.find(Query())) == 2


async def test_eight_processes_at_a_barrier_never_exceed_a_cap(make_ledger: MakeLedger, google: Google) -> None:
    ledgers = [make_ledger() for _ in range(8)]
    async with opened(*ledgers):
        for n, ledger in enumerate(ledgers):
            await beat(ledger, f"w{n}")
        await start_all(ledgers[0], [f"r{n}" for n in range(40)])
        await asyncio.gather(*(ledger.find(Query()) for ledger in ledgers))
        google.fault("barrier", kind=BATCH, parties=8, count=1)

        claims = await asyncio.gather(*(take(ledger, slot(cap=5), worker=f"w{n}") for n, ledger in enumerate(ledgers)))

        assert sum(len(claimed.records) for claimed in claims) == 5


async def test_of_two_commits_that_google_accepted_by_mistake_the_first_counts(
    make_ledger: MakeLedger, google: Google
) -> None:
    """12."""
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        await start(one, "r")
        await beat(one, "w1")
        await beat(two, "w2")
        await asyncio.gather(one.find(Query()), two.find(Query()))
        [first] = (await take(one, worker="w1")).records
        google.fault("race", kind=BATCH, count=1)

        second = (await take(two, worker="w2")).records

        assert second == ()
        assert await the(two) == await the(one) == first
        await start(one, "after")
        await start(two, "and-after")
        async with opened(late):
            rows = await late.load(["r", "after", "and-after"])
            assert [row.record_id for row in rows] == ["r", "after", "and-after"]
            assert rows[0] == first
            await start(late, "last")
        assert len(await one.find(Query())) == 4


async def test_a_storm_while_records_run(make_ledger: MakeLedger, google: Google) -> None:
    """429s, resets, 5xx and lost answers: every record ends, every entry stands once, no line twice."""
    ledgers = [make_ledger() for _ in range(3)]
    ids = [f"r{n:02}" for n in range(60)]

    async def work(ledger: Ledger, worker: str) -> None:
        empty = 0
        turn = 0
        while empty < 2:
            turn += 1
            claim_id = f"{worker}-{turn}"
            rows = (await insist(partial(claim, ledger, worker=worker, limit=7, claim_id=claim_id, again=True))).records
            empty = 0 if rows else empty + 1
            changes = [new_settle(row, Done("1", "{}"), await ledger.now()) for row in rows]
            for verdict in await insist(partial(ledger.commit, changes)):
                assert isinstance(verdict, Applied)

    async with opened(*ledgers):
        await start_all(ledgers[0], ids)
        for n, ledger in enumerate(ledgers):
            await beat(ledger, f"w{n}")
        for seed, fault in enumerate(("rate_limit", "reset", "error", "lost_answer", "error_after")):
            google.fault(fault, probability=0.08, count=None, seed=seed)

        await asyncio.gather(*(work(ledger, f"w{n}") for n, ledger in enumerate(ledgers)))

        google.calm()
        assert {row.status for row in await ledgers[0].find(Query())} == {Status.DONE}
        for record_id in ids:
            assert await log(ledgers[1], record_id) == ["started", "claimed", "done"]
        seqs = await journal(ledgers[2])
        assert seqs == list(range(1, len(seqs) + 1))


async def test_after_an_outage_nobody_is_taken_for_dead(
    make_ledger: MakeLedger, google: Google, clock: ToldClock
) -> None:
    """9."""
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        await run(ledger)
        clock.advance(100)
        google.fault("rate_limit", count=1)

        recovered = await twin.recover()
        assert recovered.workers == 0
        assert (await ledger.recover()).workers == 1


async def test_quotas_of_google_are_kept(google: Google, book: str, clock: ToldClock) -> None:
    """With the real limits on, and a small one to see it: no call is refused."""
    google("POST", "/emulator/settings", {"quotas": {"per_user": 1000, "per_project": 1000}})
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}&quota=1000&user=somebody", clock)
    google.forget_counters()
    async with opened(ledger):
        for n in range(10):
            await start(ledger, f"r{n}")
    assert "refused by quota" not in google.counters()
