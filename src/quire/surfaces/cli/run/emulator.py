"""``quire emulate`` and ``quire init --emulate``: Google Workspace on this machine.

The emulator is a distribution of its own, named hectograph. It runs in this process, so that a signal ends both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import click

from quire.errors import InputError
from quire.surfaces.cli.command import Exit, Session

if TYPE_CHECKING:
    from hectograph import Emulator

#: The port of `quire emulate`, and of the first `quire init --emulate` on a machine.
_PORT = 8089
_TITLE = "Quire"
_SHEET = "application/vnd.google-apps.spreadsheet"


def _check_installed() -> None:
    if find_spec("hectograph") is None:
        raise InputError(
            "the emulator, hectograph, is not installed here; in a clone of Quire: pip install -e packages/hectograph"
        )


@click.command("emulate", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def emulate(words: Sequence[str]) -> int:
    """Run an emulator of the Google APIs, with a book that can be a ledger. Its own help: quire emulate --help."""
    _check_installed()
    from hectograph.__main__ import main

    def listening(emulator: Emulator) -> None:
        click.echo(f"a book for a ledger: {book(emulator)}")

    return main(list(words), listening)


def book(emulator: Emulator) -> str:
    """Return the address of the emulator's book for a ledger, which is made if it is not there."""
    found = emulator.call("GET", f"/drive/v3/files?q=name%3D'{_TITLE}'+and+mimeType%3D'{_SHEET}'+and+trashed%3Dfalse")
    files = json.loads(found.body)["files"]
    if not files:
        made = emulator.call("POST", "/drive/v3/files", {"name": _TITLE, "mimeType": _SHEET})
        files = [json.loads(made.body)]
    return f"sheets://{files[0]['id']}?endpoint={emulator.url.rstrip('/')}"


def init_emulated(session: Session, folder: Path) -> int:
    """Make a project whose ledger is a sheet of an emulator, and run the emulator and a worker until Ctrl-C."""
    _check_installed()
    from quire.ledger import process
    from quire.surfaces.cli.begin.project import write_files
    from quire.surfaces.cli.run.up import run_worker, start_logging, working_client

    known = _known_port(session, folder)
    emulator = _started(folder / ".quire" / "emulator.json", known)
    try:
        write_files(session, folder, book(emulator))
        session.file = str(folder / "quire.toml")
        session.forget_config()
        start_logging(session)
        cd = "" if folder == Path() else f"cd {folder} && "

        async def work() -> None:
            async with working_client(session, ()) as client:
                hello = [
                    f"the sheet: {emulator.url}, a page of the emulator; a worker runs on it; Ctrl-C ends both",
                    f"  next, in another terminal: {cd}quire start greet name=Ann --follow",
                ]
                await run_worker(session, client.worker(label="init"), None, idle=False, hello=hello)

        process.run(work())
    finally:
        emulator.stop()
    return Exit.OK


def demo_sheet(session: Session, folder: Path) -> int:
    """Let the rows of a team's book go through a workflow: the book, a worker and the panel, until Ctrl-C."""
    _check_installed()
    from hectograph import Emulator
    from quire.ledger import process
    from quire.surfaces.cli.run.panel import paneling
    from quire.surfaces.cli.run.up import run_worker, start_logging, working_client
    from quire.surfaces.panel import demo

    with Emulator() as emulator:

        def call(method: str, path: str, body: object) -> Any:
            return json.loads(emulator.call(method, path, body).body)

        book = demo.orders_book(call)
        panel = f"sheets://{book}?endpoint={emulator.url.rstrip('/')}"
        toml = f'flows = ["flows.py"]\nledger = "sqlite:///ledger.db"\npanel = "{panel}"\n'
        for name, text in {**demo.files(), "quire.toml": toml}.items():
            (folder / name).write_text(text, encoding="utf-8")
        session.file = str(folder / "quire.toml")
        session.forget_config()
        start_logging(session)

        async def work() -> None:
            async with working_client(session, ()) as client:
                worker = client.worker(label="demo")
                async with paneling(session, client, worker):
                    hello = [
                        f"the sheet: {emulator.url}book/{book}, a page of the emulator; Ctrl-C ends it",
                        "  rows that say Ready are confirmed; A-1043 asks first: type Approved into its Task_Status",
                        f"  the workflow is {folder / 'flows.py'}",
                    ]
                    await run_worker(session, worker, None, idle=False, hello=hello)

        process.run(work())
    return Exit.OK


@contextmanager
def emulated(session: Session) -> Iterator[list[str]]:
    """Run an emulator to which the acts of this process go, and yield what people need to know of it."""
    _check_installed()
    from quire.workspace.connection import VARIABLE

    user = session.config.google.get("account") or "ann@example.org"
    before = os.environ.get(VARIABLE)
    emulator = _started(session.config.base / ".quire" / "emulator.json", None)
    os.environ[VARIABLE] = f"{emulator.url.rstrip('/')}?user={user}"
    url = emulator.url
    try:
        yield [
            f"Google is played by an emulator; acts are {user}'s, and nothing leaves this machine",
            f"what left the house: {url}outbox   mailboxes: {url}mail   calendar: {url}calendar   files: {url}drive",
        ]
    finally:
        os.environ.pop(VARIABLE)
        os.environ.update({VARIABLE: before} if before is not None else {})
        emulator.stop()


def demo_onboarding(session: Session, folder: Path, port: int) -> int:
    """Let a client be onboarded: the book, the worker, the dashboard and the client's pages, until Ctrl-C."""
    _check_installed()
    from hectograph import Emulator
    from quire.surfaces.cli.run.up import Up, run_up
    from quire.surfaces.google import demo

    with Emulator(account=demo.ME) as emulator:

        def call(method: str, path: str, body: object) -> Any:
            return json.loads(emulator.call(method, path, body).body)

        world = demo.make(call)
        for name, text in demo.files(world, emulator.url).items():
            (folder / name).write_text(text, encoding="utf-8")
        session.file = str(folder / "quire.toml")
        session.forget_config()
        hello = [*demo.hello(world, emulator.url), f"   the workflow: {folder / 'flows.py'}"]
        return run_up(session, Up(port=port, hello=hello))


def _known_port(session: Session, folder: Path) -> int | None:
    """Return the port at which an earlier ``quire init --emulate`` left the sheet; None if there was none."""
    if not (folder / "quire.toml").exists():
        return None
    session.file = str(folder / "quire.toml")
    ledger = session.config.ledger
    session.forget_config()
    [endpoint] = parse_qs(urlsplit(ledger).query).get("endpoint", [""])
    if not ledger.startswith("sheets://") or urlsplit(endpoint).hostname != "127.0.0.1":
        raise InputError(f"{folder / 'quire.toml'} names another ledger, {ledger!r}; name an empty directory")
    return urlsplit(endpoint).port


def _started(file: Path, known: int | None) -> Emulator:
    from hectograph import Emulator

    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return Emulator(port=known or _PORT, path=file).start()
    except OSError as error:
        if known is not None:
            raise InputError(f"the emulator cannot listen on port {known}, where the ledger is: {error}") from error
    return Emulator(path=file).start()  # somebody else has that port: any free one will do, and quire.toml names it
