"""Proves on the book at hand what a Sheets ledger rests on. For ``quire doctor``; it costs most of a minute's writes.

A stale head that is refused later does not prove that two batches *racing* are decided as one: so pairs of fenced
batches race from two connections, on a head of their own, and each pair must have exactly one winner (protocol 12).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from quire.clock import new_id
from quire.google.budget import Urgency
from quire.google.error import GoogleError, Invalid, Unanswered
from quire.google.sheets import Sheets
from quire.google.transport import Transport
from quire.ledger.sheets.book import HEAD, HEAD_RANGE, JOURNAL_ID, STATE_ID
from quire.ledger.sheets.journal_rows import CELL_CHARACTERS, COLUMNS
from quire.ledger.sheets.state_guard import differing

if TYPE_CHECKING:
    from quire.ledger.sheets.ledger import SheetsLedger

#: How many pairs race.
PAIRS = 20
#: What Google allows in one book.
MOST_CELLS = 10_000_000


async def examine(ledger: SheetsLedger, pairs: int = PAIRS) -> list[str]:
    """What is wrong with the book, in words, with the remedy; empty: nothing."""
    found: list[str] = []
    try:
        found += await _tabs(ledger)
        found += await changed_state(ledger)
        found += await _head(ledger)
        found += await _races(ledger, pairs)
        found += await _drive(ledger)
    except GoogleError as error:
        found.append(str(error))
    return found


async def _tabs(ledger: SheetsLedger) -> list[str]:
    fields = "sheets(properties(sheetId,title,hidden,gridProperties),protectedRanges(protectedRangeId))"
    answer = await ledger.book.sheets.spreadsheets_get(ledger.spreadsheet_id, fields=fields)
    tabs = {tab["properties"].get("sheetId", 0): tab for tab in answer.get("sheets", [])}
    found = []
    grids = [tab["properties"].get("gridProperties", {}) for tab in tabs.values()]
    used = sum(grid.get("rowCount", 0) * grid.get("columnCount", 0) for grid in grids)
    if used > 0.8 * MOST_CELLS:
        found.append(
            f"the book has {used:,} of the {MOST_CELLS:,} cells that Google allows; delete rows and tabs that are not "
            "needed, or move to a database (quire promote)"
        )
    for sheet_id, name in ((JOURNAL_ID, "journal"), (STATE_ID, "state")):
        tab = tabs.get(sheet_id)
        if tab is None:
            remedy = "the next worker makes it again" if sheet_id == STATE_ID else "restore the book (Version history)"
            found.append(f"the tab {name} is gone from the book; {remedy}")
            continue
        if tab["properties"]["title"] != name:
            found.append(f"the tab {name} is called {tab['properties']['title']!r} now; that does no harm")
        if not tab["properties"].get("hidden"):
            found.append(
                f"the tab {name} is not hidden: people may take it for theirs; hide it (quire doctor --repair)"
            )
        if not tab.get("protectedRanges"):
            found.append(f"the tab {name} is not protected; protect it (quire doctor --repair)")
    rows = await ledger.book.rows(1, Urgency.ARCHIVE)
    if not rows or tuple(rows[0][: len(COLUMNS)]) != COLUMNS:
        found.append(
            f"the header of the journal has drifted; it should read {', '.join(COLUMNS)}. That does no harm; "
            "quire doctor --repair writes it again"
        )
    return found


async def changed_state(ledger: SheetsLedger) -> list[str]:
    """Rows of the tab ``state`` that are not as the journal says."""
    await ledger.standing()
    replica = ledger.replica
    if not replica.places:
        return []
    rows = (await ledger.book.read(1, Urgency.ARCHIVE, state=(2, len(replica.places) + 1))).state
    odd = len(differing(replica, 2, list(replica.places), rows)) if rows is not None else 0
    return [f"{odd} rows of the tab state were changed; the next worker writes it anew"] if odd else []


async def _drive(ledger: SheetsLedger) -> list[str]:
    """Whether the mark and long values can be kept in Drive: by doing it."""
    drive = ledger.drive
    try:
        about = await drive.files_get(ledger.spreadsheet_id, fields="id,parents")
    except GoogleError as error:
        rest = f"and values of more than {CELL_CHARACTERS:,} characters stand in the journal"
        return [f"{error} Until then nobody notices if the book is restored to an older version, {rest}"]
    try:
        [file_id] = await drive.files_generate_ids(1)
        made = {"id": file_id, "name": "quire doctor", "mimeType": "text/plain"}
        await drive.files_create(made | ({"parents": about["parents"]} if about.get("parents") else {}), b"doctor")
        await drive.files_delete(file_id)
    except GoogleError as error:
        return [f"{error} Until then values of more than {CELL_CHARACTERS:,} characters stand in the journal"]
    return []


async def _head(ledger: SheetsLedger) -> list[str]:
    """The one place that reads the named range: workers never do (protocol 3)."""
    answer = await ledger.book.sheets.spreadsheets_get(
        ledger.spreadsheet_id, fields="namedRanges(namedRangeId,name,range)"
    )
    await ledger.standing()
    last = ledger.replica.last
    heads = [named for named in answer.get("namedRanges", []) if named.get("name", "").startswith(HEAD)]
    tokens = {named["namedRangeId"] for named in heads}
    known = {last.token if last is not None else "", *ledger.replica.void}
    if not heads:
        return [f"the head of the ledger (named range {HEAD}) is gone; quire doctor --repair puts it back"]
    if not tokens & known:
        who = "somebody moved it, or wrote rows into the journal, or wrote at this very moment"
        return [f"the head does not stand on the journal's last entry: {who}; look again, then quire doctor --repair"]
    if ledger.replica.void:
        return [
            f"{len(ledger.replica.void)} commits were accepted by Google although another came first; they are void"
        ]
    return []


async def _races(ledger: SheetsLedger, pairs: int) -> list[str]:
    """Pairs of batches on one head, at the same moment: one wins, one is refused."""
    async with _second(ledger) as other:
        first, name = ledger.book.sheets, new_id("QUIRE_DOCTOR_")
        head = new_id("d_")
        await _send(first, ledger, [_add(head, name)])
        wins = []
        for _ in range(pairs):
            tokens = new_id("d_"), new_id("d_")
            answers = await asyncio.gather(
                *(_race(sheets, ledger, head, new, name) for sheets, new in zip((first, other), tokens, strict=True))
            )
            wins.append(sum(answers))
            if wins[-1] != 1:
                await _clear(first, ledger, head, *tokens)
                return [_both(wins[-1], len(wins), pairs)]
            head = tokens[answers.index(True)]
        await _clear(first, ledger, head)
        stale = await _race(first, ledger, head, new_id("d_"), name)
    if stale:
        return ["the book accepts a commit on a head that is gone: several workers would overwrite each other"]
    return []


def _both(winners: int, pair: int, pairs: int) -> str:
    return (
        f"of two racing commits {winners} were accepted, in pair {pair} of {pairs}: run one worker only on this "
        "book, or use another ledger"
    )


async def _clear(sheets: Sheets, ledger: SheetsLedger, *tokens: str) -> None:
    """Leave no named range behind."""
    for token in tokens:
        with suppress(Invalid):
            await _send(sheets, ledger, [{"deleteNamedRange": {"namedRangeId": token}}])


@asynccontextmanager
async def _second(ledger: SheetsLedger) -> AsyncIterator[Sheets]:
    transport = Transport(
        ledger.transport.credentials, endpoint=ledger.transport.endpoint, per_minute=ledger.transport.per_minute
    )
    await transport.open()
    try:
        yield Sheets(transport)
    finally:
        await transport.close()


def _add(token: str, name: str) -> dict[str, Any]:
    return {"addNamedRange": {"namedRange": {"namedRangeId": token, "name": name, "range": HEAD_RANGE}}}


async def _race(sheets: Sheets, ledger: SheetsLedger, head: str, new: str, name: str) -> bool:
    fence = {"updateNamedRange": {"namedRange": {"namedRangeId": head, "range": HEAD_RANGE}, "fields": "range"}}
    try:
        await _send(sheets, ledger, [fence, {"deleteNamedRange": {"namedRangeId": head}}, _add(new, name)])
    except Invalid:
        return False
    return True


async def _send(sheets: Sheets, ledger: SheetsLedger, requests: list[dict[str, Any]]) -> None:
    """Not repeated if no answer comes: a repeat would be refused, and that would prove nothing."""
    try:
        await sheets.spreadsheets_batch_update(
            ledger.spreadsheet_id, requests, repeatable=False, urgency=Urgency.ARCHIVE, deadline=120.0
        )
    except Unanswered as error:
        raise GoogleError(f"the racing pairs could not be tried to the end: {error}") from error
