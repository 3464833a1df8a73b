"""Google accepts several racing commits on one head, against its word: all agree on the first (protocol 12)."""

from __future__ import annotations

import asyncio
import random

import pytest

from quire.clock import SYSTEM
from quire.errors import LedgerError
from quire.google.budget import Urgency
from quire.ledger.sheets.journal import Log
from quire.ledger.sheets.journal_rows import Entry, accepted_in_order, entries
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Query
from quire.model.side import Setting
from quire.testing import ToldClock
from quire.testing.conformance import beat, intend, log, slot, start, start_all
from tests.sheets.asking import take
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_faults import BATCH, opened


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who lost a race tries again at once: it makes the fight shorter, not easier."""
    monkeypatch.setattr(Log, "pause", lambda self, n: SYSTEM.sleep(0))


async def agree(*ledgers: SheetsLedger) -> None:
    seen = [await ledger.find(Query()) for ledger in ledgers]
    assert all(rows == seen[0] for rows in seen)


@pytest.mark.parametrize("racers", [2, 3, 4, 5])
async def test_of_many_racing_claims_that_google_accepted_each_record_has_one_winner(
    make_ledger: MakeLedger, google: Google, book: str, racers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the others acts: it learns that it came later before its claim is answered. Sorting tells no lie."""
    ledgers, late = [make_ledger() for _ in range(racers)], make_ledger()
    accepted: list[int] = []
    real = Log._landed

    async def told(self: Log, *given: object) -> bool:
        accepted.append(0)
        return await real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Log, "_landed", told)
    async with opened(*ledgers):
        for n, ledger in enumerate(ledgers):
            await beat(ledger, f"w{n}", lease=600.0)
        for round_ in range(2 if racers < 4 else 1):
            ids = [f"r{round_}-{n}" for n in range(racers)]
            await start_all(ledgers[0], ids)
            await asyncio.gather(*(ledger.find(Query()) for ledger in ledgers))
            accepted.clear()
            google.fault("race", kind=BATCH, contains="insertDimension", count=racers - 1)
            google.fault("barrier", kind=BATCH, contains="insertDimension", parties=racers, count=1)

            claims = await asyncio.gather(*(take(ledger, worker=f"w{n}", limit=1) for n, ledger in enumerate(ledgers)))

            google.calm()
            assert len(accepted) > racers  # all were accepted, and those that do not count once more
            assert sorted(row.record_id for claimed in claims for row in claimed.records) == ids
            google.person(book, "sort", sheet="journal", range="A2:M", column="C", descending=bool(round_))
            for ledger, claimed in zip(ledgers, claims, strict=True):
                for row in claimed.records:
                    await intend(ledger, row)
            await agree(*ledgers)
        async with opened(late):
            await agree(late, *ledgers)
            for n in range(racers):
                assert await log(late, f"r0-{n}") == ["started", "claimed", "effect.intended"]
        await ledgers[-1].recover()  # the journal begins anew without what does not count
        assert not ledgers[-1].replica.void
        await agree(*ledgers)
        assert not any(ledger.replica.void for ledger in ledgers)


async def test_a_later_commit_that_stands_further_down_is_still_the_later(
    make_ledger: MakeLedger, google: Google
) -> None:
    """Its writer knew of a void row, and so of another end: by their places alone the wrong one would count."""
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        for n, ledger in enumerate((one, two)):
            await beat(ledger, f"w{n}", lease=600.0)
        await start_all(one, ["r1", "r2"])
        await agree(one, two)
        await take(one, slot(cap=1), worker="w0")
        google.fault("race", kind=BATCH, contains="insertDimension", count=3)
        assert not (await take(two, slot(cap=1), worker="w1")).records
        assert two.replica.void and not one.replica.void

        [row] = (await take(one, worker="w0")).records  # it takes the void row's place for the end
        second = (await take(two, worker="w1")).records

        google.calm()
        assert (row.record_id, second) == ("r2", ())
        async with opened(late):
            await agree(one, two, late)
            assert await log(late, "r2") == ["started", "claimed"]


@pytest.mark.parametrize("first", ["compaction", "start"])
async def test_a_compaction_that_races_a_commit_loses_nothing_of_it(
    make_ledger: MakeLedger, google: Google, first: str
) -> None:
    """A snapshot that came second says what was before the first; one that came first is followed by it, anew."""
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        await start(one, "a")
        await agree(one, two)
        if first == "start":
            await start(one, "b")
        else:
            assert await one.compact()
        google.fault("race", kind=BATCH, contains="insertDimension", count=1)
        if first == "start":
            assert await two.compact()
        else:
            await start(two, "b")
        google.calm()
        await start(one, "c")
        async with opened(late):
            await agree(one, two, late)
            assert [row.record_id for row in await late.find(Query())] == ["a", "b", "c"]
            await start(late, "d")
        await agree(one, two)


def rival(token: str, accepted: str, position: int) -> Entry:
    return Entry(1, 5, token, "p", token, "0.0", "", False, "", position, accepted)


