"""A transaction that writes: read, decide, write, commit, under the write lock."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

from quire.ledger.sqlite.file import THREADS, LedgerFile
from quire.ledger.sqlite.view import View
from quire.ledger.sqlite.writer import write
from quire.model.record import Record, Status
from quire.rules.draft import Draft

T = TypeVar("T")

#: How many images of records that run here are kept.
MOST_IMAGES = 20_000


class _Images:
    """Records that run, as one connection left them. They are not read again while no other connection has written."""

    def __init__(self) -> None:
        self.kept: dict[str, Record] = {}
        self.doubtful = False
        self._version = -1
        self._seen = -1

    def others_wrote(self, db: sqlite3.Connection) -> bool:
        """Return whether another connection has written since this was asked the last time."""
        (version,) = db.execute("PRAGMA data_version").fetchone()
        seen, self._seen = self._seen, version
        return bool(seen != version)

    def check(self, db: sqlite3.Connection) -> None:
        """Forget what another connection may have changed. Call this within the transaction."""
        (version,) = db.execute("PRAGMA data_version").fetchone()
        if self.doubtful or version != self._version or len(self.kept) > MOST_IMAGES:
            self.kept.clear()
        self._version, self.doubtful = version, False

    def keep(self, records: Iterable[Record]) -> None:
        """Keep these records, whose commit has landed."""
        self.doubtful = False
        for record in records:
            if record.status is Status.RUNNING:
                self.kept[record.record_id] = record
            else:
                self.kept.pop(record.record_id, None)


class Writes:
    """What all verbs that decide stand on."""

    def __init__(self, file: LedgerFile, inline_bytes: int) -> None:
        self._file = file
        self._inline_bytes = inline_bytes
        self._images = {name: _Images() for name in THREADS}
        #: Set when something may have become due.
        self.work = asyncio.Event()

    async def decided(self, decide: Callable[[Draft, View], T], thread: str = "write") -> T:
        """Read, decide, write and commit in one transaction, and return what was decided."""
        return await self.written(lambda db: self.transacted(db, decide, thread), thread)

    async def written(self, work: Callable[[sqlite3.Connection], tuple[T, bool]], thread: str = "write") -> T:
        """Do some work in this thread, which says whether it made something due."""
        answer, woke = await self._file.run(thread, work)
        if woke:
            self.work.set()
        return answer

    def transacted(
        self, db: sqlite3.Connection, decide: Callable[[Draft, View], T], thread: str = "write"
    ) -> tuple[T, bool]:
        """Return what was decided, and whether it made something due."""
        images = self._images[thread]
        with self._file.transaction(db, in_line=thread == "write"):
            images.check(db)
            view = View(db, images.kept)
            draft = Draft(view, self._file.clock.now())
            answer = decide(draft, view)
            write(db, view, draft, self._inline_bytes)
            images.doubtful = True  # until the commit has landed
        images.keep(draft.records.values())
        return answer, draft.woke

    async def others_wrote(self) -> bool:
        """Return whether another process has written since this was asked the last time.

        The connection that writes is asked, because a commit of this process is no news to it.
        """
        return await self._file.run("write", self._images["write"].others_wrote)
