"""How missions look on a terminal: agents side by side while they go, results, two results beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quire.client.client import Client
from quire.errors import InputError, NotFound
from quire.model.record import Record
from quire.surfaces.cli.output import Output, harmless, on_one_line

if TYPE_CHECKING:
    from quire.agents.missions.story import Story


def pace_of(story: Story) -> str:
    from quire.agents.missions.story import pace

    found = pace(story.calls)
    return f"{found.wall:.1f} s for {found.work:.1f} s of model calls, {found.most} at the same time"


def why_of(record: Record) -> str:
    """What went wrong; that it was raised as a ``Fail`` tells nobody anything."""
    return (record.last_error or "").removeprefix("Fail: ")


def last_of(story: Story, agent_id: str) -> str:
    """What an agent said last; if it said nothing, what went wrong."""
    from quire.agents.view import story_json

    if story.report is not None and agent_id == story.blueprint.reducer.id:
        return without_mark(story.report.text)
    if said := story.said.get(agent_id):
        return without_mark(said[max(said)])
    failed = [call.error for call in story.calls if call.agent == agent_id and call.error]
    errors = [agent["error"] for agent in story_json(story)["agents"] if agent["id"] == agent_id]
    return next((error for error in (*failed[-1:], *errors) if error), "").removeprefix("Fail: ")


def show_corrections(out: Output, story: Story) -> None:
    """Which prompts were corrected, why, and what was put below each."""
    from quire.agents.corrected import difference

    for one in story.corrections:
        out.say(f"corrected: {one.in_words()}", colour="yellow")
        for line in difference(one.original, f"{one.original}\n\n{one.added}").splitlines()[3:]:
            out.say(f"  {line}", dim=True)


def shown(out: Output, text: str) -> None:
    if out.terminal:
        from rich.markdown import Markdown

        out.console.print(Markdown(harmless(text)))
    else:
        out.say(text)


def side_by_side(out: Output, before: str, after: str) -> None:
    if not out.terminal:
        out.say(f"--- as it was\n{before}\n\n--- what if\n{after}")
        return
    from rich.markdown import Markdown
    from rich.panel import Panel
    from rich.table import Table

    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    panels = [
        Panel(Markdown(harmless(text)), title=title) for title, text in (("as it was", before), ("what if", after))
    ]
    table.add_row(*panels)
    out.console.print(table)


class Picture:
    """A mission as it goes: agents side by side on a terminal, a line for each turn elsewhere."""

    def __init__(self, out: Output) -> None:
        self.out = out
        self.seen: set[tuple[str, int]] = set()
        self._live: Any = None
        if out.terminal:
            from rich.live import Live

            self._live = Live(console=out.console, auto_refresh=False, vertical_overflow="crop")
            self._live.__enter__()

    async def look(self, client: Client, record_id: str) -> Story | None:
        """Read the ledger and show what it says."""
        from quire.agents.missions import story as stories

        try:
            story = await stories.read(client.ledger, record_id)
        except (InputError, NotFound):
            return None
        for agent, turns in sorted(story.said.items()):
            for turn in sorted(turns):
                if (agent, turn) not in self.seen:
                    self.seen.add((agent, turn))
                    if self._live is None:
                        words = on_one_line(without_mark(turns[turn]), 90)
                        self.out.say(f"  {agent}, turn {turn}/{story.blueprint.last_turn}: {words}")
        if self._live is not None:
            self._live.update(self._columns(story), refresh=True)
        return story

    def tell(self, text: str, colour: str = "") -> None:
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text(f"• {text}", style=f"bold {colour}" if colour else ""))
        else:
            self.out.say(f"• {text}", colour=colour or None)

    def _columns(self, story: Story) -> Any:
        from rich.panel import Panel
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(expand=True, padding=(0, 1))
        panels = []
        for agent in story.blueprint.agents:
            table.add_column(ratio=1)
            said = story.said.get(agent.id, {})
            text = Text()
            for turn in range(1, story.blueprint.last_turn + 1):
                if turn in said:
                    text.append(f"{turn} ", style="bold green")
                    text.append(on_one_line(without_mark(said[turn]), 220) + "\n")
                elif turn == len(said) + 1 and not story.record.ended:
                    text.append(f"{turn} …\n", style="dim")
            panels.append(Panel(text, title=agent.id, subtitle=story.spent_by(agent.id).in_words(), title_align="left"))
        table.add_row(*panels)
        return table

    def end(self) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)
            self._live = None


def without_mark(text: str) -> str:
    from quire.agents.scripted import MARK

    return text.removeprefix(MARK).strip()
