"""Ledgers that fail on purpose: they lose a write or its answer, or hold a verb until the test lets it go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar

from quire.errors import LedgerUnavailable
from quire.ledger.base import Ledger, Recovered, Row, Tidied
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

T = TypeVar("T")

#: The write does not reach the store; or it does, and only its answer is lost.
Fault = Literal["write-lost", "answer-lost"]

#: What happens to the nth write, counted over all verbs from 1; None: nothing.
Lose = Callable[[str, int], Fault | None]

#: The verbs that write. What only reads is never lost, and not counted as a write.
WRITES = frozenset(
    {"commit", "claim", "send", "beat", "farewell", "recover", "order", "keep", "forget", "tidy", "restore"}
)


def lose_nth(nth: int, fault: Fault, verbs: frozenset[str] = WRITES) -> Lose:
    """Lose the nth write, if it is one of these verbs."""
    return lambda verb, number: fault if number == nth and verb in verbs else None


class PassingLedger(Ledger):
    """Passes every verb on to another ledger through one place, where a subclass may do something to it."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.url = ledger.url
        self.traits = ledger.traits

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        return await call()

    async def open(self) -> None:
        await self._pass("open", self.ledger.open)

    async def close(self) -> None:
        await self._pass("close", self.ledger.close)

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        return await self._pass("commit", lambda: self.ledger.commit(changes))

    async def claim(self, claim: Claim) -> Claimed:
        return await self._pass("claim", lambda: self.ledger.claim(claim))

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        return await self._pass("send", lambda: self.ledger.send(sends))

    async def beat(self, worker: Worker, holding: Holding) -> Beaten:
        return await self._pass("beat", lambda: self.ledger.beat(worker, holding))

    async def farewell(self, worker_id: str) -> None:
        await self._pass("farewell", lambda: self.ledger.farewell(worker_id))

    async def recover(self, limit: int = 500, dead: Sequence[str] = ()) -> Recovered:
        return await self._pass("recover", lambda: self.ledger.recover(limit, dead))

    async def order(self, order: Order) -> Standing:
        return await self._pass("order", lambda: self.ledger.order(order))

    async def standing(self) -> Standing:
        return await self._pass("standing", self.ledger.standing)

    async def load(self, record_ids: Sequence[str]) -> list[Record]:
        return await self._pass("load", lambda: self.ledger.load(record_ids))

    async def find(self, query: Query) -> list[Record]:
        return await self._pass("find", lambda: self.ledger.find(query))

    async def counts(self) -> list[Count]:
        return await self._pass("counts", self.ledger.counts)

    async def events(self, *, record_id: str = "", after: int = 0, limit: int = 1000) -> list[Event]:
        return await self._pass("events", lambda: self.ledger.events(record_id=record_id, after=after, limit=limit))

    async def receipts(self, *, record_ids: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Receipt]:
        return await self._pass("receipts", lambda: self.ledger.receipts(record_ids=record_ids, keys=keys))

    async def signals(self, record_id: str) -> list[Signal]:
        return await self._pass("signals", lambda: self.ledger.signals(record_id))

    async def fanins(self, parent_id: str) -> list[Fanin]:
        return await self._pass("fanins", lambda: self.ledger.fanins(parent_id))

    async def workers(self) -> list[Worker]:
        return await self._pass("workers", self.ledger.workers)

    async def setting(self, name: str) -> Setting | None:
        return await self._pass("setting", lambda: self.ledger.setting(name))

    async def settings(self, prefix: str) -> list[Setting]:
        return await self._pass("settings", lambda: self.ledger.settings(prefix))

    async def keep(self, setting: Setting) -> bool:
        return await self._pass("keep", lambda: self.ledger.keep(setting))

    async def forget(self, events: Sequence[Event]) -> int:
        return await self._pass("forget", lambda: self.ledger.forget(events))

    async def tidy(self, before: float) -> Tidied:
        return await self._pass("tidy", lambda: self.ledger.tidy(before))

    async def dump(self, type_: type[Row], *, after: tuple[Any, ...] = (), limit: int = 1000) -> list[Row]:
        return await self._pass("dump", lambda: self.ledger.dump(type_, after=after, limit=limit))

    async def restore(self, type_: type[Row], given: Sequence[Row], epoch: int) -> None:
        await self._pass("restore", lambda: self.ledger.restore(type_, given, epoch))

    async def wait_for_work(self, timeout: float) -> None:
        await self._pass("wait_for_work", lambda: self.ledger.wait_for_work(timeout))

    async def now(self) -> float:
        return await self._pass("now", self.ledger.now)


class LossyLedger(PassingLedger):
    """Loses the writes that ``lose`` picks, and counts what was asked of it.

    The caller sees ``LedgerUnavailable`` either way and cannot know whether the write landed.
    """

    def __init__(self, ledger: Ledger, lose: Lose) -> None:
        super().__init__(ledger)
        self.lose = lose
        #: How often each verb was called.
        self.calls: Counter[str] = Counter()
        #: How many writes were tried, lost ones too.
        self.writes = 0
        #: What was lost: the verb, and how.
        self.lost: list[tuple[str, Fault]] = []

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls[verb] += 1
        if verb not in WRITES:
            return await call()
        self.writes += 1
        fault = self.lose(verb, self.writes)
        if fault is None:
            return await call()
        if fault == "answer-lost":
            await call()
        self.lost.append((verb, fault))
        raise LedgerUnavailable(f"{verb} number {self.writes} got no answer (on purpose: {fault})")


class Barrier:
    """One held call: the test awaits its arrival, looks around, and lets it go."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._released = asyncio.Event()

    async def arrived(self) -> None:
        await self._arrived.wait()

    def release(self) -> None:
        self._released.set()

    async def stand(self) -> None:
        self._arrived.set()
        await self._released.wait()


class HoldingLedger(PassingLedger):
    """Holds the next call of a verb at a barrier: before the store sees it, or with its answer in hand."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._before: dict[str, list[Barrier]] = {}
        self._after: dict[str, list[Barrier]] = {}

    def hold(self, verb: str) -> Barrier:
        """Hold the next call of this verb before it is passed on."""
        return self._add(self._before, verb)

    def hold_answer(self, verb: str) -> Barrier:
        """Let the next call of this verb land, and hold its answer."""
        return self._add(self._after, verb)

    @staticmethod
    def _add(barriers: dict[str, list[Barrier]], verb: str) -> Barrier:
        barrier = Barrier()
        barriers.setdefault(verb, []).append(barrier)
        return barrier

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        before, after = (
            barriers.pop(0) if (barriers := held.get(verb)) else None for held in (self._before, self._after)
        )
        if before is not None:
            await before.stand()
        answer = await call()
        if after is not None:
            await after.stand()
        return answer
