"""Rows of the journal that people change while a process runs: it looks at them in reads that it makes anyway."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from quire.clock import SYSTEM
from quire.errors import LedgerError
from quire.ledger.sheets.journal_guard import Seen
from quire.ledger.sheets.journal_rows import JournalDamaged, cells, entries, new_entry
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Query
from quire.testing import ToldClock
from quire.testing.conformance import beat, start
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_faults import BATCH, opened

READ = "kind sheets.spreadsheets.values.batchGetByDataFilter"

DAMAGES: dict[str, dict[str, Any]] = {
    "a cell typed over": {"do": "edit", "cell": "C3", "text": "oops"},
    "a body typed over": {"do": "edit", "cell": "I4", "text": "{}"},
    "a cell cleared": {"do": "clear", "range": "A3:A3"},
    "a column inserted": {"do": "insert_columns", "at": 1, "count": 1},
    "a column moved": {"do": "move_columns", "at": 1, "count": 1, "to": 4},
    "a column deleted": {"do": "delete_columns", "at": 2, "count": 1},
    "some columns sorted, with the header": {
        "do": "sort",
        "range": "A1:G7",
        "column": "B",
        "descending": True,
    },
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_running_process_notices_what_people_did_above_its_last_row_and_the_doctor_mends_it(
    make_ledger: MakeLedger, google: Google, book: str, damage: str
) -> None:
    """Also if it has written since, so that the end of the journal is as it should be."""
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        for n in range(5):
            await start(ledger, f"a{n}")
        google.person(book, sheet="journal", **DAMAGES[damage])
        for n in range(3):
            await start(ledger, f"b{n}")

        with pytest.raises(JournalDamaged):
            await ledger.find(Query())
        with pytest.raises(JournalDamaged):
            await start(ledger, "more")
    with pytest.raises(LedgerError):
        await late.open()

    assert "nothing is lost" in (await make_ledger().repair())[-1]

    async with opened(late):
        await start(late, "more")
        assert len(await late.find(Query())) == 9


async def test_a_worker_that_only_writes_looks_all_the_same(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await beat(ledger, "w")
        await start(ledger, "a")
        google.person(book, "edit", sheet="journal", cell="I3", text="{}")
        clock.advance(10)

        found = await asyncio.gather(start(ledger, "b"), ledger.recover(), return_exceptions=True)

        assert any(isinstance(error, JournalDamaged) for error in found)


async def test_a_long_journal_is_looked_at_in_turn_while_it_grows(
    make_ledger: MakeLedger, google: Google, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.ledger.sheets.journal_guard.PART_ROWS", 4)
    ledger = make_ledger()
    async with opened(ledger):
        for n in range(20):
            await start(ledger, f"a{n}")
        await ledger.find(Query())
        google.person(book, "edit", sheet="journal", cell="I3", text="{}")
        looks = 0
        while ledger.log.broken is None and looks < 20:
            looks += 1
            await start(ledger, f"b{looks}")
            with suppress(JournalDamaged):
                await ledger.find(Query())

    assert looks <= 8  # a turn: 21 rows, and one more with each look


@pytest.mark.parametrize("person", ["nobody", "sort", "insert_rows", "paste_rows"])
async def test_looking_costs_no_request_and_moved_rows_cost_one(
    make_ledger: MakeLedger, google: Google, book: str, person: str
) -> None:
    """Rows that commits push further down afterwards cost none."""
    given: dict[str, Any] = {
        "sort": {"range": "A2:M7", "column": "B", "descending": True},
        "insert_rows": {"at": 3, "count": 5},
        "paste_rows": {"at": 2, "count": 2, "to": 5},
    }
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger):
        for n in range(5):
            await start(ledger, f"a{n}")
        async with opened(twin):
            if person != "nobody":
                google.person(book, person, sheet="journal", **given[person])
                await ledger.find(Query())
                await twin.find(Query())
            google.forget_counters()
            for n in range(4):
                await start(ledger, f"b{n}")
                await twin.find(Query())
                await ledger.find(Query())

            assert google.counters()[READ] == 8


async def test_a_commit_on_its_way_when_the_damage_is_found_is_rescued_too(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        await start(ledger, "b")
        google.person(book, "edit", sheet="journal", cell="I3", text="{}")
        google.fault("barrier", kind=BATCH, contains="insertDimension", parties=2, timeout_seconds=60)
        held = asyncio.ensure_future(start(ledger, "c"))
        while not google("GET", "/emulator/faults")["faults"][0]["hits"]:
            await SYSTEM.sleep(0.005)
        with pytest.raises(JournalDamaged):
            await ledger.find(Query())
        google.calm()
        await held

    assert "nothing is lost" in (await make_ledger().repair())[-1]

    async with opened(late):
        assert [row.record_id for row in await late.find(Query())] == ["a", "b", "c"]


@pytest.mark.parametrize("last", ["who knows all", "who lags behind"])
async def test_a_rescue_of_a_process_that_lags_behind_takes_the_place_of_no_other(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, last: str
) -> None:
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        await start(ledger, "a")
        await twin.find(Query())
        await start(ledger, "b")
        google.person(book, "edit", sheet="journal", cell="I3", text="{}")
        clock.advance(601)
        for one in (twin, ledger) if last == "who knows all" else (ledger, twin):
            with pytest.raises(JournalDamaged):
                await one.find(Query())

    assert "nothing is lost" in (await make_ledger().repair())[-1]


async def test_what_is_wrong_with_a_row_is_told_without_what_it_says(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """A column is gone, so that the body, with what is secret in it, stands where the format was."""
    ledger: SheetsLedger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a", data='{"password":"hunter2hunter2"}')
        google.person(book, "delete_columns", sheet="journal", at=2, count=1)

        with pytest.raises(JournalDamaged) as told:
            await ledger.find(Query())

        assert "hunter2" not in str(told.value)


def _rows(*bodies: str) -> list[list[str]]:
    entry = None
    rows = []
    for body in bodies:
        entry = new_entry(entry, commit_id="c", at=1.0, worker="w", body=body, snapshot=entry is None)
        rows += cells(entry)
    return rows


def test_a_look_takes_no_more_characters_than_it_may_and_one_row_at_least() -> None:
    seen = Seen()
    seen.learn([["header"], *_rows("x" * 40_000, "x" * 40_000, "x" * 150_000, "x", "x")])

    assert [seen.part() for _ in range(5)] == [(2, 2), (3, 3), (4, 4), (5, 6), (2, 2)]


def test_entries_that_landed_are_known_where_they_stand() -> None:
    header, *rows = [["header"], *_rows("1", "2", "3")]
    seen = Seen()
    seen.learn([header, rows[0], rows[2]])  # people moved the newest up
    [between] = entries([rows[1]], 3)
    seen.add(between)
    assert not seen.differ((2, 4), [header], rows)
    assert seen.differ((2, 4), [header], rows[:2])
    assert seen.differ((2, 4), [["", *header]], rows)

    [snapshot] = entries(_rows("x" * 250_000), 2)
    seen.add(snapshot)
    assert not seen.differ((2, 3), [header], cells(snapshot))
