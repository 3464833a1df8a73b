"""``quire table take``: rows that say that they run, by their numbers, become rows that may start."""

from __future__ import annotations

from collections.abc import Sequence

from quire.client.client import Client
from quire.errors import InputError
from quire.ledger import engine
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.layout import TABLES_ID
from quire.surfaces.panel.tables import kept, lines
from quire.surfaces.panel.tables.declaration import Declared, declared, find_columns
from quire.workflows.words import same


async def take_rows(client: Client, book: Book, tab: str, rows: Sequence[int]) -> int:
    """Note these rows as to be started. Answers how many there are. A row that says another word is refused."""
    tables = [each for known in await engine.definitions(client.ledger) for each in declared(known)]
    wanted = [each for each in tables if not tab or each.tab.casefold() == tab.casefold()]
    if len(wanted) != 1:
        known = ", ".join(repr(each.tab) for each in tables) or "none"
        raise InputError(f"name one table with --tab; known here: {known}")
    [table] = wanted
    sheet = await _read(client, book, table)
    taken = [_taken(table, sheet, number) for number in rows]
    await kept.take(client.ledger, book.spreadsheet_id, table.tab, taken)
    return len(taken)


async def _read(client: Client, book: Book, table: Declared) -> lines.Sheet:
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
    return lines.read(table, columns, sheet_id, grids[sheet_id], hidden, title)


def _taken(table: Declared, sheet: lines.Sheet, number: int) -> str:
    """How the row of this number is known to the next look."""
    line = next((line for line in sheet.lines if line.row + 1 == number), None)
    what = f"row {number} of {table.tab!r}"
    if line is None:
        raise InputError(f"{what} is blank, or shares its id with another row")
    if line.place is not None:
        raise InputError(f"{what} is Quire's already")
    runs = {same(table.words[name]) for name in ("runs", "yielded", "asks", "waits")} | {same(table.begun_word)}
    if line.formula or same(line.typed or "") not in runs:
        raise InputError(f"{what} says {str(line.typed or '')!r}: it does not say that it runs")
    return line.key or line.fingerprint
