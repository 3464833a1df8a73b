"""What a record did is taken back: cancelled with undo, failed, halted in the middle, with all its descendants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import quire
from quire import Act, Retry, Run, Status, Workflow, effect, workflow
from quire.errors import IllegalMove
from quire.model.codec import parse
from quire.model.record import UNDO
from quire.model.wait import load_waits
from quire.testing import Trial


@workflow(retry=Retry(1))
async def half(run: Run[dict[str, Any]]) -> int:
    if run.data["n"] in run.data.get("bad", []):
        raise quire.Fail("a bad number")
    return int(run.data["n"]) // 2


async def test_a_cancelled_record_takes_back_what_it_did() -> None:
    book: list[str] = []

    async with Trial(_undoable(), deps=book) as trial:
        record = await trial.start({})
        await trial.settle()
        assert book == ["+one", "+two"]

        await trial.client.cancel(record.record_id, undo=True, by="ann@x.eu")
        await trial.settle()

        assert record.status == "CANCELLED" and book == ["+one", "+two", "-two", "-one"]


async def test_a_wish_to_undo_that_is_said_again_takes_nothing_back_from_the_first() -> None:
    """18: half undone in silence."""
    book: list[str] = []
    refused: list[str] = []

    async def again() -> None:
        with pytest.raises(IllegalMove) as error:
            await trial.client.cancel("u", undo=True, by="bob")
        refused.append(str(error.value))

    async def back(act: Act[list[str]], what: str) -> None:
        book.append(f"-{what}")
        await again()  # while it runs

    async with Trial(_undoable(back), deps=book) as trial:
        record = await trial.start({}, id="u")
        await trial.settle()
        await trial.client.cancel("u", undo=True, by="ann")
        await again()  # before it is claimed
        await trial.settle()
        assert record.status == "CANCELLED" and book == ["+one", "+two", "-two", "-one"]
        assert refused == ["cannot undo 'u': it is being undone already"] * 3

        await again()
        assert refused[-1] == "cannot undo 'u': it was undone already"


async def test_a_resume_leaves_a_child_whose_parent_stays_cancelled() -> None:
    """Its parent was undone with all that its children did: what it did then, nobody would take back."""
    book: list[str] = []

    @workflow
    async def kid(run: Run[dict[str, Any], list[str]]) -> None:
        if run.data["deep"]:
            await run.child(kid, {"deep": False}, id="deep")
        await run.once(put, run.record_id)
        await run.wait("never")

    @workflow
    async def top(run: Run[dict[str, Any], list[str]]) -> None:
        await run.child(kid, {"deep": True}, id="mid")

    async with Trial(top, also=[kid], deps=book) as trial:
        record = await trial.start({}, id="t")
        await trial.settle()
        deep = book[0].removeprefix("+")
        await trial.client.halt("kid")
        await trial.client.cancel("t", undo=True)
        await trial.advance("1h")
        assert record.status in ("CANCELLED", "ERROR") and book == [f"+{deep}", f"-{deep}"]

        await trial.client.resume("kid", cancelled=True)
        await trial.advance("1h")

        assert book == [f"+{deep}", f"-{deep}"]


@pytest.mark.parametrize("goes_on", [True, False], ids=["stopped", "returned"])
async def test_what_is_cancelled_with_undo_while_it_runs_takes_back_what_it_did(goes_on: bool) -> None:
    book: list[str] = []

    @workflow
    async def busy(run: Run[dict[str, Any], list[str]]) -> str:
        await run.once(put.named("one"), "one")
        asked = await trial.client.cancel(run.record_id, undo=True, reason="a typo", by="ann")
        assert asked.status is Status.RUNNING
        if goes_on:
            await run.once(put.named("two"), "two")
        return "done"

    async with Trial(busy, deps=book) as trial:
        record = await trial.start({})
        await trial.settle()

        assert record.status == "CANCELLED" and book == ["+one", "-one"]
        [told] = [event for event in trial.ledger.tables.events_of(record.record_id) if event.kind == "cancelled"]
        assert parse(told.body) == {"step": "busy", "reason": "a typo", "by": "ann", "undo": True}


async def test_what_descendants_did_is_taken_back_before_what_their_parent_did() -> None:
    """18: the deepest first, the youngest child first, and within a record the newest first."""
    book: list[str] = []

    @workflow
    async def grandchild(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(put, "grandchild")

    @workflow
    async def child(run: Run[dict[str, Any], list[str]]) -> None:
        await run.sleep("1s")  # the longer its log, the later in it are its intents
        await run.once(put, f"child {run.data['n']}")
        if run.data["n"] == 0:
            await run.child(grandchild, {})

    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(put.named("first"), "first")
        await run.map(child, [{"n": 0}, {"n": 1}])
        await run.once(put.named("last"), "last")

    async with Trial(parent, also=[child, grandchild], deps=book) as trial:
        record = await trial.start({})
        await trial.advance("2s")
        assert record.status == "DONE"
        del book[:]

        await trial.client.cancel(record.record_id, undo=True)
        await trial.settle()

        assert book == ["-child 1", "-grandchild", "-child 0", "-last", "-first"]


@pytest.mark.parametrize("when", ["before it acts", "while it acts"])
async def test_what_a_child_still_does_is_awaited_and_taken_back_with_the_rest(when: str) -> None:
    book: list[str] = []

    async def parent_undoes() -> None:
        await trial.client.cancel("p", undo=True)
        while trial.ledger.tables.events_of("p")[-1].kind not in ("waited", "asked", "undone"):  # noqa: ASYNC110
            await asyncio.sleep(0)  # noqa: TID251 - lets the parent's pass go on

    @effect(undo=_take_back)
    async def pay(act: Act[list[str]]) -> str:
        if when == "while it acts":
            await parent_undoes()
        book.append("+paid")
        return "paid"

    @workflow
    async def child(run: Run[dict[str, Any], list[str]]) -> None:
        if when == "before it acts":
            await parent_undoes()
        await run.once(pay)

    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(put, "booked")
        await run.child(child, {})

    async with Trial(parent, also=[child], deps=book) as trial:
        record = await trial.start({}, id="p")
        await trial.settle()

        assert record.status == "CANCELLED" and book == ["+booked", "+paid", "-paid", "-booked"]
        assert "asked" not in [event.kind for event in trial.ledger.tables.events_of("p")]


async def test_an_undoing_stops_the_children_that_wait_and_looks_at_them_less_and_less_often() -> None:
    book: list[str] = []

    @workflow
    async def child(run: Run[dict[str, Any], list[str]]) -> None:
        try:
            await run.once(vague)
        finally:
            book.append("tried")

    @effect
    async def vague(act: Act[list[str]]) -> None:
        raise RuntimeError("nobody knows")

    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(put, "booked")
        await run.map(child, [{}, {}], name="kids")

    async with Trial(parent, also=[child], deps=book) as trial:
        record = await trial.start({}, id="p")
        await trial.client.work()
        [first, second] = [row.record_id for row in await trial.client.find(parent_id="p")]
        await trial.client.cancel("p", undo=True)
        for _ in range(4):
            await trial.client.work()
            trial.clock.advance(max(0.0, (record.record.due_at or 0.0) - trial.clock.now()))

        pauses = [wait.about["pause"] for wait in load_waits(record.record.waits) if wait.about is not None]
        assert record.status == "WAITING" and pauses == [8.0] and "-booked" not in book
        for child_id in (first, second):  # they ask, and only an answer ends them
            await trial.client.resolve(child_id, happened=False)
        await trial.settle()
        assert record.status == "CANCELLED" and book[-1] == "-booked"


async def test_an_undoing_may_be_told_what_became_of_an_act_of_a_child_that_has_ended() -> None:
    book: list[str] = []

    @effect(undo=_take_back)
    async def pay(act: Act[list[str]]) -> str:
        raise RuntimeError("nobody knows")

    @workflow(retry=Retry(3, first="1h"))
    async def child(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(pay)

    @workflow
    async def parent(run: Run[dict[str, Any], list[str]]) -> None:
        await run.child(child, {})

    async with Trial(parent, also=[child], deps=book) as trial:
        record = await trial.start({}, id="p")
        await trial.client.work()
        await trial.client.halt()
        await trial.ledger.recover()
        await trial.client.resume()
        await trial.client.cancel("p", undo=True)
        await trial.settle()
        assert record.question == "Did 'pay' happen?"

        await trial.client.resolve("p", happened=True, value="paid")
        await trial.settle()

        assert record.status == "CANCELLED" and book == ["-paid"]
        [row] = await trial.client.find(parent_id="p")
        assert row.open_intents == 0


async def _take_back(act: Act[list[str]], what: str) -> None:
    act.deps.append(f"-{what}")


@effect(undo=_take_back)
async def put(act: Act[list[str]], what: str) -> str:
    act.deps.append(f"+{what}")
    return what


def _undoable(undo: Callable[[Act[list[str]], str], Awaitable[None]] = _take_back) -> Workflow[Any, Any, Any]:
    """Two acts, taken back by this, and then a long wait."""

    @effect(undo=undo)
    async def pay(act: Act[list[str]], what: str) -> str:
        act.deps.append(f"+{what}")
        return what

    @workflow
    async def undoable(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(pay.named("one"), "one")
        await run.once(pay.named("two"), "two")
        await run.wait("never")

    return undoable


async def test_a_resume_brings_back_all_that_the_halt_cancelled_and_nothing_else() -> None:
    book: list[str] = []
    halted: list[Any] = []

    @workflow
    async def worker(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(put, run.record_id)
        if run.record_id == "runs" and not halted:
            halted.append(await trial.client.halt(by="ann"))
            await run.once(put.named("late"), "late")
        if run.record_id == "waits":
            await run.wait("go")
        if run.record_id in ("cancelled", "undone"):
            await run.wait("never")

    async with Trial(worker, deps=book) as trial:
        records = {name: await trial.start({}, id=name) for name in ("waits", "cancelled", "undone")}
        await trial.settle()
        await trial.client.cancel("cancelled", by="ann")
        await trial.client.prioritise("cancelled", 3)  # a line after that of its end
        await trial.client.cancel("undone", undo=True, by="ann")
        await trial.settle()
        records["runs"] = await trial.start({}, id="runs")
        await trial.settle()
        seen = await trial.client.ledger.load(list(records))
        assert {record.status for record in seen} == {"CANCELLED"} and "+late" not in book

        await trial.client.resume(cancelled=True, by="ann")

        found = {name: record.status for name, record in records.items()}
        assert found == {"waits": "PENDING", "cancelled": "CANCELLED", "undone": "CANCELLED", "runs": "PENDING"}
        await trial.settle()
        assert records["runs"].status == "DONE" and records["waits"].status == "WAITING"


async def test_an_undoing_that_a_halt_stops_says_so_at_once_and_goes_on_when_it_is_revived() -> None:
    """18: what is half undone is not left to be found by a beat, and nothing is undone twice."""
    book: list[str] = []

    async def stop(act: Act[list[str]], what: str) -> None:
        book.append(f"-{what}")
        if len(book) == 3:
            await trial.client.halt()

    async with Trial(_undoable(stop), deps=book) as trial:
        record = await trial.start({}, id="u")
        await trial.settle()
        await trial.client.cancel("u", undo=True)
        await trial.settle()
        assert record.status == "CANCELLED" and record.record.step == UNDO and book == ["+one", "+two", "-two"]
        last = trial.ledger.tables.events_of("u")[-1]
        kinds = [event.kind for event in trial.ledger.tables.events_of("u")]
        assert parse(last.body) == {"reason": "halted"} and "orphaned" not in kinds

        await trial.client.resume(cancelled=True)
        await trial.settle()

        assert record.status == "CANCELLED" and book == ["+one", "+two", "-two", "-one"]
        assert trial.ledger.tables.events_of("u")[-1].kind == "undone"


async def overdue(run: Run[Any, list[str]]) -> None:
    await asyncio.Event().wait()


async def broken(run: Run[Any, list[str]]) -> None:
    raise ValueError("no")


async def waits_with_what_cannot_be_kept(run: Run[Any, list[str]]) -> None:
    run.data["it"] = object()
    await run.wait("never")


async def starts_a_child_that_is_there(run: Run[Any, list[str]]) -> None:
    await run.child(half, {"n": 1}, id="it")


@pytest.mark.parametrize("end", [overdue, broken, waits_with_what_cannot_be_kept, starts_a_child_that_is_there])
async def test_what_a_record_did_is_undone_whatever_made_it_fail(end: Any) -> None:
    book: list[str] = []
    booked = asyncio.Event()
    saga: Workflow[Any, Any, Any] = Workflow("saga", retry=Retry(1), on_failure="undo")

    @saga.step(timeout="30s")
    async def only(run: Run[Any, list[str]]) -> None:
        await run.once(put, "flight")
        booked.set()
        await end(run)

    async with Trial(saga, deps=book, also=[half]) as trial:
        record = await trial.start({}, id="s")
        await trial.client.start(half, {"n": 1}, id="s/it~1/0")
        settling = asyncio.ensure_future(trial.settle())
        await booked.wait()
        for _ in range(200):
            trial.clock.advance("1s")
            await trial.clock.sleep(0)
        await settling

        assert (record.status, book) == ("CANCELLED", ["+flight", "-flight"])


async def test_a_record_whose_data_no_code_reads_is_an_error_and_is_undone_if_a_person_says_so() -> None:
    book: list[str] = []
    trip: Workflow[Any, Any, Any] = Workflow("trip", on_failure="undo")

    @trip.step(then="ride")
    async def fly(run: Run[Any, list[str]]) -> None:
        await run.once(put, "flight")

    trip.state("ride", then="hotel")

    @trip.step
    async def hotel(run: Run[Any, list[str]]) -> None: ...

    async with Trial(trip, deps=book) as trial:
        record = await trial.start({})
        await trial.settle()
        trip.version = 2
        trip.migrate(1)(lambda data: {"to": data["where"]})
        await trial.client.move(record.record_id, "hotel")
        await trial.settle()
        assert (record.status, book) == ("ERROR", ["+flight"])

        await trial.client.cancel(record.record_id, undo=True, by="ann@x.eu")
        await trial.settle()

        assert (record.status, book) == ("CANCELLED", ["+flight", "-flight"])


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("halted", [True, False], ids=["halted", "free"])
async def test_an_undo_asked_over_a_doubt_takes_back_what_was_done_and_nothing_more_is_done(
    happened: bool, halted: bool
) -> None:
    """18: the answer to the doubt does not let the record go on to its next effect."""
    book: list[str] = []

    @workflow(retry=Retry(1))
    async def three(run: Run[dict[str, Any], list[str]]) -> None:
        await run.once(put, "one")
        await run.once(unsure, "two")
        await run.once(put.named("three"), "three")

    async with Trial(three, deps=book) as trial:
        record = await trial.start({}, id="r")
        await trial.settle()
        asked = await trial.client.cancel("r", undo=True, by="ann@x.eu", reason="a typo")
        assert asked.status is Status.NEEDS_APPROVAL and book == ["+one", "+two"]
        if halted:
            await trial.client.halt()
        await trial.client.resolve("r", happened=happened, value="two")
        await trial.settle()
        if halted:
            await trial.client.resume(cancelled=True)
            await trial.settle()

        assert record.status == "CANCELLED" and record.record.step == UNDO
        assert book == (["+one", "+two", "-two", "-one"] if happened else ["+one", "+two", "-one"])
        [told] = [event for event in trial.ledger.tables.events_of("r") if event.kind == "cancel_asked"]
        assert parse(told.body) == {"by": "ann@x.eu", "reason": "a typo", "undo": True}


async def test_a_child_whose_doubt_was_answered_under_a_halt_acts_once_and_its_parent_ends_well() -> None:
    """5, 15: nobody needs a second child, which would act again under another key."""
    book: list[str] = []

    @workflow(retry=Retry(1))
    async def child(run: Run[dict[str, Any], list[str]]) -> str:
        return await run.once(unsure, "paid")

    @workflow(retry=Retry(1))
    async def parent(run: Run[dict[str, Any], list[str]]) -> list[str]:
        return await run.map(child, [{}], name="kids")

    async with Trial(parent, also=[child], deps=book) as trial:
        record = await trial.start({}, id="p")
        await trial.settle()
        [kid] = await trial.client.find(parent_id="p")
        assert kid.status is Status.NEEDS_APPROVAL
        await trial.client.halt()
        await trial.client.resolve(kid.record_id, happened=True, value="paid")
        await trial.settle()

        await trial.client.resume(cancelled=True)
        await trial.settle()

        assert (record.status, record.result, book) == ("DONE", ["paid"], ["+paid"])


@effect(undo=_take_back)
async def unsure(act: Act[list[str]], what: str) -> str:
    act.deps.append(f"+{what}")
    raise RuntimeError("nobody knows")
