"""What happens over an open intent: the record asks, and nothing walks around it."""

from __future__ import annotations

import pytest

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import (
    Conflict,
)
from quire.model.receipt import Stage
from quire.model.record import Status
from quire.model.row import replace
from quire.rules import moves as transition
from quire.rules.outcome import Outcome, Tried, Yielded
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    beat,
    claimed,
    commit,
    done,
    intend,
    log,
    lose_worker,
    move,
    new_facts,
    receipt_of,
    run,
    settle,
    the,
)
from quire.testing.conformance.meanwhile import Meanwhile, cancel_asked, halt, halt_and_takeover, in_doubt
from quire.testing.conformance.outcomes import LEAVING
from quire.testing.conformance.suite import Suite


class Doubts(Suite):
    """No step is left over an open intent; a person or a late receipt answers it (2, 18)."""

    async def test_a_late_receipt_resolves_the_doubt_over_it(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await in_doubt(ledger, clock)

        after = applied(await commit(ledger, new_facts(row, done(intent))))

        assert (after.status, after.due_at, after.question) == (Status.PENDING, clock.now(), None)
        assert await claimed(ledger, worker="w2") == ["r"]

    @pytest.mark.parametrize("stage", [Stage.DONE, Stage.VOID])
    async def test_a_person_says_whether_it_happened(self, ledger: Ledger, clock: ToldClock, stage: Stage) -> None:
        intent = await intend(ledger, await run(ledger))
        await in_doubt(ledger, clock)
        row = await the(ledger)

        go = transition.resolved(row, clock.now(), intent.key, {"by": "ann"})
        after = applied(await move(ledger, row, go, receipts=(replace(intent, stage=stage, value="1"),)))

        assert (after.status, after.open_intents) == (Status.PENDING, 0)
        assert (await receipt_of(ledger, intent.key)).stage is stage

    async def test_what_happened_cannot_be_said_not_to_have(self, ledger: Ledger, clock: ToldClock) -> None:
        """A late receipt and a person's "it did not" cross: the receipt stands, or the effect is done twice."""
        zombie = await run(ledger)
        intent = await intend(ledger, zombie)
        await in_doubt(ledger, clock)
        row = await the(ledger)
        go = transition.resolved(row, clock.now(), intent.key, {"by": "ann"})
        applied(await commit(ledger, new_facts(zombie, done(intent))))

        verdict = await move(ledger, row, go, receipts=(replace(intent, stage=Stage.VOID),))

        assert isinstance(verdict, Conflict)
        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE

    async def test_what_did_not_happen_may_turn_out_to_have(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, replace(intent, stage=Stage.VOID)))

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE
        assert (await the(ledger)).open_intents == 0

    @pytest.mark.parametrize("outcome", LEAVING.values(), ids=LEAVING)
    async def test_no_step_is_left_over_an_open_intent(self, ledger: Ledger, outcome: Outcome) -> None:
        """18."""
        row = await run(ledger)
        await intend(ledger, row, "post")

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.step, after.visit) == (Status.NEEDS_APPROVAL, row.step, row.visit)
        assert (after.worker, after.due_at, after.result) == (None, None, None)
        assert after.question == "Did 'post' happen?"
        assert (await log(ledger))[-1] == "doubted"

    @pytest.mark.parametrize("outcome", [Tried("429", 5.0), Yielded("budget")], ids=["tried", "yielded"])
    async def test_a_step_that_is_not_left_keeps_its_open_intent(self, ledger: Ledger, outcome: Outcome) -> None:
        row = await run(ledger)
        await intend(ledger, row)

        after = applied(await settle(ledger, row, outcome))

        assert (after.status, after.open_intents) == (Status.PENDING, 1)

    @pytest.mark.parametrize("meanwhile", [cancel_asked, halt], ids=["cancelled", "halted"])
    async def test_neither_a_cancel_nor_a_halt_ends_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock, meanwhile: Meanwhile
    ) -> None:
        """18, 15."""
        row = await run(ledger)
        await intend(ledger, row)
        await meanwhile(ledger, clock)

        after = applied(await settle(ledger, row, Tried("timeout", 5.0)))

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)
        assert (await the(ledger)).status is Status.NEEDS_APPROVAL

    async def test_a_step_that_ends_its_processes_does_not_end_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """18, 23."""
        row = await run(ledger)
        await intend(ledger, row)
        worker = "w1"
        for _ in range(transition.MOST_DEATHS - 1):
            row = await the(ledger)
            row = applied(await move(ledger, row, transition.died(row, clock.now(), "gone"), worker=worker))
            await beat(ledger, worker := new_id())
            assert await claimed(ledger, worker=worker) == ["r"]

        row = await the(ledger)
        after = applied(await move(ledger, row, transition.died(row, clock.now(), "gone"), worker=worker))

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)
        assert after.last_error is not None

    async def test_a_halt_and_a_lost_worker_do_not_end_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """15."""
        await intend(ledger, await run(ledger))

        await halt_and_takeover(ledger, clock)

        assert (await the(ledger)).status is Status.NEEDS_APPROVAL

    @pytest.mark.parametrize("undo", [False, True], ids=["plain", "undo"])
    async def test_a_person_does_not_end_a_record_over_an_open_intent(
        self, ledger: Ledger, clock: ToldClock, undo: bool
    ) -> None:
        await intend(ledger, await run(ledger))
        await lose_worker(ledger, clock)
        row = await the(ledger)

        after = applied(await move(ledger, row, transition.cancel(row, clock.now(), "ann", "", undo=undo)))

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 1)
