"""A mission while a call of a model is under way, and what a model is asked where the schema is left open."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from quire.agents.missions import story as stories
from quire.model.record import Status
from quire.surfaces.cli.work.repair import _running
from tests.agents.missions import blueprint, opened, started
from tests.agents.stand_in import Asked, stand_in


def typed(url: str, *words: str) -> str:
    command = [sys.executable, "-m", "quire.surfaces.cli", "--ledger", url, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def test_a_mission_whose_agents_work_is_running_and_a_halt_is_not_quiet(tmp_path: Path) -> None:
    go = threading.Event()

    def answer(asked: Asked) -> str:
        go.wait(60)
        return "a plan"

    with stand_in(answer) as server:
        plan = blueprint(server.model(), names=["engineer"], turns={})
        url = f"sqlite:///{tmp_path / 'ledger.db'}"
        async with opened(plan, url) as client, client.worker():

            def asked() -> None:
                with server.arrived:
                    server.arrived.wait_for(lambda: bool(server.log), 60)

            await client.start("colony", {}, id="m1")
            await asyncio.to_thread(asked)
            story = await stories.read(client.ledger, "m1")
            [part] = story.parts
            try:
                assert (story.record.status, story.status) == (Status.WAITING, Status.RUNNING)
                listed, shown = [await asyncio.to_thread(typed, url, *words) for words in (["list"], ["show", "m1"])]
                assert [line.split()[:2] for line in listed.splitlines() if line.startswith("m1 ")] == [
                    ["m1", "RUNNING"]
                ]
                assert shown.split()[:2] == ["m1", "RUNNING"]
                assert await _running(client, "") == [part.record_id]
                await client.halt(reason="wrong prices")
                ended = await client.until_ended(part.record_id, timeout="60s")
            finally:
                go.set()
            assert ended.status is Status.CANCELLED
            assert await _running(client, "") == []


@pytest.mark.parametrize("output", ["json", {"type": "object"}])
async def test_an_object_of_which_nothing_is_said_may_have_any_fields(output: Any) -> None:
    with stand_in(lambda asked: '{"area": 3}') as server:
        agents = [{"id": "e", "prompt": "[e] Plan.", "output": output}]
        async with opened(blueprint(server.model(), agents=agents, turns={})) as client:
            await started(client)
            story = await stories.read(client.ledger, "m1")

    assert '"additionalProperties": true' in server.log[0].asked.body["messages"][0]["content"]
    assert json.loads(story.said["e"][1].strip("`json\n")) == {"area": 3}
