"""The result of a mission as a file of the folder: for every mission that has ended, whoever ran it, well or not."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from quire.agents.missions import story as stories
from quire.agents.missions.report import AgentReport, Report, markdown
from quire.agents.missions.story import Story
from quire.agents.spend import Spend
from quire.ledger.base import Ledger
from quire.model.codec import parse
from quire.model.record import Record

#: Its name among the artifacts of the workflow.
RESULT = "results/result.md"


async def files(ledger: Ledger, record: Record) -> Mapping[str, bytes]:
    """What the folder shows of a mission that has ended; nothing for other records."""
    if not record.ended or '"blueprint"' not in record.data or not stories.is_mission(parse(record.data)):
        return {}
    try:
        story = await stories.read(ledger, record.record_id)
    except ValidationError:  # of another version: the folder shows its state, and the rest goes on
        return {}
    report = story.report if story.report is not None else without_result(story)
    return {RESULT: markdown(report, record.record_id, story.corrections).encode()}


def without_result(story: Story) -> Report:
    """What is there of a mission that came to no result: nothing that was said is lost."""
    from quire.agents.view import story_json

    record = story.record
    agents = []
    for agent in story_json(story)["agents"]:
        said = story.said.get(agent["id"], {})
        spent = Spend.model_validate(agent["spent"])
        text = said[max(said)] if said else ""
        agents.append(
            AgentReport(
                id=agent["id"], text=text, turns=len(said), status=agent["status"], error=agent["error"], spent=spent
            )
        )
    why = f": {record.last_error}" if record.last_error else ""
    return Report(
        text=f"There is no result. The mission is {record.status}{why}",
        mission=story.blueprint.mission,
        status="none",
        blueprint=story.hash,
        agents=agents,
        spent=story.spent,
    )
