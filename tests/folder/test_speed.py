"""The projector keeps up with 2,000 transitions a second, measured in its own processor time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from quire.clock import SYSTEM
from quire.runtime.projector import Projector
from tests.folder.flows import files, opened, steps

RECORDS = 1000


@pytest.mark.slow
async def test_a_line_costs_less_than_half_a_millisecond(tmp_path: Path) -> None:
    async with opened(tmp_path, SYSTEM) as (client, folder):
        await client.start_many(steps, [{"n": n} for n in range(RECORDS)], ids=[f"r_{n}" for n in range(RECORDS)])
        await client.work()
        projector = Projector(client.ledger, folder, SYSTEM)
        began = time.process_time()

        count = await projector.catch_up()

        spent = time.process_time() - began
    assert count >= 8 * RECORDS
    assert len(files(tmp_path)) >= 4 * RECORDS  # its state, its run's log, two receipts
    assert spent / count < 1 / 2000, f"{count} lines took {spent:.2f} s of processor time"
