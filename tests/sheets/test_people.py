"""What people do to the book, and what the ledger says about it."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import pytest

from quire.errors import LedgerError
from quire.google.budget import Urgency
from quire.ledger.finding import open_ledger
from quire.ledger.sheets.book import HEAD
from quire.ledger.sheets.doctor import changed_state
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Applied, Query
from quire.model.codec import dump
from quire.model.record import Status
from quire.rules.outcome import Done
from quire.testing import ToldClock
from quire.testing.conformance import (
    beat,
    claim,
    intend,
    log,
    new_settle,
    new_start,
    run,
    settle,
    start,
    start_all,
    the,
)
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_faults import insist, opened


async def test_the_address_leads_to_the_ledger(google: Google, book: str, clock: ToldClock) -> None:
    ledger = open_ledger(f"sheets://{book}?endpoint={google.url}", clock)

    await ledger.open()
    try:
        await start(ledger)
        assert (await the(ledger)).record_id == "r"
    finally:
        await ledger.close()


@pytest.mark.parametrize("url", ["sheets://", "sheets://ID?colour=red"])
def test_an_address_that_says_nothing_useful_is_refused(url: str) -> None:
    with pytest.raises(LedgerError, match=r"names no spreadsheet|unknown settings"):
        SheetsLedger(url)


def test_the_address_that_the_browser_shows_leads_to_the_ledger() -> None:
    ledger = open_ledger("https://docs.google.com/spreadsheets/u/0/d/1A-b_C/edit#gid=0")

    assert isinstance(ledger, SheetsLedger) and ledger.url == "sheets://1A-b_C"


async def test_many_open_a_new_book_at_the_same_moment(make_ledger: MakeLedger) -> None:
    ledgers = [make_ledger() for _ in range(6)]
    async with opened(*ledgers):
        for n, ledger in enumerate(ledgers):
            await start(ledger, f"r{n}")
        assert len(await ledgers[0].load([f"r{n}" for n in range(6)])) == 6


async def test_the_book_alone_restores_everything(make_ledger: MakeLedger) -> None:
    ledger, other = make_ledger(), make_ledger()
    async with opened(ledger):
        await beat(ledger)
        await start(ledger, data='"kept"')
        [row] = (await claim(ledger)).records
    async with opened(other):
        assert await the(other) == row
        assert await log(other) == ["started", "claimed"]
        await settle(other, row, Done("1", "{}"))


async def test_a_book_that_is_not_shared_or_not_there_is_named(google: Google, clock: ToldClock) -> None:
    ledger = SheetsLedger(f"sheets://no-such-book?endpoint={google.url}", clock)
    with pytest.raises(LedgerError, match=r"no-such-book.*Check the id, and that the file is shared with"):
        await ledger.open()


async def test_a_copied_book_is_refused_by_name(make_ledger: MakeLedger, google: Google, book: str) -> None:
    """11 (c)."""
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger)
    copy = google.person(book, "copy_book", title="Copy")["id"]

    with pytest.raises(LedgerError, match=f"{copy} is a copy of {book}"):
        await SheetsLedger(f"sheets://{copy}?endpoint={google.url}", ledger.clock).open()


@pytest.mark.parametrize("row", [2, 3, 4])
async def test_a_deleted_journal_row_is_noticed_by_those_who_run_and_those_who_start(
    make_ledger: MakeLedger, google: Google, book: str, row: int
) -> None:
    """11 (a)."""
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        await start(ledger, "b")
        await start(ledger, "c")
        google.person(book, "delete_rows", sheet="journal", at=row, count=1)

        with pytest.raises(LedgerError, match=r"gap|no beginning"):
            await claim(ledger)
        with pytest.raises(LedgerError, match=r"gap|no beginning"):
            await start(ledger, "d")
        with pytest.raises(LedgerError, match=r"gap|no beginning"):
            await late.open()


async def test_the_newest_row_deleted_is_noticed_by_those_who_run(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        google.person(book, "delete_rows", sheet="journal", at=3, count=1)

        with pytest.raises(LedgerError, match="is behind what this process has read"):
            await claim(ledger, worker="w")


async def test_an_edited_cell_of_the_journal_is_noticed(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start(ledger, "a", data='"1000"')
        [*_, row] = await ledger.book.rows(3, Urgency.VIEW)
        google.person(book, "edit", sheet="journal", cell="I3", text=str(row[8]).replace("1000", "9999"))

        with pytest.raises(LedgerError, match=r"row 3 of the journal .* somebody edited it"):
            await late.open()


async def test_a_book_restored_to_an_older_version_is_refused(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """11 (b)."""
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        await start(ledger, "b")
        google.person(book, "restore", versions=1)

        with pytest.raises(LedgerError, match="restored to an older version"):
            await ledger.find(Query())
        with pytest.raises(LedgerError, match="restored to an older version"):
            await claim(ledger)


async def test_rows_inserted_pasted_and_sorted_in_the_journal_do_no_harm(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start_all(ledger, ["a", "b"])
        await start(ledger, "c")
        google.person(book, "insert_rows", sheet="journal", at=2, count=3)
        await start(ledger, "d")
        google.person(book, "paste_rows", sheet="journal", at=6, count=1, to=8)
        await start(ledger, "e")
        google.person(book, "sort", sheet="journal", range="A2:L10", column="E", descending=True)
        google.person(book, "edit", sheet="journal", cell="C1", text="my own heading")
        await start(ledger, "f")
        google.person(book, "rename_sheet", sheet="journal", title="Bob's diary")
        await start(ledger, "g")
        async with opened(late):
            assert [row.record_id for row in await late.find(Query())] == list("abcdefg")


@pytest.mark.parametrize("written", [True, False], ids=["writing", "reading"])
async def test_another_tab_that_is_called_journal_is_not_taken_for_it(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, written: bool
) -> None:
    """People rename the tab, and give its name to one of their own: neither stops anybody."""
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start_all(ledger, ["a", "b"])
        google.person(book, "rename_sheet", sheet="journal", title="my journal")
        google.person(book, "rename_sheet", sheet="state", title="my state")
        for title in ("journal", "state"):
            google.person(book, "add_sheet", title=title)
            google.person(book, "edit", sheet=title, range="A1:B2", values=[["Monday", 1], ["Tuesday", 2]])
        clock.advance(601)
        if written:
            await start(ledger, "c")
            await start(ledger, "d")
        else:
            assert [row.record_id for row in await ledger.find(Query())] == ["a", "b"]
        async with opened(late):
            assert await late.find(Query()) == await ledger.find(Query())
            await start(late, "e")
        assert await ledger.settings_warnings() == [
            "the tab journal is called 'my journal' now; that does no harm",
            "the tab state is called 'my state' now; that does no harm",
        ]
    own = google("GET", f"/v4/spreadsheets/{book}/values/journal!A1:B")["values"]
    assert own == [["Monday", "1"], ["Tuesday", "2"]]


async def test_a_deleted_journal_is_named(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start(ledger)
        google.person(book, "delete_sheet", sheet="journal")

        with pytest.raises(LedgerError, match="tab of the journal was deleted"):
            await ledger.find(Query())
        with pytest.raises(LedgerError, match="the tab of its journal was deleted"):
            await late.open()


async def test_a_head_that_was_taken_away_is_named(make_ledger: MakeLedger, google: Google, book: str) -> None:
    """11 (d)."""
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger)
        [head] = google("GET", f"/v4/spreadsheets/{book}?fields=namedRanges")["namedRanges"]
        assert (head["name"], head["namedRangeId"]) == (HEAD, ledger.replica.last and ledger.replica.last.token)
        body = {"requests": [{"deleteNamedRange": {"namedRangeId": head["namedRangeId"]}}]}
        google("POST", f"/v4/spreadsheets/{book}:batchUpdate", body)

        with pytest.raises(LedgerError, match="named range QUIRE_HEAD"):
            await start(ledger, "b")


async def test_a_ghost_of_the_heads_name_does_not_stop_commits(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        google.fault("ghost_name", count=None)
        for n in range(4):
            await start(ledger, f"b{n}")

        assert len(await ledger.find(Query())) == 5


async def test_a_wrecked_state_tab_does_not_stop_commits_and_is_mended(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """10 (iii)."""
    ledger = make_ledger()
    async with opened(ledger):
        await start_all(ledger, ["a", "b", "c"])
        assert _state(google, book) == [["a", "PENDING"], ["b", "PENDING"], ["c", "PENDING"]]
        google.person(book, "delete_rows", sheet="state", at=2, count=3)

        await start(ledger, "d")
        await beat(ledger)
        await claim(ledger, limit=1)
        await ledger.recover()

        assert _state(google, book) == [["a", "RUNNING"], ["b", "PENDING"], ["c", "PENDING"], ["d", "PENDING"]]
        google.person(book, "delete_sheet", sheet="state")
        await start(ledger, "e")
        await ledger.recover()
        await start(ledger, "f")
        assert [row[0] for row in _state(google, book)] == list("abcdef")


async def test_rows_of_the_state_tab_that_people_moved_are_noticed_by_the_next_write_and_mended(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """10: an update writes no id, so the ids beside it tell."""
    ledger = make_ledger()
    async with opened(ledger):
        await beat(ledger)
        await start_all(ledger, ["a", "b", "c"])
        google.person(book, "move_rows", sheet="state", at=2, count=1, to=5)
        await claim(ledger, limit=1)
        assert [row[0] for row in _state(google, book)] == ["b", "c", "a"]

        await ledger.recover()

        assert _state(google, book) == [["a", "RUNNING"], ["b", "PENDING"], ["c", "PENDING"]]


def _state(google: Google, book: str) -> list[list[str]]:
    found = google("GET", f"/v4/spreadsheets/{book}/values/state!A2:B")
    rows: list[list[str]] = found.get("values", [])
    return rows


@pytest.mark.parametrize(
    "text",
    [
        '=IMPORTXML("http://evil","//a")',
        "00123",
        "1e5",
        "2026-01-01",
        "TRUE",
        "'quoted",
        "👩‍👩‍👧",
        " ",
        "é" * 60_000,
        "+1",
    ],
    ids=range(10),
)
async def test_what_looks_like_something_else_comes_back_as_it_was(
    make_ledger: MakeLedger, google: Google, book: str, text: str
) -> None:
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start(ledger, text[:300], data=dump([text, 2**53 + 1]), dedupe_key=text[:100])
    async with opened(late):
        assert (await the(late, text[:300])).data == dump([text, 2**53 + 1])
    path = f"/v4/spreadsheets/{book}?ranges=state&includeGridData=true"
    found = google("GET", path)["sheets"][0]["data"][0]["rowData"][1]["values"][0]["userEnteredValue"]
    assert found == {"stringValue": text[:300]}


async def test_a_compacted_journal_says_the_same(make_ledger: MakeLedger, google: Google, book: str) -> None:
    """3: also to a process that stood in the middle of the old one."""
    ledger, twin, late = make_ledger(), make_ledger(), make_ledger()
    large = dump("x" * 120_000)
    async with opened(ledger, twin):
        await beat(ledger)
        await start_all(ledger, ["a", "b"], data=large)
        await twin.find(Query())
        [one, two] = (await claim(ledger)).records
        await settle(ledger, one, Done("1", large))
        before = await ledger.find(Query()), await ledger.events(), await ledger.workers()

        assert await ledger.compact()

        assert (await ledger.find(Query()), await ledger.events(), await ledger.workers()) == before
        assert (await twin.find(Query()), await twin.events(), await twin.workers()) == before
        async with opened(late):
            assert (await late.find(Query()), await late.events(), await late.workers()) == before
            await settle(late, two, Done("2", "{}"))
        await start(twin, "c")
        await twin.compact()
        await start(ledger, "d")
        assert [row.record_id for row in await twin.find(Query())] == list("abcd")
        assert ledger.replica.last is not None and ledger.replica.last.generation == 3
        assert [row[0] for row in _state(google, book)] == list("abcd")


async def test_a_compaction_whose_answer_is_lost_and_commits_meanwhile(make_ledger: MakeLedger, google: Google) -> None:
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        for n in range(5):
            await start(ledger, f"r{n}")
        google.fault("lost_answer", kind="batchUpdate", count=2)

        await asyncio.gather(ledger.compact(), start(twin, "x"), start(ledger, "y"))

        assert len(await twin.find(Query())) == len(await ledger.find(Query())) == 7


async def test_a_person_at_the_journal_while_two_processes_work(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """Inserts, moves, sorts and pastes at random: nothing is lost, nothing counts twice, nobody stops."""
    one, two, late = make_ledger(), make_ledger(), make_ledger()
    harmless = ["insert_rows", "sort", "move_rows", "paste_rows"]
    async with opened(one, two):
        for n in range(30):
            ledger = (one, two)[n % 2]
            await start(ledger, f"r{n:02}")
            google.person(book, "random", sheet="journal", rounds=1, seed=n, keep_rows=1, only=harmless)
            [row] = (await claim(ledger, worker=f"w{n}")).records
            await settle(ledger, row, Done("1", "{}"))
        async with opened(late):
            assert [row.record_id for row in await late.find(Query())] == [f"r{n:02}" for n in range(30)]
            for n in range(30):
                assert await log(late, f"r{n:02}") == ["started", "claimed", "done"]


async def test_a_journal_that_has_grown_is_compacted_once_by_whoever_looks(
    make_ledger: MakeLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.ledger.sheets.ledger.COMPACT_CHARACTERS", 2000)
    ledgers = [make_ledger() for _ in range(3)]
    async with opened(*ledgers):
        await start_all(ledgers[0], [f"r{n}" for n in range(20)])
        await asyncio.gather(*(ledger.find(Query()) for ledger in ledgers))

        await asyncio.gather(*(ledger.recover() for ledger in ledgers))

        assert {ledger.replica.last and ledger.replica.last.generation for ledger in ledgers} == {2}
        assert len(await ledgers[2].find(Query())) == 20


async def test_commits_and_compactions_of_several_processes_mix(make_ledger: MakeLedger, google: Google) -> None:
    ledgers = [make_ledger() for _ in range(3)]
    google.fault("lost_answer", kind="batchUpdate", probability=0.2, count=None, seed=3)
    google.fault("reset", kind="batchUpdate", probability=0.2, count=None, seed=4)

    async def work(n: int) -> None:
        for turn in range(6):
            await start(ledgers[n], f"r{n}-{turn}")
            if turn % 2:
                await ledgers[n].compact()

    async with opened(*ledgers):
        await asyncio.gather(*(work(n) for n in range(3)))
        google.calm()

        ids = [f"r{n}-{turn}" for n in range(3) for turn in range(6)]
        for ledger in ledgers:
            assert [row.record_id for row in await ledger.find(Query())] == ids
            for record_id in ids:
                assert await log(ledger, record_id) == ["started"]


async def test_a_restored_book_is_refused_by_a_process_that_has_never_seen_it(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """11 (b): the mark lies where restoring does not reach, and is set before the first effect."""
    ledger = make_ledger()
    async with opened(ledger):
        row = await run(ledger)
        await intend(ledger, row)
    google.person(book, "restore", versions=2)

    with pytest.raises(LedgerError, match=r"ends at entry \d+, but entry \d+ was seen in it"):
        await make_ledger().open()


async def test_a_book_whose_mark_cannot_be_kept_works_all_the_same(make_ledger: MakeLedger, google: Google) -> None:
    google.fault("error", kind="drive", status=403, count=None)
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger)

        assert (await the(ledger)).record_id == "r"


async def test_new_rows_that_people_moved_up_are_found(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        await start(ledger, "a")
        await twin.find(Query())
        await start(ledger, "b")
        google.person(book, "insert_rows", sheet="journal", at=5, count=2)
        google.person(book, "move_rows", sheet="journal", at=4, count=1, to=7)
        google.person(book, "move_rows", sheet="journal", at=3, count=1, to=5)

        await start(twin, "c")

        assert [row.record_id for row in await twin.find(Query())] == list("abc")
        assert [row.record_id for row in await ledger.find(Query())] == list("abc")


async def test_a_process_that_lags_behind_a_compaction_of_a_sorted_journal(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger, twin, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(ledger, twin):
        for n in range(6):
            await start(ledger, f"r{n}")
            if n == 3:
                await twin.find(Query())
        google.person(book, "sort", sheet="journal", range="A2:L8", column="B", descending=True)
        await ledger.find(Query())

        await ledger.compact()

        await start(twin, "x")
        async with opened(late):
            assert (
                len(await late.find(Query())) == len(await twin.find(Query())) == len(await ledger.find(Query())) == 7
            )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
async def test_a_storm_with_a_person_and_stale_reads(
    make_ledger: MakeLedger, google: Google, book: str, seed: int
) -> None:
    """All at once, over three processes: every record once, every line once, all see the same."""
    ledgers, late = [make_ledger() for _ in range(3)], make_ledger()
    chance = random.Random(seed)

    async def work(ledger: SheetsLedger, record_id: str) -> None:
        change = new_start(record_id, await ledger.now())
        await insist(lambda: ledger.commit([change]))
        taken = await insist(lambda: claim(ledger, worker=record_id, limit=1, claim_id=record_id, again=True))
        for row in taken.records:
            end = new_settle(row, Done("1", "{}"), 0.0)
            [verdict] = await insist(partial(ledger.commit, [end]))
            assert isinstance(verdict, Applied)

    async with opened(*ledgers):
        for n, fault in enumerate(("lost_answer", "reset", "error_after", "rate_limit", "stale_read")):
            more = {"versions": 1} if fault == "stale_read" else {}
            google.fault(fault, kind="batchUpdate|values", probability=0.06, count=None, seed=10 * seed + n, **more)
        for n in range(12):
            one, two = chance.choice(ledgers), chance.choice(ledgers)
            await asyncio.gather(work(one, f"a{n:02}"), work(two, f"b{n:02}"))
            only = ["insert_rows", "sort", "move_rows", "paste_rows"]
            google.person(book, "random", sheet="journal", rounds=1, seed=100 * seed + n, keep_rows=1, only=only)
            if n % 5 == 4:
                await insist(chance.choice(ledgers).compact)
        google.calm()
        async with opened(late):
            seen = [await ledger.find(Query(limit=1000)) for ledger in (*ledgers, late)]
            lines = [(event.record_id, event.n) for event in await late.events(limit=10_000)]

    assert all(rows == seen[0] for rows in seen)
    assert [row.status for row in seen[0]] == [Status.DONE] * 24
    assert len(lines) == len(set(lines)) == 3 * 24


async def test_a_row_of_the_tab_state_that_somebody_edited_is_noticed_and_written_anew(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one that no later commit touches; by polls that are made anyway."""
    ledger = make_ledger()
    async with opened(ledger):
        await start_all(ledger, [f"r{n:03}" for n in range(250)])
        google.person(book, "edit", sheet="state", cell="B243", text="DONE")
        google.forget_counters()
        for _ in range(3):
            clock.advance(10)
            await ledger.standing()
        assert google.counters()["kind sheets.spreadsheets.values.batchGetByDataFilter"] == 3
        assert "somebody changed the tab state" in caplog.text
        assert await changed_state(ledger) == ["1 rows of the tab state were changed; the next worker writes it anew"]

        await ledger.recover()

        cells = google("GET", f"/v4/spreadsheets/{book}/values/state!A2:B")["values"]
        assert [row[1] for row in cells] == ["PENDING"] * 250
        caplog.clear()
        for _ in range(4):
            clock.advance(10)
            await ledger.standing()
        assert not caplog.text
