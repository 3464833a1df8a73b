"""Flushes that follow each other on one connection to PostgreSQL, before the first is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from quire.clock import SYSTEM
from quire.errors import LedgerError, LedgerUnavailable
from quire.ledger.postgres import wire as postgres_wire
from quire.ledger.postgres.address import Address
from quire.ledger.postgres.fast.commits import MANY
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.pool import Pool
from quire.ledger.postgres.wire import Clash, Lost, Wire, Wrong
from quire.model.change import Applied, Change, Claim, Query, Verdict
from quire.model.record import Status
from quire.rules.outcome import Done
from quire.testing.conformance import beat, claim, new_settle, slot, start_all
from quire.testing.postgres import PostgresServer
from tests.ledger.test_postgres import Proxy, opened, raw, somebody_waits

Rows = list[tuple[Any, ...]]

#: Nothing here takes so long, unless somebody waits for what never comes.
SOON = 5.0
#: Waits until nobody holds the lock by this name.
WAITS = "SELECT 'waited' FROM pg_advisory_xact_lock($1::bigint)"
LONG = "x" * 20_000_000


@pytest.fixture(scope="module")
def shared_url(postgres_server: PostgresServer, empty_ledger_in_postgres: str) -> Iterator[str]:
    url = postgres_server.create_database(copied=empty_ledger_in_postgres)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def url(shared_url: str) -> str:
    """A database; these tests leave nothing in it."""
    return shared_url


@pytest.fixture
def ledger_url(postgres_server: PostgresServer, empty_ledger_in_postgres: str) -> Iterator[str]:
    """An empty ledger."""
    url = postgres_server.create_database(copied=empty_ledger_in_postgres)
    yield url
    postgres_server.drop_database(url)


class Counted:
    """Connections made, and how many of them are not closed."""

    def __init__(self, url: str) -> None:
        self._address = Address(url)
        self.wires: list[Wire] = []

    async def __call__(self) -> Wire:
        wire = await self._address.connect({})
        self.wires.append(wire)
        return wire

    @property
    def open(self) -> int:
        return sum(not wire._connection.closed for wire in self.wires)


@asynccontextmanager
async def a_lane(connect: Callable[[], Awaitable[Wire]], size: int = 1) -> AsyncIterator[Pool]:
    lane = Pool(connect, size)
    try:
        yield lane
    finally:
        await lane.close()


@asynccontextmanager
async def locked(url: str, name: int = 1) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """The lock by this name is another's; until the end, or until what is given is called."""
    async with raw(url) as connection:
        await connection.execute("SELECT pg_advisory_lock(%s)", [name])
        yield lambda: connection.execute("SELECT pg_advisory_unlock_all()")


async def asked(lane: Pool, *statements: tuple[Any, ...], last: bool = True) -> Rows:
    """One flush on a connection of the lane, behind others if need be; answers what the last statement found."""
    async with lane.wire(behind=True) as wire:
        for sql, *params in statements:
            wire.send(sql, *params)
        return (await wire.flush(commits=True, last=last))[-1].rows()


def begun(work: Awaitable[Rows]) -> asyncio.Future[Rows]:
    return asyncio.ensure_future(work)


async def turns(count: int = 20) -> None:
    """Let the others run until they wait for something."""
    for _ in range(count):
        await SYSTEM.sleep(0)


async def ends(*tasks: asyncio.Future[Any]) -> list[Any]:
    async with asyncio.timeout(SOON):
        return await asyncio.gather(*tasks, return_exceptions=True)


