"""``quire init``, ``demo``, ``check``, ``config``, ``completion``: where people begin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quire.errors import DefinitionError, InputError, LedgerError, QuireError
from quire.ledger.finding import sqlite_path
from quire.surfaces.cli.command import Exit, Session, verb
from quire.surfaces.cli.missions.models import model_option

if TYPE_CHECKING:
    from quire.workflows.workflow import Workflow

_TOML = """# Paths are relative to this file. A flag wins over QUIRE_LEDGER and the like, and those over this file.
flows = ["flows.py"]
ledger = "{ledger}"
# folder = "Workflows"
# deps = "flows:make_deps"
# public_url = "https://quire.example.org"

[groups]
editors = []
"""

_FLOWS = '''"""A first workflow: greet somebody, once a person agrees."""

import quire
from pydantic import BaseModel
from quire import Act, Run, Workflow, effect


class Greeting(BaseModel):
    name: str
    text: str = ""


@effect
async def send(act: Act, text: str) -> str:
    """Something irreversible: done at most once for each record."""
    print(text)
    return text


greet = Workflow("greet", data=Greeting, result=str)


@greet.step(then="review")
async def draft(run: Run[Greeting]) -> None:
    run.data.text = f"Hello, {run.data.name}!"


@greet.step(then=["deliver", "drop"])
async def review(run: Run[Greeting]) -> str:
    answer = await run.ask("Send this?", show=run.data.text, edit=["text"])
    return "deliver" if answer else "drop"


@greet.step
async def deliver(run: Run[Greeting]) -> str:
    return await run.once(send, run.data.text)


@greet.step
async def drop(run: Run[Greeting]) -> str:
    return ""
'''


@verb(
    "init",
    example="""
    quire init
    quire init shop --ledger postgresql://localhost/shop
    quire init https://docs.google.com/spreadsheets/d/SPREADSHEET_ID/edit
    quire init --emulate sheet-shop
    """,
)
@click.argument("where", default=".", metavar="[DIRECTORY|LEDGER]")
@click.option("--emulate", is_flag=True, help="Use a sheet on this machine: no account, no network.")
def init(session: Session, where: str, emulate: bool) -> int:
    """Write quire.toml and flows.py, and check whether this machine is ready.

    Into DIRECTORY; or here, for the LEDGER at this address: a Google Sheet as the browser shows it, or
    postgresql://…. The ledger is opened before anything is written. A file that is there already is left as it is.

    With --emulate the ledger is a sheet in an emulator of the Google APIs, which is started here and goes on with a
    worker until Ctrl-C; typed again, it goes on where it was.
    """
    if emulate:
        if "://" in where or session.flags.get("ledger"):
            raise click.UsageError("--emulate makes the sheet: leave out the ledger")
        from quire.surfaces.cli.run.emulator import init_emulated

        return init_emulated(session, Path(where))
    directory = "." if "://" in where else where
    folder = Path(directory)
    ledger = _ledger(session.flags.get("ledger"), where)
    _reached(ledger)
    made = write_files(session, folder, ledger)
    if session.json:
        session.out.emit({"made": made})
        return Exit.OK
    from quire.surfaces.cli.begin.doctor import examined

    session.file = str(folder / "quire.toml")
    session.flags.pop("ledger", None)
    code = examined(session, quiet=True)
    cd = "" if directory == "." else f"cd {directory} && "
    session.out.say(f"  next: {cd}quire up          (in another terminal: {cd}quire start greet name=Ann)", bold=True)
    return code


def write_files(session: Session, folder: Path, ledger: str) -> list[str]:
    """Write quire.toml, with this ledger, and flows.py where they are not there yet; return those that were written."""
    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("quire.toml", _TOML.format(ledger=ledger)),
            ("flows.py", _FLOWS.replace("import quire\n", "")),
        ):
            path = folder / name
            if path.exists():
                session.out.say(f"left {path} as it is")
            else:
                path.write_text(text, encoding="utf-8")
                made.append(str(path))
                session.out.say(f"wrote {path}")
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be written: {error}") from error
    return made


def _ledger(flag: str | None, where: str) -> str:
    """Return the address of the ledger: as it was given, or that of a sheet as the browser shows it."""
    given = where if "://" in where else None
    if given is not None and flag is not None:
        raise click.UsageError("the ledger is named twice: leave out one of the two addresses")
    ledger = given or flag or "sqlite:///.quire/ledger.db"
    if ledger.startswith(("http://", "https://")):
        from quire.google.address import sheets_address

        if sheets_address(ledger) == ledger:
            raise InputError(
                f"{ledger!r} is not a Google Sheet; its address begins with https://docs.google.com/spreadsheets/d/"
            )
        ledger = sheets_address(ledger)
    if '"' in ledger or "\\" in ledger or not ledger.isprintable():
        raise InputError(f"{ledger!r} is not an address of a ledger")
    return ledger


def _reached(ledger: str) -> None:
    """Open a ledger that is elsewhere: nothing is written for one that does not answer."""
    import asyncio

    from quire.ledger.finding import concealed, open_ledger, sqlite_path

    if sqlite_path(ledger) is not None:
        return

    async def opened() -> None:
        made = open_ledger(ledger)
        try:
            await made.open()
        finally:
            await made.close()

    try:
        asyncio.run(opened())
    except LedgerError as error:
        raise type(error)(f"{error} (nothing was written for {concealed(ledger)})") from error
    except ImportError as error:
        raise InputError(f"{concealed(ledger)} needs more than is installed: {error}") from error


@verb(
    "demo",
    example="""
    quire demo
    quire demo --dir quire-demo --articles 20
    quire demo mission
    quire demo mission --model local
    quire demo sheet
    quire demo onboarding
    """,
)
@click.argument("what", type=click.Choice(["articles", "mission", "sheet", "onboarding"]), default="articles")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False),
    help="Where to; otherwise ./quire-demo, or a new temporary directory if that exists.",
)
@click.option("--articles", type=click.IntRange(4, 500), default=12, show_default=True, help="How many.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8700, show_default=True, help="The dashboard's, with onboarding."
)
@model_option
def demo(session: Session, what: str, directory: str | None, articles: int, port: int, model: str | None) -> int:
    """Watch a worker be killed half-way and nothing be done twice.

    Articles are drafted, reviewed, posted and archived on a ledger of their own. Half-way the worker is killed with
    kill -9; a new one goes on. At the end the posts are counted. With "mission", a network of agents instead; with
    "sheet", the rows of a team's spreadsheet, in a browser and without an account; with "onboarding", a client who gets
    a folder, a contract, a mail and a date at an emulator of Google: you play the client.
    """
    if what == "mission":
        from quire.surfaces.cli.missions.demo import run_demo as run_mission

        return run_mission(session, directory, model or "scripted")
    if model is not None:
        raise click.UsageError("--model goes with 'quire demo mission'")
    from quire.surfaces.cli.begin.demo import demo_folder, run_demo

    if what == "sheet":
        from quire.surfaces.cli.run.emulator import demo_sheet

        return demo_sheet(session, demo_folder(directory))
    if what == "onboarding":
        from quire.surfaces.cli.run.emulator import demo_onboarding

        return demo_onboarding(session, demo_folder(directory), port)
    return run_demo(session, directory, articles)


@verb("check", example="quire check flows.py")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
def check(session: Session, files: Sequence[str]) -> int:
    """Load the workflows of these files, or of those in quire.toml, and name what is wrong with them.

    For a CI: exit code 0 if all is well, 2 if not. If the ledger is a file that is there, its open records are compared
    with the steps, too.
    """
    from quire.surfaces.cli.flows import deps_factory, load_file, load_flows
    from quire.surfaces.cli.run.up import flow_files
    from quire.worker.mistakes import misuses, unlisted

    wanted = flow_files(session, files)
    if not wanted:
        load_flows(wanted)
    problems = 0
    listed: list[Workflow[Any, Any, Any]] = []
    names: dict[str, tuple[str, object]] = {}
    for file in wanted:
        try:
            found = load_file(file)
        except QuireError as error:
            problems += 1
            _say_problem(session, file, "", str(error))
            continue
        for workflow in found:
            wrong = workflow.problems() or misuses(workflow)
            listed.append(workflow)
            if not session.config.deps and (lacking := workflow.lacks_deps()):
                wrong.append(lacking)
            wrong += workflow.unknown_people(session.config.groups)
            where, known = names.setdefault(workflow.name, (file, workflow))
            if known is not workflow:  # the same one, imported from another file, is no second one
                wrong.append(f"{where!r} has a workflow of the same name; give one another name")
            try:
                if not wrong:
                    workflow.definition()
            except DefinitionError as error:
                wrong.append(str(error))
            problems += len(wrong)
            for problem in wrong:
                _say_problem(session, file, workflow.name, problem)
            if not wrong:
                steps = " → ".join(workflow.steps)
                if session.json:
                    session.out.emit({"file": file, "workflow": workflow.name, "steps": list(workflow.steps)})
                else:
                    session.out.say(f"{file}: {workflow.name} is well: {steps}", colour="green")
    for lost in _lost_steps(session, listed):
        problems += 1
        _say_problem(session, "", "", lost)
    for text in unlisted(listed):
        _say_problem(session, "", "", text, colour="yellow")
    try:
        deps_factory(session.config.deps)
    except QuireError as error:
        problems += 1
        _say_problem(session, "quire.toml", "", str(error))
    return Exit.BAD_INPUT if problems else Exit.OK


def _lost_steps(session: Session, workflows: Sequence[Workflow[Any, Any, Any]]) -> list[str]:
    """Name the steps that are gone though records stand at them, if the ledger is a file that is there."""
    from quire.worker.mistakes import lost_steps

    path = sqlite_path(session.config.ledger)
    if path is None or not Path(path).exists():
        return []

    async def work() -> list[str]:
        async with session.client() as client:
            return lost_steps(await client.counts(), workflows)

    try:
        return session.run(work())
    except QuireError:  # what is wrong with the ledger is the doctor's to say
        return []


def _say_problem(session: Session, file: str, workflow: str, problem: str, colour: str = "red") -> None:
    if session.json:
        session.out.emit({"file": file or None, "workflow": workflow or None, "problem": problem})
    else:
        where = f"{file}: {workflow}: " if workflow else ""
        session.out.say(where + problem, colour=colour)


@verb("config", example="quire config")
def config(session: Session) -> None:
    """Show each setting, its value and where it comes from: flag, environment, file or default."""
    from quire.surfaces.config import shown

    rows = list(shown(session.config))
    if session.json:
        for name, value, source in rows:
            session.out.emit({"key": name, "value": value, "source": source})
        return
    session.out.table(("key", "value", "source"), [(name, _in_words(value), source) for name, value, source in rows])


def _in_words(value: object) -> str:
    match value:
        case dict():
            return "; ".join(f"{name}: {_in_words(inner) or 'none'}" for name, inner in value.items())
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)


@verb("completion", example='eval "$(quire completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(session: Session, shell: str) -> None:
    """Print a script that makes SHELL complete commands, options, and ids, steps and choices from the ledger."""
    from click.shell_completion import get_completion_class

    from quire.surfaces.cli import cli

    found = get_completion_class(shell)
    assert found is not None
    made = found(cli, {}, "quire", "_QUIRE_COMPLETE")
    click.echo(made.source_template % made.source_vars())
