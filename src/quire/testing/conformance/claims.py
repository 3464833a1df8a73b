"""Claims: who gets what is due, and in which order."""

from __future__ import annotations

import asyncio

import pytest

from quire.ledger.base import Ledger
from quire.model.record import Status
from quire.model.row import replace
from quire.model.wait import On, Wait
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    claim,
    claimed,
    run,
    slot,
    start,
    start_all,
    the,
    wait_for,
)
from quire.testing.conformance.suite import Suite


class Claims(Suite):
    """Who gets what is due (16, 23)."""

    async def test_a_claim_makes_due_records_the_workers(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await start(ledger)

        answer = await claim(ledger, slot(timeout=60), claim_id="c1")

        [mine] = answer.records
        assert mine == replace(
            row,
            status=Status.RUNNING,
            worker="w1",
            run_id=mine.run_id,
            run_until=clock.now() + 60,
            version=row.version + 1,
            log_seq=2,
            log_hash=mine.log_hash,
        )
        assert mine.run_id is not None
        assert await the(ledger) == mine
        assert answer.now == clock.now()

    async def test_a_record_is_claimed_once(self, ledger: Ledger) -> None:
        await start(ledger)

        assert await claimed(ledger) == ["r"]
        assert await claimed(ledger, worker="w2") == []

    async def test_a_claim_sent_again_gives_the_records_of_the_first_time(self, ledger: Ledger) -> None:
        """13."""
        await start_all(ledger, ["a", "b", "c"])
        first = await claim(ledger, limit=2, claim_id="c1")

        again = await claim(ledger, limit=2, claim_id="c1", again=True)

        assert set(again.records) == set(first.records)
        assert await claimed(ledger) == ["c"]

    async def test_a_claim_sent_again_that_never_landed_takes_what_is_due(self, ledger: Ledger) -> None:
        await start(ledger)

        assert await claimed(ledger, claim_id="c1", again=True) == ["r"]

    async def test_a_claim_takes_no_more_than_asked_for(self, ledger: Ledger) -> None:
        await start_all(ledger, [f"{step}{n}" for step in "ab" for n in range(5)])
        await start_all(ledger, ["x1", "x2", "x3"], step="other")

        assert len(await claimed(ledger, slot(free=2), slot("other", free=2))) == 4
        assert len(await claimed(ledger, limit=3)) == 3

    @pytest.mark.parametrize("cap", [None, 5], ids=["free", "capped"])
    async def test_records_of_a_newer_version_than_the_workers_are_left_to_others(
        self, ledger: Ledger, cap: int | None
    ) -> None:
        await start(ledger, "new", code_version=2)
        await start(ledger, "old", code_version=1)

        assert await claimed(ledger, slot(version=1, cap=cap)) == ["old"]
        nothing = await claim(ledger, slot(version=1, cap=cap))
        assert (nothing.records, nothing.left_priority) == ((), None)
        assert await claimed(ledger, slot(version=2, cap=cap)) == ["new"]

    async def test_only_steps_that_the_worker_names_are_claimed(self, ledger: Ledger) -> None:
        await start(ledger, "a", step="old")
        await start(ledger, "b", workflow="other")
        await start(ledger, "c")

        assert await claimed(ledger) == ["c"]
        assert [(row.record_id, row.status) for row in await ledger.load(["a", "b"])] == [
            ("a", Status.PENDING),
            ("b", Status.PENDING),
        ]

    async def test_the_earliest_due_comes_first(self, ledger: Ledger, clock: ToldClock) -> None:
        for n, record_id in enumerate(("late", "middle", "early")):
            await start(ledger, record_id, due_at=clock.now() + 30 - 10 * n)
        clock.advance(60)

        assert await claimed(ledger, limit=2) == ["early", "middle"]

    async def test_a_higher_priority_comes_first_but_does_not_starve_the_others(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        await start(ledger, "plain")
        clock.advance(60)
        await start(ledger, "urgent", priority=5)
        clock.advance(400)
        await start(ledger, "too-late", priority=5)

        assert await claimed(ledger) == ["urgent", "plain", "too-late"]

    async def test_an_empty_claim_tells_when_something_falls_due(self, ledger: Ledger, clock: ToldClock) -> None:
        nothing = await claim(ledger)
        await start(ledger, "b", due_at=clock.now() + 90)
        await start(ledger, "a", due_at=clock.now() + 60, step="other")

        answer = await claim(ledger, slot(), slot("other"))

        assert (nothing.next_due_at, nothing.left_priority) == (None, None)
        assert (answer.records, answer.next_due_at, answer.left_priority) == ((), clock.now() + 60, None)

    async def test_a_question_whose_time_is_over_is_no_question_while_its_record_runs(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        about = {"text": "Publish it?", "choices": ["yes"]}
        asked = await wait_for(ledger, row, Wait(On.QUESTION, key="q", until=clock.now() + 60, about=about))
        clock.advance(60)

        [runs] = (await claim(ledger)).records

        assert (asked.status, asked.question) == (Status.NEEDS_APPROVAL, "Publish it?")
        assert (runs.status, runs.question, runs.waits) == (Status.RUNNING, None, asked.waits)
        assert (await the(ledger)).question is None

    async def test_a_claim_tells_the_priority_of_what_it_left(self, ledger: Ledger) -> None:
        await start(ledger, "a", priority=9)
        await start(ledger, "b", priority=4)

        assert (await claim(ledger, limit=1)).left_priority == 4
        assert (await claim(ledger, limit=1)).left_priority is None

    async def test_new_work_wakes_who_waits_for_it(self, ledger: Ledger) -> None:
        await claim(ledger)
        waiting = asyncio.ensure_future(ledger.wait_for_work(3600.0))

        await start(ledger)

        await asyncio.wait_for(waiting, 30)
        assert await claimed(ledger) == ["r"]
