"""Copy SQLite's write-ahead log into the file now and then, while nobody can commit.

SQLite up to 3.51.2 has a race. If one connection commits and begins the log anew while another one copies the log,
the second may note that more was copied than was, and the file is damaged later (sqlite.org/wal.html#walresetbug).
By itself SQLite copies after a commit, when it has given the write lock back, so the race is open to every connection.
Here SQLite copies nothing by itself. This class copies, on a connection of its own, while the connection that has just
committed holds the write lock. No commit can come between, so the race cannot happen.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quire.errors import QuireError
from quire.ledger.sqlite.writer_lock import WriterLock

#: SQLite needs this for ``UPDATE … FROM`` and strict tables.
OLDEST = (3, 37)
#: The log is copied when it has about so many pages of 4 kB: as often as SQLite itself does.
PAGES = 1000
#: So many commits make that many pages, until the first copying tells better.
FIRST_COMMITS = 100
#: Fewer and more commits than these are never waited for.
LEAST_COMMITS, MOST_COMMITS = 4, 2000
#: Who cannot get the write lock within this time copies after the next commit.
PATIENCE_SECONDS = 0.2
_PAGE_BYTES = 4096


def about_library() -> str:
    """Say in one sentence what holds of this Python's SQLite. Every page and command says it in these words."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return f"SQLite {version} is too old: {oldest} is needed; use a newer Python, or PostgreSQL"
    return f"SQLite {version}: any number of processes on this machine may share a ledger file"


class Checkpoints:
    """Counts the commits of one process, and copies the log when there are enough."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._log = path.with_name(f"{path.name}-wal")
        self._connect = connect
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()  # the threads that commit share what follows
        self._commits = 0
        self._due = FIRST_COMMITS
        self._bytes = 0
        #: How often the log was copied.
        self.made = 0

    def committed(self, db: sqlite3.Connection, writer_lock: WriterLock, *, in_line: bool) -> None:
        """Copy the log if it is time to; ``db`` has just committed."""
        with self._lock:
            self._commits += 1
            grown = self._size() - self._bytes
            if self._commits >= self._due or grown >= PAGES * _PAGE_BYTES:
                with suppress(sqlite3.Error, QuireError):  # the commit has landed; the next one copies
                    self._copy(db, writer_lock, in_line=in_line)

    def _copy(self, db: sqlite3.Connection, writer_lock: WriterLock, *, in_line: bool) -> None:
        writer_lock.begin(db, PATIENCE_SECONDS, in_line=in_line)
        try:
            if self._db is None:
                self._db = self._connect()
            _, pages, _ = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            db.execute("ROLLBACK")
        self.made += 1
        # The next one is due after as many commits as make so many pages at the size of these.
        wanted = self._commits * PAGES // max(pages, 1)
        self._due = max(LEAST_COMMITS, min(MOST_COMMITS, 2 * self._due, wanted))
        self._commits, self._bytes = 0, self._size()

    def _size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:  # it is gone, or not there yet
            return 0

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