def test_the_order_is_that_of_the_book_wherever_the_rows_stand() -> None:
    """Through commits that followed one of them; by their places only where nothing is told."""
    a, b, c = rival("a", "p", 9), rival("b", "next", 2), rival("c", "b", 30)
    follows = Entry(1, 6, "next", "a", "n", "0.0", "", False, "", 3, "a")
    known = {entry.token: entry for entry in (a, b, c, follows)}
    chance = random.Random(3)
    for _ in range(6):
        rivals = [a, b, c]
        chance.shuffle(rivals)
        assert accepted_in_order(rivals, known) == [a, b, c]
    assert accepted_in_order([a._replace(accepted=""), c._replace(accepted="")], {}) == [
        c._replace(accepted=""),
        a._replace(accepted=""),
    ]


async def test_a_book_of_an_earlier_version_gets_the_column_that_it_lacks(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger, later = make_ledger(), make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        google.person(book, "delete_columns", sheet="journal", at=13, count=1)
        await start(ledger, "b")
        assert ledger.book.narrow
    async with opened(later):
        assert not later.book.narrow
        await start(later, "c")
        await start(later, "d")
        rows = entries(await later.book.rows(1, Urgency.VIEW), 1)
        assert [bool(entry.accepted) for entry in rows] == [False, False, False, False, True]
        assert len(await later.find(Query())) == 4


@pytest.mark.parametrize("behind", [2, 3, 6])
@pytest.mark.parametrize("compacted", [False, True], ids=["same-generation", "compacted-since"])
async def test_a_commit_that_was_accepted_on_a_head_several_entries_old_does_no_harm(
    make_ledger: MakeLedger, google: Google, behind: int, compacted: bool
) -> None:
    """It does not count. The head stands on it all the same, and others go on from there."""
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        await start_all(one, [f"long{n}" for n in range(20)])
        await agree(one, two)
        for n in range(behind):
            await start(one, f"a{n}")
            if compacted and not n:
                assert await one.compact()
        google.fault("race", kind=BATCH, contains="insertDimension", count=1)
        await start(two, "stale")
        assert google("GET", "/emulator/faults")["faults"][0]["left"] == 0  # it was accepted
        google.calm()
        assert await make_ledger().repair() == []
        for ledger in (one, two):
            warnings = await ledger.settings_warnings()
            assert all("rows of the tab state" in line or "they are void" in line for line in warnings), warnings
        await start(one, "b")
        await start(two, "c")
        async with opened(late):
            await agree(one, two, late)
            found = {row.record_id for row in await late.find(Query())}
            assert found >= {*(f"a{n}" for n in range(behind)), "stale", "b", "c"} and len(found) == behind + 23
            await late.recover()  # the journal begins anew without what does not count
            assert not late.replica.void
        await start(one, "d")
        await agree(one, two)


async def test_a_compaction_that_was_accepted_on_a_head_several_entries_old_loses_nothing(
    make_ledger: MakeLedger, google: Google
) -> None:
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        await stale_compaction(google, one, two, compacted=False)
        await start(one, "c")
        async with opened(late):
            await agree(one, two, late)
            assert len(await late.find(Query())) == 14
            await late.recover()
            assert not late.replica.void
        await start(two, "d")
        await agree(one, two)


async def test_a_compaction_that_does_not_know_of_a_later_one_is_mended_from_what_a_process_knew(
    make_ledger: MakeLedger, google: Google
) -> None:
    """It removes rows that it does not know. Whoever has read them stops, and the doctor begins anew with them."""
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        with pytest.raises(LedgerError, match="there is a gap"):
            await stale_compaction(google, one, two, compacted=True)
        before = list(one.replica.tables.all_records.values())
        with pytest.raises(LedgerError, match="there is a gap"):
            await one.find(Query())
    assert any("nothing is lost" in line for line in await make_ledger().repair())
    async with opened(late):
        assert len(before) == 13 and list(late.replica.tables.all_records.values()) == before
        await start(late, "more")


async def stale_compaction(google: Google, one: SheetsLedger, two: SheetsLedger, *, compacted: bool) -> None:
    for n in range(5):
        await start(one, f"a{n}")
    await agree(one, two)
    if compacted:
        assert await one.compact()
    for n in range(8):
        await start(one, f"b{n}")
    google.fault("race", kind=BATCH, contains="insertDimension", count=1)
    try:
        await two.compact()
    finally:
        assert google("GET", "/emulator/faults")["faults"][0]["left"] == 0  # it was accepted
        google.calm()


async def test_a_rescue_is_used_where_the_head_stands_on_an_entry_that_does_not_count(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock
) -> None:
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(one, two):
        await agree(one, two)
        for n in range(3):
            await start(one, f"a{n}")
        google.fault("race", kind=BATCH, contains="insertDimension", count=1)
        claimed = await two.keep(Setting("note", "1", 0))
        google.calm()
        assert claimed
        before = await one.find(Query())
        google.person(book, "edit", sheet="journal", cell="I3", text="{}")
        clock.advance(601)
        with pytest.raises(LedgerError, match="somebody edited it"):
            await one.find(Query())
    assert any("nothing is lost" in line for line in await make_ledger().repair())
    async with opened(late):
        assert await late.find(Query()) == before
