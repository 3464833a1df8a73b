"""Models without a key: one on this machine, and any server that speaks OpenAI's protocol."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from quire.agents import local, shelf
from quire.agents.missions.replay import replay
from quire.agents.missions.story import read
from quire.agents.provider import split
from quire.errors import DefinitionError
from quire.model.record import Status
from tests.agents.conftest import KEY, Serve
from tests.agents.missions import agent_of, blueprint, opened, started
from tests.agents.stand_in import Asked


def echo(asked: Asked) -> str:
    return f"<{agent_of(asked.prompts[0])} {asked.turn}>"


async def test_the_local_model_is_asked_over_http_without_a_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(echo)
    monkeypatch.setattr(local, "server", lambda name="": SimpleNamespace(listening_address=server.url))

    async with opened(blueprint("local")) as client:
        report = await (await started(client)).result()

    assert [agent.text for agent in report.agents] == [f"<{agent.id} 3>" for agent in report.agents]
    assert len(server.log) == 10
    assert report.spent.in_words().endswith("$0.0000")
    assert {entry.asked.body["max_completion_tokens"] for entry in server.log} == {300}  # or it goes on for ever
    assert all(KEY not in str(entry.asked.headers) for entry in server.log)


async def test_a_server_of_ones_own_needs_no_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server = serve(echo)
    model = {"model": "openai:llama3.2", "base_url": f"{server.url}/v1"}  # as Ollama, llama.cpp and vLLM are reached

    async with opened(blueprint(model, names=["engineer"])) as client:
        report = await (await started(client)).result()

    assert report.text == "<editor 1>"
    assert {entry.asked.body["model"] for entry in server.log} == {"llama3.2"}
    assert {entry.asked.headers["authorization"] for entry in server.log} == {"Bearer none"}


async def test_without_its_files_the_local_model_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("QUIRE_MODELS", str(tmp_path))
    monkeypatch.setattr(shelf, "_packaged", lambda model: None)
    async with opened(blueprint("local", names=["engineer"], max_turns=1, turns={})) as client:
        await started(client)
        part = await client.get("m1/colony~1/0")

    assert part.status is not Status.DONE
    assert "the local model is not on this machine; fetch it once with: quire model fetch" in (part.last_error or "")


def fetched() -> bool:
    try:
        local.check()
    except DefinitionError:
        return False
    return True


@pytest.mark.skipif(not fetched(), reason="the local model is not on this machine: quire model fetch")
@pytest.mark.slow
async def test_a_whole_mission_on_a_real_model_on_this_machine() -> None:
    model = {"model": "local", "settings": {"max_tokens": 24, "temperature": 0.0}}
    plan = blueprint(model, names=["engineer", "governor"], max_turns=2, turns={2: "A storm comes. What now?"})

    async with opened(plan) as client:
        report = await (await started(client)).result()
        story = await read(client.ledger, "m1")
        done = await replay(client.ledger, "m1")

    assert (report.status, len(story.calls), story.spent.calls) == ("done", 5, 5)
    assert (story.spent.usd, story.spent.unpriced) == (0.0, 0)
    assert [len(story.said[name]) for name in ("engineer", "governor")] == [2, 2]
    assert all(len(text) > 10 for said in story.said.values() for text in said.values())
    assert len(report.text) > 10
    assert all(call.spent.tokens_out <= 24 and call.spent.tokens_in > 10 for call in story.calls)
    assert done.same


def test_local_names_no_provider() -> None:
    assert split("local") == ("local", "")
    assert split("local:other") == ("local", "other")
