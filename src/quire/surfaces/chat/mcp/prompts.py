"""Prompts: what a person picks from a menu, and what the model is then asked to do with the tools."""

from __future__ import annotations

from typing import NamedTuple

INSTRUCTIONS = (
    "Quire keeps records of durable work in a ledger; workers move them through the steps of workflows. Look first "
    "(what_is_stuck, show), tell the person what you found in plain words, and act only on what they say. An approval "
    "needs the hash that show gave, for exactly what the person was shown. A halt is confirmed by the person."
)


class Argument(NamedTuple):
    name: str
    what: str
    required: bool = True


class Prompt(NamedTuple):
    name: str
    title: str
    what: str
    arguments: tuple[Argument, ...]
    text: str


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "stuck",
            "What is stuck?",
            "What does not go on, why, and what would put it right.",
            (),
            "Call what_is_stuck. Tell me in a few plain sentences what does not go on and why, what concerns most "
            "records first. For each cause propose one act, and do none of them before I agree.",
        ),
        Prompt(
            "approve",
            "Show me what to approve",
            "Show a question with everything that it would approve, then answer it.",
            (Argument("record_id", "The record that asks; empty: whichever do.", False),),
            "Show me what {record_id} asks: the question word for word, everything that would be approved, the choices "
            "and who may answer. Use show. Wait for my answer, then call approve with the hash that show gave.",
        ),
        Prompt(
            "correct",
            "Correct errors",
            "Look at the errors of a workflow, find their cause and retry what can be retried.",
            (Argument("workflow", "Of this workflow; empty: of all.", False),),
            "Look at the records of {workflow} in ERROR with what_is_stuck and show. Tell me the cause of each group "
            "and whether a retry can help or something outside must be put right first. Retry only what I name.",
        ),
        Prompt(
            "start",
            "Start work",
            "Start a record of a workflow with data that fits.",
            (Argument("workflow", "The workflow."), Argument("wish", "What is to be done, in your words.")),
            "I want this done with the workflow {workflow}: {wish}\nLook at its schema with workflows, ask me for what "
            "is missing, show me the data, and start it under an id that says what it is.",
        ),
        Prompt(
            "mission",
            "Run a mission",
            "Run a network of agents and report what it came to.",
            (Argument("mission", "The mission."), Argument("topic", "What it is about.", False)),
            "Run the mission {mission} about {topic}. Look at what it needs with workflows, start it with mission_run, "
            "and tell me its id. When I ask, look with mission_show: who said what, what it asks, what it spent.",
        ),
        Prompt(
            "halt",
            "Halt",
            "Stop everything, after you have confirmed it.",
            (Argument("reason", "Why."),),
            "I consider halting because: {reason}\nCall halt without confirm and tell me what would be stopped and "
            "which effects are under way. Only if I then say so, call it again with the word that it gave.",
        ),
    )
}

_EMPTY = {"record_id": "whichever records ask", "workflow": "all workflows", "topic": "what I name next"}


def filled(prompt: Prompt, given: dict[str, str]) -> str:
    """The prompt with what was given; an argument is put in as it is and is never a template itself."""
    text = prompt.text
    parts = text.split("{")
    made = parts[0]
    for part in parts[1:]:
        name, _, rest = part.partition("}")
        made += (given.get(name) or _EMPTY.get(name, "")) + rest
    return made
