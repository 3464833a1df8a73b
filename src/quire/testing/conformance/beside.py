"""What others change while a record runs: signals, counts, priority, the wish to cancel."""

from __future__ import annotations

import pytest

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import (
    Change,
    Conflict,
    Send,
)
from quire.model.codec import parse
from quire.model.record import UNDO, Status
from quire.rules import moves as transition
from quire.rules.outcome import Broke, Done, Outcome, Stopped, Tried
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
    new_answer,
    new_facts,
    new_intent,
    new_move,
    refused,
    run,
    run_children,
    settle,
    slot,
    start,
    start_all,
    the,
    the_fanin,
)
from quire.testing.conformance.outcomes import GOING_ON, OUTCOMES
from quire.testing.conformance.suite import Suite


class Beside(Suite):
    """What others may do to a record while a worker holds it (6)."""

    async def test_a_signal_a_priority_and_a_wish_to_cancel_leave_the_holder_its_version(self, ledger: Ledger) -> None:
        row = await run(ledger)

        await ledger.send([Send("s1", "r", "paid", "1")])
        applied(await commit(ledger, Change(new_id(), "r", 0, None, priority=7)))
        applied(await ask_to_cancel(ledger))

        assert (await the(ledger)).version == row.version
        after = applied(await settle(ledger, row, Done("1", "{}")))
        assert (after.status, after.priority) == (Status.DONE, 7)

    async def test_late_children_leave_the_holder_its_version(self, ledger: Ledger, clock: ToldClock) -> None:
        """5f."""
        await map_over(ledger, await run(ledger), 2, may_fail=0)
        children = await run_children(ledger)
        await settle(ledger, children["0"], Broke("too bad"))
        [parent] = (await claim(ledger)).records

        applied(await settle(ledger, children["1"], Done("1", "{}")))

        assert (await the(ledger)).version == parent.version
        assert (await the_fanin(ledger)).left == 0
        applied(await settle(ledger, parent, Done("1", "{}")))

    @pytest.mark.parametrize("outcome", GOING_ON.values(), ids=GOING_ON)
    async def test_the_holder_obeys_a_wish_to_cancel_whatever_it_comes_to(
        self, ledger: Ledger, outcome: Outcome
    ) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger)

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.worker, after.due_at, after.cancel) == (Status.CANCELLED, None, None, None)
        assert (await log(ledger))[-1] == "cancelled"

    async def test_a_wish_to_cancel_with_undo_leads_to_the_undoing(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger, undo=True)

        after = applied(await settle(ledger, row, Tried("late", 5.0)))

        assert (after.status, after.step, after.due_at) == (Status.PENDING, UNDO, clock.now())

    @pytest.mark.parametrize("name", ["stopped", "done", "ends", "broke"])
    async def test_a_wish_to_cancel_with_undo_is_obeyed_also_by_an_end(
        self, ledger: Ledger, clock: ToldClock, name: str
    ) -> None:
        """6: an acknowledged wish is not dropped, and what was done can be taken back after any end."""
        row = await run(ledger)
        await ask_to_cancel(ledger, undo=True)

        after = applied(await settle(ledger, row, OUTCOMES[name]))

        assert (after.status, after.step, after.due_at) == (Status.PENDING, UNDO, clock.now())
        assert (after.cancel, after.result) == (None, None)

    @pytest.mark.parametrize("name", ["done", "ends", "broke"])
    async def test_an_end_that_comes_before_the_wish_is_obeyed_stands(self, ledger: Ledger, name: str) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger)

        after = applied(await settle(ledger, row, OUTCOMES[name]))

        image = transition.settle(row, OUTCOMES[name], 0.0).image
        assert (after.status, after.result, after.cancel) == (image.status, image.result, None)

    @pytest.mark.parametrize("undo", [False, True], ids=["plain", "undo"])
    @pytest.mark.parametrize("how", ["stopped", "tried", "farewell"])
    async def test_the_line_of_an_obeyed_wish_says_who_wished_it_and_why(
        self, ledger: Ledger, how: str, undo: bool
    ) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger, undo=undo)

        if how == "farewell":
            await ledger.farewell("w1")
        else:
            applied(await settle(ledger, row, OUTCOMES[how]))

        line = (await ledger.events(record_id="r"))[-1]
        told = {"step": row.step, "reason": "a typo", "by": "ann"} | ({"undo": True} if undo else {})
        assert (line.kind, parse(line.body)) == ("cancelled", told)

    async def test_a_wish_to_cancel_what_undoes_stops_the_undoing_where_it_stands(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await settle(ledger, row, Broke("a bug", undo=True)))
        [row] = (await claim(ledger, slot(UNDO))).records
        await ask_to_cancel(ledger)

        after = applied(await settle(ledger, row, Stopped("told to")))

        assert (after.status, after.step, after.cancel) == (Status.CANCELLED, UNDO, None)
        assert after.ending is not None  # a retry goes on with it

    async def test_a_wish_to_undo_what_undoes_changes_nothing(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await settle(ledger, row, Broke("a bug", undo=True)))
        [row] = (await claim(ledger, slot(UNDO))).records

        await ask_to_cancel(ledger, undo=True)

        assert await the(ledger) == row
        assert (await beat(ledger, "w1", row)).cancelled == ()

    async def test_what_was_undone_to_its_end_is_not_cancelled_by_a_late_wish(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        applied(await settle(ledger, row, Stopped("a typo", undo=True)))
        [row] = (await claim(ledger, slot(UNDO))).records
        await ask_to_cancel(ledger)

        go = transition.undone(row, clock.now())
        applied(await commit(ledger, new_move(row, go, worker=row.worker)))

        assert (await log(ledger))[-1] == "undone"

    async def test_the_holder_learns_of_the_wish_by_its_beat_and_by_its_commits(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger)

        told = await beat(ledger, "w1", row)
        after = applied(await commit(ledger, new_facts(row, new_answer(row, "a"))))

        assert (told.cancelled, told.lost) == (("r",), ())
        assert after.cancel is not None

    async def test_no_effect_begins_over_a_wish_to_cancel(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ask_to_cancel(ledger)

        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "cancelled"
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_what_does_not_run_is_not_asked_but_cancelled_by_version(self, ledger: Ledger) -> None:
        row = await start(ledger)

        assert await ask_to_cancel(ledger) == Conflict(row, await ledger.now())
        after = applied(await move(ledger, row, transition.cancel(row, await ledger.now(), "ann", "", undo=False)))
        assert after.status is Status.CANCELLED

    @pytest.mark.parametrize("how", ["lost", "orphaned", "farewell"])
    async def test_a_wish_to_cancel_outlives_its_worker(self, ledger: Ledger, clock: ToldClock, how: str) -> None:
        await run(ledger)
        await ask_to_cancel(ledger)

        if how == "lost":
            await lose_worker(ledger, clock)
        elif how == "orphaned":
            await beat(ledger, "w1")
        else:
            await ledger.farewell("w1")

        assert (await the(ledger)).status is Status.CANCELLED

    async def test_a_wish_to_cancel_outlives_a_doubt(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await ask_to_cancel(ledger)
        doubted = applied(await settle(ledger, row, Tried("timeout", 1.0)))

        after = applied(await commit(ledger, new_facts(row, done(intent))))

        assert (doubted.status, doubted.cancel is None) == (Status.NEEDS_APPROVAL, False)
        assert (after.status, after.cancel) == (Status.CANCELLED, None)
        assert await claimed(ledger) == []

    async def test_a_new_priority_changes_the_order_of_what_is_due(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b"])

        applied(await commit(ledger, Change(new_id(), "b", 0, None, priority=1)))

        assert await claimed(ledger) == ["b", "a"]
