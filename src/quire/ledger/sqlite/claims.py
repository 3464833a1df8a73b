"""Claims: due records become a worker's. A claim that finds nothing waits for no writer."""

from __future__ import annotations

import sqlite3

from quire.ledger.sqlite.file import LedgerFile
from quire.ledger.sqlite.view import View, snapshot
from quire.ledger.sqlite.writes import Writes
from quire.model.change import Claim, Claimed
from quire.rules import verbs
from quire.rules.draft import Draft


class Claims:
    """The verb ``claim``."""

    def __init__(self, file: LedgerFile, writes: Writes) -> None:
        self._file = file
        self._writes = writes

    async def claim(self, claim: Claim) -> Claimed:
        self._writes.work.clear()

        def work(db: sqlite3.Connection) -> tuple[Claimed, bool]:
            # Most claims find nothing, and do not wait for the write lock to find that.
            with snapshot(db):
                view = View(db)
                nothing = verbs.peek(Draft(view, self._file.clock.now()), view, claim)
            if nothing is not None:
                return nothing, False
            return self._writes.transacted(db, lambda draft, view: verbs.claim(draft, view, claim))

        return await self._writes.written(work)
