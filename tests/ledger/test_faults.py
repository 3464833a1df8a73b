from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import pytest

from quire.errors import LedgerUnavailable
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Applied, Query
from quire.model.record import Status
from quire.rules.outcome import Done
from quire.testing import HoldingLedger, LossyLedger, ToldClock
from quire.testing.conformance import beat, claim, commit, new_settle, new_start, start
from quire.testing.faults import WRITES, Fault, PassingLedger, lose_nth

T = TypeVar("T")


async def test_a_write_that_is_lost_never_reaches_the_store() -> None:
    lossy = LossyLedger(MemoryLedger(ToldClock()), lose_nth(1, "write-lost"))

    with pytest.raises(LedgerUnavailable, match=r"commit number 1 got no answer \(on purpose: write-lost\)"):
        await start(lossy)

    assert await lossy.load(["r"]) == []
    assert lossy.lost == [("commit", "write-lost")]


async def test_a_write_whose_answer_is_lost_reaches_the_store() -> None:
    lossy = LossyLedger(MemoryLedger(ToldClock()), lose_nth(1, "answer-lost"))

    with pytest.raises(LedgerUnavailable):
        await start(lossy)

    assert len(await lossy.load(["r"])) == 1


async def test_reads_are_counted_but_never_lost() -> None:
    lossy = LossyLedger(MemoryLedger(ToldClock()), lambda verb, nth: "write-lost")

    await lossy.find(Query())
    await lossy.standing()

    assert (lossy.calls["find"], lossy.calls["standing"], lossy.writes) == (1, 1, 0)


async def test_only_the_verbs_that_were_picked_are_lost() -> None:
    lossy = LossyLedger(MemoryLedger(ToldClock()), lose_nth(3, "write-lost", frozenset({"claim"})))

    await start(lossy, "a")
    await beat(lossy)
    with pytest.raises(LedgerUnavailable, match="claim number 3"):
        await claim(lossy)

    assert (lossy.calls["commit"], lossy.calls["claim"], lossy.writes) == (1, 1, 3)


@pytest.mark.parametrize("fault", ["write-lost", "answer-lost"])
async def test_losing_any_one_write_and_sending_it_again_changes_nothing(fault: Fault) -> None:
    for nth in range(1, 6):
        lossy = LossyLedger(MemoryLedger(ToldClock()), lose_nth(nth, fault))
        first = new_start("r", await lossy.now(), change_id="first")

        await insist(partial(commit, lossy, first))
        await insist(partial(beat, lossy))
        [row] = (await insist(partial(claim, lossy, claim_id="c1", again=True))).records
        last = new_settle(row, Done("1", "{}"), await lossy.now(), change_id="last")
        verdict = await insist(partial(commit, lossy, last))

        assert isinstance(verdict, Applied)
        assert verdict.record.status is Status.DONE
        assert [event.kind for event in await lossy.events()] == ["started", "claimed", "done"]
        assert bool(lossy.lost) is (nth <= 4)


async def insist(ask: Callable[[], Awaitable[T]]) -> T:
    try:
        return await ask()
    except LedgerUnavailable:
        return await ask()


async def test_a_held_verb_waits_before_the_store_sees_it() -> None:
    held = HoldingLedger(MemoryLedger(ToldClock()))
    barrier = held.hold("commit")
    starting = asyncio.create_task(start(held))

    await barrier.arrived()
    before = await held.load(["r"])
    barrier.release()
    await starting

    assert before == []
    assert len(await held.load(["r"])) == 1


async def test_a_held_answer_waits_after_the_store_has_seen_the_verb() -> None:
    held = HoldingLedger(MemoryLedger(ToldClock()))
    barrier = held.hold_answer("commit")
    starting = asyncio.create_task(start(held))

    await barrier.arrived()
    landed = await held.load(["r"])
    assert not starting.done()
    barrier.release()

    assert landed == [await starting]


async def test_only_the_next_call_is_held() -> None:
    held = HoldingLedger(MemoryLedger(ToldClock()))
    barrier = held.hold("commit")
    first = asyncio.create_task(start(held, "a"))
    await barrier.arrived()

    second = await start(held, "b")

    assert await held.load(["a", "b"]) == [second]
    barrier.release()
    started = await first
    assert await held.load(["a"]) == [started]


def test_every_verb_of_the_contract_is_passed_on() -> None:
    assert not PassingLedger.__abstractmethods__
    assert set(vars(Ledger)) >= WRITES
