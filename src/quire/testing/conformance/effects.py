"""Intents and receipts."""

from __future__ import annotations

import pytest

from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Conflict,
    Rate,
    Refused,
)
from quire.model.receipt import Stage, key_of
from quire.model.record import Status
from quire.model.row import replace
from quire.rules.outcome import Done
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    commit,
    done,
    intend,
    log,
    lose_worker,
    new_facts,
    new_intent,
    receipt_of,
    refused,
    run,
    settle,
    the,
)
from quire.testing.conformance.meanwhile import MEANWHILE, Meanwhile
from quire.testing.conformance.suite import Suite


class Effects(Suite):
    """Intents and receipts (2, 17, 18)."""

    async def test_an_intent_is_open_until_its_receipt_comes(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)

        intent = await intend(ledger, row, act_by=clock.now() + 20)
        opened = await the(ledger)
        clock.advance(2)
        after = applied(await commit(ledger, new_facts(row, done(intent))))

        assert (opened.open_intents, opened.facts, opened.version) == (1, 1, row.version)
        assert (after.open_intents, after.facts, after.version) == (0, 1, row.version)
        receipt = await receipt_of(ledger, intent.key)
        assert (receipt.stage, receipt.value, receipt.done_at) == (Stage.DONE, '"posted"', clock.now())
        assert (receipt.at, receipt.act_by, receipt.nonce) == (clock.now() - 2, clock.now() + 18, intent.nonce)
        kept = (receipt.act_key, receipt.prepared, receipt.actor)
        assert kept == (intent.act_key, intent.prepared, intent.actor) and "" not in kept
        assert await log(ledger) == ["started", "claimed", "effect.intended", "effect.done"]

    @pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda happens: happens.__name__)
    async def test_a_receipt_lands_whatever_happened_meanwhile(
        self, ledger: Ledger, clock: ToldClock, meanwhile: Meanwhile
    ) -> None:
        """2."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await meanwhile(ledger, clock)

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE
        assert (await the(ledger)).open_intents == 0
        assert "effect.done" in await log(ledger)

    async def test_a_receipt_lands_though_the_move_that_brings_it_is_refused(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await lose_worker(ledger, clock)

        verdict = await settle(ledger, row, Done("1", "{}"), receipts=(done(intent),))

        assert isinstance(verdict, Conflict)
        assert (await receipt_of(ledger, intent.key)).stage is Stage.DONE
        assert (await the(ledger)).open_intents == 0

    async def test_a_receipt_may_ride_with_the_move_that_leaves_the_step(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)

        after = applied(await settle(ledger, row, Done("1", "{}"), receipts=(done(intent),)))

        assert (after.status, after.open_intents) == (Status.DONE, 0)

    async def test_the_same_attempt_may_deliver_its_receipt_any_number_of_times(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)

        for _ in range(3):
            applied(await commit(ledger, new_facts(row, done(intent))))
        applied(await settle(ledger, row, Done("1", "{}"), receipts=(done(intent),)))
        applied(await commit(ledger, new_facts(row, done(intent))))

        assert await log(ledger) == ["started", "claimed", "effect.intended", "effect.done", "done"]
        assert (await the(ledger)).open_intents == 0

    async def test_a_receipt_of_another_attempt_is_told_as_done_twice_and_the_first_stands(
        self, ledger: Ledger
    ) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, done(intent, '"first"')))

        applied(await commit(ledger, new_facts(row, done(replace(intent, nonce="other"), '"second"'))))

        assert (await receipt_of(ledger, intent.key)).value == '"first"'
        assert (await log(ledger))[-1] == "effect.twice"

    async def test_a_receipt_without_an_intent_does_not_land(self, ledger: Ledger) -> None:
        row = await run(ledger)

        verdict = await commit(ledger, new_facts(row, done(new_intent(row))))

        assert verdict == Conflict(row, await ledger.now())
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_what_was_undone_stays_undone_when_its_receipt_comes_again(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, done(intent)))
        await commit(ledger, new_facts(row, replace(done(intent), stage=Stage.UNDONE)))

        applied(await commit(ledger, new_facts(row, done(intent))))

        assert (await receipt_of(ledger, intent.key)).stage is Stage.UNDONE

    async def test_an_intent_under_a_key_that_is_taken_is_refused(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)

        while_open = await commit(ledger, new_facts(row, replace(intent, nonce="other")))
        await commit(ledger, new_facts(row, done(intent)))
        when_done = await commit(ledger, new_facts(row, replace(intent, nonce="other")))

        assert (refused(while_open), refused(when_done)) == ("intent", "intent")
        assert (await receipt_of(ledger, intent.key)).nonce == intent.nonce

    async def test_what_did_not_happen_may_be_intended_again(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        await commit(ledger, new_facts(row, replace(intent, stage=Stage.VOID)))

        applied(await commit(ledger, new_facts(row, replace(intent, nonce="other"))))

        assert (await receipt_of(ledger, intent.key)).nonce == "other"
        assert (await the(ledger)).open_intents == 1

    async def test_of_two_intents_in_one_change_both_land_or_neither(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        taken = await intend(ledger, row, "taken")
        rate = Rate("api", 1, 60)

        verdict = await commit(
            ledger, new_facts(row, new_intent(row, "fresh"), replace(taken, nonce="other"), rates=(rate,))
        )

        assert refused(verdict) == "intent"
        assert [receipt.name for receipt in await ledger.receipts(record_ids=["r"])] == ["taken"]
        assert (await the(ledger)).open_intents == 1
        assert isinstance(await commit(ledger, new_facts(row, new_intent(row, "next"), rates=(rate,))), Applied)

    async def test_one_who_lost_the_record_cannot_intend(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await lose_worker(ledger, clock)

        assert isinstance(await commit(ledger, new_facts(row, new_intent(row))), Conflict)
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_keys_of_other_visits_scopes_and_names_are_other_effects(self, ledger: Ledger) -> None:
        """17."""
        row = await run(ledger)
        parts = [(1, "", "a"), (2, "", "a"), (1, "x", "a"), (1, "", "xa"), (1, "a", "")]
        intents = [new_intent(row, name, key=key_of("f", "r", visit, scope, name)) for visit, scope, name in parts]

        for intent in intents:
            applied(await commit(ledger, new_facts(row, intent)))

        found = await ledger.receipts(keys=[intent.key for intent in intents])
        assert [receipt.nonce for receipt in found] == [intent.nonce for intent in intents]

    async def test_a_key_of_the_users_own_is_one_for_all_records(self, ledger: Ledger) -> None:
        """17."""
        row, other = await run(ledger), await run(ledger, "other")
        applied(await commit(ledger, new_facts(row, new_intent(row, key="invoice-7"))))

        assert refused(await commit(ledger, new_facts(other, new_intent(other, key="invoice-7")))) == "intent"

    async def test_receipts_come_in_the_order_of_their_intents(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intents = [await intend(ledger, row, name) for name in ("c", "a", "b")]

        for intent in reversed(intents):
            applied(await commit(ledger, new_facts(row, done(intent))))

        found = await ledger.receipts(record_ids=["r"])
        assert [receipt.name for receipt in found] == ["c", "a", "b"]
        assert [receipt.seq for receipt in found] == sorted({receipt.seq for receipt in found})

    async def test_an_effect_beyond_its_rate_is_refused_until_there_is_a_token(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        rate = Rate("mail", 2, 60)
        for name in ("a", "b"):
            applied(await commit(ledger, new_facts(row, new_intent(row, name), rates=(rate,))))

        verdict = await commit(ledger, new_facts(row, new_intent(row, "c"), rates=(rate,)))

        assert isinstance(verdict, Refused)
        assert (verdict.code, verdict.until) == ("rate", clock.now() + 30)
        clock.advance(30)
        applied(await commit(ledger, new_facts(row, new_intent(row, "c"), rates=(rate,))))
        assert refused(await commit(ledger, new_facts(row, new_intent(row, "d"), rates=(rate,)))) == "rate"
