"""What is particular to the ledger in SQLite: its clock, its looks, and who waits for whom."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

from quire.ledger import columns as rows
from quire.ledger import queries
from quire.ledger.queries import query_sql
from quire.ledger.sqlite import at_once
from quire.ledger.sqlite.ledger import GLANCE_SECONDS, SqliteLedger
from quire.model.change import Claim, Query
from quire.model.record import Record, Status
from quire.model.row import field_names
from quire.model.side import Control
from quire.rules.outcome import Done, Saved
from quire.testing import ToldClock
from quire.testing.conformance import applied, beat, claim, order, run, settle, slot, start_all, the, wait_for


class Wall:
    """A told clock whose wall clock a person, or NTP, steps."""

    def __init__(self, clock: ToldClock) -> None:
        self.clock = clock
        self.step = 0.0

    def now(self) -> float:
        return self.clock.now() + self.step

    def boottime(self) -> float:
        return self.clock.boottime()

    async def sleep(self, span: float) -> None:
        await self.clock.sleep(span)


@pytest.mark.parametrize("step", [3600.0, -3600.0])
async def test_a_step_of_the_wall_clock_closes_no_live_worker_and_keeps_no_dead_one(
    tmp_path: Path, step: float
) -> None:
    clock = ToldClock()
    wall = Wall(clock)
    ledger = SqliteLedger(tmp_path / "ledger.db", wall)
    await ledger.open()
    await start_all(ledger, ["live", "dead"])
    [dead] = (await claim(ledger, slot(timeout=1e6), worker="dead", limit=1)).records
    [live] = (await claim(ledger, slot(timeout=1e6), worker="live")).records

    wall.step = step
    clock.advance(20)
    stepped = await ledger.recover()
    await beat(ledger, "live", live)
    clock.advance(12)
    too_early = await ledger.recover()
    clock.advance(2)
    in_time = await ledger.recover()

    assert (stepped.workers, too_early.workers) == (0, 0)
    assert {worker.worker_id for worker in too_early.open} == {"live", "dead"}
    assert (in_time.workers, in_time.records) == (1, 1)
    assert await the(ledger, "live") == live
    assert (await the(ledger, "dead")).version == dead.version + 1
    assert (await the(ledger, "dead")).status is Status.PENDING
    assert {worker.worker_id: worker.closed for worker in await ledger.workers()} == {
        "live": None,
        "dead": "its lease ran out",
    }
    await ledger.close()


@contextmanager
def another_boot(ledger: SqliteLedger) -> Iterator[None]:
    before, ledger.leases.boot_id = ledger.leases.boot_id, "another"
    yield
    ledger.leases.boot_id = before


async def test_across_boots_the_wall_clock_decides(tmp_path: Path) -> None:
    clock = ToldClock()
    ledger = SqliteLedger(tmp_path / "ledger.db", clock)
    await ledger.open()
    with another_boot(ledger):
        await run(ledger)
    clock.advance(32)
    too_early = await ledger.recover()
    clock.advance(2)

    assert too_early.workers == 0
    assert (await ledger.recover()).workers == 1
    await ledger.close()


async def test_no_look_and_no_claim_reads_records_that_have_ended(tmp_path: Path, clock: ToldClock) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db", clock)
    await ledger.open()
    await start_all(ledger, ["a", "b"])
    await order(ledger, "halt", "*")
    await order(ledger, "resume", "*")
    said: list[str] = []
    await ledger.recover()
    await claim(ledger)
    for connection in ledger.file.connections.values():
        connection.set_trace_callback(said.append)

    await ledger.recover()
    await claim(ledger)

    plans = {
        detail: statement
        for statement in said
        if statement.lstrip().startswith(("SELECT", "UPDATE"))
        for *_, detail in ledger.file.connections["read"].execute(f"EXPLAIN QUERY PLAN {statement}")
    }
    await ledger.close()
    assert any("USING INDEX records_open" in detail for detail in plans)
    assert [plans[detail] for detail in plans if detail == "SCAN records"] == []


@pytest.mark.parametrize("controls", [[], [Control("*", True, 7, False, "ann", 0.0, "")]])
@pytest.mark.parametrize("status", [Status.ERROR, Status.NEEDS_APPROVAL])
async def test_what_people_look_for_is_found_by_an_index(
    tmp_path: Path, status: Status, controls: list[Control]
) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await ledger.close()
    sql, args = query_sql(Query(status=(status,)), controls)

    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        plan = [detail for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {sql}", args)]

    assert plan == ["SEARCH records USING INDEX records_noticed (status=?)"]


@pytest.mark.parametrize("asked", [(Status.PENDING,), (Status.WAITING,), tuple(sorted(queries.OPEN))])
@pytest.mark.parametrize("sorted_by", ["id", "updated"])
async def test_what_is_open_is_found_without_a_look_at_what_has_ended(
    tmp_path: Path, asked: tuple[Status, ...], sorted_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PASSED_OVER", 10)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await settle(ledger, await run(ledger, "ended"), Done("1", "{}"))
    await run(ledger, "runs")
    await wait_for(ledger, await run(ledger, "waits"))
    await start_all(ledger, ["starts"])
    await ledger.close()
    named = ", ".join(map(rows.quoted, field_names(Record)[1:]))
    instructions: list[int] = []
    counted = count()

    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.set_progress_handler(lambda: next(counted) < 0, 1)
        for before in ("a", "b"):
            connection.execute(
                "WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < 300) "
                f"INSERT INTO records (record_id, {named}) "
                f"SELECT printf('{before}%d', n), {named} FROM records, more WHERE record_id = 'ended'"
            )
            # As many as are open, and more than there are.
            for limit in (1 if len(asked) == 1 else 3, 5):
                sql, args = query_sql(Query(status=asked, limit=limit, order=sorted_by), [])
                begin = next(counted)
                assert {row[4] for row in connection.execute(sql, args)} == set(asked) - {Status.NEEDS_APPROVAL}
                instructions.append(next(counted) - begin)

    assert instructions[2:] == instructions[:2]


@pytest.mark.parametrize("instructions", range(1, 8))
async def test_a_look_whose_time_is_up_before_it_begins_leaves_no_transaction_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instructions: int
) -> None:
    monkeypatch.setattr(at_once, "AT_ONCE_SECONDS", -1.0)
    monkeypatch.setattr(at_once, "_INSTRUCTIONS", instructions)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()

    assert [await ledger.setting("none") for _ in range(9)] == [None] * 9
    await ledger.close()


async def test_a_claim_that_finds_nothing_waits_for_no_writer(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await start_all(ledger, ["a"])
    [taken] = (await claim(ledger, slot(), worker="w")).records

    with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        nothing = await asyncio.wait_for(ledger.claim(Claim("c2", "w", (slot(),), 1)), 5)
        writer.execute("COMMIT")

    assert taken.record_id == "a" and nothing.records == () and nothing.epoch == 1
    await ledger.close()


async def test_what_this_process_writes_wakes_no_worker_and_what_another_writes_does(tmp_path: Path) -> None:
    ledger, other = SqliteLedger(tmp_path / "ledger.db"), SqliteLedger(tmp_path / "ledger.db")
    await ledger.open()
    await other.open()
    await start_all(ledger, ["a"])
    [row] = (await claim(ledger, slot(), worker="w")).records
    await asyncio.wait_for(ledger.wait_for_work(60), 10)  # the opening of the other

    waiting = asyncio.ensure_future(ledger.wait_for_work(60))
    for _ in range(3):
        row = applied(await settle(ledger, row, Saved("{}")))
        done, _ = await asyncio.wait({waiting}, timeout=3 * GLANCE_SECONDS)
        assert not done
    await start_all(other, ["b"])
    await asyncio.wait_for(waiting, 10)
    for one in (ledger, other):
        await one.close()
