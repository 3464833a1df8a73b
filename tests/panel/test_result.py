"""The result of a mission is a tab of its own, once."""

from __future__ import annotations

import json
from pathlib import Path

from quire.agents import mission
from quire.client.client import Client
from quire.model.record import Status, new_record
from quire.model.row import replace
from quire.surfaces.panel import Panel, result_tab
from tests.panel.conftest import Sheet

BLUEPRINT = """
mission: roadmap
model: scripted
max_turns: 1
agents:
  - {id: ceo, prompt: "You lead."}
  - {id: cto, prompt: "You build."}
reducer: {id: lead, prompt: "Sum up."}
"""


def test_only_a_finished_mission_has_a_tab() -> None:
    record = new_record(record_id="m1", workflow="roadmap", step="", data="{}", now=0.0, status=Status.DONE)
    report = {"text": "# Plan\n=1+1\n" + "x" * 100_000, "mission": "roadmap", "agents": [{"id": "ceo", "text": "Go."}]}
    made = result_tab(replace(record, result=json.dumps(report)))

    assert made is not None and made.rows[3:5] == [["# Plan"], ["=1+1"]]
    assert max(len(cell) for row in made.rows for cell in row) < 50_000
    assert ["Go.", "ceo", "", ""] in made.rows
    assert result_tab(replace(record, result='"plain"')) is None
    assert result_tab(replace(record, result=json.dumps(report), status=Status.ERROR)) is None
    assert result_tab(replace(record, result=json.dumps(report), parent_id="p")) is None


async def test_a_mission_ends_in_a_tab_of_its_own(sheet: Sheet, tmp_path: Path) -> None:
    path = tmp_path / "roadmap.yaml"
    path.write_text(BLUEPRINT, encoding="utf-8")
    flow = mission(str(path))
    async with Client("memory:", workflows=[flow]) as client, Panel(client, sheet.url) as panel:
        await client.start(flow, {}, id="m1")
        await client.work()
        assert (await client.get("m1")).status is Status.DONE
        await panel.look()
        await panel.look()

        grid = sheet.grid("result m1")
        assert grid[0] == ["roadmap"] and sorted(row[1] for row in grid if len(row) > 2 and row[1] != "agent") == [
            "ceo",
            "cto",
        ]
        assert sheet.row("m1")["status"] == "DONE"
