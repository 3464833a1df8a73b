"""Limits: reached at the right call, then a person decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.agents.blueprint.reading import load
from quire.agents.missions.flow import compiled
from quire.agents.missions.replay import replay
from quire.agents.spend import LimitReached, Meter
from quire.client.client import Client
from quire.model.record import Status
from quire.model.wait import load_waits
from quire.testing import ToldClock
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
    plan = load(plan.as_json() | {"agents": [agent]})

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


async def test_a_limit_of_a_day_counts_over_all_missions_and_pauses_the_right_call(
    serve: Serve, tmp_path: Path
) -> None:
    server, clock = serve(echo), ToldClock()
    plan = blueprint(
        server.model(price={"input": 1.0, "output": 2.0}),
        names=["engineer"],
        max_turns=4,
        turns={},
        limits={"tokens_per_day": 1400},
    )

    async with opened(plan, f"sqlite:///{tmp_path / 'l.db'}", clock=clock) as client:
        await started(client, "m0")
        assert len(server.log) == 5  # four turns and the reducer: 1,000 tokens
        await started(client, "m1")
        question = await asking(client)
        [shown] = [wait.about["show"] for wait in load_waits((await client.get("m1")).waits) if wait.about]

        assert len(server.log) == 7  # 1,400 tokens: the third turn of the second mission does not begin
        assert question.startswith("colony has reached its limit of 1,400 tokens a day: 2 calls, 400 tokens")
        assert shown["otherwise"] == "it goes on by itself at 2026-01-02T00:00:00.000Z"
        asked = [entry.asked.turn for entry in server.log[5:]]

        clock.advance("23h")
        await client.work()
        assert len(server.log) == 7
        clock.advance("2h")  # another day
        await client.work()
        record = await client.get("m1")

    assert record.status is Status.DONE
    assert asked + [entry.asked.turn for entry in server.log[7:]] == [1, 2, 3, 4, 1]  # nothing was asked twice


@pytest.mark.parametrize(("word", "unit"), [("tokens_per_day", 200), ("calls_per_day", 1)])
async def test_a_limit_of_a_day_counts_missions_that_have_none(
    serve: Serve, tmp_path: Path, word: str, unit: int
) -> None:
    server, clock = serve(echo), ToldClock()
    free = blueprint(server.model(), names=["engineer"], max_turns=4, turns={}, mission="free")
    bound = blueprint(server.model(), names=["engineer"], max_turns=4, turns={}, limits={word: 7 * unit})
    flows = [compiled(free), compiled(bound)]

    async with quire.aopen(f"sqlite:///{tmp_path / 'l.db'}", workflows=flows, clock=clock) as client:
        await client.start("free", {}, id="f1")
        await client.work()
        assert await client.ledger.settings("spend/") == []  # nobody has a limit, so nothing is kept

        await client.start("colony", {}, id="m1")
        await client.work()
        assert len(server.log) == 5 + 2  # five before the limit was known, and two
        assert f"its limit of {7 * unit:,} {word.partition('_')[0]} a day" in await asking(client)

        await client.start("free", {}, id="f2")  # it has no limit: it goes on, and is counted
        await client.work()
        assert len(server.log) == 7 + 5
        assert [row.name[-2:] for row in await client.ledger.settings("spend/2026-01-01/")] == ["f1", "f2", "m1"]

        await client.answer("m1", "raise", by="ann", edits={"limits": {word: 13 * unit}})
        await client.work()
        assert len(server.log) == 12 + 1
        await asking(client)

        clock.advance("1d")
        await client.work()
        assert (await client.get("m1")).status is Status.DONE


async def test_a_step_that_is_entered_again_is_counted_again_for_the_day(serve: Serve) -> None:
    server, clock = serve(echo), ToldClock()
    plan = blueprint(server.model(), names=["engineer"], max_turns=1, turns={}, limits={"calls_per_day": 9})

    async with opened(plan, clock=clock) as client:
        await started(client)
        await client.retry("m1", step="reduce")
        await client.work()
        rows = await client.ledger.settings("spend/2026-01-01/")

    figures = [figure for row in rows for figure in json.loads(row.value).values()]
    assert len(server.log) == 3
    assert sum(figure["calls"] for figure in figures) == 3


@pytest.mark.parametrize(("choice", "calls"), [("raise", 5), ("finish", 3), ("stop", 2)])
async def test_a_person_decides_at_a_limit_of_a_day_in_dollars(serve: Serve, choice: str, calls: int) -> None:
    server, clock = serve(echo), ToldClock()
    plan = blueprint(
        server.model(price={"input": 1.0, "output": 2.0}),
        names=["engineer"],
        max_turns=4,
        turns={},
        limits={"usd_per_day": 0.0005},
    )

    async with opened(plan, clock=clock) as client:
        await started(client)
        assert "$0.0005 a day" in await asking(client)
        assert len(server.log) == 2
        await client.answer("m1", choice, by="ann", edits={"limits": {"usd_per_day": 9.0}} if choice == "raise" else {})
        await client.work()
        record = await client.get("m1")
        done = await replay(client.ledger, "m1") if record.status is Status.DONE else None

    assert len(server.log) == calls
    assert record.status is (Status.ERROR if choice == "stop" else Status.DONE)
    assert done is None or done.same


async def test_three_agents_of_two_missions_pass_a_limit_of_a_day_by_no_more_than_what_is_under_way(
    serve: Serve, tmp_path: Path
) -> None:
    server, clock = serve(echo), ToldClock()
    plan = blueprint(server.model(), limits={"tokens_per_day": 1000})

    async with opened(plan, f"sqlite:///{tmp_path / 'l.db'}", clock=clock) as client:
        [flow] = client.registry.workflows.values()
        await client.start(flow, {}, id="m1")
        await client.start(flow, {}, id="m2")
        await client.work()
        waiting = [record.record_id for record in await client.find(status=Status.NEEDS_APPROVAL)]

    assert 5 <= len(server.log) <= 4 + 6
    assert waiting == ["m1", "m2"]


async def test_a_step_that_runs_again_from_its_receipts_is_counted_once_for_the_day(serve: Serve) -> None:
    def answer(asked: Asked) -> Answer:
        results = [row for row in asked.body["messages"] if row["role"] == "tool"]
        if "editor" in asked.prompts[0] or results:
            return echo(asked)
        return Answer(tool=("look", {"where": "north"}), tokens=(150, 50))

    server, clock = serve(answer), ToldClock()
    agent = {"id": "a", "prompt": "[a] go", "tools": ["tests.agents.test_mission:look"], "approve": ["look"]}
    plan = blueprint(server.model(), max_turns=1, turns={}, limits={"tokens_per_day": 10_000})

    async with opened(load(plan.as_json() | {"agents": [agent]}), clock=clock) as client:
        await started(client)
        [part] = await client.find(status=Status.NEEDS_APPROVAL)
        await client.answer(part.record_id, "approve", by="ann")
        await client.work()
        assert (await client.get("m1")).status is Status.DONE
        rows = await client.ledger.settings("spend/2026-01-01/")

    figures = [figure for row in rows for figure in json.loads(row.value).values()]
    assert [row.name for row in rows] == ["spend/2026-01-01/m1"]
    assert len(server.log) == 3
    assert sum(figure["tokens_in"] + figure["tokens_out"] for figure in figures) == 3 * 200


async def test_time_that_runs_out_in_the_reducer_is_asked_about(serve: Serve) -> None:
    server, clock = serve(lambda asked: Answer("busy", status=503) if asked.number == 3 else echo(asked)), ToldClock()
    plan = blueprint(server.model(), names=["engineer"], limits={"wall": "1h"})

    async with opened(plan, clock=clock) as client:
        handle = await started(client)
        assert len(server.log) == 4
        clock.advance("2h")  # the reducer is due again, and out of time
        await client.work()
        question = await asking(client)
        assert len(server.log) == 4
        await client.answer("m1", "raise", by="ann")
        await client.work()
        report = await handle.result()

    assert question.startswith("editor has reached its limit: its time ended at 2026-01-01T01:00:00.000Z.")
    assert report.text == "<editor 1>"


@pytest.mark.parametrize("choice", ["raise", "finish"])
async def test_a_mission_that_ran_out_of_time_replays_to_the_same_result(serve: Serve, choice: str) -> None:
    server, clock = serve(lambda asked: Answer("busy", status=503) if asked.number == 1 else echo(asked)), ToldClock()
    plan = blueprint(server.model(), names=["engineer"], limits={"wall": "1h"})

    async with opened(plan, clock=clock) as client:
        await started(client)
        clock.advance("2h")
        await client.work()
        assert "1h of time" in await asking(client)
        await client.answer("m1", choice, by="ann", edits={"limits": {"wall": "9h"}} if choice == "raise" else {})
        await client.work()
        assert (await client.get("m1")).status is Status.DONE
        done = await replay(client.ledger, "m1")

    assert done.error == ""
    assert done.same


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ({"cals": 50}, "there is no limit 'cals'; did you mean 'calls'?"),
        ({"calls": "50"}, "calls: Input should be a valid integer"),
        ({"calls": 50, "wall": "soon"}, "wall: "),
        (50, "limits: "),
    ],
    ids=str,
)
async def test_limits_that_cannot_be_read_are_asked_for_again_and_lift_nothing(
    serve: Serve, written: Any, wrong: str
) -> None:
    server = serve(lambda asked: "fine")

    async with opened(blueprint(server.model(), limits={"calls": 3})) as client:
        await started(client)
        await client.answer("m1", "raise", by="ann", edits={"limits": written})
        await client.work()
        asking, calls = await client.get("m1"), len(server.log)
        await client.answer("m1", "raise", by="ann", edits={"limits": {"calls": 50}})
        await client.work()
        done = await client.get("m1")
        again = await replay(client.ledger, "m1")

    assert calls == 3 and asking.status is Status.NEEDS_APPROVAL and wrong in (asking.question or "")
    assert done.status is Status.DONE and len(server.log) == 10
    assert again.same
