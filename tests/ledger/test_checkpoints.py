"""SQLite's write-ahead log is copied only while nobody can commit, and does not grow without end."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quire.ledger.sqlite import checkpoints
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.testing import ToldClock
from quire.testing.conformance import start_all, the


def commits(path: Path) -> str:
    """Try to commit from outside, as another process would; say what SQLite answers."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            return str(error)
        other.execute("ROLLBACK")
        return "it may commit"


async def test_nobody_can_commit_while_the_log_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "FIRST_COMMITS", 3)
    path = tmp_path / "ledger.db"
    ledger = SqliteLedger(path, ToldClock())
    await ledger.open()
    answers: list[str] = []
    connect = ledger.file.checkpoints._connect

    def connected() -> sqlite3.Connection:
        db = connect()
        db.set_trace_callback(lambda sql: answers.append(commits(path)) if "wal_checkpoint" in sql else None)
        return db

    monkeypatch.setattr(ledger.file.checkpoints, "_connect", connected)
    for number in range(12):
        await start_all(ledger, [f"r{number}"])

    assert answers and set(answers) == {"database is locked"}
    assert commits(path) == "it may commit"
    # SQLite copies nothing by itself, on no connection.
    for db in ledger.file.connections.values():
        assert db.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    await ledger.close()


async def test_the_log_is_bounded_and_a_copy_that_fails_fails_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "PAGES", 50)
    path = tmp_path / "ledger.db"
    ledger = SqliteLedger(path, ToldClock())
    await ledger.open()
    log = path.with_name("ledger.db-wal")
    for number in range(150):
        await start_all(ledger, [f"r{number}"])
    assert ledger.file.checkpoints.made > 3
    assert log.stat().st_size < 3 * 50 * 4096

    def broken() -> sqlite3.Connection:
        raise sqlite3.OperationalError("disk I/O error")

    ledger.file.checkpoints.close()
    monkeypatch.setattr(ledger.file.checkpoints, "_connect", broken)
    for number in range(150, 200):
        await start_all(ledger, [f"r{number}"])
    assert (await the(ledger, "r199")).version == 1
    await ledger.close()
    assert not log.exists()  # who closes last copies what is left
