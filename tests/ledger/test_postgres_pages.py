"""Lines that are written of many records at once are one row, and read as if each were its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import cast

import psycopg
import pytest

from quire.ledger.base import Ledger
from quire.ledger.postgres import pages as postgres_leaves
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.log import _horizon
from quire.ledger.postgres.pages import FEW, ROOM
from quire.ledger.postgres.server import NUMBER_BITS
from quire.model.change import Applied, Change, Query
from quire.model.event import Event, first_break
from quire.model.record import Record, Status
from quire.model.row import field_values, replace
from quire.rules.outcome import Done, Next
from quire.testing import LedgerConformance, ToldClock
from quire.testing.conformance import applied, beat, claim, new_settle, new_start, slot, start, start_all
from quire.testing.conformance.suite import Together
from quire.testing.postgres import PostgresServer
from tests.ledger import test_postgres
from tests.ledger.conftest import EmptiedDatabase, MakeLedger, postgres_ledgers
from tests.ledger.stepping import step_postgres
from tests.ledger.test_postgres import raw

NAMES = [f"r{n:03}" for n in range(3 * FEW)]


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, empty_ledger_in_postgres: str) -> Iterator[str]:
    """An empty ledger."""
    url = postgres_server.create_database(copied=empty_ledger_in_postgres)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def new_url(postgres_server: PostgresServer, empty_ledger_in_postgres: str) -> Iterator[str]:
    """Another one."""
    url = postgres_server.create_database(copied=empty_ledger_in_postgres)
    yield url
    postgres_server.drop_database(url)


class TestLeaves(LedgerConformance):
    """The whole contract, with a leaf for every line that may be in one."""

    @pytest.fixture(autouse=True)
    def all_in_leaves(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_leaves, "FEW", 1)

    @pytest.fixture
    def make_ledger(self, emptied_database: EmptiedDatabase, clock: ToldClock) -> MakeLedger:
        return postgres_ledgers(emptied_database(), clock)

    @pytest.fixture
    def twin(self, make_ledger: MakeLedger) -> Ledger:
        return make_ledger()

    @pytest.fixture
    def emptied(self, emptied_database: EmptiedDatabase) -> Callable[[], object]:
        return cast("Callable[[], object]", emptied_database)

    @pytest.fixture
    def together(self, emptied_database: EmptiedDatabase) -> Iterator[Together]:
        with psycopg.connect(emptied_database(), autocommit=True) as watcher:
            yield step_postgres(watcher)


@asynccontextmanager
async def opened(url: str, count: int, clock: ToldClock) -> AsyncIterator[list[PostgresLedger]]:
    """Ledgers that know how things stand: the first commit of a process is decided under locks."""
    async with test_postgres.opened(url, count, clock) as ledgers:
        for ledger in ledgers:
            await beat(ledger)
            await claim(ledger)
        yield ledgers


async def worked(ledger: PostgresLedger, clock: ToldClock) -> list[Record]:
    """Records that were started, claimed, moved on twice while they stayed, and ended, all together."""
    await start_all(ledger, NAMES)
    clock.advance(1)
    await beat(ledger)
    records = list((await claim(ledger, limit=len(NAMES))).records)
    for n in range(2):
        clock.advance(1)
        moves = [new_settle(row, Next(row.step, f'{{"n":{n}}}'), clock.now(), keep=slot()) for row in records]
        records = [applied(verdict) for verdict in await ledger.commit(named(moves, f"move{n}"))]
        assert {row.status for row in records} == {Status.RUNNING}
    clock.advance(1)
    ends = [new_settle(row, Done('"done"', row.data), clock.now()) for row in records]
    return [applied(verdict) for verdict in await ledger.commit(named(ends, "end"))]


def named(changes: list[Change], word: str) -> list[Change]:
    """The same ids each time the scenario is run."""
    return [replace(change, change_id=f"{word}-{change.record_id}") for change in changes]


async def rows_in(url: str, table: str) -> int:
    async with raw(url) as connection:
        found = await (await connection.execute(f"SELECT count(*) FROM {table}".encode())).fetchone()
        assert found is not None
        return int(found[0])


async def whole_log(ledger: Ledger, page: int = 10_000) -> list[Event]:
    lines: list[Event] = []
    while more := await ledger.events(after=lines[-1].seq if lines else 0, limit=page):
        lines += more
    return lines


def bare(lines: list[Event]) -> list[Event]:
    """Without what differs from one ledger to the next: numbers, and ids that are made anew."""
    return [replace(line, seq=0, change_id="") for line in lines]


async def test_lines_in_leaves_are_those_that_would_be_rows(
    postgres_url: str, new_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = []
    for url, few in ((postgres_url, FEW), (new_url, 10_000)):
        monkeypatch.setattr(postgres_leaves, "FEW", few)
        clock = ToldClock()
        async with opened(url, 1, clock) as [ledger]:
            await worked(ledger, clock)
            of_each = {name: await ledger.events(record_id=name) for name in NAMES}
            assert of_each == await ledger.logs(NAMES)
            assert all(first_break(lines) is None for lines in of_each.values())
            assert sorted((line for lines in of_each.values() for line in lines), key=field_values) == await whole_log(
                ledger
            )
            logs.append(of_each)
    assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (0, 5)
    assert (await rows_in(new_url, "events"), await rows_in(new_url, "leaves")) == (5 * len(NAMES), 0)

    in_leaves, in_rows = ({name: bare(lines) for name, lines in log.items()} for log in logs)
    for lines in [*in_leaves.values(), *in_rows.values()]:
        assert [line.kind for line in lines] == ["started", "claimed", "moved", "moved", "done"]
    # The names of runs are made of the claim's id; all else is the same to the byte, and so are the hashes before it.
    for name in NAMES:
        assert in_leaves[name][0] == in_rows[name][0]
        assert [field_values(line)[:6] for line in in_leaves[name]] == [
            field_values(line)[:6] for line in in_rows[name]
        ]


@pytest.mark.parametrize("page", [1, 7, FEW, 1000])
async def test_pages_of_the_log_have_every_line_once_in_order(postgres_url: str, page: int) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await start(ledger, "before")
        await worked(ledger, clock)
        await start(ledger, "after")

        lines = await whole_log(ledger, page)

        assert len(lines) == 5 * len(NAMES) + 2
        assert all(one.seq < other.seq for one, other in pairwise(lines))
        assert [lines[0].record_id, lines[-1].record_id] == ["before", "after"]
        assert await ledger.events(after=lines[-1].seq) == []
        dumped: list[Event] = []
        while more := await ledger.dump(Event, after=(dumped[-1].seq,) if dumped else (), limit=page):
            dumped += more
        assert dumped == lines


async def test_a_batch_in_a_leaf_that_is_sent_again_gets_its_first_verdicts(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        await start_all(ledger, NAMES)
        await beat(ledger)
        taken = (await claim(ledger, limit=len(NAMES))).records
        moves = [new_settle(row, Next(row.step, "{}"), clock.now(), keep=slot()) for row in taken]
        first = await ledger.commit(moves)
        # They have gone on since, in a leaf of their own.
        await ledger.commit([new_settle(applied(verdict), Done("1", "{}"), clock.now()) for verdict in first])

        for again in (await ledger.commit(moves), await other.commit(moves)):
            assert [type(verdict) for verdict in again] == [Applied] * len(moves)
            assert all(isinstance(verdict, Applied) and verdict.again for verdict in again)
        assert len(await whole_log(ledger)) == 4 * len(NAMES)


async def test_a_record_that_others_had_meanwhile_keeps_all_of_its_log(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        await start_all(ledger, NAMES)
        for one, worker in ((ledger, "w1"), (other, "w2")) * 2:
            await beat(one, worker)
            taken = (await claim(one, worker=worker, limit=len(NAMES))).records
            back = [new_settle(row, Next(row.step, "{}"), clock.now(), worker=worker) for row in taken]
            assert [type(verdict) for verdict in await one.commit(back)] == [Applied] * len(NAMES)
            clock.advance(1)

        assert await rows_in(postgres_url, "events") == 0
        for lines in (await ledger.logs(NAMES)).values():
            assert [line.n for line in lines] == list(range(1, 10))
            assert first_break(lines) is None


async def test_long_lines_and_few_lines_are_rows(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await start_all(ledger, NAMES)
        await beat(ledger)
        taken = (await claim(ledger, limit=len(NAMES))).records
        assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (0, 2)

        few = [new_settle(row, Done("1", "{}"), clock.now()) for row in taken[: FEW - 1]]
        await ledger.commit(few)
        assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (FEW - 1, 2)

        long = "x" * (ledger.traits.inline_bytes + 1)
        ends = [new_settle(row, Done("1", "{}"), clock.now()) for row in taken[FEW - 1 :]]
        ends[0] = replace(ends[0], lines=(replace(ends[0].lines[0], body=f'{{"long":"{long}"}}'),))
        await ledger.commit(ends)
        assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (len(NAMES), 2)
        assert (await ledger.tidy(0.0)).blobs == 0
        for lines in (await ledger.logs(NAMES)).values():
            assert len(lines) == 3 and first_break(lines) is None
        # A log that goes on in rows, and then in a leaf again, is found as a whole.
        assert len(await ledger.find(Query(status=(Status.DONE,), limit=1000))) == len(NAMES)


async def test_records_that_begin_where_they_are_started_keep_all_of_their_logs(postgres_url: str) -> None:
    clock = ToldClock()
    for lines in (None, ()):  # with and without a line of their own for the start
        async with opened(postgres_url, 1, clock) as [ledger]:
            starts = [replace(new_start(f"{name}{lines}", clock.now()), worker="w1", keep=slot()) for name in NAMES]
            if lines is not None:
                starts = [replace(change, lines=lines) for change in starts]
            begun = [applied(verdict) for verdict in await ledger.commit(starts)]
            assert {row.status for row in begun} == {Status.RUNNING}
            await ledger.commit([new_settle(row, Done("1", "{}"), clock.now()) for row in begun])

            for log in (await ledger.logs([row.record_id for row in begun])).values():
                assert [line.kind for line in log] == (["started"] if lines is None else []) + ["claimed", "done"]
                assert first_break(log) is None


async def test_pages_of_one_log_have_every_line_once(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await worked(ledger, clock)
        lines = await ledger.events(record_id=NAMES[3])

        for n, line in enumerate(lines, 1):
            assert await ledger.events(record_id=NAMES[3], after=line.seq) == lines[n:]
            assert await ledger.events(record_id=NAMES[3], after=line.seq, limit=1) == lines[n : n + 1]
        assert await ledger.logs([NAMES[3]] * 2) == {NAMES[3]: lines}
        await start(ledger, "alone")  # as a row
        assert len((await ledger.logs(["alone"] * 2))["alone"]) == 1


async def test_a_log_goes_from_leaves_to_rows_and_back(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await start_all(ledger, NAMES)
        await beat(ledger)
        records = list((await claim(ledger, limit=len(NAMES))).records)

        def moved(some: list[Record]) -> list[Change]:
            return [new_settle(row, Next(row.step, "{}"), clock.now(), keep=slot()) for row in some]

        alone, *others = records
        [alone] = [applied(verdict) for verdict in await ledger.commit(moved([alone]))]
        await ledger.commit(moved([alone, *others]))

        assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (1, 3)
        lines = await ledger.events(record_id=alone.record_id)
        assert [line.kind for line in lines] == ["started", "claimed", "moved", "moved"]
        assert first_break(lines) is None


async def test_lines_of_a_leaf_are_forgotten_one_by_one_and_the_last_takes_it_with_it(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await worked(ledger, clock)
        lines = await whole_log(ledger)
        some = lines[::2]
        not_these = [replace(lines[1], hash="another")]

        assert await ledger.forget(some + not_these) == len(some)
        assert await whole_log(ledger) == lines[1::2]
        assert await ledger.forget(some) == 0
        for name in NAMES:
            assert await ledger.events(record_id=name) == [line for line in lines[1::2] if line.record_id == name]

        assert await ledger.forget(lines) == len(lines) - len(some)
        assert await whole_log(ledger) == []
        assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (0, 0)
        assert await ledger.forget([]) == 0


async def test_a_leaf_that_leads_to_others_stays_until_they_are_gone(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await worked(ledger, clock)
        lines = await whole_log(ledger)
        oldest, *rest = ([line for line in lines if line.n == n] for n in range(1, 6))

        for leaf in rest:
            assert await ledger.forget(leaf) == len(NAMES)
        assert await whole_log(ledger) == oldest
        assert await ledger.events(record_id=NAMES[0]) == [oldest[0]]

        assert await ledger.forget(oldest) == len(NAMES)
        assert await rows_in(postgres_url, "leaves") == 4

    async with opened(postgres_url, 1, clock) as [ledger]:
        assert await whole_log(ledger) == []


async def test_lines_that_are_forgotten_leave_no_text_behind(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await worked(ledger, clock)
        lines = await whole_log(ledger)
        kept = [line for line in lines if line.record_id == NAMES[0]]

        await ledger.forget([line for line in lines if line.record_id != NAMES[0]])

        assert await whole_log(ledger) == kept
        async with raw(postgres_url) as connection:
            found = await (await connection.execute("SELECT body FROM leaves ORDER BY seq")).fetchall()
        for line, (bodies,) in zip(kept, found, strict=True):
            assert [body for body in bodies if body] == [line.body]


async def test_an_archive_that_goes_forward_leaves_nothing_behind(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await worked(ledger, clock)
        while page := await ledger.events(limit=25):
            assert await ledger.forget(page) == len(page)
        assert (await rows_in(postgres_url, "events"), await rows_in(postgres_url, "leaves")) == (0, 0)


async def test_a_copy_has_the_same_log(postgres_url: str, new_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger], opened(new_url, 1, clock) as [copy]:
        await worked(ledger, clock)
        async with raw(new_url) as connection:
            await connection.execute("UPDATE ledger SET sealed = 'being made'")
        for row_type in (Record, Event):
            rows = await ledger.dump(row_type, limit=10_000)
            await copy.restore(row_type, rows, 1)
        async with raw(new_url) as connection:
            await connection.execute("UPDATE ledger SET sealed = ''")

        assert await copy.logs(NAMES) == await ledger.logs(NAMES)
        await start(copy, "later")
        assert (await whole_log(copy))[:-1] == await whole_log(ledger)


def test_the_horizon_is_the_last_number_that_nobody_may_fill() -> None:
    assert _horizon(5000, []) == 5000 + ROOM - 1
    assert _horizon(5000, [3976, 2952]) == 2952 + ROOM - 1
    assert _horizon(5000, [6024]) == 5000 + ROOM - 1  # it began after the look
    far = (1 << 40) + 5000  # longer than the name of a lock
    assert _horizon(far, [3976]) == far - ROOM + ROOM - 1
    assert _horizon(far, [NUMBER_BITS - 20]) == (1 << 40) - 21 + ROOM - 1
