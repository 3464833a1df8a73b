"""``quire mission`` as it is typed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quire.surfaces.cli.command import Session
from quire.surfaces.cli.missions.commands import mission
from tests.agents.conftest import Serve
from tests.agents.test_correction import planning
from tests.agents.test_judging import correcting

ROOT = Path(__file__).parents[2]
MARS = ROOT / "examples" / "missions" / "mars-colony.yaml"


def typed(folder: Path, *words: str, json_: bool = False) -> Result:
    session = Session(json=json_, flags={"ledger": f"sqlite:///{folder / 'ledger.db'}"})
    return CliRunner().invoke(mission, list(words), obj=session, standalone_mode=False)


def rows(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]


def test_check_names_what_is_in_a_blueprint_and_what_is_wrong_with_one(tmp_path: Path) -> None:
    good = typed(tmp_path, "check", str(MARS))
    bad = tmp_path / "bad.yaml"
    bad.write_text("mission: m\nagents: []\nreducer: {id: r, prompt: p}\n", encoding="utf-8")
    wrong = typed(tmp_path, "check", str(bad))

    assert "mars-colony, 3 turns of CHAIN-MARS-ENGINEER" in good.output
    assert wrong.exception is not None
    assert str(wrong.exception).startswith("bad.yaml, line 2: agents: it is empty; there should be at least one")


def test_check_goes_on_after_a_file_that_is_no_blueprint(tmp_path: Path) -> None:
    for name in ("a.yaml", "c.yaml"):
        (tmp_path / name).write_text("mission: [\n", encoding="utf-8")
    words = ("check", str(tmp_path / "a.yaml"), str(MARS), str(tmp_path / "c.yaml"), str(tmp_path / "d.yaml"))

    told = typed(tmp_path, *words)
    found = rows(typed(tmp_path, *words, json_=True))

    assert told.return_value == 2
    assert "a.yaml" in told.output and "mars-colony, 3 turns" in told.output and "c.yaml" in told.output
    assert ["problem" in row for row in found] == [True, False, True, True]


def test_a_mission_does_not_write_its_result_over_its_blueprint(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_bytes(MARS.read_bytes())

    for target in (plan, tmp_path / "ledger.db"):
        ran = typed(tmp_path, "run", str(plan), "--model", "scripted", "--out", str(target))
        assert "would overwrite; name another file" in str(ran.exception)

    assert plan.read_bytes() == MARS.read_bytes()
    assert not (tmp_path / "ledger.db").exists()


def test_the_schema_is_printed(tmp_path: Path) -> None:
    made = json.loads(typed(tmp_path, "schema").output)

    assert "agents" in made["properties"]


def test_a_mission_is_run_shown_reported_and_replayed(tmp_path: Path) -> None:
    result_file = tmp_path / "result.md"
    ran = typed(tmp_path, "run", str(MARS), "--model", "scripted", "--id", "m1", "--out", str(result_file))
    again = typed(tmp_path, "run", str(MARS), "--model", "test", "--id", "m1", "--out", str(result_file))
    shown = typed(tmp_path, "show", "m1")
    told = rows(typed(tmp_path, "show", "m1", json_=True))[0]
    reported = typed(tmp_path, "report", "m1")
    calls = typed(tmp_path, "report", "m1", "--calls")
    replayed = typed(tmp_path, "replay", "m1")
    changed = typed(tmp_path, "replay", "m1", "--what-if", "--turn", "2", "--prompt", "Two years of storm.")
    kept = typed(tmp_path, "report", "m1", "--what-if", "1")
    missing = typed(tmp_path, "report", "m1", "--what-if", "2")
    again_shown = typed(tmp_path, "show", "m1")
    spent = typed(tmp_path, "spend")

    assert ran.return_value == 0, ran.output
    assert "CHAIN-MARS-ENGINEER, turn 3/3:" in ran.output
    assert again.return_value == 0
    assert "m1 goes on with the blueprint it started with" in again.output
    text = result_file.read_text(encoding="utf-8")
    assert text.startswith("# mars-colony\n") and "### CHAIN-MARS-GOVERNOR" in text and "no AI made them" in text
    assert "3/3" in shown.output and "10 calls" in shown.output
    assert "CHAIN-MARS-MANIFESTO, turn 1. I was asked" in shown.output  # the result, too
    assert typed(tmp_path, "show", "m1/mars-colony~1/0").output == again_shown.output  # a part shows its mission
    assert len(told["calls"]) == 10 and told["pace"]["most"] >= 1
    assert reported.output.startswith("# mars-colony")
    assert "at the same time" in calls.output and "s on average from an agent's turn to its next" in calls.output
    assert "The same result from 10 receipts; no model was asked." in replayed.output
    assert "3 answers from receipts, 7 asked anew" in changed.output
    assert "--- as it was" in changed.output and "--- what if" in changed.output
    assert "kept: quire mission report m1 --what-if 1" in changed.output
    assert kept.output.startswith("# mars-colony")
    assert "'m1' has no what-if 2; it has 1" in str(missing.exception)
    assert "what-if 1, turn 2, another prompt: done; 7 calls" in again_shown.output
    assert "10 calls" in spent.output and "m1, what-if 1  7 calls" in spent.output and "17 calls" in spent.output


def test_a_mission_that_is_run_here_leaves_its_result_in_the_configured_folder(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    flags = {"ledger": f"sqlite:///{tmp_path / 'ledger.db'}", "folder": str(folder)}
    words = ["run", str(MARS), "--model", "scripted", "--id", "m1", "--out", str(tmp_path / "result.md")]

    ran = CliRunner().invoke(mission, words, obj=Session(flags=flags), standalone_mode=False)

    assert ran.return_value == 0, ran.output
    [result] = folder.rglob("result.md")
    assert result.read_bytes() == (tmp_path / "result.md").read_bytes()


def test_without_a_key_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")

    refused = typed(tmp_path, "run", str(MARS), "--id", "m1")

    assert str(refused.exception) == (
        "the model 'google:gemini-2.5-flash' needs a key: set the environment variable GEMINI_API_KEY or "
        "GOOGLE_API_KEY; without one there are the models 'scripted' and 'local' (quire model fetch)"
    )
    assert not list(tmp_path.iterdir())


def test_a_mission_that_waits_for_a_person_says_so_and_exits_with_7(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    told = {
        "mission": "plan",
        "model": "scripted",
        "agents": [{"id": "a", "prompt": "go on {{topic}}"}],
        "max_turns": 4,
        "limits": {"calls": 2},
        "reducer": {"id": "r", "prompt": "all"},
    }
    plan.write_text(json.dumps(told), encoding="utf-8")

    missing = typed(tmp_path, "run", str(plan), "--id", "m1")
    result = typed(tmp_path, "run", str(plan), "topic=x", "--id", "m1")

    assert "needs 'topic'" in str(missing.exception)
    assert result.return_value == 7
    assert "plan has reached its limit of 2 calls" in result.output


def test_a_corrected_prompt_is_shown_with_what_was_added_and_how_it_was_judged(tmp_path: Path, serve: Serve) -> None:
    server = serve(correcting(lambda asked: "YES: it is a plan"))
    plan, result_file = tmp_path / "plan.json", tmp_path / "result.md"
    plan.write_text(json.dumps(planning(server.model())), encoding="utf-8")

    ran = typed(tmp_path, "run", str(plan), "--id", "m1", "--out", str(result_file))
    shown = typed(tmp_path, "show", "m1").output
    [told] = rows(typed(tmp_path, "show", "m1", json_=True))

    assert ran.return_value == 0, ran.output
    assert "corrected: engineer, turn 1, try 2, after format: UnexpectedModelBehavior" in shown
    assert "judged yes: it is a plan\n   [engineer] Plan it.\n  +\n  +<<<CORRECTION " in shown
    [kept] = told["corrections"]
    assert f"{kept['original']}\n\n{kept['added']}" == server.log[2].asked.prompt
    assert "## Corrected prompts\n\n- engineer, turn 1, try 2, after format" in result_file.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_kills_its_worker_and_ends_in_a_readable_result(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    code = "import sys; from quire.surfaces.cli.command import Session; "
    code += "from quire.surfaces.cli.missions.demo import run_demo; "
    code += "sys.exit(run_demo(Session(json=True), sys.argv[1]))"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}

    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["answers"], told["twice"]) == (10, 0)
    assert 0 < told["by_killed"] < 10
    text = (folder / "mars-1.md").read_text(encoding="utf-8")
    assert "Mars Master Manifesto" in text and "Subterranean Lava Tubes" in text
    assert signal.SIGKILL  # where there is none, the worker is terminated instead
