"""The ledger in memory: for tests, and the reference. Gone with its process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError, WorkerClosed
from quire.ledger.base import Ledger, Recovered, Row, Tidied, Traits
from quire.ledger.columns import key_of
from quire.ledger.memory.tables import Tables
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
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Fanin, Setting, Signal, Worker
from quire.rules import conditions, verbs
from quire.rules.conditions import as_seen
from quire.rules.draft import Draft


class MemoryLedger(Ledger):
    """One process, no durability; nothing awaits between reading and writing, so every verb is atomic."""

    traits = Traits(durable=False, shared=False)

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self.url = "memory:"
        self.clock = clock
        self.tables = Tables()
        self._work = asyncio.Event()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        self._work.set()

    async def now(self) -> float:
        return self.clock.now()

    def _draft(self) -> Draft:
        return Draft(self.tables, self.clock.now())

    def _apply(self, draft: Draft) -> None:
        self.tables.apply(draft)
        if draft.woke:
            self._work.set()

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        draft = self._draft()
        verdicts = verbs.commit(draft, changes)
        self._apply(draft)
        return verdicts

    async def claim(self, claim: Claim) -> Claimed:
        self._work.clear()
        draft = self._draft()
        claimed = verbs.claim(draft, self.tables, claim)
        self._apply(draft)
        return claimed

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        draft = self._draft()
        verdicts = verbs.send(draft, sends)
        self._apply(draft)
        return verdicts

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        draft = self._draft()
        beaten = verbs.beat(draft, self.tables, worker, holding)
        if beaten is None:
            raise WorkerClosed(f"worker {worker.worker_id} was closed: its lease ran out")
        self._apply(draft)
        return beaten

    async def farewell(self, worker_id: str) -> None:
        draft = self._draft()
        verbs.farewell(draft, self.tables, worker_id)
        self._apply(draft)

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        draft = self._draft()
        recovered = verbs.recover(draft, self.tables, limit, dead)
        self._apply(draft)
        return recovered

    async def order(self, order: Order) -> Standing:
        if order.word in ("seal", "unseal"):
            self.tables.sealed = order.seal(self.tables.sealed)
        else:
            draft = self._draft()
            verbs.order(draft, order, self.tables.orders())
            self._apply(draft)
        return await self.standing()

    async def standing(self) -> Standing:
        now = self.clock.now()
        controls = tuple(self.tables.all_controls.values())
        return Standing(now, self.tables.epoch, controls, tuple(self.tables.open_intents(now)), self.tables.sealed)

    def _seen(self, record: Record) -> Record:
        return as_seen(record, self.tables.all_controls.values())

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        rows = (self.tables.record(record_id) for record_id in record_ids)
        return [self._seen(row) for row in rows if row is not None]

    async def find(self, query: Query) -> list[Record]:
        rows = self.tables.children_of(query.parent_id) if query.parent_id else self.tables.all_records.values()
        return self.tables.find(query, map(self._seen, rows))

    async def counts(self) -> list[Count]:
        return self.tables.counts(map(self._seen, self.tables.all_records.values()))

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        rows = self.tables.events_of(record_id) if record_id else self.tables.all_events
        return [event for event in rows if event.seq > after][:limit]

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        found = [receipt for record_id in record_ids for receipt in self.tables.receipts_of(record_id)]
        found += [receipt for key in keys if (receipt := self.tables.receipt(key)) is not None]
        return sorted(found, key=lambda receipt: (receipt.record_id, receipt.seq))

    async def signals(self, record_id: str) -> list[Signal]:
        return self.tables.signals_of(record_id)

    async def fanins(self, parent_id: str) -> list[Fanin]:
        return self.tables.fanins(parent_id)

    async def workers(self) -> list[Worker]:
        return list(self.tables.all_workers.values())

    async def setting(self, name: str) -> Setting | None:
        return self.tables.all_settings.get(name)

    async def settings(self, prefix: str) -> list[Setting]:
        return [row for name, row in sorted(self.tables.all_settings.items()) if name.startswith(prefix)]

    async def keep(self, setting: Setting) -> bool:
        known = self.tables.all_settings.get(setting.name)
        if (known.version if known is not None else 0) != setting.version:
            return False
        self.tables.all_settings[setting.name] = replace(setting, version=setting.version + 1)
        return True

    async def forget(self, events: Sequence[Event]) -> int:
        return self.tables.forget(events)

    async def tidy(self, before: float) -> Tidied:
        tables = self.tables
        intents = [receipt for receipt in tables.all_receipts.values() if receipt.open]
        running = [row for row in tables.all_records.values() if row.status is Status.RUNNING]
        known = tables.all_workers.values()
        old = [worker.worker_id for worker in known if conditions.forgotten(worker, before, intents, running)]
        for worker_id in old:
            del self.tables.all_workers[worker_id]
        return Tidied(workers=len(old))

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        return [row for row in self.tables.rows_of(type_) if not after or key_of(row) > after][:limit]

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        if not self.tables.sealed:
            raise LedgerError("the ledger memory: is open; rows are copied into a closed one only")
        self.tables.put_rows(type_, given, epoch)

    async def wait_for_work(self, timeout: float) -> None:
        waiter = asyncio.ensure_future(self._work.wait())
        timer = asyncio.ensure_future(self.clock.sleep(timeout))
        try:
            await asyncio.wait({waiter, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
            timer.cancel()
