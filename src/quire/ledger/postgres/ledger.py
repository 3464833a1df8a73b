"""The ledger in PostgreSQL: many machines, one truth.

The ledger is one object with parts, and none of them inherits from another. Read ``locked`` first: it locks, reads,
decides and writes, and all else could be left out. ``fast`` has the short ways around it, each of which may answer "not
this one"; the verbs here say in order what is tried. ``server`` has the connections, ``known`` is what this process
remembers of the ledger.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from quire.clock import Clock
from quire.errors import ValueRefused
from quire.ledger.base import Ledger, Recovered, Row, Tidied, Traits
from quire.ledger.postgres.beats import Beats
from quire.ledger.postgres.claims import Claims
from quire.ledger.postgres.fast.ways import Fast
from quire.ledger.postgres.known import Known
from quire.ledger.postgres.locked import Locked
from quire.ledger.postgres.log import Log
from quire.ledger.postgres.notifications import Notifications
from quire.ledger.postgres.reads import Reads
from quire.ledger.postgres.recovery import Recovery
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.upkeep import Upkeep
from quire.model.change import (
    Beaten,
    Change,
    Claim,
    Claimed,
    Count,
    Holding,
    Order,
    Query,
    Refused,
    Send,
    Standing,
    Verdict,
)
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.side import Fanin, Setting, Signal, Worker

T = TypeVar("T")


class PostgresLedger(Ledger):
    """A ledger in a PostgreSQL database. ``url`` is ``postgresql://…``; ``?schema=NAME`` chooses its schema there."""

    #: The longer the lease, the fewer the beats of an idle worker; a dead one on the same machine is known at once.
    traits = Traits(durable=True, shared=True, lease_seconds=60.0, side_by_side=True, goes_back=True)

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self.url = url
        inline_bytes = self.traits.inline_bytes
        self.server = Server(url, clock)
        self.known = Known(clock)
        self.notifications = Notifications(self.server)
        self.locked = Locked(self.server, self.known, self.notifications, inline_bytes)
        self.claims = Claims(self.server, self.known, self.locked)
        self.fast = Fast(self.server, self.known, self.locked, self.claims, self.notifications, inline_bytes)
        self.beats = Beats(self.server, self.known, self.locked, self.claims)
        self.recovery = Recovery(self.server, self.locked)
        self.reads = Reads(self.server)
        self.log = Log(self.server, self.reads)
        self.upkeep = Upkeep(self.server, self.locked, inline_bytes)

    @property
    def patience(self) -> float:
        return self.server.patience

    @patience.setter
    def patience(self, seconds: float) -> None:
        self.server.patience = seconds

    async def open(self) -> None:
        await self.server.open()

    async def close(self) -> None:
        await self.notifications.close()
        await self.server.close()

    # -- changes -----------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        """Optimistically, if this process knows all that the decision needs; otherwise under locks."""
        if not changes:
            return []
        try:
            verdicts = await self.fast.commit(changes)
            return verdicts if verdicts is not None else await self.locked.commit(changes)
        except (ValueRefused, ValueError) as error:
            if any(change.whole for change in changes):
                return [Refused("value", f"the ledger cannot keep a value of one of them: {error}")] * len(changes)
            return await _halved(changes, self.commit, error)

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        if not sends:
            return []
        try:
            return await self.locked.send(sends)
        except (ValueRefused, ValueError) as error:
            return await _halved(sends, self.send, error)

    async def claim(self, claim: Claim) -> Claimed:
        """By the server, if nothing but its place in the queue decides about a record; otherwise under locks."""
        self.notifications.clear()
        if (nothing := await self.claims.nothing_due(claim)) is not None:
            return nothing
        claimed = await self.fast.claim(claim)
        if claimed is None:
            claimed = await self.claims.claim(claim)
        self.claims.more_is_due = bool(claimed.records)
        return claimed

    # -- workers and orders ------------------------------------------------------------------------------------

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        return await self.beats.beat(worker, holding)

    async def farewell(self, worker_id: str) -> None:
        self.known.workers.pop(worker_id, None)
        await self.locked.farewell(worker_id)

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        return await self.recovery.recover(limit, dead)

    async def order(self, order: Order) -> Standing:
        await self.locked.order(order)
        return await self.reads.standing()

    async def wait_for_work(self, timeout: float) -> None:
        await self.notifications.wait(timeout)

    # -- reads -------------------------------------------------------------------------------------------------

    async def now(self) -> float:
        return await self.reads.now()

    async def standing(self) -> Standing:
        return await self.reads.standing()

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        return await self.reads.load(record_ids)

    async def find(self, query: Query) -> list[Record]:
        return await self.reads.find(query)

    async def counts(self) -> list[Count]:
        return await self.reads.counts()

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.log.events(record_id=record_id, after=after, limit=limit)

    async def logs(self, record_ids: Sequence[str]) -> dict[str, list[Event]]:
        return await self.log.logs(record_ids)

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

    async def settings_warnings(self) -> list[str]:
        return await self.reads.warnings()

    @property
    def interruptions(self) -> int:  # type: ignore[override]
        return self.server.interruptions

    async def examine(self) -> None:
        await self.server.examine()

    async def server_identity(self) -> str:
        return await self.reads.identity()

    # -- upkeep ------------------------------------------------------------------------------------------------

    async def keep(self, setting: Setting) -> bool:
        return await self.upkeep.keep(setting)

    async def forget(self, events: Sequence[Event]) -> int:
        return await self.log.forget(events)

    async def strip(self, record_ids: Sequence[str]) -> int:
        return await self.upkeep.strip(record_ids)

    async def tidy(self, before: float) -> Tidied:
        return await self.upkeep.tidy(before)

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        return await self.reads.dump(type_, after=after, limit=limit)

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        await self.upkeep.restore(type_, given, epoch)


async def _halved(
    batch: Sequence[T], verb: Callable[[Sequence[T]], Awaitable[list[Verdict]]], error: Exception
) -> list[Verdict]:
    """Send the halves of a batch that a value spoils, until the change that holds the value is alone (protocol 14)."""
    if len(batch) == 1:
        return [Refused("value", f"the ledger cannot keep a value of it: {error}")]
    middle = len(batch) // 2
    return await verb(batch[:middle]) + await verb(batch[middle:])
