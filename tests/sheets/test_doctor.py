"""What the doctor proves on the book, and what it says when that does not hold."""

from __future__ import annotations

from quire.ledger.sheets.doctor import PAIRS
from quire.testing.conformance import start
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_faults import BATCH, opened


async def test_a_sound_book_proves_itself_by_twenty_racing_pairs(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger)
        google.forget_counters()

        assert await ledger.settings_warnings() == []

        assert google.counters()[f"kind {BATCH}"] == 2 * PAIRS + 3
        assert PAIRS >= 20
        [head] = google("GET", f"/v4/spreadsheets/{book}?fields=namedRanges")["namedRanges"]
        assert head["name"] == "QUIRE_HEAD"
        await start(ledger, "after")


async def test_a_book_on_which_both_of_a_pair_win_is_told(make_ledger: MakeLedger, google: Google) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        google.fault("race", kind=BATCH, contains="deleteNamedRange", count=1)

        [told] = await ledger.settings_warnings()

    assert "of two racing commits 2 were accepted" in told


async def test_what_people_changed_is_named(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        google.person(book, "show_sheet", sheet="journal")
        google.person(book, "edit", sheet="journal", cell="A1", text="epoch")
        google.person(book, "delete_sheet", sheet="state")

        told = "\n".join(await ledger.settings_warnings())

    assert "the tab journal is not hidden" in told
    assert "the header of the journal has drifted" in told
    assert "the tab state is gone" in told


async def test_a_head_that_is_gone_is_named(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        [head] = google("GET", f"/v4/spreadsheets/{book}?fields=namedRanges")["namedRanges"]
        body = {"requests": [{"deleteNamedRange": {"namedRangeId": head["namedRangeId"]}}]}
        google("POST", f"/v4/spreadsheets/{book}:batchUpdate", body)

        [told] = await ledger.settings_warnings()

    assert "the head of the ledger (named range QUIRE_HEAD) is gone" in told
