"""What happens to an order that cannot be obeyed at once: it is kept until it has its whole effect."""

from __future__ import annotations

import pytest

from quire.client.client import Client
from quire.ledger.base import Ledger
from quire.model.change import Order
from quire.model.receipt import Receipt, Stage
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE
from quire.model.wait import load_waits
from quire.rules import adoption
from quire.rules import moves as transition
from quire.rules.outcome import Broke, Done, Next, Outcome, Stopped, Tried, Waits
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    ask_to_cancel,
    beat,
    claim,
    claimed,
    commit,
    done,
    intend,
    log,
    lose_worker,
    map_over,
    move,
    new_facts,
    new_intent,
    order,
    progress,
    refused,
    run,
    run_children,
    settle,
    slot,
    start,
    the,
    the_fanin,
    wait_for,
)
from quire.testing.conformance.meanwhile import in_doubt
from quire.testing.conformance.suite import Suite

UNDOING = [False, True]
IDS = ["plain", "undo"]


async def cancel(ledger: Ledger, record_id: str = "r", *, undo: bool = False) -> Record:
    return await Client(ledger, who="ann").cancel(record_id, undo=undo, reason="a typo")


async def resume(ledger: Ledger) -> None:
    """End the halt, and bring back what it cancelled."""
    await Client(ledger, who="ann").resume(cancelled=True)


async def resolve(ledger: Ledger, intent: Receipt, stage: Stage = Stage.DONE) -> Record:
    """A person says whether the effect in doubt happened."""
    row = await the(ledger, intent.record_id)
    go = transition.resolved(row, await ledger.now(), intent.key, {"by": "bob"})
    return applied(await move(ledger, row, go, receipts=(replace(intent, stage=stage, value='"posted"'),)))


async def answer(ledger: Ledger, record: Record, intent: Receipt, how: str) -> None:
    """The doubt ends: a person resolves it, or the receipt comes late."""
    if how == "receipt":
        applied(await commit(ledger, new_facts(record, done(intent))))
    else:
        await resolve(ledger, intent, Stage.DONE if how == "happened" else Stage.VOID)


HOW = ["happened", "not", "receipt"]


