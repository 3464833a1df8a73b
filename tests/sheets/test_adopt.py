"""A copied or restored book: each open record asks a person, and nothing runs before, whoever is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import LedgerError, WorkerClosed
from quire.ledger.engine import ledger_id
from quire.ledger.sheets.journal import Log
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Conflict, Query, Send
from quire.model.codec import dump
from quire.model.record import Record, Status
from quire.rules import adoption
from quire.rules.outcome import Done
from quire.surfaces.cli import cli
from quire.testing import ToldClock
from quire.testing.conformance import (
    applied,
    beat,
    claim,
    commit,
    done,
    intend,
    log,
    new_facts,
    on_signal,
    run,
    settle,
    start,
    start_all,
    wait_for,
)
from tests.sheets.conftest import Google, MakeLedger
from tests.sheets.test_engine import acts, told
from tests.sheets.test_faults import BATCH, opened

Quire = Callable[..., Result]


@pytest.fixture
def quire(google: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quire:
    """A command of ``quire`` on a book."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIRE_WHO", "ann")

    def call(verb: str, book: str, *options: str) -> Result:
        return CliRunner().invoke(cli, [verb, "--ledger", f"sheets://{book}?endpoint={google.url}", *options])

    return call


async def busy(ledger: SheetsLedger) -> None:
    """Records in every status, and effects under way."""
    for record_id in ("runs", "acts"):
        row = await run(ledger, record_id, data=dump("y" * 60_000))
    await intend(ledger, row)
    row = await run(ledger, "waits")
    await wait_for(ledger, row, on_signal(row))
    row = await run(ledger, "ended")
    await settle(ledger, row, Done("1", "{}"))
    await start(ledger, "pends")
    await start(ledger, "later", due_at=await ledger.now() + 3600)


async def found(ledger: SheetsLedger) -> dict[str, Record]:
    return {row.record_id: row for row in await ledger.find(Query())}


