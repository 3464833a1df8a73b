"""Claims that the server makes by itself: the same rows and lines, to the byte, as the rules decide."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quire.errors import Moved, WorkerClosed
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.postgres.fast import claims as postgres_claim
from quire.ledger.postgres.ledger import PostgresLedger
from quire.ledger.postgres.wire import Answer, Lost, Wire
from quire.model.change import Change, Claim, Slot
from quire.model.event import Event
from quire.model.record import Record
from quire.model.row import field_values, replace
from quire.model.wait import On, Wait
from quire.rules.outcome import Waits
from quire.testing import ToldClock
from quire.testing.conformance import (
    FLOW,
    STEP,
    beat,
    claim,
    claimed,
    commit,
    log,
    order,
    settle,
    slot,
    start,
    start_all,
    the,
)
from tests.ledger.test_postgres import opened, raw, somebody_waits

STEPS = (STEP, 'say "hello"', "back\\slash", "naïve café 🦉", "two\nlines", "run_c1_")
SLOTS = tuple(slot(step, timeout=timeout) for step, timeout in zip(STEPS, (3600.0, 0.5, 1e9, 7, 60.25, 1), strict=True))


async def _filled(ledger: Ledger, clock: ToldClock) -> None:
    """Records of all kinds that may be claimed, some that may not, and one that may later."""
    await beat(ledger, "w1")
    for number, step in enumerate(STEPS):
        await start_all(ledger, [f"{number}-{name}" for name in ("b", "a", "ünïcode")], step=step)
        clock.advance(0.1)
    await start(ledger, "urgent", priority=5)
    await start(ledger, "low", priority=-5)
    await start(ledger, "long", data=f'"{"x" * 100_000}"')
    await start(ledger, "later", due_at=clock.now() + 1000)
    await start(ledger, "asked", workflow="asking")
    [asked] = (await claim(ledger, slot(workflow="asking"), claim_id="c")).records
    question = Wait(On.QUESTION, key="q", name="ok?", until=clock.now() + 1, about={"text": "ok?"})
    await settle(ledger, asked, Waits((question,), "{}"), change_id="asks")
    clock.advance(2)
    await start(ledger, "halted before", workflow="stopped", change_id="s1")
    await order(ledger, "halt", "stopped")
    await order(ledger, "resume", "stopped")
    await start(ledger, "started after", workflow="stopped", change_id="s2")
    await start(ledger, "paused", workflow="paused")
    await order(ledger, "pause", "paused")


async def _all(ledger: Ledger) -> tuple[list[Record], list[Event]]:
    records = sorted(await ledger.dump(Record), key=field_values)
    logs = await ledger.logs([record.record_id for record in records])
    lines = [line for record in records for line in logs[record.record_id]]
    # Other changes than these claims have ids that are drawn by lot.
    return records, [replace(line, seq=0, change_id=line.change_id if line.kind == "claimed" else "") for line in lines]


@pytest.mark.parametrize("at", [1_700_000_000.0, 1_700_000_000.25, 1_763_322_482.123457, 3.0, 0.5])
async def test_the_server_takes_what_the_rules_would_give_and_writes_the_same(postgres_url: str, at: float) -> None:
    slots = (*SLOTS, slot(workflow="asking"), slot(workflow="stopped"), slot(workflow="paused"))
    answers, states = [], []
    clocks = [ToldClock(at), ToldClock(at)]
    async with opened(postgres_url, 1, clocks[1]) as [served]:
        for ledger, clock in zip((MemoryLedger(clocks[0]), served), clocks, strict=True):
            await _filled(ledger, clock)
            given = []
            for number, limit in enumerate((4, 1, 100)):
                clock.advance(0.01)
                given.append(await claim(ledger, *slots, limit=limit, claim_id=f"c{number}"))
            answers.append(given)
            states.append(await _all(ledger))

    for by_rules, by_server in zip(*answers, strict=True):
        assert by_server.records == by_rules.records
        assert (by_server.now, by_server.left_priority) == (by_rules.now, by_rules.left_priority)
    assert states[1] == states[0]
    assert len(answers[0][2].records) > 10


async def test_the_chain_holds_at_any_time_of_the_server(postgres_url: str) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        names = [f"r{number}" for number in range(40)]
        await start_all(ledger, names)
        while (await claim(ledger, limit=3)).records:
            pass

        for name in names:
            assert await log(ledger, name) == ["started", "claimed"]


async def test_steps_with_a_cap_are_claimed_after_those_without_and_have_their_turn(postgres_url: str) -> None:
    capped, free = slot("capped", cap=2), slot()
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, [f"c{number}" for number in range(5)], step="capped")
        await start_all(ledger, [f"f{number}" for number in range(5)])

        one = await claim(ledger, free, capped, limit=3, claim_id="c1")
        assert [row.record_id for row in one.records] == ["f0", "f1", "f2"]
        assert one.left_priority == 0
        two = await claim(ledger, free, capped, limit=10, claim_id="c2")
        assert [row.record_id for row in two.records] == ["f3", "f4", "c0", "c1"]
        assert [row.run_id for row in two.records] == ["run_c2_0", "run_c2_1", "run_c2_2", "run_c2_3"]
        again = await claim(ledger, free, capped, limit=10, claim_id="c2", again=True)
        assert sorted(again.records, key=field_values) == sorted(two.records, key=field_values)
        assert await claimed(ledger, free, capped) == []

        await start_all(ledger, ["f5", "f6"])
        assert await claimed(ledger, slot("capped", cap=3), free, limit=2) == ["c2", "f5"]


@pytest.mark.parametrize("first", [[], [slot("capped", cap=2)]], ids=["alone", "after a capped step with nothing due"])
async def test_a_claim_of_steps_without_a_limit_is_one_flush(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, first: list[Slot]
) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, ["a", "b", "c"])
        assert await claimed(ledger, limit=1) == ["a"]
        [claims] = ledger.server.claims._idle
        flushes, flush = [], Wire.flush

        async def counted(self: Wire, *, commits: bool = False, **more: Any) -> list[Answer]:
            if self is claims:  # others are told of the starts meanwhile, on another connection
                flushes.append(commits)
            return await flush(self, commits=commits, **more)

        monkeypatch.setattr(Wire, "flush", counted)

        assert [row.record_id for row in (await ledger.claim(_claim(*first, slot()))).records] == ["b", "c"]
        assert flushes == [True]


def _claim(*slots: Slot, worker: str = "w1") -> Claim:
    return Claim("c9", worker, slots, 10)


async def test_what_a_claim_took_is_found_when_its_answer_is_lost(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url, 1) as [ledger]:
        await start_all(ledger, ["a", "b"])
        assert await claimed(ledger, limit=1) == ["a"]
        flush = Wire.flush
        lost: list[bool] = []

        async def losing(self: Wire, *, commits: bool = False, **more: Any) -> list[Answer]:
            answers = await flush(self, commits=commits, **more)
            if commits and not lost:
                lost.append(commits)
                raise Lost("lost", landed=True)
            return answers

        monkeypatch.setattr(Wire, "flush", losing)

        assert [row.record_id for row in (await ledger.claim(_claim(slot()))).records] == ["b"]
        assert lost
        assert await log(ledger, "b") == ["started", "claimed"]


async def test_the_server_takes_nothing_for_a_worker_that_is_closed_or_unknown_or_from_a_sealed_ledger(
    postgres_url: str,
) -> None:
    async with opened(postgres_url) as [ledger, other]:
        await start_all(ledger, ["a", "b", "c"])
        assert await claimed(ledger, limit=1) == ["a"]  # there is more: the next claim takes without a look
        await other.farewell("w1")
        with pytest.raises(WorkerClosed):
            await ledger.claim(_claim(slot()))
        with pytest.raises(WorkerClosed):
            await ledger.claim(_claim(slot(), worker="nobody"))

        await beat(ledger, "w2")
        await order(other, "seal", target="elsewhere")
        with pytest.raises(Moved, match="elsewhere"):
            await ledger.claim(_claim(slot(), worker="w2"))
        assert {row.status for row in await ledger.load(["a", "b", "c"])} == {"PENDING"}
        assert await log(ledger, "b") == ["started"]


async def test_a_halt_and_a_pause_hold_a_claim_off(postgres_url: str) -> None:
    async with opened(postgres_url) as [ledger, other]:
        await start_all(ledger, ["a", "b", "c", "d"])
        assert await claimed(ledger, limit=1) == ["a"]
        await order(other, "pause", FLOW)
        assert await claimed(ledger) == []
        await order(other, "resume", FLOW)
        assert await claimed(ledger, limit=1) == ["b"]
        await order(other, "halt")
        await order(other, "resume")
        assert await claimed(ledger) == []
        await start(ledger, "e")
        assert await claimed(ledger) == ["e"]


async def test_each_record_is_taken_once_and_as_it_is_whatever_happens_to_it_meanwhile(postgres_url: str) -> None:
    async with opened(postgres_url, 3) as [one, two, other]:
        names = [f"r{number:02}" for number in range(90)]
        await start_all(one, names)
        taken: list[Record] = []

        async def take(ledger: PostgresLedger, worker: str) -> None:
            while records := (await claim(ledger, worker=worker, limit=2)).records:
                taken.extend(records)

        async def prefer() -> None:
            for name in reversed(names):
                row = await the(other, name)
                await commit(other, Change(f"up-{name}", name, row.version, None, priority=1))

        await asyncio.gather(take(one, "w1"), take(two, "w2"), prefer())
        await take(one, "w1")  # a claim leaves out what a commit locks at that moment, and both may have ended over it

        assert sorted(row.record_id for row in taken) == names
        for name in names:
            assert (await log(other, name)).count("claimed") == 1
        assert {row.record_id: row.worker for row in await other.load(names)} == {r.record_id: r.worker for r in taken}


async def test_a_record_that_changes_after_a_claim_began_to_look_is_left_whole_for_the_next(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = postgres_claim._TAKE.replace(
        "SELECT now, margin,", "SELECT now + length(pg_advisory_xact_lock(42)::text) AS now, margin,"
    )
    assert waits != postgres_claim._TAKE
    async with opened(postgres_url) as [ledger, other], raw(postgres_url) as person:
        await start_all(ledger, ["a", "b", "c"])
        assert await claimed(ledger, limit=1) == ["a"]
        monkeypatch.setattr(postgres_claim, "_TAKE", waits)
        await person.execute("SELECT pg_advisory_lock(42)")
        claiming = asyncio.create_task(ledger.claim(_claim(slot())))
        await somebody_waits(postgres_url)
        await commit(other, Change("up", "b", 1, None, priority=1))  # while the claim has looked, and locked nothing
        await person.execute("SELECT pg_advisory_unlock(42)")

        assert [row.record_id for row in (await claiming).records] == ["c"]
        assert await log(ledger, "b") == ["started", "prioritised"]
        assert [row.record_id for row in (await ledger.claim(_claim(slot()))).records] == ["b"]
        assert await log(ledger, "b") == ["started", "prioritised", "claimed"]
