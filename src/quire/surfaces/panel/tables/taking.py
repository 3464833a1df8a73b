"""``quire table take`` and ``again``: rows, by their numbers, that may start although they say another word."""

from __future__ import annotations

from collections.abc import Sequence

from quire.client.client import Client
from quire.errors import InputError
from quire.ledger import engine
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.layout import TABLES_ID
from quire.surfaces.panel.tables import again, kept, lines
from quire.surfaces.panel.tables.declaration import Declared, declared, find_columns
from quire.workflows.words import same


async def take_rows(client: Client, book: Book, tab: str, rows: Sequence[int]) -> int:
    """Note these rows as to be started. Answers how many there are. A row that says another word is refused."""
    table, sheet, _ = await _table(client, book, tab)
    taken = [_taken(table, sheet, number) for number in rows]
    await kept.take(client.ledger, book.spreadsheet_id, table.tab, taken)
    return len(taken)


async def run_again(client: Client, book: Book, tab: str, rows: Sequence[int]) -> list[str]:
    """Note these rows, whose records have ended, as to be run again. Answers the ids of their new records."""
    table, sheet, hidden = await _table(client, book, tab)
    places = {number: _line(table, sheet, number).place for number in rows}
    for number, place in places.items():
        if place is None or hidden[place].mark != lines.STARTED:
            raise InputError(f"row {number} of {table.tab!r} has not run yet: type {table.ready!r} as its status")
    ids = [hidden[place].record_id for place in places.values() if place is not None]
    for record in await client.ledger.load(ids):
        if not record.ended:
            raise InputError(
                f"{record.record_id!r} has not ended, it is {record.status}: only a finished row runs again"
            )
    runs = {first: run for each in ids for first, run in again.next_run(each).items()}
    await kept.again(client.ledger, book.spreadsheet_id, table.tab, runs)
    return [again.id_of(first, run) for first, run in runs.items()]


async def _table(client: Client, book: Book, tab: str) -> tuple[Declared, lines.Sheet, dict[int, lines.TableRow]]:
    """The one table that is meant, and its rows as they are now."""
    tables = [each for known in await engine.definitions(client.ledger) for each in declared(known)]
    wanted = [each for each in tables if not tab or each.tab.casefold() == tab.casefold()]
    if len(wanted) != 1:
        known = ", ".join(repr(each.tab) for each in tables) or "none"
        raise InputError(f"name one table with --tab; known here: {known}")
    [table] = wanted
    sheet, hidden = await _read(client, book, table)
    return table, sheet, hidden


async def _read(client: Client, book: Book, table: Declared) -> tuple[lines.Sheet, dict[int, lines.TableRow]]:
    """The tab as it is now."""
    found = await book.tabs()
    sheet_id = next((each.sheet_id for each in found.values() if each.title.casefold() == table.tab.casefold()), None)
    if sheet_id is None:
        raise InputError(f"there is no tab {table.tab!r} in this book")
    grids = await book.read([sheet_id, *([TABLES_ID] if TABLES_ID in found else [])])
    known_as, _ = await kept.load(client.ledger, book.spreadsheet_id, sheet_id)
    columns = find_columns(table, grids[sheet_id], book.ranges.get(sheet_id, {}), known_as.called)
    if columns.problem:
        raise InputError(columns.problem)
    hidden = lines.hidden_rows(grids.get(TABLES_ID, ()))
    title = found[TABLES_ID].title if TABLES_ID in found else ""
    return lines.read(table, columns, sheet_id, grids[sheet_id], hidden, title), hidden


def _taken(table: Declared, sheet: lines.Sheet, number: int) -> str:
    """How the row of this number is known to the next look."""
    line, what = _line(table, sheet, number), f"row {number} of {table.tab!r}"
    if line.place is not None:
        raise InputError(f"{what} is Quire's already")
    runs = {same(table.words[name]) for name in ("runs", "yielded", "asks", "waits")} | {same(table.begun_word)}
    if line.formula or same(line.typed or "") not in runs:
        raise InputError(f"{what} says {str(line.typed or '')!r}: it does not say that it runs")
    return line.key or line.fingerprint


def _line(table: Declared, sheet: lines.Sheet, number: int) -> lines.Line:
    line = next((line for line in sheet.lines if line.row + 1 == number), None)
    if line is None:
        raise InputError(f"row {number} of {table.tab!r} is blank, or shares its id with another row")
    return line