class Kept(Suite):
    """An order that was acknowledged is a fact, whatever stands in its way (6, 15, 18)."""

    # -- cancel, over a doubt --------------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", HOW)
    @pytest.mark.parametrize("undo", UNDOING, ids=IDS)
    async def test_a_cancel_over_a_doubt_is_obeyed_when_the_doubt_ends(
        self, ledger: Ledger, clock: ToldClock, undo: bool, how: str
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await in_doubt(ledger, clock)

        asked = await cancel(ledger, undo=undo)
        await answer(ledger, row, intent, how)

        after = await the(ledger)
        assert (asked.status, asked.cancel is None) == (Status.NEEDS_APPROVAL, False)
        assert (after.step, after.status) == ((UNDO, Status.PENDING) if undo else ("work", Status.CANCELLED))
        assert after.cancel is None
        assert "cancel_asked" in await log(ledger)
        assert await claimed(ledger, worker="w2") == []

    @pytest.mark.parametrize("undo", UNDOING, ids=IDS)
    async def test_a_cancel_is_obeyed_only_when_the_last_doubt_ends(
        self, ledger: Ledger, clock: ToldClock, undo: bool
    ) -> None:
        row = await run(ledger)
        first, second = await intend(ledger, row, "a"), await intend(ledger, row, "b")
        await in_doubt(ledger, clock)
        await cancel(ledger, undo=undo)

        between = await resolve(ledger, first)
        after = await resolve(ledger, second)

        assert (between.status, between.open_intents, between.cancel is None) == (Status.NEEDS_APPROVAL, 1, False)
        assert (after.step, after.status) == ((UNDO, Status.PENDING) if undo else ("work", Status.CANCELLED))

    @pytest.mark.parametrize("undo", UNDOING, ids=IDS)
    async def test_a_cancel_of_what_backs_off_over_an_open_intent_asks_and_is_kept(
        self, ledger: Ledger, clock: ToldClock, undo: bool
    ) -> None:
        intent = await intend(ledger, await run(ledger))
        await lose_worker(ledger, clock)

        asked = await cancel(ledger, undo=undo)
        after = await resolve(ledger, intent)

        assert asked.status is Status.NEEDS_APPROVAL
        assert (after.step, after.status) == ((UNDO, Status.PENDING) if undo else ("work", Status.CANCELLED))

    @pytest.mark.parametrize("how", HOW)
    @pytest.mark.parametrize("undo", UNDOING, ids=IDS)
    async def test_a_doubt_that_ends_under_a_halt_obeys_the_wish_and_not_the_halt(
        self, ledger: Ledger, clock: ToldClock, undo: bool, how: str
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await ask_to_cancel(ledger, undo=undo)
        applied(await settle(ledger, row, Tried("timeout", 1.0)))
        await order(ledger, "halt")

        await answer(ledger, row, intent, how)
        await ledger.recover()
        halted = await the(ledger)
        await resume(ledger)

        after = await the(ledger)
        assert halted.status is Status.CANCELLED
        assert (after.step, after.status) == ((UNDO, Status.PENDING) if undo else ("work", Status.CANCELLED))

    @pytest.mark.parametrize("undo", UNDOING, ids=IDS)
    async def test_a_wish_that_a_halt_overtook_is_obeyed_when_the_halt_is_taken_back(
        self, ledger: Ledger, clock: ToldClock, undo: bool
    ) -> None:
        intent = await intend(ledger, await run(ledger))
        await ask_to_cancel(ledger, undo=undo)
        await lose_worker(ledger, clock)
        await order(ledger, "halt")
        await ledger.recover()

        await resume(ledger)
        [row] = (await claim(ledger, worker="w2")).records
        applied(await settle(ledger, row, Stopped("told to")))
        after = await resolve(ledger, intent)

        assert (after.step, after.status) == ((UNDO, Status.PENDING) if undo else ("work", Status.CANCELLED))

    async def test_a_plain_cancel_does_not_take_an_undo_back(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger, undo=True)
        await ask_to_cancel(ledger)

        after = applied(await settle(ledger, row, Tried("late", 5.0)))

        assert (after.step, after.status) == (UNDO, Status.PENDING)

    @pytest.mark.parametrize("doubt", [False, True], ids=["waits", "doubts"])
    async def test_a_cancel_of_what_undoes_is_kept_whatever_its_pass_comes_to(
        self, ledger: Ledger, clock: ToldClock, doubt: bool
    ) -> None:
        applied(await settle(ledger, await run(ledger), Broke("a bug", undo=True)))
        [row] = (await claim(ledger, slot(UNDO))).records
        intent = await intend(ledger, row, "undo of post") if doubt else None
        await ask_to_cancel(ledger)

        waits = transition.doubted(intent.key, intent.name) if intent is not None else None
        outcome: Outcome = Waits((waits,), row.data) if waits is not None else Tried("later", 5.0)
        after = applied(await settle(ledger, row, outcome))
        if intent is not None:
            assert after.status is Status.NEEDS_APPROVAL
            after = await resolve(ledger, intent)

        assert (after.step, after.status, after.ending is None) == (UNDO, Status.CANCELLED, False)

    async def test_no_undo_begins_over_a_wish_to_stop_the_undoing(self, ledger: Ledger) -> None:
        applied(await settle(ledger, await run(ledger), Broke("a bug", undo=True)))
        [row] = (await claim(ledger, slot(UNDO))).records
        await ask_to_cancel(ledger)

        assert refused(await commit(ledger, new_facts(row, new_intent(row, "undo of post")))) == "cancelled"

    async def test_a_child_in_doubt_stops_when_its_parent_is_cancelled(self, ledger: Ledger, clock: ToldClock) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        child = (await run_children(ledger))["0"]
        intent = await intend(ledger, child)
        await lose_worker(ledger, clock)
        await cancel(ledger, child_id)
        await cancel(ledger)
        await ledger.recover()

        await resolve(ledger, intent)

        assert (await the(ledger, child_id)).status is Status.CANCELLED

    async def test_a_child_that_its_parent_left_in_doubt_does_not_go_on(self, ledger: Ledger, clock: ToldClock) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        child = (await run_children(ledger))["0"]
        intent = await intend(ledger, child)
        applied(await settle(ledger, child, Done("1", "{}")))
        await cancel(ledger)
        await ledger.recover()

        after = await resolve(ledger, intent)

        assert (after.record_id, after.status) == (child_id, Status.CANCELLED)

    # -- resume --cancelled ----------------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", HOW)
    async def test_a_child_whose_doubt_ended_under_a_halt_goes_on_with_its_parent(
        self, ledger: Ledger, clock: ToldClock, how: str
    ) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        child = (await run_children(ledger))["0"]
        intent = await intend(ledger, child)
        applied(await settle(ledger, child, Done("1", "{}")))
        await order(ledger, "halt")
        await answer(ledger, child, intent, how)
        await ledger.recover()

        await resume(ledger)
        [parent] = (await claim(ledger)).records
        applied(await settle(ledger, parent, _again(parent)))
        child = (await run_children(ledger))["0"]
        applied(await settle(ledger, child, Done("1", "{}")))

        fanin = await the_fanin(ledger)
        assert (fanin.left, fanin.failed) == (0, 0)
        assert (await the(ledger)).status is Status.PENDING
        assert (await the(ledger, child_id)).status is Status.DONE

    @pytest.mark.parametrize("how", ["lost", "stops", "tried", "moves", "farewell"])
    async def test_what_a_halt_had_not_stopped_yet_goes_on_after_the_resume(
        self, ledger: Ledger, clock: ToldClock, how: str
    ) -> None:
        row = await run(ledger)
        await order(ledger, "halt")
        await resume(ledger)

        outcomes: dict[str, Outcome] = {
            "stops": Stopped("told to"),
            "tried": Tried("late", 0.0),
            "moves": Next("work", "{}"),
        }
        if how == "lost":
            await lose_worker(ledger, clock)
        elif how == "farewell":
            await ledger.farewell("w1")
        else:
            applied(await settle(ledger, row, outcomes[how]))
        await ledger.recover()

        after = await the(ledger)
        assert (after.status, after.epoch) == (Status.PENDING, (await ledger.standing()).epoch)
        assert await claimed(ledger, worker="w2") == ["r"]

    async def test_whoever_holds_what_is_resumed_is_not_told_to_stop(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await order(ledger, "halt")
        await resume(ledger)

        told = await beat(ledger, "w1", row)
        intent = await intend(ledger, row)

        assert (told.cancelled, told.lost) == ((), ())
        assert (await ledger.receipts(keys=[intent.key]))[0].stage is Stage.INTENDED

    async def test_a_later_halt_stops_what_was_resumed_while_it_ran(self, ledger: Ledger, clock: ToldClock) -> None:
        await run(ledger)
        await order(ledger, "halt")
        await resume(ledger)
        await order(ledger, "halt")
        await order(ledger, "resume")

        await lose_worker(ledger, clock)

        assert (await the(ledger)).status is Status.CANCELLED

    async def test_a_doubt_that_a_halt_left_goes_on_after_the_resume_also_by_its_receipt(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await in_doubt(ledger, clock)
        await order(ledger, "halt")
        await resume(ledger)

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert await claimed(ledger, worker="w2") == ["r"]

    @pytest.mark.parametrize("how", HOW)
    async def test_the_end_of_a_doubt_does_not_bring_back_what_a_halt_cancelled(
        self, ledger: Ledger, clock: ToldClock, how: str
    ) -> None:
        """A resume without ``--cancelled`` brings nothing back, and to say what happened is no order to go on."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await in_doubt(ledger, clock)
        await order(ledger, "halt")
        await order(ledger, "resume")

        await answer(ledger, row, intent, how)
        halted = await the(ledger)
        await resume(ledger)

        assert halted.status is Status.CANCELLED
        assert await claimed(ledger, worker="w2") == ["r"]

    async def test_a_retry_under_a_halt_is_refused_and_not_swallowed(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await in_doubt(ledger, clock)
        await order(ledger, "halt")
        applied(await commit(ledger, new_facts(row, done(intent))))

        row = await the(ledger)
        verdict = await move(ledger, row, transition.retry(row, clock.now(), "ann"))

        assert refused(verdict) == "halted"

    # -- edit, cancel and retry of what a halt cancelled -----------------------------------------------------------

    @pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
    @pytest.mark.parametrize("which", ["parent", "child"])
    async def test_what_is_edited_under_a_halt_is_brought_back_with_its_family(
        self, ledger: Ledger, clock: ToldClock, which: str, swept: bool
    ) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        await order(ledger, "halt")
        if swept:
            await ledger.recover()
        row = await the(ledger, "r" if which == "parent" else child_id)
        applied(await move(ledger, row, transition.edit(row, clock.now(), "ann", '{"edited": true}')))
        await ledger.recover()

        await resume(ledger)
        [parent] = (await claim(ledger)).records
        applied(await settle(ledger, parent, _again(parent)))
        child = (await run_children(ledger))["0"]
        applied(await settle(ledger, child, Done("1", "{}")))

        assert progress(await the_fanin(ledger)) == (1, 0, 0)
        assert (await the(ledger)).status is Status.PENDING

    async def test_data_can_be_edited_while_a_halt_holds_a_record_with_an_open_intent(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await intend(ledger, await run(ledger))
        await lose_worker(ledger, clock)
        await order(ledger, "halt")
        row = await the(ledger)

        after = applied(await move(ledger, row, transition.edit(row, clock.now(), "ann", '{"edited": true}')))
        await resume(ledger)

        assert (after.status, after.data) == (Status.CANCELLED, '{"edited": true}')
        assert await claimed(ledger, worker="w2") == ["r"]

    @pytest.mark.parametrize("reason", ["a typo", "halted the wrong one"])
    @pytest.mark.parametrize("edited", [False, True], ids=["as it is", "edited"])
    async def test_what_a_person_cancelled_is_not_brought_back(
        self, ledger: Ledger, clock: ToldClock, reason: str, edited: bool
    ) -> None:
        await start(ledger)
        await Client(ledger, who="ann").cancel("r", reason=reason)
        if edited:
            row = await the(ledger)
            applied(await move(ledger, row, transition.edit(row, clock.now(), "ann", '{"edited": true}')))
        await order(ledger, "halt")

        await resume(ledger)

        assert (await the(ledger)).status is Status.CANCELLED
        assert await claimed(ledger) == []

    @pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
    async def test_what_a_halt_cancelled_can_be_cancelled_for_good(self, ledger: Ledger, swept: bool) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        await order(ledger, "halt")
        if swept:
            await ledger.recover()

        await cancel(ledger, child_id)
        await resume(ledger)
        [parent] = (await claim(ledger)).records
        parent = applied(await settle(ledger, parent, _again(parent)))

        assert (await the(ledger, child_id)).status is Status.CANCELLED
        assert progress(await the_fanin(ledger)) == (1, 0, 1)
        assert parent.status is Status.PENDING

    async def test_a_cancel_for_good_over_an_open_intent_asks_first(self, ledger: Ledger, clock: ToldClock) -> None:
        intent = await intend(ledger, await run(ledger))
        await lose_worker(ledger, clock)
        await order(ledger, "halt")
        await ledger.recover()

        asked = await cancel(ledger)
        after = await resolve(ledger, intent)
        await resume(ledger)

        assert (asked.status, after.status) == (Status.NEEDS_APPROVAL, Status.CANCELLED)
        assert await claimed(ledger, worker="w2") == []

    async def test_a_person_who_retries_what_a_halt_cancelled_takes_the_wish_back(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await intend(ledger, await run(ledger))
        await ask_to_cancel(ledger, undo=True)
        await lose_worker(ledger, clock)
        await order(ledger, "halt")
        await ledger.recover()
        await order(ledger, "resume")

        row = await the(ledger)
        after = applied(await move(ledger, row, transition.retry(row, clock.now(), "bob")))

        assert (after.status, after.cancel) == (Status.PENDING, None)

    async def test_what_a_copied_book_asked_is_asked_again_after_a_halt(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await wait_for(ledger, await run(ledger))
        go = transition.adopt(row, clock.now(), "ann", "this book is a copy", row.epoch)
        applied(await move(ledger, row, go))
        await order(ledger, "halt")

        await resume(ledger)

        after = await the(ledger)
        assert (after.status, after.due_at) == (Status.NEEDS_APPROVAL, None)
        assert after.question is not None
        assert "does it go on here" in after.question

    async def test_a_record_of_a_copied_book_is_cancelled_when_its_doubt_ends(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        intent = await intend(ledger, await run(ledger))
        await lose_worker(ledger, clock)
        row = await the(ledger)
        go = transition.adopt(row, clock.now(), "ann", "this book is a copy", row.epoch, [(intent.key, intent.name)])
        applied(await move(ledger, row, go))

        asked = await Client(ledger, who="ann").answer("r", adoption.CANCEL)
        after = await resolve(ledger, intent)

        assert (asked.status, after.status) == (Status.NEEDS_APPROVAL, Status.CANCELLED)

    async def test_a_halt_of_one_workflow_is_taken_back_for_what_runs_of_it(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await run(ledger, "other", workflow="other's")
        await run(ledger)
        await ledger.order(Order("halt", "other's", "ann"))
        await order(ledger, "halt")
        await ledger.order(Order("resume", EVERYWHERE, "ann"))
        await ledger.order(Order("resume", "other's", "ann"))

        await resume(ledger)
        await lose_worker(ledger, clock)

        assert [row.status for row in await ledger.load(["other", "r"])] == [Status.PENDING] * 2


def _again(parent: Record) -> Waits:
    """The parent, revived, waits for its children again."""
    return Waits(load_waits(parent.waits), parent.data)
