"""What a ledger forgets when somebody tidies it."""

from __future__ import annotations

from collections import OrderedDict

import pytest

from quire.ledger import blobs
from quire.ledger.base import Ledger
from quire.model.codec import dump
from quire.rules.outcome import Done, Saved
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import applied, beat, intend, lose_worker, run, settle, start, the
from quire.testing.conformance.suite import Suite


class Tidying(Suite):
    """What nothing names any more is deleted when somebody asks for it, and nothing else (20)."""

    async def test_old_closed_workers_are_forgotten_but_for_those_whose_acts_are_open(
        self, ledger: Ledger, clock: ToldClock
    ) -> None:
        if type(ledger).tidy is Ledger.tidy:
            pytest.skip("this store keeps what nothing names")
        row = await run(ledger, worker="doubtful")
        await intend(ledger, row)
        for worker in ("gone", "young", "doubtful"):
            await beat(ledger, worker, *([row] if worker == "doubtful" else []))
        await lose_worker(ledger, clock)
        await beat(ledger, "alive", lease=1e6)
        clock.advance(1e5)
        await beat(ledger, "young_one")
        await ledger.farewell("young_one")

        tidied = await ledger.tidy(clock.now() - 1000)

        left = {worker.worker_id for worker in await ledger.workers()}
        assert (tidied.workers, left) == (2, {"doubtful", "alive", "young_one"})
        assert (await ledger.tidy(clock.now() - 1000)).workers == 0

    async def test_long_values_that_nothing_names_are_forgotten(self, ledger: Ledger, clock: ToldClock) -> None:
        if type(ledger).tidy is Ledger.tidy:
            pytest.skip("this store keeps what nothing names")
        kept, gone = dump("k" * 200_000), dump("g" * 200_000)
        row = await run(ledger, data=kept)
        other = await run(ledger, "other", data=gone)
        applied(await settle(ledger, other, Done("1", "{}")))
        before = await ledger.tidy(clock.now())
        applied(await settle(ledger, row, Saved(kept)))

        assert before.blobs == ledger.traits.durable  # in memory a long value is no row of its own
        assert (await the(ledger)).data == kept
        assert (await ledger.tidy(clock.now())).blobs == 0
        again = await start(ledger, "again", data=gone)
        assert (await the(ledger, "again")).data == again.data == gone

    async def test_a_long_value_that_changes_a_little_is_kept_as_a_difference(
        self, ledger: Ledger, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if type(ledger).tidy is Ledger.tidy:
            pytest.skip("this store keeps what nothing names")
        text = "".join(f"{number} " for number in range(40_000))
        monkeypatch.setattr(blobs.BASES, "_texts", OrderedDict())
        row = await run(ledger, data=dump({"n": 0, "text": text, "more": []}))
        for number in range(1, 20):
            row = applied(await settle(ledger, row, Saved(dump({"n": number, "text": text, "more": [number]}))))

        assert (await ledger.tidy(clock.now())).blobs == 0  # they all stand on one
        assert (await the(ledger)).data == dump({"n": 19, "text": text, "more": [19]})
        # Another process does not know the value on which they stand: it keeps one of its own, and the first can go.
        monkeypatch.setattr(blobs.BASES, "_texts", OrderedDict())
        applied(await settle(ledger, row, Done("1", dump({"n": 20, "text": text, "more": []}))))
        gone = (await ledger.tidy(clock.now())).blobs
        assert (await the(ledger)).data == dump({"n": 20, "text": text, "more": []})
        assert gone == ledger.traits.durable or not ledger.traits.shared
