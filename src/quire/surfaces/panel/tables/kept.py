"""What the ledger remembers of a table: that it was begun, which rows were asked for, what is wrong with it."""

from __future__ import annotations

from typing import Any, NamedTuple

from quire.errors import InputError, did_you_mean
from quire.explain.stuck import TABLES
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting

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


async def go(ledger: Ledger, book: str, tab: str = "") -> list[str]:
    """Let the first look start what it found. Answers which tables that was asked of."""
    found = []
    for name, kept, version in await _named(ledger, book, tab):
        if not kept.begun:
            new = kept._replace(begun=True, problem="")
            await ledger.keep(Setting(name, dump(new._asdict()), version))
            found.append(kept.tab)
    return found


async def take(ledger: Ledger, book: str, tab: str, rows: list[str]) -> None:
    """Let rows be started that say that they run. ``rows``: their ids, or their fingerprints where they have none."""
    [(name, kept, version), *more] = await _named(ledger, book, tab)
    if more:
        raise InputError(f"there are several tables: {', '.join(repr(each.tab) for _, each, _ in more)}; name one")
    new = kept._replace(take=[*kept.take, *(row for row in rows if row not in kept.take)])
    await ledger.keep(Setting(name, dump(new._asdict()), version))


async def _named(ledger: Ledger, book: str, tab: str) -> list[tuple[str, Kept, int]]:
    settings = await ledger.settings(f"{TABLES}{book}/")
    found = [(setting.name, Kept(**parse(setting.value)), setting.version) for setting in settings]
    wanted = [each for each in found if not tab or each[1].tab == tab]
    if not wanted:
        known = [kept.tab for _, kept, _ in found]
        near = did_you_mean(tab, known) if tab else ""
        raise InputError(f"no table {tab!r} was looked at in this book yet{near}; quire up --panel looks at it")
    return wanted
