"""A state that a workflow declares is shown as itself: in the folder's table, by quire list, and verify takes both."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import quire
from quire.folder import state
from quire.surfaces.cli import cli

FLOWS = """
from quire import Workflow

tasks = Workflow("tasks")
tasks.state("PENDING", then=["COMPLETED", "CANCELLED"])
tasks.state("COMPLETED")
tasks.state("CANCELLED")
"""


def run(*words: str) -> str:
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_record_that_ended_in_a_declared_state_shows_that_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The commands run in this process: what they import must have a name of its own, and be forgotten.
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "states_of_tasks", None)
    del sys.modules["states_of_tasks"]
    (tmp_path / "states_of_tasks.py").write_text(FLOWS, encoding="utf-8")
    (tmp_path / "quire.toml").write_text('flows = ["states_of_tasks.py"]\nfolder = "folder"\n', encoding="utf-8")
    for name in ("a", "b", "c"):
        run("start", "tasks", "--id", name)
    run("move", "a", "COMPLETED")
    run("move", "b", "CANCELLED")
    run("worker", "--until-idle")

    [path] = (tmp_path / "folder").rglob("state_table.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = {row["record_id"]: row for row in csv.DictReader(file)}
    assert {name: row["status"] for name, row in rows.items()} == {"a": "COMPLETED", "b": "CANCELLED", "c": "PENDING"}
    assert rows["a"]["next_step"] == ""
    listed = {line.split()[0]: line.split()[1] for line in run("list").splitlines() if line[:2] in ("a ", "b ", "c ")}
    assert listed == {"a": "COMPLETED", "b": "CANCELLED", "c": "PENDING"}
    run("verify")
    path.write_text(path.read_text(encoding="utf-8").replace("COMPLETED,,", "DONE,,", 1), encoding="utf-8")
    run("verify")  # as tables were written before
    with quire.open(f"sqlite:///{tmp_path}/.quire/ledger.db") as client:
        assert state.row(client.get("a"), "f")[1] == "COMPLETED"
