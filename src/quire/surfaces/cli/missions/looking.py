"""``quire mission show``, ``report`` and ``spend``: looking at missions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quire.client.client import Client
from quire.clock import iso
from quire.errors import NotFound
from quire.surfaces.cli.command import Session, record_argument, verb
from quire.surfaces.cli.keep.writing import check_target, write
from quire.surfaces.cli.missions.picture import last_of, pace_of, show_corrections, shown, why_of
from quire.surfaces.cli.output import on_one_line

if TYPE_CHECKING:
    from quire.agents.missions.story import Call, Story


async def written(session: Session, client: Client, record_id: str, path: str) -> None:
    """Write the result of a mission there, and say so."""
    from quire.agents.missions import story as stories
    from quire.agents.missions.report import markdown

    story = await stories.read(client.ledger, record_id)
    assert story.report is not None
    write(path, markdown(story.report, record_id, story.corrections))
    session.out.say(f"{record_id}: {story.report.status}; {story.spent.in_words()}; {pace_of(story)}")
    session.out.say(f"The result: {path}", bold=True, colour="green")


@verb("show", example="quire mission show startup-roadmap_4kd0")
@record_argument
def show(session: Session, record_id: str) -> None:
    """Show a mission: its agents and turns, what it asks, what it spent."""

    async def work(client: Client) -> None:
        from quire.agents.missions import story as stories
        from quire.agents.missions.tried import tried

        story = await stories.read(client.ledger, record_id)
        what_ifs = await tried(client.ledger, story.record.record_id)
        if session.json:
            session.out.emit({**_as_json(story), "what_ifs": [one.as_json() for one in what_ifs]})
            return
        out, record = session.out, story.record
        out.say(f"{record.record_id}: {story.status}{f' at {record.step}' if record.step else ''}", bold=True)
        out.say(f"blueprint {story.hash[:12]}, {story.spent.in_words()}; {pace_of(story)}")
        rows = []
        for name in [*(agent.id for agent in story.blueprint.agents), story.blueprint.reducer.id]:
            said = story.said.get(name, {})
            calls = [call for call in story.calls if call.agent == name]
            failed = [call.error for call in calls if call.error]
            last = on_one_line(last_of(story, name), 60)
            turns = f"{len(said)}/{story.blueprint.last_turn}" if name != story.blueprint.reducer.id else "result"
            tries = f" ({len(failed)} failed)" if failed else ""
            rows.append((name, turns, story.spent_by(name).in_words() + tries, last))
        out.table(["agent", "turns", "spent", "last"], rows)
        show_corrections(out, story)
        for one in what_ifs:
            out.say(one.in_words())
            out.say(f"  quire mission report {record.record_id} --what-if {one.number}", dim=True)
        for asker, question in story.questions():
            out.say(f"{asker} asks: {question}", colour="yellow")
            out.say(f"  quire answer {asker} CHOICE")
        if record.last_error:
            out.say(why_of(record), colour="red")

    session.with_client(work)


def _as_json(story: Story) -> dict[str, Any]:
    from quire.agents.missions.story import pace

    found = pace(story.calls)
    return {
        "record_id": story.record.record_id,
        "status": story.status,
        "step": story.record.step,
        "blueprint": story.hash,
        "spent": story.spent.model_dump(),
        "agents": {
            agent.id: {"turns": len(story.said.get(agent.id, {})), "spent": story.spent_by(agent.id).model_dump()}
            for agent in (*story.blueprint.agents, story.blueprint.reducer)
        },
        "calls": [
            {"agent": call.agent, "turn": call.turn, "name": call.name, "began": iso(call.began)}
            | {"ended": iso(call.ended), "error": call.error or None, "spent": call.spent.model_dump()}
            for call in story.calls
        ],
        "corrections": [one._asdict() for one in story.corrections],
        "asks": [{"record_id": asker, "question": question} for asker, question in story.questions()],
        "pace": {**found._asdict(), "speed_up": found.speed_up},
        "error": story.record.last_error,
    }


@verb("report", example="quire mission report startup-roadmap_4kd0 --out roadmap.md")
@record_argument
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write it there instead of showing it.")
@click.option("--calls", is_flag=True, help="Every call of a model with its times, instead of the result.")
@click.option("--what-if", "number", type=click.IntRange(min=1), metavar="N", help="The result of this what-if.")
def report(session: Session, record_id: str, out: str | None, calls: bool, number: int | None) -> None:
    """Show the result of a mission as Markdown; with --calls, when each call began and ended."""
    if number is not None and calls:
        raise click.UsageError("--calls and --what-if do not go together")
    if out is not None:
        check_target(session, out)

    async def work(client: Client) -> None:
        from quire.agents.missions import story as stories
        from quire.agents.missions.report import markdown

        story = await stories.read(client.ledger, record_id)
        if number is not None:
            await _what_if(session, client, story, number, out)
            return
        if calls:
            rows = [
                (
                    *(call.agent, call.turn or "", iso(call.began), iso(call.ended)),
                    *(f"{call.ended - call.began:.3f}", call.spent.tokens, _fault(call)),
                )
                for call in story.calls
            ]
            if session.json:
                session.out.emit(_as_json(story))
                return
            session.out.table(["agent", "turn", "began", "ended", "seconds", "tokens", "error"], rows)
            found = stories.pace(story.calls)
            faster = f"{found.speed_up:.2f} times as fast as one after the other"
            session.out.say(f"{pace_of(story)}{f': {faster}' if found.speed_up >= 1 else ''}")
            session.out.say(f"{found.hop:.3f} s on average from an agent's turn to its next")
            return
        if story.report is None:
            raise NotFound(f"{record_id!r} has no result: it is {story.record.status}; see quire mission show")
        if out is not None:
            await written(session, client, record_id, out)
        elif session.json:
            session.out.emit(story.report.model_dump(mode="json"))
        else:
            shown(session.out, markdown(story.report, record_id, story.corrections))

    session.with_client(work)


async def _what_if(session: Session, client: Client, story: Story, number: int, path: str | None) -> None:
    from quire.agents.missions.report import markdown
    from quire.agents.missions.tried import one_of

    one = await one_of(client.ledger, story.record.record_id, number)
    if session.json and path is None:
        session.out.emit(one.as_json())
    elif one.report is None:
        raise NotFound(f"{one.in_words()}; it has no result{f': {one.error}' if one.error else ''}")
    elif path is not None:
        write(path, markdown(one.report, story.record.record_id))
        session.out.say(one.in_words())
        session.out.say(f"The result: {path}", bold=True, colour="green")
    else:
        shown(session.out, markdown(one.report, story.record.record_id))


def _fault(call: Call) -> str:
    """Say what went wrong with a call, and how often it was begun before without an answer."""
    from quire.agents.missions.story import LOST_WORDS

    before = f"begun {call.spent.calls} times: {LOST_WORDS}" if call.spent.lost and call.spent.calls > 1 else ""
    return "; ".join(filter(None, (before, call.error)))


@verb("spend", example="quire mission spend")
def spend(session: Session) -> None:
    """What missions spent, by day."""

    async def work(client: Client) -> None:
        from quire.agents.missions.daily import spent_by_day
        from quire.agents.missions.story import total

        found = await spent_by_day(client.ledger)
        if session.json:
            for day, missions in found.items():
                spending = {name: spent.model_dump() for name, spent in missions.items()}
                session.out.emit({"day": day, "missions": spending, "all": total(missions.values()).model_dump()})
            return
        rows: list[tuple[str, str, str]] = []
        for day, missions in found.items():
            rows.append((day, "all", total(missions.values()).in_words()))
            rows += [("", name, spent.in_words()) for name, spent in sorted(missions.items())]
        session.out.table(["day", "mission", "spent"], rows)

    session.with_client(work)
