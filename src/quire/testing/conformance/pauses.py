"""Pause and seal."""

from __future__ import annotations

import pytest

from quire.errors import Moved
from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Claim,
    Order,
    Refused,
    Send,
)
from quire.model.record import Status
from quire.model.side import EVERYWHERE
from quire.rules.outcome import Saved
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    beat,
    claim,
    claimed,
    done,
    intend,
    new_answer,
    new_facts,
    new_intent,
    new_settle,
    new_start,
    order,
    refused,
    run,
    slot,
    start,
    the,
)
from quire.testing.conformance.suite import Suite


class Pauses(Suite):
    """Pause stops claims; seal stops everything but receipts (15, 25)."""

    async def test_a_pause_stops_claims_and_nothing_else(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await start(ledger, "due")
        await order(ledger, "pause")

        assert await claimed(ledger) == []
        await start(ledger, "new")
        await intend(ledger, row)
        assert (await the(ledger, "due")).status is Status.PENDING
        await order(ledger, "resume")
        assert await claimed(ledger) == ["due", "new"]

    async def test_a_pause_of_one_workflow_leaves_the_others(self, ledger: Ledger) -> None:
        await start(ledger, "a")
        await start(ledger, "b", workflow="other")
        await order(ledger, "pause", "other")

        assert await claimed(ledger, slot(), slot(workflow="other")) == ["a"]

    async def test_a_sealed_ledger_takes_nothing_but_receipts(self, ledger: Ledger, clock: ToldClock) -> None:
        """25."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await start(ledger, "due")
        standing = await ledger.order(Order("seal", EVERYWHERE, "ann", target="postgresql://there"))

        verdicts = await ledger.commit(
            [
                new_start("new", clock.now()),
                new_settle(row, Saved("1"), clock.now()),
                new_facts(row, new_intent(row, "other")),
                new_facts(row, new_answer(row, "call")),
                new_facts(row, done(intent)),
            ]
        )

        assert standing.sealed == "postgresql://there"
        assert [refused(verdict) for verdict in verdicts[:4]] == ["sealed"] * 4
        assert isinstance(verdicts[0], Refused)
        assert "postgresql://there" in verdicts[0].reason
        assert isinstance(verdicts[4], Applied)
        assert [refused(verdict) for verdict in await ledger.send([Send("s1", "r", "paid", "1")])] == ["sealed"]

    async def test_a_seal_over_another_than_the_one_that_stands_changes_nothing(self, ledger: Ledger) -> None:
        """25: of two that seal at the same moment, for two targets, one is told of the other."""

        async def ordered(word: str, over: str, target: str = "") -> str:
            return (await ledger.order(Order(word, EVERYWHERE, "ann", target=target, over=over))).sealed

        assert await ordered("unseal", over="there") == ""
        assert await ordered("seal", over="", target="there") == "there"
        assert await ordered("seal", over="", target="elsewhere") == "there"
        assert await ordered("unseal", over="elsewhere") == "there"
        assert await ordered("seal", over="there", target="elsewhere") == "elsewhere"
        assert await ordered("unseal", over="elsewhere") == ""

    async def test_a_worker_of_a_sealed_ledger_is_told_where_its_records_went(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """25: no claim, whether something is due or not, and no beat."""
        row = await run(ledger)
        await order(ledger, "seal", target="postgresql://there")
        nothing = Claim("c1", "w1", (slot("elsewhere"),), 1)

        for ask in (
            lambda: beat(ledger, "w1", row),
            lambda: beat(ledger, "new"),
            lambda: claim(ledger),
            lambda: ledger.claim(nothing),
        ):
            with pytest.raises(Moved, match="sealed; its records are at postgresql://there"):
                await ask()
        await ledger.farewell("w1")

        assert await the(ledger) == row
        [worker] = await ledger.workers()
        assert (worker.worker_id, worker.closed, worker.expires_at) == ("w1", None, clock.now() + 30)

    async def test_a_sealed_ledger_is_not_swept_nor_recovered(self, ledger: Ledger, clock: ToldClock) -> None:
        """25: what is being copied elsewhere stands still."""
        row = await run(ledger)
        await start(ledger, "due")
        await order(ledger, "halt", "other")
        await order(ledger, "seal")
        clock.advance(1e6)

        recovered = await ledger.recover()

        assert (recovered.workers, recovered.records, recovered.swept) == (0, 0, 0)
        known = await ledger.recover(dead=[row.worker_id for row in recovered.open])
        assert (known.workers, known.records, known.open) == (0, 0, recovered.open)
        assert await the(ledger) == row

    async def test_a_ledger_that_is_unsealed_goes_on(self, ledger: Ledger) -> None:
        await order(ledger, "seal")
        await order(ledger, "unseal")

        await start(ledger)

        assert (await ledger.standing()).sealed == ""
        await beat(ledger)
        assert await claimed(ledger) == ["r"]
