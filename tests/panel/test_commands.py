"""Words typed in the sheet: obeyed once, bound to what was shown, refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from quire import Act, Run, effect, workflow
from quire.errors import QuireError
from quire.model.record import Status
from quire.testing import ToldClock
from tests.panel.conftest import BROKEN, POSTED, Sheet, asking, opened


async def test_approve_typed_in_the_cell_ends_the_record_and_the_cell_is_cleared(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.type("a1", "command", " approve ")
        await panel.look()
        row = sheet.row("a1")
        await panel.client.work()
        await panel.look()

        assert row["command"] == "" and row["reply"].startswith("APPROVE: done (")
        assert sheet.row("a1")["status"] == "DONE" and POSTED == ["tea"]
        [answered] = [event for event in await panel.client.events("a1") if event.kind == "answered"]
        assert '"by":"sheet"' in answered.body and '"via":"sheet"' in answered.body


async def test_an_approval_of_something_that_has_changed_is_refused_with_the_reason(
    sheet: Sheet, clock: ToldClock
) -> None:
    async with opened(sheet, clock=clock) as panel:
        await asking(panel)
        clock.advance("1m")
        await panel.client.retry("a1", step="draft")  # it asks again, and the sheet does not know yet
        await panel.client.work()
        sheet.type("a1", "command", "APPROVE")
        await panel.look()

        row = sheet.row("a1")
        assert "APPROVE refused: what is asked has changed since it was shown" in row["reply"]
        assert row["command"] == "" and row["status"] == "NEEDS_APPROVAL"
        sheet.type("a1", "command", "APPROVE")
        await panel.look()
        await panel.client.work()
        assert (await panel.client.get("a1")).status is Status.DONE


@effect
async def number(act: Act) -> str:
    return 17  # type: ignore[return-value]  # as code does that nobody checks


async def test_happened_in_a_cell_takes_the_value_that_the_step_goes_on_with(sheet: Sheet) -> None:
    @workflow
    async def invoice(run: Run[dict[str, Any]]) -> str:
        return await run.once(number)

    async with opened(sheet) as panel:
        panel.client.registry.add(invoice)
        await panel.client.start(invoice, {}, id="i1")
        await panel.client.work()
        await panel.look()
        replies = []
        for word in ("happened", "NOT", "HAPPENED INV 17"):
            sheet.type("i1", "command", word)
            await panel.look()
            replies.append(sheet.row("i1")["reply"])
        await panel.client.work()

        assert "the step goes on with what 'number' returned; type HAPPENED and that value" in replies[0]
        assert "happened; say what it returned" in replies[1]
        assert replies[2].startswith("HAPPENED: done") and sheet.row("i1")["command"] == ""
        assert (await panel.client.get("i1")).result == '"INV 17"'


async def test_a_word_beside_what_was_edited_meanwhile_is_refused_until_it_is_asked_anew(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        await panel.client.edit("a1", {"keyword": "tea", "draft": "Buy now!"}, by="bob")
        sheet.type("a1", "command", "APPROVE")
        await panel.look()
        assert "APPROVE refused" in sheet.row("a1")["reply"]
        await panel.client.work()
        await panel.look()

        assert sheet.row("a1")["status"] == "NEEDS_APPROVAL"
        assert "Buy now!" in sheet.row("a1")["asks"]


async def test_a_word_that_was_typed_while_the_question_changed_answers_neither(sheet: Sheet, clock: ToldClock) -> None:
    """The word lands between our read and our write: it was typed for the question that stood there before."""
    async with opened(sheet, clock=clock) as panel:
        await asking(panel)
        clock.advance("1m")
        await panel.client.retry("a1", step="draft")
        await panel.client.work()
        write = panel.book.write

        async def meanwhile(*args: Any, **kwargs: Any) -> Any:
            sheet.type("a1", "command", "APPROVE")
            return await write(*args, **kwargs)

        panel.book.write = meanwhile  # type: ignore[method-assign]
        await panel.look()
        panel.book.write = write  # type: ignore[method-assign]
        await panel.look()

        assert "what is asked has changed" in sheet.row("a1")["reply"]
        assert (await panel.client.get("a1")).status is Status.NEEDS_APPROVAL


@pytest.mark.parametrize(
    ("word", "reply"),
    [
        ("APROVE", "APROVE refused: 'APROVE' is no answer to this; did you mean 'approve'?"),
        ("RETRY", "RETRY refused: cannot retry 'a1': it is NEEDS_APPROVAL"),
        ("=1+1", "=1+1 refused: '=1+1' is no answer"),
        ("42", "42 refused: '42' is no answer"),
    ],
)
async def test_a_word_that_is_not_legal_is_refused_beside_it(sheet: Sheet, word: str, reply: str) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        before = await panel.client.get("a1")
        sheet.type("a1", "command", word)
        await panel.look()
        row = sheet.row("a1")

        assert row["reply"].startswith(reply) and row["command"] == ""
        assert await panel.client.get("a1") == before


async def test_retry_cancel_and_a_successors_name(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        BROKEN.add("tea")
        await panel.client.start("board", {}, id="b1")
        await asking(panel)
        sheet.type("a1", "command", "APPROVE")
        sheet.type("b1", "command", "doing")
        await panel.look()
        await panel.client.work()
        await panel.look()
        assert sheet.row("a1")["status"] == "ERROR" and "is gone" in sheet.row("a1")["last_error"]
        assert sheet.row("b1")["next_step"] == "DOING" and sheet.row("b1")["reply"].startswith("DOING: moved")

        BROKEN.clear()
        sheet.type("a1", "command", "RETRY")
        sheet.type("b1", "command", "CANCEL")
        await panel.look()
        await panel.client.work()
        await panel.look()
        assert sheet.row("a1")["status"] == "DONE" and sheet.row("b1")["status"] == "CANCELLED"


async def test_a_cell_does_not_answer_for_a_named_person(sheet: Sheet) -> None:
    from quire import Workflow
    from quire.client.client import Client
    from quire.surfaces.panel import Panel

    flow: Workflow[dict[str, Any], str, None] = Workflow("signed", result=str)

    @flow.step
    async def sign(run: Run[dict[str, Any]]) -> str:
        return (await run.ask("Sign?", by="ann@x.eu")).choice

    async with Client("memory:", workflows=[flow]) as client, Panel(client, sheet.url) as panel:
        await client.start(flow, {}, id="s1")
        await client.work()
        await panel.look()
        sheet.type("s1", "command", "APPROVE")
        await panel.look()

        assert "it is for ann@x.eu, and a cell does not know who types in it" in sheet.row("s1")["reply"]
        assert (await client.get("s1")).status is Status.NEEDS_APPROVAL


@pytest.mark.parametrize("applied", [False, True], ids=["write-lost", "answer-lost"])
async def test_a_command_whose_answer_could_not_be_written_is_obeyed_once(
    sheet: Sheet, tmp_path: object, applied: bool
) -> None:
    """The process dies between the ledger's commit and the sheet's write; the next one reads the word again."""
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    async with opened(sheet, ledger) as panel:
        BROKEN.add("tea")
        await asking(panel)
        await panel.client.answer("a1", "approve")
        await panel.client.work()
        await panel.look()
        sheet.type("a1", "command", "RETRY")
        fault = "lost_answer" if applied else "reset"
        sheet.fault(fault, kind="batchUpdate", write=True, count=1)
        with pytest.raises(QuireError):
            await panel.look()
        await panel.client.work()  # it runs, and breaks again
        await panel.lease.release()
        assert POSTED == ["tea", "tea"]
    posted = list(POSTED)
    async with opened(sheet, ledger) as panel:
        await panel.look()
        await panel.look()
        await panel.client.work()

        row = sheet.row("a1")
        assert row["command"] == "" and row["reply"].startswith("RETRY: done")
        assert POSTED == [] and len(posted) == 2
        assert [e.kind for e in await panel.client.events("a1")].count("retried") == 1


async def test_a_word_typed_beside_one_record_stays_when_rows_are_sorted_before_the_write(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        for name in ("a1", "b2", "c3"):
            await asking(panel, name, keyword=name)
        sheet.type("a1", "command", "REJECT")
        write = panel.book.write

        async def meanwhile(*args: Any, **kwargs: Any) -> Any:
            if sheet.row("c3")["command"] == "":
                sheet.person("sort", range="A2:P5", column=1)
                sheet.type("c3", "command", "REWRITE")
            return await write(*args, **kwargs)

        panel.book.write = meanwhile  # type: ignore[method-assign]
        await panel.look()
        panel.book.write = write  # type: ignore[method-assign]
        assert sheet.row("c3")["command"] == "REWRITE"
        await panel.look()
        await panel.client.work()
        await panel.look()

        assert sheet.row("a1")["status"] == "DONE" and [row["command"] for row in sheet.rows()] == ["", "", ""]
        kinds = [e.body for e in await panel.client.events("a1") if e.kind == "answered"]
        assert len(kinds) == 1
        assert [e.kind for e in await panel.client.events("c3")].count("asked") == 2


async def test_stop_halts_once_and_unticks_itself(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        before = (await panel.client.standing()).epoch
        sheet.person("insert_rows", "panel", at=1, count=1)  # people move things: the box is found by its label
        sheet.person("edit", "panel", cell="B2", text="TRUE")
        await panel.look()
        await panel.look()

        grid = sheet.grid("panel")
        assert grid[1][1] == "FALSE" and grid[1][2].startswith("halted at") and grid[2][1] == "HALTED"
        assert "by sheet since" in grid[2][2]
        assert (await panel.client.standing()).epoch == before + 1
        await panel.client.resume()
        await panel.client.start("board", {}, id="b1")
        await panel.look()
        assert sheet.grid("panel")[2][1] == "OPEN"
