"""Two processes on one store, at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quire.errors import WorkerClosed
from quire.ledger.base import Ledger
from quire.model.change import (
    Applied,
    Change,
    Query,
    Rate,
    Send,
)
from quire.model.event import Line
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Setting
from quire.rules.outcome import Done, Saved
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    beat,
    claim,
    claimed,
    commit,
    log,
    map_over,
    new_facts,
    new_settle,
    new_start,
    order,
    refused,
    run,
    run_children,
    settle,
    slot,
    start,
    start_all,
    the,
    the_fanin,
    wait_for,
)
from quire.testing.conformance.suite import Suite


class Races(Suite):
    """Two processes on one store, played by two instances."""

    async def test_what_one_commits_the_other_sees(self, ledger: Ledger, twin: Ledger) -> None:
        row = await start(ledger, data='"hello"')

        assert await twin.load(["r"]) == [row]
        [row] = (await claim(twin)).records
        assert await the(ledger) == row
        assert await ledger.events() == await twin.events()

    async def test_one_repeats_what_the_other_sent_and_gets_its_answer(self, ledger: Ledger, twin: Ledger) -> None:
        """13."""
        row = await run(ledger)
        change = new_settle(row, Saved("1"), await ledger.now())
        applied(await commit(ledger, change))

        again = await commit(twin, change)

        assert isinstance(again, Applied)
        assert again.again

    async def test_two_claimers_never_share_a_record(self, ledger: Ledger, twin: Ledger) -> None:
        ids = [f"r{n:02}" for n in range(40)]
        await start_all(ledger, ids)

        async def take(store: Ledger, worker: str) -> list[str]:
            taken: list[str] = []
            while some := await claimed(store, worker=worker, limit=3):
                taken += some
            return taken

        first, second = await asyncio.gather(take(ledger, "w1"), take(twin, "w2"))

        assert sorted(first + second) == ids

    async def test_twenty_claimers_at_once_do_not_exceed_a_cap(self, ledger: Ledger, twin: Ledger) -> None:
        """4."""
        await start_all(ledger, [f"r{n:02}" for n in range(40)])
        for n in range(10):
            await beat(ledger, f"w{n}")

        answers = await asyncio.gather(
            *(claim(store, slot(cap=5), worker=f"w{n}", limit=3) for n in range(10) for store in (ledger, twin))
        )

        assert sum(len(answer.records) for answer in answers) == 5
        assert len(await ledger.find(Query(status=(Status.RUNNING,)))) == 5

    async def test_twenty_claimers_at_once_do_not_exceed_a_rate(self, ledger: Ledger, twin: Ledger) -> None:
        await start_all(ledger, [f"r{n:02}" for n in range(40)])
        rated = slot(rate=Rate("api", 7, 60))

        answers = await asyncio.gather(
            *(claim(store, rated, worker=f"w{n}", limit=3) for n in range(10) for store in (ledger, twin))
        )

        assert sum(len(answer.records) for answer in answers) == 7

    async def test_of_two_settles_at_once_one_lands(self, ledger: Ledger, twin: Ledger) -> None:
        for n in range(5):
            row = await run(ledger, f"r{n}")

            verdicts = await asyncio.gather(settle(ledger, row, Saved("1")), settle(twin, row, Saved("2")))

            assert sorted(type(verdict).__name__ for verdict in verdicts) == ["Applied", "Conflict"]

    async def test_a_signal_and_a_wait_at_once_always_meet(self, ledger: Ledger, twin: Ledger) -> None:
        """4."""
        for n in range(10):
            row = await run(ledger, f"r{n}")

            await asyncio.gather(wait_for(ledger, row), twin.send([Send(f"s{n}", f"r{n}", "paid", "1")]))

            assert (await the(ledger, f"r{n}")).status is Status.PENDING

    async def test_one_id_to_two_records_at_once_reaches_both(self, ledger: Ledger, twin: Ledger) -> None:
        for n in range(10):
            sends = [Send(f"event{n}", f"{name}{n}", "paid", "1") for name in ("a", "b")]
            for sent in sends:
                await wait_for(ledger, await run(ledger, sent.record_id))

            await asyncio.gather(ledger.send(sends[:1]), twin.send(sends[1:]))

            assert [(await the(ledger, sent.record_id)).status for sent in sends] == [Status.PENDING] * 2

    async def test_children_that_end_at_once_wake_their_parent_once(self, ledger: Ledger, twin: Ledger) -> None:
        """5a."""
        await map_over(ledger, await run(ledger), 8)
        children = await run_children(ledger)

        await asyncio.gather(
            *(settle((ledger, twin)[n % 2], child, Done("1", "{}")) for n, child in enumerate(children.values()))
        )

        assert (await the_fanin(ledger)).left == 0
        assert (await log(ledger)).count("woken") == 1

    async def test_the_same_start_at_once_is_one_record(self, ledger: Ledger, twin: Ledger) -> None:
        change = new_start("r", await ledger.now())

        verdicts = await asyncio.gather(
            *(commit(store, replace(change, change_id=f"c{n}")) for n in range(4) for store in (ledger, twin))
        )

        assert sorted(verdict.again for verdict in verdicts if isinstance(verdict, Applied)) == [False] + [True] * 7
        assert await log(ledger) == ["started"]

    async def test_nothing_starts_after_a_halt_was_acknowledged_to_another(self, ledger: Ledger, twin: Ledger) -> None:
        """15."""
        await order(ledger, "halt")
        now = await twin.now()

        verdicts = await asyncio.gather(*(commit(twin, new_start(f"r{n}", now)) for n in range(5)))

        assert [refused(verdict) for verdict in verdicts] == ["halted"] * 5

    async def test_a_beat_and_a_takeover_at_once_agree(self, ledger: Ledger, twin: Ledger, clock: ToldClock) -> None:
        """8: either the worker is closed and its record free, or both live on."""
        for n in range(5):
            row = await run(ledger, f"r{n}", worker=f"w{n}")
            clock.advance(40)

            told, _ = await asyncio.gather(beat(ledger, f"w{n}", row), twin.recover(), return_exceptions=True)

            after = await the(ledger, f"r{n}")
            if isinstance(told, WorkerClosed):
                assert after.status is Status.PENDING
            else:
                assert not isinstance(told, BaseException)
                assert (after.status, after.worker, told.lost) == (Status.RUNNING, f"w{n}", ())
                await ledger.farewell(f"w{n}")

    async def test_batches_in_opposite_orders_both_land(self, ledger: Ledger, twin: Ledger) -> None:
        """14."""
        now = await ledger.now()
        rows = [await run(ledger, f"r{n}") for n in range(20)]

        def changes(some: Sequence[Record]) -> list[Change]:
            return [new_facts(row, lines=(Line("noted"),)) for row in some]

        verdicts = await asyncio.gather(
            *(
                store.commit(changes(rows if store is ledger else rows[::-1]))
                for _ in range(5)
                for store in (ledger, twin)
            )
        )

        assert all(isinstance(verdict, Applied) for batch in verdicts for verdict in batch)
        assert now == await twin.now()
        assert await log(ledger, "r0") == ["started", "claimed", *["noted"] * 10]

    async def test_a_setting_replaced_at_once_is_replaced_by_one(self, ledger: Ledger, twin: Ledger) -> None:
        kept = await asyncio.gather(
            *(store.keep(Setting("lease", str(n), 0)) for n in range(3) for store in (ledger, twin))
        )

        assert sorted(kept) == [False] * 5 + [True]
