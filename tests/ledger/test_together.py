"""What is asked at the same time is answered together, and writers of several processes take turns."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quire.errors import LedgerError, LedgerUnavailable, ValueRefused
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.wire import Wire
from quire.ledger.sqlite import writer_lock as sqlite_gate
from quire.ledger.sqlite.file import LedgerFile
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.ledger.sqlite.writer_lock import WriterLock
from quire.model.side import Setting


class Counted(SqliteLedger):
    """Counts hops to its threads."""

    def __init__(self, path: Path) -> None:
        self.hops: list[str] = []
        run = LedgerFile.run

        async def counted(file: LedgerFile, thread: str, work: Callable[[sqlite3.Connection], Any]) -> Any:
            self.hops.append(thread)
            return await run(file, thread, work)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LedgerFile, "run", counted)
            super().__init__(path)
            setattr(self.file, "run", partial(counted, self.file))  # noqa: B010 - a method


async def counted(path: Path) -> Counted:
    ledger = Counted(path / "ledger.db")
    await ledger.open()
    ledger.hops.clear()
    return ledger


async def one_turn() -> None:
    """Whoever is ready in this loop comes first."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()


# -- SQLite: looks ---------------------------------------------------------------------------------------------


def counts_to(most: int) -> Callable[[Any], tuple[int, str]]:
    """A look that counts, and says in which thread."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most}) SELECT count(*) FROM n"
    return lambda view: (view.db.execute(numbers).fetchone()[0], threading.current_thread().name)


async def test_a_short_look_is_answered_at_once_and_a_long_one_in_the_reading_thread(tmp_path: Path) -> None:
    ledger = await counted(tmp_path)
    try:
        await ledger.keep(Setting("a", "1", 0))
        assert ledger.hops == ["write"]
        found = await asyncio.gather(*[ledger.setting("a") for _ in range(20)], ledger.standing(), ledger.workers())
        assert found[:20] == [Setting("a", "1", 1)] * 20
        assert ledger.hops == ["write"]
        assert await ledger.reads.read(counts_to(3)) == (3, threading.current_thread().name)
        count, thread = await ledger.reads.read(counts_to(1_000_000))
        assert count == 1_000_000 and thread.startswith("quire-read")
        assert ledger.hops == ["write", "read"]
        assert await ledger.setting("a") == Setting("a", "1", 1)  # a look that was broken off left nothing behind
        assert ledger.hops == ["write", "read"]
        await ledger.keep(Setting("b", "2", 0))
        assert await ledger.setting("b") == Setting("b", "2", 1)
    finally:
        await ledger.close()


async def test_a_look_that_fails_is_told_and_the_next_is_answered(tmp_path: Path) -> None:
    ledger = await counted(tmp_path)

    def broken(view: Any) -> None:
        view.db.execute("SELECT x FROM nowhere")

    try:
        with pytest.raises(LedgerUnavailable, match="nowhere"):
            await ledger.reads.read(broken)
        assert await ledger.workers() == []
    finally:
        await ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        await ledger.workers()


def test_a_ledger_that_is_used_in_another_loop_answers_there(tmp_path: Path) -> None:
    ledger = asyncio.run(counted(tmp_path))

    async def left_behind() -> None:
        asyncio.ensure_future(ledger.workers())  # noqa: RUF006 - the loop ends with it
        await one_turn()

    asyncio.run(left_behind())
    assert asyncio.run(ledger.workers()) == []
    asyncio.run(ledger.close())


# -- SQLite: the line of writers -------------------------------------------------------------------------------


def held_place(path: Path) -> int:
    """Another process's place before the lock."""
    place = os.open(path, os.O_RDONLY)
    fcntl.flock(place, fcntl.LOCK_EX)
    return place


async def test_a_writer_waits_for_its_place_and_gives_it_up_once_it_has_the_lock(tmp_path: Path) -> None:
    ledger = await counted(tmp_path)
    place = held_place(tmp_path)
    try:
        writing = asyncio.ensure_future(ledger.keep(Setting("a", "1", 0)))
        for _ in range(20):  # reads go on meanwhile
            assert await ledger.setting("a") is None
        assert not writing.done()
        fcntl.flock(place, fcntl.LOCK_UN)
        assert await writing
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)  # it is free again
    finally:
        os.close(place)
        await ledger.close()


async def test_a_place_that_is_never_given_up_is_passed_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_gate, "PATIENCE_IN_LINE_SECONDS", 0.01)
    ledger = await counted(tmp_path)
    place = held_place(tmp_path)
    try:
        assert await ledger.keep(Setting("a", "1", 0))
    finally:
        os.close(place)
        await ledger.close()


async def test_a_lock_that_is_never_given_up_is_told_and_the_place_is_free(
    tmp_path: Path,
) -> None:
    ledger = await counted(tmp_path)
    ledger.patience = 0.02
    try:
        with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailable, match="Please try again"):
                await ledger.keep(Setting("a", "1", 0))
            os.close(held_place(tmp_path))
            other.execute("ROLLBACK")
        assert await ledger.keep(Setting("a", "1", 0))
    finally:
        await ledger.close()


def test_where_directories_cannot_be_locked_nobody_stands_in_line(tmp_path: Path) -> None:
    gate = WriterLock(tmp_path / "not there")
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as db:
        gate.begin(db, 1.0)
        assert db.in_transaction
    gate.close()


# -- PostgreSQL ------------------------------------------------------------------------------------------------


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many statements went out by each flush."""
    found: list[int] = []
    flush = Wire.flush

    async def counting(self: Wire) -> Any:
        found.append(self._expected.count(None))
        return await flush(self)

    monkeypatch.setattr(Wire, "flush", counting)
    return found


async def test_statements_of_one_moment_are_one_flush(postgres_url: str, flushes: list[int]) -> None:
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    try:
        await ledger.keep(Setting("a", "1", 0))
        flushes.clear()
        found = await asyncio.gather(ledger.setting("a"), ledger.standing(), ledger.workers(), ledger.now())
        assert flushes == [5]  # with the standing, once
        assert found[0] == Setting("a", "1", 1) and found[2] == []
    finally:
        await ledger.close()


async def test_a_statement_that_fails_fails_alone(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url)
    await ledger.open()
    try:
        looks = [ledger.workers(), ledger.reads._gathered.together("SELECT x FROM nowhere"), ledger.signals("no\0text")]
        workers, wrong, spoiled = await asyncio.gather(*looks, return_exceptions=True)
        assert workers == []
        assert isinstance(wrong, LedgerError) and "nowhere" in str(wrong)
        assert isinstance(spoiled, ValueRefused) and "NUL" in str(spoiled)
        assert await ledger.workers() == []
    finally:
        await ledger.close()
