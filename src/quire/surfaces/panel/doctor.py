"""What ``quire doctor`` says of a panel: whether its sheet is there and whole, who keeps it up, and what wakes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from quire.explain import words
from quire.google.budget import Urgency
from quire.google.error import GoogleError
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.model.codec import parse
from quire.surfaces import waking
from quire.surfaces.panel.book import Book, Rows
from quire.surfaces.panel.columns import Arrangement, arranged
from quire.surfaces.panel.layout import INBOX_ID, PANEL_ID, STATE_ID, TABLE, TABLE_ID, TABLES_ID
from quire.surfaces.panel.lease import drawn_by
from quire.surfaces.panel.reading import header_of
from quire.surfaces.panel.tables.declaration import declared
from quire.surfaces.panel.tables.kept import of_book as kept_tables
from quire.surfaces.panel.tabs import fills_blanks

_NAMES = {
    TABLE_ID: "state_table",
    STATE_ID: "quire_state",
    PANEL_ID: "panel",
    INBOX_ID: "quire_inbox",
    TABLES_ID: "quire_tables",
}
_HIDDEN = (STATE_ID, INBOX_ID, TABLES_ID)


class Found(NamedTuple):
    """One thing that was looked at; ``state`` is well, warning or problem."""

    state: str
    what: str


async def examine(ledger: Ledger, url: str, columns: Mapping[str, str] | None = None) -> list[Found]:
    """``columns``: of the state table, as they are configured."""
    book = Book(url)
    found: list[Found] = []
    await book.open()
    try:
        found += await _sheet(ledger, book, arranged(columns or {}))
    except GoogleError as error:
        return [Found("problem", f"the panel {url} cannot be reached: {error}")]
    finally:
        await book.close()
    tables = await _tables(ledger, book.spreadsheet_id)
    return [*found, *tables, await _kept_up(ledger, book.spreadsheet_id), await _woken(ledger)]


async def _tables(ledger: Ledger, book: str) -> list[Found]:
    """What is wrong with tables of people's, and with rows of theirs."""
    found = []
    for kept in await kept_tables(ledger, book):
        said = [kept.problem] if kept.problem else [f"{kept.tab!r}: {text}" for text in kept.named]
        found += [Found("warning", text) for text in said]
        if not said and kept.workflow:
            found.append(Found("well", f"the rows of {kept.tab!r} go through {kept.workflow!r}"))
    return found


async def _sheet(ledger: Ledger, book: Book, arrangement: Arrangement) -> list[Found]:
    fields = "sheets(properties(sheetId,title,hidden),protectedRanges(range))"
    answer = await book.sheets.spreadsheets_get(book.spreadsheet_id, fields=fields, urgency=Urgency.VIEW)
    tabs = {tab["properties"].get("sheetId", 0): tab for tab in answer.get("sheets", [])}
    found = [Found("well", f"the panel {book.url} is reached")]
    if STATE_ID not in tabs and TABLE_ID not in tabs:
        return [*found, Found("well", "the panel has no tabs yet; quire up --panel makes them")]
    bound = any(declared(known) for known in await engine.definitions(ledger))
    wanted = (TABLE_ID, STATE_ID, PANEL_ID, *([TABLES_ID] if bound else []))
    gone = [_NAMES[sheet_id] for sheet_id in wanted if sheet_id not in tabs]
    found += [Found("warning", f"the tab {name} of the panel was deleted; the panel makes it anew") for name in gone]
    for sheet_id in _HIDDEN:
        found += _hidden(tabs[sheet_id]) if sheet_id in tabs else []
    if TABLE_ID in tabs:
        title = tabs[TABLE_ID]["properties"]["title"]
        if not tabs[TABLE_ID].get("protectedRanges"):
            text = f"nothing warns people who type over the engine's columns of {title!r}; what they type is put back"
            found.append(Found("warning", text))
        found += _header(title, (await book.read([TABLE_ID]))[TABLE_ID], arrangement)
    if STATE_ID in tabs and not await fills_blanks(book):
        text = "this book cannot fill a cell only if it is blank; blank cells of the engine are written by their place"
        found.append(Found("warning", text))
    return found


def _hidden(tab: dict[str, Any]) -> list[Found]:
    title = tab["properties"]["title"]
    found = []
    if not tab["properties"].get("hidden"):
        found.append(
            Found("warning", f"the tab {title!r} of the panel is not hidden: people may take it for theirs; hide it")
        )
    if not tab.get("protectedRanges"):
        text = (
            f"the tab {title!r} of the panel is not protected (Data > Protect sheets and ranges); what people change "
        )
        found.append(Found("warning", f"{text}there is put back"))
    return found


def _header(title: str, grid: Rows, arrangement: Arrangement) -> list[Found]:
    _, columns = header_of(grid, arrangement)
    missing = [arrangement.titles[name] for name in TABLE if name not in columns]
    if not missing:
        return [Found("well", f"the table {title!r} has its {len(TABLE)} columns")]
    text = f"the header of {title!r} has drifted: {', '.join(missing)} is not there; the panel adds what is missing at "
    return [Found("warning", f"{text}its end, and columns that were renamed are yours then")]


async def _kept_up(ledger: Ledger, book: str) -> Found:
    who = await drawn_by(ledger, book)
    if who:
        return Found("well", f"the panel is kept up by {who}")
    return Found("warning", "nobody keeps the panel up; start quire up --panel, or quire panel run")


async def _woken(ledger: Ledger) -> Found:
    kept = await ledger.setting(waking.WOKE)
    if kept is None:
        return Found("well", "no script wakes the panel: it looks by itself (quire panel script makes one)")
    ago = max(0.0, await ledger.now() - float(parse(kept.value)["at"]))
    return Found("well", f"the script in the sheet woke the panel {words.span(ago)} ago")
