"""Missions as agents, called with the official SDK; and tasks that outlive the server that took them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig
from a2a.client.client import Client as Agent
from a2a.client.client_factory import create_client
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf import json_format

from quire.agents.missions.flow import compiled
from quire.errors import InputError
from quire.surfaces.chat.a2a.tasks import inputs_of, task_id
from quire.surfaces.server.auth.tokens import Role, make_token
from tests.agents.missions import blueprint
from tests.surfaces.server import conftest

SCRIPT = {"delay": 0.15, "replies": {}}


def told(**more: Any) -> dict[str, Any]:
    return {
        "mission": "colony",
        "model": {"model": "scripted", "script": SCRIPT},
        "agents": [{"id": "ceo", "prompt": "[ceo] Plan {{topic}}."}, {"id": "cto", "prompt": "[cto] Plan {{topic}}."}],
        "turns": {2: "STORM: what now?", 3: "FINAL: the plan."},
        "reducer": {"id": "editor", "prompt": "[editor] Make one plan."},
    } | more


def message(text: str = "", data: Any = None, *, id_: str = "msg-1", task: str = "", context: str = "") -> Any:
    parts = [pb.Part(text=text)] if text else []
    if data is not None:
        part = pb.Part()
        json_format.ParseDict(data, part.data)
        parts.append(part)
    made = pb.Message(message_id=id_, role=pb.ROLE_USER, parts=parts, task_id=task, context_id=context)
    return pb.SendMessageRequest(message=made, configuration=pb.SendMessageConfiguration(return_immediately=True))


@asynccontextmanager
async def agent(url: str, token: str = "", mission: str = "colony", *, streaming: bool = False) -> AsyncIterator[Agent]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        config = ClientConfig(httpx_client=http, streaming=streaming, polling=not streaming)
        made = await create_client(f"{url}/a2a/{mission}", config)
        yield made


async def sent(one: Agent, request: Any) -> Any:
    """The task that a message starts or goes on with."""
    answers = [answer async for answer in one.send_message(request)]
    return answers[0].task


@contextmanager
def up(folder: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """A worker and a server in a process of their own, once they listen."""
    words = ["up", "mission.yaml", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "quire.surfaces.cli", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "QUIRE_LEDGER": f"sqlite:///{folder}/ledger.db"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert f"http://127.0.0.1:{port}" in line, line
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
async def test_a_task_survives_the_death_of_its_server(tmp_path: Path) -> None:
    (tmp_path / "mission.yaml").write_text(json.dumps(told()))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with up(tmp_path, port) as process:
        async with agent(url) as one:
            task = await sent(one, message("a colony on Mars", context="talk-1"))
            again = await sent(one, message("a colony on Mars", context="talk-1"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    with up(tmp_path, port):
        async with agent(url, streaming=True) as one:
            there = await one.get_task(pb.GetTaskRequest(id=task.id))
            events = [event async for event in one.subscribe(pb.SubscribeToTaskRequest(id=task.id))]
            done = await one.get_task(pb.GetTaskRequest(id=task.id))

    assert task.id == again.id and task.context_id == there.context_id == "talk-1"
    assert there.status.state in (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)
    assert events[-1].status_update.status.state == pb.TASK_STATE_COMPLETED
    assert done.status.state == pb.TASK_STATE_COMPLETED
    [artifact] = done.artifacts
    assert "editor" in artifact.parts[0].text
    report = json_format.MessageToDict(artifact.parts[1].data)
    assert [part["id"] for part in report["agents"]] == ["ceo", "cto"]


@contextmanager
def site(tmp_path: Path, **more: Any) -> Iterator[conftest.Site]:
    flow = compiled(blueprint(**({"model": {"model": "scripted"}, "names": ["ceo"], "inputs": ["topic"]} | more)))
    with conftest.running(f"sqlite:///{tmp_path}/ledger.db", more=[flow]) as found:
        yield found


async def test_the_card_says_what_the_mission_needs_and_only_known_callers_get_it(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        async with httpx.AsyncClient(base_url=here.url) as http:
            card = (await http.get("/a2a/colony/.well-known/agent-card.json")).json()
            none = await http.get("/a2a/order/.well-known/agent-card.json")
            unknown = await http.get("/a2a/nothing/.well-known/agent-card.json")
            foreign = await http.get("/a2a/colony/.well-known/agent-card.json", headers={"Host": "evil.example"})
            forged = await http.post("/a2a/colony", json={}, headers={"Authorization": "Bearer qt_a_b"})

    assert card["name"] == "colony" and "It needs: topic" in card["description"]
    assert card["supportedInterfaces"][0]["url"] == f"{here.url}/a2a/colony"
    assert "prompt" not in json.dumps(card).lower()
    assert [answer.status_code for answer in (none, unknown, foreign, forged)] == [400, 404, 401, 401]


async def test_a_viewer_looks_and_an_operator_starts_and_cancels(tmp_path: Path) -> None:
    with site(tmp_path) as here:
        viewer, _ = here.do(lambda client: make_token(client.ledger, "vic", Role.VIEWER))
        operator, _ = here.do(lambda client: make_token(client.ledger, "ann", Role.OPERATOR))
        here.do(lambda client: client.pause())
        async with agent(here.url, operator) as ann:
            task = await sent(ann, message(data={"topic": "tea"}))
            with pytest.raises(InvalidParamsError, match="needs topic"):
                await sent(ann, message(id_="msg-2"))
            here.do(lambda client: client.start("order", {}, id="an_order"))
            for other in ("nothing", "an_order"):  # a record of another workflow is not a task of this mission
                with pytest.raises(TaskNotFoundError, match="has no task"):
                    await ann.get_task(pb.GetTaskRequest(id=other))
        async with agent(here.url, viewer) as vic:
            seen = await vic.get_task(pb.GetTaskRequest(id=task.id))
            listed = await vic.list_tasks(pb.ListTasksRequest(page_size=10))
            with pytest.raises(UnsupportedOperationError, match="'vic' is a viewer"):
                await sent(vic, message("tea", id_="msg-3"))
        async with agent(here.url, operator) as ann:
            cancelled = await ann.cancel_task(pb.CancelTaskRequest(id=task.id))
            with pytest.raises(TaskNotCancelableError):
                await ann.cancel_task(pb.CancelTaskRequest(id=task.id))
        events = here.do(lambda client: client.events(task.id))

    assert seen.status.state == pb.TASK_STATE_SUBMITTED and [one.id for one in listed.tasks] == [task.id]
    assert cancelled.status.state == pb.TASK_STATE_CANCELED
    assert '"by":"ann"' in events[0].body


async def test_what_each_agent_says_is_streamed_and_stands_in_the_task(tmp_path: Path) -> None:
    with site(tmp_path, names=["ceo", "cto"], model={"model": "scripted", "script": SCRIPT}) as here:
        async with agent(here.url, streaming=True) as one:
            events = [event async for event in one.send_message(message("tea"))]
            task = events[0].task
            there = await one.get_task(pb.GetTaskRequest(id=task.id))
            last = await one.get_task(pb.GetTaskRequest(id=task.id, history_length=1))
            none = await one.get_task(pb.GetTaskRequest(id=task.id, history_length=0))
            again = [event async for event in one.subscribe(pb.SubscribeToTaskRequest(id=task.id))]

    updates = [event.status_update.status for event in events if event.HasField("status_update")]
    streamed = [status.message for status in updates if status.message.parts]
    turns = [json_format.MessageToDict(said.parts[1].data) for said in [*task.history, *streamed]]
    assert sorted((turn["agent"], turn["turn"]) for turn in turns) == [
        (w, n) for w in ("ceo", "cto") for n in (1, 2, 3)
    ]
    assert all("I was asked:" in said.parts[0].text for said in streamed)
    assert updates[-1].state == pb.TASK_STATE_COMPLETED
    assert [said.message_id for said in there.history] == [
        f"{task.id}.{who}.{turn}" for turn in (1, 2, 3) for who in ("ceo", "cto")
    ]
    assert [said.message_id for said in last.history] == [f"{task.id}.cto.3"]
    assert not none.history
    assert len(again[0].task.history) == 6  # whoever was cut off gets all of it


async def test_a_question_is_answered_only_with_the_hash_that_was_shown(tmp_path: Path) -> None:
    with site(tmp_path, limits={"calls": 1}) as here:
        async with agent(here.url, streaming=True) as one:
            events = [event async for event in one.send_message(message("tea"))]
            task = events[0].task
            status = events[-1].status_update.status
            asked = json_format.MessageToDict(status.message.parts[1].data)
            with pytest.raises(InvalidParamsError, match="a data part"):
                [event async for event in one.send_message(message("finish", id_="m2", task=task.id))]
            wrong = {"choice": "finish", "hash": "0" * 64}
            with pytest.raises(InvalidParamsError, match="does not ask that"):
                [event async for event in one.send_message(message(data=wrong, id_="m3", task=task.id))]
            right = {"choice": "finish", "hash": asked["hash"]}
            events = [event async for event in one.send_message(message(data=right, id_="m4", task=task.id))]

    assert status.state == pb.TASK_STATE_INPUT_REQUIRED
    assert "has reached its limit" in asked["question"] and asked["choices"][0] == "raise"
    assert events[-1].status_update.status.state in (pb.TASK_STATE_COMPLETED, pb.TASK_STATE_FAILED)


def test_inputs_come_from_data_or_from_a_text_where_one_is_wanted() -> None:
    assert inputs_of({"inputs": ["topic"]}, ["tea"], []) == {"topic": "tea"}
    assert inputs_of({"inputs": []}, ["tea"], []) == {"message": "tea"}
    assert inputs_of({"inputs": ["a", "b"]}, ["tea"], [{"a": 1}]) == {"a": 1, "b": "tea"}
    for texts in ([], ["tea"]):
        with pytest.raises(InputError, match="needs a, b"):
            inputs_of({"inputs": ["a", "b"]}, texts, [])
    with pytest.raises(InputError, match="an object"):
        inputs_of({"inputs": []}, [], [[1]])


def test_the_same_message_of_another_caller_is_another_task() -> None:
    assert task_id("m", "ann", "1") == task_id("m", "ann", "1") != task_id("m", "bob", "1")
    with pytest.raises(InputError, match="messageId"):
        task_id("m", "ann", "")
