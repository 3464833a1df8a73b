"""Caps, rates, and records kept for their next step."""

from __future__ import annotations

import pytest

from quire.ledger.base import Ledger
from quire.model.change import (
    Rate,
)
from quire.model.record import Status
from quire.model.row import replace
from quire.rules.outcome import Broke, Done, Next, Outcome, Tried, Yielded
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    beat,
    claim,
    claimed,
    lose_worker,
    order,
    run,
    settle,
    slot,
    start,
    start_all,
)
from quire.testing.conformance.suite import Suite


class Caps(Suite):
    """Never more at once, or in a while, than was said (16, 23)."""

    async def test_a_step_with_a_full_cap_does_not_hide_the_others(self, ledger: Ledger, clock: ToldClock) -> None:
        """23."""
        await start_all(ledger, [f"full{n}" for n in range(30)], step="capped")
        assert len(await claimed(ledger, slot("capped", cap=3))) == 3
        clock.advance(1)
        await start_all(ledger, ["free1", "free2"])

        assert await claimed(ledger, slot("capped", cap=3), slot(), limit=5) == ["free1", "free2"]

    @pytest.mark.parametrize(
        "free",
        [Next("next", "{}"), Done("1", "{}"), Tried("1", 9.0), Yielded("x"), Broke("x")],
        ids=lambda outcome: type(outcome).__name__,
    )
    async def test_a_slot_of_a_cap_is_free_again_after_the_settle(self, ledger: Ledger, free: Outcome) -> None:
        await start_all(ledger, ["a", "b", "c"])
        first, _ = (await claim(ledger, slot(cap=2))).records
        full = await claimed(ledger, slot(cap=2))

        applied(await settle(ledger, first, free))

        assert full == []
        assert len(await claimed(ledger, slot(cap=2), worker="w2")) == 1

    async def test_slots_of_a_lost_worker_are_free_again(self, ledger: Ledger, clock: ToldClock) -> None:
        await beat(ledger)
        await start_all(ledger, ["a", "b", "c"])
        assert len(await claimed(ledger, slot(cap=2))) == 2

        await lose_worker(ledger, clock)

        await beat(ledger, "w2")
        assert len(await claimed(ledger, slot(cap=2), worker="w2")) == 2

    async def test_a_cap_of_the_workflow_holds_over_its_steps(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b", "c"])
        await start_all(ledger, ["d", "e", "f"], step="other")
        await start_all(ledger, ["g"], workflow="another")

        taken = await claimed(ledger, slot(workflow_cap=4), slot("other", workflow_cap=4), slot(workflow="another"))

        assert taken == ["a", "b", "c", "d", "g"]
        assert await claimed(ledger, slot("other", workflow_cap=4)) == []

    async def test_a_cap_counts_what_runs_under_the_other_names_of_its_step(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b"], step="old")
        await start_all(ledger, ["c", "d"], step="new")
        old, new = slot("old", cap=1, also=("new",)), slot("new", cap=1, also=("old",))

        [row] = (await claim(ledger, old, new)).records
        full = await claimed(ledger, new, old)
        applied(await settle(ledger, row, Done("1", "{}")))
        leaves = await run(ledger, "e")
        after = await claimed(ledger, new, old)
        kept = applied(await settle(ledger, leaves, Next("new", "{}"), keep=slot("new", cap=2, also=("old",))))
        more = applied(await settle(ledger, await run(ledger, "f"), Next("old", "{}"), keep=replace(old, cap=2)))

        assert (row.record_id, full, after) == ("a", [], ["c"])
        assert (kept.status, more.status) == (Status.RUNNING, Status.PENDING)

    async def test_a_rate_gives_tokens_as_time_goes_by(self, ledger: Ledger, clock: ToldClock) -> None:
        await start_all(ledger, [f"r{n:02}" for n in range(20)])
        rated = slot(rate=Rate("api", 4, 60))

        first, none = await claimed(ledger, rated), await claimed(ledger, rated)
        clock.advance(30)
        half = await claimed(ledger, rated)
        clock.advance(600)
        full = await claimed(ledger, rated)

        assert [len(taken) for taken in (first, none, half, full)] == [4, 0, 2, 4]

    async def test_a_claim_tells_when_the_rate_lets_the_next_record_begin(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        rated = slot(rate=Rate("api", 2, 60))
        unused = await claim(ledger, rated)
        await start_all(ledger, ["a", "b", "c"])

        taken = await claim(ledger, rated)
        clock.advance(10)
        nothing = await claim(ledger, rated)
        clock.advance(20)
        last = await claim(ledger, rated)
        over = await claim(ledger, rated)

        assert unused.next_due_at is None
        assert [row.record_id for row in taken.records] == ["a", "b"]
        assert taken.next_due_at == pytest.approx(clock.now())
        assert not nothing.records and nothing.next_due_at == pytest.approx(clock.now())
        assert [row.record_id for row in last.records] == ["c"]
        assert not over.records and over.next_due_at is None, "nothing is due: a token is worth no look"

    async def test_steps_may_share_a_rate(self, ledger: Ledger) -> None:
        await start_all(ledger, ["a", "b"])
        await start_all(ledger, ["c", "d"], step="other")
        rate = Rate("api", 3, 60)

        assert await claimed(ledger, slot(rate=rate), slot("other", rate=rate)) == ["a", "b", "c"]
        assert await claimed(ledger, slot("other", rate=Rate("else", 3, 60))) == ["d"]

    async def test_a_record_is_kept_for_its_next_step(self, ledger: Ledger, clock: ToldClock) -> None:
        """16."""
        row = await run(ledger)

        kept = applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next", timeout=99)))

        assert (kept.status, kept.step, kept.worker) == (Status.RUNNING, "next", "w1")
        assert kept.run_until == clock.now() + 99
        assert await claimed(ledger, slot("next", cap=1)) == []

    @pytest.mark.parametrize("why", ["cap", "workflow-cap", "rate", "pause"])
    async def test_keeping_a_record_is_a_claim_with_all_its_checks(self, ledger: Ledger, why: str) -> None:
        """16."""
        row = await run(ledger)
        await start(ledger, "other", step="next")
        kept = {
            "cap": slot("next", cap=1),
            "workflow-cap": slot("next", workflow_cap=2),
            "rate": slot("next", rate=Rate("api", 1, 60)),
            "pause": slot("next"),
        }[why]
        assert await claimed(ledger, kept) == ["other"]
        if why == "workflow-cap":
            kept = replace(kept, workflow_cap=1)
        if why == "pause":
            await order(ledger, "pause")

        after = applied(await settle(ledger, row, Next("next", '"2"'), keep=kept))

        assert (after.status, after.step, after.worker, after.data) == (Status.PENDING, "next", None, '"2"')
        assert after.due_at == await ledger.now()

    async def test_a_record_that_is_kept_takes_a_token(self, ledger: Ledger) -> None:
        """16."""
        rate = Rate("api", 1, 60)
        row = await run(ledger)
        await start(ledger, "other", step="next")

        applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next", rate=rate)))

        assert await claimed(ledger, slot("next", rate=rate)) == []

    async def test_a_record_may_be_kept_within_a_full_workflow(self, ledger: Ledger) -> None:
        """16: it leaves one slot of the workflow and takes one."""
        row = await run(ledger)

        kept = applied(await settle(ledger, row, Next("next", "{}"), keep=slot("next", workflow_cap=1)))

        assert kept.status is Status.RUNNING
