"""Group commit: the changes of all running steps, together.

While one commit is under way the next batch fills. There is no artificial delay: an idle system has the latency of a
single commit, a busy one shares it. Where the store takes commits side by side, a batch that has filled does not wait
for the one under way; of one record no two changes are under way at a time. A batch whose answer is lost is sent again,
the same bytes (protocol 13, 14). A record is held until its verdict is there, and while more than ``QUEUE_BYTES`` wait
its worker claims nothing more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from quire.clock import Clock
from quire.errors import LedgerError, LedgerUnavailable, QuireError
from quire.ledger.base import Ledger
from quire.model.change import Change, Refused, Verdict
from quire.run.host import OnVerdict
from quire.worker.spool import Spool, is_fact

log = logging.getLogger("quire.worker")


#: A batch ends here, too.
BATCH_BYTES = 1_000_000
#: With so many changes waiting a second commit is worth what it costs the store.
FILLED = 50
#: With more than this waiting the queue is full: a store that is slow shall not fill this process's memory.
QUEUE_BYTES = 32_000_000


class Committer:
    """Takes changes, answers verdicts. Closing it lets what it has land first."""

    def __init__(self, ledger: Ledger, clock: Clock, *, patience: float = 60.0, state: str = "") -> None:
        self.ledger = ledger
        self.clock = clock
        #: Hears what the ledger acknowledged.
        self.acknowledged: Callable[[Sequence[Verdict]], None] | None = None
        self.spool = Spool(ledger, state)
        #: This process was asked to end at once: receipts that the ledger does not take stay in the spool.
        self.ends_now = False
        #: How long a batch without an answer is sent again.
        self.patience = patience
        self._queue: deque[tuple[Change, OnVerdict, int]] = deque()
        self._bytes = 0
        self._most = 2 if ledger.traits.side_by_side else 1
        self._drains: set[asyncio.Task[None]] = set()
        #: The records of the batches that are under way.
        self._under_way: set[str] = set()
        #: About so many changes wait for nothing but a commit: none of their records was under way when they came.
        self._ready = 0

    @property
    def busy(self) -> bool:
        """Something is on its way to the ledger."""
        return bool(self._drains)

    @property
    def full(self) -> bool:
        """More waits than should: nothing new is to be begun."""
        return self._bytes > QUEUE_BYTES or bool(self.spool)

    def submit(self, change: Change) -> asyncio.Future[Verdict]:
        future: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self.put(change, partial(_tell, future))
        return future

    def put(self, change: Change, on_verdict: OnVerdict) -> None:
        """Take a change whose caller does not wait: ``on_verdict`` is called with the verdict."""
        size = _size(change)
        self._queue.append((change, on_verdict, size))
        self._bytes += size
        if change.record_id not in self._under_way:
            self._ready += 1
        if not self._drains or (self._ready >= FILLED and len(self._drains) < self._most):
            drain = asyncio.ensure_future(self._drain())
            # Each caller of the batch has the error: asyncio need not report it once more.
            drain.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._drains.add(drain)

    async def _drain(self) -> None:
        try:
            # What is left over by one while the other is under way is for that one.
            while self._queue if len(self._drains) == 1 else self._ready >= FILLED:
                await self._land(*self._batch())
        finally:
            self._drains -= {asyncio.current_task()}

    async def _land(self, changes: list[Change], callbacks: list[OnVerdict]) -> None:
        records = {change.record_id for change in changes}
        self._under_way |= records
        verdicts: Sequence[Verdict | BaseException] = ()
        try:
            verdicts = await self._answers(changes) if changes else ()
        except BaseException as error:
            verdicts = [error] * len(callbacks)
            if not isinstance(error, QuireError):
                raise
        finally:
            self._under_way -= records
            for on_verdict, verdict in zip(callbacks, verdicts, strict=True):
                try:
                    on_verdict(verdict)
                except Exception:
                    log.exception("what follows a commit failed")

    async def _answers(self, changes: list[Change]) -> Sequence[Verdict | BaseException]:
        """One answer for each change. If the ledger is away for too long, only receipts are sent on."""
        try:
            return await self._commit(changes)
        except LedgerUnavailable as error:
            facts = [change for change in changes if is_fact(change)]
            if not facts or self.ends_now:
                raise
            landed = dict(zip([change.change_id for change in facts], await self._commit(facts), strict=True))
            return [landed.get(change.change_id, error) for change in changes]

    def _batch(self) -> tuple[list[Change], list[OnVerdict]]:
        """Return the next changes, in their order. Of a record whose change is under way, none is among them."""
        changes: list[Change] = []
        callbacks: list[OnVerdict] = []
        later: list[tuple[Change, OnVerdict, int]] = []
        size = 0
        most = self.ledger.traits.batch_changes
        while self._queue and len(changes) < most and size < BATCH_BYTES:
            entry = self._queue.popleft()
            change, on_verdict, bytes_ = entry
            if change.record_id in self._under_way:
                later.append(entry)
                continue
            changes.append(change)
            callbacks.append(on_verdict)
            size += bytes_
        self._queue.extendleft(reversed(later))
        self._bytes -= size
        self._ready = max(0, self._ready - len(changes)) if changes else 0
        return changes, callbacks

    async def _commit(self, changes: Sequence[Change]) -> list[Verdict]:
        waited, pause = 0.0, 0.05
        while True:
            try:
                verdicts = await self.ledger.commit(changes)
                self.spool.landed(changes)
                if self.acknowledged is not None:
                    self.acknowledged(verdicts)
                return verdicts
            except LedgerUnavailable as error:
                self.spool.keep(changes)
                if waited >= self.patience and not self._keeps_on(changes):
                    raise
                log.warning("%s; committing again", error)
                await self.clock.sleep(pause)
                waited, pause = waited + pause, min(pause * 2, 5.0)
            except (LedgerError, ValueError, OverflowError) as error:
                return await self._bisected(changes, error)

    def _keeps_on(self, changes: Sequence[Change]) -> bool:
        """Whether to send these until they are answered: receipts of acts are never given up by a living process."""
        return not self.ends_now and all(map(is_fact, changes))

    async def _bisected(self, changes: Sequence[Change], error: Exception) -> list[Verdict]:
        """Commit the halves of a batch apart: a change that the store cannot take must not spoil the others."""
        if len(changes) == 1:
            return [Refused("value", str(error))]
        half = len(changes) // 2
        return await self._commit(changes[:half]) + await self._commit(changes[half:])

    async def close(self) -> None:
        while self._drains:
            await asyncio.wait(self._drains)


def _tell(future: asyncio.Future[Verdict], verdict: Verdict | BaseException) -> None:
    if future.done():
        return
    if isinstance(verdict, asyncio.CancelledError):
        future.cancel()
    elif isinstance(verdict, BaseException):
        future.set_exception(verdict)
    else:
        future.set_result(verdict)


def _size(change: Change) -> int:
    size = 200
    image = change.image
    if image is not None:
        size += len(image.data)
        if (result := image.result) is not None:
            size += len(result)
    if change.receipts or change.children:
        size += sum(len(receipt.value) + len(receipt.args) for receipt in change.receipts)
        size += sum(200 + len(child.data) for child in change.children)
    return size
