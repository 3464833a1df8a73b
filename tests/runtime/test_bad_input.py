"""Bad input gets one clear sentence and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import quire
from quire import Act, Client, QuireError, Record, Run, Status, SyncRun, Workflow, aopen, effect, workflow
from quire.errors import DefinitionError, InputError, LedgerError, LedgerUnavailable
from quire.ledger.sqlite.file import file_system
from quire.model.codec import parse
from quire.model.row import replace
from quire.testing import Trial


class Lead(BaseModel):
    company: str


table = Workflow("table")
table.state("PENDING", then=["IN_PROGRESS", "CANCELLED"])
table.state("IN_PROGRESS", then=["COMPLETED", "FAILED"])
table.state("FAILED", then="PENDING")
table.state("COMPLETED")
table.state("CANCELLED")

typed = Workflow("typed", data=Lead)


@typed.step
async def only(run: Run[Lead]) -> None: ...


CASES: dict[str, tuple[Callable[[Client], Awaitable[Any]], str]] = {
    "unknown workflow": (
        lambda q: q.start("tabel", {}),
        "there is no workflow 'tabel' in this ledger; did you mean 'table'?",
    ),
    "data that is not JSON": (lambda q: q.start(table, {"x": object()}, id="x"), "object is not JSON"),
    "data that does not fit": (lambda q: q.start("typed", {}, id="x"), "company: Field required"),
    "other data under the same id": (
        lambda q: q.start(table, {"n": 2}, id="known"),
        "a record 'known' of 'table' exists already and was started with other data",
    ),
    "an illegal move": (
        lambda q: q.move("known", "COMPLETED"),
        (
            "Invalid state transition: Cannot move from PENDING to COMPLETED. "
            "('known' may go from 'PENDING' to 'CANCELLED', 'IN_PROGRESS')"
        ),
    ),
    "a move of nothing": (lambda q: q.move("nobody", "FAILED"), "Record with ID nobody not found."),
    "a priority that is not a number": (
        lambda q: q.start(table, {}, id="x", priority="high"),  # type: ignore[arg-type]
        "a priority is a whole number, not 'high'",
    ),
    "a priority too high for a store": (
        lambda q: q.start_many("table", [{}], ids=["x"], priority=10**23),
        "a priority lies between -1,000,000 and 1,000,000",
    ),
    "another priority that is none": (
        lambda q: q.prioritise("known", 1.5),  # type: ignore[arg-type]
        "a priority is a whole number, not 1.5",
    ),
    "another priority too low": (
        lambda q: q.prioritise("known", -1_000_001),
        "a priority lies between -1,000,000 and 1,000,000",
    ),
    "a start beyond the calendar": (
        lambda q: q.start(table, {}, id="x", after="3000000d"),
        "'3000000d' is not a span of time: it must be zero or more seconds, and shorter than 300 years",
    ),
    "a NUL": (lambda q: q.start(table, {"x": "a\0b"}, id="x"), "it holds a NUL character"),
    "a lone surrogate": (lambda q: q.start(table, {"x": "\ud800"}, id="x"), "it holds a lone surrogate"),
    "not a number": (lambda q: q.start(table, {"x": float("nan")}, id="x"), "NaN and Infinity are not JSON"),
    "what does not survive": (lambda q: q.start(table, {"x": (1, 2)}, id="x"), "does not survive the round trip"),
    "an answer to nothing": (lambda q: q.answer("known", "approve"), "'known' asks nothing; it is WAITING"),
    "a doubt that is none": (lambda q: q.resolve("known", happened=True), "nothing of 'known' is in doubt"),
    "a retry of what waits": (lambda q: q.retry("known"), "cannot retry 'known': it is WAITING"),
    "a rewind to no step": (lambda q: q.retry("known", step="PENDIN"), "has no step 'PENDIN'; did you mean 'PENDING'?"),
    "an id with a line break": (lambda q: q.start(table, {}, id="a\nb"), "it holds a control character"),
    "an empty id": (lambda q: q.start(table, {}, id=""), "is not a record id"),
    "a signal to nobody": (lambda q: q.signal("nobody", "go"), "Record with ID nobody not found."),
    "an id with a delete": (lambda q: q.start(table, {}, id="a\x7fb"), "it holds a control character"),
    "an id that is not text": (lambda q: q.start(table, {}, id=5), "5 is not a record id: an id is text"),  # type: ignore[arg-type]
    "a workflow that is none": (lambda q: q.start(len), "the workflow is <built-in function len>; it must be a name"),  # type: ignore[arg-type]
    "fewer ids than items": (lambda q: q.start_many(table, [{}, {}], ids=["x"]), "item 1 has no id"),
    "letters as ids": (lambda q: q.start_many(table, [{}], ids="x"), "ids must be a list, not str; write ids=[…]"),
    "fields as items": (lambda q: q.start_many(table, {"n": 1}), "items must be a list, not dict"),  # type: ignore[misc]
    "a look at a number": (lambda q: q.get(5), "5 is not a record id: an id is text"),  # type: ignore[arg-type]
    "a look at nothing": (lambda q: q.get(None), "None is not a record id: an id is text"),  # type: ignore[arg-type]
    "a look at half a character": (lambda q: q.get("\ud800"), "Record with ID '\\ud800' not found."),
    "a look at a list": (lambda q: q.until_ended(["x"]), "['x'] is not a record id"),  # type: ignore[arg-type]
    "a log of a number": (lambda q: q.events(5), "5 is not a record id"),  # type: ignore[arg-type]
    "a cancellation of a number": (lambda q: q.cancel(5), "5 is not a record id"),  # type: ignore[arg-type]
    "a signal to a number": (lambda q: q.signal(5, "go"), "5 is not a record id"),  # type: ignore[arg-type]
    "a signal that is a number": (lambda q: q.signal("known", 5), "the signal is 5; it must be a name"),  # type: ignore[arg-type]
    "a doubt about a number": (lambda q: q.resolve(5, happened=True), "5 is not a record id"),  # type: ignore[arg-type]
    "a rewind to a number": (lambda q: q.retry("known", step=5), "the step is 5; it must be a name"),  # type: ignore[arg-type]
    "an edit to a number": (
        lambda q: q.edit("known", 5),  # type: ignore[arg-type]
        "the data of 'known' must be a dict of named fields, not int",
    ),
    "an answer that edits to a number": (
        lambda q: q.answer("known", "approve", edits=5),  # type: ignore[arg-type]
        "must be a dict of named fields, not int",
    ),
    "a status that is none": (lambda q: q.find(status="NOPE"), "'NOPE' is not a status; known: 'CANCELLED', 'DONE'"),
    "a status in small letters": (lambda q: q.find(status=["done"]), "'done' is not a status; did you mean 'DONE'?"),  # type: ignore[list-item]
    "a status that is a number": (lambda q: q.find(status=5), "status must be a list, not int"),  # type: ignore[arg-type]
    "another order": (lambda q: q.find(order="name"), "'name' is not an order; known: 'id', 'place', 'updated'"),
    "a limit below none": (lambda q: q.find(limit=-1), "limit is -1; it must be a whole number, 0 or more"),
    "a halt of a thing": (lambda q: q.halt(table), "it must be a name, as text"),  # type: ignore[arg-type]
    "work by nobody": (lambda q: q.work(concurrency=0), "concurrency is 0; it must be a whole number, 1 or more"),
    "a span that is none": (lambda q: q.start(table, {}, after="soon"), "'soon' is not a span of time"),
}


@pytest.mark.parametrize("case", CASES)
async def test_it_is_refused_with_a_sentence_and_changes_nothing(case: str, tmp_path: Path) -> None:
    act, sentence = CASES[case]
    async with aopen(f"{tmp_path}/ledger.db", workflows=[table, typed]) as client:
        await client.start(table, {"n": 1}, id="known")
        before = (await seen(client), await client.events())

        with pytest.raises(InputError) as caught:
            await act(client)

        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)
        log = await client.events()
        if case == "an illegal move":
            refused = log.pop()
            assert refused.kind == "refused" and sentence in parse(refused.body)["why"]
        assert (await seen(client), log) == before


async def seen(client: Client) -> list[Record]:
    """The records without what their logs have grown by."""
    return [replace(record, log_seq=0, log_hash="") for record in await client.find()]


async def test_the_status_table_has_exactly_its_five_moves(tmp_path: Path) -> None:
    legal = set()
    names = list(table.steps)
    async with aopen(f"{tmp_path}/ledger.db", workflows=[table]) as client:
        for start in names:
            for end in names:
                record_id = f"{start}-{end}"
                await client.start(table, {}, id=record_id)
                for step in _way(start):
                    await client.move(record_id, step)
                try:
                    await client.move(record_id, end)
                    legal.add((start, end))
                except InputError:
                    assert (await client.get(record_id)).step == start

    assert legal == {
        ("PENDING", "IN_PROGRESS"),
        ("PENDING", "CANCELLED"),
        ("IN_PROGRESS", "COMPLETED"),
        ("IN_PROGRESS", "FAILED"),
        ("FAILED", "PENDING"),
    }


def _way(end: str) -> list[str]:
    return {
        "PENDING": [],
        "IN_PROGRESS": ["IN_PROGRESS"],
        "FAILED": ["IN_PROGRESS", "FAILED"],
        "COMPLETED": ["IN_PROGRESS", "COMPLETED"],
        "CANCELLED": ["CANCELLED"],
    }[end]


def _machine(*steps: tuple[str, tuple[str, ...]]) -> Workflow[Any, Any, Any]:
    made: Workflow[Any, Any, Any] = Workflow("machine")
    for name, then in steps:
        made.state(name, then=then)
    return made


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (_machine(), "it has no steps"),
        (
            _machine(("draft", ("reviw",)), ("review", ())),
            "step 'draft' goes to 'reviw', which is not a step; did you mean",
        ),
        (_machine(("a", ("b",)), ("b", ()), ("c", ())), "step 'c' cannot be reached from 'a'"),
        (_machine(("a", ("b", "c")), ("b", ("b",)), ("c", ())), "step 'b' is a trap: no way leads from it to an end"),
    ],
)
def test_a_workflow_that_cannot_run_says_why(made: Workflow[Any, Any, Any], sentence: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        made.check()

    assert sentence in str(caught.value)


@effect
async def send(act: Act, to: str) -> None: ...


async def test_an_effect_whose_name_repeats_in_one_pass_is_an_error() -> None:
    @workflow
    async def twice(run: Run[dict[str, Any]]) -> None:
        await run.once(send, "ann")
        await run.once(send, "bob")

    async with Trial(twice) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR" and "the effect 'send' stands twice in one pass" in record.error
        assert trial.acts(send) == [("ann",)]


async def _fetch(url: str = "") -> str:
    return url


_send: Any = send


CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an effect on its own": (lambda _: _send("ann"), "the effect 'send' is called without its Act; use run.once(send"),
    "an effect without anything": (lambda _: _send(), "called without its Act"),
    "an effect as a call": (lambda run: run.call(send, "ann"), "'send' is an @effect, which is done at most once; use"),
    "an effect under a name": (lambda run: run.once("x", send, "ann"), "write run.once(send.named('x'), …)"),
    "a name alone": (lambda run: run.once("x"), "run.once('x', …) takes a function after its name, not None"),
    "a call of what was called": (lambda run: run.call(_fetch()), "run.call takes a function and then its arguments"),
    "a child by its name": (lambda run: run.child("typed", {}), "run.child takes a Workflow, or a function under @w"),
    "a map by its name": (lambda run: run.map("typed", []), "not 'typed'"),
    "a map of a number": (lambda run: run.map(typed, 5), "run.map takes a list of items, not 5"),
    "a map with a word": (lambda run: run.map(typed, [], failures="kep"), "it must be 'fail' or 'keep'"),
    "a map with a limit": (lambda run: run.map(typed, [], limit="x"), "run.map(limit=…) is 'x'; it must be a whole"),
    "a map with a need": (lambda run: run.map(typed, [], need="x"), "run.map(need='x') is not a share"),
    "a map with a key": (lambda run: run.map(typed, [], key="company"), "run.map(key=…) takes a function of an item"),
    "all of a list": (lambda run: run.all([run.call(_fetch), run.call(_fetch)]), "no list; write run.all(*things)"),
    "all of nothing": (lambda run: run.all(None), "no NoneType; write run.all(run.call(…), …)"),
    "a note that is not text": (lambda run: run.note({"a": 1}), "run.note takes text, not {'a': 1}"),
    "a wait for a number": (lambda run: run.wait(5), "run.wait takes the name of a signal, not 5"),
    "a sleep of nothing": (lambda run: run.sleep(None), "None is not a span of time"),
    "a question that is none": (lambda run: run.ask(5), "run.ask takes a question, not 5"),
    "letters to edit": (lambda run: run.ask("ok?", edit="text"), "run.ask(edit=…) takes a list; write ['text']"),
    "letters to choose": (lambda run: run.ask("ok?", choices="yes"), "run.ask(choices=…) takes a list; write ['yes']"),
    "people that are none": (lambda run: run.ask("ok?", by=5), "run.ask(by=…) is 5"),
    "half a quorum": (lambda run: run.ask("ok?", quorum=0.5), "run.ask(quorum=…) is 0.5; it must be a whole number"),
    "an escalation to nobody": (lambda run: run.ask("ok?", escalate="1d"), "must be a span and a person"),
    "a loop without places": (lambda run: run.each(n for n in [1]), "not in a generator; write list(…)"),
    "a loop with a key": (lambda run: run.each([1], key="id"), "run.each(key=…) takes a function of an item"),
    "a loop that never saves": (lambda run: run.each([1], every="often"), "'often' is not a span of time"),
    "an address of a number": (lambda run: run.signal_url(5), "run.signal_url takes the name of a signal, not 5"),
}


@pytest.mark.parametrize("case", CALLS)
async def test_a_call_that_cannot_be_ends_the_record_at_its_first_try(case: str) -> None:
    act, sentence = CALLS[case]

    @workflow
    async def calls(run: Run[dict[str, Any]]) -> None:
        await act(run)

    async with Trial(calls) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR" and sentence in record.error
        assert trial.acts(send) == []


async def test_a_plain_step_is_told_that_its_note_is_no_text() -> None:
    @workflow
    def notes(run: SyncRun[dict[str, Any]]) -> None:
        run.note(5)  # type: ignore[arg-type]

    async with Trial(notes) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR" and "run.note takes text, not 5" in record.error


async def test_a_plain_step_is_told_that_run_all_is_not_for_it() -> None:
    @workflow
    def together(run: SyncRun[dict[str, Any]]) -> None:
        run.all(run.call(len, "ab"), run.call(len, "c"))

    async with Trial(together) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR" and "run.all is for async steps: write the step as 'async def'" in record.error


async def test_a_value_that_does_not_survive_its_round_trip_fails_on_the_first_day() -> None:
    def pair():  # type: ignore[no-untyped-def]
        return (1, 2)

    @workflow
    async def pairs(run: Run[dict[str, Any]]) -> None:
        await run.call(pair)

    async with Trial(pairs) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR" and "does not survive the round trip" in record.error


async def test_code_that_swallows_its_cancellation_is_found_by_a_trial() -> None:
    @workflow
    async def stubborn(run: Run[dict[str, Any]]) -> None:
        with contextlib.suppress(BaseException):  # the mistake
            await run.wait("go")

    async with Trial(stubborn) as trial:
        await trial.start({})

        with pytest.raises(DefinitionError, match="swallows the cancellation"):
            await trial.settle()


async def test_a_call_that_is_never_awaited_is_found() -> None:
    @workflow
    async def forgetful(run: Run[dict[str, Any]]) -> None:
        _ = run.once(send, "ann")

    async with Trial(forgetful) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "ERROR" and "never awaited run.once(send)" in record.error

    @workflow
    async def plainly(run: Run[dict[str, Any]]) -> None:
        run.once(send, "ann")

    with pytest.raises(DefinitionError, match=r"line \d+: run.once\(…\) is never awaited, so it does nothing"):
        Trial(plainly)


async def test_what_a_step_leaves_behind_does_nothing_once_the_step_has_returned() -> None:
    go = asyncio.Event()
    asked: list[str] = []
    left: list[asyncio.Task[Any]] = []

    async def ask() -> str:
        asked.append("again")
        return "answer"

    @workflow
    async def hasty(run: Run[dict[str, Any]]) -> None:
        async def later() -> Any:
            await go.wait()
            return await run.call(ask)

        left.append(asyncio.create_task(later()))

    async with Trial(hasty) as trial:
        record = await trial.start({})
        await trial.settle()
        go.set()

        with pytest.raises(DefinitionError, match=r"'hasty' of .* has returned; what it starts in the background"):
            await left[0]
        assert record.status == "DONE" and asked == []


async def test_ten_megabytes_come_back_whole(store: str) -> None:
    big = Workflow("big", result=str)

    @big.step
    async def same(run: Run) -> str:
        return str(run.data["text"])

    text = "ä\\u0000 " * 1_500_000
    async with aopen(store, workflows=[big]) as client:
        handle = await client.start(big, {"text": text}, id="b")
        await client.work()

        assert await handle.result(timeout="10s") == text


def test_a_file_that_is_no_ledger_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database at all, but long enough to look at" * 50)
    with pytest.raises(LedgerError, match=r"notes\.txt' is not a ledger, nor a SQLite database"):
        quire.open(str(tmp_path / "notes.txt")).__enter__()

    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    with pytest.raises(LedgerError, match=r"other\.db' is a SQLite database, but not a Quire ledger"):
        quire.open(str(tmp_path / "other.db")).__enter__()


@pytest.mark.parametrize("ledger", [None, 5, Path("ledger.db")])
def test_what_is_no_address_is_no_ledger(ledger: Any) -> None:
    with pytest.raises(InputError, match="is not a ledger; give its address as text"):
        quire.open(ledger)


@pytest.mark.parametrize(
    ("workflows", "sentence"),
    [
        (table, "workflows must be a list, not Workflow; write workflows=[…]"),
        ("table", "workflows must be a list, not str"),
        (["table"], "'table' is not a workflow; give the Workflow itself"),
        ([len], "<built-in function len> is not a workflow"),
    ],
)
def test_what_is_no_list_of_workflows_is_refused(workflows: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        quire.open("memory:", workflows=workflows)

    assert sentence in str(caught.value)


@pytest.mark.filterwarnings("error")
def test_a_plain_client_that_is_not_open_says_so() -> None:
    client = quire.open("memory:", workflows=[table])

    with pytest.raises(InputError, match="this client is not open yet; use it in a 'with' block"):
        client.get("x")
    with client:
        pass
    with pytest.raises(InputError, match="this client is closed; use it in a 'with' block"):
        client.start(table, {})
    with pytest.raises(InputError, match="this client was closed; make another one"):
        client.__enter__()


def test_a_network_file_system_is_known_by_its_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/share {tmp_path.resolve()}/share nfs4 rw 0 0\n")
    (tmp_path / "share" / "deep").mkdir(parents=True)
    (tmp_path / "shared").mkdir()

    assert file_system(tmp_path / "share" / "deep", mounts) == "nfs4"
    assert file_system(tmp_path / "shared", mounts) == "ext4"
    assert file_system(tmp_path, tmp_path / "none") == ""


async def test_a_ledger_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.ledger.sqlite.file.file_system", lambda _folder: "nfs4")

    with pytest.raises(LedgerError, match="lies on a network file system"):
        async with aopen(f"{tmp_path}/ledger.db"):
            pass


def test_a_ledger_made_by_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    with quire.open(str(tmp_path / "ledger.db")):
        pass
    file = sqlite3.connect(tmp_path / "ledger.db")
    file.execute("PRAGMA user_version = 999")
    file.commit()
    file.close()

    with pytest.raises(LedgerError, match="was made by a newer Quire"):
        quire.open(str(tmp_path / "ledger.db")).__enter__()


async def test_a_full_disk_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async with aopen(f"{tmp_path}/ledger.db", workflows=[table]) as client:
        await client.start(table, {"n": 1}, id="known")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "ledger.db-wal").stat().st_size + 8192, hard))
        try:
            with pytest.raises((LedgerUnavailable, LedgerError)):
                await asyncio.wait_for(client.ledger.commit(await _many(client)), 30)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

        assert [record.record_id for record in await client.find(limit=1000)] == ["known"]
        await client.start(table, {}, id="later")


async def _many(client: Client) -> list[Any]:
    from quire.worker.schedule import first_record, starting

    return [starting(first_record(table, f"r{n}", '{"x":"' + "y" * 1000 + '"}', 0.0)) for n in range(300)]


def test_every_error_is_of_one_family() -> None:
    from quire import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]

    assert all(issubclass(kind, QuireError) and kind.__doc__ for kind in kinds)
    assert Status.DONE == "DONE"
