"""Short reads are answered at once, in the thread of the event loop. A long one is broken off and repeated in its own.

A hop to another thread costs more than most reads do: wake-ups, and Python's lock, which a thread gives away at every
row that it reads and gets back when the other thread likes. Readers of SQLite's WAL wait for nobody, so a short read
keeps the loop no longer than its own work.
"""

from __future__ import annotations

import math
import sqlite3
import time
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar, cast

from quire.errors import LedgerError
from quire.ledger.sqlite.view import snapshot

V = TypeVar("V")
T = TypeVar("T")

#: A read that has worked for so long goes to the reading thread.
AT_ONCE_SECONDS = 0.002
#: So many instructions of SQLite, some microseconds, between two readings of the clock.
_INSTRUCTIONS = 1000


@types.coroutine
def _others() -> Generator[None, None, None]:
    """Let all others that are ready in this loop come first, so that many reads in a row do not keep it busy alone."""
    yield


class ReadsAtOnce(Generic[V]):
    """``view`` makes what a read asks; ``aside`` does something with a connection in the reading thread."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        view: Callable[[sqlite3.Connection], V],
        aside: Callable[[Callable[[sqlite3.Connection], Any]], Awaitable[Any]],
    ) -> None:
        self._connect = connect
        self._view = view
        self._aside = aside
        self._db: sqlite3.Connection | None = None
        self._end = math.inf
        self._closed = False

    async def ask(self, question: Callable[[V], T]) -> T:
        """Answer a question that mostly takes little time."""
        await _others()
        if self._closed:
            raise LedgerError("this ledger is closed")
        if self._db is None:
            self._db = self._connect()
            self._db.set_progress_handler(self._too_long, _INSTRUCTIONS)
        try:
            return self._answered(self._db, question)
        except sqlite3.OperationalError as error:
            if "interrupted" not in str(error):
                raise
        return await self.ask_aside(question)

    async def ask_aside(self, question: Callable[[V], T]) -> T:
        """Answer a question that takes long."""
        return cast(T, await self._aside(lambda db: self._answered(db, question)))

    def _answered(self, db: sqlite3.Connection, question: Callable[[V], T]) -> T:
        with snapshot(db):
            if db is self._db:  # the time begins here, because a BEGIN that is broken off has begun all the same
                self._end = time.thread_time() + AT_ONCE_SECONDS
            try:
                return question(self._view(db))
            finally:
                if db is self._db:
                    self._end = math.inf

    def _too_long(self) -> bool:
        return time.thread_time() > self._end

    def close(self) -> None:
        self._closed = True
        if self._db is not None:
            self._db.close()
            self._db = None
