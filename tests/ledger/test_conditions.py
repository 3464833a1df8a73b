"""Every condition, asked of a row and asked of a store by its SQL, finds the same rows among random ones."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import psycopg
import pytest

from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.ledger.sqlite.view import View
from quire.model.change import Order, Slot
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import UNDO, Record, Status, new_record
from quire.model.row import replace
from quire.model.side import Control, Fanin, Worker
from quire.rules import conditions
from quire.rules.rows import Rows
from tests.ledger.conftest import MakeLedger

NOW = 1000.0
#: Moments before, at and after now; and nearly now.
MOMENTS = [NOW - 10, NOW - 1e-6, NOW, NOW + 1e-6, NOW + 10]
WORKFLOWS = ["w", "it's"]
SLOTS = [Slot(workflow, step, 60.0, version=version) for workflow in WORKFLOWS for step in "ab" for version in (1, 2)]
RECORDS, OTHERS = 3000, 300


class Rowset:
    """Random rows of every kind that a condition asks of."""

    def __init__(self, seed: int) -> None:
        pick = random.Random(seed)
        some = pick.choice
        self.controls = [
            Control(scope, False, some([0, 2, 4]), False, "ann", 1.0, "") for scope in ("*", *WORKFLOWS) if some((1, 0))
        ]
        self.workers = [
            Worker(
                worker_id=f"w{n}",
                label="",
                host="h",
                boot_id="b",
                pid=n,
                started_at=1.0,
                expires_at=some([*MOMENTS, NOW - 3.001, NOW - 3.0, NOW - 2.999]),
                lease_seconds=30.0,
                closed=some([None, None, "farewell"]),
                knows="[]",
            )
            for n in range(OTHERS)
        ]
        self.fanins = [
            Fanin(f"p{n}", 1, f"k{n}", 3, some([0, 1]), 0, 0, None, 0, 0, f"p{n}/", some([True, False]))
            for n in range(OTHERS)
        ]
        self.receipts = [
            replace(_RECEIPT, key=f"k{n}", stage=some(list(Stage)), act_by=some([None, *MOMENTS]), worker=f"w{n}")
            for n in range(OTHERS // 2)
        ]
        self.records = [self._record(n, some) for n in range(RECORDS)]

    def _record(self, n: int, some: Callable[[Any], Any]) -> Record:
        status = some(list(Status))
        child = some([True, False])
        return replace(
            new_record(record_id=f"r{n:05}", workflow=some(WORKFLOWS), step=some(["a", "b", UNDO]), data="{}", now=1.0),
            status=status,
            due_at=some([None, *MOMENTS]),
            run_until=some([None, *MOMENTS]),
            worker=f"w{some(range(OTHERS))}" if status is Status.RUNNING else None,
            epoch=some([1, 2, 3, 4]),
            code_version=some([1, 2, 3]),
            open_intents=some([0, 0, 1]),
            cancel=some([None, "{}"]),
            parent_id=f"p{some(range(OTHERS))}" if child else None,
            generation=some([1, 2]) if child else None,
            place=0 if child else None,
            counted=some([True, False]),
            priority=some([-1, 0, 2]),
        )

    def abandoned(self) -> list[tuple[Record, Fanin]]:
        fanins = {(fanin.parent_id, fanin.generation): fanin for fanin in self.fanins}
        pairs = ((row, fanins.get((row.parent_id or "", row.generation or 0))) for row in self.records)
        return [(row, fanin) for row, fanin in pairs if fanin is not None and conditions.abandoned(row, fanin)]


_RECEIPT = Receipt(
    key="k",
    record_id="r00000",
    step="a",
    visit=1,
    name="act",
    kind=Kind.ONCE,
    stage=Stage.INTENDED,
    nonce="n",
    seq=1,
    at=1.0,
)


@pytest.fixture(scope="module", params=[1, 2])
def made(request: pytest.FixtureRequest) -> Rowset:
    return Rowset(request.param)


@pytest.fixture
def filled(made: Rowset, make_ledger: MakeLedger) -> Ledger:
    """A ledger with these rows, which is closed again."""
    ledger = make_ledger()
    asyncio.run(_fill(ledger, made))
    return ledger


async def _fill(ledger: Ledger, made: Rowset) -> None:
    await ledger.open()
    await ledger.order(Order("seal", "*", "test"))
    for type_, rows in (
        (Record, made.records),
        (Receipt, made.receipts),
        (Fanin, made.fanins),
        (Worker, made.workers),
        (Control, made.controls),
    ):
        await ledger.restore(type_, rows, 5)
    await ledger.close()


class Store:
    """What a SQL store is asked: the keys of the rows that fulfil a condition."""

    def __init__(self, ask: Callable[[str], list[tuple[Any, ...]]], *, postgres: bool) -> None:
        self._ask = ask
        self._postgres = postgres
        #: How it spells what may be claimed.
        self.waits = "queue IS NOT NULL" if postgres else conditions.WAITS

    def found(self, keys: str, rest: str) -> set[Any]:
        rows = self._ask(f"SELECT {keys} FROM {rest}")
        return {row[0] if len(row) == 1 else row for row in rows}

    def queued(self, slot: Slot) -> str:
        workflow, step = text(slot.workflow), text(slot.step)
        if self._postgres:
            return f"workflow = {workflow} AND queue = {step} AND rank IS NOT NULL"
        return conditions.queued_sql(workflow=workflow, step=step)


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


@pytest.fixture
def store(filled: Ledger) -> Iterator[Store]:
    if isinstance(filled, MemoryLedger):
        pytest.skip("this store asks by the predicates")
    if isinstance(filled, SqliteLedger):
        db = sqlite3.connect(filled.path)
        yield Store(lambda sql: db.execute(sql).fetchall(), postgres=False)
        db.close()
        return
    url = filled.url.partition("?")[0]
    with psycopg.connect(url, autocommit=True, options="-c search_path=quire") as connection:
        yield Store(lambda sql: connection.execute(sql.encode()).fetchall(), postgres=True)


# -- predicate and SQL ---------------------------------------------------------------------------------------------

#: For each condition: what the predicate finds among the rows, and what the store finds.
Asked = Iterator[tuple[str, set[Any], set[Any]]]


def _of_records(made: Rowset, store: Store) -> Asked:
    def ids(fits: Callable[[Record], bool]) -> set[str]:
        return {row.record_id for row in made.records if fits(row)}

    for slot in SLOTS:
        for floor in (0, 2, 3):
            sql = conditions.due_sql(store.queued(slot), now=f"{NOW!r}", floor=f"{floor}", version=f"{slot.version}")
            by_predicate = ids(lambda row, slot=slot, floor=floor: conditions.due(row, slot, NOW, floor))  # type: ignore[misc]
            yield f"due at {slot} from {floor}", by_predicate, store.found("record_id", f"records WHERE {sql}")
    sql = conditions.overdue_sql(now=repr(NOW))
    by_predicate = ids(lambda row: conditions.overdue(row, NOW))
    yield "overdue", by_predicate, store.found("record_id", f"records WHERE {sql}")
    sql = f"{conditions.LEFT_ALONE} AND {conditions.abandoned_sql(store.waits)}"
    by_predicate = {row.record_id for row, _ in made.abandoned()}
    found = store.found("record_id", f"fanins JOIN records USING (parent_id, generation) WHERE {sql}")
    yield "abandoned", by_predicate, found


def _of_halts(made: Rowset, store: Store) -> Asked:
    sql = conditions.cancelled_sql(store.waits, scope="scope", floor="floor")
    by_predicate = {row.record_id for row in made.records if conditions.cancelled(row, made.controls)}
    yield "cancelled", by_predicate, store.found("record_id", f"controls CROSS JOIN records WHERE {sql}")
    seen = {(row.record_id, str(conditions.as_seen(row, made.controls).status)) for row in made.records}
    assert seen != {(row.record_id, str(row.status)) for row in made.records}
    yield "seen", seen, store.found(f"record_id, {conditions.seen_status_sql(made.controls)}", "records")


def _of_others(made: Rowset, store: Store) -> Asked:
    sql = conditions.expired_sql(now=repr(NOW))
    by_predicate = {worker.worker_id for worker in made.workers if conditions.expired(worker, NOW)}
    yield "expired", by_predicate, store.found("worker_id", f"workers WHERE {sql}")
    intents = [receipt for receipt in made.receipts if receipt.open]
    running = [row for row in made.records if row.status is Status.RUNNING]
    sql = conditions.forgotten_sql(before=repr(NOW))
    by_predicate = {w.worker_id for w in made.workers if conditions.forgotten(w, NOW, intents, running)}
    yield "forgotten", by_predicate, store.found("worker_id", f"workers WHERE {sql}")
    by_predicate = {receipt.key for receipt in made.receipts if conditions.acting(receipt, NOW)}
    yield "acting", by_predicate, store.found("key", f"receipts WHERE {conditions.acting_sql(now=repr(NOW))}")


def test_predicate_and_sql_find_the_same_rows(made: Rowset, store: Store) -> None:
    for asked in (_of_records, _of_halts, _of_others):
        for name, by_predicate, by_sql in asked(made, store):
            assert by_predicate, f"no row is {name}: the test shows nothing"
            assert by_sql == by_predicate, name


# -- what a store lets the verbs see -------------------------------------------------------------------------------


@pytest.fixture
def rows(filled: Ledger) -> Iterator[Rows]:
    if isinstance(filled, MemoryLedger):
        yield filled.tables
    elif isinstance(filled, SqliteLedger):
        db = sqlite3.connect(filled.path)
        yield View(db)
        db.close()
    else:
        pytest.skip("this store reads in flushes, and has no such rows")


def test_the_rows_of_a_store_are_those_of_the_conditions(made: Rowset, rows: Rows) -> None:
    def ids(found: Iterable[Record]) -> list[str]:
        return sorted(row.record_id for row in found)

    for slot in SLOTS:
        due = [row for row in made.records if conditions.due(row, slot, NOW, 2)]
        found = rows.due(slot, NOW, 2, len(due) + 1)
        assert ids(found) == ids(due)
        assert [row.rank for row in found] == sorted(row.rank for row in due if row.rank is not None)
        assert [row.rank for row in rows.due(slot, NOW, 2, 5)[:5]] == [row.rank for row in found[:5]]
        later = {row.due_at for row in made.records if conditions.waits(row) and row.due_at and row.due_at > NOW}
        assert rows.next_due(slot, NOW) in later
    assert ids(rows.overdue(NOW)) == ids(row for row in made.records if conditions.overdue(row, NOW))
    cancelled = [row for row in made.records if conditions.cancelled(row, made.controls)]
    assert ids(rows.cancelled(list(rows.orders()), RECORDS)) == ids(cancelled)
    abandoned = sorted((row.record_id, fanin.parent_id) for row, fanin in made.abandoned())
    assert sorted((row.record_id, fanin.parent_id) for row, fanin in rows.abandoned(RECORDS)) == abandoned
    assert len(rows.abandoned(3)) == 3
    assert {worker.worker_id for worker in rows.open_workers()} == {w.worker_id for w in made.workers if not w.closed}
    worker = next(row.worker for row in made.records if row.worker)
    assert ids(rows.held_by(worker)) == ids(row for row in made.records if row.worker == worker)
