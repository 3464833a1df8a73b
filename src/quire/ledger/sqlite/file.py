"""The file of a ledger: its threads, connections and migrations, and transactions that write.

Three threads have a connection each: one writes, one beats and never waits behind a batch, one reads what takes long.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from quire.clock import Clock
from quire.errors import LedgerError, LedgerUnavailable
from quire.ledger.base import PATIENCE_SECONDS
from quire.ledger.busy import busy, lock_timeout
from quire.ledger.queries import migrations
from quire.ledger.sqlite.checkpoints import OLDEST, Checkpoints, about_library
from quire.ledger.sqlite.view import snapshot
from quire.ledger.sqlite.writer_lock import WriterLock

T = TypeVar("T")

#: The threads, by what they do.
THREADS = ("write", "beat", "read")
#: "Quir": says of the file that it is a ledger.
APPLICATION_ID = 0x51756972
#: Writers wait this long for each other before they give up.
#: Where the locks of SQLite do not hold.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "fuse.sshfs", "fuse.glusterfs", "glusterfs", "ceph"}
)


class LedgerFile:
    """One SQLite file, as one process has it open."""

    def __init__(self, path: str | os.PathLike[str], clock: Clock) -> None:
        self.path = Path(path)
        self.clock = clock
        #: How long a transaction waits for another process that writes.
        self.patience = PATIENCE_SECONDS
        self.connections: dict[str, sqlite3.Connection] = {}
        self.checkpoints = Checkpoints(self.path, self.connected)
        self._threads = {name: ThreadPoolExecutor(1, f"quire-{name}") for name in THREADS}
        self._writer_lock = WriterLock(self.path.parent)

    async def run(self, thread: str, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with a thread's connection, in that thread."""

        def run() -> T:
            with quire_errors(self.path):
                db = self._connection(thread)
                written = db.total_changes
                answer = work(db)
                if db.total_changes != written:
                    self.checkpoints.committed(db, self._writer_lock, in_line=thread == "write")
                return answer

        return await asyncio.get_running_loop().run_in_executor(self._threads[thread], run)

    def _connection(self, thread: str) -> sqlite3.Connection:
        """Return this thread's own connection."""
        db = self.connections.get(thread)
        if db is None:
            db = self.connections[thread] = self.connected()
            if thread != "read":
                db.execute("PRAGMA busy_timeout = 0")  # the writer lock waits
        return db

    def connected(self) -> sqlite3.Connection:
        with quire_errors(self.path):
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=256)
            db.execute(f"PRAGMA busy_timeout = {int(lock_timeout(self.patience) * 1000)}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA wal_autocheckpoint = 0")  # see checkpoints.py
            db.execute("PRAGMA cache_size = -32768")
            return db

    @contextmanager
    def transaction(self, db: sqlite3.Connection, *, in_line: bool = True) -> Iterator[None]:
        """Write in one transaction. ``in_line``: wait for a turn among the writers first."""
        self._writer_lock.begin(db, lock_timeout(self.patience), in_line=in_line)
        try:
            yield
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    async def open(self) -> None:
        if not self.path.parent.is_dir():
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LedgerError(f"cannot make the directory of the ledger {str(self.path)!r}: {error}") from error
        kind = file_system(self.path.parent)
        if kind in NETWORK_FILE_SYSTEMS:
            raise LedgerError(
                f"the ledger {str(self.path)!r} lies on a network file system ({kind}), where SQLite's locks do not "
                "hold; put it on a local disk, or use PostgreSQL"
            )
        await self.run("write", self._migrate)

    def _migrate(self, db: sqlite3.Connection) -> None:
        """Bring the file up to date, one numbered script at a time, under the write lock."""
        if sqlite3.sqlite_version_info < OLDEST:
            raise LedgerError(about_library())
        deadline = time.monotonic() + lock_timeout(self.patience)
        while True:
            try:
                with snapshot(db):
                    self._examine(db)  # before anything is set, so that another program's database stays as it is
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # another process is opening it at this very moment
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # noqa: TID251 - in the writing thread
        with self.transaction(db):
            version = self._examine(db)
            for number, script in enumerate(migrations("sqlite")[version:], version + 1):
                for statement in _statements(script):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {number}")
            if version == 0:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _examine(self, db: sqlite3.Connection) -> int:
        """Return the version of the schema; 0: the file is empty. The database of another program is refused."""
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if application != APPLICATION_ID and (application or version or tables):
            raise LedgerError(f"{str(self.path)!r} is a SQLite database, but not a Quire ledger; choose another file")
        if version > (known := len(migrations("sqlite"))):
            raise LedgerError(
                f"the ledger {str(self.path)!r} was made by a newer Quire (schema {version}, this one knows "
                f"{known}); update Quire to open it"
            )
        return int(version)

    async def close(self) -> None:
        for name, thread in self._threads.items():
            connection = self.connections.pop(name, None)
            if connection is not None:
                await asyncio.get_running_loop().run_in_executor(thread, connection.close)
            thread.shutdown(wait=True)
        self.checkpoints.close()
        self._writer_lock.close()


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """Return the kind of file system that a folder lies on; empty if the system does not say."""
    try:
        rows = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    except OSError:
        return ""
    here = str(folder.resolve())
    fits = [(where, kind) for where, kind in rows if here == where or here.startswith(where.rstrip("/") + "/")]
    return max(fits, key=lambda row: len(row[0]), default=("", ""))[1]


@contextmanager
def quire_errors(path: Path) -> Iterator[None]:
    """Raise an error of SQLite as one of Quire, which says what can be done about it."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text:
            raise LedgerError(f"{str(path)!r} is not a ledger, nor a SQLite database; choose another file") from error
        if "malformed" in text or "decode" in text:
            raise LedgerError(f"the ledger {str(path)!r} is damaged ({text}); restore a copy") from error
        if "full" in text:
            raise LedgerUnavailable(f"the disk under {str(path)!r} is full; make room, nothing was changed") from error
        if "unable to open" in text or "readonly" in text:
            raise LedgerError(f"the ledger {str(path)!r} cannot be opened for writing: {text}") from error
        if "locked" in text:
            raise busy(f"the ledger {str(path)!r}") from error
        if isinstance(error, sqlite3.OperationalError):
            raise LedgerUnavailable(f"the ledger {str(path)!r} did not answer: {text}") from error
        raise LedgerError(f"the ledger {str(path)!r} refuses: {text}") from error
