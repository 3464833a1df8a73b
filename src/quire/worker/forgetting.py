"""Forgetting: of records that ended long ago only what makes them known remains.

A record is forgotten by a change like others, with a line in its log that says by whom, and how many lines and which
hash came before. Then its earlier lines, its receipts and the values of its signals are deleted. Its id, dedupe key,
status, version, epoch, visit and the end of its log stay: a start under its id is known, and no key is made again. What
a folder has not shown yet is not forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quire.clock import Span, next_id, seconds
from quire.errors import IllegalMove, InputError
from quire.folder.cursor import read_place, setting_name
from quire.ledger.base import Ledger
from quire.model.change import Applied, Change, Query
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.rules import moves

#: So many records are forgotten by one commit.
BATCH = 200
#: What ended more recently stays: a worker may still repeat its last change.
LEAST_SECONDS = 3600.0
#: What failed may be tried again, so it is forgotten only if somebody says so.
USUAL = (Status.CANCELLED, Status.DONE)


class Forgotten(NamedTuple):
    """What was forgotten."""

    records: int = 0
    lines: int = 0
    receipts: int = 0

    def plus(self, other: Forgotten) -> Forgotten:
        return Forgotten(self.records + other.records, self.lines + other.lines, self.receipts + other.receipts)


def checked(older: Span) -> float:
    """Return how long ago a record must have ended to be forgotten, in seconds."""
    span = seconds(older)
    if span < LEAST_SECONDS:
        raise InputError(f"{older!r} is too short: what ended within the last hour is not forgotten")
    return span


async def forget_some(
    ledger: Ledger,
    before: float,
    by: str,
    *,
    workflow: str = "",
    status: Sequence[Status] = USUAL,
) -> Forgotten:
    """Forget one batch of records that have not changed since ``before``.

    Killed in the middle, the next call goes on: what is left of a forgotten record is deleted when it is met again.
    """
    query = Query(workflow=workflow, status=tuple(status), before=before, order="oldest", limit=BATCH)
    found = [row for row in await ledger.find(query) if row.open_intents == 0]
    if not found:
        return Forgotten()
    now = await ledger.now()
    lines = await ledger.logs([row.record_id for row in found])
    places = [read_place(kept.value).seq for kept in await ledger.settings(setting_name(""))]
    if places:
        shown = min(places)
        found = [row for row in found if all(line.seq <= shown for line in lines[row.record_id])]
    changes = [change for row in found if (change := _change(row, now, by, before)) is not None]
    verdicts = await ledger.commit(changes)
    gone = [change.record_id for change, verdict in zip(changes, verdicts, strict=True) if isinstance(verdict, Applied)]
    deleted = await ledger.forget([line for record_id in gone for line in lines[record_id]])
    return Forgotten(len(gone), deleted, await ledger.strip(gone))


def _change(row: Record, now: float, by: str, before: float) -> Change | None:
    try:
        go = moves.forget(row, now, by, before)
    except IllegalMove:
        return None
    image = replace(go.image, updated_at=row.updated_at)
    return Change(next_id(), row.record_id, row.version, image, lines=go.lines)
