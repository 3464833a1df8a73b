"""The embedded ledger: one SQLite file, one machine, nothing to set up.

WAL with ``synchronous=FULL``: an acknowledged commit survives a power cut. Writers take ``BEGIN IMMEDIATE`` and wait
for each other, so nobody sees "database is locked". A whole transaction is one hop to the writing thread. Reads wait
for nobody: a short read is answered in the event loop itself.

The ledger is one object with parts: ``file`` has the threads and connections, ``writes`` is what every decision stands
on, and the verbs here say which part does what.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from quire.clock import SYSTEM, Clock
from quire.ledger.base import Ledger, Recovered, Row, Tidied, Traits
from quire.ledger.sqlite.claims import Claims
from quire.ledger.sqlite.file import LedgerFile
from quire.ledger.sqlite.leases import Leases
from quire.ledger.sqlite.reads import Reads
from quire.ledger.sqlite.upkeep import Upkeep
from quire.ledger.sqlite.view import View
from quire.ledger.sqlite.writes import Writes
from quire.model.change import (
    Beaten,
    Change,
    Claim,
    Claimed,
    Count,
    Holding,
    Order,
    Query,
    Send,
    Standing,
    Verdict,
)
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.side import Fanin, Setting, Signal, Worker
from quire.rules import verbs
from quire.rules.draft import Draft

#: How often an idle worker asks whether another process has written.
GLANCE_SECONDS = 0.1


class SqliteLedger(Ledger):
    """A ledger in one file. ``url`` is ``sqlite:///path`` or a path."""

    traits = Traits(durable=True, shared=True, goes_back=True)

    def __init__(self, path: str | os.PathLike[str], clock: Clock = SYSTEM) -> None:
        self.file = LedgerFile(path, clock)
        self.path = self.file.path
        self.url = f"sqlite:///{self.path}"
        self.clock = clock
        self.writes = Writes(self.file, self.traits.inline_bytes)
        self.claims = Claims(self.file, self.writes)
        self.leases = Leases(self.file, self.writes)
        self.reads = Reads(self.file)
        self.upkeep = Upkeep(self.file, self.traits.inline_bytes)

    @property
    def patience(self) -> float:
        return self.file.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self.file.patience = seconds

    async def open(self) -> None:
        await self.file.open()

    async def close(self) -> None:
        self.writes.work.set()
        self.reads.close()
        await self.file.close()

    async def now(self) -> float:
        return self.clock.now()

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        def decide(draft: Draft, view: View) -> list[Verdict]:
            ids = {change.record_id: None for change in changes}
            for change in changes:
                ids |= dict.fromkeys(child.record_id for child in change.children)
            view.prefetch(ids)
            return verbs.commit(draft, changes)

        return await self.writes.decided(decide)

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        return await self.writes.decided(lambda draft, _: verbs.send(draft, sends))

    async def claim(self, claim: Claim) -> Claimed:
        return await self.claims.claim(claim)

    # -- workers and orders ------------------------------------------------------------------------------------

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        return await self.leases.beat(worker, holding)

    async def farewell(self, worker_id: str) -> None:
        await self.writes.decided(lambda draft, view: verbs.farewell(draft, view, worker_id))

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        return await self.leases.recover(limit, dead)

    async def order(self, order: Order) -> Standing:
        if order.word in ("seal", "unseal"):
            await self.upkeep.seal(order)
        else:
            await self.writes.decided(lambda draft, view: verbs.order(draft, order, view.orders()))
        return await self.reads.standing()

    async def wait_for_work(self, timeout: float) -> None:
        """Return at once when this process made something due; writes of others are noticed in ``GLANCE_SECONDS``."""
        deadline = self.clock.now() + timeout
        while not self.writes.work.is_set() and (left := deadline - self.clock.now()) > 0:
            waiter = asyncio.ensure_future(self.writes.work.wait())
            timer = asyncio.ensure_future(self.clock.sleep(min(left, GLANCE_SECONDS)))
            try:
                await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()
                timer.cancel()
            if not self.writes.work.is_set() and await self.writes.others_wrote():
                return

    # -- reads -------------------------------------------------------------------------------------------------

    async def standing(self) -> Standing:
        return await self.reads.standing()

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        return await self.reads.load(record_ids)

    async def find(self, query: Query) -> list[Record]:
        return await self.reads.find(query)

    async def counts(self) -> list[Count]:
        return await self.reads.counts()

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.reads.events(record_id=record_id, after=after, limit=limit)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        return await self.reads.logs(record_ids)

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        return await self.reads.receipts(record_ids=record_ids, keys=keys)

    async def signals(self, record_id: str) -> list[Signal]:
        return await self.reads.signals(record_id)

    async def fanins(self, parent_id: str) -> list[Fanin]:
        return await self.reads.fanins(parent_id)

    async def workers(self) -> list[Worker]:
        return await self.reads.workers()

    async def setting(self, name: str) -> Setting | None:
        return await self.reads.setting(name)

    async def settings(self, prefix: str) -> list[Setting]:
        return await self.reads.settings(prefix)

    # -- upkeep ------------------------------------------------------------------------------------------------

    async def keep(self, setting: Setting) -> bool:
        return await self.upkeep.keep(setting)

    async def forget(self, events: Sequence[Event]) -> int:
        return await self.upkeep.forget(events)

    async def strip(self, record_ids: Sequence[str]) -> int:
        return await self.upkeep.strip(record_ids)

    async def tidy(self, before: float) -> Tidied:
        return await self.upkeep.tidy(before)

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        return await self.reads.dump(type_, after=after, limit=limit)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        await self.upkeep.restore(type_, given, epoch)
