"""Blueprints: what is accepted, and what is refused with which words at which line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quire.agents.blueprint.blueprint import Blueprint, schema
from quire.agents.blueprint.reading import load
from quire.agents.missions.report import AgentReport, Report, markdown
from quire.errors import DefinitionError, InputError

ROOT = Path(__file__).parents[2]

YAML = """\
mission: roadmap
model: google-gla:gemini-2.5-flash
max_turns: 3
agents:
  - id: ceo
    prompt: You are the CEO.
  - id: cto
    prompt: You are the CTO of {{topic}}.
turns:
  2: COMPETITION
  3: PITCH
reducer: {id: vc, prompt: Synthesize.}
"""

TOML = """\
MAX_TURNS = 3
mission = "roadmap"
model = "google-gla:gemini-2.5-flash"

[[AGENTS]]
id = "ceo"
initialPrompt = "You are the CEO."

[[AGENTS]]
id = "cto"
initialPrompt = "You are the CTO of {{topic}}."

[TURN_PROMPTS]
2 = "COMPETITION"
3 = "PITCH"

[REDUCER]
id = "vc"
prompt = "Synthesize."
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(source: Any) -> str:
    with pytest.raises(DefinitionError) as caught:
        load(source)
    return str(caught.value)


def test_yaml_toml_json_and_python_give_the_same_blueprint(tmp_path: Path) -> None:
    by_yaml = load(written(tmp_path, "a.yaml", YAML))
    by_toml = load(written(tmp_path, "b.toml", TOML))
    told = {
        "mission": "roadmap",
        "model": "google-gla:gemini-2.5-flash",
        "maxTurns": 3,
        "agents": [
            {"id": "ceo", "initialPrompt": "You are the CEO."},
            {"id": "cto", "initialPrompt": "You are the CTO of {{topic}}."},
        ],
        "turnPrompts": {"2": "COMPETITION", "3": "PITCH"},
        "reducer": {"id": "vc", "prompt": "Synthesize."},
    }
    by_json = load(written(tmp_path, "c.json", json.dumps(told)))

    assert by_yaml.hash == by_toml.hash == by_json.hash == load(told).hash
    assert by_yaml.last_turn == 3
    assert Blueprint.model_validate(by_yaml.as_json()).hash == by_yaml.hash


@pytest.mark.parametrize("name", ["mars-colony.yaml", "startup-roadmap.yaml"])
def test_the_blueprints_of_the_article_are_shipped(name: str) -> None:
    made = load(ROOT / "examples" / "missions" / name)

    assert (made.last_turn, made.max_retries, len(made.agents)) == (3, 2, 3)
    assert all(agent.id.startswith("CHAIN-") for agent in (*made.agents, made.reducer))


def test_what_is_asked_after_the_last_turn_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = load(written(tmp_path, "roadmap.yaml", YAML.replace("max_turns: 3", "max_turns: 1")))

    assert made.last_turn == 1
    said = "roadmap.yaml, line 10: max_turns is 1, so what is asked in turn 2, 3 is never asked"
    assert [record.getMessage() for record in caplog.records] == [said]


PASTED = """\
/**
* MISSION_BLUEPRINT
* Declaratively defines the agent structure, step counts, prompts, and reduction rules.
*/
const MISSION_BLUEPRINT = {
MAX_TURNS: 3,
MAX_RETRIES: 2,
AGENTS: [
{
id: "CHAIN-STARTUP-CEO",
initialPrompt:
"You are the CEO. Say \\"yes\\" or 'no'.", // with both quotes
},
{ id: 'CHAIN-STARTUP-CTO', initialPrompt: 'You are the CTO: don\\'t "guess".' },
],
TURN_PROMPTS: {
2: "COMPETITION UPDATE: " + "how do we pivot?",
3: `PITCH STAGE:
write the plan.`,
},
REDUCER: {
id: "CHAIN-VC-LEAD-INVESTOR",
prompt:
"Synthesize the pitch reports.\\n\\n",
},
};
"""


