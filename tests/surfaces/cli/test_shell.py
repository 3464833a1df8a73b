"""Completion from the ledger, the drawing, and the reference of the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from click.shell_completion import ShellComplete

from docs.tools.cli import markdown
from quire.surfaces.cli import cli
from quire.surfaces.cli.command import Session
from quire.workflows import drawing
from tests.surfaces.cli.conftest import Project


def completed(*words: str, incomplete: str = "") -> list[str]:
    found = ShellComplete(cli, {"obj": Session()}, "quire", "_QUIRE_COMPLETE")
    return [item.value for item in found.get_completions(list(words), incomplete)]


def test_commands_options_ids_steps_and_choices_are_completed(project: Project) -> None:
    project.quire("start", "publish", "keyword=x", "--id", "kw_one")
    project.quire("start", "board", "--id", "task")
    project.work()

    assert "approve" in completed(incomplete="app")
    assert "--needs-me" in completed("list", incomplete="--n")
    assert completed("show", incomplete="kw") == ["kw_one"]
    assert set(completed("why")) == {"kw_one", "task"}
    assert completed("start", incomplete="pub") == ["publish"]
    assert completed("answer", "kw_one") == ["approve", "rewrite", "reject"]
    assert completed("move", "task") == ["DOING"]
    assert "post" in completed("retry", "kw_one", "--from")
    assert completed("list", "--status", incomplete="ne") == ["NEEDS_APPROVAL"]


def test_completion_without_a_ledger_is_silent(empty: Project) -> None:
    assert completed("show", incomplete="k") == []
    assert completed("answer", "nope") == []
    assert not list(empty.path.iterdir())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(empty: Project, shell: str) -> None:
    assert "_QUIRE_COMPLETE" in empty.quire("completion", shell).stdout


def test_an_unknown_shell(empty: Project) -> None:
    told = empty.quire("completion", "tcsh", code=2).stderr

    assert "tcsh" in told
    assert all(shell in told for shell in ("bash", "zsh", "fish"))


# -- drawing -------------------------------------------------------------------------------------------------------

NASTY: dict[str, Any] = {
    "name": '<script>"&',
    "version": 2,
    "cap": 3,
    "first": 'a"<b>',
    "steps": [
        {"name": 'a"<b>', "then": ["c\n", 'a"<b>'], "rests": False, "ends": False, "cap": 1},
        {"name": "c\n", "then": ['a"<b>', "d"], "rests": True, "ends": False, "cap": None},
        {"name": "d", "then": [], "rests": False, "ends": True, "cap": None},
    ],
}
COUNTS = {('a"<b>', "PENDING"): 2, ("", "DONE"): 9, ("gone", "ERROR"): 1, ("@undo", "PENDING"): 1}


def test_a_drawing_survives_hostile_names() -> None:
    picture = drawing.svg(NASTY, COUNTS)
    root = ElementTree.fromstring(picture)
    chart = drawing.mermaid(NASTY, COUNTS)

    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "ended: 9 DONE" in picture
    assert "at gone, no step of this version: 1 ERROR" in picture
    assert 'state "a#quot;<b> (2 PENDING)" as s0' in chart
    assert all(line.count('"') in (0, 2) for line in chart.splitlines()[2:])
    assert "(c·" in drawing.terminal(NASTY, COUNTS)
    assert "at most 3 at once" in drawing.terminal(NASTY)


def test_a_drawing_without_counts() -> None:
    assert "●" not in drawing.terminal(NASTY)
    assert "DONE" not in drawing.mermaid(NASTY)
    ElementTree.fromstring(drawing.svg(NASTY))


# -- the reference -------------------------------------------------------------------------------------------------


def test_the_reference_of_the_commands_is_up_to_date() -> None:
    kept = Path(__file__).parents[3] / "docs" / "cli.md"

    assert kept.read_text(encoding="utf-8") == markdown(), (
        "docs/cli.md is stale: python docs/tools/cli.py > docs/cli.md"
    )


def test_the_reference_has_every_command_and_says_common_options_once() -> None:
    text = markdown()

    for name in cli.list_commands(click.Context(cli)):
        assert f"### quire {name}\n" in text
    assert text.count("--ledger URL") == 1
