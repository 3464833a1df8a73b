"""A mission as plain data, for whoever shows it: turns side by side, what was spent, what is asked, the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quire.agents.blueprint.blueprint import AgentSpec
from quire.agents.missions import story as stories
from quire.agents.missions.report import markdown
from quire.agents.missions.story import Call, Story, is_part
from quire.agents.spend import Spend
from quire.clock import iso
from quire.ledger.base import Ledger
from quire.model.codec import parse
from quire.model.receipt import Stage
from quire.model.record import Record, Status

#: How a part's record stands, in the words of a turn.
_UNDER_WAY = {
    Status.PENDING: "waiting",
    Status.RUNNING: "running",
    Status.WAITING: "waiting",
    Status.NEEDS_APPROVAL: "asking",
    Status.ERROR: "failed",
    Status.CANCELLED: "cancelled",
}


async def mission_view(ledger: Ledger, record_id: str) -> dict[str, Any]:
    """A mission as JSON: ``agents`` side by side, each with its turns; ``reducer``, ``spent``, ``asks``, ``result``.

    ``record_id`` names the mission or one of its parts. ``InputError``: the record is not a mission, or has not begun.
    """
    found = await ledger.load([record_id])
    return story_json(await stories.read(ledger, stories.mission_of(found[0]) if found else record_id))


def story_json(story: Story) -> dict[str, Any]:
    """The story as plain data."""
    record, blueprint = story.record, story.blueprint
    data = parse(record.data)
    parts = _parts(story)
    prompts = _prompts(story)
    agents = []
    for spec in blueprint.agents:
        kept, part = data["agents"][spec.id], parts.get(spec.id)
        turns = [_turn(story, spec.id, number, prompts, part) for number in range(1, blueprint.last_turn + 1)]
        agents.append(
            {
                **_about(story, spec),
                "status": _status(kept["status"], part, story, spec.id),
                "error": kept["error"] or (part.last_error if part is not None else "") or "",
                "record_id": part.record_id if part is not None else None,
                "turns": turns,
            }
        )
    pace = stories.pace(story.calls)
    return {
        "record_id": record.record_id,
        "mission": blueprint.mission,
        "status": story.status,
        "step": record.step,
        "error": record.last_error or "",
        "blueprint": story.hash,
        "inputs": story.inputs,
        "max_turns": blueprint.last_turn,
        "agents": agents,
        "reducer": {**_about(story, blueprint.reducer), "turns": [_reduction(story)]},
        "spent": money(story.spent),
        "limits": data.get("limits", {}),
        "asks": [{"record_id": asker, "question": question} for asker, question in story.questions()],
        "pace": {**pace._asdict(), "speed_up": pace.speed_up},
        "result": None
        if story.report is None
        else {
            "status": story.report.status,
            "by": story.report.by,
            "text": story.report.text,
            "markdown": markdown(story.report, record.record_id, story.corrections),
        },
    }


def money(spent: Spend) -> dict[str, Any]:
    """What was spent: numbers, and the same in words."""
    return {**spent.model_dump(), "tokens": spent.tokens, "in_words": spent.in_words()}


def _about(story: Story, spec: AgentSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "model": story.blueprint.model_of(spec).model,
        "spent": money(story.spent_by(spec.id)),
    }


def _parts(story: Story) -> dict[str, Record]:
    """The record of each agent; where it was sent out several times, the last."""
    found: dict[str, Record] = {}
    for part in sorted(story.parts, key=lambda part: (part.generation or 0, part.place or 0)):
        data = parse(part.data)
        if is_part(data):
            found[data["part"]["agent"]] = part
    return found


def _prompts(story: Story) -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    for receipt in story.receipts:
        if receipt.fn == stories.PIECE and receipt.stage is Stage.DONE:
            piece = parse(receipt.value)
            if "prompt" in piece:
                agent = receipt.name.removeprefix("piece ").rpartition(" ")[0]
                found[agent, piece["turn"]] = piece["prompt"]
    return found


def _turn(
    story: Story, agent_id: str, number: int, prompts: dict[tuple[str, int], str], part: Record | None
) -> dict[str, Any]:
    calls = [call for call in story.calls if (call.agent, call.turn) == (agent_id, number)]
    text = story.said.get(agent_id, {}).get(number)
    status = "done"
    if text is None:
        status = "to come"
        here = number == 1 or number - 1 in story.said.get(agent_id, {})
        if here and part is not None:
            status = _UNDER_WAY.get(part.status, status)
    return {
        **_cost(calls),
        "turn": number,
        "status": status,
        "prompt": prompts.get((agent_id, number)),
        "text": text,
        "corrections": _corrections(story, agent_id, number),
    }


def _corrections(story: Story, agent_id: str, turn: int) -> list[dict[str, str]]:
    """How the prompt of this turn was corrected; ``prompt`` of the turn is the original."""
    found = [one for one in story.corrections if (one.agent, one.turn) == (agent_id, turn)]
    return [
        {"try": one.name, "error": one.error, "original": one.original, "added": one.added, "judged": one.judged}
        for one in found
    ]


def _reduction(story: Story) -> dict[str, Any]:
    calls = [call for call in story.calls if call.agent == story.blueprint.reducer.id]
    text = story.report.text if story.report is not None else None
    status = "done" if text is not None else "to come"
    if text is None and story.record.step == "reduce":
        status = _UNDER_WAY.get(story.record.status, status)
    corrections = _corrections(story, story.blueprint.reducer.id, 0)
    return {**_cost(calls), "turn": 0, "status": status, "prompt": None, "text": text, "corrections": corrections}


def _cost(calls: Iterable[Call]) -> dict[str, Any]:
    made = list(calls)
    spent = stories.total(call.spent for call in made)
    failed = [call.error for call in made if call.error]
    return {
        "calls": spent.calls,
        "failed": failed,
        "tokens": spent.tokens,
        "usd": spent.usd,
        "began_at": iso(min(call.began for call in made)) if made else None,
        "ended_at": iso(max(call.ended for call in made)) if made else None,
    }


def _status(kept: str, part: Record | None, story: Story, agent_id: str) -> str:
    """How an agent stands: as the mission has gathered it, or as its own record says meanwhile."""
    if kept != "going":
        return kept
    still = "unfinished" if story.record.ended else "waiting"
    if part is None:
        return still
    if part.status is Status.DONE:
        return "done" if story.blueprint.last_turn in story.said.get(agent_id, {}) else still
    return _UNDER_WAY[part.status] if part.ended or not story.record.ended else still
