"""Every problem of a blueprint is named with its line, whatever it is written in; and no file is followed too far."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.agents.blueprint.reading import load
from tests.agents.test_blueprint import YAML, refused

TOML = """\
mission = "m"   # a comment with a = and a [
max_turns = 1.5
"go_on" = '''
agents = 1
[reducer]
'''
agents = [
  # the first
  {id = "a", prompt = "p", turns = {2 = "x"}, model.model = "google:x"},
  {id = "b", prompt = 'p = [', modle = "x", tools = [
    "one:two",
    "three",
  ]},
]
[model]
model = "google:x"
settings.when = 2026-01-01T00:00:00Z
[reducer]
id = "r"
promt = "p"
"""

JSON = """{
\t"mission": "m",
\t"max_turns": 1.5,
\t"agents": [
\t\t{"id": "a", "prompt": "p"},
\t\t{"id": "b", "prompt": "{ \\" [ , ]",
\t\t "modle": "x",
\t\t "tools": ["one:two",
\t\t   "three"]}
\t],
\t"reducer": {"id": "r",
\t  "promt": "p"}
}
"""


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("b.toml", TOML, {2: "max_turns", 10: "agents.1.modle", 12: "agents.1.tools.1", 20: "reducer.promt"}),
        ("b.json", JSON, {3: "max_turns", 7: "agents.1.modle", 9: "agents.1.tools.1", 12: "reducer.promt"}),
    ],
)
def test_every_problem_of_toml_and_json_has_its_own_line(
    tmp_path: Path, name: str, text: str, wanted: dict[int, str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")

    told = refused(tmp_path / name)

    for line, word in wanted.items():
        assert f"{name}, line {line}: {word}: " in told
    assert told.count("\n") == len(wanted)  # and the prompt of the reducer, which is missing


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("google-gla:gemini-2.5-flash", "nonsense", "line 2: model: the model 'nonsense' names no provider"),
        (
            "google-gla:gemini-2.5-flash",
            "gogle:x",
            "knows no provider 'gogle'; did you mean 'google'",
        ),
        (
            "google-gla:gemini-2.5-flash",
            "{model: openai:x, base_url: 'http://a:b@c/v1'}",
            "line 2: model: this address",
        ),
        ("mission: roadmap", "mission: roadmap\ninputs: &a [*a]", "line 2: it refers to itself"),
        ("  - id: cto", "  - id: cto\n    tools: [look]", "'look' names nothing in Python; write it"),
        ("  - id: cto", "  - id: cto\n    output: Plan", "'Plan' names nothing in Python"),
    ],
)
def test_what_could_never_run_is_refused_before_it_starts(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = YAML.replace(old, new)
    assert text != YAML
    (tmp_path / "b.yaml").write_text(text, encoding="utf-8")

    assert words in refused(tmp_path / "b.yaml")


def test_a_file_of_aliases_of_aliases_is_refused_and_not_followed(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (tmp_path / "b.yaml").write_text("\n".join(lines), encoding="utf-8")

    assert "refers to itself, or to others too often" in refused(tmp_path / "b.yaml")


def test_what_lies_too_deep_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"mission": ' + "[" * 100_000, encoding="utf-8")

    assert "too deep" in refused(tmp_path / "b.json")


PYTHON = """\
ROLE = "You are the "

MISSION_BLUEPRINT = {
    "MAX_TURNS": 3,
    "AGENTS": [
        {"id": "ceo", "initialPrompt": "You are the CEO."},
        {"id": "cto",
         "initialPrompt": "You are the CTO."},
    ],
    "TURN_PROMPTS": {2: "COMPETITION", 3: "PITCH"},
    "REDUCER": {"id": "vc", "prompt": "Synthesize."},
}
"""


@pytest.mark.parametrize("prompt", ['"You are the CEO."', 'ROLE + "CEO."'], ids=["written out", "computed"])
def test_a_blueprint_in_python_is_named_as_in_the_article(tmp_path: Path, prompt: str) -> None:
    (tmp_path / "plan.py").write_text(PYTHON.replace('"You are the CEO."', prompt), encoding="utf-8")

    made = load(tmp_path / "plan.py")

    assert (made.mission, made.last_turn, made.agents[0].prompt) == ("plan", 3, "You are the CEO.")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"id": "cto"', '"id": "ceo"', "plan.py, line 7: agents.1.id: 'ceo' stands here and at agent 1"),
        ('"MAX_TURNS": 3', '"MAX_TURN": 3', "plan.py, line 4: max_turn: there is no such word; did you mean"),
        ("MISSION_BLUEPRINT", "PLAN", "plan.py: it assigns no MISSION_BLUEPRINT"),
        ('"MAX_TURNS": 3,', '"MAX_TURNS": 3 4', "plan.py, line 4: "),
        ('"MAX_TURNS": 3', '"MAX_TURNS": TURNS', "plan.py cannot be run: NameError: name 'TURNS' is not defined"),
    ],
)
def test_a_problem_in_python_has_its_line_too(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "plan.py").write_text(PYTHON.replace(old, new, 1), encoding="utf-8")

    assert words in refused(tmp_path / "plan.py")
