"""What the ledger remembers of a table: that it was begun, which rows were asked for, what is wrong with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from quire.errors import InputError, did_you_mean
from quire.explain.stuck import TABLES
from quire.ledger import engine
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.tables.declaration import declared

log = logging.getLogger(__name__)

#: The first look at a tab with more rows to start than this asks once.
MOST_UNASKED = 25


class Kept(NamedTuple):
    tab: str = ""
    workflow: str = ""
    #: Its first look is over: rows that are ready start.
    begun: bool = False
    #: How columns that a range or a letter named are called.
    called: dict[str, str] = {}  # noqa: RUF012 - a default that nobody changes
    #: Rows that say that they run, and that somebody asked to be taken: their ids, or their fingerprints.
    take: list[str] = []  # noqa: RUF012
    #: Rows that ran again: which run of each counts, by the id of the first run's record.
    runs: dict[str, int] = {}  # noqa: RUF012
    #: Up to when the schedule of the table was obeyed.
    scheduled: float = 0.0
    #: Why nothing starts and nothing is written, in a sentence.
    problem: str = ""
    #: What is to be said of single rows, each a sentence.
    named: list[str] = []  # noqa: RUF012
    since: float = 0.0


def name_of(book: str, sheet_id: int) -> str:
    return f"{TABLES}{book}/{sheet_id}"


async def load(ledger: Ledger, book: str, sheet_id: int) -> tuple[Kept, int]:
    """What is kept of a table, and its version."""
    kept = await ledger.setting(name_of(book, sheet_id))
    return (Kept(**parse(kept.value)), kept.version) if kept is not None else (Kept(), 0)


async def save(ledger: Ledger, book: str, sheet_id: int, kept: Kept, version: int) -> bool:
    return await ledger.keep(Setting(name_of(book, sheet_id), dump(kept._asdict()), version))


async def of_book(ledger: Ledger, book: str) -> list[Kept]:
    found: list[Any] = [parse(setting.value) for setting in await ledger.settings(f"{TABLES}{book}/")]
    return [Kept(**each) for each in found]


class Problems:
    """Names what is wrong with the header of an inbox or of the state table, as that of a table is named."""

    def __init__(self, ledger: Ledger, book: Book) -> None:
        self._ledger = ledger
        self._book = book
        #: What this process said last of each tab.
        self._said: dict[int, str] = {}

    async def name(self, sheet_id: int, tab: str, workflow: str, problem: str) -> bool:
        """Say it in the log, and keep it for doctor and dashboard. Answers whether there is a problem."""
        if problem != self._said.get(sheet_id):
            kept, version = await load(self._ledger, self._book.spreadsheet_id, sheet_id)
            if problem != kept.problem:
                log.warning("%s of %s: %s", tab, self._book.url, problem or "its header is right again")
                new = Kept(tab, workflow, begun=True, problem=problem, since=await self._ledger.now())
                await save(self._ledger, self._book.spreadsheet_id, sheet_id, new, version)
            self._said[sheet_id] = problem
        return bool(problem)


async def status_headers(ledger: Ledger) -> list[str]:
    """The headers of the status columns of all tables. A range or a letter names one as it was called last."""
    names = [table.status for known in await engine.definitions(ledger) for table in declared(known)]
    called = [Kept(**parse(setting.value)).called for setting in await ledger.settings(TABLES)]
    return [*names, *(each[name] for each in called for name in names if name in each)]


async def go(ledger: Ledger, book: str, tab: str = "") -> list[str]:
    """Let the first look start what it found. Answers which tables that was asked of."""
    found = []
    for name, kept in await _named(ledger, book, tab):
        if not kept.begun:
            await _change(ledger, name, lambda kept: kept._replace(begun=True, problem=""))
            found.append(kept.tab)
    return found


async def take(ledger: Ledger, book: str, tab: str, rows: list[str]) -> None:
    """Let rows be started that say that they run. ``rows``: their ids, or their fingerprints where they have none."""

    def taken(kept: Kept) -> Kept:
        return kept._replace(take=[*kept.take, *(row for row in rows if row not in kept.take)])

    await _change(ledger, await _one(ledger, book, tab), taken)


async def again(ledger: Ledger, book: str, tab: str, runs: Mapping[str, int]) -> None:
    """Let finished rows run again. ``runs``: which run comes next, by the id of the first run's record."""
    await _change(ledger, await _one(ledger, book, tab), lambda kept: kept._replace(runs={**kept.runs, **runs}))


async def _change(ledger: Ledger, name: str, changed: Callable[[Kept], Kept]) -> None:
    """Change what is kept. If the panel has written it meanwhile, then what it wrote is changed."""
    while (found := await ledger.setting(name)) is not None:
        new = changed(Kept(**parse(found.value)))
        if await ledger.keep(Setting(name, dump(new._asdict()), found.version)):
            return


async def _one(ledger: Ledger, book: str, tab: str) -> str:
    """The setting of the one table that is meant."""
    [(name, _), *more] = await _named(ledger, book, tab)
    if more:
        raise InputError(f"there are several tables: {', '.join(repr(each.tab) for _, each in more)}; name one")
    return name


async def _named(ledger: Ledger, book: str, tab: str) -> list[tuple[str, Kept]]:
    settings = await ledger.settings(f"{TABLES}{book}/")
    found = [(setting.name, Kept(**parse(setting.value))) for setting in settings]
    wanted = [each for each in found if not tab or each[1].tab == tab]
    if not wanted:
        known = [kept.tab for _, kept in found]
        near = did_you_mean(tab, known) if tab else ""
        raise InputError(f"no table {tab!r} was looked at in this book yet{near}; quire up --panel looks at it")
    return wanted
