"""A ledger goes through rows into another one."""

from __future__ import annotations

from typing import Any

import pytest

from quire.errors import LedgerError
from quire.ledger.base import Ledger
from quire.ledger.columns import key_of as key_of_row
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import (
    Rate,
    Send,
)
from quire.model.codec import dump
from quire.model.event import Event, Line
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.row import replace
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    STEP,
    applied,
    claimed,
    commit,
    intend,
    log,
    map_over,
    new_facts,
    new_start,
    order,
    refused,
    run,
    slot,
    start,
    the,
    wait_for,
)
from quire.testing.conformance.suite import Suite

#: All that a ledger keeps.
TABLES: tuple[type[Any], ...] = (Record, Receipt, Signal, Fanin, Worker, Control, Bucket, Setting, Event)


class Copies(Suite):
    """A ledger goes through rows into another one (25)."""

    async def copied(self, source: Ledger, target: Ledger) -> None:
        epoch = (await source.standing()).epoch
        await order(target, "seal")
        for type_ in TABLES:
            after: tuple[Any, ...] = ()
            while page := await source.dump(type_, after=after, limit=2):
                await target.restore(type_, page, epoch)
                after = key_of_row(page[-1])
        await order(target, "unseal")

    async def all_of(self, ledger: Ledger) -> list[Any]:
        tables = [await ledger.dump(type_) for type_ in TABLES]
        return [*tables, (await ledger.standing()).epoch]

    async def fill(self, ledger: Ledger) -> None:
        row = await run(ledger, data=dump("é" * 200_000), priority=3)
        await intend(ledger, row)
        await map_over(ledger, await run(ledger, "parent"), 3, limit=1)
        await wait_for(ledger, await run(ledger, "waits"))
        await ledger.send([Send("s1", "r", "paid", "1")])
        await claimed(ledger, slot(STEP, "child", rate=Rate("api", 2, 60)))
        await ledger.keep(Setting("cursor", "{}", 0))
        await order(ledger, "halt", "other")

    @staticmethod
    def skip_unless_copied(ledger: Ledger) -> None:
        if type(ledger).dump is Ledger.dump:
            pytest.skip("this store gives no rows to copy")

    @pytest.mark.parametrize("way", ["out", "in"])
    async def test_a_copy_has_every_row_and_goes_on_where_the_original_stood(
        self, ledger: Ledger, clock: ToldClock, way: str
    ) -> None:
        self.skip_unless_copied(ledger)
        memory = MemoryLedger(clock)
        source, target = (ledger, memory) if way == "out" else (memory, ledger)
        await self.fill(source)

        await self.copied(source, target)

        assert await self.all_of(target) == await self.all_of(source)
        row = await the(target)
        applied(await commit(target, new_facts(row, lines=(Line("noted"),))))
        assert (await log(target))[-1] == "noted"
        assert (await target.events())[-1].kind == "noted"
        assert refused(await commit(target, new_start("new", clock.now(), workflow="other"))) == "halted"

    async def test_a_copy_that_is_made_again_has_every_row_once(self, ledger: Ledger, clock: ToldClock) -> None:
        """A copy that was cut short is made again over what it left behind."""
        self.skip_unless_copied(ledger)
        source = MemoryLedger(clock)
        await self.fill(source)
        await self.copied(source, ledger)
        await commit(source, new_facts(await the(source), lines=(Line("noted"),)))

        await self.copied(source, ledger)

        assert await self.all_of(ledger) == await self.all_of(source)
        assert await log(ledger) == await log(source)

    async def test_rows_are_not_copied_into_an_open_ledger(self, ledger: Ledger) -> None:
        self.skip_unless_copied(ledger)
        row = await start(ledger)

        with pytest.raises(LedgerError, match="is open"):
            await ledger.restore(Record, [replace(row, record_id="other")], 1)

        assert await ledger.load(["other"]) == []
