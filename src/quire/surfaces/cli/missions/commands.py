"""``quire mission``: networks of agents from a blueprint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.client.client import Client
from quire.clock import SYSTEM, new_id
from quire.errors import InputError, QuireError
from quire.explain import words
from quire.model.codec import parse
from quire.model.record import Record, Status
from quire.surfaces.cli import values
from quire.surfaces.cli.command import Exit, Session, record_argument, verb
from quire.surfaces.cli.flows import made_deps
from quire.surfaces.cli.keep.writing import check_target
from quire.surfaces.cli.missions.looking import report, show, spend, written
from quire.surfaces.cli.missions.models import model_option
from quire.surfaces.cli.missions.picture import Picture, side_by_side, why_of
from quire.surfaces.cli.work.following import ending

if TYPE_CHECKING:
    from quire.agents.blueprint.blueprint import Blueprint
    from quire.agents.missions.replay import Replayed
    from quire.agents.missions.report import Report

#: How often the ledger is asked for news.
GLANCE_SECONDS = 0.1


@click.group("mission", context_settings={"help_option_names": ["-h", "--help"]})
def mission() -> None:
    """Run networks of agents from a blueprint."""


def _command(made: click.Command) -> click.Command:
    mission.add_command(made)
    return made


for looks in (show, report, spend):
    _command(looks)


def _blueprint(path: str, model: str | None, base_url: str | None) -> Blueprint:
    """Return the blueprint in this file, with another model for all its agents if one is named."""
    from quire.agents.blueprint.reading import checked, load

    made = load(Path(path))
    if model is None and base_url is None:
        return made
    whole = made.as_json()
    changed = {**whole["model"], **({"model": model} if model else {}), **({"base_url": base_url} if base_url else {})}
    for part in [*whole["agents"], whole["reducer"], whole["corrector"], whole["judge"] or {}]:
        part.pop("model", None)
    return checked({**whole, "model": changed}, Path(path).name, None)


def _check_keys(blueprint: Blueprint) -> None:
    """Refuse before anything starts: whoever works here needs the keys of all models, and the files of local ones."""
    from quire.agents import local
    from quire.agents.models import without_key
    from quire.agents.provider import LOCAL, split

    for agent in (*blueprint.agents, blueprint.reducer):
        spec = blueprint.model_of(agent)
        if problem := without_key(spec):
            raise InputError(problem)
        provider, name = split(spec.model)
        if provider == LOCAL:
            local.check(name)


@_command
@verb("check", example="quire mission check startup-roadmap.yaml")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
def check(session: Session, files: Sequence[str]) -> int:
    """Check blueprints without starting anything: every problem, with its line."""
    from quire.agents.blueprint.reading import load

    code = Exit.OK
    for file in files:
        try:
            made = load(Path(file))
        except QuireError as error:
            if len(files) == 1:
                raise
            code = Exit.BAD_INPUT
            _tell_wrong(session, file, str(error))
            continue
        shown = {
            "file": file,
            "mission": made.mission,
            "agents": [agent.id for agent in made.agents],
            "turns": made.last_turn,
            "reducer": made.reducer.id,
            "model": made.model.model,
            "hash": made.hash,
        }
        if session.json:
            session.out.emit(shown)
        else:
            names = ", ".join(agent.id for agent in made.agents)
            session.out.say(
                f"{file}: {made.mission}, {words.counted(made.last_turn, 'turn')} of {names}; then {made.reducer.id}"
            )
            session.out.say(f"  model {made.model.model}, blueprint {made.hash[:12]}", dim=True)
    return code


def _tell_wrong(session: Session, file: str, problem: str) -> None:
    if session.json:
        session.out.emit({"file": file, "problem": problem})
    else:
        session.out.say(problem, colour="red")


@_command
@verb("schema", example="quire mission schema > blueprint.schema.json")
def schema(session: Session) -> None:
    """Print the JSON Schema of blueprints."""
    from quire.agents.blueprint import blueprint

    click.echo(json.dumps(blueprint.schema(), indent=None if session.json else 2))


@_command
@verb(
    "run",
    example="""
    quire mission run startup-roadmap.yaml topic="triage of x-rays"
    quire mission run mars-colony.yaml --model scripted
    quire mission run mars-colony.yaml --model openai:llama3.2 --base-url http://localhost:11434/v1
    """,
)
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
@click.argument("fields", nargs=-1, metavar="[K=V]...")
@click.option("--data", metavar="JSON|@FILE|-", help="Inputs as JSON; fields come on top.")
@click.option("--id", "record_id", metavar="ID", help="The mission's id; the same one again goes on with it.")
@click.option("--model", metavar="PROVIDER:NAME", help="Another model for all agents; 'scripted' needs no key.")
@click.option("--base-url", metavar="URL", help="Another address of the provider.")
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Where the result goes, as Markdown.")
@click.option("--detach", is_flag=True, help="Only start it: a worker that has this blueprint runs it.")
def run(
    session: Session,
    path: str,
    fields: Sequence[str],
    data: str | None,
    record_id: str | None,
    model: str | None,
    base_url: str | None,
    out: str | None,
    detach: bool,
) -> int:
    """Start the mission in FILE, work on it here, and write its result as Markdown.

    It may be stopped at any time: the same command with the same --id goes on where it was, and asks no model again for
    what was answered. Exit codes as those of 'quire start --follow'.
    """
    from quire.agents.missions.flow import compiled
    from quire.surfaces.cli.run.up import projecting

    if out is not None:
        check_target(session, out, [path])
    blueprint = _blueprint(path, model, base_url)
    inputs = values.given(data, fields)
    blueprint.check_inputs(inputs)
    if not detach:
        _check_keys(blueprint)
    flow = compiled(blueprint)
    name = record_id or new_id(f"{blueprint.mission}_", length=8)

    async def work() -> int:
        async with (
            made_deps(session.config.deps) as deps,
            session.client(make=True, workflows=[flow], deps=deps) as client,
        ):
            await client.start(flow, inputs, id=name)
            await _say_if_other(session, client, name, blueprint)
            if detach:
                session.out.acted(f"started {name}", f"quire cancel {name}", record_id=name)
                return Exit.OK
            async with projecting(session, client):
                record = await _worked(session, client, name)
            return await _ended(session, client, record, out)

    return session.run(work())


async def _say_if_other(session: Session, client: Client, record_id: str, blueprint: Blueprint) -> None:
    """A mission keeps the blueprint that it started with; whoever changed the file meanwhile should know."""
    data = parse((await client.get(record_id)).data)
    if (kept := data.get("hash", blueprint.hash)) != blueprint.hash:
        note = f"{record_id} goes on with the blueprint it started with, {kept[:12]}; this one is {blueprint.hash[:12]}"
        session.out.note(note)


async def _worked(session: Session, client: Client, record_id: str) -> Record:
    """Work here until the mission ends or waits for a person, and show it meanwhile."""
    picture = Picture(session.out)
    looking = asyncio.ensure_future(_looked(client, record_id, picture))
    try:
        while True:
            await client.work()
            record = await client.get(record_id)
            asking = await client.find(parent_id=record_id, status=Status.NEEDS_APPROVAL, limit=1)
            if ending(record) is not None or asking:
                await picture.look(client, record_id)
                return asking[0] if asking and not record.ended else record
            await SYSTEM.sleep(GLANCE_SECONDS)
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        picture.end()


async def _looked(client: Client, record_id: str, picture: Picture) -> None:
    while True:
        began = SYSTEM.boottime()
        await picture.look(client, record_id)
        # A long mission takes longer to read: looking at it leaves the worker most of the time.
        await SYSTEM.sleep(max(GLANCE_SECONDS, 5 * (SYSTEM.boottime() - began)))


async def _ended(session: Session, client: Client, record: Record, out: str | None) -> int:
    code = ending(record) or Exit.OK
    if record.status is Status.DONE:
        await written(session, client, record.record_id, out or f"{_file_name(record.record_id)}.md")
    elif record.status is Status.NEEDS_APPROVAL:
        session.out.say(f"{record.record_id} asks: {record.question}", colour="yellow")
        session.out.say(f"  answer: quire answer {record.record_id} CHOICE; then the same command again")
    else:
        session.out.say(f"{record.status}: {why_of(record)}", colour="red")
    if session.json:
        session.out.emit({"record_id": record.record_id, "status": record.status, "error": record.last_error})
    return code


def _file_name(record_id: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in record_id)


@_command
@verb(
    "replay",
    example="""
    quire mission replay mars_4kd0
    quire mission replay mars_4kd0 --what-if --turn 2 --prompt "The storm lasts two years."
    quire mission replay mars_4kd0 --what-if --turn 3 --agent CHAIN-MARS-GOVERNOR --model anthropic:claude-sonnet-5
    """,
)
@record_argument
@click.option("--what-if", "what_if", is_flag=True, help="Change something from a turn on, on a copy.")
@click.option("--turn", type=click.IntRange(min=1), default=1, show_default=True, help="From this turn on.")
@click.option("--agent", default="", metavar="ID", help="For this agent only (or the reducer); otherwise for all.")
@click.option("--prompt", metavar="TEXT|@FILE", help="Another prompt in that turn.")
@click.option("--model", metavar="PROVIDER:NAME", help="Another model from that turn on.")
def replay(
    session: Session,
    record_id: str,
    what_if: bool,
    turn: int,
    agent: str,
    prompt: str | None,
    model: str | None,
) -> int:
    """Run a mission again from its receipts: no model is asked, and the result must be the same.

    With --what-if a copy is run with another prompt or model from a turn on; only what this touches is asked anew, and
    both results are shown side by side. The mission itself stays as it is.
    """
    if not what_if and (prompt is not None or model is not None or agent):
        raise click.UsageError("another prompt or model goes with --what-if")

    async def work(client: Client) -> int:
        from quire.agents.missions import replay as replays

        async with made_deps(session.config.deps) as deps:
            if what_if:
                said = values.text_of(prompt) if prompt is not None else None
                done = await replays.what_if(
                    client.ledger, record_id, turn=turn, agent=agent, prompt=said, model=model, deps=deps
                )
                return _compared(session, record_id, done)
            done = await replays.replay(client.ledger, record_id, deps=deps)
        if session.json:
            session.out.emit(
                {"record_id": record_id, "same": done.same, "recorded": done.recorded, "error": done.error}
            )
        elif done.same:
            session.out.say(f"The same result from {done.recorded} receipts; no model was asked.", colour="green")
        else:
            why = done.error or ", ".join(f"{name} is asked something else" for name in done.differing)
            session.out.say(f"Not the same: {why or 'the texts differ'}", colour="red")
        return Exit.OK if done.same else Exit.REFUSED

    return session.with_client(work)


def _compared(session: Session, record_id: str, done: Replayed) -> int:
    if session.json:
        after = done.after.model_dump(mode="json") if done.after is not None else None
        before = done.before.model_dump(mode="json") if done.before is not None else None
        session.out.emit(
            {"before": before, "after": after, "asked": done.asked, "error": done.error or None, "number": done.number}
        )
    else:
        asked = f"{done.recorded} answers from receipts, {len(done.asked)} asked anew"
        session.out.say(f"{asked}: {', '.join(done.asked)}", dim=True)
        side_by_side(session.out, _text(done.before), _text(done.after, done.error))
        session.out.note(f"kept: quire mission report {record_id} --what-if {done.number}")
    return Exit.OK if done.after is not None else Exit.ERROR


def _text(report: Report | None, error: str = "") -> str:
    return report.text if report is not None else f"(no result{f': {error}' if error else ''})"


@_command
@verb(
    "demo",
    example="""
    quire mission demo
    quire mission demo --model local
    """,
)
@click.option("--dir", "directory", type=click.Path(file_okay=False), help="Where to; it must be empty or new.")
@model_option
def demo(session: Session, directory: str | None, model: str | None) -> int:
    """Three agents plan a colony on Mars; their worker is killed half-way, and no word is lost. Needs no key."""
    from quire.surfaces.cli.missions.demo import run_demo

    return run_demo(session, directory, model or "scripted")
