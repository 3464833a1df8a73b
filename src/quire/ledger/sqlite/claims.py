"""Claims: due records become a worker's. A claim that finds nothing waits for no writer."""

from __future__ import annotations

import sqlite3
from typing import cast

from quire.ledger.sqlite.file import LedgerFile
from quire.ledger.sqlite.view import RECORD, View, snapshot
from quire.ledger.sqlite.writes import Writes
from quire.model.change import Claim, Claimed, Slot
from quire.model.record import Record
from quire.rules import claims, orders
from quire.rules.claims import claimed_by
from quire.rules.draft import Draft

#: As the partial indexes have it, word by word, because SQLite uses them for nothing else. Not ``IN``, for which SQLite
#: would make a table of its own whenever a row is written.
OPEN = "(status = 'PENDING' OR status = 'WAITING' OR status = 'NEEDS_APPROVAL')"
_CLAIMABLE = f"{OPEN} AND due_at IS NOT NULL"


class Claims:
    """The verb ``claim``."""

    def __init__(self, file: LedgerFile, writes: Writes) -> None:
        self._file = file
        self._writes = writes

    async def claim(self, claim: Claim) -> Claimed:
        self._writes.work.clear()

        def decide(draft: Draft, view: View, only_peek: bool = False) -> Claimed | None:
            """Claim. ``only_peek``: return None if there is something to take."""
            if claim.again and (taken_before := claimed_by(claim, view.held_by(claim.worker))):
                return Claimed(tuple(taken_before), draft.now)
            taken: list[Record] = []
            left: list[int] = []
            stay: list[Slot] = []
            next_due: float | None = None
            for slot in claim.slots:
                room = min(claims.allowance(draft, slot), claim.limit - len(taken))
                sql = (
                    f"SELECT {RECORD} FROM records WHERE {_CLAIMABLE} AND workflow = ? AND step = ? "
                    "AND due_at <= ? AND epoch >= ? AND code_version <= ? ORDER BY rank LIMIT ?"
                )
                most = 1 if only_peek else room + 1
                args = (slot.workflow, slot.step, draft.now, orders.floor(draft, slot.workflow), slot.version, most)
                found = view.db.execute(sql, args).fetchall()
                if only_peek and found and room > 0:
                    return None
                due = [view.read(row) for row in found]
                taken += claims.take(draft, claim, slot, due[:room])
                left += [record.priority for record in due[room:]]
                stay += [slot] if due[room:] else []
                if len(found) <= room:
                    moment = view.db.execute(
                        f"SELECT due_at FROM records WHERE {_CLAIMABLE} AND workflow = ? AND step = ? "
                        "AND due_at > ? ORDER BY rank LIMIT 1",
                        (slot.workflow, slot.step, draft.now),
                    ).fetchone()
                    if moment is not None and (next_due is None or moment[0] < next_due):
                        next_due = moment[0]
            next_due = claims.next_look(draft, stay, next_due)
            return Claimed(tuple(taken), draft.now, next_due, max(left, default=None), draft.epoch)

        def work(db: sqlite3.Connection) -> tuple[Claimed | None, bool]:
            # Most claims find nothing, and do not wait for the write lock to find that.
            with snapshot(db):
                view = View(db)
                found = decide(Draft(view, self._file.clock.now()), view, only_peek=True)
            return self._writes.transacted(db, decide) if found is None else (found, False)

        return cast(Claimed, await self._writes.written(work))