@pytest.mark.parametrize("name", ["roadmap.js", "roadmap.json", "roadmap.yaml"])
def test_the_object_of_the_article_is_read_as_it_is_printed(tmp_path: Path, name: str) -> None:
    made = load(written(tmp_path, name, PASTED))

    assert (made.mission, made.last_turn, made.max_retries) == ("roadmap", 3, 2)
    assert [agent.id for agent in made.agents] == ["CHAIN-STARTUP-CEO", "CHAIN-STARTUP-CTO"]
    prompts = [agent.prompt for agent in made.agents]
    assert prompts == ["You are the CEO. Say \"yes\" or 'no'.", 'You are the CTO: don\'t "guess".']
    assert made.turns == {2: "COMPETITION UPDATE: how do we pivot?", 3: "PITCH STAGE:\nwrite the plan."}
    assert made.reducer.prompt == "Synthesize the pitch reports.\n\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("MAX_TURNS: 3", "MAX_TRUNS: 3", "line 6: max_truns: there is no such word; did you mean 'max_turns'?"),
        (
            "MAX_TURNS: 3",
            "MAX_TURNS: turns()",
            "line 6: 'turns' is not a plain value; a blueprint in JavaScript is one",
        ),
        ("MAX_RETRIES: 2,", "MAX_TURNS: 2,", "line 7: 'MAX_TURNS' stands here and on line 6; keep one"),
        ("`PITCH STAGE:", "`PITCH ${stage}:", "line 18: a text with ${…} is computed"),
        ("MAX_RETRIES: 2,", "MAX_RETRIES: 2", "line 8: after 'MAX_RETRIES' there is neither ',' nor '}'"),
        ("};", "", "the object is open"),
    ],
)
def test_a_mistake_in_a_pasted_object_is_named_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    message = refused(written(tmp_path, "roadmap.js", PASTED.replace(old, new)))

    assert message.startswith("roadmap.js, line ")
    assert words in message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  - id: cto", "  - id: ceo", "line 7: agents.1.id: 'ceo' stands here and at agent 1; ids are unique"),
        ("max_turns: 3", "max_turn: 3", "line 3: max_turn: there is no such word; did you mean 'max_turns'?"),
        ("max_turns: 3", "max_turns: many", "line 3: max_turns: it should be a whole number"),
        ("max_turns: 3", "judge: maybe", "line 3: judge: it should be a mapping of words"),
        ("max_turns: 3", "judge: {promt: x}", "line 3: judge.promt: there is no such word; did you mean 'prompt'?"),
        ("    prompt: You are the CEO.", "    promt: You are the CEO.", "line 5: agents.0.prompt: it is missing"),
        ("{id: vc, prompt: Synthesize.}", "{id: ceo, prompt: S.}", "line 12: reducer.id: 'ceo' is an agent already"),
        ("max_turns: 3", "deadline: soon", "line 3: deadline: 'soon' is not a span of time"),
        ("max_turns: 3", "policy: {quorum: 5}", "line 3: policy: a quorum of 5 of 2 agents is never reached"),
        (
            "max_turns: 3",
            "inputs: [company]",
            "line 3: inputs: a prompt names {{topic}}, which is not among the inputs",
        ),
        ("max_turns: 3", "mission: again", "line 3: 'mission' stands here and on line 1; keep one"),
        ("max_turns: 3", "max_turns: [", "line"),
    ],
)
def test_a_problem_is_named_with_its_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = written(tmp_path, "roadmap.yaml", YAML.replace(old, new))

    message = refused(path)

    assert message.startswith("roadmap.yaml, ")
    assert words in message


def test_lines_of_toml_are_named_too(tmp_path: Path) -> None:
    path = written(tmp_path, "b.toml", TOML.replace('id = "cto"', 'id = "ceo"'))

    assert refused(path).startswith("b.toml, line 10: agents.1.id: 'ceo' stands here")


def test_a_key_in_a_blueprint_is_refused() -> None:
    told = {"mission": "m", "agents": [{"id": "a", "prompt": "p"}], "reducer": {"id": "r", "prompt": "p"}}

    by_shape = refused(told | {"model": {"model": "openai:x", "settings": {"k": "sk-abcdefghijklmnopqrstuvwx"}}})
    by_place = refused(told | {"model": {"model": "openai:x", "key": "sk-abcdefghijklmnopqrstuvwx"}})

    assert "this looks like a key" in by_shape
    assert "never the key itself" in by_place
    assert "sk-abc" not in by_shape + by_place


def test_missing_inputs_are_refused_before_anything_starts(tmp_path: Path) -> None:
    made = load(written(tmp_path, "a.yaml", YAML))

    with pytest.raises(InputError, match="needs 'topic'; start it with topic=…"):
        made.check_inputs({})
    assert made.filled(made.agents[1].prompt, {"topic": "x-rays"}) == "You are the CTO of x-rays."
    assert made.given({"topic": "x-rays", "city": "Bonn"}) == "\n\nGiven:\n- city: Bonn"


def test_a_turn_without_a_prompt_goes_on() -> None:
    told = {"mission": "m", "max_turns": 5, "turns": {2: "two"}, "reducer": {"id": "r", "prompt": "p"}}
    made = load(told | {"agents": [{"id": "a", "prompt": "one", "turns": {4: "four for a"}}]})

    prompts = [made.prompt(made.agents[0], turn) for turn in range(1, 6)]

    assert prompts == ["one", "two", made.go_on, "four for a", made.go_on]


@pytest.mark.parametrize(
    ("policy", "needed"), [("all", 3), ("best_effort", 1), ({"quorum": 2}, 2), ({"quorum": 0.5}, 2), ({"QUORUM": 1}, 1)]
)
def test_how_many_agents_must_finish(policy: Any, needed: int) -> None:
    agents = [{"id": name, "prompt": "p"} for name in "abc"]

    made = load({"mission": "m", "agents": agents, "reducer": {"id": "r", "prompt": "p"}, "policy": policy})

    assert made.needed() == needed


def test_the_schema_is_a_json_schema_of_all_words() -> None:
    made = schema()

    assert made["$schema"].endswith("2020-12/schema")
    assert set(made["properties"]) == set(Blueprint.model_fields)


def test_a_report_reads_as_markdown() -> None:
    agents = [AgentReport(id="ceo", text="We sell.", turns=3), AgentReport(id="cto", status="failed", error="503")]

    text = markdown(Report(text="# All", mission="roadmap", by="vc", status="partial", agents=agents), "m1")

    assert text.startswith("# roadmap\n\n# All\n")
    assert "### ceo\n\nWe sell." in text
    assert "*failed: 503*" in text
    assert "record `m1`" in text
