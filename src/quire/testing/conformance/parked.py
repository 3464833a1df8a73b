"""Intents that may not act yet: they are parked with the move that asks, and people release or drop them."""

from __future__ import annotations

from typing import Any

import pytest

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import Change, Verdict
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.wait import On, Wait
from quire.rules import moves as transition
from quire.rules.outcome import Done, Waits
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    ask_to_cancel,
    commit,
    done,
    intend,
    lose_worker,
    new_facts,
    new_intent,
    new_settle,
    order,
    receipt_of,
    refused,
    run,
    settle,
    the,
)
from quire.testing.conformance.asking import log as log_of
from quire.testing.conformance.suite import Suite

_CHOICES = (Stage.RELEASED, Stage.DROPPED, Stage.RELEASED)


def new_parked(record: Record, name: str = "post", **fields: Any) -> Receipt:
    """An intent of this visit that may not act yet."""
    return new_intent(record, name, stage=Stage.PARKED, **fields)


def question(parked: Receipt) -> Wait:
    return Wait(On.QUESTION, key=f"{parked.key}release", name="q", about={"text": "Do it?", "choices": ["yes", "no"]})


async def park(ledger: Ledger, record: Record, parked: Receipt) -> Record:
    """The step asks people about a parked intent, which rides with the move."""
    change = new_settle(record, Waits((question(parked),), "{}"), await ledger.now(), receipts=(parked,))
    return applied(await commit(ledger, change))


async def decide(ledger: Ledger, parked: Receipt, stage: Stage = Stage.RELEASED, **fields: str) -> Verdict:
    """A person answers the question, and releases or drops what is parked."""
    return await commit(ledger, await new_decision(ledger, parked, stage, **fields))


async def new_decision(ledger: Ledger, parked: Receipt, stage: Stage = Stage.RELEASED, **fields: str) -> Change:
    record = await the(ledger)
    body = {"choice": "yes" if stage is Stage.RELEASED else "no", "by": "ann"}
    go = transition.answered(record, await ledger.now(), question(parked).key, body)
    said = replace(parked, key=question(parked).key, kind=Kind.ASK, stage=Stage.DONE, value='{"choice":"yes"}')
    receipts = (said, replace(parked, stage=stage, **fields))
    return Change(new_id(), record.record_id, record.version, go.image, lines=go.lines, receipts=receipts)


