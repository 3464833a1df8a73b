"""The projector keeps up with the ledger: its work is counted, because a clock on a busy machine proves nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from quire.clock import SYSTEM
from quire.folder.disk import Disk
from quire.folder.local import LocalFolder
from quire.folder.projector import Projector
from quire.ledger.base import Ledger
from quire.testing import ToldClock
from quire.testing.faults import PassingLedger
from tests.folder.flows import files, opened, steps

T = TypeVar("T")

RECORDS = 300


class Asked(PassingLedger):
    """Counts what is asked of a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.verbs: Counter[str] = Counter()

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        self.verbs[verb] += 1
        return await call()


class Synced(Disk):
    """Counts how often the disk is waited for."""

    def __init__(self) -> None:
        self.syncs = 0

    def temporary(self, path: str, content: bytes, *, durable: bool = True) -> None:
        self.syncs += durable
        super().temporary(path, content, durable=durable)

    def sync(self, directory: str) -> bool:
        self.syncs += 1
        return super().sync(directory)

    def sync_file(self, path: str) -> None:
        self.syncs += 1
        super().sync_file(path)

    def sync_directory(self, path: str) -> None:
        self.syncs += 1
        super().sync_directory(path)


async def test_a_thousand_lines_cost_a_few_questions_and_a_few_waits_for_the_disk(tmp_path: Path) -> None:
    disk = Synced()
    async with opened(tmp_path, SYSTEM, LocalFolder(tmp_path / "folder", disk=disk)) as (client, folder):
        await client.start_many(steps, [{"n": n} for n in range(RECORDS)], ids=[f"r_{n}" for n in range(RECORDS)])
        await client.work()
        asked = Asked(client.ledger)
        disk.syncs = 0

        count = await Projector(asked, folder, SYSTEM).catch_up()

    batches = count / 1000
    assert count >= 8 * RECORDS
    assert len(files(tmp_path)) >= 4 * RECORDS  # its state, its run's log, two receipts
    assert asked.verbs["commit"] == 0
    assert asked.verbs.total() <= 12 * batches + 20, asked.verbs
    assert disk.syncs <= 12 * batches + 40


async def test_it_says_how_far_it_is_behind_and_when_it_has_caught_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await client.start_many(steps, [{} for _ in range(30)])
        clock.advance("1m")
        projector = Projector(client.ledger, folder, clock, batch=5)

        running = asyncio.ensure_future(projector.run())
        while await projector.lag():
            pass
        projector.stop()
        await running

    told = [record.getMessage() for record in caplog.records if record.name == "quire.projector"]
    assert told[0] == "the folder is behind the ledger: 25 lines, the oldest 60 s old"
    assert told[-1] == "the folder has caught up"
    assert len(told) == 2


async def test_while_it_is_behind_it_reads_more_at_a_time(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        await client.start_many(steps, [{} for _ in range(75)])
        asked = Asked(client.ledger)
        projector = Projector(asked, folder, clock, batch=5)

        running = asyncio.ensure_future(projector.run())
        while await projector.lag():
            pass
        projector.stop()
        await running

    assert asked.verbs["load"] == 4  # 5, 10, 20, 40 lines
