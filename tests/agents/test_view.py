"""A mission as plain data for a page: turns side by side, spend, questions, result."""

from __future__ import annotations

import json

import pytest

from quire.agents import mission_view
from quire.errors import InputError, NotFound
from tests.agents.conftest import Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Answer, Asked


def echo(asked: Asked) -> Answer:
    return Answer(f"<{agent_of(asked.prompts[0])} {asked.turn}>", tokens=(100, 50))


async def test_turns_stand_side_by_side_with_what_they_cost_and_the_result(serve: Serve) -> None:
    server = serve(echo)
    plan = blueprint(server.model(price={"input": 1.0, "output": 4.0}))

    async with opened(plan) as client:
        await started(client)
        view = await mission_view(client.ledger, "m1")
        from_part = await mission_view(client.ledger, "m1/colony~1/0")

    assert json.loads(json.dumps(view)) == view  # plain data
    assert from_part == view
    assert [agent["id"] for agent in view["agents"]] == ["engineer", "resources", "governor"]
    assert [[turn["text"] for turn in agent["turns"]] for agent in view["agents"]] == [
        [f"<{name} {turn}>" for turn in (1, 2, 3)] for name in ("engineer", "resources", "governor")
    ]
    second = view["agents"][1]["turns"][1]
    assert (second["turn"], second["status"], second["tokens"], second["calls"]) == (2, "done", 150, 1)
    assert second["prompt"] == "STORM: what now?"
    assert second["usd"] == pytest.approx(0.0003)
    assert view["spent"]["tokens"] == 10 * 150
    assert (view["reducer"]["id"], view["reducer"]["turns"][0]["text"]) == ("editor", "<editor 1>")
    assert view["result"]["text"] == "<editor 1>" and view["result"]["markdown"].startswith("# colony\n")
    assert (view["status"], view["asks"], view["error"]) == ("DONE", [], "")


async def test_a_mission_that_waits_for_people_says_who_waits_for_what(serve: Serve) -> None:
    server = serve(lambda asked: Answer("fine", refused="governor" in asked.prompts[0] and asked.turn == 2))

    async with opened(blueprint(server.model())) as client:
        await started(client)
        view = await mission_view(client.ledger, "m1")

    by_name = {agent["id"]: agent for agent in view["agents"]}
    assert [turn["status"] for turn in by_name["engineer"]["turns"]] == ["done"] * 3
    assert [turn["status"] for turn in by_name["governor"]["turns"]] == ["done", "asking", "to come"]
    assert by_name["governor"]["status"] == "asking"
    assert view["asks"] == [
        {"record_id": by_name["governor"]["record_id"], "question": view["asks"][0]["question"]},
    ]
    assert "refuses to answer" in view["asks"][0]["question"]
    assert view["result"] is None
    assert view["reducer"]["turns"][0]["status"] == "to come"


async def test_a_failed_agent_says_why(serve: Serve) -> None:
    server = serve(lambda asked: Answer("wrong", status=401) if "[engineer]" in asked.prompts[0] else echo(asked))

    async with opened(blueprint(server.model(), policy="best_effort")) as client:
        await started(client)
        view = await mission_view(client.ledger, "m1")

    engineer = view["agents"][0]
    assert (engineer["status"], engineer["turns"][0]["status"]) == ("failed", "failed")
    assert "trying again cannot help" in engineer["error"]
    assert view["result"]["status"] == "partial"


async def test_what_is_no_mission_is_refused_by_name(serve: Serve) -> None:
    async with opened(blueprint(serve(echo).model())) as client:
        [flow] = client.registry.workflows.values()
        await client.start(flow, {}, id="m1")
        with pytest.raises(InputError, match="has not begun"):
            await mission_view(client.ledger, "m1")
        with pytest.raises(NotFound, match="m2"):
            await mission_view(client.ledger, "m2")
