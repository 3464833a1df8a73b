"""A worker: claims due records, runs their steps side by side, and settles them.

A worker has parts: ``lease`` (beats, and losing it), ``dispatcher`` (claims), ``holds`` (the records that run here,
pass after pass), ``committer`` (their changes, together), ``housekeeping``, ``budget`` (its time, if that ends),
``acts`` (the calls of effects) and ``apart`` (suspects). Here it begins and ends: ``run`` ends when the worker is asked
to stop, when its time budget ends, or, if asked, when nothing is left to do.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from quire.clock import SYSTEM, Clock, Span, seconds
from quire.errors import Crowded, LedgerUnavailable, Moved, WorkerClosed
from quire.ledger import engine, process
from quire.ledger.base import Ledger
from quire.model.change import Change, Slot, Verdict
from quire.model.codec import dump
from quire.model.receipt import Keyring, Receipt
from quire.model.record import Record
from quire.model.side import Worker as WorkerRow
from quire.rules.outcome import Yielded
from quire.run import forks
from quire.run.dependencies import Dependencies
from quire.worker import forgetting
from quire.worker.acts import Acts
from quire.worker.apart import Apart, Spawn
from quire.worker.budget import Budget
from quire.worker.committer import Committer
from quire.worker.dispatcher import Dispatcher
from quire.worker.hold import Holds
from quire.worker.housekeeping import Housekeeping
from quire.worker.lease import Lease
from quire.worker.marks import Marks
from quire.workflows.effect import Act, Effect, longest_timeout
from quire.workflows.workflow import Registry

log = logging.getLogger("quire.worker")

#: A worker stays on a record for at most so many steps, or so long, before others get their turn.
KEEP_STEPS = 20
KEEP_SECONDS = 30.0


class Worker:
    """Runs records of the workflows in its registry. Implements ``host.Host``.

    ``spawn`` says how a process is started in which a suspect runs alone (``quire.worker.apart``).
    """

    #: Known when the worker runs.
    ledger_id = ""
    #: A worker that ends when it is idle waits for what falls due within so many seconds.
    soon = 0.0

    #: Since when the ledger answers again, on its clock; 0: it was never away from this worker.
    back_since = 0.0

    #: How long running steps may go on after ``stop`` before they are asked to yield.
    grace: float = 10.0

    def __init__(
        self,
        ledger: Ledger,
        registry: Registry,
        *,
        dependencies: Dependencies | None = None,
        keyring: Keyring,
        clock: Clock = SYSTEM,
        concurrency: int = 100,
        lease: Span | None = None,
        label: str = "",
        public_url: str = "",
        spawn: Spawn | None = None,
        state: str = "",
        retention: Span | None = None,
    ) -> None:
        self.ledger = ledger
        self.registry = registry
        self.dependencies = dependencies or Dependencies()
        self.keyring = keyring
        self.clock = clock
        self.concurrency = concurrency
        self.label = label or f"{os.getpid()}"
        self.public_url = public_url
        #: The acts that are under way here, each by the key and the nonce of its intent.
        self.acting: set[tuple[str, str]] = set()
        #: Set when something has changed, so that the dispatcher asks the ledger again.
        self.changed = asyncio.Event()
        #: The worker claims nothing more.
        self.stopping = False
        #: What runs has been asked to yield.
        self.leaving = False
        #: Where the records went, if the ledger was sealed.
        self.moved: Moved | None = None
        self.committer = Committer(ledger, clock, state=state)
        #: What ended longer ago than so many seconds is forgotten; None: nothing is.
        self.retention = None if retention is None else forgetting.checked(retention)
        self.marks = Marks(ledger, clock, state)
        self.committer.acknowledged = self.marks.acknowledged
        self.submit, self.put = self.committer.submit, self.committer.put
        longest = max(ledger.traits.lease_seconds, 1.6 * longest_timeout())
        self.lease = Lease(self, seconds(lease) if lease is not None else longest)
        self.acts = Acts(concurrency)
        self.budget = Budget(self)
        self.holds = Holds(self)
        self.watchers = self.holds.watchers
        self.dispatcher = Dispatcher(self)
        self.housekeeping = Housekeeping(self)
        self.apart = Apart(self, spawn)
        #: The task in which ``run`` is.
        self._running: asyncio.Task[Any] | None = None
        self._ended = asyncio.Event()

    # -- host.Host -----------------------------------------------------------------------------------------------------

    @property
    def alone(self) -> bool:
        """Whether nothing else runs in this process beside the record that runs."""
        return self.apart.inside is not None

    def deps_of(self, workflow: str) -> Any:
        return self.dependencies.of(self.registry.get(workflow))

    def now(self) -> float:
        return self.clock.boottime() + self.lease.offset

    async def lease_until(self, span: float) -> float:
        if self.clock.boottime() + span > self.lease.ends_at:
            await self.lease.beat()
        return min(self.clock.boottime() + span, self.lease.ends_at)

    @property
    def worker_id(self) -> str:
        return self.lease.worker_id

    @property
    def budget_end(self) -> float | None:
        return self.budget.ends_at

    @property
    def threads(self) -> ThreadPoolExecutor:
        """The threads for plain steps."""
        return self.acts.threads

    def time_for(self, span: float, since: float, *, harmless: bool) -> float:
        return self.budget.time_for(span, since, harmless=harmless)

    def from_start(self, since: float) -> bool:
        return self.budget.from_start(since)

    async def prepare(
        self, effect: Effect[Any, Any, Any], part: Callable[..., Any], act: Act[Any], args: Any, kwargs: Any
    ) -> Any:
        return await self.acts.prepare(effect, part, act, args, kwargs)

    async def act(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        return await self.acts.act(effect, act, args, kwargs)

    async def probe(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        return await self.acts.probe(effect, act, args, kwargs)

    async def undo(self, effect: Effect[Any, Any, Any], act: Act[Any], value: Any) -> object:
        return await self.acts.undo(effect, act, value)

    async def mark(self, intent: Receipt) -> None:
        with suppress(LedgerUnavailable):  # whoever may act without the ledger may do so: until the lease ends
            await self.look_back()
        await self.marks.before_act(intent.key, intent.record_id)

    def acted(self, intent: Receipt) -> None:
        self.marks.acted(intent.key)

    async def went_back(self, record: Record) -> bool:
        return await self.marks.went_back(record.created_at)

    async def look_back(self) -> None:
        """After an interruption, see whether the ledger still has what it acknowledged. If not, nothing runs on."""
        if (lost := await self.marks.check(self.worker_id)) is not None:
            self.lease.die(self.worker_id, lost.sentence)

    def late(self, work: Coroutine[Any, Any, None]) -> None:
        self.acts.late(work)

    def row(self) -> WorkerRow:
        knows = dump([[slot.workflow, slot.step, slot.version] for slot in self.registry.slots()])
        return WorkerRow(
            worker_id=self.worker_id,
            label=self.label,
            host=process.host(),
            boot_id=process.identity(),
            pid=os.getpid(),
            started_at=0.0,
            expires_at=0.0,
            lease_seconds=self.lease.seconds,
            closed=None,
            knows=knows,
        )

    def known_dead(self, worker: WorkerRow) -> bool:
        return process.known_dead(worker)

    def ending(self) -> bool:
        return self._running is None or self._running.cancelling() > 0

    def swallowed(self, record: Record) -> None:
        log.warning("a step of %r went on after it was cancelled: its code swallows the cancellation", record.record_id)

    def may_keep(self, record: Record, step: str, steps: int, since: float) -> bool:
        if self.stopping or self.committer.full or steps >= KEEP_STEPS or self.clock.boottime() - since > KEEP_SECONDS:
            return False
        if self.budget.ends_at is not None and not self.budget.fits(record.workflow, step):
            return False
        return self.dispatcher.left_priority is None or record.priority >= self.dispatcher.left_priority

    # -- running -------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether ``run`` is under way."""
        return self._running is not None

    @property
    def at_rest(self) -> bool:
        """Whether nothing is due that this worker could take, and nothing that it has begun goes on."""
        busy = self.holds.passes or self.holds.lanes.busy or self.committer.busy or self.dispatcher.asked
        return self.dispatcher.found_nothing and not busy

    async def run(self, *, budget: Span | None = None, until_idle: bool = False) -> None:
        """Work until asked to stop; or until the budget ends; or until nothing is due and nothing runs.

        Raises ``Moved``, with where to, if the ledger is sealed: after the acts under way have their receipts.
        """
        self._running = asyncio.current_task()
        self._ended.clear()
        forks.heed()
        try:
            await self._run(budget, until_idle)
        finally:
            self._running = None
            self._ended.set()

    async def __aenter__(self) -> Worker:
        """Run beside what is in the block: ``async with client.worker():``."""
        self._beside = asyncio.ensure_future(self.run())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.stop()
        await self._beside

    async def _run(self, budget: Span | None, until_idle: bool) -> None:
        await self.dependencies.open(self.registry)
        if budget is not None:
            self.budget.begin(seconds(budget))
        keepers: list[asyncio.Future[None]] = []
        try:
            await self.patiently(self.ledger.examine)
            await self.patiently(self.lease.beat)
            self.ledger_id = await self.patiently(lambda: engine.ledger_id(self.ledger))
            await self.patiently(lambda: self.committer.spool.begin(self.ledger_id, self.worker_id))
            await self.patiently(lambda: self.marks.begin(self.ledger_id, self.worker_id))
            await self.patiently(self.look_after)
            if self.budget.times is not None:
                times = self.budget.times
                await self.patiently(lambda: times.load(self.ledger, self.now()))
            keepers += map(asyncio.ensure_future, (self.lease.beating(), self.mind(), self.housekeeping.run()))
            self.dispatcher.until_idle = until_idle
            with process.tidying_rarely():
                await self.work()
        except Moved as error:
            self.moved_away(error)
        finally:
            self.stopping = True
            self.dispatcher.idle = False
            for keeper in keepers[1:]:
                keeper.cancel()
            await self._wind_up()
            for keeper in keepers[:1]:  # the heart beats to the last
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            await self.committer.close()
            try:
                if self.budget.times is not None and self.moved is None:
                    await self.budget.times.save(self.ledger)
                await self.ledger.farewell(self.worker_id)
            except LedgerUnavailable as error:
                log.warning("farewell of %s failed: %s", self.worker_id, error)
            await self.marks.end()
            self.budget.end()
            self.stopping = False
            self.lease.begin_anew()
        if self.moved is not None:
            moved, self.moved = self.moved, None
            raise moved

    async def work(self) -> None:
        """Claim and run records until the end of the work."""
        await self.dispatcher.run()

    async def mind(self) -> None:
        """End runs that are past their hard end."""
        await self.holds.minding()

    async def look_after(self) -> bool:
        """Take over from the dead, sweep, start what is scheduled. Return whether there is more to sweep."""
        return await self.housekeeping.look_after()

    async def tidy_up(self) -> None:
        """Give back what the worker of a process held that has ended."""
        await self.look_after()
        self.changed.set()

    async def nudged(self) -> None:
        """Wait until something has changed. Only the dispatcher waits."""
        await self.changed.wait()
        self.changed.clear()

    def stop(self) -> None:
        """Claim nothing more; what runs may finish within the grace period of ``run``'s end."""
        self.stopping = True
        self.changed.set()

    def end_now(self) -> None:
        """Stop, and wait for nothing: what runs goes back to the ledger; what it does not take is not sent again."""
        self.grace = self.committer.patience = 0.0
        self.committer.ends_now = True
        self.stop()
        self.apart.end_now()
        for pass_ in list(self.holds.passes.values()):
            pass_.halt(Yielded("the worker ends"))

    async def leave(self) -> None:
        """Stop, and wait until ``run`` has ended: whoever closes the ledger waits for its farewell."""
        if self._running is not None:
            self.stop()
            await self._ended.wait()

    def moved_away(self, error: Moved) -> None:
        """Stop, because the ledger is sealed: what runs cannot be settled any more, and only receipts still land."""
        self.moved = error
        for pass_ in list(self.holds.passes.values()):
            pass_.lose()
        self.stop()

    async def _wind_up(self) -> None:
        grace = self.grace if self.budget.ends_at is None else 0.0
        closing = asyncio.ensure_future(self.apart.close(grace))
        if grace > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_rest(), grace)
        self.leaving = True  # records that would stay for another step are given back by the farewell
        for pass_ in list(self.holds.passes.values()):
            pass_.halt(Yielded("the worker ends"))
        await closing
        await self._at_rest()
        if self.acts.lasting:  # a farewell would say that they have ended
            log.warning("%s waits for %d acts that run in threads", self.worker_id, self.acts.lasting)
            await self.acts.ended()
            await self._at_rest()
        self.leaving = False
        self.acts.new_threads()

    async def _at_rest(self) -> None:
        """Wait until no step runs and nothing is on its way to the ledger."""
        while self.holds.lanes.busy or self.committer.busy:
            if self.holds.lanes.tasks:
                await asyncio.wait(self.holds.lanes.tasks)
            else:
                await self.clock.sleep(0)  # what is ready gets its lane
            await self.committer.close()

    async def patiently(self, work: Callable[[], Any]) -> Any:
        pause = 0.05
        while True:
            worker_id = self.worker_id
            try:
                return await work()
            except WorkerClosed:
                self.lease.die(worker_id, "its lease ran out")
            except Crowded as error:
                if self.stopping:
                    raise
                log.warning("%s", error)
                await self.look_after()  # one of them may be dead
                await self.clock.sleep(self.ledger.traits.poll_seconds)
            except LedgerUnavailable as error:
                if self.stopping or pause > 30:
                    raise
                log.warning("%s; trying again", error)
                await self.clock.sleep(pause)
                pause *= 2

    # -- for a client that starts records ---------------------------------------------------------------------------

    def room_for(self, record: Record) -> Slot | None:
        """Return what a new record takes if it may begin here at once; None: it may not."""
        return self.dispatcher.room_for(record)

    async def start(self, change: Change, slot: Slot) -> Verdict:
        """Commit a start whose record begins here at once."""
        return await self.dispatcher.start(change, slot)
