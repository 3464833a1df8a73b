"""An answer stands for what was shown: quorums, edits meanwhile, votes."""

from __future__ import annotations

from typing import Any

import pytest

import quire
from quire import Run, workflow
from quire.errors import IllegalMove
from quire.testing import Trial


async def test_more_answers_than_one_are_needed_where_a_quorum_is_asked_for() -> None:
    @workflow
    async def vote(run: Run[dict[str, Any]]) -> str:
        answer = await run.ask("pay?", by=["ann@x.eu", "bob@x.eu", "eve@x.eu"], quorum=2, show=run.data)
        return f"{answer.choice} by {answer.by}"

    async with Trial(vote) as trial:
        record = await trial.start({"amount": 5})
        await trial.settle()
        await record.answer("approve", by="ann@x.eu")
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL"
        with pytest.raises(quire.QuireError, match="has answered already"):
            await record.answer("approve", by="ann@x.eu")
        with pytest.raises(quire.QuireError, match="may not answer"):
            await record.answer("approve", by="mallory@x.eu")

        await record.answer("approve", by="eve@x.eu")
        await trial.settle()

        assert record.result == "approve by ann@x.eu, eve@x.eu"


async def test_an_answer_to_what_has_changed_since_is_refused() -> None:
    @workflow
    async def shown(run: Run[dict[str, Any]]) -> None:
        await run.ask("publish?", show=run.data["text"])

    async with Trial(shown) as trial:
        record = await trial.start({"text": "old"})
        await trial.settle()
        seen = (await trial.client.show(record.record_id)).waits[0].name
        await trial.client.edit(record.record_id, {"text": "new"}, by="ann@x.eu")
        await trial.client.retry(record.record_id, step="shown", by="ann@x.eu")
        await trial.settle()

        with pytest.raises(IllegalMove, match="has changed since it was shown"):
            await trial.client.answer(record.record_id, "approve", seen=seen, by="ann@x.eu")


async def _paid(run: Run[dict[str, Any]]) -> int | None:
    answer = await run.ask("pay?", show=run.data["amount"], by=["ann", "bob"], quorum=run.data.get("quorum", 1))
    if run.data.get("bug"):
        raise quire.Fail("the bank is closed")
    return run.data["amount"] if answer else None


async def _asks(trial: Trial[Any, Any, Any], record_id: str) -> tuple[Any, str]:
    """What is shown, and its hash."""
    [wait] = (await trial.client.show(record_id)).waits
    assert wait.about is not None
    return wait.about["show"], wait.about["hash"]


async def test_what_was_edited_while_it_asked_is_asked_anew_and_the_old_hash_is_refused() -> None:
    async with Trial(workflow(_paid)) as trial:
        record = await trial.start({"amount": 120})
        id_ = record.record_id
        await trial.settle()
        _, seen = await _asks(trial, id_)
        await trial.client.edit(id_, {"amount": 120_000}, by="mallory")
        with pytest.raises(IllegalMove, match="asks nothing"):
            await trial.client.answer(id_, "approve", seen=seen, by="ann")
        await trial.settle()

        with pytest.raises(IllegalMove, match="has changed since it was shown"):
            await trial.client.answer(id_, "approve", seen=seen, by="ann")
        shown, seen = await _asks(trial, id_)
        await trial.client.answer(id_, "approve", seen=seen, by="ann")
        await trial.settle()
        assert (shown, record.result) == (120_000, 120_000)


async def test_an_answer_does_not_stand_for_what_was_edited_after_it() -> None:
    async with Trial(workflow(_paid)) as trial:
        record = await trial.start({"amount": 120})
        id_ = record.record_id
        await trial.settle()
        await trial.client.answer(id_, "approve", by="ann")
        await trial.client.edit(id_, {"amount": 120_000}, by="mallory")
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL"
        assert (await _asks(trial, id_))[0] == 120_000

        await trial.client.answer(id_, "reject", by="ann")
        await trial.settle()
        assert (record.status, record.result) == ("DONE", None)


async def test_an_approval_does_not_stand_for_what_was_edited_before_a_retry() -> None:
    async with Trial(workflow(_paid)) as trial:
        record = await trial.start({"amount": 120, "bug": True})
        id_ = record.record_id
        await trial.settle()
        await trial.client.answer(id_, "approve", by="ann")
        await trial.settle()
        assert record.status == "ERROR"
        await trial.client.edit(id_, {"amount": 120_000}, by="mallory")
        await trial.client.retry(id_)
        await trial.settle()

        assert record.status == "NEEDS_APPROVAL"
        assert (await _asks(trial, id_))[0] == 120_000


async def test_an_edit_of_what_was_not_shown_leaves_answers_and_votes() -> None:
    async with Trial(workflow(_paid)) as trial:
        record = await trial.start({"amount": 120, "quorum": 2})
        id_ = record.record_id
        await trial.settle()
        asked = await _asks(trial, id_)
        await trial.client.answer(id_, "approve", by="ann")
        await trial.client.edit(id_, {"amount": 120, "quorum": 2, "note": "a"}, by="eve")
        await trial.settle()
        assert await _asks(trial, id_) == asked
        await trial.client.answer(id_, "approve", seen=asked[1], by="bob")
        await trial.client.edit(id_, {"amount": 120, "quorum": 2, "note": "b"}, by="eve")
        await trial.settle()

        assert (record.status, record.result) == ("DONE", 120)


async def test_votes_for_what_was_shown_before_an_edit_do_not_count() -> None:
    async with Trial(workflow(_paid)) as trial:
        record = await trial.start({"amount": 120, "quorum": 2})
        id_ = record.record_id
        await trial.settle()
        await trial.client.answer(id_, "approve", by="ann")
        await trial.client.edit(id_, {"amount": 120_000, "quorum": 2}, by="mallory")
        await trial.settle()
        await trial.client.answer(id_, "approve", by="bob")
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL"

        await trial.client.answer(id_, "approve", by="ann")
        await trial.settle()
        assert record.result == 120_000


async def test_an_answer_stands_though_each_pass_shows_something_else_if_nobody_edited() -> None:
    """What a pass makes anew each time (a moment, a set's order) must not be asked for ever."""
    passes = iter(range(9))

    @workflow
    async def moody(run: Run[dict[str, Any]]) -> bool:
        return bool(await run.ask("go?", show=next(passes), edit=["text"]))

    async with Trial(moody) as trial:
        record = await trial.start({"text": "old"})
        await trial.settle()
        await record.answer("approve", by="ann", edits={"text": "new"})
        await trial.settle()

        assert record.result is True
