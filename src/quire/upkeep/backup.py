"""Copies of a ledger in a file, made while others write, and put back."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from quire.errors import InputError, NotFound
from quire.ledger import process
from quire.ledger.columns import columns
from quire.model.row import from_values
from quire.model.side import Worker


class Copied(NamedTuple):
    """What is in a copy."""

    records: int
    bytes: int


def _examined(path: Path) -> Copied:
    """Return what is in this ledger. Raises if it is none, or is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            (answer,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            db.execute("SELECT epoch FROM ledger").fetchone()
            (records,) = db.execute("SELECT count(*) FROM records").fetchone()
    except sqlite3.Error as error:
        raise InputError(f"{str(path)!r} is not a Quire ledger: {error}") from error
    if answer != "ok":
        raise InputError(f"{str(path)!r} is damaged: {answer}; take another copy")
    return Copied(records, path.stat().st_size)


def _copied(source: Path, target: Path) -> Copied:
    """Copy a ledger as it is at one moment. The copy gets its name when it is whole, and on disk."""
    beside = target.with_name(f"{target.name}.new")
    try:
        beside.unlink(missing_ok=True)
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as db, closing(sqlite3.connect(beside)) as to:
            db.backup(to)
            to.execute("PRAGMA journal_mode = DELETE")
        found = _examined(beside)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    except (sqlite3.Error, OSError, ValueError) as error:
        raise InputError(f"{str(source)!r} cannot be copied to {str(target)!r}: {error}") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return found


def backup(ledger: str, to: str) -> Copied:
    """Copy the ledger to a file."""
    source, target = Path(ledger), Path(to)
    if not source.is_file():
        raise NotFound(f"there is no ledger at {ledger!r}")
    if not target.absolute().parent.is_dir():
        raise NotFound(f"there is no directory {str(target.absolute().parent)!r}")
    if target.exists() and target.samefile(source):
        raise InputError(f"{to!r} is the ledger itself; name another file")
    _examined(source)
    return _copied(source, target)


def restore(copy: str, ledger: str, *, over: bool) -> Copied:
    """Put a copy in the place of the ledger. The one that was there is kept beside it."""
    source, target = Path(copy), Path(ledger)
    if target.exists() and target.samefile(source):
        raise InputError(f"{copy!r} is the ledger itself; name a copy of it")
    _examined(source)
    if target.exists():
        if not over:
            raise InputError(f"there is a ledger at {ledger!r}; with --over it is replaced, and kept beside as .before")
        if alive := [worker for worker in _workers(target) if not process.known_dead(worker)]:
            raise InputError(
                f"{len(alive)} workers of {ledger!r} are alive (process {alive[0].pid}); stop them before you restore"
            )
        _copied(target, target.with_name(f"{target.name}.before"))
        target.unlink()
    for end in ("-wal", "-shm"):
        target.with_name(f"{target.name}{end}").unlink(missing_ok=True)
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    return _copied(source, target)


def _workers(path: Path) -> list[Worker]:
    """The open workers of a ledger. One that cannot be read any more has none."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            rows = db.execute(f"SELECT {columns(Worker)} FROM workers WHERE closed IS NULL").fetchall()
    except sqlite3.Error:
        return []
    return [from_values(Worker, row) for row in rows]
