"""``quire doctor --repair`` for a book: what can be repaired without guessing.

Repaired: the header, hidden and protected tabs, a head that was taken away from a sound journal, rows that were written
past the head by hand, a damaged journal of which a process left a rescue. Nothing that was committed is dropped: every
repair is fenced by the head, or refused where the mark in Drive says that the book knew more. What a person must decide
is ``sheets_adopt``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from quire.clock import new_id
from quire.errors import LedgerError
from quire.google.budget import Urgency
from quire.ledger.sheets.book import HEAD, HEAD_RANGE, JOURNAL_ID, STATE_ID, protection
from quire.ledger.sheets.journal_rows import (
    COLUMNS,
    Entry,
    JournalDamaged,
    beginning,
    entries,
    following,
    holds_entry,
    new_entry,
)
from quire.ledger.sheets.mark import Mark, leave_heads, read_marks, write_mark
from quire.ledger.sheets.rescue import Rescue, read_rescues

if TYPE_CHECKING:
    from quire.ledger.sheets.ledger import SheetsLedger

_RESTORE = (
    "restore the book to a version before that (File > Version history); if it lacks what was done since, its records "
    "ask you then ('quire adopt')"
)


class Found(NamedTuple):
    """The journal as it stands."""

    chain: list[Entry]
    #: Why it cannot be read; empty: it can.
    damage: str
    #: The last used row.
    height: int
    #: Tokens of entries that Google accepted although another one came first. The head may stand on one.
    void: frozenset[str] = frozenset()


async def repair(ledger: SheetsLedger) -> list[str]:
    """Repair what can be repaired for sure, on a ledger that is connected, not open. Return what was done, in words."""
    done = await _looks(ledger)
    found = await journal(ledger)
    heads = await ledger.book.heads()
    if found.damage:
        # Before a person is asked to restore an older version: a process that starts on it must know the book's end.
        await leave_heads(ledger.drive, ledger.spreadsheet_id, (token for token, _ in heads))
        return [*done, await _from_rescue(ledger, found, heads)]
    last = found.chain[-1]
    if (await read_marks(ledger.drive, ledger.spreadsheet_id)).seq > last.seq:
        return [*done, await _from_rescue(ledger, found, heads)]
    if any(token == last.token or token in found.void for token, _ in heads):
        return done
    at = next((n for n, entry in enumerate(found.chain) if any(token == entry.token for token, _ in heads)), None)
    if at is not None:
        return [*done, await _cut(ledger, found.chain, at)]
    if heads:
        return [*done, await _from_rescue(ledger, found, heads)]
    await send(ledger, [new_head(last.token)])
    return [*done, f"the head was gone and stands on the journal's last entry ({last.seq}) again"]


async def _looks(ledger: SheetsLedger) -> list[str]:
    """Return the header, and who sees and edits the tabs."""
    fields = "sheets(properties(sheetId,title,hidden),protectedRanges(protectedRangeId))"
    answer = await ledger.book.sheets.spreadsheets_get(ledger.spreadsheet_id, fields=fields)
    tabs = {tab["properties"].get("sheetId", 0): tab for tab in answer.get("sheets", [])}
    if JOURNAL_ID not in tabs:
        raise LedgerError(
            f"the tab of the journal was deleted from the book {ledger.spreadsheet_id}; restore the book to a version "
            "before that (File > Version history)"
        )
    done: list[str] = []
    requests: list[dict[str, Any]] = []
    for sheet_id, name in ((JOURNAL_ID, "journal"), (STATE_ID, "state")):
        tab = tabs.get(sheet_id)
        if tab is not None and not tab["properties"].get("hidden"):
            properties = {"sheetId": sheet_id, "hidden": True}
            requests.append({"updateSheetProperties": {"properties": properties, "fields": "hidden"}})
            done.append(f"the tab {name} is hidden again")
        if tab is not None and not tab.get("protectedRanges"):
            requests.append(protection(sheet_id, f"Quire's {name}"))
            done.append(f"the tab {name} is protected again")
    await ledger.book.look()
    rows = await ledger.book.rows(1, Urgency.VIEW)
    if not rows or tuple(rows[0][: len(COLUMNS)]) != COLUMNS:
        if rows and holds_entry(rows[0]):
            requests += _insert_row(JOURNAL_ID)
        cells = [{"userEnteredValue": {"stringValue": name}} for name in COLUMNS]
        start = {"sheetId": JOURNAL_ID, "rowIndex": 0, "columnIndex": 0}
        requests.append({"updateCells": {"rows": [{"values": cells}], "fields": "userEnteredValue", "start": start}})
        done.append("the header of the journal reads as it should again")
    if requests:
        await send(ledger, requests)
    return done


def _insert_row(sheet_id: int) -> list[dict[str, Any]]:
    span = {"sheetId": sheet_id, "dimension": "ROWS", "startIndex": 0, "endIndex": 1}
    return [{"insertDimension": {"range": span, "inheritFromBefore": False}}]


async def journal(ledger: SheetsLedger) -> Found:
    rows = await ledger.book.rows(1, Urgency.VIEW)
    try:
        found = entries(rows, 1)
        first = beginning(found)
        counted, void = following(first, found)
    except JournalDamaged as error:
        return Found([], str(error), len(rows))
    return Found([first, *counted], "", len(rows), frozenset(entry.token for entry in void))


def new_head(token: str) -> dict[str, Any]:
    """Return a new name each time: the old one may be a ghost's (google-facts 2)."""
    name = new_id(f"{HEAD}_")
    return {"addNamedRange": {"namedRange": {"namedRangeId": token, "name": name, "range": HEAD_RANGE}}}


