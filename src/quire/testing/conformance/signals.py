"""Signals and the waits they answer."""

from __future__ import annotations

from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Conflict,
    Send,
    Verdict,
)
from quire.model.receipt import Stage
from quire.model.record import Status
from quire.model.row import replace
from quire.model.wait import On, Wait, load_waits
from quire.rules.outcome import Done
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    claim,
    log,
    on_signal,
    receipt_of,
    refused,
    run,
    settle,
    the,
    wait_for,
)
from quire.testing.conformance.suite import Suite


class Signals(Suite):
    """What is sent to a record."""

    async def send(self, ledger: Ledger, signal_id: str, name: str = "paid", value: str = "1") -> Verdict:
        [verdict] = await ledger.send([Send(signal_id, "r", name, value)])
        return verdict

    async def test_a_signal_wakes_the_record_that_waits_for_it(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await wait_for(ledger, await run(ledger))

        woken = applied(await self.send(ledger, "s1", value='"42"'))

        assert (woken.status, woken.due_at, woken.version) == (Status.PENDING, clock.now(), row.version + 1)
        [receipt] = await ledger.receipts(record_ids=["r"])
        assert (receipt.key, receipt.value, receipt.stage) == (on_signal(row).key, '"42"', Stage.DONE)
        assert [signal.taken_by for signal in await ledger.signals("r")] == [receipt.key]
        assert woken.facts == 1

    async def test_a_signal_that_comes_before_the_wait_is_kept(self, ledger: Ledger) -> None:
        row = await run(ledger)
        applied(await self.send(ledger, "s1", value="7"))

        row = await wait_for(ledger, row)

        assert row.status is Status.PENDING
        assert [receipt.value for receipt in await ledger.receipts(record_ids=["r"])] == ["7"]

    async def test_a_signal_is_taken_once_also_if_it_is_sent_again(self, ledger: Ledger) -> None:
        """13."""
        await wait_for(ledger, await run(ledger))
        woken = applied(await self.send(ledger, "s1"))

        again = await self.send(ledger, "s1")

        assert again == Applied(woken, await ledger.now(), again=True)
        assert len(await ledger.signals("r")) == 1
        assert (await log(ledger)).count("signalled") == 1

    async def test_an_id_counts_for_each_record_and_name_apart(self, ledger: Ledger) -> None:
        """One event of the world outside may concern several records: none of them misses it, nor hears it twice."""
        for record_id in ("a", "b"):
            await wait_for(ledger, await run(ledger, record_id))
        sends = [Send("event", record_id, name, "1") for record_id in ("a", "b") for name in ("paid", "told")]

        first = await ledger.send(sends[:3])  # also within one batch
        first += await ledger.send(sends[3:])
        again = [*await ledger.send(sends[:1]), *await ledger.send(sends[1:])]

        assert [applied(verdict).status for verdict in first] == [Status.PENDING] * 4
        assert [isinstance(verdict, Applied) and verdict.again for verdict in (*first, *again)] == [False] * 4 + [
            True
        ] * 4
        for record_id in ("a", "b"):
            signals = await ledger.signals(record_id)
            assert [(signal.name, signal.taken_by is None) for signal in signals] == [("paid", False), ("told", True)]

    async def test_a_signal_sent_again_after_the_record_has_ended_answers_as_it_did_first(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await self.send(ledger, "s1")
        row = applied(await settle(ledger, row, Done("1", "{}")))

        assert await self.send(ledger, "s1") == Applied(row, await ledger.now(), again=True)
        assert refused(await self.send(ledger, "s2")) == "ended"

    async def test_signals_are_taken_in_the_order_of_their_coming(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        for n in ("3", "1", "2"):
            await self.send(ledger, f"s{n}", value=n)

        taken = []
        for visit in range(3):
            row = await wait_for(ledger, row, replace(on_signal(row, "paid"), key=f"wait-{visit}"))
            taken.append((await receipt_of(ledger, f"wait-{visit}")).value)
            [row] = (await claim(ledger)).records

        assert taken == ["3", "1", "2"]

    async def test_two_waits_of_one_name_take_a_signal_each(self, ledger: Ledger) -> None:
        row = await run(ledger)
        await ledger.send([Send("s1", "r", "paid", "1"), Send("s2", "r", "paid", "2")])

        await wait_for(ledger, row, *(replace(on_signal(row), key=key) for key in ("a", "b")))

        assert [receipt.value for receipt in await ledger.receipts(keys=["a", "b"])] == ["1", "2"]

    async def test_a_signal_of_another_name_wakes_nobody(self, ledger: Ledger) -> None:
        row = await wait_for(ledger, await run(ledger))

        applied(await self.send(ledger, "s1", "other"))

        assert (await the(ledger)).version == row.version
        assert [signal.taken_by for signal in await ledger.signals("r")] == [None]

    async def test_of_two_signals_in_one_batch_one_wakes_and_one_is_kept(self, ledger: Ledger) -> None:
        row = await wait_for(ledger, await run(ledger))

        await ledger.send([Send("s1", "r", "paid", "1"), Send("s2", "r", "paid", "2")])

        assert (await the(ledger)).version == row.version + 1
        assert [signal.taken_by is None for signal in await ledger.signals("r")] == [False, True]
        assert (await log(ledger)).count("woken") == 1

    async def test_the_other_waits_are_remembered_when_one_is_answered(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        timer = Wait(On.TIMER, key="timer", until=clock.now() + 60)

        await wait_for(ledger, row, on_signal(row), timer)
        woken = applied(await self.send(ledger, "s1"))

        assert load_waits(woken.waits) == (timer,)

    async def test_a_signal_to_nobody_is_told_so(self, ledger: Ledger) -> None:
        assert await self.send(ledger, "s1") == Conflict(None, await ledger.now())

    async def test_a_timer_makes_the_record_due_without_a_signal(self, ledger: Ledger, clock: ToldClock) -> None:
        row = await run(ledger)
        await wait_for(ledger, row, on_signal(row, until=clock.now() + 60))

        before = await claim(ledger)
        clock.advance(60)

        assert (before.records, before.next_due_at) == ((), clock.now())
        [row] = (await claim(ledger)).records
        assert row.waits is not None
