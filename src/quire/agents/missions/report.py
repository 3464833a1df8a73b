"""The result of a mission, and how it reads as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel

from quire.agents.spend import Spend

if TYPE_CHECKING:
    from quire.agents.missions.story import Corrected


class AgentReport(BaseModel):
    """What one agent came to."""

    id: str
    text: str = ""
    turns: int = 0
    #: done, failed, left out, unfinished
    status: str = "done"
    error: str = ""
    spent: Spend = Spend()


class Report(BaseModel):
    """What a mission, or one agent's part of it, came to. ``text`` is Markdown."""

    text: str
    mission: str = ""
    #: Who wrote the text: the reducer of a mission, the agent of a part.
    by: str = ""
    #: done, partial; of a part also limit, left out, stopped
    status: str = "done"
    blueprint: str = ""
    agents: list[AgentReport] = []
    spent: Spend = Spend()
    #: Of a part: which limit was reached, the next turn, how many pieces of history there are.
    limit: str = ""
    next_turn: int = 0
    pieces: int = 0
    compacted: int = 0
    resumes: bool = False


def markdown(report: Report, record_id: str = "", corrections: Iterable[Corrected] = ()) -> str:
    """The report as a file: the result first, then who said what, which prompts were corrected, what it cost."""
    lines = [f"# {report.mission or 'Mission'}", "", report.text.strip(), ""]
    if report.status == "partial":
        lines += ["> Not every agent finished; see below.", ""]
    if report.agents:
        lines += ["---", "", "## Reports", ""]
        for agent in report.agents:
            lines += [f"### {agent.id}", ""]
            if agent.status != "done":
                why = " ".join(agent.error.split())
                lines += [f"*{agent.status}{f': {why}' if why else ''}*", ""]
            if agent.text:
                lines += [agent.text.strip(), ""]
    lines += _corrected(corrections)
    lines += ["## About this result", "", "| agent | turns | spent |", "|---|---|---|"]
    lines += [f"| {agent.id} | {agent.turns} | {agent.spent.in_words()} |" for agent in report.agents]
    whole = "**all**" if report.status == "none" else f"**all** ({report.by} made the result)"
    lines += [f"| {whole} | | {report.spent.in_words()} |", ""]
    about = [f"record `{record_id}`"] if record_id else []
    about += [f"blueprint `{report.blueprint[:12]}`"] if report.blueprint else []
    return "\n".join([*lines, ", ".join(about)]).rstrip() + "\n"


def _corrected(corrections: Iterable[Corrected]) -> list[str]:
    lines: list[str] = []
    for one in corrections:
        # Every line of what was added begins with words of ours, so none ends the block.
        lines += [f"- {one.in_words()}. Below the original prompt, which was kept word for word:", "", "  ```"]
        lines += [*(f"  {line}" for line in one.added.splitlines()), "  ```", ""]
    return ["## Corrected prompts", "", *lines] if lines else []