async def test_every_open_record_of_a_copy_asks_and_stands_where_it_stood_when_it_may_go_on(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, quire: Quire
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await busy(ledger)
    copy = google.person(book, "copy_book", title="Copy")["id"]
    refused = await asyncio.to_thread(quire, "doctor", copy)
    assert refused.exit_code == 3 and "quire adopt" in refused.output

    adopted = await asyncio.to_thread(quire, "adopt", copy)

    assert adopted.exit_code == 0, adopted.output
    assert "5 open records ask you" in adopted.output and "1 of them also ask whether" in adopted.output
    other = SheetsLedger(f"sheets://{copy}?endpoint={google.url}", clock)
    async with opened(ledger), Client(other, clock=clock, who="ann") as client:
        before, rows = await found(ledger), await found(other)
        assert {row.status for name, row in rows.items() if name != "ended"} == {Status.NEEDS_APPROVAL}
        assert rows["ended"] == before["ended"]
        assert (await other.standing()).controls == ()
        assert all(worker.closed for worker in await other.workers())
        assert rows["runs"].data == before["runs"].data  # a long value: its file is the copy's own by now
        assert not set(other.replica.files.values()) & set(ledger.replica.files.values())
        assert other.replica.home not in ("", ledger.replica.home)
        assert not (await claim(other, worker="w2")).records
        await other.send([Send("s1", "waits", "paid", "7")])
        assert (await found(other))["waits"].status is Status.NEEDS_APPROVAL

        assert (await client.answer("runs", adoption.GO_ON)).status is Status.PENDING
        later = await client.answer("later", adoption.GO_ON)
        assert (later.status, later.due_at) == (Status.PENDING, before["later"].due_at)
        waits = await client.answer("waits", adoption.GO_ON)
        assert waits.status is Status.PENDING  # its signal has come meanwhile
        assert (await client.answer("pends", adoption.CANCEL)).status is Status.CANCELLED
        asks = await client.answer("acts", adoption.GO_ON)
        assert (asks.status, asks.question) == (
            Status.NEEDS_APPROVAL,
            "Did 'post' happen? (here or in the other book)",
        )
        assert (await client.resolve("acts", happened=False)).status is Status.PENDING
        assert await log(other, "acts") == [
            "started",
            "claimed",
            "effect.intended",
            *_ADOPTED,
            "effect.void",
            _RESOLVED,
        ]
        assert (await found(ledger))["runs"].status is Status.RUNNING
    again = await asyncio.to_thread(quire, "adopt", copy)
    assert again.exit_code != 0 and "nothing to adopt" in again.output


_ADOPTED = ["orphaned", "adopted", "answered"]
_RESOLVED = "resolved"


async def test_an_effect_in_doubt_is_resolved_first_or_last_and_its_late_receipt_resolves_it_too(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        intents = [await intend(ledger, await run(ledger, record_id)) for record_id in ("first", "late")]
        rows = await found(ledger)
        await start(ledger, "gone")
    async with opened(make_ledger()):
        pass  # it marks how far the book was
    google.person(book, "restore", versions=1)
    with pytest.raises(LedgerError, match=r"restored to an older version.*quire adopt"):
        await make_ledger().open()
    assert (await make_ledger().adopt("ann")) == (2, 2)

    async with Client(make_ledger(), clock=clock, who="ann") as client:
        resolved = await client.resolve("first", happened=True, value="posted")
        assert (resolved.status, resolved.open_intents) == (Status.NEEDS_APPROVAL, 0)
        assert "this book was restored to an older version" in (resolved.question or "")
        applied(await commit(client.ledger, new_facts(rows["late"], done(intents[1]))))
        late = await client.get("late")
        assert (late.status, late.open_intents) == (Status.NEEDS_APPROVAL, 0)
        for record_id in ("first", "late"):
            assert (await client.answer(record_id, adoption.GO_ON)).status is Status.PENDING


async def test_a_restored_book_is_adopted_and_its_numbers_are_not_used_again(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await intend(ledger, await run(ledger))
        seq = ledger.replica.seq
    google.person(book, "restore", versions=2)
    with pytest.raises(LedgerError, match="restored to an older version"):
        await make_ledger().open()

    await make_ledger().adopt("ann")

    late = make_ledger()
    async with opened(late):
        assert late.replica.seq == seq + 1
        assert {row.status for row in await late.find(Query())} == {Status.NEEDS_APPROVAL}


async def test_all_go_on_at_once_in_a_few_writes_and_not_before(
    google: Google, book: str, clock: ToldClock, quire: Quire
) -> None:
    """Effects included: none runs in the copy before somebody said so."""
    acts.clear()
    ids = [f"r{n:02}" for n in range(30)]
    async with Client(SheetsLedger(f"sheets://{book}?endpoint={google.url}", clock), workflows=[told]) as client:
        await client.start_many(told, [{} for _ in ids], ids=ids)
        before = await ledger_id(client.ledger)
    copy = google.person(book, "copy_book", title="Copy")["id"]
    other = SheetsLedger(f"sheets://{copy}?endpoint={google.url}", clock)
    assert (await other.adopt("ann")).asks == 30
    async with Client(other, workflows=[told], clock=clock) as client:
        await client.work()
        assert await ledger_id(other) != before  # what it begins is another act for the world outside
    assert not acts
    google.forget_counters()

    answered = await asyncio.to_thread(quire, "adopt", copy, "--all", "go-on", "--workflow", "told")

    assert answered.exit_code == 0 and "30 records go on" in answered.output
    assert google.counters()[f"kind {BATCH}"] <= 6
    async with Client(other, workflows=[told], clock=clock) as client:
        await client.work()
        assert {record.status for record in await client.find()} == {Status.DONE}
    assert acts == dict.fromkeys(ids, 1)


@pytest.mark.parametrize("held", ["sheets.spreadsheets.values.batchGetByDataFilter", BATCH], ids=["reading", "writing"])
async def test_whoever_is_killed_while_adopting_has_adopted_it_or_not_and_it_is_done_again(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, quire: Quire, held: str
) -> None:
    """Its request may land after its death: then the same again finds that it is done."""
    ledger = make_ledger()
    async with opened(ledger):
        await start_all(ledger, [f"r{n}" for n in range(5)])
    copy = google.person(book, "copy_book", title="Copy")["id"]
    url = f"sheets://{copy}?endpoint={google.url}"
    google.fault("barrier", kind=held, book=copy, parties=2, timeout_seconds=60)
    command = [sys.executable, "-m", "quire.surfaces.cli", "adopt", "--ledger", url]
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here yet
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as adopting:
        while not google("GET", "/emulator/faults")["faults"][0]["hits"]:
            assert adopting.poll() is None
            await SYSTEM.sleep(0.02)
        os.kill(adopting.pid, signal.SIGKILL)
    google.calm()

    again = await asyncio.to_thread(quire, "adopt", copy)

    assert again.exit_code == 0 and "5 open records ask you" in again.output, again.output
    other = SheetsLedger(url, clock)
    async with opened(other):
        assert other.replica.last is not None and other.replica.last.generation == 2
        for n in range(5):
            assert await log(other, f"r{n}") == ["started", "adopted"]


async def test_a_process_that_lived_through_it_holds_nothing_any_more(
    make_ledger: MakeLedger, google: Google, book: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Log, "pause", lambda self, n: SYSTEM.sleep(0))
    ledger = make_ledger()
    async with opened(ledger):
        row = await run(ledger)
        await start(ledger, "gone")
        async with opened(make_ledger()):
            pass  # it marks how far the book was
        google.person(book, "restore", versions=1)
        with pytest.raises(LedgerError, match="restored to an older version"):
            await ledger.standing()
        await make_ledger().adopt("ann")

        assert isinstance(await settle(ledger, row, Done("1", "{}")), Conflict)
        with pytest.raises(WorkerClosed):
            await beat(ledger, "w1", row)
        assert set(await found(ledger)) == {"r"}


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "pause", lambda self, n: SYSTEM.sleep(0))


async def busy_since_the_mark(ledger: SheetsLedger) -> None:
    """Effects are begun after the mark has moved: with the first one it moves, and not within the next minute."""
    for n in range(3):
        await intend(ledger, await run(ledger, f"r{n}"))


@pytest.mark.usefixtures("no_pauses")
async def test_a_process_that_notices_a_restored_book_leaves_word_for_the_one_that_starts_in_its_place(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await busy_since_the_mark(ledger)
        google.person(book, "restore", versions=2)
        with pytest.raises(LedgerError, match="restored to an older version"):
            await ledger.standing()
    with pytest.raises(LedgerError, match=r"restored to an older version.*quire adopt"):
        await make_ledger().open()
    assert (await make_ledger().adopt("ann")).asks == 3
    async with opened(late := make_ledger()):
        assert {row.status for row in await late.find(Query())} == {Status.NEEDS_APPROVAL}


@pytest.mark.usefixtures("no_pauses")
async def test_a_restored_book_whose_newest_version_comes_back_goes_on(
    make_ledger: MakeLedger, google: Google, book: str
) -> None:
    ledger = make_ledger()
    async with opened(ledger):
        await busy_since_the_mark(ledger)
        newest = google("GET", f"/emulator/books/{book}/versions")["versions"][-1]["version"]
        google.person(book, "restore", versions=2)
        with pytest.raises(LedgerError, match="restored to an older version"):
            await ledger.standing()
    google.person(book, "restore", version=newest)
    async with opened(late := make_ledger()):
        await start(late, "more")
        assert len(await late.find(Query())) == 4


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("further", [False, True], ids=["behind", "gone-on-beyond"])
async def test_a_process_that_began_on_the_restored_book_stops_when_another_one_has_noticed(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, further: bool
) -> None:
    """It started before anybody noticed. It does not put its own mark over what the other left."""
    ledger, early = make_ledger(), make_ledger()
    async with opened(ledger):
        await busy_since_the_mark(ledger)
        google.person(book, "restore", versions=2)
        async with opened(early):
            for n in range(6 if further else 1):
                await start(early, f"new{n}")
            with pytest.raises(LedgerError, match="restored to an older version"):
                await ledger.standing()
            clock.advance(61)
            with pytest.raises(LedgerError, match="restored to an older version"):
                await early.recover()
            with pytest.raises(LedgerError, match="restored to an older version"):
                await start(early, "last")
    with pytest.raises(LedgerError, match="restored to an older version"):
        await make_ledger().open()
    assert (await make_ledger().adopt("ann")).asks == (9 if further else 4)
    async with opened(late := make_ledger()):
        await start(late, "more")


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize(
    ("damage", "finder"),
    [("edited", "living"), ("edited", "starting"), ("edited", "doctor"), ("tab-deleted", "living")],
)
async def test_who_restores_a_damaged_book_as_advised_is_asked_what_was_done_since(
    make_ledger: MakeLedger, google: Google, book: str, clock: ToldClock, finder: str, damage: str
) -> None:
    """The version before the damage may lack the last minute, and who finds the damage notes how far the book was."""
    ledger = make_ledger()
    async with opened(ledger):
        await busy_since_the_mark(ledger)
        if damage == "edited":
            google.person(book, "edit", sheet="journal", cell="I4", text="{}")
        else:
            google.person(book, "delete_sheet", sheet="journal")
        if finder == "living":
            clock.advance(601)
            with pytest.raises(LedgerError, match="restore the book to a version before"):
                await ledger.find(Query())
    if finder == "starting":
        with pytest.raises(LedgerError, match="restore the book to a version before"):
            await make_ledger().open()
    if finder == "doctor":
        with pytest.raises(LedgerError, match="restore the book to a version before"):
            await make_ledger().repair()
    google.person(book, "restore", versions=3)

    with pytest.raises(LedgerError, match=r"restored to an older version.*quire adopt"):
        await make_ledger().open()

    assert (await make_ledger().adopt("ann")).asks == 3
