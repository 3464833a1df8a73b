"""The writer lock: the writers of one file take turns. A writer that has just written waits behind those that wait.

SQLite wakes nobody. A writer that finds SQLite's write lock taken sleeps and tries again, longer each time, up to a
tenth of a second. Meanwhile the process that holds the lock gives it back and takes it again. So one of several busy
processes may wait for half a second. Here one writer at a time may stand at the write lock and try often; the others
wait for that place.

The place is a lock on the ledger's directory. It is a courtesy, not a promise: the place ends with its process, and a
writer that does not get it in time goes on without it (docs/decisions/021).
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: writers do not take turns
    fcntl = None  # type: ignore[assignment]

#: How often the writer at the lock tries; how often one that waits for that place tries; and after how long the second
#: tries as often as the first, so that the one that has waited longer does not wait longest.
AT_THE_LOCK_SECONDS = 0.0003
IN_LINE_SECONDS = 0.0015
A_WHILE_SECONDS = 0.012
#: If the place is not free for so long, its process is stopped or slow, and the writer goes on without it.
PATIENCE_IN_LINE_SECONDS = 1.0
#: A lock that is held for so long is tried less often.
LONG_SECONDS = 0.25


class WriterLock:
    """The place before one ledger's write lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def begin(self, db: sqlite3.Connection, patience: float, *, in_line: bool = True) -> None:
        """Begin a transaction that writes; ``sqlite3.OperationalError`` if the lock is not free in time."""
        placed = in_line and self._take_place()
        begun = 0.0
        try:
            while True:
                try:
                    db.execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    now = time.monotonic()
                    begun = begun or now
                    if "locked" not in str(error) or now - begun > patience:
                        raise
                pause = AT_THE_LOCK_SECONDS if now - begun < LONG_SECONDS else 30 * AT_THE_LOCK_SECONDS
                time.sleep(pause)  # noqa: TID251 - in the writing thread
        finally:
            if placed and self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _take_place(self) -> bool:
        if fcntl is None:
            return False
        try:
            if self._file is None:
                self._file = os.open(self._folder, os.O_RDONLY)
        except OSError:
            return False
        begun = now = 0.0
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                now = time.monotonic()
                begun = begun or now
                if now - begun > PATIENCE_IN_LINE_SECONDS:
                    return False
            except OSError:  # a file system without such locks
                return False
            pause = IN_LINE_SECONDS if now - begun < A_WHILE_SECONDS else AT_THE_LOCK_SECONDS
            time.sleep(pause)  # noqa: TID251 - in the writing thread

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
