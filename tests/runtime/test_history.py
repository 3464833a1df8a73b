"""What a record's data were at any version is known afterwards, whatever steps, waits and people did to them."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from quire import Retry, Run, Workflow
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Change, Refused, Verdict
from quire.model.codec import parse
from quire.model.record import Status
from quire.rules import changes
from quire.rules.difference import same
from quire.rules.draft import Draft
from quire.rules.versions import versions
from quire.testing import Trial


def flow() -> Workflow[dict[str, Any], Any, Any]:
    flow: Workflow[dict[str, Any], Any, Any] = Workflow("flow")

    @flow.step(then="count", retry=Retry(2, first="1s"))
    async def begin(run: Run[dict[str, Any]]) -> None:
        run.data["begun"] = run.attempt
        if run.attempt == 1:
            raise TimeoutError("once")  # what a try that failed wrote is forgotten

    @flow.step(then=["count", "ask"])
    async def count(run: Run[dict[str, Any]]) -> Literal["count", "ask"]:
        async for item in run.each([1, 2, 3], every=1):
            run.data["sum"] = run.data.get("sum", 0) + item
        run.data["round"] = run.data.get("round", 0) + 1
        return "count" if run.data["round"] < 3 else "ask"

    @flow.step
    async def ask(run: Run[dict[str, Any]]) -> str:
        run.data["draft"] = "about " + run.data["topic"]
        await run.ask("Good?", show={"draft": run.data["draft"]}, edit=["draft"])
        await run.sleep("1h")
        del run.data["topic"]
        return "end"

    return flow


async def test_every_version_of_a_record_that_was_worked_on_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    were: dict[int, Any] = {}
    apply = MemoryLedger._apply

    def watched(ledger: MemoryLedger, draft: Draft) -> None:
        apply(ledger, draft)
        were.update({record.version: parse(record.data) for record in draft.records.values()})

    monkeypatch.setattr(MemoryLedger, "_apply", watched)
    async with Trial(flow()) as trial:
        record = await trial.start({"topic": "tea"})
        await trial.advance("2s")
        await trial.client.answer(record.record_id, "approve", edits={"draft": "better"})
        await trial.advance("2h")
        row = await trial.client.get(record.record_id)
        log = await trial.client.events(record.record_id, limit=1000)

    assert row.status == "DONE"
    told = versions(row, reversed(log))
    assert told.end == "" and len(told.found) > 10 and set(were) == set(range(1, row.version + 1))
    for version, real in were.items():
        one = told.at(version)
        assert one is not None and not one.data.unknown
        assert same(dict(one.data.fields), real), version


async def test_a_move_that_the_ledger_refuses_leaves_the_data_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = changes.decide

    def fussy(draft: Draft, asked: Change) -> Verdict:
        if asked.image is not None and asked.image.status is Status.DONE:
            return Refused("value", "not this")
        return decide(draft, asked)

    monkeypatch.setattr(changes, "decide", fussy)
    plain: Workflow[dict[str, Any], Any, Any] = Workflow("plain")

    @plain.step
    async def write(run: Run[dict[str, Any]]) -> None:
        run.data["n"] = 2

    async with Trial(plain) as trial:
        record = await trial.start({"n": 1})
        await trial.settle()
        row = await trial.client.get(record.record_id)
        log = await trial.client.events(record.record_id)

    assert row.status is Status.ERROR and row.last_error == "value: not this"
    assert parse(row.data) == {"n": 1}
    assert [one.data.fields for one in versions(row, reversed(log)).found] == [{"n": 1}]
