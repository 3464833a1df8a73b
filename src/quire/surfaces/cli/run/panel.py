"""``quire panel``: the sheet in front of the ledger, by itself, and the script that wakes it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import click

from quire.client.client import Client
from quire.errors import InputError
from quire.installing import install
from quire.surfaces.cli.command import Exit, Session, verb

if TYPE_CHECKING:
    from quire.surfaces.panel import Panel
    from quire.worker.worker import Worker

_NO_PANEL = 'no sheet is named; write panel = "sheets://SPREADSHEET_ID" into quire.toml, or give --panel'

#: How long the end of a process waits for a look that is under way.
_LAST_SECONDS = 10.0

_PANEL = click.option(
    "--panel", "url", default="", metavar="sheets://ID", help="The sheet, instead of the configured one."
)


@click.group("panel", context_settings={"help_option_names": ["-h", "--help"]})
def panel() -> None:
    """Keep a sheet in front of the ledger: people see the records in it, and command from it."""


def _command(made: click.Command) -> click.Command:
    panel.add_command(made)
    return made


@asynccontextmanager
async def _opened(session: Session, client: Client, url: str) -> AsyncIterator[Panel]:
    try:
        from quire.surfaces.panel import Panel
    except ImportError as error:
        raise InputError(f"the panel is not installed here: {error}; {install('google')}") from error

    from quire.surfaces.cli.keep.commands import opened_folder

    async with (
        opened_folder(session, client.ledger) as folder,
        Panel(client, url, groups=session.config.groups, folder=folder, columns=session.config.state_table) as opened,
    ):
        yield opened


@asynccontextmanager
async def paneling(session: Session, client: Client, worker: Worker, url: str = "") -> AsyncIterator[str]:
    """While this goes on, the named or the configured sheet is kept up; its address, or nothing if there is none."""
    where = url or session.config.panel
    if not where:
        yield ""
        return
    async with _opened(session, client, where) as opened:
        if opened.hinted:
            worker.watchers.append(lambda _: opened.wake())
        task = asyncio.ensure_future(opened.run())
        try:
            yield where
        finally:
            opened.stop()
            await asyncio.wait({task}, timeout=_LAST_SECONDS)
            task.cancel()  # Google does not answer: what is not written now, the next panel writes
            with suppress(asyncio.CancelledError):
                await task


@_command
@verb("run", example="quire panel run --panel sheets://1AbC…")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@_PANEL
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.option("--at-once", is_flag=True, help="Take new rows of inboxes as they are, without a second look.")
def run(session: Session, files: Sequence[str], url: str, once: bool, at_once: bool) -> int:
    """Keep the sheet up to date and obey what is typed in it, without a worker.

    Several may run: one of them draws, the others wait. quire up --panel does the same beside a worker.
    """
    from quire.surfaces.cli.run.up import flow_files, start_logging, working_client

    where = url or session.config.panel
    if not where:
        raise InputError(_NO_PANEL)
    start_logging(session)

    async def work() -> None:
        found = flow_files(session, files)
        opening = working_client(session, files) if found else session.client(make=True)
        async with opening as client, _opened(session, client, where) as opened:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):
                    loop.add_signal_handler(number, opened.stop)
            session.out.say(f"panel {where}; Ctrl-C ends it")
            if once or at_once:
                await opened.look(at_once=at_once)
                await opened.lease.release()
            else:
                await opened.run()

    session.run(work())
    return Exit.OK


@_command
@verb("script", example="quire panel script --url https://quire.example.org > Code.gs")
@click.option("--url", default="", metavar="URL", help="Where the server is reached from outside; else public_url.")
def script(session: Session, url: str) -> int:
    """Print a script for the sheet (Extensions > Apps Script): a menu, and a call that wakes the panel at once.

    The script holds a secret of this ledger that opens nothing but that call. Without the script everything works, too:
    the panel looks every few seconds.
    """
    where = (url or session.config.public_url).rstrip("/")
    if not where.startswith(("http://", "https://")):
        raise InputError("the script calls Quire from Google: name its address with --url, or public_url in quire.toml")

    async def work(client: Client) -> str:
        from quire.surfaces.panel.columns import arranged
        from quire.surfaces.panel.layout import COMMAND
        from quire.surfaces.panel.script import script_of
        from quire.surfaces.panel.tables.kept import status_headers

        command = arranged(session.config.state_table).titles[COMMAND]
        return script_of(client, f"{where}/wake", await status_headers(client.ledger), command)

    click.echo(session.with_client(work), nl=False)
    return Exit.OK
