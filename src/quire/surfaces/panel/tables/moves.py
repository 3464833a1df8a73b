"""The tab of a book that says which state may follow which: read when a process begins, written by ``table init``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from quire.errors import InputError, did_you_mean
from quire.surfaces.panel.book import Book, Rows
from quire.surfaces.panel.cells import texts
from quire.surfaces.panel.result import sheet_id_of
from quire.workflows.states import HEADER, Move


def read_now(url: str, title: str) -> Rows:
    """Return what stands in the tab of this title. Flow files are loaded without a loop, so it runs in a thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _read(url, title)).result()


async def _read(url: str, title: str) -> Rows:
    book = Book(url)
    await book.open()
    try:
        tabs = await book.tabs()
        found = next((tab for tab in tabs.values() if tab.title.casefold() == title.casefold()), None)
        if found is None:
            titles = [tab.title for tab in tabs.values()]
            raise InputError(f"there is no tab {title!r} in {book.url}{did_you_mean(title, titles)}")
        return await book.look(found.sheet_id)
    finally:
        await book.close()


async def write(book: Book, title: str, moves: Sequence[Move]) -> None:
    """Make a tab of this title with a row for each move. A tab that is there is left alone."""
    tabs = await book.tabs()
    if any(tab.title.casefold() == title.casefold() for tab in tabs.values()):
        raise InputError(f"there is a tab {title!r} already; name another one, or delete it")
    sheet_id = sheet_id_of(f"moves {title}")
    rows = [list(HEADER), *([move.origin, move.target, ", ".join(move.who)] for move in moves)]
    grid = {"rowCount": len(rows), "columnCount": len(HEADER), "frozenRowCount": 1}
    made = {"addSheet": {"properties": {"sheetId": sheet_id, "title": title, "gridProperties": grid}}}
    await book.write([made, texts(sheet_id, 0, rows)])
