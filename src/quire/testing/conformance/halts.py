"""Halt, resume and what they leave."""

from __future__ import annotations

import pytest

from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Order,
    Query,
    Refused,
    Send,
)
from quire.model.codec import parse
from quire.model.receipt import Stage
from quire.model.record import UNDO, Status
from quire.model.side import EVERYWHERE
from quire.model.wait import On, Wait, load_waits
from quire.rules import moves as transition
from quire.rules.outcome import Broke, Done, Next, Outcome, Stopped, Tried, Yielded
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    FLOW,
    STEP,
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
    new_answer,
    new_facts,
    new_intent,
    new_map,
    new_start,
    on_signal,
    order,
    progress,
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
from quire.testing.conformance.meanwhile import in_doubt
from quire.testing.conformance.outcomes import GOING_ON, OUTCOMES
from quire.testing.conformance.suite import Suite


class Halts(Suite):
    """Nothing starts after a halt, and nothing comes back by itself (15)."""

    async def test_a_halt_is_acknowledged_with_who_and_why(self, ledger: Ledger, clock: ToldClock) -> None:
        before = await ledger.standing()

        after = await ledger.order(Order("halt", EVERYWHERE, "ann", reason="wrong text"))

        [control] = after.controls
        assert (control.halted, control.by, control.reason, control.at) == (True, "ann", "wrong text", clock.now())
        assert after.epoch == before.epoch + 1
        assert await ledger.standing() == after

    async def test_after_a_halt_nothing_starts(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        parent = await run(ledger, "parent")
        await start(ledger, "due")
        await order(ledger, "halt", reason="wrong text")

        assert await claimed(ledger) == []
        assert refused(await commit(ledger, new_start("new", clock.now()))) == "halted"
        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "halted"
        [sent] = await ledger.send([Send("s1", "r", "paid", "1")])
        assert refused(sent) == "halted"
        mapped = applied(await settle(ledger, parent, new_map(parent, 2, clock.now())))
        assert (mapped.status, await ledger.find(Query(parent_id="parent"))) == (Status.CANCELLED, [])
        kept = applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next")))
        assert kept.status is Status.CANCELLED

    async def test_the_refusal_names_the_workflow_who_halted_it_and_the_remedy(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await order(ledger, "halt", FLOW, reason="wrong text")

        verdict = await commit(ledger, new_start("new", clock.now()))

        assert isinstance(verdict, Refused)
        assert verdict.reason == (
            "'flow' is halted by ann (wrong text); nothing starts until somebody resumes it (quire resume)"
        )

    @pytest.mark.parametrize("outcome", GOING_ON.values(), ids=GOING_ON)
    async def test_a_running_record_settles_to_cancelled_under_a_halt(self, ledger: Ledger, outcome: Outcome) -> None:
        row = await run(ledger)
        await order(ledger, "halt")

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.worker, after.due_at) == (Status.CANCELLED, None, None)

    async def test_the_holder_learns_of_a_halt_by_its_commits_and_claims(self, ledger: Ledger) -> None:
        """15: it need not wait for its next beat."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        before = await commit(ledger, new_facts(row, new_answer(row, "first")))
        epoch = (await claim(ledger)).epoch
        await order(ledger, "halt")

        after = [
            await commit(ledger, new_facts(row, new_answer(row, "second"))),
            await commit(ledger, new_facts(row, done(intent))),
        ]

        assert isinstance(before, Applied)
        assert not before.stop
        assert [verdict.stop for verdict in after if isinstance(verdict, Applied)] == [True, True]
        assert (await claim(ledger)).epoch == epoch + 1

    @pytest.mark.parametrize("name", ["done", "broke", "stopped", "ends"])
    async def test_an_end_stands_under_a_halt(self, ledger: Ledger, name: str) -> None:
        row = await run(ledger)
        await order(ledger, "halt")

        after = applied(await settle(ledger, row, OUTCOMES[name]))

        assert after.status is transition.settle(row, OUTCOMES[name], 0.0).image.status

    @pytest.mark.parametrize("how", ["stops", "goes on", "lost", "swept"])
    async def test_whoever_writes_down_what_a_halt_cancelled_gives_the_same_reason(
        self, ledger: Ledger, clock: ToldClock, how: str
    ) -> None:
        """By this a resume knows what the halt cancelled."""
        row = await run(ledger)
        if how == "swept":
            await wait_for(ledger, row)
        await order(ledger, "halt")

        if how == "lost":
            await lose_worker(ledger, clock)
        elif how == "swept":
            await ledger.recover()
        else:
            applied(await settle(ledger, row, Stopped("told to") if how == "stops" else Yielded("budget")))

        line = (await ledger.events(record_id="r"))[-1]
        assert (await the(ledger)).status is Status.CANCELLED
        assert (line.kind, parse(line.body)) == ("cancelled", {"reason": "halted"})

    async def test_what_stops_for_a_halt_keeps_what_it_waited_for(self, ledger: Ledger) -> None:
        """Revived, it finds the children that it has, and starts no others."""
        await map_over(ledger, await run(ledger), 2, may_fail=0)
        children = await run_children(ledger)
        await settle(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records
        await order(ledger, "halt")

        after = applied(await settle(ledger, parent, Stopped("told to")))

        assert (after.status, after.waits) == (Status.CANCELLED, parent.waits)

    @pytest.mark.parametrize("undo", [False, True], ids=["plain", "undo"])
    async def test_a_wish_to_cancel_comes_before_a_halt(self, ledger: Ledger, clock: ToldClock, undo: bool) -> None:
        """What somebody cancelled is not brought back to go on with its work when the halt ends."""
        await run(ledger)
        await ask_to_cancel(ledger, undo=undo)
        await order(ledger, "halt")

        await lose_worker(ledger, clock)

        row = await the(ledger)
        assert (row.status, row.step) == (Status.CANCELLED, UNDO if undo else STEP)
        [told] = [event for event in await ledger.events(record_id="r") if "a typo" in event.body][1:]
        assert told.kind == "cancelled"

    async def test_what_waits_reads_as_cancelled_at_once(self, ledger: Ledger, clock: ToldClock) -> None:
        await wait_for(ledger, await run(ledger, "waits"))
        await wait_for(ledger, await run(ledger, "asks"), Wait(On.QUESTION, "k", "ok?", about={"text": "ok?"}))
        await start(ledger, "due")
        await start(ledger, "later", due_at=clock.now() + 99)
        ids = ["waits", "asks", "due", "later"]

        await order(ledger, "halt")

        cancelled = Query(status=(Status.CANCELLED,))
        assert [row.status for row in await ledger.load(ids)] == [Status.CANCELLED] * 4
        assert [row.record_id for row in await ledger.find(cancelled)] == sorted(ids)
        waiting = Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL
        for asked in [waiting, *[(status,) for status in waiting]]:
            assert await ledger.find(Query(status=asked)) == []
        assert [(count.status, count.count) for count in await ledger.counts()] == [(Status.CANCELLED, 4)]

    async def test_the_sweep_writes_it_down_in_bounded_batches(self, ledger: Ledger) -> None:
        ids = [f"r{n}" for n in range(5)]
        await start_all(ledger, ids)
        await order(ledger, "halt")
        seen = await ledger.load(ids)

        sweeps = [await ledger.recover(limit=2) for _ in range(4)]

        assert [(sweep.swept, sweep.more) for sweep in sweeps] == [(2, True), (2, True), (1, False), (0, False)]
        rows = await ledger.load(ids)
        assert [(row.status, row.version) for row in rows] == [(Status.CANCELLED, row.version + 1) for row in seen]
        assert await log(ledger, "r0") == ["started", "cancelled"]

    async def test_a_wish_to_cancel_that_outlived_its_worker_outlives_the_halt_as_well(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """What a halt cancels may be brought back: then it does not go on without what somebody wished for it."""
        await intend(ledger, await run(ledger))
        await ask_to_cancel(ledger, undo=True)
        await lose_worker(ledger, clock)
        assert (await the(ledger)).status is Status.PENDING

        await order(ledger, "halt")
        await ledger.recover()

        row = await the(ledger)
        assert (row.status, row.cancel is None) == (Status.CANCELLED, False)

    @pytest.mark.parametrize("how", ["waits", "runs"])
    async def test_a_parent_that_is_not_halted_waits_for_children_that_a_halt_cancels(
        self, ledger: Ledger, clock: ToldClock, how: str
    ) -> None:
        """4, 15: what a halt cancelled has not ended, and comes back to a parent that still waits for it."""
        await map_over(ledger, await run(ledger), 2, may_fail=2)
        children = await run_children(ledger) if how == "runs" else {}
        await order(ledger, "halt", "child")

        for row in children.values():
            applied(await settle(ledger, row, Stopped("told to")))
        await ledger.recover()
        await order(ledger, "resume", "child")
        epoch = (await ledger.standing()).epoch

        fanin = await the_fanin(ledger)
        assert (fanin.left, fanin.failed, fanin.active) == (2, 0, 2)
        assert (await the(ledger)).status is Status.WAITING
        for row in await ledger.find(Query(parent_id="r")):
            assert row.status is Status.CANCELLED
            applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", epoch)))
        assert len(await run_children(ledger)) == 2

    async def test_a_parent_that_ends_lets_go_the_children_that_a_halt_cancelled(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """5, 15: nothing brings them back any more, and their own children are let go as well."""
        [child_id] = await map_over(ledger, await run(ledger), 1)
        child = (await run_children(ledger))["0"]
        [grandchild_id] = await map_over(ledger, child, 1)
        await order(ledger, "halt", "child")
        await ledger.recover()
        await order(ledger, "resume", "child")
        row = await the(ledger)

        applied(await move(ledger, row, transition.cancel(row, clock.now(), "ann", "", undo=False)))
        for _ in range(3):
            await ledger.recover()

        rows = {row.record_id: row for row in await ledger.load([child_id, grandchild_id])}
        assert {(row.status, row.counted) for row in rows.values()} == {(Status.CANCELLED, True)}
        [row] = await ledger.load([child_id])
        assert refused(await move(ledger, row, transition.revive(row, clock.now(), "ann", 9))) == "parent"

    @pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
    async def test_a_child_that_a_halt_cancels_with_its_parent_is_revived_with_it(
        self, ledger: Ledger, clock: ToldClock, swept: bool
    ) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        child = (await run_children(ledger))["0"]
        await order(ledger, "halt")
        applied(await settle(ledger, child, Stopped("told to")))
        if swept:
            await ledger.recover()
        await order(ledger, "resume")
        epoch = (await ledger.standing()).epoch

        for record_id in ("r", child_id):
            row = await the(ledger, record_id)
            applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", epoch)))
        [parent] = (await claim(ledger)).records
        await wait_for(ledger, parent, *load_waits(parent.waits))
        child = (await run_children(ledger))["0"]
        applied(await settle(ledger, child, Done("1", "{}")))

        assert progress(await the_fanin(ledger)) == (1, 0, 0)
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_parent_that_a_halt_cancels_does_not_abandon_its_children(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await map_over(ledger, await run(ledger), 2, may_fail=0)
        children = await run_children(ledger)
        await settle(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records
        await order(ledger, "halt", FLOW)

        applied(await settle(ledger, parent, Stopped("told to")))
        await ledger.recover()

        assert not (await the_fanin(ledger)).abandoned
        assert (await the(ledger, children["1"].record_id)).cancel is None

    async def test_the_sweep_tells_no_fan_in_of_a_parent_that_is_halted_too(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 2)
        await order(ledger, "halt")

        await ledger.recover()

        assert {row.status for row in await ledger.find(Query())} == {Status.CANCELLED}
        assert (await the_fanin(ledger)).left == 2

    async def test_the_turn_of_a_halted_child_and_its_sweep_keep_its_log_whole(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        ids = await map_over(ledger, await run(ledger), 2, limit=1)
        await run_children(ledger)
        await order(ledger, "halt", "child")

        await lose_worker(ledger, clock)

        assert [row.status for row in await ledger.load(ids)] == [Status.CANCELLED] * 2
        await log(ledger, ids[1])

    async def test_a_halt_of_one_workflow_leaves_the_others(self, ledger: Ledger) -> None:
        await start(ledger, "a")
        await start(ledger, "b", workflow="other's")

        await order(ledger, "halt", "other's")

        assert [row.status for row in await ledger.load(["a", "b"])] == [Status.PENDING, Status.CANCELLED]
        assert [row.record_id for row in await ledger.find(Query(status=(Status.CANCELLED,)))] == ["b"]
        assert await claimed(ledger, slot(), slot(workflow="other's")) == ["a"]

    async def test_a_resume_opens_a_new_epoch_and_brings_nothing_back(self, ledger: Ledger) -> None:
        await start(ledger, "old")
        await order(ledger, "halt")
        await order(ledger, "resume")

        new = await start(ledger, "new")

        assert new.epoch == (await ledger.standing()).epoch
        assert await claimed(ledger) == ["new"]
        assert (await the(ledger, "old")).status is Status.CANCELLED

    async def test_what_a_halt_cancelled_does_not_stand_in_the_way_of_what_is_new(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await start_all(ledger, [f"old{n}" for n in range(5)])
        await order(ledger, "halt")
        await order(ledger, "resume")
        clock.advance(1)
        await start(ledger, "new")

        assert await claimed(ledger, limit=1) == ["new"]

    async def test_what_ran_over_a_halt_is_cancelled_also_after_the_resume(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await order(ledger, "halt")
        await order(ledger, "resume")

        told = await beat(ledger, "w1", row)

        assert told.cancelled == ("r",)
        assert applied(await settle(ledger, row, Tried("1", 1.0))).status is Status.CANCELLED

    @pytest.mark.parametrize("swept", [False, True], ids=["unswept", "swept"])
    @pytest.mark.parametrize("stood", ["due", "timer", "signal", "question"])
    async def test_what_a_halt_cancelled_can_be_revived_and_does_not_wait_for_ever(
        self, ledger: Ledger, clock: ToldClock, stood: str, swept: bool
    ) -> None:
        row = await run(ledger)
        waits = {
            "timer": Wait(On.TIMER, "k", until=clock.now() + 60),
            "signal": on_signal(row),
            "question": Wait(On.QUESTION, "k", "ok?", about={"text": "ok?"}),
        }
        if stood == "due":
            applied(await settle(ledger, row, Yielded("budget")))
        else:
            await wait_for(ledger, row, waits[stood])
        await order(ledger, "halt")
        if swept:
            await ledger.recover()
        await order(ledger, "resume")
        epoch = (await ledger.standing()).epoch

        row = await the(ledger)
        after = applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", epoch)))

        assert after.epoch == epoch
        assert await claimed(ledger) == ["r"]

    async def test_a_state_that_rests_rests_again_when_it_is_revived(self, ledger: Ledger, clock: ToldClock) -> None:
        applied(await settle(ledger, await run(ledger), Next("rest", "{}", rests=True)))
        await order(ledger, "halt")
        await order(ledger, "resume")

        row = await the(ledger)
        after = applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", 3)))

        assert (after.status, after.due_at, after.step) == (Status.WAITING, None, "rest")

    async def test_nothing_is_revived_while_the_halt_stands(self, ledger: Ledger, clock: ToldClock) -> None:
        await start(ledger)
        await order(ledger, "halt")
        row = await the(ledger)

        assert refused(await move(ledger, row, transition.revive(row, clock.now(), "ann", 2))) == "halted"

    async def test_a_standing_lists_the_effects_that_are_under_way(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await intend(ledger, row, "soon", act_by=clock.now() + 10)
        await intend(ledger, row, "later", act_by=clock.now() + 20)
        over = await intend(ledger, row, "over", act_by=clock.now() + 20)
        await commit(ledger, new_facts(row, done(over)))
        clock.advance(10)

        standing = await ledger.order(Order("halt", EVERYWHERE, "ann"))

        assert [receipt.name for receipt in standing.under_way] == ["later"]
        clock.advance(10)
        assert (await ledger.standing()).under_way == ()

    async def test_a_doubt_outlives_the_halt_and_its_answer_starts_nothing(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        intent = await intend(ledger, await run(ledger))
        await in_doubt(ledger, clock)
        await order(ledger, "halt")
        await ledger.recover()
        row = await the(ledger)
        assert row.status is Status.NEEDS_APPROVAL

        go = transition.resolved(row, clock.now(), intent.key, {"by": "ann"})
        after = applied(await move(ledger, row, go, receipts=(done(intent),)))

        assert (after.status, after.open_intents) == (Status.CANCELLED, 0)
        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE

    async def test_one_of_two_doubts_answered_under_a_halt_leaves_the_other(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        first, _ = await intend(ledger, row, "a"), await intend(ledger, row, "b")
        await in_doubt(ledger, clock)
        await order(ledger, "halt")
        row = await the(ledger)

        go = transition.resolved(row, clock.now(), first.key, {"by": "ann"})
        after = applied(await move(ledger, row, go, receipts=(done(first),)))

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)
