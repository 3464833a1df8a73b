"""Children, their counts and their parent."""

from __future__ import annotations

import pytest

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Conflict,
    Query,
    Refused,
)
from quire.model.receipt import Kind
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.rules import moves as transition
from quire.rules.outcome import Broke, Done, Outcome, Stopped, Tried
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    FLOW,
    STEP,
    applied,
    ask_to_cancel,
    beat,
    claim,
    commit,
    log,
    lose_worker,
    map_over,
    move,
    new_answer,
    new_facts,
    new_map,
    new_move,
    new_settle,
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
from quire.testing.conformance.suite import Suite


class Fanins(Suite):
    """A parent waits for its children (5)."""

    async def end(self, ledger: Ledger, child: Record, outcome: Outcome | None = None) -> Record:
        return applied(await settle(ledger, child, outcome or Done(child.data, child.data)))

    async def test_a_child_that_is_born_after_a_halt_of_its_workflow_has_ended_is_not_cancelled_by_it(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """The parent is older than that halt, which did not concern it."""
        parent = await run(ledger)
        await order(ledger, "halt", "child")
        await order(ledger, "resume", "child")

        await map_over(ledger, parent, 1)
        await ledger.recover()

        [child] = (await run_children(ledger)).values()
        assert child.status is Status.RUNNING

    async def test_the_parent_waits_until_its_last_child_has_ended(self, ledger: Ledger, clock: ToldClock) -> None:
        await map_over(ledger, await run(ledger), 3)
        children = await run_children(ledger)
        waiting = await the(ledger)
        for place in ("2", "0"):
            await self.end(ledger, children[place])
        still_waiting = await the(ledger)

        await self.end(ledger, children["1"])

        assert waiting == still_waiting
        assert waiting.status is Status.WAITING
        after = await the(ledger)
        assert (after.status, after.due_at, after.version) == (Status.PENDING, clock.now(), waiting.version + 1)
        fanin = await the_fanin(ledger)
        assert (fanin.total, fanin.left, fanin.failed, fanin.active) == (3, 0, 0, 0)
        assert (await log(ledger))[-1] == "woken"

    async def test_children_are_records_like_any_other(self, ledger: Ledger) -> None:
        parent = await run(ledger)

        ids = await map_over(ledger, parent, 3)

        rows = await ledger.load(ids)
        assert [(row.parent_id, row.generation, row.place, row.version) for row in rows] == [
            ("r", 1, place, 1) for place in range(3)
        ]
        assert await log(ledger, ids[0]) == ["started"]
        assert await ledger.find(Query(parent_id="r", order="place")) == rows

    async def test_two_children_that_end_in_one_batch_count_twice(self, ledger: Ledger) -> None:
        """5a."""
        await map_over(ledger, await run(ledger), 2)
        children, now = await run_children(ledger), await ledger.now()

        await ledger.commit([new_settle(child, Done("1", "{}"), now) for child in children.values()])

        assert (await the_fanin(ledger)).left == 0
        assert (await the(ledger)).status is Status.PENDING
        assert (await log(ledger)).count("woken") == 1

    async def test_a_parent_cancelled_in_the_batch_in_which_its_child_ends_stays_cancelled(
        self, ledger: Ledger
    ) -> None:
        """5b."""
        await map_over(ledger, await run(ledger), 1)
        children, parent, now = await run_children(ledger), await the(ledger), await ledger.now()
        go = transition.cancel(parent, now, "ann", "", undo=False)

        verdicts = await ledger.commit([new_move(parent, go), new_settle(children["0"], Done("1", "{}"), now)])

        assert [type(verdict) for verdict in verdicts] == [Applied, Applied]
        assert (await the(ledger)).status is Status.CANCELLED
        assert (await the_fanin(ledger)).left == 0
        assert "woken" not in await log(ledger)

    async def test_a_parent_that_its_last_child_has_woken_in_the_batch_is_not_cancelled_by_the_old_version(
        self, ledger: Ledger
    ) -> None:
        """5b."""
        await map_over(ledger, await run(ledger), 1)
        children, parent, now = await run_children(ledger), await the(ledger), await ledger.now()
        go = transition.cancel(parent, now, "ann", "", undo=False)

        verdicts = await ledger.commit([new_settle(children["0"], Done("1", "{}"), now), new_move(parent, go)])

        assert [type(verdict) for verdict in verdicts] == [Applied, Conflict]
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_retried_child_counts_again(self, ledger: Ledger) -> None:
        """5c."""
        await map_over(ledger, await run(ledger), 2, may_fail=2)
        children = await run_children(ledger)
        failed = await self.end(ledger, children["0"], Broke("too bad"))
        assert progress(await the_fanin(ledger)) == (2, 1, 1)

        again = applied(await move(ledger, failed, transition.retry(failed, await ledger.now(), "ann")))
        assert progress(await the_fanin(ledger)) == (2, 2, 0)
        assert not again.counted
        await self.end(ledger, children["1"])
        assert (await the(ledger)).status is Status.WAITING
        await self.end(ledger, (await run_children(ledger))["0"])

        assert progress(await the_fanin(ledger)) == (2, 0, 0)
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_child_is_not_retried_after_its_parent_went_on(self, ledger: Ledger) -> None:
        """5c."""
        await map_over(ledger, await run(ledger), 1, may_fail=1)
        failed = await self.end(ledger, (await run_children(ledger))["0"], Broke("too bad"))

        verdict = await move(ledger, failed, transition.retry(failed, await ledger.now(), "ann"))

        assert refused(verdict) == "parent"
        assert (await the(ledger, failed.record_id)) == failed
        assert (await the_fanin(ledger)).left == 0

    async def test_the_last_child_does_not_wake_a_parent_that_has_ended(self, ledger: Ledger) -> None:
        """5d."""
        await map_over(ledger, await run(ledger), 1)
        children, parent = await run_children(ledger), await the(ledger)
        applied(await move(ledger, parent, transition.cancel(parent, await ledger.now(), "ann", "", undo=False)))
        cancelled = await the(ledger)

        await self.end(ledger, children["0"])

        assert await the(ledger) == cancelled
        assert (await the_fanin(ledger)).left == 0

    async def test_the_last_child_does_not_wake_a_parent_that_is_halted(self, ledger: Ledger) -> None:
        """5d, 15."""
        await map_over(ledger, await run(ledger), 1)
        children = await run_children(ledger)
        await order(ledger, "halt", FLOW)

        await self.end(ledger, children["0"])

        assert (await the(ledger)).status is Status.CANCELLED
        assert "woken" not in await log(ledger)

    async def test_a_child_whose_id_is_taken_refuses_the_parents_whole_change(self, ledger: Ledger) -> None:
        """5e."""
        parent = await run(ledger)
        outcome = new_map(parent, 3, await ledger.now())
        await start(ledger, outcome.children[1].record_id, data='"somebody else"')

        verdict = await settle(ledger, parent, outcome)

        assert refused(verdict) == "exists"
        assert await the(ledger) == parent
        assert await ledger.fanins("r") == []
        assert await ledger.load([outcome.children[0].record_id, outcome.children[2].record_id]) == []

    async def test_a_parent_goes_on_at_once_when_too_many_children_have_failed(self, ledger: Ledger) -> None:
        """5f: the policy is met early."""
        await map_over(ledger, await run(ledger), 3, may_fail=1)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("1"))
        bearable = await the(ledger)

        await self.end(ledger, children["1"], Broke("2"))

        assert bearable.status is Status.WAITING
        assert (await the(ledger)).status is Status.PENDING
        assert progress(await the_fanin(ledger)) == (3, 1, 2)

    async def test_late_children_do_not_wake_the_parent_again(self, ledger: Ledger) -> None:
        """5f."""
        await map_over(ledger, await run(ledger), 3)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("1"))
        [parent] = (await claim(ledger)).records
        parent = await wait_for(ledger, parent)

        await self.end(ledger, children["1"])
        await self.end(ledger, children["2"])

        assert await the(ledger) == parent

    async def test_an_empty_map_is_due_at_once(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 0)

        assert (await the(ledger)).status is Status.PENDING

    async def test_a_second_map_of_a_step_counts_for_itself(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 1, may_fail=1)
        await self.end(ledger, (await run_children(ledger))["0"])
        [parent] = (await claim(ledger)).records

        await map_over(ledger, parent, 2)
        await self.end(ledger, (await run_children(ledger))["1"])

        assert [(fanin.generation, fanin.left) for fanin in await ledger.fanins("r")] == [(1, 0), (2, 1)]
        assert (await the(ledger)).status is Status.WAITING

    async def test_children_beyond_the_limit_wait_for_their_turn(self, ledger: Ledger) -> None:
        await map_over(ledger, await run(ledger), 4, limit=2)
        first = await run_children(ledger)
        nobody = await run_children(ledger)
        await self.end(ledger, first["1"])

        second = await run_children(ledger)

        assert (set(first), nobody, set(second)) == ({"0", "1"}, {}, {"2"})
        for child in (first["0"], second["2"]):
            await self.end(ledger, child)
        await self.end(ledger, (await run_children(ledger))["3"])
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_child_cancelled_before_its_turn_neither_opens_nor_blocks_the_way(self, ledger: Ledger) -> None:
        ids = await map_over(ledger, await run(ledger), 5, limit=1, may_fail=5)
        running = await run_children(ledger)
        for place in (1, 3):
            row = await the(ledger, ids[place])
            applied(await move(ledger, row, transition.cancel(row, await ledger.now(), "ann", "", undo=False)))
        nobody = await run_children(ledger)

        turns = []
        while running:
            turns.append(list(running))
            for child in running.values():
                await self.end(ledger, child)
            running = await run_children(ledger)

        assert nobody == {}
        assert turns == [["0"], ["2"], ["4"]]
        assert (await the(ledger)).status is Status.PENDING

    async def test_children_of_a_parent_that_ended_are_cancelled_by_the_sweep(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        ids = await map_over(ledger, await run(ledger), 3, limit=2)
        [child] = (await claim(ledger, slot(STEP, "child", free=1))).records
        parent = await the(ledger)
        applied(await move(ledger, parent, transition.cancel(parent, clock.now(), "ann", "", undo=False)))

        swept = await ledger.recover()

        rows = {row.place: row for row in await ledger.load(ids)}
        assert swept.swept == 3
        assert [rows[place].status for place in range(3)] == [Status.RUNNING, Status.CANCELLED, Status.CANCELLED]
        assert (await beat(ledger, "w1", child)).cancelled == (child.record_id,)
        assert applied(await settle(ledger, child, Tried("1", 1.0))).status is Status.CANCELLED
        assert (await the_fanin(ledger)).left == 0
        assert (await ledger.recover()).swept == 0

    @pytest.mark.parametrize("how", ["settles", "farewell", "lost"])
    async def test_children_of_a_parent_that_undoes_what_it_did_are_cancelled_by_the_sweep(
        self, ledger: Ledger, clock: ToldClock, how: str
    ) -> None:
        """18: its undoing waits until they have ended."""
        await map_over(ledger, await run(ledger), 2, may_fail=0)
        children = await run_children(ledger, "w2")
        await self.end(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records
        await ask_to_cancel(ledger, undo=True)

        if how == "settles":
            applied(await settle(ledger, parent, Stopped("told to")))
        elif how == "farewell":
            await ledger.farewell("w1")
        else:
            await beat(ledger, "w2", children["1"], lease=1000.0)
            await lose_worker(ledger, clock)
        await ledger.recover()

        assert (await the(ledger)).step == UNDO
        assert (await the_fanin(ledger)).abandoned
        assert (await the(ledger, children["1"].record_id)).cancel is not None

    async def test_a_child_that_a_halt_cancelled_does_not_go_on_after_its_parent_has_undone_all(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        [child_id] = await map_over(ledger, await run(ledger), 1)
        await order(ledger, "halt")
        await ledger.recover()
        await order(ledger, "resume")
        parent = await the(ledger)
        applied(await move(ledger, parent, transition.cancel(parent, clock.now(), "ann", "", undo=True)))

        child = await the(ledger, child_id)
        epoch = (await ledger.standing()).epoch

        assert refused(await move(ledger, child, transition.revive(child, clock.now(), "ann", epoch))) == "parent"

    async def test_children_of_a_map_that_was_answered_are_cancelled_by_the_sweep(self, ledger: Ledger) -> None:
        ids = await map_over(ledger, await run(ledger), 2)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records
        key = (await the_fanin(ledger)).key
        answer = replace(new_answer(parent, "items", kind=Kind.MAP), key=key)
        applied(await commit(ledger, new_facts(parent, answer)))

        await ledger.recover()

        assert (await the(ledger, ids[1])).cancel is not None
        assert (await the_fanin(ledger)).abandoned

    async def test_a_child_that_ends_its_processes_counts_when_it_ends_in_error(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await map_over(ledger, await run(ledger), 1)
        for _ in range(transition.MOST_DEATHS):
            await beat(ledger, worker := new_id())
            [child] = (await run_children(ledger, worker)).values()
            applied(await move(ledger, child, transition.died(child, clock.now(), "gone"), worker=worker))

        assert progress(await the_fanin(ledger)) == (1, 0, 1)
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_failed_child_that_is_moved_by_hand_to_an_end_has_failed_no_longer(self, ledger: Ledger) -> None:
        """5c: it counts once, as what it came to in the end."""
        await map_over(ledger, await run(ledger), 3, may_fail=1)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("1"))
        failed = await the(ledger, children["0"].record_id)
        go = transition.move(failed, await ledger.now(), "ann", "accepted", {"accepted"}, rests=True, ends=True)

        after = applied(await move(ledger, failed, go))
        fanin = await the_fanin(ledger)
        await self.end(ledger, children["1"], Broke("2"))
        waits = await the(ledger)
        await self.end(ledger, children["2"])

        assert (after.status, after.counted) == (Status.DONE, True)
        assert progress(fanin) == (3, 2, 0)
        assert waits.status is Status.WAITING
        assert progress(await the_fanin(ledger)) == (3, 0, 1)
        assert (await the(ledger)).status is Status.PENDING

    async def test_what_an_ended_child_did_is_undone_also_when_its_parent_has_gone_on(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """5c, 18: it counts no second time, and the sweep lets it undo to the end."""
        ids = await map_over(ledger, await run(ledger), 2)
        children = await run_children(ledger)
        await self.end(ledger, children["0"], Broke("1"))
        [parent] = (await claim(ledger)).records
        applied(await settle(ledger, parent, Done("1", "{}")))
        before = await the_fanin(ledger)
        row = await the(ledger, ids[0])
        again = await move(ledger, row, transition.retry(row, clock.now(), "ann"))

        undoes = applied(await move(ledger, row, transition.cancel(row, clock.now(), "ann", "", undo=True)))
        rewound = await move(ledger, undoes, transition.retry(undoes, clock.now(), "ann", step=row.step))
        await ledger.recover()
        [undoing] = (await claim(ledger, slot(UNDO, "child"))).records
        after = applied(await settle(ledger, undoing, Stopped("undone")))

        for verdict in (again, rewound):
            assert refused(verdict) == "parent"
            assert isinstance(verdict, Refused)
            assert "quire retry r" in verdict.reason
        assert (undoing.record_id, after.status, after.counted) == (ids[0], Status.CANCELLED, True)
        assert progress(await the_fanin(ledger)) == progress(before)
        assert (await the(ledger)).status is Status.DONE

    async def test_a_child_that_ended_before_its_turn_and_undoes_what_it_did_takes_no_place(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        ids = await map_over(ledger, await run(ledger), 2, limit=1)
        children = await run_children(ledger)
        parent = await the(ledger)
        applied(await move(ledger, parent, transition.cancel(parent, clock.now(), "ann", "", undo=False)))
        await ledger.recover()
        row = await the(ledger, ids[1])
        assert (row.status, row.counted) == (Status.CANCELLED, True)
        applied(await move(ledger, row, transition.cancel(row, clock.now(), "ann", "", undo=True)))

        await self.end(ledger, children["0"], Done("1", "{}"))

        fanin = await the_fanin(ledger)
        assert (fanin.left, fanin.active) == (0, 0)

    async def test_a_child_whose_turn_came_while_a_halt_held_it_goes_on_when_it_is_revived(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        ids = await map_over(ledger, await run(ledger), 3, limit=1)
        children = await run_children(ledger)
        await order(ledger, "halt")
        await ledger.recover()
        await self.end(ledger, children["0"], Done("1", "{}"))
        await order(ledger, "resume")
        epoch = (await ledger.standing()).epoch

        for record_id in ids[1:]:
            row = await the(ledger, record_id)
            applied(await move(ledger, row, transition.revive(row, clock.now(), "ann", epoch)))
        for record_id in ids[1:]:  # one at a time, as the map says
            [child] = (await claim(ledger, slot(workflow="child"))).records
            assert child.record_id == record_id
            await self.end(ledger, child, Done("1", "{}"))

        assert progress(await the_fanin(ledger)) == (3, 0, 0)

    async def test_a_worker_that_dies_under_a_grandchild_is_taken_over(self, ledger: Ledger, clock: ToldClock) -> None:
        """A takeover looks at parents, too, and they may have parents."""
        await map_over(ledger, await run(ledger), 1)
        [child] = (await run_children(ledger)).values()
        await map_over(ledger, child, 1)
        [grandchild] = (await run_children(ledger)).values()

        await lose_worker(ledger, clock)

        assert (await the(ledger, grandchild.record_id)).status is Status.PENDING
        assert (await the(ledger)).status is (await the(ledger, child.record_id)).status is Status.WAITING