class Parked(Suite):
    """Nothing acts on an intent that is parked or dropped (protocol 17)."""

    async def test_a_parked_intent_rides_with_the_move_that_asks_and_is_no_doubt(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)

        after = await park(ledger, row, parked)

        assert (after.status, after.open_intents) == (Status.NEEDS_APPROVAL, 0)
        kept = await receipt_of(ledger, parked.key)
        assert (kept.stage, kept.args, kept.prepared, kept.nonce) == (
            Stage.PARKED,
            parked.args,
            parked.prepared,
            parked.nonce,
        )
        assert (await ledger.standing()).under_way == ()
        assert await log_of(ledger) == ["started", "claimed", "effect.parked", "asked"]

    async def test_a_parked_intent_may_stand_beside_the_image_too(self, ledger: Ledger) -> None:
        """Whoever takes the record over finds it there."""
        row = await run(ledger)
        parked = new_parked(row)
        change = new_facts(row, parked)

        first = applied(await commit(ledger, change))
        again = applied(await commit(ledger, change))

        assert (first.open_intents, again.log_seq) == (0, first.log_seq)
        assert (await receipt_of(ledger, parked.key)).stage is Stage.PARKED

    async def test_it_is_intended_only_when_a_person_has_released_it(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        assert refused(await self.parked_then_intended(ledger, row, parked)) == "intent"
        await park(ledger, row, parked)
        assert (await receipt_of(ledger, parked.key)).stage is Stage.PARKED

        applied(await decide(ledger, parked))
        row = await run(ledger)
        intent = await intend(ledger, row)
        after = applied(await commit(ledger, new_facts(row, done(intent))))

        assert after.open_intents == 0
        assert (await receipt_of(ledger, parked.key)).stage is Stage.DONE
        lines = await log_of(ledger)
        assert lines[lines.index("effect.released") :] == [
            "effect.released",
            "answered",
            "claimed",
            "effect.intended",
            "effect.done",
        ]

    @staticmethod
    async def parked_then_intended(ledger: Ledger, row: Record, parked: Receipt) -> Verdict:
        applied(await commit(ledger, new_facts(row, parked)))
        return await commit(ledger, new_facts(row, new_intent(row)))

    async def test_one_move_of_a_person_decides_several(self, ledger: Ledger) -> None:
        """All of them or none: one that is another thing by now leaves the others as they are."""
        row = await run(ledger)
        some = [new_parked(row, name) for name in ("a", "b", "c")]
        applied(await commit(ledger, new_facts(row, *some)))
        await park(ledger, await the(ledger), last := new_parked(row, "d"))
        change = await new_decision(ledger, last)
        choices = [replace(one, stage=stage) for one, stage in zip(some, _CHOICES, strict=True)]

        stale = replace(change, receipts=(*change.receipts, *choices[:2], replace(choices[2], nonce="another")))
        assert refused(await commit(ledger, stale)) == "parked"
        assert {(await receipt_of(ledger, one.key)).stage for one in (*some, last)} == {Stage.PARKED}

        applied(await commit(ledger, replace(change, change_id=new_id(), receipts=(*change.receipts, *choices))))
        assert [(await receipt_of(ledger, one.key)).stage for one in some] == list(_CHOICES)

    async def test_what_a_person_dropped_is_not_intended(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        await park(ledger, row, parked)

        applied(await decide(ledger, parked, Stage.DROPPED))
        row = await run(ledger)

        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "intent"
        assert (await receipt_of(ledger, parked.key)).stage is Stage.DROPPED
        assert (await the(ledger)).open_intents == 0

    async def test_only_what_was_shown_is_released_and_as_it_was_shown(self, ledger: Ledger) -> None:
        """The nonce says which parked intent it was. Whatever else comes with the release does not count."""
        row = await run(ledger)
        parked = new_parked(row)
        before = await park(ledger, row, parked)

        assert refused(await decide(ledger, parked, nonce="another")) == "parked"
        assert await the(ledger) == before
        applied(await decide(ledger, parked, args="[2]", prepared="{}", fn="other:post"))

        kept = await receipt_of(ledger, parked.key)
        assert (kept.stage, kept.args, kept.prepared, kept.fn) == (
            Stage.RELEASED,
            parked.args,
            parked.prepared,
            parked.fn,
        )

    async def test_a_worker_releases_nothing_and_may_drop_what_nobody_answered(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        applied(await commit(ledger, new_facts(row, parked)))

        assert refused(await commit(ledger, new_facts(row, replace(parked, stage=Stage.RELEASED)))) == "parked"
        applied(await commit(ledger, new_facts(row, replace(parked, stage=Stage.DROPPED))))

        assert (await receipt_of(ledger, parked.key)).stage is Stage.DROPPED

    async def test_what_was_released_and_is_another_thing_by_now_is_parked_again(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        await park(ledger, row, parked)
        applied(await decide(ledger, parked))
        row = await run(ledger)

        await park(ledger, row, new := new_parked(row, prepared='{"draft":8}'))

        assert (await receipt_of(ledger, parked.key)).nonce == new.nonce != parked.nonce
        assert refused(await decide(ledger, parked)) == "parked"
        applied(await decide(ledger, new))

    @pytest.mark.parametrize("stage", ["intended", "done"])
    async def test_what_is_under_way_or_done_is_not_parked(self, ledger: Ledger, stage: str) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        if stage == "done":
            applied(await commit(ledger, new_facts(row, done(intent))))

        assert refused(await commit(ledger, new_facts(row, new_parked(row)))) == "intent"
        assert str((await receipt_of(ledger, intent.key)).stage) == stage

    async def test_what_did_not_happen_may_be_parked_and_released_again(self, ledger: Ledger) -> None:
        row = await run(ledger)
        intent = await intend(ledger, row)
        applied(await commit(ledger, new_facts(row, replace(intent, stage=Stage.VOID))))

        await park(ledger, row, parked := new_parked(row))
        applied(await decide(ledger, parked))

        row = await run(ledger)
        assert (await intend(ledger, row)).open

    async def test_what_was_prepared_for_an_act_that_could_not_begin_is_kept_with_the_wait(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        void = new_intent(row, stage=Stage.VOID)
        wait = Wait(On.RATE, key="rate", name="mails", until=clock.now() + 5)
        change = new_settle(row, Waits((wait,), "{}"), clock.now(), receipts=(void,))

        after = applied(await commit(ledger, change))

        assert (after.open_intents, after.facts) == (0, 1)
        kept = await receipt_of(ledger, void.key)
        assert (kept.stage, kept.prepared, kept.act_key) == (Stage.VOID, void.prepared, void.act_key)
        clock.advance(5)
        assert (await intend(ledger, await run(ledger))).open

    async def test_a_record_ends_moves_on_and_is_cancelled_over_a_parked_intent(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await commit(ledger, new_facts(row, new_parked(row))))

        ended = applied(await settle(ledger, row, Done("1", "{}")))

        assert (ended.status, ended.open_intents) == (Status.DONE, 0)

    async def test_an_answer_that_is_sent_again_decides_nothing_anew(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        await park(ledger, row, parked)
        change = await new_decision(ledger, parked)

        first = applied(await commit(ledger, change))
        again = applied(await commit(ledger, change))

        assert (again.version, again.log_seq) == (first.version, first.log_seq)

    async def test_after_a_halt_nothing_that_was_released_is_intended(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        await park(ledger, row, parked)
        applied(await decide(ledger, parked))
        row = await run(ledger)

        await order(ledger, "halt")

        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "halted"
        assert (await receipt_of(ledger, parked.key)).stage is Stage.RELEASED

    async def test_what_is_parked_under_a_halt_may_never_act_and_the_record_is_cancelled(self, ledger: Ledger) -> None:
        """The step asks at the moment of the halt: the intent is written down, and stands in nobody's way."""
        row = await run(ledger)
        await order(ledger, "halt")

        await park(ledger, row, parked := new_parked(row))

        after = await the(ledger)
        assert (after.status, after.open_intents) == (Status.CANCELLED, 0)
        assert (await receipt_of(ledger, parked.key)).stage is Stage.PARKED

    async def test_over_a_cancel_request_nothing_that_was_released_is_intended(self, ledger: Ledger) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        await park(ledger, row, parked)
        applied(await decide(ledger, parked))
        row = await run(ledger)

        applied(await ask_to_cancel(ledger))

        assert refused(await commit(ledger, new_facts(row, new_intent(row)))) == "cancelled"

    async def test_a_takeover_leaves_what_is_parked_and_makes_no_doubt_of_it(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        parked = new_parked(row)
        applied(await commit(ledger, new_facts(row, parked)))

        await lose_worker(ledger, clock)

        after = await the(ledger)
        assert (after.status, after.open_intents) == (Status.PENDING, 0)
        assert (await receipt_of(ledger, parked.key)).stage is Stage.PARKED
