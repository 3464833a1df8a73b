"""Chats with the official client: over stdio with a process, over HTTP through the doors."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client import Client as Chat
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from quire import Fail, Run, Workflow
from quire.agents.missions.flow import compiled
from quire.client.client import Client
from quire.errors import QuireError
from quire.model.record import Status
from quire.surfaces.chat.mcp.prompts import PROMPTS, filled
from quire.surfaces.chat.mcp.server import called
from quire.surfaces.chat.mcp.tools import TOOLS, Desk
from quire.surfaces.server.auth.tokens import Role, make_token
from quire.testing.clock import ToldClock
from tests.agents.missions import blueprint
from tests.surfaces.server.conftest import BROKEN, Site, opened, running

ALL = {
    *("what_is_stuck", "list_records", "show", "workflows", "start", "approve", "resolve", "retry", "cancel"),
    *("signal", "halt", "resume", "mission_run", "mission_show"),
}


@asynccontextmanager
async def talking(site: Site, token: str = "", mode: str = "auto") -> AsyncIterator[Chat]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Chat(streamable_http_client(f"{site.url}/mcp", http_client=http), mode=mode) as chat,
    ):
        yield chat


async def said(chat: Chat, tool: str, **given: Any) -> dict[str, Any]:
    """What a tool answers; it must not refuse."""
    answer = await chat.call_tool(tool, given)
    assert not answer.is_error, answer.content
    found: dict[str, Any] = answer.structured_content or {}
    return found


async def refused(chat: Chat, tool: str, **given: Any) -> str:
    """The one sentence with which a tool refuses."""
    answer = await chat.call_tool(tool, given)
    assert answer.is_error
    [content] = answer.content
    assert content.type == "text" and "\n" not in content.text and "Traceback" not in content.text
    return content.text


async def test_a_chat_over_stdio_sees_what_is_stuck_approves_it_and_halts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    async with opened(url) as client:
        await client.start("publish", {"keyword": "tea"}, id="tea")
        await client.work()
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "QUIRE_LEDGER": url, "QUIRE_WHO": "ann"}
    process = StdioServerParameters(
        command=sys.executable, args=["-m", "quire.surfaces.cli", "mcp"], env=environment, cwd=tmp_path
    )
    async with Chat(stdio_client(process)) as chat:
        tools = {tool.name: tool for tool in (await chat.list_tools()).tools}
        [finding] = (await said(chat, "what_is_stuck"))["stuck"]
        shown = await said(chat, "show", record_id="tea")
        [asked] = shown["asks"]
        stale = await refused(chat, "approve", record_id="tea", hash="0" * 64)
        waiting = await said(chat, "halt", reason="enough")
        done = await said(chat, "approve", record_id="tea", hash=asked["hash"])
        unknown = await refused(chat, "show", record_id="te")
        misshapen = await refused(chat, "show", record="tea")
        first = await said(chat, "halt", reason="enough")
        wrong = await refused(chat, "halt", reason="enough", confirm="halt-0000000000")
        second = await said(chat, "halt", reason="enough", confirm=first["confirm"])

    assert set(tools) == ALL and tools["halt"].annotations is not None
    assert finding["kind"] == "asks" and finding["record_ids"] == ["tea"]
    assert asked["question"] == "Publish 'tea'?" and asked["show"] == "About tea."
    assert "look at it again" in stale
    assert waiting["would_stop"] == 1 and done["answered"] == "approve"
    assert "not found" in unknown and "record_id" in misshapen
    assert not first["halted"] and "does not confirm" in wrong and second["halted"]
    async with opened(url) as client:
        line = next(event for event in await client.events("tea") if event.kind == "answered")
        assert '"by":"ann"' in line.body and '"via":"mcp"' in line.body
        [control] = (await client.standing()).controls
        assert (control.by, control.reason) == ("ann", "enough")


async def test_a_chat_over_http_goes_through_the_doors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "quire.audit")
    BROKEN.clear()
    with running(f"sqlite:///{tmp_path}/ledger.db") as site:
        viewer, _ = site.do(lambda client: make_token(client.ledger, "vic", Role.VIEWER))
        operator, _ = site.do(lambda client: make_token(client.ledger, "ann", Role.OPERATOR))
        async with talking(site, viewer) as chat:
            listed = {tool.name for tool in (await chat.list_tools()).tools}
            looked = await said(chat, "workflows")
            forbidden = await refused(chat, "start", workflow="order")
        async with talking(site, operator, mode="legacy") as chat:  # as chat programs of last year do
            started = await said(chat, "start", workflow="order", record_id="o1")
            again = await said(chat, "start", workflow="order", record_id="o1")
            cancelled = await said(chat, "cancel", record_id="o1", reason="no")
            retried = await said(chat, "retry", record_id="o1")
        async with httpx2.AsyncClient(base_url=site.url) as http:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            forged = await http.post("/mcp", json=body, headers={"Authorization": "Bearer qt_x_y"})
            foreign = await http.post("/mcp", json=body, headers={"Origin": "http://evil.example"})
            stranger = await http.post("/mcp", json=body, headers={"Host": "evil.example"})
        record = site.do(lambda client: client.get("o1"))
        events = site.do(lambda client: client.events("o1"))

    assert listed == ALL
    assert [row["workflow"] for row in looked["workflows"]] == ["order", "publish"]
    assert forbidden == "'vic' is a viewer; start takes an operator"
    assert started["record_id"] == again["record_id"] == "o1"
    assert cancelled["status"] == "CANCELLED" and retried["status"] == "PENDING"
    assert (forged.status_code, foreign.status_code, stranger.status_code) == (401, 403, 401)
    assert record.status in (Status.PENDING, Status.RUNNING, Status.WAITING)
    assert '"by":"ann"' in events[0].body
    assert "cancel 'o1' by 'ann' (token" in caplog.text and "via='mcp'" in caplog.text


async def test_an_unexpected_error_of_a_tool_is_told_to_the_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(desk: Desk, given: Any) -> dict[str, Any]:
        raise RuntimeError("the inner secret")

    monkeypatch.setitem(
        TOOLS,
        "workflows",
        TOOLS["workflows"].__class__("workflows", "", "", Role.VIEWER, TOOLS["workflows"].takes, broken),
    )
    with running(f"sqlite:///{tmp_path}/ledger.db") as site:
        async with talking(site) as chat:
            text = await refused(chat, "workflows")

    assert "something unexpected" in text and "secret" not in text
    assert "the inner secret" in caplog.text


async def test_prompts_are_listed_and_filled_and_bad_ones_refused(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/ledger.db") as site:
        async with talking(site) as chat:
            names = {prompt.name for prompt in (await chat.list_prompts()).prompts}
            prompt = await chat.get_prompt("start", {"workflow": "publish", "wish": "about {record_id}"})
            with pytest.raises(MCPError, match="needs workflow, wish"):
                await chat.get_prompt("start", {})
            with pytest.raises(MCPError, match="no prompt"):
                await chat.get_prompt("nothing", {})

    assert names == set(PROMPTS)
    [message] = prompt.messages
    assert message.content.type == "text"
    assert "workflow publish: about {record_id}\n" in message.content.text  # what a person gives is not a template


def test_every_prompt_fills_without_a_hole() -> None:
    for prompt in PROMPTS.values():
        text = filled(prompt, {argument.name: "X" for argument in prompt.arguments if argument.required})
        assert "{" not in text and "}" not in text


async def test_a_mission_is_run_and_shown(tmp_path: Path) -> None:
    flow = compiled(blueprint("scripted", names=["ceo", "cto"], inputs=["topic"]))
    async with Client("memory:", workflows=[flow], who="ann") as client:
        desk = Desk(client, Role.OPERATOR)
        told = await called(desk, "workflows", {})
        with pytest.raises(QuireError, match="needs 'topic'"):
            await called(desk, "mission_run", {"mission": "colony"})
        begun = await called(desk, "mission_run", {"mission": "colony", "inputs": {"topic": "x"}, "record_id": "m1"})
        await client.work()
        shown = await called(desk, "mission_show", {"record_id": "m1"})
        other = await called(desk, "list_records", {"parent_id": "m1"})

    [mission] = told["workflows"]
    assert mission["mission"] == {"inputs": ["topic"], "agents": ["ceo", "cto"], "turns": 3, "reducer": "editor"}
    assert begun["status"] == "PENDING" and shown["status"] == "DONE"
    assert sorted(agent["agent"] for agent in shown["agents"]) == ["ceo", "cto"]
    assert "scripted model" in shown["result"] and len(other["records"]) == 2


async def test_what_is_answered_leads_to_the_record_and_its_run() -> None:
    flow: Workflow[dict[str, Any], Any, None] = Workflow("job")

    @flow.step
    async def work(run: Run[dict[str, Any]]) -> None:
        raise Fail("no")

    page = "https://quire.example.org/#/record/a%2F1"
    async with Client("memory:", workflows=[flow], who="ann", public_url="https://quire.example.org/") as client:
        desk = Desk(client, Role.OPERATOR)
        started = await called(desk, "start", {"workflow": "job", "record_id": "a/1"})
        await client.work()
        shown = await called(desk, "show", {"record_id": "a/1"})
        [stuck] = (await called(desk, "what_is_stuck", {}))["stuck"]
        record = await client.get("a/1")

    assert started["link"] == shown["link"] == page and stuck["links"] == [page]
    assert shown["run_id"] == record.run_id and record.run_id


async def test_a_mission_at_its_limit_is_found_as_a_matter_of_budget() -> None:
    flow = compiled(blueprint("scripted", names=["ceo"], limits={"calls": 1}))
    async with Client("memory:", workflows=[flow], who="ann") as client:
        await client.start("colony", {}, id="m1")
        await client.work()
        found = (await called(Desk(client, Role.VIEWER), "what_is_stuck", {}))["stuck"]

    assert [finding["kind"] for finding in found] == ["budget"] and "has reached its limit" in found[0]["sentence"]


async def test_errors_are_one_finding_for_each_cause_and_steps_without_a_worker_are_found() -> None:
    flow: Workflow[dict[str, Any], Any, None] = Workflow("job")

    @flow.step
    async def work(run: Run[dict[str, Any]]) -> None:
        raise Fail(f"site '{run.record_id}' answers {run.data['code']}")

    clock = ToldClock()
    async with Client("memory:", workflows=[flow], clock=clock, who="ann") as client:
        for number in range(5):
            await client.start("job", {"code": 500 + number}, id=f"j{number}")
        await client.work()
        desk = Desk(client, Role.VIEWER)
        [errors] = (await called(desk, "what_is_stuck", {}))["stuck"]
        await client.start("job", {"code": 1}, id="late")
        early = (await called(desk, "what_is_stuck", {}))["stuck"]
        clock.advance("2m")
        await client.pause("job", reason="lunch")
        paused = [finding["kind"] for finding in (await called(desk, "what_is_stuck", {}))["stuck"]]
        await client.resume("job")
        found = {finding["kind"]: finding for finding in (await called(desk, "what_is_stuck", {}))["stuck"]}

    assert errors["kind"] == "error" and errors["count"] == 5 and len(errors["record_ids"]) == 5
    assert [finding["kind"] for finding in early] == ["error"]  # due for a moment is not stuck
    assert paused == ["paused", "error"]
    assert found["no worker"]["record_ids"] == ["late"] and "no worker is alive" in found["no worker"]["sentence"]
    json.dumps(found)
