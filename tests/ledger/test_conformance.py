from __future__ import annotations

import asyncio

import pytest

from quire.ledger.base import Ledger
from quire.testing import LedgerConformance
from quire.testing.conformance import start, the
from tests.ledger.conftest import MakeLedger


class TestLedgers(LedgerConformance):
    """The whole contract, on every store of the ``ledger`` fixture."""

    @pytest.fixture
    def twin(self, ledger: Ledger, make_ledger: MakeLedger) -> Ledger:
        if not ledger.traits.shared:
            pytest.skip("this store lives within one process")
        return make_ledger()


async def test_many_open_a_new_store_at_the_same_moment(make_on_new_store: MakeLedger) -> None:
    ledgers = [make_on_new_store() for _ in range(6)]

    try:
        await asyncio.gather(*(ledger.open() for ledger in ledgers))

        for n, ledger in enumerate(ledgers):
            await start(ledger, f"r{n}")
        assert len(await ledgers[0].load([f"r{n}" for n in range(6)])) == 6
    finally:
        await asyncio.gather(*(ledger.close() for ledger in ledgers))


async def test_what_was_acknowledged_is_there_after_a_reopening(make_ledger: MakeLedger) -> None:
    ledger = make_ledger()
    if not ledger.traits.durable:
        pytest.skip("this store is gone with its process")
    await ledger.open()
    row = await start(ledger, data='"kept"')
    await ledger.close()

    ledger = make_ledger()
    await ledger.open()
    try:
        assert await the(ledger) == row
    finally:
        await ledger.close()
