"""What only PostgreSQL can get wrong: two transactions at once, lost connections, values that it cannot keep.

Pairs of verbs are stepped: one is held between its locks and its decision, the other must then wait, and each outcome
is as if one had come after the other (protocol 4). X-numbers are the experiments of the protocol.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError, LedgerUnavailable, ValueRefused, WorkerClosed
from quire.ledger import columns as rows
from quire.ledger import queries
from quire.ledger.postgres import beats, claims, reading
from quire.ledger.postgres import notifications as postgres_bell
from quire.ledger.postgres import pages as postgres_leaves
from quire.ledger.postgres import recovery as postgres_recovery
from quire.ledger.postgres import server as postgres_link
from quire.ledger.postgres.fast import claims as postgres_claim
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.wire import Wire
from quire.model.change import Applied, Change, Claim, Conflict, Holding, Query, Rate, Refused, Send, Verdict
from quire.model.event import Event
from quire.model.record import Record, Status
from quire.model.row import field_names, replace
from quire.model.side import Setting
from quire.rules import moves as transition
from quire.rules.outcome import Done, Next
from quire.testing import ToldClock
from quire.testing.conformance import (
    FLOW,
    STEP,
    a_worker,
    applied,
    beat,
    claim,
    claimed,
    commit,
    done,
    intend,
    log,
    map_over,
    new_facts,
    new_intent,
    new_map,
    new_move,
    new_settle,
    new_start,
    on_signal,
    order,
    receipt_of,
    refused,
    run,
    run_children,
    settle,
    slot,
    start,
    start_all,
    the,
    the_fanin,
    wait_for,
)
from quire.testing.postgres import PostgresServer
from tests.ledger.conftest import statements_that_empty


@pytest.fixture(scope="session")
def shared_url(postgres_server: PostgresServer, empty_ledger_in_postgres: str) -> Iterator[str]:
    url = postgres_server.create_database(copied=empty_ledger_in_postgres)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def postgres_url(shared_url: str) -> str:
    """An empty ledger, in a database where nobody else is."""
    with psycopg.connect(shared_url, autocommit=True, options="-c lock_timeout=10s") as connection:
        statements = statements_that_empty(connection)
        assert statements is not None
        connection.execute(statements)
    return shared_url


@pytest.fixture
def new_url(postgres_server: PostgresServer, empty_ledger_in_postgres: str) -> Iterator[str]:
    """An empty ledger in a database of its own, for a test that changes more than rows."""
    url = postgres_server.create_database(copied=empty_ledger_in_postgres)
    yield url
    postgres_server.drop_database(url)


@asynccontextmanager
async def opened(url: str, count: int = 2, clock: Clock | None = None) -> AsyncIterator[list[PostgresLedger]]:
    """Several processes' worth of ledgers on one database."""
    ledgers = [PostgresLedger(url, clock) for _ in range(count)]
    try:
        await asyncio.gather(*(ledger.open() for ledger in ledgers))
        yield ledgers
    finally:
        for ledger in ledgers:
            ledger.locked.barrier = None
        await asyncio.gather(*(ledger.close() for ledger in ledgers))


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A foreign client."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("SET search_path = quire")
        yield connection


class Gate:
    """Holds the next use of a verb between its locks and its decision."""

    def __init__(self, ledger: PostgresLedger, verb: str) -> None:
        self.verb = verb
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        ledger.locked.barrier = self._wait

    async def _wait(self, verb: str) -> None:
        if verb == self.verb and not self.reached.is_set():
            self.reached.set()
            await self.opened.wait()


