"""An undo that finds out by itself what it has done is called again; one that took nothing back says why."""

from __future__ import annotations

from typing import Any

from quire import Act, Fail, Retry, Run, Workflow, effect
from quire.model.codec import parse
from quire.testing import Trial, every_kill
from quire.workflows.effect import Kept


def _flow(problems: list[str], book: list[str], *, repeats: bool) -> Workflow[Any, Any, None]:
    async def back(act: Act[Any], value: str) -> Kept | None:
        if problems:
            raise ConnectionError(problems.pop())
        if value == "touched":
            return Kept("somebody has changed it")
        if f"-{value}" not in book:
            book.append(f"-{value}")
        return None

    @effect(undo=back, undo_repeat=repeats)
    async def put(act: Act[Any], what: str) -> str:
        return what

    flow: Workflow[Any, Any, None] = Workflow("flow", on_failure="undo", retry=Retry(1))

    @flow.step
    async def step(run: Run[Any]) -> None:
        await run.once(put, run.data["what"])
        raise Fail("no")

    return flow


async def test_an_undo_that_broke_off_is_called_again_and_nobody_is_asked() -> None:
    book: list[str] = []
    async with Trial(_flow(["away", "away", "away"], book, repeats=True)) as trial:
        record = await trial.start({"what": "one"})
        await trial.settle()
        assert (record.status, book) == ("CANCELLED", ["-one"])


async def test_an_undo_that_breaks_off_again_and_again_is_asked_of_a_person() -> None:
    async with Trial(_flow(["away"] * 50, [], repeats=True)) as trial:
        record = await trial.start({"what": "one"})
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL" and "away" in str(record.record.waits)


async def test_without_that_word_a_person_is_asked_at_once() -> None:
    async with Trial(_flow(["away"], [], repeats=False)) as trial:
        record = await trial.start({"what": "one"})
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL"


async def test_what_an_undo_left_as_it_is_stands_in_the_log() -> None:
    async with Trial(_flow([], [], repeats=True)) as trial:
        record = await trial.start({"what": "touched"})
        await trial.settle()
        [line] = [one for one in trial.ledger.tables.events_of(record.record_id) if one.kind == "effect.kept"]
        assert record.status == "CANCELLED" and parse(line.body)["error"] == "somebody has changed it"


@every_kill
async def test_killed_anywhere_in_an_undo_that_may_be_called_again_nobody_is_asked() -> None:
    book: list[str] = []
    async with Trial(_flow([], book, repeats=True)) as trial:
        record = await trial.start({"what": "one"})
        await trial.advance("10m")
        assert (record.status, book) == ("CANCELLED", ["-one"])


async def test_the_intent_keeps_of_bytes_their_length_and_hash() -> None:
    @effect(repeat=True)
    async def keep(act: Act[Any], files: list[tuple[str, bytes]]) -> int:
        return len(files[0][1])

    flow: Workflow[Any, Any, None] = Workflow("flow")

    @flow.step
    async def step(run: Run[Any]) -> int:
        return await run.once(keep, [("a.bin", b"\xff\x00secret")])

    async with Trial(flow) as trial:
        record = await trial.start(None)
        await trial.settle()
        [receipt] = await trial.ledger.receipts(record_ids=[record.record_id])
        assert record.result == 8
        assert parse(receipt.args)["args"][0][0][1]["bytes"] == 8 and "secret" not in receipt.args
