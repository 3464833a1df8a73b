"""A backlog is claimed from where the last claim ended; what is due before there is found all the same."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from quire.errors import LedgerUnavailable
from quire.ledger.postgres.fast import queue_marks as postgres_heads
from quire.ledger.postgres.fast.claims import ClaimsByServer
from quire.ledger.postgres.fast.queue_marks import LATE_SECONDS, WHOLE_SECONDS, QueueMarks, code_of
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.wire import Lost
from quire.model.change import Claim, Claimed, Order, Slot
from quire.model.record import Record, Status, new_record
from quire.model.row import field_values, replace
from quire.testing import ToldClock
from quire.testing.conformance import claim, claimed, slot, start, start_all
from tests.ledger.test_postgres import opened, raw

NOW = 1_700_000_000.0


@pytest.fixture(autouse=True)
def after_the_first_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_heads, "FAR", 0)
    monkeypatch.setattr(postgres_heads, "LARGE", 1)


def _record(record_id: str, due_at: float, **fields: Any) -> Record:
    row = new_record(record_id=record_id, workflow="flow", step="step", data="{}", now=NOW, due_at=due_at)
    return replace(row, **fields)


SLOTS = (slot("other", "flow"), slot("step", "flow"))


def test_a_step_begins_where_its_last_record_stood_and_others_at_the_beginning() -> None:
    marks = QueueMarks(ToldClock(NOW))
    assert marks.of(SLOTS) is None
    marks.reached([_record("a", NOW - 20), _record("b", NOW - 10)], NOW, {})
    assert marks.of(SLOTS) == [-inf, NOW - 10]
    marks.reached([_record("c", NOW)], NOW, {})
    assert marks.of(SLOTS) == [-inf, NOW - LATE_SECONDS]


def test_heads_are_forgotten_in_time_however_often_they_move_on() -> None:
    clock = ToldClock(NOW)
    marks = QueueMarks(clock)
    marks.reached([_record("a", NOW - 20)], NOW, {})
    clock.advance(WHOLE_SECONDS - 0.1)
    marks.reached([_record("b", NOW - 10)], NOW, {})
    assert marks.of(SLOTS) == [-inf, NOW - 10]
    clock.advance(0.1)
    assert marks.of(SLOTS) is None


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"due_at": NOW - 5}, True),
        ({"due_at": NOW - 15}, False),
        ({"due_at": NOW, "priority": 1}, False),
        ({"due_at": NOW - 15, "status": Status.DONE}, True),
        ({"due_at": NOW - 15, "step": "other"}, True),
        ({"due_at": None, "status": Status.WAITING}, True),
    ],
)
def test_a_row_that_comes_before_a_head_makes_the_next_claim_begin_at_the_beginning(
    fields: dict[str, Any], kept: bool
) -> None:
    marks = QueueMarks(ToldClock(NOW))
    marks.reached([_record("a", NOW - 10)], NOW, {})
    marks.put([_record("b", **{"due_at": NOW} | fields)])
    assert (marks.of(SLOTS) is not None) is kept


def test_claims_that_are_under_way_do_not_make_it_forget_that_the_next_one_begins_at_the_beginning() -> None:
    marks = QueueMarks(ToldClock(NOW))
    marks.reached([_record("a", NOW - 20)], NOW, {})
    marks.put([_record("urgent", NOW - 30)])
    marks.reached([_record("b", NOW - 10)], NOW, {})
    assert marks.of(SLOTS) is None
    marks.reached([_record("c", NOW - 5)], NOW, {})
    assert marks.of(SLOTS) == [-inf, NOW - 5]


def test_a_short_row_of_claims_begins_at_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_heads, "FAR", 3)
    clock = ToldClock(NOW)
    marks = QueueMarks(clock)
    two = [_record("a", NOW - 20), _record("b", NOW - 10)]
    marks.reached(two, NOW, {})
    assert marks.of(SLOTS) is None
    marks.forget()
    marks.reached(two, NOW, {})
    assert marks.of(SLOTS) is None
    marks.reached(two, NOW, {})
    assert marks.of(SLOTS) == [-inf, NOW - 10]
    clock.advance(WHOLE_SECONDS)
    assert marks.of(SLOTS) is None
    marks.reached(two, NOW, {})  # the row goes on
    assert marks.of(SLOTS) == [-inf, NOW - 10]


# -- on a server -------------------------------------------------------------------------------------------------


async def _backlog(ledger: PostgresLedger, clock: ToldClock, count: int) -> list[str]:
    names = [f"r{number:04d}" for number in range(count)]
    for name in names:
        clock.advance(0.01)
        await start(ledger, name)
    clock.advance(10)
    return names


async def test_something_urgent_of_this_process_is_next(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 1, clock) as [ledger]:
        names = await _backlog(ledger, clock, 6)
        assert await claimed(ledger, limit=2) == names[:2]
        await start(ledger, "urgent", priority=1)
        assert await claimed(ledger, limit=2) == ["urgent", names[2]]


async def test_something_urgent_of_another_process_is_next_after_a_while(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _backlog(ledger, clock, 8)
        assert await claimed(ledger, limit=2) == names[:2]
        await start(other, "urgent", priority=1)
        assert await claimed(ledger, limit=2) == names[2:4]
        clock.advance(WHOLE_SECONDS)
        assert await claimed(ledger, limit=2) == ["urgent", names[4]]


# -- what other processes reached --------------------------------------------------------------------------------


async def _spread(ledger: PostgresLedger, clock: ToldClock, count: int) -> list[str]:
    """A backlog of which each record is due half a minute after the one before."""
    names = [f"r{number:04d}" for number in range(count)]
    for name in names:
        await start(ledger, name)
        clock.advance(30)
    return names


@pytest.mark.parametrize("own", [True, False])
async def test_a_claim_begins_where_another_process_has_come(postgres_url: str, own: bool) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _spread(ledger, clock, 9)
        assert await claimed(ledger, limit=2) == names[:2]
        assert await claimed(other, limit=4, worker="w2") == names[2:6]
        # After what this process took last, and before what the other did: seen by whoever begins at the former.
        await start(ledger if own else other, "between", priority=4)
        assert await claimed(ledger, limit=2) == names[6:8]
        clock.advance(WHOLE_SECONDS)
        assert await claimed(ledger, limit=2) == ["between", names[8]]


async def test_who_asks_for_nothing_sees_what_is_left_now(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        await _backlog(ledger, clock, 9)
        assert (await claim(ledger, limit=2)).left_priority == 0
        await start(other, "urgent", priority=7)
        assert (await claim(ledger, limit=0)).left_priority == 7


@pytest.mark.parametrize("now", [10.0, NOW, 1e13])
async def test_claims_go_on_whatever_the_clock_says(postgres_url: str, now: float) -> None:
    clock = ToldClock(now)
    async with opened(postgres_url, 1, clock) as [ledger]:
        names = await _spread(ledger, clock, 6)
        assert [await claimed(ledger, limit=2) for _ in range(4)] == [names[:2], names[2:4], names[4:], []]


async def test_how_far_a_claim_came_is_seen_before_it_commits(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 1, clock) as [ledger], raw(postgres_url) as connection:
        await _spread(ledger, clock, 4)
        await claim(ledger, limit=0)  # by which the worker is known
        async with ledger.server.claims.wire() as wire:
            wire.send("BEGIN")
            ledger.fast._claims._take(wire, Claim("c", "w1", (slot(),), 3), None)
            await wire.flush()
            assert await _told(connection) == NOW + 60
            await wire.rollback()
        assert len(await claimed(ledger)) == 4


async def test_small_claims_tell_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 1, clock) as [ledger], raw(postgres_url) as connection:
        await _spread(ledger, clock, 4)
        await claimed(ledger, limit=3)
        assert await _told(connection) == NOW + 60
        monkeypatch.setattr(postgres_heads, "LARGE", 2)
        await claimed(ledger, limit=1)
        assert await _told(connection) == NOW + 60


@pytest.mark.parametrize("own", [True, False])
async def test_many_urgent_ones_come_one_claim_after_the_other(postgres_url: str, own: bool) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _backlog(ledger, clock, 12)
        assert await claimed(ledger, limit=4) == names[:4]
        await start_all(ledger if own else other, [f"u{n}" for n in range(6)], priority=1)
        clock.advance(0.0 if own else WHOLE_SECONDS)
        found = []
        for _ in range(4):
            found += await claimed(ledger, limit=2)
            clock.advance(0.1)
        assert found == [*[f"u{n}" for n in range(6)], *names[4:6]]


async def test_who_went_on_meanwhile_does_not_lead_others_past_what_was_found_before(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _spread(ledger, clock, 14)
        assert await claimed(ledger, limit=2) == names[:2]
        clock.advance(0.5)
        assert await claimed(other, limit=2, worker="w2") == names[2:4]
        await start_all(other, [f"u{n}" for n in range(4)], priority=100)
        assert await claimed(other, limit=2, worker="w2") == ["u0", "u1"]  # it wrote them itself
        await start_all(ledger, [f"v{n}" for n in range(4)], priority=200)
        clock.advance(0.4)
        # One goes on from where it was, and the other begins at the beginning and goes on there.
        assert await claimed(ledger, limit=2) == ["v0", "v1"]
        assert await claimed(other, limit=2, worker="w2") == ["u2", "u3"]
        assert await claimed(ledger, limit=2) == ["v2", "v3"]
        assert await claimed(ledger, limit=2) == names[4:6]


def test_a_claim_that_is_answered_late_does_not_lead_past_what_was_found_before() -> None:
    marks = QueueMarks(ToldClock(NOW))
    place = ("flow", "step")
    marks.reached([_record("a", NOW - 20)], NOW, {})
    marks.reached([_record("urgent", NOW - 60)], NOW, {})
    marks.reached([_record("b", NOW - 10)], NOW, {place: NOW - 20})
    assert marks.of(SLOTS) == [-inf, NOW - 60]
    marks.reached([_record("urgent too", NOW - 50)], NOW, {place: NOW - 60})
    assert marks.of(SLOTS) == [-inf, NOW - 50]


async def test_whoever_claims_hears_of_a_halt_at_once(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        await _backlog(ledger, clock, 9)
        before = (await claim(ledger, limit=2)).epoch
        await other.order(Order("halt", "elsewhere", "ann"))
        taken = await claim(ledger, limit=2)
        assert len(taken.records) == 2
        assert taken.epoch > before


async def test_what_another_worker_of_the_same_process_sees_is_its_own(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start(ledger, "long", data=f'"{"x" * 100_000}"')
        await start(ledger, "capped", step="capped")
        await claim(ledger, slot("other"), worker="w2")
        asked = ledger.server.ask

        async def meanwhile(*args: Any, **more: Any) -> Any:
            monkeypatch.setattr(ledger.server, "ask", asked)
            ledger.claims.more_is_due = True
            assert await claimed(ledger, slot("other"), worker="w2") == []
            return await asked(*args, **more)

        monkeypatch.setattr(ledger.server, "ask", meanwhile)
        ledger.claims.more_is_due = True
        assert await claimed(ledger, slot(), slot("capped", cap=1)) == ["long", "capped"]


@pytest.mark.parametrize(("of", "rank"), [(slot(), NOW + 10_000), (slot("other"), NOW + 100), (None, 0)])
async def test_a_number_of_another_step_or_of_the_future_is_not_heeded(
    postgres_url: str, of: Slot | None, rank: float
) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 1, clock) as [ledger], raw(postgres_url) as connection:
        names = await _spread(ledger, clock, 6)
        assert await claimed(ledger, limit=2) == names[:2]
        number = 1 if of is None else code_of(of) << 51 | int((rank - 1_577_836_800) * 1e6)
        await connection.execute("SELECT setval('quire.reached', %s)", (number,))
        assert await claimed(ledger, limit=2) == names[2:4]
        assert await _told(connection) == NOW + 90


async def test_claims_of_several_steps_at_once_tell_nothing(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 1, clock) as [ledger], raw(postgres_url) as connection:
        await start(ledger, "a")
        await start(ledger, "b", step="other")
        clock.advance(10)
        assert await claimed(ledger, slot(), slot("other"), limit=2) == ["a", "b"]
        assert await _number(connection) == 1


async def test_while_claims_go_on_from_heads_what_is_left_is_looked_at_now_and_then(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        await _backlog(ledger, clock, 9)
        assert (await claim(ledger, limit=2)).left_priority == 0
        await start(other, "urgent", priority=7)
        assert (await claim(ledger, limit=2)).left_priority == 0
        clock.advance(WHOLE_SECONDS)
        await start(other, "urgent too", priority=8)
        taken = await claim(ledger, limit=1)
        assert [row.record_id for row in taken.records] == ["urgent too"]
        assert taken.left_priority == 7


async def _number(connection: Any) -> int:
    [number] = await (await connection.execute("SELECT last_value FROM quire.reached")).fetchone()
    return int(number)


async def _told(connection: Any) -> float:
    """The rank that was told, to the next millisecond."""
    number = await _number(connection)
    assert number >> 51 == code_of(slot())
    return round(1_577_836_800 + (number & (1 << 51) - 1) / 1e6, 3)


# -- the end of a backlog ----------------------------------------------------------------------------------------


async def test_at_the_end_of_a_backlog_nothing_is_left_behind(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _backlog(ledger, clock, 5)
        assert await claimed(ledger, limit=3) == names[:3]
        await start_all(other, ["urgent", "urgent too"], priority=1)

        last = await claim(ledger, limit=10, claim_id="c")
        assert [row.record_id for row in last.records] == [*names[3:], "urgent", "urgent too"]
        assert [row.run_id for row in last.records] == [f"run_c_{number}" for number in range(4)]
        assert last.left_priority is None
        again = await claim(ledger, limit=10, claim_id="c", again=True)
        assert sorted(again.records, key=field_values) == sorted(last.records, key=field_values)
        assert await claimed(ledger) == []


async def test_after_the_end_of_a_backlog_claims_begin_at_the_beginning(postgres_url: str) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _backlog(ledger, clock, 5)
        assert await claimed(ledger, limit=3) == names[:3]
        assert await claimed(ledger, limit=3) == names[3:]
        await start_all(other, ["x", "y", "z"])
        await start(other, "urgent", priority=1)
        assert await claimed(ledger, limit=2) == ["urgent", "x"]


async def test_a_lost_answer_at_the_end_of_a_backlog_loses_nothing(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ToldClock(NOW)
    async with opened(postgres_url, 2, clock) as [ledger, other]:
        names = await _backlog(ledger, clock, 5)
        assert await claimed(ledger, limit=3) == names[:3]
        await start(other, "urgent", priority=1)
        took, times = ClaimsByServer._taken, 0

        async def lost(self: ClaimsByServer, claim: Claim, marks: list[float] | None = None) -> Any:
            nonlocal times
            answer = await took(self, claim, marks)
            times += 1
            if times == 2:
                raise LedgerUnavailable("gone") from Lost("gone", landed=True)
            return answer

        monkeypatch.setattr(ClaimsByServer, "_taken", lost)
        last = await claim(ledger, limit=10, claim_id="c")
        assert times == 2
        assert sorted(row.record_id for row in last.records) == sorted([*names[3:], "urgent"])


async def test_claims_from_a_backlog_do_not_go_through_what_was_claimed_before(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the pages of the index that the server goes through for a claim."""
    clock = ToldClock(NOW)
    async with opened(postgres_url, 1, clock) as [ledger], raw(postgres_url) as connection:
        for hundred in range(30):
            clock.advance(1)
            await start_all(ledger, [f"{hundred:02d}-{number:02d}-{'x' * 200}" for number in range(100)])
        clock.advance(10)

        async def pages() -> int:
            async with ledger.server.claims.wire() as wire:
                await wire.ask("SELECT pg_stat_force_next_flush()")
            cursor = await connection.execute(
                "SELECT idx_blks_hit + idx_blks_read FROM pg_statio_user_indexes WHERE indexrelname = 'records_open'"
            )
            [count] = await cursor.fetchone() or (0,)
            return int(count)

        async def spent() -> int:
            before = await pages()
            taken: Claimed = await claim(ledger, limit=100)
            assert len(taken.records) == 100
            return await pages() - before

        costs = [await spent() for _ in range(28)]
        monkeypatch.setattr(QueueMarks, "of", lambda self, slots: None)
        from_the_beginning = await spent()
        assert max(costs[-8:]) < from_the_beginning / 2
