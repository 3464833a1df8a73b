"""A parked intent is written down with its arguments and shown to people. Nothing acts on it before they release it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from quire import Act, Dropped, Fail, NotDone, Prepare, Retry, Run, Status, SyncRun, Workflow, effect, workflow
from quire.client.client import Client
from quire.errors import IllegalMove
from quire.explain.stuck import look
from quire.explain.why import around, why_of
from quire.explain.words import line
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.receipt import Receipt, Stage
from quire.model.wait import load_waits
from quire.testing import ToldClock, Trial, every_kill


@dataclass
class Bank:
    paid: list[tuple[str, int]] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)
    rate: int = 2
    calls: list[str] = field(default_factory=list)
    busy: int = 0


def converted(act: Act[Bank], to: str, amount: int) -> int:
    act.deps.calls.append("check")
    return amount * act.deps.rate


def slip(act: Act[Bank], to: str, amount: int) -> str:
    act.deps.calls.append("reserve")
    return f"slip over {act.prepared}"


def take_back(act: Act[Bank], value: str) -> None:
    act.deps.taken_back.append(value)


@effect(prepare=Prepare(converted, slip), undo=take_back, settle="0s")
async def pay(act: Act[Bank], to: str, amount: int) -> str:
    act.deps.calls.append(f"act with {act.prepared}")
    if act.deps.busy:
        act.deps.busy -= 1
        raise NotDone("busy")
    act.deps.paid.append((to, amount))
    return f"paid {to}"


@workflow(retry=Retry(3, first="1s"))
async def pays(run: Run[dict[str, Any], Bank]) -> str:
    return await run.once(pay.parked(by=["ann", "bob"], expires="2d"), run.data.get("to", "acme"), 7)


@workflow
async def asks_first(run: Run[dict[str, Any], Bank]) -> str:
    try:
        return await run.once(pay.parked("Pay the bill?"), "acme", 7)
    except Dropped as no:
        return f"{no.answer.choice} by {no.answer.by}: {no.answer.note}"


@workflow(on_failure="undo")
async def pays_twice(run: Run[dict[str, Any], Bank]) -> None:
    await run.once(pay.named("first"), "acme", 1)
    await run.once(pay.named("second").parked(), "acme", 2)


class Desk:
    """A ledger with these workflows, and the record ``p``."""

    def __init__(self) -> None:
        self.clock, self.bank = ToldClock(), Bank()
        self.client = Client(
            MemoryLedger(self.clock),
            workflows=[pays, asks_first, pays_twice],
            deps=self.bank,
            clock=self.clock,
            who="ann",
        )

    async def begin(self, flow: Any = pays, data: dict[str, Any] | None = None) -> None:
        await self.client.start(flow, data or {}, id="p")
        await self.client.work()

    async def status(self) -> Status:
        return (await self.client.get("p")).status

    async def stages(self) -> dict[str, Stage]:
        rows = await self.client.ledger.receipts(record_ids=["p"])
        return {row.name: row.stage for row in rows if row.fn}

    async def parked(self) -> Receipt:
        [found] = [row for row in await self.client.ledger.receipts(record_ids=["p"]) if row.stage is Stage.PARKED]
        return found

    async def lines(self) -> list[str]:
        return [event.kind for event in await self.client.ledger.events(record_id="p")]


async def test_people_see_what_would_be_done_and_it_is_done_when_they_release_it() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()

        assert await desk.status() is Status.NEEDS_APPROVAL
        assert desk.bank.calls == ["check"]
        [wait] = load_waits((await client.get("p")).waits)
        assert (wait.about or {})["show"] == {
            "effect": "pay",
            "arguments": {"to": "acme", "amount": 7},
            "prepared": 14,
        }
        assert (await client.get("p")).open_intents == 0
        assert await desk.stages() == {"pay": Stage.PARKED}

        await client.answer("p", "approve", seen=wait.name)
        assert await desk.stages() == {"pay": Stage.RELEASED}
        await client.work()

        assert (await client.get("p")).result == '"paid acme"'
        assert desk.bank.calls == ["check", "check", "reserve", "act with slip over 14"]
        assert await desk.stages() == {"pay": Stage.DONE}
        assert await desk.lines() == [
            "started",
            "claimed",
            "effect.parked",
            "asked",
            "effect.released",
            "answered",
            "claimed",
            "effect.intended",
            "effect.done",
            "done",
        ]


async def test_what_people_drop_is_not_done_and_ends_the_record_unless_the_step_says_otherwise() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.answer("p", "reject", note="too much")
        await client.work()

        record = await client.get("p")
        assert (record.status, record.attempt) == (Status.ERROR, 1)
        assert "effect 'pay' is not to be done: reject by ann: too much" in (record.last_error or "")
        assert await desk.stages() == {"pay": Stage.DROPPED}
        await client.retry("p")
        await client.work()
        assert await desk.status() is Status.ERROR  # what was said stands
    assert not desk.bank.paid

    desk = Desk()
    async with desk.client as client:
        await desk.begin(asks_first)
        assert (await client.get("p")).question == "Pay the bill?"
        await client.answer("p", "reject", note="not now")
        await client.work()
        assert (await client.get("p")).result == '"reject by ann: not now"'


async def test_a_rewind_asks_anew_what_people_dropped() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.answer("p", "reject")
        await client.work()
        await client.retry("p", step="pays")
        await client.work()
        assert await desk.status() is Status.NEEDS_APPROVAL
        await client.answer("p", "approve")
        await client.work()
    assert desk.bank.paid == [("acme", 7)]


async def test_a_plain_step_parks_its_act_too() -> None:
    flow = Workflow("plain", result=str, deps=Bank)

    @flow.step
    def pays_plainly(run: SyncRun[dict[str, Any], Bank]) -> str:
        return str(run.once(pay.parked(), "acme", 7))

    bank, clock = Bank(), ToldClock()
    async with Client(MemoryLedger(clock), workflows=[flow], deps=bank, clock=clock, who="ann") as client:
        await client.start(flow, {}, id="p")
        await client.work()
        assert (await client.get("p")).status is Status.NEEDS_APPROVAL
        await client.answer("p", "approve")
        await client.work()
        assert (await client.get("p")).result == '"paid acme"'
    assert bank.calls == ["check", "check", "reserve", "act with slip over 14"]


async def test_a_group_that_does_not_exist_releases_nothing_and_what_is_stuck_says_so() -> None:
    @workflow
    async def misspelt(run: Run[dict[str, Any], Bank]) -> str:
        return await run.once(pay.parked(by="ofice"), "acme", 7)

    bank, clock = Bank(), ToldClock()
    groups = {"office": ["ann"]}
    async with Client(MemoryLedger(clock), workflows=[misspelt], deps=bank, clock=clock, groups=groups) as client:
        await client.start(misspelt, {}, id="p")
        await client.work()
        [found] = [found for found in await look(client.ledger, groups) if found.kind == "asks"]
        assert "there is no group 'ofice'" in found.sentence
        with pytest.raises(IllegalMove, match="there is no group 'ofice'"):
            await client.answer("p", "approve", by="ann")
    assert not bank.paid


async def test_what_nobody_releases_in_time_is_dropped() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        desk.clock.advance(2 * 86_400 + 1)
        await client.work()

        record = await client.get("p")
        assert record.status is Status.ERROR and "is not to be done: expired" in (record.last_error or "")
        assert await desk.stages() == {"pay": Stage.DROPPED}
        with pytest.raises(IllegalMove):
            await client.answer("p", "approve")
    assert not desk.bank.paid


async def test_only_those_who_are_named_release_and_only_what_they_saw() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        [wait] = load_waits((await client.get("p")).waits)
        with pytest.raises(IllegalMove, match="may not answer"):
            await client.answer("p", "approve", by="eve")
        with pytest.raises(IllegalMove, match="has changed since it was shown"):
            await client.answer("p", "approve", seen="00000000")
        await client.answer("p", "approve", by="bob", seen=(wait.about or {})["hash"])
        await client.work()
    assert desk.bank.paid == [("acme", 7)]


@pytest.mark.parametrize("released", [False, True], ids=["while-it-asks", "after-it-was-released"])
async def test_what_is_another_thing_by_now_is_asked_anew(released: bool) -> None:
    """The check finds something else: what people released was not that."""
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        first = await desk.parked()
        if released:
            await client.answer("p", "approve")
        else:
            await client.edit("p", {"to": "acme"})
        desk.bank.rate = 3
        await client.work()

        assert await desk.status() is Status.NEEDS_APPROVAL
        again = await desk.parked()
        assert (again.prepared, again.nonce != first.nonce) == ("21", True)
        assert not desk.bank.paid
        await client.answer("p", "approve")
        await client.work()
        assert desk.bank.calls[-1] == "act with slip over 21"
    assert desk.bank.paid == [("acme", 7)]


async def test_what_comes_back_to_what_was_released_before_is_asked_again() -> None:
    """The release was of an intent that has not been parked since."""
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.answer("p", "approve")
        desk.bank.rate = 3
        await client.work()
        desk.bank.rate = 2
        await client.edit("p", {})  # the step looks again
        await client.work()
        assert await desk.status() is Status.NEEDS_APPROVAL and (await desk.parked()).prepared == "14"
        await client.answer("p", "approve")
        await client.work()
        assert await desk.status() is Status.DONE
    assert desk.bank.paid == [("acme", 7)]


async def test_what_was_released_and_surely_did_not_happen_is_not_asked_again() -> None:
    desk = Desk()
    desk.bank.busy = 2
    async with desk.client as client:
        await desk.begin()
        await client.answer("p", "approve")
        for _ in range(3):
            await client.work()
            desk.clock.advance(10)
        assert await desk.status() is Status.DONE
    assert desk.bank.paid == [("acme", 7)]
    assert desk.bank.calls.count("reserve") == 1


async def test_other_arguments_are_asked_anew() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.edit("p", {"to": "other"})
        await client.work()
        [wait] = load_waits((await client.get("p")).waits)
        assert (wait.about or {})["show"]["arguments"] == {"to": "other", "amount": 7}
        await client.answer("p", "approve")
        await client.work()
    assert desk.bank.paid == [("other", 7)]


async def test_under_a_halt_nothing_is_released_and_it_asks_on_when_the_halt_is_over() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.halt()
        with pytest.raises(IllegalMove):
            await client.answer("p", "approve")
        assert await desk.stages() == {"pay": Stage.PARKED}
        await client.resume(cancelled=True)
        await client.work()
        assert await desk.status() is Status.NEEDS_APPROVAL
        await client.answer("p", "approve")
        await client.work()
    assert desk.bank.paid == [("acme", 7)]


async def test_a_halt_after_the_release_keeps_it_from_acting_and_reserves_nothing() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.answer("p", "approve")
        await client.halt()
        await client.work()
        assert await desk.status() is Status.CANCELLED
        assert desk.bank.calls == ["check"]


async def test_a_record_is_cancelled_over_what_is_parked_and_asks_again_when_it_is_tried_again() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        await client.cancel("p")
        await client.work()
        assert (await desk.status(), desk.bank.calls) == (Status.CANCELLED, ["check"])
        await client.retry("p")
        await client.work()
        assert await desk.status() is Status.NEEDS_APPROVAL
    assert not desk.bank.paid


async def test_an_undoing_takes_back_what_was_done_and_leaves_what_is_parked() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin(pays_twice)
        assert await desk.stages() == {"first": Stage.DONE, "second": Stage.PARKED}
        await client.cancel("p", undo=True)
        await client.work()
        assert await desk.status() is Status.CANCELLED
        assert await desk.stages() == {"first": Stage.UNDONE, "second": Stage.PARKED, "undo of first": Stage.DONE}
    assert desk.bank.taken_back == ["paid acme"]


async def test_why_and_the_log_speak_of_it() -> None:
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        record = await client.get("p")
        assert "asks ann, bob: \"Do 'pay'?\"" in why_of(record, await around(client.ledger, record)).sentence
        [event] = [event for event in await client.ledger.events(record_id="p") if event.kind == "effect.parked"]
        assert line(event) == "effect pay: parked; it acts only if people release it"
        await client.answer("p", "reject")
        assert (await client.get("p")).status is Status.PENDING


async def test_a_question_that_changes_while_somebody_answers_takes_no_answer_to_the_old_one() -> None:
    """Without the hash of what was shown, too: the answer is bound to what was asked when it came."""
    desk = Desk()
    async with desk.client as client:
        await desk.begin()
        real, raced = client.ledger.commit, False

        async def commit(changes: Any) -> Any:
            nonlocal raced
            if not raced:
                raced = True
                desk.bank.rate = 5
                await other.edit("p", {"to": "else"})
                await client.work()
            return await real(changes)

        other = Client(client.ledger, clock=desk.clock, who="bob")
        client.ledger.commit = commit  # type: ignore[method-assign]
        with pytest.raises(IllegalMove, match="has changed since it was shown"):
            await client.answer("p", "approve")
        client.ledger.commit = real  # type: ignore[method-assign]
        assert await desk.status() is Status.NEEDS_APPROVAL
    assert not desk.bank.paid


async def test_a_key_of_ones_own_that_an_ended_record_has_parked_is_free() -> None:
    @workflow
    async def invoice(run: Run[dict[str, Any], Bank]) -> str:
        return await run.once(pay.keyed("invoice-17").parked(), "acme", 17)

    bank, clock = Bank(), ToldClock()
    async with Client(MemoryLedger(clock), workflows=[invoice], deps=bank, clock=clock, who="ann") as client:
        await client.start(invoice, {}, id="first")
        await client.work()
        await client.start(invoice, {}, id="second")
        await client.work()
        assert (await client.get("second")).status is Status.WAITING  # the first one may still do it
        await client.cancel("first")
        clock.advance(60)
        await client.work()
        assert (await client.get("second")).status is Status.NEEDS_APPROVAL
        await client.answer("second", "approve")
        await client.work()
        assert (await client.get("second")).status is Status.DONE
    assert bank.paid == [("acme", 17)]


@every_kill
async def test_killed_at_every_write_it_acts_once_and_only_after_the_release() -> None:
    bank = Bank()
    async with Trial(pays, deps=bank) as trial:
        record = await trial.start({}, id="p")
        await trial.settle()
        assert record.status == "NEEDS_APPROVAL" and not bank.paid
        await record.answer("approve", by="ann")
        await trial.settle()
        assert record.status == "DONE"
    assert bank.paid == [("acme", 7)]


@every_kill
async def test_killed_at_every_write_what_was_dropped_is_never_done() -> None:
    bank = Bank()
    async with Trial(asks_first, deps=bank) as trial:
        record = await trial.start({}, id="p")
        await trial.settle()
        await record.answer("reject", by="ann")
        await trial.settle()
        assert record.status == "DONE" and record.result == "reject by ann: "
    assert not bank.paid


async def test_several_are_parked_side_by_side_and_each_is_decided_alone() -> None:
    @workflow
    async def many(run: Run[dict[str, Any], Bank]) -> list[str]:
        async def one(n: int) -> str:
            try:
                return await run.once(pay.named(f"pay{n}").parked(), f"supplier{n}", n)
            except Fail:
                return "dropped"

        return await asyncio.gather(*(one(n) for n in range(3)))

    bank, clock = Bank(), ToldClock()
    async with Client(MemoryLedger(clock), workflows=[many], deps=bank, clock=clock, who="ann") as client:
        await client.start(many, {}, id="p")
        await client.work()
        for n, choice in ((2, "approve"), (0, "reject"), (1, "approve")):
            waits = load_waits((await client.get("p")).waits)
            assert (await client.get("p")).status is Status.NEEDS_APPROVAL
            [wait] = [w for w in waits if (w.about or {})["show"]["effect"] == f"pay{n}"]
            await client.answer("p", choice, question=wait.name)
            await client.work()
        record = await client.get("p")
        assert (record.status, record.result) == (Status.DONE, '["dropped","paid supplier1","paid supplier2"]')
    assert sorted(bank.paid) == [("supplier1", 1), ("supplier2", 2)]
