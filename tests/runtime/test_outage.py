"""A ledger that is away: receipts of acts that happened are kept until they land, by this process or the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quire import Act, Run, Status, effect, workflow
from quire.client.client import Client
from quire.errors import LedgerUnavailable
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Change, Verdict
from quire.worker.spool import is_fact


class Away(SqliteLedger):
    """A ledger that takes no receipt of an act until it is back."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.away = True
        self._refusals = 0
        #: Set when it has refused for longer than the patience of a commit.
        self.refused = asyncio.Event()

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        if self.away and any(map(is_fact, changes)):
            self._refusals += 1
            if self._refusals == 4:
                self.refused.set()
            raise LedgerUnavailable("no server answers")
        return await super().commit(changes)


@effect
async def pay(act: Act[Any]) -> str:
    return "paid"


@workflow
async def order(run: Run[dict[str, Any]]) -> str:
    return await run.once(pay)


async def test_a_living_process_keeps_its_receipt_for_longer_than_any_patience(tmp_path: Path) -> None:
    ledger = Away(tmp_path / "ledger.db")
    async with Client(ledger, workflows=[order], state=str(tmp_path / "state")) as client:
        await client.start(order, id="a")
        worker = client.worker()
        worker.committer.patience = 0.1
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await ledger.refused.wait()
        [spooled] = spools(tmp_path)
        assert "paid" in spooled.read_text()
        ledger.away = False
        await working
        record = await client.get("a")
        assert record.status is Status.DONE and record.result == '"paid"'
        assert not spools(tmp_path)


def spools(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state").rglob("*.receipts"))


async def test_a_later_process_delivers_what_a_dead_one_left(tmp_path: Path) -> None:
    ledger = Away(tmp_path / "ledger.db")
    state = str(tmp_path / "state")
    async with Client(ledger, workflows=[order], state=state) as client:
        await client.start(order, id="a")
        worker = client.worker()
        working = asyncio.ensure_future(worker.run(until_idle=True))
        await ledger.refused.wait()
        worker.end_now()  # the process is ended, and waits for nothing
        await asyncio.wait({working})
    assert spools(tmp_path)
    async with Client(SqliteLedger(tmp_path / "ledger.db"), workflows=[order], state=state) as client:
        await client.work()
        [receipt] = await client.ledger.receipts(record_ids=["a"])
        assert receipt.stage == "done" and receipt.value == '"paid"'
        assert (await client.get("a")).status is Status.DONE
    assert not spools(tmp_path)
