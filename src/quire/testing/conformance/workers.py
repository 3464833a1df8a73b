"""Workers: leases, beats and takeovers."""

from __future__ import annotations

import pytest

from quire.clock import next_id
from quire.errors import WorkerClosed
from quire.ledger.base import Ledger
from quire.model.change import Applied, Claim, Conflict, Holding
from quire.model.receipt import Stage
from quire.model.record import Status
from quire.model.row import replace
from quire.rules import moves as transition
from quire.rules.outcome import Done, Saved
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    a_worker,
    applied,
    beat,
    claim,
    done,
    intend,
    log,
    lose_worker,
    move,
    new_answer,
    new_facts,
    new_intent,
    new_settle,
    run,
    settle,
    slot,
    start,
    start_all,
    the,
)
from quire.testing.conformance.suite import Suite


class Workers(Suite):
    """Leases, beats and takeovers (7, 8, 23)."""

    async def test_a_beat_renews_the_lease_on_the_ledgers_clock(self, ledger: Ledger, clock: ToldClock) -> None:
        first = await ledger.beat(replace(a_worker(), started_at=5.0, expires_at=9e9), Holding({}))
        clock.advance(20)
        await beat(ledger)

        [worker] = await ledger.workers()
        assert first.now == clock.now() - 20
        assert (worker.started_at, worker.expires_at, worker.closed) == (clock.now() - 20, clock.now() + 30, None)

    async def test_a_worker_that_beats_keeps_its_records(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)

        for _ in range(5):
            clock.advance(29)
            assert (await beat(ledger, "w1", row)).lost == ()
            await ledger.recover()

        assert await the(ledger) == row

    async def test_a_beat_gives_back_what_the_worker_does_not_know_that_it_holds(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """7a: the claim landed, its answer was lost."""
        row = await run(ledger)

        await beat(ledger, "w1")

        after = await the(ledger)
        assert (after.status, after.worker, after.version) == (Status.PENDING, None, row.version + 1)
        assert (after.attempt, after.losses, after.due_at) == (0, 0, clock.now())
        assert await log(ledger) == ["started", "claimed", "orphaned"]

    async def test_a_beat_leaves_the_records_of_a_claim_that_is_still_on_its_way(self, ledger: Ledger) -> None:
        await beat(ledger)
        await start_all(ledger, ["a", "b"])
        await claim(ledger, limit=1, claim_id="c1")
        await claim(ledger, limit=1, claim_id="c2")

        await beat(ledger, "w1", claims=("c2",))

        assert [row.status for row in await ledger.load(["a", "b"])] == [Status.PENDING, Status.RUNNING]

    async def test_a_beat_tells_what_the_worker_holds_no_longer(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        ghost = replace(row, record_id="ghost")
        clock.advance(3601)
        await beat(ledger, "w1", row)
        await ledger.recover()

        told = await beat(ledger, "w1", row, ghost)

        assert set(told.lost) == {"r", "ghost"}

    async def test_a_run_past_its_end_is_taken_over_though_its_worker_lives(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """7."""
        await beat(ledger, lease=1e6)
        await start(ledger)
        [row] = (await claim(ledger, slot(timeout=60))).records
        clock.advance(60)
        too_early = await ledger.recover()
        clock.advance(1)

        recovered = await ledger.recover()

        after = await the(ledger)
        assert (too_early.records, recovered.records, recovered.workers) == (0, 1, 0)
        assert (after.status, after.worker, after.attempt, after.losses) == (Status.PENDING, None, 0, 1)
        assert isinstance(await settle(ledger, row, Done("1", "{}")), Conflict)

    async def test_a_worker_is_closed_only_after_its_lease_and_a_grace(self, ledger: Ledger, clock: ToldClock) -> None:
        """8."""
        await run(ledger)
        clock.advance(32)
        too_early = await ledger.recover()
        clock.advance(2)

        recovered = await ledger.recover()

        assert (too_early.workers, recovered.workers, recovered.records) == (0, 1, 1)
        [worker] = await ledger.workers()
        assert worker.closed is not None
        after = await the(ledger)
        assert (after.status, after.worker, after.attempt, after.losses) == (Status.PENDING, None, 0, 1)
        assert (await log(ledger))[-1] == "lost"

    async def test_a_beat_that_a_later_claim_overtook_gives_nothing_back(self, ledger: Ledger) -> None:
        """7: a beat and a claim travel side by side, and what a beat says may be old when it arrives."""
        early, said, late = next_id(), next_id(), next_id()
        await start(ledger, "known")
        await start(ledger, "unknown")
        await beat(ledger, "w1")
        [forgotten] = (await ledger.claim(Claim(early, "w1", (slot(),), 1))).records
        [overtaken] = (await ledger.claim(Claim(late, "w1", (slot(),), 1))).records

        told = await ledger.beat(a_worker(), Holding({}, (), said))

        assert told.lost == ()
        assert (await the(ledger, forgotten.record_id)).status is Status.PENDING
        assert await the(ledger, overtaken.record_id) == overtaken

    async def test_a_closed_worker_cannot_beat_nor_claim(self, ledger: Ledger, clock: ToldClock) -> None:
        """8."""
        row = await run(ledger)
        await lose_worker(ledger, clock)

        with pytest.raises(WorkerClosed):
            await beat(ledger, "w1", row)
        with pytest.raises(WorkerClosed):
            await claim(ledger)
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_worker_that_never_beat_claims_nothing(self, ledger: Ledger) -> None:
        """7, 8: nobody would take over from it."""
        row = await start(ledger)

        for asked in (Claim("c1", "nobody", (slot(),), 1), Claim("c1", "nobody", (slot("other"),), 1, again=True)):
            with pytest.raises(WorkerClosed, match="beats before it claims"):
                await ledger.claim(asked)

        assert await the(ledger) == row
        assert (await ledger.claim(Claim("c2", "", (slot(),), 0))).left_priority == 0

    async def test_of_what_a_closed_worker_writes_only_receipts_land(self, ledger: Ledger, clock: ToldClock) -> None:
        """8."""
        row = await run(ledger)
        intent = await intend(ledger, row)
        await lose_worker(ledger, clock)

        verdicts = await ledger.commit(
            [
                new_settle(row, Saved('"mine"'), clock.now()),
                new_facts(row, new_intent(row, "other")),
                new_facts(row, new_answer(row, "call")),
                new_facts(row, done(intent)),
            ]
        )

        assert [type(verdict) for verdict in verdicts] == [Conflict, Conflict, Conflict, Applied]
        assert [(r.name, r.stage) for r in await ledger.receipts(record_ids=["r"])] == [("post", Stage.DONE)]

    async def test_a_worker_whose_lease_ran_out_lives_on_if_nobody_closed_it(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        row = await run(ledger)
        clock.advance(600)

        told = await beat(ledger, "w1", row)

        assert told.lost == ()
        assert (await ledger.recover()).workers == 0

    async def test_a_record_whose_workers_are_lost_is_a_suspect_and_loses_no_try(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """23."""
        await start(ledger)
        seen = []
        for n in range(4):
            await beat(ledger, f"w{n}")
            [row] = (await claim(ledger, worker=f"w{n}")).records
            seen.append((row.attempt, row.losses, transition.suspected(row)))
            await lose_worker(ledger, clock)

        assert seen == [(0, 0, False), (0, 1, False), (0, 2, True), (0, 2, True)]
        assert (await the(ledger)).status is Status.PENDING

    async def test_a_suspect_is_handed_to_another_worker_and_belongs_to_it(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """23, 7."""
        row = await run(ledger)
        await beat(ledger, "w1.alone")

        go = transition.apart(row, clock.now(), "w1.alone", 30.0)
        handed = applied(await move(ledger, row, go, worker="w1"))

        assert (handed.status, handed.worker, handed.run_id) == (Status.RUNNING, "w1.alone", row.run_id)
        assert (await beat(ledger, "w1.alone", handed)).lost == ()
        assert (await beat(ledger, "w1", row)).lost == ("r",)
        assert isinstance(await settle(ledger, row, Done("1", "{}")), Conflict)
        assert applied(await settle(ledger, handed, Done("1", "{}"))).status is Status.DONE

    async def test_a_process_that_dies_alone_with_its_record_is_a_try_and_the_third_is_an_error(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        """23."""
        await start(ledger)
        seen = []
        for n in range(transition.MOST_DEATHS):
            await beat(ledger, worker := f"w{n}")
            [row] = (await claim(ledger, worker=worker)).records
            row = applied(await move(ledger, row, transition.died(row, clock.now(), "exit code 1"), worker=worker))
            seen.append((row.status, row.attempt, row.worker))

        assert seen == [(Status.PENDING, 1, None), (Status.PENDING, 2, None), (Status.ERROR, 3, None)]
        assert "ended 3 processes in which it ran alone (exit code 1)" in (row.last_error or "")

    async def test_a_worker_known_to_be_dead_is_closed_before_its_lease_ends(self, ledger: Ledger) -> None:
        row = await run(ledger, "a", worker="dead")
        other = await run(ledger, "b", worker="alive")

        recovered = await ledger.recover(dead=["dead", "unknown"])

        assert (recovered.workers, recovered.records) == (1, 1)
        assert [row.status for row in await ledger.load(["a", "b"])] == [Status.PENDING, Status.RUNNING]
        with pytest.raises(WorkerClosed):
            await beat(ledger, "dead", row)
        assert await the(ledger, "b") == other

    async def test_a_farewell_gives_everything_back_unharmed(self, ledger: Ledger) -> None:
        row = await run(ledger)

        await ledger.farewell("w1")

        after = await the(ledger)
        assert (after.status, after.attempt, after.losses, after.version) == (Status.PENDING, 0, 0, row.version + 1)
        with pytest.raises(WorkerClosed):
            await beat(ledger)
        await ledger.farewell("w1")
        await ledger.farewell("nobody")

    async def test_a_takeover_leaves_the_records_of_living_workers(self, ledger: Ledger, clock: ToldClock) -> None:
        await run(ledger, "a", worker="dead")
        row = await run(ledger, "b", worker="alive")
        clock.advance(20)
        await beat(ledger, "alive", row)
        clock.advance(20)

        recovered = await ledger.recover()

        assert (recovered.workers, recovered.records) == (1, 1)
        assert await the(ledger, "b") == row

    async def test_when_nothing_is_lost_nothing_is_recovered(self, ledger: Ledger) -> None:
        row = await run(ledger)

        recovered = await ledger.recover()

        assert (recovered.workers, recovered.records, recovered.swept, recovered.more) == (0, 0, 0, False)
        assert await the(ledger) == row
