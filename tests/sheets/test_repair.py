"""What the doctor says and mends, and what it leaves to a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

from quire.client.client import Client
from quire.clock import SYSTEM, new_id
from quire.errors import LedgerError
from quire.google.budget import Urgency
from quire.ledger.sheets.journal_rows import cells, new_entry
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Query
from quire.model.codec import dump
from quire.model.receipt import Stage
from quire.model.record import Status
from quire.model.row import field_values, replace
from quire.rules.outcome import Done
from quire.surfaces.cli import cli
from quire.testing import ToldClock
from quire.testing.conformance import beat, intend, new_settle, run, start, start_all
from tests.sheets.asking import take
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_engine import acts, told
from tests.sheets.test_faults import opened

Doctor = Callable[..., Result]


@pytest.fixture
def doctor(google: Google, book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """``quire doctor`` on the book."""
    monkeypatch.chdir(tmp_path)

    def call(*options: str, verb: str = "doctor", ledger: str = book) -> Result:
        url = f"sheets://{ledger}?endpoint={google.url}"
        return CliRunner().invoke(cli, [verb, "--ledger", url, *options])

    return call


USUAL = [
    (
        {"kind": "sheets", "status": 403, "message": "The caller does not have permission"},
        ["Share the file with quire as an editor"],
    ),
    ({"kind": "sheets", "status": 404, "message": "Requested entity was not found."}, ["Check the id", "shared with"]),
    (
        {"kind": "sheets", "status": 403, "message": "Request had insufficient authentication scopes."},
        ["lack a scope", "https://www.googleapis.com/auth/spreadsheets"],
    ),
    (
        {"kind": "drive.files.create", "status": 403, "message": "Service Accounts do not have storage quota."},
        ["no storage of its own", "shared drive", "stand in the journal"],
    ),
    (
        {"kind": "drive", "status": 403, "message": "Request had insufficient authentication scopes."},
        ["lack a scope", "https://www.googleapis.com/auth/drive", "restored to an older version"],
    ),
    ({"kind": "sheets", "status": 401, "message": "Request had invalid credentials."}, ["Sign in again"]),
]


@pytest.mark.parametrize(("fault", "words"), USUAL, ids=["shared", "missing", "scope", "storage", "drive", "signed-in"])
def test_the_doctor_names_the_cause_of_every_usual_failure_and_its_remedy(
    google: Google, doctor: Doctor, fault: dict[str, object], words: list[str]
) -> None:
    google.fault("error", count=None, **fault)

    told_ = doctor()

    for word in words:
        assert word in told_.output
    assert "Traceback" not in told_.output
    assert told_.exit_code == (3 if fault["kind"] == "sheets" else 0)


def test_the_doctor_names_a_folder_that_is_not_shared(
    google: Google, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_FOLDER", f"drive://nowhere?endpoint={google.url}")

    told_ = doctor()

    assert told_.exit_code == 3
    assert "drive://nowhere" in told_.output and "Check the id, and that the file is shared with quire" in told_.output


def test_the_doctor_warns_that_viewers_can_read_the_key_until_it_is_in_a_file(
    google: Google, book: str, doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = google.new_book()
    assert "whoever may view it, viewers too, can answer questions as anybody" in " ".join(doctor().output.split())
    key = "1f" * 32
    (tmp_path / "keys.json").write_text(json.dumps({"f1": key}), encoding="utf-8")
    monkeypatch.setenv("QUIRE_KEYRING", str(tmp_path / "keys.json"))

    told_ = [doctor().output, doctor(ledger=other).output]

    assert all("whoever may view" not in " ".join(text.split()) for text in told_)
    cells_ = json.dumps([google("GET", f"/v4/spreadsheets/{name}/values/journal")["values"] for name in (book, other)])
    assert "keyring" in cells_ and key not in cells_


async def test_a_drifted_header_and_open_doors_are_mended(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger)
    google.person(book, "show_sheet", sheet="journal")
    google.person(book, "edit", sheet="journal", cell="A1", text="epoch")

    done = await make_ledger().repair()

    assert done == ["the tab journal is hidden again", "the header of the journal reads as it should again"]
    assert await make_ledger().repair() == []
    async with opened(ledger):
        assert await ledger.settings_warnings() == []


@pytest.mark.parametrize("way", ["gone", "moved"])
async def test_a_head_that_people_took_away_is_put_back(
    make_ledger: MakeLedger, google: Google, book: str, way: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        [head] = google("GET", f"/v4/spreadsheets/{book}?fields=namedRanges")["namedRanges"]
        requests = [{"deleteNamedRange": {"namedRangeId": head["namedRangeId"]}}]
        if way == "moved":
            requests.append({"addNamedRange": {"namedRange": {**head, "namedRangeId": "mine", "name": "MINE"}}})
        google("POST", f"/v4/spreadsheets/{book}:batchUpdate", {"requests": requests})
        with pytest.raises(LedgerError, match="quire doctor --repair"):
            await start(ledger, "b")

    assert await make_ledger().repair() == ["the head was gone and stands on the journal's last entry (2) again"]

    late = make_ledger()
    async with opened(late):
        await start(late, "b")
        assert [row.record_id for row in await late.find(Query())] == ["a", "b"]


@pytest.mark.parametrize("damage", ["edited", "deleted", "newest-deleted"])
async def test_a_damaged_journal_begins_anew_with_what_a_process_knew(
    make_ledger: MakeLedger, google: Google, book: str, damage: str, clock: ToldClock
) -> None:
    """The process stops, and leaves what it knew; the doctor uses that only if the head says that it is all."""
    ledger = make_ledger()
    async with opened(ledger):
        await start_all(ledger, ["a"], data=dump("x" * 60_000))
        for n in range(4):
            await start(ledger, f"b{n}")
        before = await ledger.find(Query())
        match damage:
            case "edited":
                google.person(book, "edit", sheet="journal", cell="I4", text="{}")
            case "deleted":
                google.person(book, "delete_rows", sheet="journal", at=4, count=1)
            case _:
                google.person(book, "delete_rows", sheet="journal", at=7, count=1)
        clock.advance(601)
        with pytest.raises(LedgerError):
            await ledger.find(Query())
    late = make_ledger()
    if damage != "newest-deleted":
        with pytest.raises(LedgerError):
            await late.open()

    [done] = [line for line in await make_ledger().repair() if "begins anew" in line]

    assert "nothing is lost" in done
    async with opened(late):
        assert await late.find(Query()) == before
        await start(late, "more")


async def test_a_rescue_of_a_process_that_lagged_behind_is_not_used(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock
) -> None:
    ledger, twin = make_ledger(), make_ledger()
    async with opened(ledger, twin):
        await start(ledger, "a")
        await twin.find(Query())
        await start(ledger, "b")
        google.person(book, "edit", sheet="journal", cell="I3", text="{}")
        clock.advance(601)
        with pytest.raises(LedgerError):
            await twin.find(Query())

        with pytest.raises(LedgerError, match=r"rescue that ends at entry 2.*stands elsewhere"):
            await make_ledger().repair()


async def test_nobody_left_a_rescue_and_nothing_is_guessed(make_ledger: MakeLedger, google: Google, book: str) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await start(ledger, "a")
        await start(ledger, "b")
    google.person(book, "delete_rows", sheet="journal", at=3, count=1)

    with pytest.raises(LedgerError, match=r"No process that had read it all has left a rescue; restore the book"):
        await make_ledger().repair()


async def forge(google: Google, ledger: SheetsLedger, body: str) -> None:
    """Somebody writes a row into the journal by hand, chained as it should be."""
    last = ledger.replica.last
    assert last is not None
    entry = new_entry(last, commit_id=new_id("c_"), at=ledger.clock.now(), worker="w", body=body)
    path = f"/v4/spreadsheets/{ledger.spreadsheet_id}/values/journal!A1:L:append?valueInputOption=RAW"
    google("POST", path, {"values": cells(entry)})


async def test_a_row_that_somebody_wrote_into_the_journal_is_named_and_taken_away(
    make_ledger: MakeLedger, google: Google
) -> None:
    """The head does not stand on it."""
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        row = await run(ledger)
        intent = await intend(ledger, row)
        done = replace(intent, stage=Stage.DONE, value='"as if"')
        await forge(google, ledger, json.dumps({"receipts": [field_values(done)]}))
        await ledger.receipts(keys=[intent.key])
        seq = ledger.replica.seq

        with pytest.raises(LedgerError, match="wrote a row into the journal"):
            await start(ledger, "other")

    [told_] = await make_ledger().repair()
    assert told_ == f"1 rows that somebody wrote past the head (entry {seq - 1}) are gone; no commit wrote them"
    async with opened(late):
        assert [receipt.open for receipt in await late.receipts(record_ids=["r"])] == [True]


async def test_a_forged_receipt_is_named_in_the_record_and_nothing_is_done(
    google: Google, book: str, clock: ToldClock
) -> None:
    """It comes from another ledger. The step does not take its word, and does not act against it either."""
    acts.clear()
    elsewhere = SheetsLedger(f"sheets://{google.new_book()}?endpoint={google.url}", clock)
    async with Client(elsewhere, workflows=[told], clock=clock, who="ann") as client:
        await client.start(told, {}, id="r")
        await client.work()
        [receipt] = await elsewhere.receipts(record_ids=["r"])
    acts.clear()
    ledger = SheetsLedger(f"sheets://{book}?endpoint={google.url}", clock)
    async with Client(ledger, workflows=[told], clock=clock, who="ann") as client:
        await client.start(told, {}, id="r")
        await forge(google, ledger, json.dumps({"receipts": [field_values(receipt)]}))
        await client.work()
        record = await client.get("r")
    assert acts == {}
    assert record.status is Status.ERROR
    assert "the receipt of effect 'announce' of 'r' does not verify" in (record.last_error or "")


async def test_a_lost_file_is_an_error_with_its_hash_and_never_an_empty_value(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    """20."""
    ledger, late = make_ledger(), make_ledger()
    async with opened(ledger):
        await start_all(ledger, ["long"], data=dump("x" * 60_000))
        await start(ledger, "short")
        [[reference, file_id]] = ledger.replica.files.items()
    google("DELETE", f"/drive/v3/files/{file_id}")
    async with opened(late):
        await beat(late, "w")
        taken = (await take(late, worker="w")).records

        [long] = await late.load(["long"])
        assert [row.record_id for row in taken] == ["short"]
        assert long.status is Status.ERROR
        assert reference in (long.last_error or "") and reference in long.data
        assert await late.compact()
        [after] = await late.load(["long"])
        assert after == long


async def test_files_that_nobody_names_are_deleted_a_day_later(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock
) -> None:
    ledger = make_ledger()
    clock.advance(max(0.0, SYSTEM.now() - clock.now()))
    async with opened(ledger):
        await start_all(ledger, ["a"], data=dump("x" * 60_000))
        await beat(ledger, "w", lease=1e6)
        [row] = (await take(ledger, worker="w")).records
        await ledger.commit([new_settle(row, Done("1", dump("y" * 60_000)), clock.now())])
        files = set(ledger.replica.files.values())
        assert len(files) == 2
        await ledger.compact()
        assert len(ledger.replica.files) == 1
        assert files <= _there(google, ledger.replica.home)
        clock.advance(86_401)
        await ledger.compact()
        assert _there(google, ledger.replica.home) == set(ledger.replica.files.values())
        assert (await ledger.load(["a"]))[0].data == dump("y" * 60_000)


def _there(google: Google, folder: str) -> set[str]:
    q = quote(f"'{folder}' in parents and trashed = false")
    return {file["id"] for file in google("GET", f"/drive/v3/files?q={q}")["files"]}


async def test_a_snapshot_too_long_for_the_journal_is_a_file(
    make_ledger: MakeLedger, google: Google, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.ledger.sheets.commits.SNAPSHOT_IN_FILE", 100_000)
    ledger, twin, late = make_ledger(), make_ledger(), make_ledger()
    async with opened(ledger, twin):
        await start_all(ledger, [f"r{n}" for n in range(60)], data=dump("x" * 3000))
        before = await ledger.find(Query())
        await twin.find(Query())
        assert await ledger.compact()
        rows = await ledger.book.rows(2, Urgency.VIEW)
        assert sum(len(str(cell)) for row in rows for cell in row) < 1000
        await start(ledger, "more")
        async with opened(late):
            for other in (late, twin):
                assert [row for row in await other.find(Query()) if row.record_id != "more"] == before
