"""Durable agents for others: what the library's own wrappers for other engines cover, on a Quire ledger."""

from __future__ import annotations

from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities.process_event_stream import ProcessEventStream
from pydantic_ai.messages import AgentStreamEvent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

import quire
from quire import Run, workflow
from quire.agents import Receipts, durable
from quire.agents.blueprint.blueprint import ModelSpec
from quire.agents.durability import Prompt
from quire.agents.models import build
from quire.errors import NotFound
from quire.model.record import Status
from quire.testing import ToldClock
from tests.agents.conftest import Serve
from tests.agents.stand_in import Answer, Asked


def returned(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if part.part_kind == "tool-return"]


def calling(*tools: tuple[str, dict[str, Any]]) -> tuple[FunctionModel, list[int]]:
    """A model that calls these tools, one after the other, and then says what came of it."""
    asked: list[int] = []

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(len(messages))
        results = returned(messages)
        if len(results) < len(tools):
            return ModelResponse(parts=[ToolCallPart(*tools[len(results)], tool_call_id=f"call-{len(results)}")])
        return ModelResponse(parts=[TextPart(f"seen {results}")])

    return FunctionModel(respond), asked


async def test_tools_of_every_kind_are_receipts_and_survive_a_stop_between_them(tmp_path: Path) -> None:
    from mcp.server import MCPServer
    from pydantic_ai.mcp import MCPToolset

    done: list[str] = []
    server = MCPServer("adding")

    @server.tool()
    def add(a: int, b: int) -> int:
        done.append("mcp")
        return a + b

    def look(place: str) -> str:
        done.append("function")
        return f"nothing {place}"

    more = FunctionToolset[object]()

    @more.tool_plain
    def name() -> str:
        done.append("toolset")
        return "Ann"

    calls: list[tuple[str, dict[str, Any]]] = [
        ("look", {"place": "north"}),
        ("add", {"a": 2, "b": 3}),
        ("name", {}),
        ("pay", {"amount": 7}),
    ]
    model, asked = calling(*calls)
    agent = Agent(model, name="clerk", tools=[look], toolsets=[MCPToolset(server), more])

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        done.append("paid")
        return f"paid {amount}"

    clerk = durable(agent, approver="ann")
    url = f"sqlite:///{tmp_path / 'l.db'}"
    async with quire.aopen(url, workflows=[clerk.workflow]) as client:
        await client.start(clerk.workflow, Prompt(prompt="do all"), id="c1")
        await client.work()
        assert (await client.get("c1")).question == "May clerk do pay(amount=7)?"
        await client.answer("c1", "approve", by="ann")

    async with quire.aopen(url, workflows=[clerk.workflow]) as client:
        output = await clerk.run("do all", client=client, id="c1")

    assert output == "seen ['nothing north', 5, 'Ann', 'paid 7']"
    assert done == ["function", "mcp", "toolset", "paid"]  # each once
    assert len(asked) == 5


async def test_a_conversation_is_gone_on_with_in_another_run() -> None:
    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        prompts = [part.content for message in messages for part in message.parts if part.part_kind == "user-prompt"]
        return ModelResponse(parts=[TextPart(f"heard {prompts}")])

    helper = durable(Agent(FunctionModel(respond), name="helper"))
    async with quire.aopen("memory:", workflows=[helper.workflow]) as client:
        await helper.run("one", client=client, id="h1")
        past = await helper.past(client, "h1")
        second = await helper.run("two", client=client, id="h2", past=past)
        with pytest.raises(NotFound):
            await helper.past(client, "h3")

    assert len(past) == 2
    assert second == "heard ['one', 'two']"


def test_a_durable_agent_runs_in_a_plain_function(tmp_path: Path) -> None:
    model, asked = calling()
    helper = durable(Agent(model, name="helper"))
    with quire.open(f"sqlite:///{tmp_path / 'l.db'}", workflows=[helper.workflow]) as q:
        first = helper.run_sync("hello", client=q, id="h1")
        again = helper.run_sync("hello", client=q, id="h1")

    assert first == again == "seen []"
    assert len(asked) == 1


async def test_a_streamed_answer_reaches_the_handler_and_a_cut_one_is_asked_for_again(serve: Serve) -> None:
    events: list[str] = []

    async def listen(ctx: RunContext[None], stream: AsyncIterable[AgentStreamEvent]) -> None:
        events.extend([event.event_kind async for event in stream])

    def answer(asked: Asked) -> Answer:
        return Answer("one two three four five six", cut="reset" if asked.number == 0 else "")

    server, clock = serve(answer), ToldClock()
    model = build(ModelSpec.model_validate(server.model()), "helper")
    helper = durable(Agent(model, name="helper", capabilities=[ProcessEventStream(listen)]), stream=True)
    async with quire.aopen("memory:", workflows=[helper.workflow], clock=clock) as client:
        handle = await client.start(helper.workflow, Prompt(prompt="count"), id="h1")
        await client.work()
        clock.advance("1m")
        await client.work()
        text = await handle.result()

    assert text.strip() == "one two three four five six"
    assert [entry.asked.stream for entry in server.log] == [True, True]
    assert {"part_start", "final_result"} <= set(events)


async def test_run_stream_and_iter_work_within_a_step_and_ask_once() -> None:
    model, asked = calling(("look", {"place": "north"}))
    agent = Agent(model, name="scout")

    @agent.tool_plain
    def look(place: str) -> str:
        return f"nothing {place}"

    @workflow
    async def scouting(run: Run[dict[str, Any], None]) -> str:
        async with agent.run_stream("stream", capabilities=[Receipts(run, "streamed")]) as streamed:
            text = await streamed.get_output()
        async with agent.iter("iterate", capabilities=[Receipts(run, "iterated")]) as steps:
            async for _ in steps:
                pass
        assert steps.result is not None
        await run.sleep("1h")  # the step starts again from its top after this
        return f"{text} {steps.result.output}"

    clock = ToldClock()
    async with quire.aopen("memory:", workflows=[scouting], clock=clock) as client:
        handle = await client.start(scouting, {}, id="s1")
        await client.work()
        clock.advance("2h")
        await client.work()
        assert (await client.get("s1")).status is Status.DONE
        text = await handle.result()

    assert text == "seen ['nothing north'] seen ['nothing north']"
    assert len(asked) == 4
