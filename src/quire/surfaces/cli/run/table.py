"""``quire table``: a tab that people have, looked at, made a workflow of, and begun."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from quire.client.client import Client
from quire.errors import InputError
from quire.installing import install
from quire.surfaces.cli.command import Exit, Session, verb

if TYPE_CHECKING:
    from quire.surfaces.panel.book import Book
    from quire.surfaces.panel.tables.survey import Survey

_NO_BOOK = 'no sheet is named; give its address, or write panel = "sheets://SPREADSHEET_ID" into quire.toml'

_URL = click.argument("url", default="", metavar="[sheets://ID]")
_TAB = click.option("--tab", default="", metavar="TAB", help="The tab; else the one that looks most like a table.")
_STATUS = click.option(
    "--status", default="", metavar="COLUMN", help="The status column, if it is not found by itself."
)
_HEADER = click.option("--header", type=click.IntRange(min=1), metavar="ROW", help="The row of the header.")
_PANEL = click.option(
    "--panel", "url", default="", metavar="sheets://ID", help="The sheet, instead of the configured one."
)


@click.group("table", context_settings={"help_option_names": ["-h", "--help"]})
def table() -> None:
    """Let the rows of a tab that you have go through a workflow, where they stand."""


def _command(made: click.Command) -> click.Command:
    table.add_command(made)
    return made


@asynccontextmanager
async def _opened(session: Session, url: str) -> AsyncIterator[Book]:
    where = url or session.config.panel
    if not where:
        raise InputError(_NO_BOOK)
    try:
        from quire.surfaces.panel.book import Book
    except ImportError as error:
        raise InputError(f"the panel is not installed here: {error}; {install('google')}") from error
    book = Book(where)
    await book.open()
    try:
        yield book
    finally:
        await book.close()


def _survey(session: Session, url: str, tab: str, status: str, header: int | None) -> Survey:
    async def work() -> Survey:
        async with _opened(session, url) as book:
            from quire.surfaces.panel.tables import survey

            return await survey.read(book, tab, status, header)

    return session.run(work())


@_command
@verb("look", example="quire table look sheets://1AbC… --tab Orders")
@_URL
@_TAB
@_STATUS
@_HEADER
def look(session: Session, url: str, tab: str, status: str, header: int | None) -> int:
    """Say what a tab is taken for and which of its rows would start. Writes nothing."""
    from quire.surfaces.panel.tables import survey

    for line in survey.in_words(_survey(session, url, tab, status, header)):
        click.echo(line)
    click.echo("nothing was written")
    return Exit.OK


@_command
@verb("init", example="quire table init sheets://1AbC… --tab Orders > flows.py")
@_URL
@_TAB
@_STATUS
@_HEADER
@click.option("--states", is_flag=True, help="The words in the column as states, for quire.toml: no Python is needed.")
@click.option(
    "--moves-to", default="", metavar="TAB", help="With --states: write the moves into a new tab, to edit there."
)
def init(session: Session, url: str, tab: str, status: str, header: int | None, states: bool, moves_to: str) -> int:
    """Print a workflow for a tab: a model with the types of its columns, the Table line, and a step to fill in.

    With --states it is no code but a part of quire.toml: quire table init sheets://ID --states >> quire.toml
    """
    from quire.surfaces.panel.tables import survey

    if moves_to and not states:
        raise click.UsageError("--moves-to is for --states")
    found = _survey(session, url, tab, status, header)
    if moves_to:
        session.run(_write_moves(session, url, moves_to, found))
    click.echo(survey.as_states(found, moves_to) if states else survey.as_code(found), nl=False)
    return Exit.OK


async def _write_moves(session: Session, url: str, title: str, found: Survey) -> None:
    from quire.surfaces.panel.tables import moves, survey

    async with _opened(session, url) as book:
        await moves.write(book, title, survey.moves(found))


@_command
@verb("go", example="quire table go --tab Orders")
@_PANEL
@click.option("--tab", default="", metavar="TAB", help="The table; else every table of the sheet.")
def go(session: Session, url: str, tab: str) -> int:
    """Start what the first look at a table found. It asks once if that is more than 25 rows."""

    async def work(client: Client) -> list[str]:
        from quire.surfaces.panel.tables import kept

        async with _opened(session, url) as book:
            return await kept.go(client.ledger, book.spreadsheet_id, tab)

    begun = session.with_client(work)
    said = ", ".join(map(repr, begun))
    click.echo(f"the rows of {said} that are ready start at the next look" if begun else "nothing waits for that")
    return Exit.OK


@_command
@verb("take", example="quire table take 17 --tab Orders")
@click.argument("rows", nargs=-1, required=True, type=click.IntRange(min=1), metavar="ROW...")
@_PANEL
@click.option("--tab", default="", metavar="TAB", help="The table, if the sheet has several.")
def take(session: Session, rows: tuple[int, ...], url: str, tab: str) -> int:
    """Start rows that say that they run, though not by Quire. Their numbers are those that the sheet shows now."""

    async def work(client: Client) -> int:
        from quire.surfaces.panel.tables.taking import take_rows

        async with _opened(session, url) as book:
            return await take_rows(client, book, tab, rows)

    count = session.with_client(work)
    click.echo(f"{count} {'row starts' if count == 1 else 'rows start'} at the next look")
    return Exit.OK


@_command
@verb("again", example="quire table again 17 --tab Orders")
@click.argument("rows", nargs=-1, required=True, type=click.IntRange(min=1), metavar="ROW...")
@_PANEL
@click.option("--tab", default="", metavar="TAB", help="The table, if the sheet has several.")
def again(session: Session, rows: tuple[int, ...], url: str, tab: str) -> int:
    """Run finished rows again, each as a new record. The records of before stay as they are.

    Typing Run again over the status of the row does the same, and so does the menu of the sheet's script.
    """

    async def work(client: Client) -> list[str]:
        from quire.surfaces.panel.tables.taking import run_again

        async with _opened(session, url) as book:
            return await run_again(client, book, tab, rows)

    made = session.with_client(work)
    click.echo(f"{', '.join(made)}: {'starts' if len(made) == 1 else 'start'} at the next look")
    return Exit.OK
