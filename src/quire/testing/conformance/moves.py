"""Settles and facts: one version, one winner."""

from __future__ import annotations

import pytest

from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Change,
    Conflict,
    Refused,
)
from quire.model.event import Line
from quire.model.record import Status
from quire.model.row import replace
from quire.rules import moves as transition
from quire.rules.outcome import Done, Next, Outcome, Saved
from quire.testing.conformance.asking import (
    applied,
    commit,
    intend,
    log,
    new_answer,
    new_facts,
    new_intent,
    new_settle,
    new_start,
    refused,
    run,
    settle,
    start,
    the,
)
from quire.testing.conformance.outcomes import OUTCOMES
from quire.testing.conformance.suite import Suite


class Moves(Suite):
    """A change replaces one version, whole or not at all."""

    @pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
    async def test_a_settle_puts_its_image_in_place_of_the_version(self, ledger: Ledger, outcome: Outcome) -> None:
        row = await run(ledger)
        go = transition.settle(row, outcome, await ledger.now())

        after = applied(await settle(ledger, row, outcome))

        assert after == replace(go.image, log_seq=after.log_seq, log_hash=after.log_hash)
        assert after.version == row.version + 1
        assert await ledger.load(["r"]) == [after]
        assert await log(ledger) == ["started", "claimed", go.lines[0].kind]

    async def test_of_two_changes_of_one_version_the_second_is_told_what_is_there(self, ledger: Ledger) -> None:
        row = await run(ledger)
        first = applied(await settle(ledger, row, Saved("1")))

        verdict = await settle(ledger, row, Saved("2"))

        assert verdict == Conflict(first, await ledger.now())
        assert (await the(ledger)).data == "1"

    async def test_two_changes_of_one_version_in_one_batch_and_the_second_is_refused(self, ledger: Ledger) -> None:
        row = await run(ledger)
        now = await ledger.now()

        first, second = await ledger.commit([new_settle(row, Saved("1"), now), new_settle(row, Saved("2"), now)])

        assert second == Conflict(applied(first), now)
        assert (await the(ledger)).data == "1"

    async def test_changes_of_one_record_in_one_batch_land_in_order(self, ledger: Ledger) -> None:
        """14."""
        row, now = await run(ledger), await ledger.now()
        changes: list[Change] = []
        for n in range(4):
            changes.append(new_settle(row, Saved(str(n)), now))
            image = changes[-1].image
            assert image is not None
            row = image

        verdicts = await ledger.commit(changes)

        assert [applied(verdict).data for verdict in verdicts] == ["0", "1", "2", "3"]
        assert (await the(ledger)).version == row.version
        assert await log(ledger) == ["started", "claimed", *["saved"] * 4]

    async def test_a_refused_change_takes_its_successors_with_it_and_nothing_else(self, ledger: Ledger) -> None:
        """14."""
        row, other, now = await run(ledger, "r"), await run(ledger, "other"), await ledger.now()
        stale = new_settle(replace(row, version=row.version + 7), Saved("1"), now)
        after_stale = new_settle(replace(row, version=row.version + 8), Saved("2"), now)

        verdicts = await ledger.commit(
            [
                new_start("new", now),
                stale,
                after_stale,
                new_settle(other, Done("3", "{}"), now),
                new_start("r", now, data="9"),
            ]
        )

        assert [type(verdict) for verdict in verdicts] == [Applied, Conflict, Conflict, Applied, Refused]
        assert await the(ledger) == row
        assert (await the(ledger, "other")).status is Status.DONE

    async def test_a_change_of_a_record_that_is_not_there_is_told_so(self, ledger: Ledger) -> None:
        row = await run(ledger)
        ghost = replace(row, record_id="ghost")

        assert await settle(ledger, ghost, Saved("1")) == Conflict(None, await ledger.now())
        assert await commit(ledger, new_facts(ghost, new_answer(ghost, "a"))) == Conflict(None, await ledger.now())
        assert await ledger.load(["ghost"]) == []

    async def test_only_the_holder_moves_a_running_record(self, ledger: Ledger) -> None:
        row = await run(ledger)

        by_another = await settle(ledger, replace(row, worker="w2"), Saved("1"))
        by_a_person = await settle(ledger, replace(row, worker=None), Saved("1"))

        assert (refused(by_another), refused(by_a_person)) == ("running", "running")
        assert await the(ledger) == row

    async def test_a_worker_moves_only_what_it_holds(self, ledger: Ledger) -> None:
        row = await start(ledger)

        verdict = await settle(ledger, replace(row, worker="w1"), Saved("1"))

        assert verdict == Conflict(row, await ledger.now())

    async def test_a_move_again_answers_as_it_did_first(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        change = new_settle(row, Next("next", "{}"), await ledger.now())
        after = applied(await commit(ledger, change))

        assert await commit(ledger, change) == Applied(after, await ledger.now(), again=True)
        assert await log(ledger) == ["started", "claimed", "moved"]

    async def test_a_move_again_answers_as_it_did_first_after_the_record_went_on(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        change = new_settle(row, Saved("1"), await ledger.now())
        row = applied(await commit(ledger, change))
        await intend(ledger, row)
        await commit(ledger, new_facts(row, lines=(Line("noted"),)))
        again_at_its_version = await commit(ledger, change)
        row = applied(await settle(ledger, row, Saved("2")))

        again_behind = await commit(ledger, change)

        assert isinstance(again_at_its_version, Applied)
        assert again_at_its_version.again
        assert again_behind == Applied(await the(ledger), await ledger.now(), again=True)
        assert (await the(ledger)).data == "2"

    async def test_another_move_from_the_same_version_is_no_repeat(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await settle(ledger, row, Saved("1"), change_id="mine"))

        assert isinstance(await settle(ledger, row, Saved("1"), change_id="yours"), Conflict)

    async def test_a_move_and_its_repeat_in_one_batch_land_once(self, ledger: Ledger) -> None:
        row = await run(ledger)
        change = new_settle(row, Saved("1"), await ledger.now())

        first, second = await ledger.commit([change, change])

        assert second == Applied(applied(first), await ledger.now(), again=True)

    async def test_an_image_cannot_change_what_stands_beside_it(self, ledger: Ledger) -> None:
        """6."""
        row = await run(ledger, priority=2)
        forged = replace(row, priority=99, cancel="{}", facts=9, open_intents=9, log_seq=0, log_hash="")

        after = applied(await settle(ledger, forged, Saved("1")))

        assert (after.priority, after.cancel, after.facts, after.open_intents) == (2, None, 0, 0)
        assert await log(ledger) == ["started", "claimed", "saved"]

    async def test_facts_stand_beside_the_record_without_raising_its_version(self, ledger: Ledger) -> None:
        row = await run(ledger)

        after = applied(await commit(ledger, new_facts(row, new_answer(row, "a"), lines=(Line("noted", '"hello"'),))))

        assert (after.version, after.facts) == (row.version, 1)
        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == ["1"]
        assert await log(ledger) == ["started", "claimed", "noted"]

    async def test_facts_again_answer_as_they_did_first(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        facts = new_facts(row, new_answer(row, "a"), new_intent(row))
        applied(await commit(ledger, facts))

        after = applied(await commit(ledger, facts))

        assert (after.facts, after.open_intents) == (2, 1)
        assert len(await ledger.receipts(record_ids=["r"])) == 2

    async def test_lines_that_come_with_answers_are_written_once(self, ledger: Ledger) -> None:
        """13."""
        row = await run(ledger)
        facts = new_facts(row, new_answer(row, "a"), lines=(Line("noted", '"hello"'),))

        applied(await commit(ledger, facts))
        applied(await commit(ledger, facts))
        both = await ledger.commit([facts, facts])

        assert [type(verdict) for verdict in both] == [Applied, Applied]
        assert await log(ledger) == ["started", "claimed", "noted"]

    async def test_facts_of_one_who_does_not_hold_the_record_do_not_land(self, ledger: Ledger) -> None:
        row = await run(ledger)

        of_another = await commit(ledger, new_facts(replace(row, worker="w2"), new_answer(row, "a")))
        of_an_older_version = await commit(ledger, new_facts(replace(row, version=1), new_answer(row, "b")))

        assert of_another == of_an_older_version == Conflict(row, await ledger.now())
        assert await ledger.receipts(record_ids=["r"]) == []

    async def test_the_first_answer_under_a_key_stands(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await commit(ledger, new_facts(row, new_answer(row, "a", "1")))

        applied(await commit(ledger, new_facts(row, new_answer(row, "a", "2"))))
        applied(await settle(ledger, row, Saved("{}"), receipts=(new_answer(row, "a", "3"),)))

        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == ["1"]

    async def test_answers_ride_with_a_move(self, ledger: Ledger) -> None:
        row = await run(ledger)

        after = applied(await settle(ledger, row, Saved("{}"), receipts=(new_answer(row, "a"), new_answer(row, "b"))))

        assert after.facts == 2
        assert [receipt.name for receipt in await ledger.receipts(record_ids=["r"])] == ["a", "b"]

    async def test_a_new_visit_has_no_facts_yet(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await commit(ledger, new_facts(row, new_answer(row, "a")))

        after = applied(await settle(ledger, row, Next("next", "{}"), receipts=(new_answer(row, "b"),)))

        assert after.facts == 0
        assert len(await ledger.receipts(record_ids=["r"])) == 2
