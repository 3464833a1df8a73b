"""Conversations within ordinary workflows: approvals that outlive the process, tools done once, budgets."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

import quire
from quire import Run, workflow
from quire.agents import Receipts, converse, durable, mission
from quire.agents.blueprint.reading import load
from quire.agents.durability import Prompt
from quire.errors import DefinitionError
from quire.model.record import Status
from quire.testing import ToldClock
from tests.agents.flows import Ticket, answer_ticket, helper

ROOT = Path(__file__).parents[2]

Respond = Callable[[list[ModelMessage]], ModelResponse]


def model(respond: Respond) -> FunctionModel:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return respond(messages)

    return FunctionModel(answer)


def returned(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]


@contextmanager
def _elsewhere(url: str) -> Iterator[Callable[[], None]]:
    """What is called works in a new process until nothing is due."""
    command = [sys.executable, "-m", "tests.agents.flows", url]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as origin:
        assert origin.stdin is not None and origin.stdout is not None

        def work() -> None:
            print("work", file=origin.stdin, flush=True)
            assert origin.stdout.readline() == "0\n"  # type: ignore[union-attr]  # it is a pipe

        yield work


async def test_an_approval_is_asked_in_one_process_and_the_tool_done_once_in_another(tmp_path: Path) -> None:
    url, till = f"sqlite:///{tmp_path / 'l.db'}", tmp_path / "till"
    groups = {"finance": ["ann"]}
    async with quire.aopen(url, workflows=[answer_ticket], groups=groups) as client, AsyncExitStack() as ended:
        elsewhere = ended.enter_context(_elsewhere(url))
        await client.start(answer_ticket, Ticket(text="my money", till=str(till)), id="t1")
        elsewhere()
        record = await client.get("t1")

        assert record.status is Status.NEEDS_APPROVAL
        assert record.question == "May support do pay_out(amount=0.0)?"
        assert not till.exists()

        await client.answer("t1", "approve", by="ann")
        elsewhere()
        elsewhere()
        record = await client.get("t1")

    assert record.status is Status.DONE
    assert till.read_text() == "0.0\n"


@pytest.mark.parametrize("way", ["reject", "expire"])
async def test_what_nobody_approves_is_not_done_and_the_agent_is_told(way: str) -> None:
    clock, told = ToldClock(), []

    def respond(messages: list[ModelMessage]) -> ModelResponse:
        results = returned(messages)
        told.extend(results)
        return ModelResponse(parts=[TextPart("so be it") if results else ToolCallPart("pay", {"amount": 5})])

    agent = Agent(model(respond), name="payer")

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        raise AssertionError("it was not approved")

    @workflow
    async def paying(run: Run[dict[str, Any], None]) -> str:
        return await converse(run, agent, "pay", deps=None, approver="ann@x.eu", expires="2d")

    async with quire.aopen("memory:", workflows=[paying], clock=clock) as client:
        handle = await client.start(paying, {}, id="p1")
        await client.work()
        if way == "reject":
            await client.answer("p1", "reject", by="ann@x.eu", note="too much")
        else:
            clock.advance("3d")
        await client.work()

        assert await handle.result() == "so be it"
    assert told == ["It was not done; ann@x.eu said no: too much." if way == "reject" else told[0]]
    assert "not done" in told[0]


async def test_an_interrupted_step_asks_neither_model_nor_tool_twice() -> None:
    asked, done = [], []

    def respond(messages: list[ModelMessage]) -> ModelResponse:
        asked.append(len(messages))
        results = returned(messages)
        if len(results) < 2:
            return ModelResponse(parts=[ToolCallPart("look", {"place": len(results)})])
        return ModelResponse(parts=[TextPart(f"seen {results}")])

    agent = Agent(model(respond), name="scout")

    @agent.tool_plain
    async def look(place: int) -> str:
        done.append(place)
        if place == 0 and len(done) == 1:
            raise ModelRetry("it is dark; look again")
        return f"place {place}"

    @workflow
    async def scouting(run: Run[dict[str, Any], None]) -> str:
        text = await converse(run, agent, "look around", deps=None)
        await run.sleep("1h")  # the step starts again from its top after this
        return text

    clock = ToldClock()
    async with quire.aopen("memory:", workflows=[scouting], clock=clock) as client:
        handle = await client.start(scouting, {}, id="s1")
        await client.work()
        clock.advance("2h")
        await client.work()

        assert "place 1" in await handle.result()
    assert len(asked) == 3
    assert done == [0, 1]


async def test_a_budget_that_is_reached_waits_for_a_person() -> None:
    asked = []

    def respond(messages: list[ModelMessage]) -> ModelResponse:
        asked.append(1)
        usage = RequestUsage(input_tokens=500, output_tokens=100)
        part = ToolCallPart("more", {}) if len(asked) < 5 else TextPart("done")
        return ModelResponse(parts=[part], usage=usage)

    agent = Agent(model(respond), name="spender")

    @agent.tool_plain
    def more() -> str:
        return "more"

    @workflow
    async def spending(run: Run[dict[str, Any], None]) -> str:
        return await converse(run, agent, "spend", deps=None, approver="ann", budget_tokens=1000)

    async with quire.aopen("memory:", workflows=[spending]) as client:
        handle = await client.start(spending, {}, id="s1")
        await client.work()
        record = await client.get("s1")

        assert len(asked) == 2
        assert record.question == "spender has reached its limit: 1,200 tokens are spent of 1,000 tokens. Double it?"
        await client.answer("s1", "raise", by="ann")
        await client.work()
        assert len(asked) == 4
        await client.answer("s1", "raise", by="ann")
        await client.work()
        assert await handle.result() == "done"


async def test_a_mission_is_a_child_like_any_other() -> None:
    roadmap = mission(
        load(
            {
                "mission": "roadmap",
                "model": "scripted",
                "agents": [{"id": "ceo", "prompt": "Plan {{topic}}."}],
                "reducer": {"id": "vc", "prompt": "Sum up."},
            }
        )
    )

    @workflow
    async def asking(run: Run[dict[str, Any], None]) -> str:
        report = await run.child(roadmap, {"topic": "refunds"})
        return report.agents[0].text

    async with quire.aopen("memory:", workflows=[asking, roadmap]) as client:
        handle = await client.start(asking, {}, id="a1")
        await client.work()

        assert "Plan refunds." in await handle.result()


async def test_an_agent_hands_a_question_to_a_person_and_waits_for_days(serve: Any) -> None:
    from tests.agents.missions import opened, started
    from tests.agents.stand_in import Answer, Asked

    def answer(asked: Asked) -> Answer:
        results = [row["content"] for row in asked.body["messages"] if row["role"] == "tool"]
        if "editor" in asked.prompts[0] or results:
            return Answer(f"then {results}")
        return Answer(tool=("ask_person", {"question": "Which city?", "choices": ["Bonn", "Rome"]}))

    server = serve(answer)
    plan = load(
        {
            "mission": "colony",
            "model": server.model(),
            "agents": [{"id": "a", "prompt": "[a] go", "ask": True, "approver": "ann"}],
            "reducer": {"id": "editor", "prompt": "[editor] all"},
        }
    )
    async with opened(plan) as client:
        handle = await started(client)
        [part] = await client.find(status=Status.NEEDS_APPROVAL)
        assert part.question == "a asks: Which city?"

        await client.answer(part.record_id, "Rome", by="ann", note="it is warmer")
        await client.work()
        report = await handle.result()

    assert "Rome" in report.agents[0].text and "it is warmer" in report.agents[0].text


async def test_a_durable_agent_goes_on_in_another_process_with_the_same_id(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l.db'}"
    async with quire.aopen(url, workflows=[helper.workflow]) as client:
        await client.start(helper.workflow, Prompt(prompt="hello"), id="h1")
        with _elsewhere(url) as elsewhere:
            elsewhere()

        again = await helper.run("hello", client=client, id="h1")
        receipts = (await client.show("h1")).receipts

    assert again == "success (no tool calls)"
    assert len([receipt for receipt in receipts if receipt.kind == "call"]) == 1


async def test_any_agent_is_durable_with_receipts_as_a_capability() -> None:
    asked = []

    def respond(messages: list[ModelMessage]) -> ModelResponse:
        asked.append(1)
        return ModelResponse(parts=[TextPart("hi")])

    agent = Agent(model(respond))

    @workflow
    async def greeting(run: Run[dict[str, Any], None]) -> str:
        result = await agent.run("hello", capabilities=[Receipts(run, "greeter")])
        await run.sleep("1h")
        return str(result.output)

    clock = ToldClock()
    async with quire.aopen("memory:", workflows=[greeting], clock=clock) as client:
        handle = await client.start(greeting, {}, id="g1")
        await client.work()
        clock.advance("2h")
        await client.work()

        assert await handle.result() == "hi"
    assert len(asked) == 1


def test_a_durable_agent_without_a_name_is_refused() -> None:
    with pytest.raises(DefinitionError, match="needs a name"):
        durable(Agent("test"))
