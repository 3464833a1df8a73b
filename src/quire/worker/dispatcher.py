"""The dispatcher: claims due records while the worker has room for them, and rests while nothing is due.

Where the store takes claims side by side, two are under way at a time: the store finds the next records while the
worker begins with the last ones. A start of this process may begin here at once, without a claim.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quire.clock import next_id
from quire.errors import LedgerUnavailable, WorkerClosed
from quire.model.change import Applied, Change, Claim, Claimed, Slot, Verdict
from quire.model.record import Record, Status
from quire.model.row import replace

if TYPE_CHECKING:
    from quire.worker.worker import Worker

log = logging.getLogger("quire.worker")

#: Where claims and commits go on side by side, the first claim takes so many, and while more is due each takes twice as
#: many as the one before, up to a quarter of the worker's places. So the first begin soon, and afterwards the store
#: takes the next ones while these run and those before them are settled.
LEAST_CLAIM = 50


class Dispatcher:
    """The claims of one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._clock = worker.clock
        self._lease = worker.lease
        self._holds = worker.holds
        self._ledger = worker.ledger
        self._registry = worker.registry
        self._budget = worker.budget
        #: The ids of claims and starts under way, until what they took has begun here.
        self.claims: set[str] = set()
        #: Claims that are under way, in order, and how many each may take.
        self.asked: deque[tuple[asyncio.Task[tuple[Claimed, str]], int]] = deque()
        #: The last claim left nothing that is due. The ledger announces what becomes due after it.
        self.idle = False
        #: The last claim gave this worker nothing.
        self.found_nothing = False
        #: The worker ends when nothing is due.
        self.until_idle = False
        #: The priority of the most urgent record that the last claim left.
        self.left_priority: int | None = None
        self._epoch = 0
        #: How many starts are under way whose records may begin here at once.
        self._starting = 0
        #: How many the next claim may take: never less than the least, twice as many each time while more is due.
        self._least = self._reach = LEAST_CLAIM
        #: Counts the claims, so that the slots take turns at being the first.
        self._turn = 0
        #: The last claim got all that it asked for. Whoever begins finds what has gathered.
        self._streak = True
        #: The rest before the last claim ended because the ledger announced something.
        self._hinted = False

    async def run(self) -> None:
        try:
            await self._dispatched()
        except asyncio.CancelledError:
            for asked, _ in self.asked:
                asked.cancel()
            raise
        finally:
            while self.asked:  # what they take is run, or given back, like all that is held
                [claimed] = await asyncio.gather(self.asked.popleft()[0], return_exceptions=True)
                if isinstance(claimed, tuple):
                    self._holds.begin_all(*claimed)

    async def _dispatched(self) -> None:
        """Claim while there is room and something is due; rest while there is not. Return when the work is over."""
        every = self._registry.slots()
        if not self._ledger.traits.side_by_side:
            self._least = self._reach = self._worker.concurrency
        while not self._worker.stopping:
            if self._budget.ends_at is not None and self._worker.now() >= self._budget.ends_at:
                return
            if self._worker.apart.wants_silence and self.holds_only_suspects:
                self.idle = False
                await self._worker.apart.inside_next()
                continue
            slots = self._budget.fitting(every)
            if not slots and not self.asked:
                if not self._holds.given:
                    return
                await self._rest(None, full=True)  # what runs may end; nothing else can be begun any more
                continue
            self._ask(slots)
            if not self.asked:
                self.idle = False  # what is due now waits for the next run that ends
                self._hinted = await self._rest(None, full=True)
                continue
            claimed = await self._answered()
            if self._streak or self.asked:
                continue
            if self.until_idle and self._nothing_left(claimed):
                # What a worker held that has died meanwhile is due again.
                await self._worker.patiently(self._worker.look_after)
                if not self._worker.changed.is_set():
                    return
                continue
            self._hinted = await self._rest(claimed.next_due_at, full=False)

    def _ask(self, slots: Sequence[Slot]) -> None:
        """Send claims for these slots while there is room: two at a time where the last one got all that it asked for.

        The slots take turns at being the first.
        """
        # While more is due than claims take, the store finds the next one when it has answered the last.
        most = 2 if self._ledger.traits.side_by_side and self._streak else 1
        while len(self.asked) < most and (free := self._room(self._reach)) > 0:
            if self.asked and free < self._reach:
                break
            self._worker.changed.clear()
            self._turn += 1
            shift = self._turn % max(1, len(slots))
            claim = self.claim([*slots[shift:], *slots[:shift]], free)
            self.asked.append((asyncio.ensure_future(claim), free))
            self._reach = max(self._least, min(2 * self._reach, self._worker.concurrency // 4))

    async def _answered(self) -> Claimed:
        """Wait for the answer to the oldest claim, begin what it took, and note what it says of the rest."""
        asked, free = self.asked[0]
        try:
            claimed, claim_id = await asked
        finally:
            self.asked.popleft()
        self._holds.begin_all(claimed, claim_id)
        if claimed.epoch > self._epoch:
            await self._other_epoch(claimed.epoch)
        self.left_priority = claimed.left_priority
        self.found_nothing = not claimed.records
        self.idle = len(claimed.records) < free and claimed.left_priority is None
        if self._hinted and not claimed.records:  # what the ledger announced is nothing to claim: sweep?
            self._worker.housekeeping.soon.set()
        self._hinted = False
        self._streak = len(claimed.records) == free
        if not self._streak:
            self._reach = self._least
        return claimed

    def _nothing_left(self, claimed: Claimed) -> bool:
        """Return whether this claim found nothing, nothing runs here, and nothing is due soon.

        A run that ended while the claim was under way may have made something due that the claim did not see.
        """
        if claimed.records or self._holds.given or self._worker.changed.is_set():
            return False
        due = claimed.next_due_at
        return due is None or due > self._worker.now() + self._worker.soon

    def _room(self, reach: int) -> int:
        """How many the next claim may take, or whether a start may begin: beside what is held and may come yet."""
        if self._worker.committer.full or self._worker.apart.wants_silence:
            return 0
        coming = sum(free for _, free in self.asked) + self._starting
        return min(self._worker.concurrency - len(self._holds.given) + len(self._worker.apart) - coming, reach)

    @property
    def holds_only_suspects(self) -> bool:
        """Nothing runs here and nothing may come: what this worker was given waits to run alone."""
        return len(self._holds.given) == len(self._worker.apart.waiting) and not self.asked and not self._starting

    async def _other_epoch(self, epoch: int) -> None:
        """Beat at once, because somebody halted or resumed: the beat's answer names what is to stop here."""
        known, self._epoch = self._epoch, epoch
        if known and self._holds.passes:
            await self._worker.patiently(self._lease.beat)

    async def _rest(self, next_due: float | None, *, full: bool) -> bool:
        """Wait until a run ends, something may have become due, or it is time to ask the ledger anyway.

        Returns whether the ledger announced a change before its time.
        """
        if self._worker.changed.is_set() and not full:
            return False
        began = self._clock.boottime()
        span = self._ledger.traits.poll_seconds
        if next_due is not None and next_due > self._worker.now():
            span = min(span, next_due - self._worker.now())
        if self._budget.ends_at is not None:
            span = min(span, max(0.0, self._budget.ends_at - self._worker.now()))
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._worker.changed.wait())]
        if full:
            waits.append(asyncio.ensure_future(self._clock.sleep(span)))
            self._worker.changed.clear()
        else:
            waits.append(asyncio.ensure_future(self._ledger.wait_for_work(span)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return not full and not self._worker.changed.is_set() and self._clock.boottime() - began < span

    async def claim(self, slots: Sequence[Slot], limit: int) -> tuple[Claimed, str]:
        """Claim, until there is an answer; and the claim's id, which is kept until what it took has begun."""
        if self._lease.ends_at <= self._clock.boottime():
            # A new incarnation is unknown to the ledger until its first beat.
            await self._worker.patiently(self._lease.beat)
        claim = Claim(next_id(), self._lease.worker_id, tuple(slots), limit)
        self.claims.add(claim.claim_id)
        sent = self._clock.boottime()
        pause = 0.05
        try:
            while True:
                try:
                    asked = self._clock.boottime()
                    claimed = await self._ledger.claim(claim)
                    if claimed.now:
                        self._lease.hear_time(claimed.now, asked)
                    if self._overtakes():
                        self._holds.begin_all(claimed, claim.claim_id)
                    return claimed, claim.claim_id
                except WorkerClosed as error:
                    self.claims.discard(claim.claim_id)
                    self._lease.die(claim.worker, str(error))
                    await self._worker.patiently(self._lease.beat)
                    claim = replace(claim, claim_id=next_id(), worker=self._lease.worker_id, again=False)
                    self.claims.add(claim.claim_id)
                except LedgerUnavailable as error:
                    if self._worker.stopping or self._clock.boottime() - sent > 60:
                        raise
                    log.warning("%s; claiming again", error)
                    claim = replace(claim, again=True)
                    await self._clock.sleep(pause * random.uniform(0.5, 1.5))
                    pause = min(5.0, pause * 2)
        except BaseException:
            self.claims.discard(claim.claim_id)
            raise

    def _overtakes(self) -> bool:
        """Return whether the claim in whose task this runs has its answer before the one that was sent first.

        Its records begin at once then: their time runs, and the other claim may have to be sent again and again. What
        the answer says of the rest is noted in its turn.
        """
        first = self.asked[0][0] if self.asked else None
        return first is not None and first is not asyncio.current_task() and not first.done()

    def room_for(self, record: Record) -> Slot | None:
        """Return the slot of a new record if it may begin here at once: this worker has room, and nothing due waits."""
        if not self.idle or self._worker.stopping or self._room(1) <= 0 or record.priority < 0:
            return None
        if record.status is not Status.PENDING or self._lease.left <= self._lease.seconds / 3:
            return None
        workflow = self._registry.get(record.workflow)
        step = workflow.find(record.step) if workflow is not None else None
        return workflow.slot(step) if workflow is not None and step is not None and not step.rests else None

    async def start(self, change: Change, slot: Slot) -> Verdict:
        """Commit a start whose record begins here at once: it needs no claim of its own."""
        change = replace(change, worker=self._lease.worker_id, keep=slot)
        self.claims.add(change.change_id)
        self._starting += 1
        begun = False
        try:
            verdict = await self._worker.submit(change)
            # The incarnation that it was to begin under may be over, too.
            over = self._worker.stopping or change.worker != self._lease.worker_id
            if isinstance(verdict, Applied) and claimed_by_start(verdict.record, change) and not over:
                self._holds.begin(verdict.record, self._clock.boottime())
                begun = True
            return verdict
        finally:
            self.claims.discard(change.change_id)
            self._starting -= 1
            if not begun:
                self.place_is_free()

    def place_is_free(self) -> None:
        """Wake the dispatcher: there is room for new records.

        The ledger itself announces records that became due because this one ended.
        """
        if self.until_idle or not (self.idle or self.asked):
            self._worker.changed.set()


def claimed_by_start(record: Record, change: Change) -> bool:
    """The record runs under the worker that started it, by that very start."""
    begun = (record.run_id or "").startswith(f"run_{change.change_id}_")
    return begun and record.status is Status.RUNNING and record.worker == change.worker and record.version == 2
