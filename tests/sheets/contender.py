"""A process that fights others for records in a book: what ``test_survive`` starts eight times.

It claims one record after the other and settles it, until the book says that the fight is over. Its back-off is none:
the barrier of the emulator sets the pace, and pauses would only make the fight slower, not harder.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial

from quire.clock import SYSTEM
from quire.ledger.sheets.journal import Log
from quire.ledger.sheets.ledger import SheetsLedger
from quire.model.change import Applied
from quire.rules.outcome import Done
from quire.testing.conformance import a_worker, new_settle, slot
from tests.sheets.asking import take

#: The setting that ends the fight.
OVER = "over"


async def _no_pause(self: Log, n: int) -> None:
    await SYSTEM.sleep(0)


async def _contend(url: str, worker: str, cap: int | None) -> tuple[int, list[str]]:
    ledger = SheetsLedger(url)
    won: list[str] = []
    await ledger.open()
    try:
        from quire.model.change import Holding

        await ledger.beat(a_worker(worker, lease=600.0), Holding({}, ()))
        free = slot() if cap is None else slot(cap=cap)
        while True:
            claimed = await take(ledger, free, worker=worker, limit=1)
            for row in claimed.records:
                won.append(row.record_id)
                [verdict] = await ledger.commit([new_settle(row, Done("1", "{}"), await ledger.now())])
                assert isinstance(verdict, Applied), verdict
            if OVER in ledger.replica.tables.all_settings:
                return os.getpid(), won
            if not claimed.records:
                await ledger.wait_for_work(0.02)
    finally:
        await ledger.close()


def contend(url: str, worker: str, cap: int | None) -> tuple[int, list[str]]:
    """The records that this process won, and its id."""
    Log.pause = _no_pause  # type: ignore[method-assign]
    return asyncio.run(partial(_contend, url, worker, cap)())