async def somebody_waits(url: str, count: int = 1) -> None:
    """Return once so many sessions wait for a lock."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with raw(url) as connection:
        while True:
            row = await (await connection.execute(sql)).fetchone()
            if row is not None and row[0] >= count:
                return
            await SYSTEM.sleep(0.005)


async def stepped(
    url: str, first: PostgresLedger, verb: str, held: Awaitable[Any], other: Awaitable[Any]
) -> tuple[Any, Any]:
    """Hold ``held`` between lock and decision until ``other`` waits for it; answers what both answered."""
    gate = Gate(first, verb)
    one = asyncio.ensure_future(held)
    await gate.reached.wait()
    two = asyncio.ensure_future(other)
    await somebody_waits(url)
    assert not two.done()
    gate.opened.set()
    return await one, await two


# -- send and settle (X3) ----------------------------------------------------------------------------------------


async def test_a_signal_that_comes_while_the_record_goes_to_wait_wakes_it(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        record = await run(one)

        waits = wait_for(one, record)
        _, [sent] = await stepped(postgres_url, one, "commit", waits, two.send([Send("s1", "r", "paid", "1")]))

        assert isinstance(sent, Applied)
        row = await the(one)
        assert row.status is Status.PENDING
        [signal] = await one.signals("r")
        assert signal.taken_by == on_signal(record).key


async def test_a_record_that_goes_to_wait_while_its_signal_comes_does_not_wait(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        record = await run(one)

        send = two.send([Send("s1", "r", "paid", "1")])
        await stepped(postgres_url, two, "send", send, wait_for(one, record))

        assert (await the(one)).status is Status.PENDING
        assert (await receipt_of(one, on_signal(record).key)).value == "1"


# -- halt and everything that begins (X4) ------------------------------------------------------------------------


async def begin_start(ledger: PostgresLedger, record: Record) -> Verdict:
    return await commit(ledger, new_start("another", await ledger.now()))


async def begin_children(ledger: PostgresLedger, record: Record) -> Verdict:
    return await settle(ledger, record, new_map(record, 3, await ledger.now()))


async def begin_effect(ledger: PostgresLedger, record: Record) -> Verdict:
    return await commit(ledger, new_facts(record, new_intent(record)))


BEGINNINGS = [begin_start, begin_children, begin_effect]


@pytest.mark.parametrize("begin", BEGINNINGS)
async def test_nothing_begins_after_a_halt_is_acknowledged(
    postgres_url: str, begin: Callable[[PostgresLedger, Record], Awaitable[Verdict]]
) -> None:
    async with opened(postgres_url) as [one, two]:
        record = await run(one)

        _, verdict = await stepped(postgres_url, two, "order", order(two, "halt"), begin(one, record))

        assert len(await one.load(["another", "r/items~1/0"])) == 0
        assert (await one.standing()).under_way == ()
        assert not isinstance(verdict, Applied) or verdict.record.status is Status.CANCELLED


@pytest.mark.parametrize("begin", BEGINNINGS)
async def test_a_halt_is_acknowledged_after_what_began_before_it(
    postgres_url: str, begin: Callable[[PostgresLedger, Record], Awaitable[Verdict]]
) -> None:
    async with opened(postgres_url) as [one, two]:
        record = await run(one)

        began: list[Verdict] = []

        async def first() -> None:
            began.append(await begin(one, record))

        async def halt() -> int:
            await order(two, "halt")
            return len(await two.events())

        _, seen = await stepped(postgres_url, one, "commit", first(), halt())

        assert isinstance(began[0], Applied)
        assert seen == len(await one.events())


# -- claims (X5, X19) --------------------------------------------------------------------------------------------


async def test_eight_claimers_take_no_more_than_the_cap(postgres_url: str) -> None:
    async with opened(postgres_url, 8) as ledgers:
        await start_all(ledgers[0], [f"r{n}" for n in range(60)])

        for _ in range(3):
            answers = await asyncio.gather(
                *(claim(ledger, slot(cap=5), worker=f"w{n}") for n, ledger in enumerate(ledgers))
            )

            assert len([row for row in await ledgers[0].counts() if row.status is Status.RUNNING]) == 1
            taken = [row for answer in answers for row in answer.records]
            assert len(taken) == 5
            await ledgers[0].commit([new_settle(row, Done("1", "{}"), 0.0) for row in taken])


async def test_claims_and_kept_records_share_one_cap(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        here = [await run(one, f"a{n}", step="first") for n in range(4)]
        await start_all(two, [f"b{n}" for n in range(10)], step="second")
        second = slot("second", cap=3)

        kept, taken = await asyncio.gather(
            one.commit([new_settle(row, Next("second", "{}"), 0.0, keep=second) for row in here]),
            claim(two, second, worker="w2"),
        )

        running = [applied(verdict).status for verdict in kept].count(Status.RUNNING)
        assert running + len(taken.records) == 3


async def test_eight_claimers_take_no_more_than_the_rate(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 8, clock) as ledgers:
        await start_all(ledgers[0], [f"r{n}" for n in range(60)])
        paced = slot(rate=Rate("mail", 6, 60.0))

        answers = await asyncio.gather(*(claim(ledger, paced, worker=f"w{n}") for n, ledger in enumerate(ledgers)))

        assert sum(len(answer.records) for answer in answers) == 6


async def test_a_full_step_does_not_hide_others(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, [f"full{n}" for n in range(500)], step="full")
        await claim(ledger, slot("full", cap=2))
        await start_all(ledger, [f"free{n}" for n in range(50)], step="free")

        taken = await claim(ledger, slot("full", cap=2), slot("free"), limit=10)

        assert [row.step for row in taken.records] == ["free"] * 10
        assert taken.left_priority == 0


async def test_two_claims_at_once_take_different_records(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        await start_all(one, [f"r{n}" for n in range(20)])
        gate = Gate(one, "claim")

        first = asyncio.ensure_future(claimed(one, limit=10))
        await gate.reached.wait()
        second = await claimed(two, worker="w2", limit=20)
        gate.opened.set()

        assert set(await first).isdisjoint(second)
        assert len(await first) == len(second) == 10


async def test_a_claim_sent_again_waits_for_the_first_try_and_gives_its_records(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        await start_all(one, ["a", "b"])
        await beat(one)

        first = claimed(one, claim_id="c1")
        again = claimed(two, claim_id="c1", again=True)
        answers = await stepped(postgres_url, one, "claim", first, again)

        assert answers[0] == answers[1] == ["a", "b"]


async def test_records_far_in_the_future_and_low_priorities_are_both_seen(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        now = clock.now()
        await start(ledger, "low", priority=-500)
        await start(ledger, "later", due_at=now + 86400.0)
        await start(ledger, "high", priority=5)

        taken = await claim(ledger)

        assert [row.record_id for row in taken.records] == ["high", "low"]
        assert taken.next_due_at == now + 86400.0


# -- order of locks (X6) -----------------------------------------------------------------------------------------


async def test_batches_in_opposite_order_do_not_deadlock(postgres_url: str) -> None:
    async with opened(postgres_url, 3) as ledgers:
        ids = [f"r{n:03}" for n in range(100)]
        await start_all(ledgers[0], ids)

        async def change_all(ledger: PostgresLedger, name: str, order: Sequence[str]) -> None:
            for n in range(15):
                changes = [Change(f"{name}-{n}-{i}", i, 1, None, priority=n) for i in order]
                assert all(isinstance(verdict, Applied) for verdict in await ledger.commit(changes))

        await asyncio.gather(
            change_all(ledgers[0], "up", ids),
            change_all(ledgers[1], "down", ids[::-1]),
            change_all(ledgers[2], "odd", ids[1::2] + ids[::2]),
        )

        async with raw(postgres_url) as connection:
            sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
            assert await (await connection.execute(sql)).fetchone() == (0,)
        assert len(await log(ledgers[0], "r050")) == 1 + 45


async def test_children_of_one_parent_end_on_many_machines(postgres_url: str) -> None:
    async with opened(postgres_url, 4) as ledgers:
        parent = await run(ledgers[0])
        await map_over(ledgers[0], parent, 40, limit=25)

        async def work(ledger: PostgresLedger, worker: str) -> None:
            await beat(ledger, worker)
            while taken := (await claim(ledger, slot(STEP, "child"), worker=worker, limit=3)).records:
                verdicts = await ledger.commit([new_settle(row, Done("1", "{}"), 0.0) for row in taken])
                assert all(isinstance(verdict, Applied) for verdict in verdicts)

        await asyncio.gather(*(work(ledger, f"w{n}") for n, ledger in enumerate(ledgers)))
        await work(ledgers[0], "w0")

        fanin = await the_fanin(ledgers[0])
        assert (fanin.left, fanin.active, fanin.next_place) == (0, 0, 40)
        assert (await the(ledgers[0])).status is Status.PENDING
        assert (await log(ledgers[0])).count("woken") == 1


# -- takeover and beat (X7) --------------------------------------------------------------------------------------


async def test_a_beat_during_the_takeover_is_refused(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 2, clock) as [one, two]:
        record = await run(one)
        clock.advance(60)

        async def late_beat() -> str:
            with pytest.raises(WorkerClosed):
                await beat(one, "w1", record)
            return "refused"

        recovered, told = await stepped(postgres_url, two, "recover", two.recover(), late_beat())

        assert (recovered.workers, recovered.records, told) == (1, 1, "refused")
        assert (await the(one)).status is Status.PENDING


async def test_a_takeover_during_the_beat_finds_a_live_worker(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger], raw(postgres_url) as connection:
        await run(ledger)
        clock.advance(60)

        async with connection.transaction():
            await connection.execute("UPDATE workers SET expires_at = expires_at + 60")
            recovery = asyncio.ensure_future(ledger.recover())
            await somebody_waits(postgres_url)
        recovered = await recovery

        assert (recovered.workers, recovered.records) == (0, 0)
        assert [worker.worker_id for worker in recovered.open] == ["w1"]
        assert (await the(ledger)).status is Status.RUNNING


async def test_a_claim_during_the_takeover_is_refused(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 2, clock) as [one, two]:
        await run(one)
        await start(one, "more")
        clock.advance(60)

        async def late_claim() -> str:
            with pytest.raises(WorkerClosed):
                await claim(one)
            return "refused"

        _, told = await stepped(postgres_url, two, "recover", two.recover(), late_claim())

        assert told == "refused"
        assert {row.status for row in await one.load(["r", "more"])} == {Status.PENDING}


async def test_a_takeover_during_the_claim_frees_what_was_claimed(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 2, clock) as [one, two]:
        await start(one)
        await beat(one)
        clock.advance(60)

        taken, recovered = await stepped(postgres_url, one, "claim", claimed(one), two.recover())

        assert taken == ["r"]
        assert (recovered.workers, recovered.records) == (1, 1)
        assert (await the(one)).status is Status.PENDING


async def test_a_settle_during_the_takeover_of_its_worker_is_a_conflict(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 2, clock) as [one, two]:
        record = await run(one)
        clock.advance(60)

        settled = settle(one, record, Done("1", "{}"))
        _, verdict = await stepped(postgres_url, two, "recover", two.recover(), settled)

        assert isinstance(verdict, Conflict)
        assert (await the(one)).status is Status.PENDING


# -- the log (X8) ------------------------------------------------------------------------------------------------


async def test_a_late_committer_is_not_skipped(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two], raw(postgres_url) as connection:
        record = await run(one)
        seen = await two.events()

        # The batch has written its lines and then waits for a foreign insert of the id that it wants to start.
        async with connection.transaction(force_rollback=True):
            await connection.execute(
                'INSERT INTO records SELECT (jsonb_populate_record(r, \'{"record_id": "new"}\')).* FROM records AS r'
            )
            now = await one.now()
            late = asyncio.ensure_future(
                one.commit([new_settle(record, Next("next", "{}"), now), new_start("new", now)])
            )
            await somebody_waits(postgres_url)
            await start(two, "later")
            early = await two.events(after=seen[-1].seq)
        await late
        rest = await two.events(after=early[-1].seq if early else seen[-1].seq)

        assert early == []
        assert {event.record_id for event in rest} == {"r", "new", "later"}
        assert await two.events() == [*seen, *rest]


async def test_a_transaction_that_gives_its_locks_back_holds_no_reader_up(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as ending:
        await start(ledger)
        # As if the session's transaction were open since before the first line.
        for key in (ledger.server.control_key, ledger.server.events_key):
            await ending.execute("SELECT pg_advisory_lock_shared(%s)", [key])
        while_open = await ledger.events()

        # The server makes a transaction seen before it takes its locks back one by one; an order may come in between.
        await ending.execute("SELECT pg_advisory_unlock_shared(%s)", [ledger.server.control_key])
        await order(ledger, "halt")

        assert while_open == []
        assert [event.record_id for event in await ledger.events()] == ["r"]


async def test_a_reader_sees_every_line_once_and_each_record_in_order(postgres_url: str) -> None:
    async with opened(postgres_url, 4) as [*writers, reader]:
        ids = [f"r{n}" for n in range(12)]
        await start_all(reader, ids)
        writing = True
        seen: list[Event] = []

        async def write(ledger: PostgresLedger, name: str, order: Sequence[str]) -> None:
            for n in range(40):
                await ledger.commit([Change(f"{name}-{n}-{i}", i, 1, None, priority=n) for i in order])

        async def read() -> None:
            while True:
                last = not writing
                while page := await reader.events(after=seen[-1].seq if seen else 0, limit=7):
                    seen.extend(page)
                if last:
                    return

        reading = asyncio.ensure_future(read())
        await asyncio.gather(*(write(w, f"w{n}", ids[n::2]) for n, w in enumerate(writers)))
        writing = False
        await reading

        assert seen == await reader.events(limit=10_000)
        assert len(seen) == 12 + 40 * (6 + 6 + 5)
        for record_id in ids:
            numbers = [event.n for event in seen if event.record_id == record_id]
            assert numbers == list(range(1, len(numbers) + 1))


# -- batches (X1, X2, X9, X15, X16) ------------------------------------------------------------------------------


async def test_two_children_that_end_in_one_batch_both_count(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        parent = await run(ledger)
        await map_over(ledger, parent, 2)
        children = await run_children(ledger)

        await ledger.commit([new_settle(child, Done("1", "{}"), 0.0) for child in children.values()])

        assert (await the_fanin(ledger)).left == 0
        assert (await the(ledger)).status is Status.PENDING


async def test_a_parent_that_changes_in_the_batch_in_which_its_child_ends_keeps_both(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        parent = await run(ledger)
        await map_over(ledger, parent, 2)
        children = await run_children(ledger)
        parent = await the(ledger)
        now = await ledger.now()

        verdicts = await ledger.commit(
            [
                new_move(parent, transition.cancel(parent, now, "ann", "", undo=False)),
                new_settle(children["0"], Done("1", "{}"), now),
            ]
        )

        assert [applied(verdict).status for verdict in verdicts] == [Status.CANCELLED, Status.DONE]
        assert (await the_fanin(ledger)).left == 1
        assert (await the(ledger)).status is Status.CANCELLED


async def test_two_changes_of_one_record_in_one_batch_both_land(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        record = await run(ledger)
        now = await ledger.now()
        first = new_settle(record, Next("second", "1"), now, keep=slot("second"))
        assert first.image is not None
        second = new_settle(first.image, Next("third", "2"), now)

        verdicts = await ledger.commit([first, second])

        assert all(isinstance(verdict, Applied) for verdict in verdicts)
        row = await the(ledger)
        assert (row.step, row.data, row.version) == ("third", "2", record.version + 2)
        assert (await log(ledger))[-2:] == ["moved", "moved"]


@pytest.mark.parametrize("count", [1, 7, 250, 499])
async def test_a_batch_of_any_size_lands_whole(postgres_url: str, count: int) -> None:
    async with opened(postgres_url) as [one, two]:
        await start_all(one, [f"r{n:03}" for n in range(count)])
        taken = (await claim(one, limit=count)).records

        verdicts = await one.commit([new_settle(row, Next("next", f'"{row.record_id}"'), 0.0) for row in taken])

        rows = await two.load([f"r{n:03}" for n in range(count)])
        assert [applied(verdict) for verdict in verdicts] == rows
        assert [row.data for row in rows] == [f'"r{n:03}"' for n in range(count)]
        assert len(await two.events(limit=10_000)) == 3 * count


@pytest.mark.parametrize(
    ("field", "poison"),
    [("data", '"a\0b"'), ("data", '"\ud800"'), ("dedupe_key", "a\0b"), ("code_version", 2**70)],
    ids=["NUL", "surrogate", "NUL in a key", "number"],
)
async def test_one_value_that_cannot_be_kept_does_not_spoil_the_batch(
    postgres_url: str, field: str, poison: Any
) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        changes = [new_start(f"r{n}", 0.0) for n in range(200)]
        image = changes[77].image
        assert image is not None
        changes[77] = replace(changes[77], image=replace(image, **{field: poison}))

        verdicts = await ledger.commit(changes)

        assert refused(verdicts[77]) == "value"
        others = [applied(verdict).record_id for verdict in verdicts[:77] + verdicts[78:]]
        assert others == [f"r{n}" for n in range(200) if n != 77]
        assert sum(count.count for count in await ledger.counts()) == 199


async def test_a_record_whose_id_cannot_be_kept_is_refused(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        verdicts = await ledger.commit(
            [new_start("a\0b", 0.0), new_start(secrets.token_hex(9000), 0.0), new_start("good", 0.0)]
        )
        sent = await ledger.send([Send("s\0", "good", "paid", "1"), Send("s1", "good", "paid", "1")])

        assert [refused(verdict) for verdict in verdicts[:2]] == ["value", "value"]
        assert applied(verdicts[2]).record_id == "good"
        assert refused(sent[0]) == "value"
        assert isinstance(sent[1], Applied)
        with pytest.raises(ValueRefused):
            await ledger.keep(Setting("a\0b", "1", 0))


async def test_a_record_whose_log_is_damaged_does_not_spoil_the_batch(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        await start_all(ledger, [f"r{n}" for n in range(5)])
        await connection.execute("UPDATE records SET log_seq = 0 WHERE record_id = 'r3'")

        verdicts = await ledger.commit([Change(f"c{n}", f"r{n}", 1, None, priority=1) for n in range(5)])

        assert refused(verdicts[3]) == "value"
        assert [applied(verdict).priority for verdict in verdicts[:3] + verdicts[4:]] == [1] * 4


async def test_a_start_of_an_id_that_exists_gives_the_record(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        for n in range(10):
            answers = await asyncio.gather(
                *(commit(ledger, new_start(f"r{n}", 0.0, data='"same"')) for ledger in (one, two, one, two))
            )

            assert sorted(isinstance(answer, Applied) and answer.again for answer in answers) == [
                False,
                True,
                True,
                True,
            ]
        assert refused(await commit(two, new_start("r0", 0.0, data='"other"'))) == "exists"


async def test_one_effect_key_in_two_records_at_once_is_intended_once(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        first, second = await run(one, "a"), await run(two, "b", worker="w2")
        intents = [new_intent(row, key="user's own key") for row in (first, second)]

        held = commit(one, new_facts(first, intents[0]))
        gate = Gate(one, "commit")
        task = asyncio.ensure_future(held)
        await gate.reached.wait()
        assert isinstance(await commit(two, new_facts(second, intents[1])), Applied)
        gate.opened.set()

        assert refused(await task) == "intent"
        assert (await receipt_of(one, "user's own key")).record_id == "b"


async def test_long_values_are_kept_and_read_from_anywhere(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        long, longer = f'"{"x" * 200_000}"', f'"{"ü" * 300_000}"'
        record = await run(one, data=long)
        intent = await intend(one, record, args=longer)
        applied(await commit(one, new_facts(record, done(intent, longer))))
        row = applied(await settle(one, await the(one), Next("next", longer), keep=slot("next")))
        row = applied(await settle(one, row, Next("last", longer)))

        assert row == await the(two)
        assert row.data == longer
        [receipt] = await two.receipts(record_ids=["r"])
        assert receipt.value == receipt.args == longer
        [taken] = (await claim(two, slot("last"))).records
        assert taken.data == longer
        async with raw(postgres_url) as connection:
            assert await (await connection.execute("SELECT count(*) FROM blobs")).fetchone() == (2,)


async def test_a_blob_that_is_gone_is_an_error_with_its_hash(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two], raw(postgres_url) as connection:
        await start(one, data=f'"{"x" * 200_000}"')
        await connection.execute("DELETE FROM blobs")

        with pytest.raises(LedgerError, match=r"has lost a value of records 'r': there is no blob [0-9a-f]{64}"):
            await two.load(["r"])


async def test_a_record_changed_elsewhere_is_read_again(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        record = await run(one)
        await commit(two, Change("ask", "r", 0, None, cancel='{"reason": "enough"}'))
        await commit(two, Change("rise", "r", 0, None, priority=7))

        row = applied(await settle(one, record, Next("next", "{}")))

        assert (row.status, row.priority) == (Status.CANCELLED, 7)
        assert row == await the(two)
        assert await log(one) == ["started", "claimed", "cancel_asked", "prioritised", "cancelled"]


async def test_a_record_with_another_past_is_read_again(postgres_url: str) -> None:
    """The database was set back to an earlier state, and the record went another way to the same version."""
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        await run(ledger)
        await connection.execute("UPDATE records SET data = '\"other\"', log_hash = 'other'")

        verdict = await commit(ledger, Change("late", "r", 1, await the(ledger), worker="w1"))

        assert isinstance(verdict, Conflict)
        assert verdict.record is not None
        assert verdict.record.data == '"other"'


# -- connections -------------------------------------------------------------------------------------------------


class Proxy:
    """Stands between a ledger and the server, and can lose what the server says."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._parts = parts
        self._mute = False
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = self._parts._replace(netloc=f"{self._parts.username}@127.0.0.1:{port}").geturl()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def lose_the_next_answer(self) -> None:
        self._mute = True

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        self._writers += (writer, back)
        for source, sink, answers in ((reader, back, False), (there, writer, True)):
            task = asyncio.ensure_future(self._forward(source, sink, writer, answers))
            self._tasks.add(task)

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, client: asyncio.StreamWriter, answers: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                if answers and self._mute:
                    self._mute = False
                    client.close()
                    return
                sink.write(data)
                await sink.drain()
        sink.close()


