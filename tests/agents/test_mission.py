"""Missions: turns, barriers, policies, halts, histories."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from quire.agents import mission_view
from quire.agents.blueprint.reading import load
from quire.agents.history import loaded, size
from quire.agents.missions.daily import spent_by_day, spent_on
from quire.agents.missions.story import pace, read
from quire.errors import Halted
from quire.folder.local import LocalFolder
from quire.model.record import Status
from quire.testing import ToldClock
from quire.upkeep.projecting import projector_of
from tests.agents.conftest import KEY, Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Answer, Asked


def echo(asked: Asked) -> str:
    return f"<{agent_of(asked.prompts[0])} {asked.turn}>"


@pytest.mark.parametrize("turns", [1, 5])
async def test_exactly_as_many_turns_as_the_blueprint_says(serve: Serve, turns: int) -> None:
    server = serve(echo)
    plan = blueprint(server.model(), max_turns=turns, turns={2: "STORM"} if turns > 1 else {})

    async with opened(plan) as client:
        report = await (await started(client)).result()

    asked = [(agent_of(entry.asked.prompts[0]), entry.asked.turn) for entry in server.log]
    wanted = [(name, turn) for name in ("engineer", "resources", "governor") for turn in range(1, turns + 1)]
    assert sorted(asked) == sorted([*wanted, ("editor", 1)])
    assert [agent.text for agent in report.agents] == [f"<{agent.id} {turns}>" for agent in report.agents]


async def test_the_reducer_gets_every_final_report_under_its_agents_name(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model())) as client:
        report = await (await started(client, inputs={"city": "Bonn"})).result()

    reduction = server.log[-1].asked.prompt
    assert reduction.startswith(
        "[editor] Make one plan.\n\nGiven:\n- city: Bonn\n\n## Report of engineer\n\n<engineer 3>"
    )
    assert "## Report of resources\n\n<resources 3>\n\n## Report of governor\n\n<governor 3>" in reduction
    assert (report.by, report.status, report.text) == ("editor", "done", "<editor 1>")
    assert server.log[0].asked.prompt.endswith("Plan the colony.\n\nGiven:\n- city: Bonn")


async def test_with_a_barrier_no_turn_begins_before_all_have_ended_the_one_before(serve: Serve) -> None:
    server = serve(lambda asked: Answer(echo(asked), delay=0.2 if "engineer" in asked.prompts[0] else 0.0))

    async with opened(blueprint(server.model(), barrier=True)) as client:
        await (await started(client)).result()

    for turn in (2, 3):
        began = min(entry.began for entry in server.log if entry.asked.turn == turn)
        ended = max(entry.ended for entry in server.log[:-1] if entry.asked.turn == turn - 1)
        assert began >= ended


async def test_without_a_barrier_nobody_waits_for_the_slowest(serve: Serve) -> None:
    slow = threading.Event()

    def answer(asked: Asked) -> str:
        if "engineer" in asked.prompts[0] and asked.turn == 1:
            assert slow.wait(30)  # until another has come to its last turn
        if "governor" in asked.prompts[0] and asked.turn == 3:
            slow.set()
        return echo(asked)

    server = serve(answer)

    async with opened(blueprint(server.model())) as client:
        report = await (await started(client)).result()

    assert report.status == "done"


async def test_at_most_so_many_turns_at_once_as_the_cap_says(serve: Serve) -> None:
    server = serve(lambda asked: Answer(echo(asked), delay=0.05))
    plan = blueprint(server.model(), names=[f"agent-{number}" for number in range(8)], cap=2, max_turns=1, turns={})

    async with opened(plan) as client:
        await (await started(client)).result()
        story = await read(client.ledger, "m1")

    assert pace(story.calls).most == 2


async def test_a_rate_by_model_is_kept_over_all_agents(serve: Serve) -> None:
    server, clock = serve(echo), ToldClock()
    plan = blueprint(server.model(rate="2/1m"), max_turns=1, turns={})

    async with opened(plan, clock=clock) as client:
        handle = await started(client)
        assert len(server.log) == 2

        clock.advance("31s")
        await client.work()
        assert len(server.log) == 3

        clock.advance("31s")
        await client.work()
        assert (await handle.result()).text == "<editor 1>"


def failing(asked: Asked) -> Answer:
    if "engineer" in asked.prompts[0]:
        return Answer("out of order", status=503)
    return Answer(echo(asked))


@pytest.mark.parametrize(
    ("policy", "status"),
    [("all", Status.ERROR), ({"quorum": 2}, Status.DONE), ({"quorum": 3}, Status.ERROR), ("best_effort", Status.DONE)],
)
@pytest.mark.parametrize("retries", [0, 2])
async def test_an_agent_that_always_fails_ends_the_mission_as_its_policy_says(
    serve: Serve, policy: Any, status: Status, retries: int
) -> None:
    server, clock = serve(failing), ToldClock()
    plan = blueprint(server.model(), max_turns=1, turns={}, policy=policy, max_retries=retries)

    async with opened(plan, clock=clock) as client:
        await started(client)
        for _ in range(retries):
            clock.advance("10m")
            await client.work()
        record = await client.get("m1")
        parts = {record.record_id: record for record in await client.find() if record.parent_id}

    tried = [
        entry for entry in server.log if "engineer" in entry.asked.prompts[0] and "editor" not in entry.asked.prompts[0]
    ]
    assert len(tried) == 1 + retries
    assert record.status is status
    engineer = parts["m1/colony~1/0"]
    assert engineer.status is Status.ERROR
    assert engineer.last_error is not None and f"gave up after {1 + retries}" in engineer.last_error
    if status is Status.DONE:
        report = json.loads(record.result or "")
        assert report["status"] == "partial"
        assert [agent["status"] for agent in report["agents"]] == ["failed", "done", "done"]
        assert "Report of engineer" not in server.log[-1].asked.prompt


async def test_at_the_deadline_the_reducer_goes_on_with_what_is_there(serve: Serve) -> None:
    def answer(asked: Asked) -> Answer:
        if "[engineer]" in asked.prompts[0] and asked.turn == 2:
            return Answer("busy", status=503)
        return Answer(echo(asked))

    server, clock = serve(answer), ToldClock()
    plan = blueprint(server.model(), policy="best_effort", deadline="1h", max_retries=50)

    async with opened(plan, clock=clock) as client:
        handle = await started(client)
        assert (await client.get("m1")).status is Status.WAITING
        clock.advance("61m")
        await client.work(until="m1")
        report = await handle.result()

    assert report.status == "partial"
    assert {agent.id: (agent.status, agent.text) for agent in report.agents} == {
        "engineer": ("unfinished", "<engineer 1>"),
        "resources": ("done", "<resources 3>"),
        "governor": ("done", "<governor 3>"),
    }


async def test_after_a_halt_no_further_model_call_begins(serve: Serve, tmp_path: Path) -> None:
    import asyncio

    in_turn_2, go_on = threading.Event(), threading.Event()

    def answer(asked: Asked) -> str | Answer:
        if asked.turn == 2:
            in_turn_2.set()
            assert go_on.wait(30)
            return Answer(tool=("look", {"where": "north"}))  # the same turn would ask again
        return echo(asked)

    server = serve(answer)
    plan = load(
        blueprint(server.model()).as_json()
        | {"agents": [{"id": "a", "prompt": "[a] go", "tools": ["tests.agents.test_mission:look"]}]}
    )
    async with opened(plan, f"sqlite:///{tmp_path / 'l.db'}") as client:
        [flow] = client.registry.workflows.values()
        await client.start(flow, {}, id="m1")
        working = asyncio.ensure_future(client.work(until="m1"))
        await asyncio.to_thread(in_turn_2.wait, 30)
        await client.halt(reason="enough")
        before = len(server.log)
        go_on.set()
        record = await client.until_ended("m1", timeout="30s")
        part = await client.until_ended("m1/colony~1/0", timeout="30s")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        with pytest.raises(Halted):
            await client.start(flow, {}, id="m2")

    assert (record.status, part.status) == (Status.CANCELLED, Status.CANCELLED)
    assert len(server.log) == before == 2


def look(where: str) -> str:
    """Look there."""
    return f"nothing {where}"


BIG = "x" * 3_000


def big(number: int) -> str:
    """A large result."""
    return f"{number} {BIG}"


@pytest.mark.slow
async def test_a_hundred_turns_with_large_tool_results_grow_linearly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The model is a function here: a hundred growing requests through a provider's library take a minute.
    path = tmp_path / "ledger.db"
    sizes: list[int] = []  # of the ledger, at the beginning of each turn
    seen = 0

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        nonlocal seen
        if messages[-1].parts[-1].part_kind == "user-prompt" and info.function_tools:
            sizes.append(_stored(path))
            return ModelResponse(parts=[ToolCallPart("big", {"number": len(sizes)})])
        if len(sizes) == 100 and info.function_tools:  # the last turn, not the reducer
            seen = len(str(messages))
        return ModelResponse(parts=[TextPart("seen")])

    monkeypatch.setattr("quire.agents.models.built", lambda spec, agent_id: FunctionModel(respond))
    agent = {"id": "a", "prompt": "[a] go", "tools": ["tests.agents.test_mission:big"]}
    plan = blueprint("scripted", turns={}, max_turns=100)
    plan = load(plan.as_json() | {"agents": [agent], "history_tokens": 10_000_000})
    async with opened(plan, f"sqlite:///{path}") as client:
        report = await (await started(client)).result()

    assert report.agents[0].turns == len(sizes) == 100
    # Each fifth of the turns takes as much as any other.
    grown = [sizes[turn + 19] - sizes[turn] for turn in range(0, 100, 20)]
    assert min(grown) > 0 and max(grown) < 1.5 * min(grown)
    assert seen > 99 * len(BIG)  # and yet the model saw all of it


def _stored(path: Path) -> int:
    """How many bytes a ledger takes."""
    with closing(sqlite3.connect(path)) as db:
        [found] = db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    return int(found)


async def test_a_history_that_is_too_long_is_summed_up_and_says_what_it_stands_for(serve: Serve) -> None:
    def answer(asked: Asked) -> str:
        if asked.prompt.startswith("Sum up"):
            return "SUMMARY of all that was said"
        return f"{echo(asked)} " + "words " * 600

    server = serve(answer)
    plan = blueprint(server.model(), names=["engineer"], max_turns=4, turns={}, history_tokens=1500)

    async with opened(plan) as client:
        await (await started(client)).result()
        receipts = (await client.show("m1/colony~1/0")).receipts
    pieces = [json.loads(receipt.value) for receipt in receipts if receipt.name.startswith("piece")]

    [summed] = [piece for piece in pieces if "stands_for" in piece]
    assert summed["stands_for"]["from"] == 1 and summed["stands_for"]["to"] == 2
    assert size(summed["messages"]) < 500
    last = [entry.asked for entry in server.log if "Go on" in entry.asked.prompt][-1]
    assert "SUMMARY of all that was said" in json.dumps(last.body)
    assert "Plan the colony" in json.dumps(last.body)  # how it began is never lost
    assert len([piece for piece in pieces if "text" in piece]) == 4  # nothing was thrown away


def test_parts_of_messages_that_this_version_does_not_know_are_left_out() -> None:
    rows = [
        {
            "kind": "response",
            "parts": [{"part_kind": "text", "content": "hi"}, {"part_kind": "hologram", "of": "a cat"}],
            "usage": {},
            "timestamp": "2026-01-01T00:00:00Z",
        }
    ]

    [message] = loaded(rows)

    assert [part.part_kind for part in message.parts] == ["text"]


@pytest.mark.parametrize("protocol", ["google", "openai", "anthropic"])
async def test_the_key_is_nowhere(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, protocol: str
) -> None:
    """Whoever repeats it: the provider in an error or an answer, a tool in its result or in what it raises."""
    caplog.set_level(logging.DEBUG)
    answers = [
        Answer(f"busy with {KEY}", status=503),
        Answer(tool=("leak", {"how": "return"})),
        Answer(f"I was called with {KEY}."),
        Answer(tool=("leak", {"how": "raise"})),
    ]
    server, clock = serve(lambda asked: answers[min(asked.number, 3)]), ToldClock()
    agent = {"id": "engineer", "prompt": "[engineer] go", "tools": ["tests.agents.test_mission:leak"]}
    plan = load(blueprint(server.model(protocol), max_retries=1).as_json() | {"agents": [agent]})

    async with opened(plan, f"sqlite:///{tmp_path / 'ledger.db'}", clock=clock) as client:
        await started(client)
        for _ in range(4):
            clock.advance("10m")
            await client.work()
        part = await client.get("m1/colony~1/0")
        shown = str(await client.show("m1")) + str(await client.show(part.record_id))
        view = str(await mission_view(client.ledger, "m1"))
        folder = LocalFolder(tmp_path / "folder")
        await folder.open()
        await projector_of(client.ledger, folder, clock).catch_up()
        await folder.close()

    assert part.status is Status.ERROR
    assert part.last_error == "RuntimeError: OSError: the door opens with [secret]"
    assert "I was called with [secret]." in view
    assert len(server.log) >= 4
    assert all(KEY in str(entry.asked.headers) for entry in server.log)  # the key was really used
    assert len(list(_paths(tmp_path / "folder"))) > 5
    assert all(KEY.encode() not in raw for raw in _files(tmp_path))
    assert KEY not in shown + view + caplog.text


def leak(how: str) -> str:
    """Say the key."""
    if how == "raise":
        raise OSError(f"the door opens with {KEY}")
    return f"the key is {KEY}"


def _paths(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _files(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in _paths(folder)]


async def test_a_mission_keeps_the_blueprint_that_it_started_with(serve: Serve, tmp_path: Path) -> None:
    server = serve(echo)
    url = f"sqlite:///{tmp_path / 'l.db'}"
    first = blueprint(server.model(), names=["engineer"], max_turns=2, turns={}, limits={"calls": 1})
    async with opened(first, url) as client:
        await started(client)

    changed = blueprint(server.model(), names=["engineer", "governor"], max_turns=5, turns={2: "OTHER"})
    async with opened(changed, url) as client:
        await client.answer("m1", "raise", by="ann", edits={"limits": {"calls": 9}})
        await client.work()
        story = await read(client.ledger, "m1")

    assert first.hash != changed.hash
    assert story.report is not None
    assert (story.hash, story.report.blueprint) == (first.hash, first.hash)
    assert [(agent.id, agent.turns) for agent in story.report.agents] == [("engineer", 2)]
    assert not any("OTHER" in entry.asked.prompt for entry in server.log)


async def test_what_was_spent_is_counted_by_agent_mission_and_day(serve: Serve) -> None:
    server = serve(lambda asked: Answer(echo(asked), tokens=(100, 50)))
    price = {"input": 1.0, "output": 4.0}

    async with opened(blueprint(server.model(price=price))) as client:
        report = await (await started(client)).result()
        story = await read(client.ledger, "m1")
        days = await spent_by_day(client.ledger)

    assert report.spent.tokens == story.spent.tokens == 10 * 150
    assert report.spent.usd == pytest.approx(10 * 0.0003)
    assert story.spent_by("engineer").tokens == 450
    [(_, missions)] = days.items()
    assert missions["m1"].calls == 10


async def test_an_input_may_have_the_name_under_which_parts_keep_their_state(serve: Serve) -> None:
    server = serve(echo)

    async with opened(blueprint(server.model(), inputs=["part"])) as client:
        record = await (await started(client, inputs={"part": "the roof"})).record()
        await started(client, "m2", {"part": {"mission": "m1"}})
        [(day, missions)] = (await spent_by_day(client.ledger)).items()
        figures = await spent_on(client.ledger, day)
        view = await mission_view(client.ledger, "m1")

    assert record.status is Status.DONE and "- part: the roof" in server.log[0].asked.prompt
    assert missions["m1"].calls == missions["m2"].calls == 10
    assert set(figures) == {"m1", "m2"} and view["inputs"] == {"part": "the roof"}