def _fence(token: str) -> dict[str, Any]:
    return {"updateNamedRange": {"namedRange": {"namedRangeId": token, "range": HEAD_RANGE}, "fields": "range"}}


async def send(ledger: SheetsLedger, requests: list[dict[str, Any]]) -> None:
    await ledger.book.sheets.spreadsheets_batch_update(ledger.spreadsheet_id, requests, repeatable=False)


async def _cut(ledger: SheetsLedger, chain: list[Entry], at: int) -> str:
    """Take away rows that follow the entry on which the head stands: no commit wrote them."""
    head, past = chain[at], {entry.token for entry in chain[at + 1 :]}
    rows = await ledger.book.rows(1, Urgency.VIEW)
    places = [n for n, row in enumerate(rows) if len(row) > 2 and row[2] in past]
    requests = [_fence(head.token)]
    for place in reversed(places):
        span = {"sheetId": JOURNAL_ID, "dimension": "ROWS", "startIndex": place, "endIndex": place + 1}
        requests.append({"deleteDimension": {"range": span}})
    await send(ledger, requests)
    return f"{len(places)} rows that somebody wrote past the head (entry {head.seq}) are gone; no commit wrote them"


async def _from_rescue(ledger: SheetsLedger, found: Found, heads: list[tuple[str, str]]) -> str:
    """Begin a new generation with what a process left when it found the damage, if the head says that it is all."""
    left = await read_rescues(ledger.drive, ledger.spreadsheet_id)
    why = found.damage or "the journal ends before what was seen in it"
    if not left:
        raise LedgerError(f"{why}. No process that had read it all has left a rescue; {_RESTORE}.")
    fences = {known: token for token, _ in heads for known in (token, *await _before(ledger, token))}
    last, body = max(left, key=lambda rescue: (not fences.keys().isdisjoint(rescue.heads), int(rescue.last["seq"])))
    fence = next((fences[token] for token in Rescue(last, body).heads if token in fences), "")
    if not fence:
        raise LedgerError(
            f"{why}. A process has left a rescue that ends at entry {last['seq']}, but the head of the book stands "
            f"elsewhere: something else was committed, or the book was restored; {_RESTORE}."
        )
    before = Entry(int(last["generation"]), int(last["seq"]), last["token"], "", "", last["at"], "", False, "")
    entry = new_entry(before, commit_id=new_id("c_"), at=ledger.clock.now(), worker="", body=body, snapshot=True)
    await begin(ledger, entry, fence, found.height)
    return f"the journal was damaged and begins anew with what it said up to entry {before.seq}; nothing is lost"


async def _before(ledger: SheetsLedger, head: str) -> list[str]:
    """What the book had accepted before the head, as far as what came after it does not count."""
    try:
        found = {entry.token: entry for entry in entries(await ledger.book.rows(1, Urgency.VIEW), 1)}
    except JournalDamaged:
        return []
    before: list[str] = []
    while (entry := found.pop(head, None)) is not None and entry.accepted not in ("", entry.prev_token):
        before.append(head := entry.accepted)
    return before


async def begin(ledger: SheetsLedger, entry: Entry, fence: str, height: int) -> None:
    """Make this snapshot the journal, if the head still is ``fence``."""
    await send(ledger, ledger.book.commit(entry, max(1, height), fence))
    await write_mark(ledger.drive, ledger.spreadsheet_id, Mark(entry.generation, entry.seq, entry.token), anew=True)
