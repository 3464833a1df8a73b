"""Limits: reached at the right call, then a person decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quire.agents.blueprint import load
from quire.agents.spend import LimitReached, Meter
from quire.model.record import Status
from quire.surfaces.client import Client
from tests.agents.conftest import Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Answer, Asked


def echo(asked: Asked) -> Answer:
    return Answer(f"<{agent_of(asked.prompts[0])} {asked.turn}>", tokens=(150, 50))


async def asking(client: Client) -> str:
    record = await client.get("m1")
    assert record.status is Status.NEEDS_APPROVAL
    return record.question or ""


async def test_a_budget_of_1000_tokens_pauses_the_mission_at_the_right_call(serve: Serve) -> None:
    server = serve(echo)
    plan = blueprint(server.model(), names=["engineer"], max_turns=9, turns={}, limits={"tokens": 1000})

    async with opened(plan) as client:
        handle = await started(client)
        question = await asking(client)

        assert len(server.log) == 5  # 5 × 200 = 1,000: the sixth does not begin
        assert question.startswith("colony has reached its limit of 1,000 tokens: 5 calls, 1,000 tokens")

        await client.answer("m1", "raise", by="ann")  # to twice as many
        await client.work()
        report = await handle.result()

    assert report.status == "done"
    assert [entry.asked.turn for entry in server.log] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 1]


async def test_three_agents_share_what_is_left_and_one_question_is_asked(serve: Serve) -> None:
    server = serve(echo)
    plan = blueprint(server.model(), limits={"tokens": 1000})

    async with opened(plan) as client:
        await started(client)
        question = await asking(client)
        others = [record for record in await client.find(status=Status.NEEDS_APPROVAL) if record.record_id != "m1"]

    assert "1,200 tokens" in question  # three calls were under way when 600 became 1,200
    assert len(server.log) == 6
    assert others == []


@pytest.mark.parametrize(("choice", "status", "calls"), [("finish", Status.DONE, 4), ("stop", Status.ERROR, 3)])
async def test_a_person_finishes_with_what_is_there_or_stops(
    serve: Serve, choice: str, status: Status, calls: int
) -> None:
    server = serve(echo)
    plan = blueprint(server.model(), names=["engineer"], max_turns=9, turns={}, limits={"calls": 3})

    async with opened(plan) as client:
        await started(client)
        await asking(client)
        await client.answer("m1", choice, by="ann")
        await client.work()
        record = await client.get("m1")

    assert record.status is status
    assert len(server.log) == calls
    if status is Status.DONE:
        assert '"status":"partial"' in (record.result or "")
        assert "<engineer 3>" in server.log[-1].asked.prompt
    else:
        assert "stopped by ann" in (record.last_error or "")


async def test_a_limit_in_the_middle_of_a_turn_loses_nothing_of_it(serve: Serve) -> None:
    def answer(asked: Asked) -> Answer:
        results = [row for row in asked.body["messages"] if row["role"] == "tool"]
        if "editor" not in asked.prompts[0] and len(results) < 3:
            return Answer(tool=("look", {"where": f"place {len(results)}"}), tokens=(150, 50))
        return echo(asked)

    server = serve(answer)
    plan = blueprint(server.model(), names=["engineer"], max_turns=1, turns={}, limits={"tokens": 500})
    agent = {"id": "engineer", "prompt": "[engineer] go", "tools": ["tests.agents.test_mission:look"]}
    plan = load(plan.told() | {"agents": [agent]})

    async with opened(plan) as client:
        handle = await started(client)
        await asking(client)
        assert len(server.log) == 3

        await client.answer("m1", "raise", by="ann", edits={"limits": {"tokens": 9000}})
        await client.work()
        report = await handle.result()

    assert report.agents[0].text == "<engineer 1>"
    assert len(server.log) == 5  # three before, one after, and the reducer: nothing was asked twice
    results = [row["content"] for row in server.log[3].asked.body["messages"] if row["role"] == "tool"]
    assert results == ["nothing place 0", "nothing place 1", "nothing place 2"]


@pytest.mark.parametrize("limits", [{"usd": 0.0005}, {"wall": "1ms"}], ids=["money", "time"])
async def test_money_and_time_are_limits_too(serve: Serve, limits: dict[str, Any]) -> None:
    server = serve(echo)
    model = server.model(price={"input": 1.0, "output": 2.0})
    plan = blueprint(model, names=["engineer"], max_turns=9, turns={}, limits=limits)

    async with opened(plan) as client:
        await started(client)
        question = await asking(client)

    assert ("$0.0005" if "usd" in limits else "1ms of time") in question
    assert len(server.log) == (2 if "usd" in limits else 0)


async def test_a_limit_in_dollars_without_a_price_is_not_passed_over_in_silence(serve: Serve) -> None:
    server = serve(echo)
    model = {**server.model(), "model": "openai:a-model-that-nobody-sells"}
    plan = blueprint(model, names=["engineer"], max_turns=9, turns={}, limits={"usd": 1.0})

    async with opened(plan) as client:
        await started(client)
        await client.work()
        record = await client.get("m1")

    assert len(server.log) == 1
    assert record.status is Status.ERROR
    assert "the price of this model is not known" in (record.last_error or "")


def test_a_meter_says_when_it_is_enough() -> None:
    meter = Meter({"tokens": 30, "usd": None})

    meter.add({"reply": [], "usage": {"in": 20, "out": 9}, "usd": 0.0})
    meter.check()
    meter.add({"reply": [], "usage": {"in": 1, "out": 0}, "usd": 0.0})

    with pytest.raises(LimitReached, match="30 tokens are spent of 30 tokens"):
        meter.check()


async def test_calls_over_a_day_are_counted_over_all_missions(serve: Serve, tmp_path: Path) -> None:
    from quire.testing import ToldClock

    server, clock = serve(echo), ToldClock()
    plan = blueprint(server.model(), names=["engineer"], max_turns=1, turns={}, limits={"calls_per_day": 3})

    async with opened(plan, clock=clock) as client:
        await started(client, "m1")
        await started(client, "m2")
        waiting = await client.get("m2")

        assert len(server.log) == 3
        assert waiting.status is not Status.DONE
        clock.advance("1d")
        await client.work()
        assert (await client.get("m2")).status is Status.DONE