def when_full(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when somebody waits for room to send."""
    full, real = asyncio.Event(), Wire._room

    async def room(wire: Wire) -> None:
        full.set()
        await real(wire)

    monkeypatch.setattr(Wire, "_room", room)
    return full


def landed(error: object) -> bool:
    assert isinstance(error, Lost)
    return error.landed


# -- answers -----------------------------------------------------------------------------------------------------


async def test_what_is_sent_behind_another_flush_gets_its_own_answer(url: str) -> None:
    connect = Counted(url)
    async with locked(url) as unlock, a_lane(connect, 3) as lane:
        first = begun(asked(lane, (WAITS, 1)))
        await somebody_waits(url)
        others = [begun(asked(lane, ("SELECT $1::text", f"{n}"))) for n in range(5)]
        await turns()
        assert not any(other.done() for other in others)
        await unlock()

        assert await ends(first, *others) == [[("waited",)], *[[(f"{n}",)] for n in range(5)]]
        assert len(connect.wires) == 1
        assert lane._count == 1


async def test_a_block_that_would_rather_not_wait_has_a_connection_of_its_own(url: str) -> None:
    connect = Counted(url)
    async with locked(url) as unlock, a_lane(connect, 2) as lane:
        first = begun(asked(lane, (WAITS, 1)))
        await somebody_waits(url)

        async with lane.wire() as wire:
            assert await wire.ask("SELECT 2") == [(2,)]
        assert not first.done()
        assert len(connect.wires) == 2
        await unlock()
        await first


@pytest.mark.parametrize(
    ("fails", "error"),
    [("SELECT 1 / $1::int", Wrong), ("INSERT INTO twice VALUES ($1::int), ($1::int)", Clash)],
    ids=["wrong", "clash"],
)
async def test_a_flush_that_fails_fails_alone(url: str, fails: str, error: type[Exception]) -> None:
    async with locked(url) as unlock, a_lane(Counted(url)) as lane:
        await asked(lane, ("CREATE TEMP TABLE twice (n int PRIMARY KEY)",), ("SELECT 1",))
        first = begun(asked(lane, (WAITS, 1), (fails, 0)))
        await somebody_waits(url)
        second = begun(asked(lane, ("SELECT 2",)))
        await turns()
        await unlock()

        failed, answer = await ends(first, second)
        assert isinstance(failed, error)
        assert answer == [(2,)]
        assert await asked(lane, ("SELECT 3",)) == [(3,)]


async def test_what_stands_on_a_statement_that_was_not_prepared_is_repeated(url: str) -> None:
    new = ("SELECT $1::text || 'new'", "is ")
    async with locked(url) as unlock, a_lane(Counted(url)) as lane:
        first = begun(asked(lane, (WAITS, 1), ("SELECT 1 / $1::int", 0), new))
        await somebody_waits(url)
        others = [begun(asked(lane, new)) for _ in range(2)]
        await turns()
        await unlock()

        failed, *clashes = await ends(first, *others)
        assert isinstance(failed, Wrong)
        assert [type(clash) for clash in clashes] == [Clash, Clash]
        assert await asked(lane, new) == [("is new",)]


async def test_a_transaction_of_several_flushes_begins_when_what_was_sent_before_it_has_ended(url: str) -> None:
    async with locked(url) as unlock, a_lane(Counted(url)) as lane:
        await asked(lane, ("CREATE TEMP TABLE kept (n int)",), ("SELECT 1",))
        first = begun(asked(lane, ("INSERT INTO kept VALUES (1)",), (WAITS, 1), ("SELECT 1 / $1::int", 0)))
        await somebody_waits(url)

        async def several() -> Rows:
            async with lane.wire() as wire:
                for sql in ("BEGIN", "INSERT INTO kept VALUES (2)", "INSERT INTO kept VALUES (3)", "COMMIT"):
                    await wire.ask(sql)
                return await wire.ask("SELECT n FROM kept ORDER BY n")

        second = begun(several())
        await turns()
        await unlock()

        failed, answer = await ends(first, second)
        assert isinstance(failed, Wrong)
        assert answer == [(2,), (3,)]


@pytest.mark.parametrize("begins", [True, False], ids=["in a transaction", "with nothing sent"])
async def test_what_is_rolled_back_behind_another_flush_takes_nothing_with_it(url: str, begins: bool) -> None:
    connect = Counted(url)
    async with locked(url) as unlock, a_lane(connect) as lane:
        await asked(lane, ("CREATE TEMP TABLE kept (n int)",), ("SELECT 1",))
        first = begun(asked(lane, ("INSERT INTO kept VALUES (1)",), (WAITS, 1)))
        await somebody_waits(url)

        async def regrets() -> Rows:
            async with lane.wire() as wire:
                if begins:
                    wire.send("BEGIN")
                    wire.send("INSERT INTO kept VALUES (2)")
                await wire.rollback()
                assert wire.clean
            return await asked(lane, ("SELECT n FROM kept",))

        second = begun(regrets())
        await turns()
        await unlock()

        assert await ends(first, second) == [[("waited",)], [(1,)]]
        assert len(connect.wires) == 1


async def test_an_answer_that_comes_while_more_is_being_sent_is_heard_at_once(url: str) -> None:
    connect = Counted(url)
    async with locked(url, 2), a_lane(connect) as lane:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(1)")
            first = begun(asked(lane, (WAITS, 1)))
            await somebody_waits(url)
            async with lane.wire(behind=True) as wire:
                # From here on nothing that comes is heard, until the server has answered and the socket is full.
                other.execute("SELECT pg_advisory_unlock(1)")
                is_idle = "SELECT FROM pg_stat_activity WHERE pid = %s AND state = 'idle'"
                while other.execute(is_idle, [wire.pid]).fetchone() is None:
                    pass
                wire.send("SELECT length($1)", LONG)
                wire.send(WAITS, 2)
                second = asyncio.ensure_future(wire.flush(commits=True, last=True))

                assert await ends(first) == [[("waited",)]]
                assert not second.done()
                second.cancel()
                await ends(second)


# -- connections that are lost -----------------------------------------------------------------------------------


async def test_all_that_is_under_way_on_a_lost_connection_may_have_landed(url: str) -> None:
    connect = Counted(url)
    async with locked(url), a_lane(connect) as lane:
        under_way = [begun(asked(lane, (WAITS, 1))) for _ in range(3)]
        await somebody_waits(url)
        await turns()
        assert len(connect.wires) == 1
        async with raw(url) as connection:
            await connection.execute("SELECT pg_terminate_backend(%s)", [connect.wires[0].pid])

        assert [landed(error) for error in await ends(*under_way)] == [True] * 3
        assert await asked(lane, ("SELECT 1",)) == [(1,)]
        assert (lane._count, connect.open) == (1, 1)


async def test_what_does_not_commit_behind_another_flush_has_not_landed(url: str) -> None:
    connect = Counted(url)
    async with locked(url), a_lane(connect) as lane:
        first = begun(asked(lane, (WAITS, 1)))
        await somebody_waits(url)

        async def several() -> Rows:
            async with lane.wire() as wire:
                return await wire.ask("BEGIN")

        second = begun(several())
        await turns()
        async with raw(url) as connection:
            await connection.execute("SELECT pg_terminate_backend(%s)", [connect.wires[0].pid])

        assert [landed(error) for error in await ends(first, second)] == [True, False]


async def test_a_connection_that_ends_while_more_is_being_sent_ends_all_that_is_under_way(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = when_full(monkeypatch)
    async with Proxy(url) as proxy, locked(url), a_lane(Counted(proxy.url)) as lane:
        first = begun(asked(lane, (WAITS, 1)))
        await somebody_waits(url)
        second = begun(asked(lane, ("SELECT length($1)", LONG)))
        await full.wait()
        proxy._writers[0].write_eof()  # nobody reads what is sent, so that there is never room

        assert [landed(error) for error in await ends(first, second)] == [True, True]


# -- tasks that are cancelled ------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [True, False], ids=["passed on", "kept"])
@pytest.mark.parametrize("gone", [0, 1, 2])
async def test_where_one_is_cancelled_nobody_reads_the_answer_of_another_or_waits_for_ever(
    url: str, gone: int, last: bool
) -> None:
    connect = Counted(url)
    async with locked(url) as unlock, a_lane(connect) as lane:
        tasks = [begun(asked(lane, (WAITS, 1), ("SELECT $1::text", "first")))]
        await somebody_waits(url)
        tasks += [
            begun(asked(lane, ("SELECT $1::text", name), last=of_it))
            for name, of_it in (("second", True), ("third", last))
        ]
        await turns()
        tasks[gone].cancel()
        await turns()
        after = begun(asked(lane, ("SELECT 'after'",)))
        await turns()
        await unlock()

        *answers, fourth = await ends(*tasks, after)
        assert isinstance(answers[gone], asyncio.CancelledError)
        for name, answer in zip(("first", "second", "third"), answers, strict=True):
            if name != ("first", "second", "third")[gone]:
                assert answer == [(name,)] or landed(answer)
        assert fourth == [("after",)]
        assert (lane._count, connect.open) == (1, 1)


async def test_a_flush_that_is_cancelled_while_it_is_being_sent_is_not_taken_for_the_next_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = when_full(monkeypatch)
    connect = Counted(url)
    async with locked(url), a_lane(connect) as lane:
        first = begun(asked(lane, (WAITS, 1)))
        await somebody_waits(url)
        second = begun(asked(lane, ("SELECT length($1)", LONG)))
        third = begun(asked(lane, ("SELECT 3",)))
        await full.wait()
        second.cancel()

        error, cancelled, answer = await ends(first, second, third)
        assert landed(error)
        assert isinstance(cancelled, asyncio.CancelledError)
        assert answer == [(3,)]
        assert (lane._count, connect.open) == (1, 1)


# -- lanes -------------------------------------------------------------------------------------------------------


async def test_a_lane_that_is_closed_leaves_nobody_waiting_and_no_connection_open(url: str) -> None:
    connect = Counted(url)
    async with locked(url), a_lane(connect, 2) as lane:
        under_way = [begun(asked(lane, (WAITS, 1))) for _ in range(2)]
        await somebody_waits(url, 2)
        await lane.close()

        assert [landed(error) for error in await ends(*under_way)] == [True, True]
        assert (lane._count, connect.open) == (0, 0)
        with pytest.raises(LedgerError, match="closed"):
            await asked(lane, ("SELECT 1",))


async def test_a_connection_that_is_made_while_its_lane_is_closed_does_not_stay(url: str) -> None:
    connect, go = Counted(url), asyncio.Event()

    async def slowly() -> Wire:
        await go.wait()
        return await connect()

    async with a_lane(slowly) as lane:
        late = begun(asked(lane, ("SELECT 1",)))
        await turns()
        await lane.close()
        go.set()

        assert await ends(late) == [[(1,)]]
        assert (lane._count, connect.open) == (0, 0)


async def test_connections_that_cannot_be_made_take_no_place(url: str) -> None:
    connect, fails = Counted(url), True

    async def sometimes() -> Wire:
        if fails:
            raise LedgerUnavailable("nobody answers")
        return await connect()

    async with a_lane(sometimes) as lane:
        errors = await ends(*[begun(asked(lane, ("SELECT 1",))) for _ in range(3)])
        assert [type(error) for error in errors] == [LedgerUnavailable] * 3
        assert lane._count == 0
        fails = False

        assert await ends(*[begun(asked(lane, ("SELECT 1",))) for _ in range(3)]) == [[(1,)]] * 3
        assert (lane._count, connect.open) == (1, 1)


async def test_a_lane_never_has_more_connections_than_its_size(url: str) -> None:
    connect = Counted(url)
    async with a_lane(connect, 2) as lane:

        async def several() -> Rows:
            async with lane.wire() as wire:
                await wire.ask("BEGIN")
                await wire.rollback()
            return []

        async def fails() -> Rows:
            async with lane.wire() as wire:
                wire.send("SELECT 1")
                raise Wrong

        work = [work() for _ in range(4) for work in (several, fails, lambda: asked(lane, ("SELECT 1",)))]
        tasks = [begun(each) for each in work]
        tasks[4].cancel()
        while not all(task.done() for task in tasks):
            assert connect.open <= 2
            assert lane._count <= 2
            await SYSTEM.sleep(0.001)
        await ends(*tasks)
        assert lane._count == connect.open
        assert await asked(lane, ("SELECT 1",)) == [(1,)]


async def test_a_connection_with_too_many_statements_is_replaced_also_if_it_is_always_passed_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_wire, "MOST_PREPARED", 10)
    connect = Counted(url)
    async with a_lane(connect) as lane:
        for n in range(31):
            assert await asked(lane, (f"SELECT {n}",)) == [(n,)]

        assert max(len(wire._names) for wire in connect.wires) <= 10
        assert connect.open == 1


# -- the ledger --------------------------------------------------------------------------------------------------


def asks(ledger: PostgresLedger, claim_id: str) -> asyncio.Future[list[str]]:
    """Claims ten records; answers their ids."""

    async def taken() -> list[str]:
        claimed = await ledger.claim(Claim(claim_id, "w1", (slot(),), 10))
        return [record.record_id for record in claimed.records]

    return asyncio.ensure_future(taken())


async def with_records(ledger: PostgresLedger, count: int) -> None:
    await start_all(ledger, [f"r{n:03}" for n in range(count)])
    await beat(ledger)


async def held_by(ledger: PostgresLedger) -> list[str]:
    found = await ledger.find(Query(status=(Status.RUNNING,), limit=500))
    return sorted(record.record_id for record in found)


async def test_two_claims_wait_at_the_server_on_one_connection(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        await with_records(ledger, 30)
        async with locked(ledger_url, ledger.server.control_key) as unlock:
            claims = [asks(ledger, name) for name in ("c1", "c2")]
            await somebody_waits(ledger_url)
            await turns()
            [wire] = ledger.server.claims._idle
            assert wire.under_way == 2
            await unlock()

            first, second = await ends(*claims)
        assert first == [f"r{n:03}" for n in range(10)]
        assert second == [f"r{n:03}" for n in range(10, 20)]


@pytest.mark.parametrize("gone", [None, 0, 1], ids=["the connection", "the first", "the second"])
async def test_what_is_lost_under_two_claims_is_found_again_by_each(ledger_url: str, gone: int | None) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        await with_records(ledger, 30)
        async with locked(ledger_url, ledger.server.control_key) as unlock:
            claims = [asks(ledger, name) for name in ("c1", "c2")]
            await somebody_waits(ledger_url)
            await turns()
            if gone is None:
                async with raw(ledger_url) as connection:
                    await connection.execute("SELECT pg_terminate_backend(%s)", [ledger.server.claims._idle[0].pid])
            else:
                claims[gone].cancel()
            await turns()
            await unlock()
            answers = await ends(*claims)

        left = [answer for n, answer in enumerate(answers) if n != gone]
        assert [len(answer) for answer in left] == [10] * len(left)
        told = sorted(record_id for answer in left for record_id in answer)
        assert len(set(told)) == len(told)
        assert set(told) <= set(await held_by(ledger))
        assert ledger.server.claims._count == 1


async def test_what_fails_after_it_was_passed_on_does_not_undo_what_the_next_one_does(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        lane = ledger.server.claims

        async def fails(wire: Wire) -> None:
            wire.send(WAITS, 1)
            wire.send("SELECT 1 / $1::int", 0)
            await wire.flush(commits=True, last=True)

        async def several(wire: Wire) -> Rows:
            wire.send("BEGIN")
            wire.send("CREATE TEMP TABLE kept (n int)")
            await wire.flush()
            await wire.ask("INSERT INTO kept VALUES (1), (2)")
            await wire.ask("COMMIT")
            return await wire.ask("SELECT n FROM kept")

        async with locked(ledger_url) as unlock:
            first = asyncio.ensure_future(ledger.server.transacted(lane, fails))
            await somebody_waits(ledger_url)
            second = asyncio.ensure_future(ledger.server.transacted(lane, several))
            await turns()
            await unlock()
            failed, answer = await ends(first, second)

        assert isinstance(failed, Wrong)
        assert answer == [(1,), (2,)]
        assert await ledger.server.transacted(lane, lambda wire: wire.ask("SELECT 3")) == [(3,)]


async def test_a_claim_that_is_given_up_for_want_of_an_answer_leaves_the_way_free(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        await with_records(ledger, 30)
        async with locked(ledger_url, ledger.server.control_key):
            ledger.patience = 0.1
            claims = [asks(ledger, name) for name in ("c1", "c2")]

            assert [type(error) for error in await ends(*claims)] == [LedgerUnavailable] * 2
        ledger.patience = 60.0

        assert len(await asks(ledger, "c3")) == 10
        assert ledger.server.claims._count == 1


async def test_a_ledger_that_is_closed_leaves_no_claim_waiting(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        await with_records(ledger, 30)
        async with locked(ledger_url, ledger.server.control_key):
            claims = [asks(ledger, name) for name in ("c1", "c2")]
            await somebody_waits(ledger_url)
            await turns()
            await ledger.close()

            assert all(isinstance(error, LedgerError) for error in await ends(*claims))
        assert ledger.server.claims._count == 0


async def settlements(ledger: PostgresLedger, count: int) -> list[list[Change]]:
    """Batches of changes so large that they go behind each other."""
    await with_records(ledger, count * MANY)
    taken = (await claim(ledger, limit=500)).records
    changes = [new_settle(row, Done("null", "{}"), 0.0) for row in taken]
    return [changes[n : n + MANY] for n in range(0, len(changes), MANY)]


@pytest.mark.parametrize("prepared", [False, True], ids=["on a new connection", "on one that knows the statements"])
async def test_a_batch_behind_one_that_was_not_as_expected_lands_whole(ledger_url: str, prepared: bool) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        *before, first, second = await settlements(ledger, 3 if prepared else 2)
        await ledger.server.claims.drop()
        for batch in before:
            await ledger.commit(batch)
        async with raw(ledger_url) as connection:
            await connection.execute("UPDATE records SET facts = facts + 1 WHERE record_id = %s", [first[0].record_id])
        async with locked(ledger_url, ledger.server.control_key) as unlock:
            batches = [asyncio.ensure_future(ledger.commit(first))]
            await somebody_waits(ledger_url)
            batches.append(asyncio.ensure_future(ledger.commit(second)))
            await turns()
            assert [wire.under_way for wire in ledger.server.claims._idle] == [2]
            await unlock()
            answers = await ends(*batches)

        for verdicts in answers:
            assert [type(verdict) for verdict in verdicts] == [Applied] * MANY
        assert await held_by(ledger) == []


async def test_batches_on_a_lost_connection_are_sent_again_and_land_once(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        batches = await settlements(ledger, 2)
        async with locked(ledger_url, ledger.server.control_key) as unlock:
            lost = [asyncio.ensure_future(ledger.commit(batches[0]))]
            await somebody_waits(ledger_url)
            lost.append(asyncio.ensure_future(ledger.commit(batches[1])))
            await turns()
            assert [wire.under_way for wire in ledger.server.claims._idle] == [2]
            async with raw(ledger_url) as connection:
                await connection.execute("SELECT pg_terminate_backend(%s)", [ledger.server.claims._idle[-1].pid])
            assert [type(error) for error in await ends(*lost)] == [LedgerUnavailable] * 2
            await unlock()

        for batch in batches:
            assert [type(verdict) for verdict in await ledger.commit(batch)] == [Applied] * MANY
        assert await held_by(ledger) == []


async def claims_and_settles(
    ledger: PostgresLedger, url: str, batch: list[Change]
) -> tuple[asyncio.Future[list[str]], asyncio.Future[list[Verdict]]]:
    """A claim that waits at the server, and behind it a batch."""
    taking = asks(ledger, "c1")
    await somebody_waits(url)
    settling = asyncio.ensure_future(ledger.commit(batch))
    await turns()
    return taking, settling


async def test_a_large_batch_goes_behind_the_claim_that_is_under_way_and_the_next_claim_behind_it(
    ledger_url: str,
) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        [batch] = await settlements(ledger, 1)
        await start_all(ledger, [f"s{n:03}" for n in range(20)])
        async with locked(ledger_url, ledger.server.control_key) as unlock:
            first, settled = await claims_and_settles(ledger, ledger_url, batch)
            second = asks(ledger, "c2")
            await turns()
            assert [wire.under_way for wire in ledger.server.claims._idle] == [3]
            await unlock()
            taken, verdicts, more = await ends(first, settled, second)

        assert [type(verdict) for verdict in verdicts] == [Applied] * MANY
        assert [*taken, *more] == [f"s{n:03}" for n in range(20)]
        assert await held_by(ledger) == [*taken, *more]


async def test_a_large_batch_does_not_wait_for_a_claim_that_keeps_its_connection(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        [batch] = await settlements(ledger, 1)
        async with ledger.server.claims.wire():
            async with asyncio.timeout(SOON):
                verdicts = await ledger.commit(batch)

        assert [type(verdict) for verdict in verdicts] == [Applied] * MANY


async def test_a_claim_and_a_batch_on_a_lost_connection_are_sent_again_and_land_once(ledger_url: str) -> None:
    async with opened(ledger_url, 1) as [ledger]:
        [batch] = await settlements(ledger, 1)
        await start_all(ledger, [f"s{n:03}" for n in range(10)])
        async with locked(ledger_url, ledger.server.control_key) as unlock:
            taking, settled = await claims_and_settles(ledger, ledger_url, batch)
            async with raw(ledger_url) as connection:
                await connection.execute("SELECT pg_terminate_backend(%s)", [ledger.server.claims._idle[-1].pid])
            await turns()
            await unlock()
            taken, lost = await ends(taking, settled)

        assert taken == [f"s{n:03}" for n in range(10)]
        assert isinstance(lost, LedgerUnavailable)
        assert [type(verdict) for verdict in await ledger.commit(batch)] == [Applied] * MANY
        assert await held_by(ledger) == taken