async def notices_are_out(ledger: PostgresLedger) -> None:
    """What other processes are told has its answer: the next one that comes is of the verb that follows."""
    assert ledger.notifications._sender is not None
    await ledger.notifications._sender


async def test_a_commit_whose_answer_was_lost_gets_the_first_verdict(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy, opened(proxy.url, 1) as [ledger]:
        record = await run(ledger)
        await notices_are_out(ledger)
        change = new_settle(record, Next("next", "{}"), await ledger.now())

        async def lose(verb: str) -> None:
            ledger.locked.barrier = None
            proxy.lose_the_next_answer()

        ledger.locked.barrier = lose
        with pytest.raises(LedgerUnavailable, match="was lost"):
            await ledger.commit([change])
        [again] = await ledger.commit([change])

        assert isinstance(again, Applied)
        assert again.again
        assert await log(ledger) == ["started", "claimed", "moved"]


async def test_a_claim_whose_answer_was_lost_gives_its_records_again(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy, opened(proxy.url, 1) as [ledger]:
        await start_all(ledger, ["a", "b", "c"])
        await beat(ledger)
        await notices_are_out(ledger)

        async def lose(verb: str) -> None:
            ledger.locked.barrier = None
            proxy.lose_the_next_answer()

        ledger.locked.barrier = lose
        with pytest.raises(LedgerUnavailable):
            await claim(ledger, limit=2, claim_id="c1")

        assert await claimed(ledger, limit=2, claim_id="c1", again=True) == ["a", "b"]


async def test_a_batch_whose_answer_was_lost_gets_all_its_first_verdicts(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy, opened(proxy.url, 1) as [ledger]:
        await start_all(ledger, [f"r{n}" for n in range(150)])
        taken = (await claim(ledger, limit=200)).records
        changes = [new_settle(row, Next("next", "{}"), 0.0) for row in taken]
        await notices_are_out(ledger)

        async def lose(verb: str) -> None:
            ledger.locked.barrier = None
            proxy.lose_the_next_answer()

        ledger.locked.barrier = lose
        with pytest.raises(LedgerUnavailable):
            await ledger.commit(changes)
        verdicts = await ledger.commit(changes)

        assert all(isinstance(verdict, Applied) and verdict.again for verdict in verdicts)


async def kill_all(url: str) -> None:
    async with raw(url) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_a_connection_that_is_lost_before_the_commit_is_made_again(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        record = await run(ledger)

        async def kill(verb: str) -> None:
            ledger.locked.barrier = None
            await kill_all(postgres_url)

        ledger.locked.barrier = kill
        # What is sent to a server that is gone cannot have landed, unless a COMMIT was among it. Whether it was depends
        # on how soon the end of the connection is heard of.
        first: Verdict | None = None
        with suppress(LedgerUnavailable):
            first = await settle(ledger, record, Next("next", "{}"), change_id="once")
        verdict = await settle(ledger, record, Next("next", "{}"), change_id="once")

        assert first is None or (isinstance(first, Applied) and not first.again)
        assert isinstance(verdict, Applied)
        assert verdict.again is (first is not None)


async def test_idle_connections_that_died_are_made_again_without_an_error(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        record = await run(ledger)

        for _ in range(2):
            await kill_all(postgres_url)
            assert (await the(ledger)).status is Status.RUNNING
            assert isinstance(await commit(ledger, Change("up", "r", record.version, None, priority=1)), Applied)
            assert (await beat(ledger, "w1", record)).lost == ()
            assert await claimed(ledger) == []


async def test_a_process_that_goes_silent_in_a_transaction_does_not_hold_up_a_halt(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_link, "SILENCE_SECONDS", 1)
    async with opened(postgres_url) as [one, two]:
        gate = Gate(one, "commit")
        silent = asyncio.ensure_future(commit(one, new_start("r", 0.0)))
        await gate.reached.wait()

        await order(two, "halt")
        gate.opened.set()

        [answer] = await asyncio.gather(silent, return_exceptions=True)
        # Its transaction was ended by the server: it says so, or was sent again and met the halt.
        assert isinstance(answer, LedgerUnavailable) or (isinstance(answer, Refused) and answer.code == "halted")
        assert await two.load(["r"]) == []
        assert refused(await commit(one, new_start("r", 0.0))) == "halted"


async def test_a_commit_that_is_cancelled_leaves_no_lock_behind(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        record = await run(one)
        gate = Gate(one, "commit")
        task = asyncio.ensure_future(settle(one, record, Next("next", "{}")))
        await gate.reached.wait()

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        verdict = await settle(two, record, Next("next", "{}"))

        assert isinstance(verdict, Applied)


async def test_two_batches_of_one_process_run_side_by_side(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, ["a", "b"])
        gate = Gate(ledger, "commit")

        first = asyncio.ensure_future(commit(ledger, Change("a", "a", 1, None, priority=1)))
        await gate.reached.wait()
        assert isinstance(await commit(ledger, Change("b", "b", 1, None, priority=1)), Applied)
        gate.opened.set()

        assert isinstance(await first, Applied)


# -- waking ------------------------------------------------------------------------------------------------------


async def test_work_that_another_process_starts_wakes_a_waiting_one(postgres_url: str) -> None:
    async with opened(postgres_url) as [one, two]:
        await one.wait_for_work(60.0)  # returns once it listens
        assert await claimed(one) == []

        waiting = asyncio.ensure_future(one.wait_for_work(60.0))
        await start(two)
        await asyncio.wait_for(waiting, 20.0)

        assert await claimed(one) == ["r"]


async def test_own_work_wakes_without_the_server(postgres_url: str) -> None:
    async with opened(postgres_url, 1, ToldClock()) as [ledger]:
        await start(ledger)

        await asyncio.wait_for(ledger.wait_for_work(60.0), 20.0)

        assert await claimed(ledger) == ["r"]


async def test_many_commits_are_told_of_once(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        await connection.execute(f"LISTEN {ledger.notifications.channel}")
        told = 0
        begin = SYSTEM.boottime()
        for n in range(100):
            await start(ledger, f"r{n}")
        span = SYSTEM.boottime() - begin
        await ledger.close()

        async for _ in connection.notifies(timeout=0.2):
            told += 1

        assert 1 <= told <= 2 + span / postgres_bell.NOTIFY_SECONDS


async def test_a_told_clock_ends_the_wait(postgres_url: str) -> None:
    clock = ToldClock()
    async with opened(postgres_url, 1, clock) as [ledger]:
        await ledger.wait_for_work(60.0)
        await claim(ledger)
        waiting = asyncio.ensure_future(ledger.wait_for_work(60.0))
        while clock.wakes_at is None:
            await SYSTEM.sleep(0)

        clock.advance(59)
        await SYSTEM.sleep(0)
        too_early = waiting.done()
        clock.advance(1)
        await asyncio.wait_for(waiting, 20.0)

        assert not too_early


# -- costs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that were sent so far."""
    told: list[str] = []
    send = Wire.send

    def noted(self: Wire, sql: str, *params: Any) -> int:
        told.append(sql)
        return send(self, sql, *params)

    monkeypatch.setattr(Wire, "send", noted)
    return told


async def read_as_a_whole(wire: Wire, sql: str) -> set[str]:
    """The tables, but for small ones, of which this statement reads everything."""
    count = max([0, *map(int, re.findall(r"\$(\d+)", sql))])
    given = f"({', '.join(['NULL'] * count)})" if count else ""
    await wire.ask(f"PREPARE looked AS {sql}")
    plan = await wire.ask(f"EXPLAIN EXECUTE looked {given}")
    await wire.ask("DEALLOCATE looked")
    scanned = re.findall(r"Seq Scan on (\w+)", "\n".join(line for (line,) in plan))
    return {*scanned} - {"controls", "ledger", "moment", "slot", "events_seq_seq", "reached"}


async def test_an_idle_worker_sends_one_statement_for_each_look(postgres_url: str, sent: list[str]) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await beat(ledger)

        for look in (
            lambda: ledger.claim(Claim("c1", "w1", (slot(), slot("other", cap=3)), 10)),
            lambda: ledger.beat(a_worker(), Holding({})),
            lambda: ledger.recover(),
            lambda: ledger.events(after=0),
        ):
            sent.clear()
            await look()
            # The first use of a connection also sets up its session.
            await look()
            sent.clear()
            await look()
            assert len(sent) == 1, sent


HOT = {
    name: sql
    for module in (beats, claims, postgres_claim, reading, postgres_recovery)
    for name, sql in vars(module).items()
    if re.match("_?(TAKE|PEEK|BEAT|NEEDS_RECOVERY|RECOVERABLE|LOCK_.*|READ_.*)$", name)
}


@pytest.mark.parametrize("name", sorted(HOT))
async def test_no_hot_statement_reads_a_whole_table(postgres_url: str, name: str) -> None:
    async with opened(postgres_url, 1) as [ledger], ledger.server.claims.wire() as wire:
        assert await read_as_a_whole(wire, HOT[name]) == set()


async def test_where_nothing_was_halted_the_look_for_work_to_take_over_reads_no_open_record(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, [f"r{number}" for number in range(50)])
        async with ledger.server.claims.wire() as wire:
            plan = await wire.ask(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {postgres_recovery._NEEDS_RECOVERY}", None)

        scans = [line for (line,) in plan if "records_open" in line]
        assert scans and all("never executed" in line for line in scans), scans


async def test_no_small_look_reads_a_whole_table(postgres_url: str, sent: list[str]) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        sent.clear()
        await ledger.load(["r"])
        await ledger.events(record_id="r")
        await ledger.receipts(record_ids=["r"], keys=["k"])
        await ledger.signals("r")
        await ledger.fanins("r")
        await ledger.find(Query(parent_id="r", order="place"))
        await ledger.standing()

        looks = set(sent)
        async with ledger.server.reads.wire() as wire:
            assert {sql: await read_as_a_whole(wire, sql) for sql in looks} == {sql: set() for sql in looks}
            settings = [await wire.ask(f"SHOW {name}") for name in ("enable_seqscan", "plan_cache_mode")]
            assert settings == [[("off",)], [("force_generic_plan",)]]


async def test_to_look_for_newer_events_reads_none_of_the_older(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        await connection.execute(
            "INSERT INTO events (record_id, n, version, at, kind, body, run_id, change_id, hash) "
            "SELECT 'r', n, 1, 0, '', '', '', '', '' FROM generate_series(1, 5000) AS n"
        )
        async with ledger.server.long_reads.wire() as wire:
            await wire.ask("SET plan_cache_mode = force_generic_plan")  # NULL would be found without a look

            assert await read_as_a_whole(wire, postgres_leaves.NEWER) == set()


@pytest.mark.parametrize("asked", [(Status.PENDING,), (Status.WAITING,), tuple(sorted(queries.OPEN))])
@pytest.mark.parametrize("sorted_by", ["id", "updated"])
async def test_what_is_open_is_found_without_a_look_at_what_has_ended(
    new_url: str, asked: tuple[Status, ...], sorted_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "PASSED_OVER", 10)
    named = ", ".join(map(rows.quoted, field_names(Record)[1:]))
    async with opened(new_url, 1) as [ledger]:
        await settle(ledger, await run(ledger, "ended"), Done("1", "{}"))
        await run(ledger, "runs")
        await wait_for(ledger, await run(ledger, "waits"))
        await start(ledger, "starts")
        async with ledger.server.long_reads.wire() as wire:
            await wire.ask(
                f"INSERT INTO records (record_id, {named}) "
                f"SELECT 'a' || n, {named} FROM records, generate_series(1, 5000) AS n WHERE record_id = 'ended'"
            )
        for statistics in (False, True):
            # As many as are open, and more than there are.
            for limit in (1 if len(asked) == 1 else 3, 5):
                query = Query(status=asked, limit=limit, order=sorted_by)
                sql, args = ledger.reads._query_sql(query)
                async with ledger.server.long_reads.wire() as wire:
                    if statistics:
                        await wire.ask("ANALYZE records")
                    ((told,),) = await wire.ask(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", *args)
                plan = told[0]["Plan"]

                assert {row.status for row in await ledger.find(query)} == {*asked} - {Status.NEEDS_APPROVAL}
                assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 100, told


# -- opening -----------------------------------------------------------------------------------------------------


async def test_two_ledgers_share_a_database_in_schemas_of_their_own(new_url: str) -> None:
    async with opened(new_url, 1) as [one], opened(f"{new_url}?schema=other", 1) as [two]:
        await start(one)
        await order(one, "halt")

        assert await two.load(["r"]) == []
        assert (await start(two, "q")).status is Status.PENDING


async def test_a_ledger_of_an_older_version_is_brought_up_to_date(new_url: str) -> None:
    async with opened(new_url, 1) as [ledger], raw(new_url) as connection:
        await start(ledger, "kept")
        before = await ledger.events()
        await connection.execute("ALTER TABLE records SET (fillfactor = 70), DROP COLUMN log_at")
        await connection.execute("ALTER TABLE receipts DROP COLUMN act_key, DROP COLUMN prepared, DROP COLUMN actor")
        await connection.execute("DROP TABLE leaves")
        await connection.execute("DROP SEQUENCE reached")
        await connection.execute("ALTER SEQUENCE events_seq_seq INCREMENT BY 1")
        await connection.execute("UPDATE ledger SET schema_version = 1")

        async with opened(new_url, 1) as [newer]:
            assert (await the(newer, "kept")).status is Status.PENDING
            names = [f"r{n:03}" for n in range(100)]
            await start_all(newer, names)
            await claimed(newer, limit=1000)

            after = await newer.events(after=before[-1].seq, limit=10_000)
            assert sorted(event.record_id for event in after) == sorted(["kept", *names, *names])
            assert [event.kind for event in await newer.events(record_id="kept")] == ["started", "claimed"]
        found = await connection.execute("SELECT reloptions FROM pg_class WHERE oid = 'records'::regclass")
        row = await found.fetchone()
        assert row is not None and "fillfactor=50" in row[0]


async def test_a_ledger_of_a_newer_version_is_refused(new_url: str) -> None:
    async with opened(new_url, 1), raw(new_url) as connection:
        await connection.execute("UPDATE ledger SET schema_version = 99")

        with pytest.raises(
            LedgerError, match=r"was made by a newer Quire \(schema 99, this one knows \d+\); update Quire"
        ):
            await PostgresLedger(new_url).open()


async def test_a_schema_with_other_tables_is_refused(new_url: str) -> None:
    async with raw(new_url) as connection:
        await connection.execute("DROP SCHEMA quire CASCADE")
        await connection.execute("CREATE SCHEMA quire CREATE TABLE invoices (n int)")

        with pytest.raises(LedgerError, match="has tables, but is not a Quire ledger; choose another"):
            await PostgresLedger(new_url).open()


async def test_a_server_that_does_not_answer_is_named_with_the_remedy() -> None:
    ledger = PostgresLedger("postgresql://ann:secret@127.0.0.1:1/db?connect_timeout=2")

    with pytest.raises(
        LedgerUnavailable, match=r"no PostgreSQL server answers at 127\.0\.0\.1:1/db; start it"
    ) as caught:
        await ledger.open()

    assert "secret" not in str(caught.value)


async def test_a_database_that_is_not_there_is_named_with_the_remedy(postgres_url: str) -> None:
    url = urlsplit(postgres_url)._replace(path="/nowhere").geturl()

    with pytest.raises(LedgerError, match=r"there is no database 'nowhere' .*createdb nowhere"):
        await PostgresLedger(url).open()


@pytest.mark.parametrize("schema", ["", "Quire", "pg_x", 'a"b', "a b", "x" * 70])
def test_a_bad_name_for_a_schema_is_refused(schema: str) -> None:
    with pytest.raises(LedgerError, match="cannot be the schema of a ledger"):
        PostgresLedger(f"postgresql://localhost/db?schema={schema}")


def test_a_bad_address_is_refused() -> None:
    with pytest.raises(LedgerError, match="not an address of a PostgreSQL database"):
        PostgresLedger("postgresql://localhost/db?nonsense=1")


def test_the_short_ways_are_on_or_off() -> None:
    with pytest.raises(LedgerError, match="fast='maybe'; write fast=on or fast=off"):
        PostgresLedger("postgresql://localhost/db?fast=maybe")


async def test_without_the_short_ways_every_commit_and_claim_is_decided_under_locks(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    send = Wire.send

    def noted(self: Wire, sql: str, *params: Any) -> int:
        shown.append(sql)
        return send(self, sql, *params)

    async def done(url: str) -> list[str]:
        async with opened(url, 1) as [ledger]:
            await start(ledger, url)
            shown.clear()
            applied(await settle(ledger, await run(ledger, url + "2"), Done("1", "{}")))
            return [sql for sql in shown if "1 / (" in sql or sql == postgres_claim._TAKE]

    monkeypatch.setattr(Wire, "send", noted)

    assert await done(postgres_url)
    assert await done(f"{postgres_url}?fast=off") == []


def test_without_psycopg_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import quire.ledger.postgres.ledger"

    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "LedgerError: a PostgreSQL ledger needs the package psycopg" in ended.stderr
    assert "not installed; pip install " in ended.stderr


async def test_settings_that_lose_commits_are_warned_of(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        warnings = await ledger.settings_warnings()

        found = [
            (await (await connection.execute(f"SHOW {name}")).fetchone() or ("",))[0] == "off"
            for name in ("fsync", "synchronous_commit", "full_page_writes")
        ]
        assert [
            any(word in text for text in warnings) for word in ("fsync", "synchronous_commit", "full_page")
        ] == found


async def test_people_can_look_at_the_state_with_any_client(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger], raw(postgres_url) as connection:
        await start(ledger)

        found = await (await connection.execute("SELECT * FROM state_table")).fetchone()

        assert found is not None
        assert found[:4] == ("r", "PENDING", STEP, f"{FLOW}|r|{STEP}")
