"""A worker: claims due records, runs their steps side by side, settles them; beats for its lease meanwhile.

A worker process is a fresh random incarnation (its id). If its lease runs out, the ledger closes it: what it holds is
given to others, and it starts again under a new id. Its ``run`` ends when it is asked to stop, when its time budget
ends, or, if asked, when nothing is left to do.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

from quire.clock import SYSTEM, Clock, Span, new_id, next_id, seconds
from quire.errors import Crowded, LedgerUnavailable, Moved, ValueRefused, WorkerClosed
from quire.ledger import engine, process
from quire.ledger.base import Ledger
from quire.model.change import Applied, Change, Claim, Claimed, Holding, Refused, Slot, Verdict
from quire.model.codec import PLAIN, dump, parse
from quire.model.receipt import Keyring
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import Worker as WorkerRow
from quire.rules import moves as transition
from quire.rules.outcome import Broke, Migrated, Stopped, Yielded
from quire.run import forks, undo
from quire.run.dependencies import Dependencies
from quire.run.failure import described, failure_of
from quire.run.passes import Failed, Pass, contained, contained_in_thread, tell_failed
from quire.run.run import Run
from quire.worker import schedule
from quire.worker.apart import Apart, Spawn
from quire.worker.committer import Committer
from quire.worker.lanes import Hold, Lanes
from quire.worker.slices import FAREWELL_SECONDS, StepTimes
from quire.workflows.effect import Act, Effect, NotDone, is_async, longest_timeout
from quire.workflows.workflow import Registry, Step, Workflow

log = logging.getLogger("quire.worker")

#: A worker stays on a record for at most so many steps, or so long, before others get their turn.
KEEP_STEPS = 20
KEEP_SECONDS = 30.0
#: Where claims and commits go on side by side, the first claim takes so many, and while more is due each takes twice as
#: many as the one before, up to a quarter of the worker's places. So the first begin soon, and afterwards the store
#: takes the next ones while these run and those before them are settled.
LEAST_CLAIM = 50
#: Between two looks of the housekeeping lies at least so much.
LEAST_LOOK_SECONDS = 0.5


class Worker:
    """Runs records of the workflows in its registry. Implements ``host.Host``.

    ``spawn`` says how a process is started in which a suspect runs alone (``quire.worker.apart``).
    """

    #: Known when the worker runs.
    ledger_id = ""
    #: A worker that ends when it is idle waits for what falls due within so many seconds.
    soon = 0.0

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
    ) -> None:
        self.ledger = ledger
        self.registry = registry
        self.dependencies = dependencies or Dependencies()
        self.keyring = keyring
        self.clock = clock
        self.concurrency = concurrency
        self.label = label or f"{os.getpid()}"
        self.public_url = public_url
        self.lease = seconds(lease) if lease is not None else ledger.traits.lease_seconds
        self.lease = max(self.lease, 1.6 * longest_timeout()) if lease is None else self.lease
        self.committer = Committer(ledger, clock)
        self.submit, self.put = self.committer.submit, self.committer.put
        self._make_threads()
        #: Acts that go on in their threads although their steps have given them up.
        self._late: set[asyncio.Task[None]] = set()
        self.budget_end: float | None = None
        self._budget = 0.0
        #: With a budget: what is known of how long steps take.
        self._times: StepTimes | None = None
        self.passes: dict[str, Pass] = {}
        self.acting: set[tuple[str, str]] = set()
        #: Every record that the ledger gave this worker, from the claim's answer on, by its version then.
        self._given: dict[str, int] = {}
        #: Called with every record that this worker has settled, as it is then.
        self.watchers: list[Callable[[Record], None]] = []
        self._lanes = Lanes(self._perform, self.let_go, clock)
        self._on_settled = self.settled
        self.apart = Apart(self, spawn)
        self._claims: set[str] = set()
        self._nudge = asyncio.Event()
        #: The next look of the housekeeping comes soon.
        self._look_soon = asyncio.Event()
        self._stopping = False
        self._leaving = False
        self._moved: Moved | None = None
        self._left_priority: int | None = None
        self._epoch = 0
        #: The last claim left nothing that is due. What becomes due after it, the ledger tells.
        self._idle = False
        #: The last claim gave this worker nothing.
        self._found_nothing = False
        #: Claims that are under way, in order, and how many each may take.
        self._asked: deque[tuple[asyncio.Task[tuple[Claimed, str]], int]] = deque()
        #: How many starts are under way whose records may begin here at once.
        self._starting = 0
        self._until_idle = False
        #: The task in which ``run`` is.
        self._running: asyncio.Task[Any] | None = None
        self._ended = asyncio.Event()
        self._new_incarnation()

    # -- host.Host ---------------------------------------------------------------------------------------------

    @property
    def alone(self) -> bool:
        """Whether nothing else runs in this process beside the record that runs."""
        return self.apart.inside is not None

    def deps_of(self, workflow: str) -> Any:
        return self.dependencies.of(self.registry.get(workflow))

    @property
    def running(self) -> bool:
        """Whether ``run`` is under way."""
        return self._running is not None

    @property
    def at_rest(self) -> bool:
        """Whether nothing is due that this worker could take, and nothing that it has begun goes on."""
        return self._found_nothing and not (self.passes or self._lanes.busy or self.committer.busy or self._asked)

    def now(self) -> float:
        return self.clock.boottime() + self._offset

    def time_for(self, span: float, since: float, *, harmless: bool) -> float:
        if self.budget_end is None:
            return span
        left = self.budget_end - self.now()
        # With most of its time ahead a worker acts with what it has: otherwise a short budget would never act at all.
        if left >= span or left > self._budget / 2:
            return min(left, span)
        # A record that was here from the start has no more time in any slice. An act that may be repeated is begun.
        if self.from_start(since) and (left > self._budget / 4 or (harmless and left > 0)):
            return min(left, span)
        self._stopping = True
        self._nudge.set()
        return 0.0

    def from_start(self, since: float) -> bool:
        if self.budget_end is None:
            return False
        return since - (self.budget_end - self._offset - self._budget) <= self._budget / 5

    async def lease_until(self, span: float) -> float:
        if self.clock.boottime() + span > self._lease_end:
            await self._beat()
        return min(self.clock.boottime() + span, self._lease_end)

    async def prepare(
        self, effect: Effect[Any, Any, Any], part: Callable[..., Any], act: Act[Any], args: Any, kwargs: Any
    ) -> Any:
        return await self._called(part, act, act, *args, **kwargs)

    async def act(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        return await self._called(effect.act, act, *(() if effect.bare else (act,)), *args, **kwargs)

    async def probe(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        assert effect.probe is not None
        return await self._called(effect.probe, act, act, *args, **kwargs)

    async def undo(self, effect: Effect[Any, Any, Any], act: Act[Any], value: Any) -> None:
        assert effect.undo is not None
        await contained(self._called(effect.undo, act, act, value))

    async def _called(self, fn: Callable[..., Any], act: Act[Any], *args: Any, **kwargs: Any) -> Any:
        """Call a part of an effect; a plain function in a thread. One that gets its thread too late is not called."""
        if is_async(fn):
            return await fn(*args, **kwargs)

        def begun() -> Any:
            if act.time_left <= timedelta(0):
                raise NotDone("it got no thread in time; it did not act")
            return contained_in_thread(fn, *args, **kwargs)

        value = await asyncio.get_running_loop().run_in_executor(self._act_threads, begun)
        return await value if inspect.isawaitable(value) else value

    def late(self, work: Coroutine[Any, Any, None]) -> None:
        """Keep the task of an act that goes on in its thread; this worker does not end before it."""
        task = asyncio.ensure_future(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def known_dead(self, worker: WorkerRow) -> bool:
        return process.known_dead(worker)

    def ending(self) -> bool:
        return self._running is None or self._running.cancelling() > 0

    def swallowed(self, record: Record) -> None:
        log.warning("a step of %r went on after it was cancelled: its code swallows the cancellation", record.record_id)

    def may_keep(self, record: Record, step: str, steps: int, since: float) -> bool:
        if self._stopping or self.committer.full or steps >= KEEP_STEPS or self.clock.boottime() - since > KEEP_SECONDS:
            return False
        if self.budget_end is not None and not self._fits(record.workflow, step):
            return False
        return self._left_priority is None or record.priority >= self._left_priority

    # -- the budget --------------------------------------------------------------------------------------------

    def _fits(self, workflow: str, step: str) -> bool:
        """Whether a step may be begun with the time that is left."""
        left = (self.budget_end or 0.0) - self.now()
        return left > 0 and (self._times is None or self._times.fits(workflow, step, left))

    def _fitting(self, slots: list[Slot]) -> list[Slot]:
        """Return the slots of the steps that may be begun with the time that is left."""
        if self.budget_end is None or self._times is None:
            return slots
        return self._times.fitting(slots, self.budget_end - self.now())

    def _measured(self, pass_: Pass) -> None:
        """Keep how long a pass took, and say so at once if no slice of this length is enough for its step."""
        if self._times is None or pass_.longest is None:
            return
        place = (pass_.record.workflow, pass_.step.name)
        cut = isinstance(pass_.stop, Yielded)
        found = self._times.took(place, pass_.longest, self.now(), ended=not cut)
        if found is not None:
            log.warning(
                "step %r of %r %s: a slice of %.3g s is too short for it, and it is not begun in one again for an "
                "hour; give it more (quire tick --budget %ds), or let quire worker run it",
                *(place[1], place[0], found.words(), found.slice, found.fitting),
            )

    # -- the lease ---------------------------------------------------------------------------------------------

    def _new_incarnation(self) -> None:
        self.worker_id = new_id("w_")
        self._offset = self.clock.now() - self.clock.boottime()
        self._lease_end = self.clock.boottime()

    def _row(self) -> WorkerRow:
        knows = dump([[slot.workflow, slot.step, slot.version] for slot in self.registry.slots()])
        return WorkerRow(
            worker_id=self.worker_id,
            label=self.label,
            host=process.host(),
            boot_id=process.identity(),
            pid=os.getpid(),
            started_at=0.0,
            expires_at=0.0,
            lease_seconds=self.lease,
            closed=None,
            knows=knows,
        )

    async def _beat(self) -> None:
        """Renew the lease, counted from before the beat was sent, and agree on what this worker holds."""
        sent = self.clock.boottime()
        held = self._given | {record_id: pass_.record.version for record_id, pass_ in self.passes.items()}
        beaten = await self.ledger.beat(self._row(), Holding(held, tuple(self._claims), next_id()))
        self._lease_end = max(self._lease_end, sent + self.lease)
        self._hear_time(beaten.now, sent)
        for record_id in beaten.lost:
            pass_ = self.passes.get(record_id)
            if pass_ is not None and pass_.record.version == held[record_id] and pass_.record.status is Status.RUNNING:
                pass_.lose()
        for record_id in beaten.cancelled:
            pass_ = self.passes.get(record_id)
            if pass_ is not None:
                pass_.halt(Stopped("it was cancelled, or halted"))

    def _hear_time(self, now: float, asked: float) -> None:
        """Set the worker's idea of the ledger's time by an answer that said ``now``.

        The ledger said so between the moment at which it was asked and this one. An answer that came late says little:
        then the idea changes only as far as it must. Otherwise the worker's time would be behind by as much as the
        answer was late, and what it writes down, such as the end of a sleep or of an act, would come too early.
        """
        received = self.clock.boottime()
        self._offset = min(max(self._offset, now - received), now - asked)

    async def _beating(self) -> None:
        """The heart: beats a few times a lease; ends runs past their end; gives up when the lease is in danger."""
        while True:
            rest = min(self.lease / 4, self.ledger.traits.poll_seconds * 3)
            await self.clock.sleep(rest)
            worker_id = self.worker_id
            try:
                await self._beat()
            except WorkerClosed:
                self._die(worker_id, "its lease ran out")
            except Moved as error:
                return self._leave(error)
            except LedgerUnavailable as error:
                log.warning("beat of %s failed: %s", self.worker_id, error)
                if self.clock.boottime() > self._lease_end - self.lease / 3:
                    self._die(worker_id, "its lease cannot be renewed")

    def _die(self, worker_id: str, why: str) -> None:
        """This incarnation is over: others have its records, or soon will."""
        if worker_id != self.worker_id:  # somebody else has found out before
            return
        log.warning("worker %s stops its runs: %s", worker_id, why)
        for pass_ in list(self.passes.values()):
            pass_.lose()
        self.apart.forget()
        self._new_incarnation()
        self._nudge.set()  # what it held is due again, here as well as elsewhere

    def _leave(self, error: Moved) -> None:
        """The ledger is sealed: what runs cannot be settled here any more; only receipts of acts under way land."""
        self._moved = error
        for pass_ in list(self.passes.values()):
            pass_.lose()
        self.stop()

    async def _minding(self) -> None:
        """Ends runs that are past their hard end."""
        while True:
            ends = [pass_.record.run_until for pass_ in self.passes.values() if pass_.record.run_until is not None]
            rest = min([end - self.now() for end in ends], default=1.0)
            await self.clock.sleep(min(max(rest, 0.05), 1.0))
            for pass_ in list(self.passes.values()):
                end = pass_.record.run_until
                if end is not None and self.now() >= end and pass_.record.status is Status.RUNNING:
                    pass_.halt(late(pass_))

    # -- running -----------------------------------------------------------------------------------------------

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
            self._budget = max(0.0, seconds(budget) - FAREWELL_SECONDS)
            self.budget_end = self.now() + self._budget
            self._times = StepTimes(seconds(budget))
        keepers: list[asyncio.Future[None]] = []
        try:
            await self._patiently(self._beat)
            self.ledger_id = await self._patiently(lambda: engine.ledger_id(self.ledger))
            await self._patiently(self.look_after)
            if self._times is not None:
                times = self._times
                await self._patiently(lambda: times.load(self.ledger, self.now()))
            keepers += map(asyncio.ensure_future, (self._beating(), self._minding(), self._housekeeping()))
            self._until_idle = until_idle
            with process.tidying_rarely():
                await self._dispatch()
        except Moved as error:
            self._leave(error)
        finally:
            self._stopping = True
            self._idle = False
            for keeper in keepers[1:]:
                keeper.cancel()
            await self._wind_up()
            for keeper in keepers[:1]:  # the heart beats to the last
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            await self.committer.close()
            try:
                if self._times is not None and self._moved is None:
                    await self._times.save(self.ledger)
                await self.ledger.farewell(self.worker_id)
            except LedgerUnavailable as error:
                log.warning("farewell of %s failed: %s", self.worker_id, error)
            self.budget_end = self._times = None
            self._stopping = False
            self._new_incarnation()
        if self._moved is not None:
            moved, self._moved = self._moved, None
            raise moved

    def stop(self) -> None:
        """Claim nothing more; what runs may finish within the grace period of ``run``'s end."""
        self._stopping = True
        self._nudge.set()

    def end_now(self) -> None:
        """Stop, and wait for nothing: what runs goes back to the ledger; what it does not take is not sent again."""
        self.grace = self.committer.patience = 0.0
        self.stop()
        self.apart.end_now()
        for pass_ in list(self.passes.values()):
            pass_.halt(Yielded("the worker ends"))

    async def leave(self) -> None:
        """Stop, and wait until ``run`` has ended: whoever closes the ledger waits for its farewell."""
        if self._running is not None:
            self.stop()
            await self._ended.wait()

    #: How long running steps may go on after ``stop`` before they are asked to yield.
    grace: float = 10.0

    async def _wind_up(self) -> None:
        grace = self.grace if self.budget_end is None else 0.0
        closing = asyncio.ensure_future(self.apart.close(grace))
        if grace > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._at_rest(), grace)
        self._leaving = True  # what would stay for another step is given back by the farewell
        for pass_ in list(self.passes.values()):
            pass_.halt(Yielded("the worker ends"))
        await closing
        await self._at_rest()
        if self._late:  # nobody can stop a thread, nor end the process over it; a farewell would say that it has ended
            log.warning("%s waits for %d acts that run in threads", self.worker_id, len(self._late))
            await asyncio.wait(self._late)
            await self._at_rest()
        self._leaving = False
        for threads in (self.threads, self._act_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self._make_threads()

    def _make_threads(self) -> None:
        """Make the threads for plain steps, and those for plain effects, which waiting steps cannot take away."""
        count = min(32, max(4, self.concurrency))
        self.threads = ThreadPoolExecutor(count, forks.STEP_THREAD)
        self._act_threads = ThreadPoolExecutor(count, forks.STEP_THREAD)

    async def _at_rest(self) -> None:
        """Until no step runs and nothing is on its way to the ledger."""
        while self._lanes.busy or self.committer.busy:
            if self._lanes.tasks:
                await asyncio.wait(self._lanes.tasks)
            else:
                await self.clock.sleep(0)  # what is ready gets its lane
            await self.committer.close()

    async def _patiently(self, work: Callable[[], Any]) -> Any:
        pause = 0.05
        while True:
            worker_id = self.worker_id
            try:
                return await work()
            except WorkerClosed:
                self._die(worker_id, "its lease ran out")
            except Crowded as error:
                if self._stopping:
                    raise
                log.warning("%s", error)
                await self.look_after()  # one of them may be dead
                await self.clock.sleep(self.ledger.traits.poll_seconds)
            except LedgerUnavailable as error:
                if self._stopping or pause > 30:
                    raise
                log.warning("%s; trying again", error)
                await self.clock.sleep(pause)
                pause *= 2

    async def _dispatch(self) -> None:
        try:
            await self._dispatched()
        except asyncio.CancelledError:
            for asked, _ in self._asked:
                asked.cancel()
            raise
        finally:
            while self._asked:  # what they take is run, or given back, like all that is held
                [claimed] = await asyncio.gather(self._asked.popleft()[0], return_exceptions=True)
                if isinstance(claimed, tuple):
                    self._begin_all(*claimed)

    async def _dispatched(self) -> None:
        every = self.registry.slots()
        side_by_side = self.ledger.traits.side_by_side
        least = LEAST_CLAIM if side_by_side else self.concurrency
        reach, turn = least, 0
        streak = True  # whoever begins finds what has gathered
        hinted = False
        while not self._stopping:
            if self.budget_end is not None and self.now() >= self.budget_end:
                return
            if self.apart.wants_silence and self.holds_only_suspects:
                self._idle = False
                await self.apart.inside_next()
                continue
            slots = self._fitting(every)
            if not slots and not self._asked:
                if not self._given:
                    return
                await self._rest(None, full=True)  # what runs may end; nothing else can be begun any more
                continue
            # While more is due than claims take, the store finds the next one when it has answered the last.
            most = 2 if side_by_side and streak else 1
            while len(self._asked) < most and (free := self._room(reach)) > 0:
                if self._asked and free < reach:
                    break
                self._nudge.clear()
                turn += 1
                shift = turn % max(1, len(slots))
                claim = self._claim([*slots[shift:], *slots[:shift]], free)
                self._asked.append((asyncio.ensure_future(claim), free))
                reach = max(least, min(2 * reach, self.concurrency // 4))
            claimed = None
            if not self._asked:
                self._idle = False  # what is due now waits for the next run that ends
            else:
                asked, free = self._asked[0]
                try:
                    claimed, claim_id = await asked
                finally:
                    self._asked.popleft()
                self._begin_all(claimed, claim_id)
                if claimed.epoch > self._epoch:
                    await self._other_epoch(claimed.epoch)
                self._left_priority = claimed.left_priority
                self._found_nothing = not claimed.records
                self._idle = len(claimed.records) < free and claimed.left_priority is None
                if hinted and not claimed.records:  # what the ledger announced is nothing to claim: sweep?
                    self._look_soon.set()
                hinted = False
                streak = len(claimed.records) == free
                reach = reach if streak else least
                if streak or self._asked:
                    continue
            # A run that ended while the claim was under way may have made something due that the claim did not see.
            quiet = not self._given and not self._nudge.is_set()
            if claimed is not None and not claimed.records and quiet and self._until_idle:
                due = claimed.next_due_at
                if due is None or due > self.now() + self.soon:
                    await self._patiently(self.look_after)  # what somebody held who has died meanwhile is due again
                    if not self._nudge.is_set():
                        return
                    continue
            hinted = await self._rest(claimed.next_due_at if claimed is not None else None, full=claimed is None)

    def _room(self, reach: int) -> int:
        """How many the next claim may take, or whether a start may begin: beside what is held and may come yet."""
        if self.committer.full or self.apart.wants_silence:
            return 0
        coming = sum(free for _, free in self._asked) + self._starting
        return min(self.concurrency - len(self._given) + len(self.apart) - coming, reach)

    @property
    def holds_only_suspects(self) -> bool:
        """Nothing runs here and nothing may come: what this worker was given waits to run alone."""
        return len(self._given) == len(self.apart.waiting) and not self._asked and not self._starting

    async def _other_epoch(self, epoch: int) -> None:
        """Somebody halted or resumed: a beat at once tells what is to stop here, so that it begins nothing more."""
        known, self._epoch = self._epoch, epoch
        if known and self.passes:
            await self._patiently(self._beat)

    async def _rest(self, next_due: float | None, *, full: bool) -> bool:
        """Until a run ends, something may have become due, or the next look is due anyway.

        Returns whether the ledger announced a change before its time.
        """
        if self._nudge.is_set() and not full:
            return False
        began = self.clock.boottime()
        span = self.ledger.traits.poll_seconds
        if next_due is not None and next_due > self.now():
            span = min(span, next_due - self.now())
        if self.budget_end is not None:
            span = min(span, max(0.0, self.budget_end - self.now()))
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._nudge.wait())]
        if full:
            waits.append(asyncio.ensure_future(self.clock.sleep(span)))
            self._nudge.clear()
        else:
            waits.append(asyncio.ensure_future(self.ledger.wait_for_work(span)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
        return not full and not self._nudge.is_set() and self.clock.boottime() - began < span

    async def _claim(self, slots: Sequence[Slot], limit: int) -> tuple[Claimed, str]:
        """Claim, until there is an answer; and the claim's id, which is kept until what it took has begun."""
        if self._lease_end <= self.clock.boottime():
            await self._patiently(self._beat)  # a new incarnation is unknown to the ledger until its first beat
        claim = Claim(next_id(), self.worker_id, tuple(slots), limit)
        self._claims.add(claim.claim_id)
        sent = self.clock.boottime()
        pause = 0.05
        try:
            while True:
                try:
                    asked = self.clock.boottime()
                    claimed = await self.ledger.claim(claim)
                    if claimed.now:
                        self._hear_time(claimed.now, asked)
                    if self._overtakes():
                        self._begin_all(claimed, claim.claim_id)
                    return claimed, claim.claim_id
                except WorkerClosed as error:
                    self._claims.discard(claim.claim_id)
                    self._die(claim.worker, str(error))
                    await self._patiently(self._beat)
                    claim = replace(claim, claim_id=next_id(), worker=self.worker_id, again=False)
                    self._claims.add(claim.claim_id)
                except LedgerUnavailable as error:
                    if self._stopping or self.clock.boottime() - sent > 60:
                        raise
                    log.warning("%s; claiming again", error)
                    claim = replace(claim, again=True)
                    await self.clock.sleep(pause * random.uniform(0.5, 1.5))
                    pause = min(5.0, pause * 2)
        except BaseException:
            self._claims.discard(claim.claim_id)
            raise

    def _overtakes(self) -> bool:
        """The claim in whose task this is has its answer before the one that was sent first.

        Its records begin at once then: their time runs, and the other may have to be sent again and again. What its
        answer tells of the rest is looked at in its turn.
        """
        first = self._asked[0][0] if self._asked else None
        return first is not None and first is not asyncio.current_task() and not first.done()

    def room_for(self, record: Record) -> Slot | None:
        """What a new record takes if it may begin here at once: this worker runs, has room, and nothing due waits."""
        if not self._idle or self._stopping or self._room(1) <= 0 or record.priority < 0:
            return None
        if record.status is not Status.PENDING or self._lease_end <= self.clock.boottime() + self.lease / 3:
            return None
        workflow = self.registry.get(record.workflow)
        step = workflow.find(record.step) if workflow is not None else None
        return workflow.slot(step) if workflow is not None and step is not None and not step.rests else None

    async def start(self, change: Change, slot: Slot) -> Verdict:
        """Commit a start whose record begins here at once: it needs no claim of its own."""
        change = replace(change, worker=self.worker_id, keep=slot)
        self._claims.add(change.change_id)
        self._starting += 1
        begun = False
        try:
            verdict = await self.submit(change)
            over = self._stopping or change.worker != self.worker_id  # or the incarnation that it was to begin under
            if isinstance(verdict, Applied) and claimed_by_start(verdict.record, change) and not over:
                self._begin(verdict.record, self.clock.boottime())
                begun = True
            return verdict
        finally:
            self._claims.discard(change.change_id)
            self._starting -= 1
            if not begun:
                self._place_is_free()

    # -- holds -------------------------------------------------------------------------------------------------

    def _begin_all(self, claimed: Claimed, claim_id: str) -> None:
        if claim_id not in self._claims:  # they did not wait for their turn
            return
        self._claims.discard(claim_id)  # from here on they are among what is given
        since, worker_id = self.clock.boottime(), self.worker_id
        for record in claimed.records:
            if record.worker == worker_id:  # what an incarnation took that is over meanwhile goes to others
                self._begin(record, since)

    def _begin(self, record: Record, since: float) -> None:
        self._given[record.record_id] = record.version
        hold = Hold(record, since, self._on_settled)
        if record.losses >= transition.SUSPECT_LOSSES:
            self.apart.add(hold)
        else:
            self._lanes.begin(hold)

    async def _perform(self, hold: Hold) -> None:
        """One pass over a record, from the top of its step."""
        record = hold.record
        workflow = self.registry.get(record.workflow)
        step = workflow.find(record.step) if workflow is not None else None
        if workflow is None or (step is None and record.step != UNDO):
            self.let_go(hold)  # not claimed for these; the next beat gives it back
            return
        receipts = await self._receipts(record) if record.facts or record.step == UNDO else ()
        hold.steps += 1
        try:
            older = step is not None and record.code_version < workflow.version
            migrated = _migrated(record, workflow, self.now()) if older else None
            found = record if migrated is None else migrated.image
            pass_ = hold.pass_ = self._held(found, workflow, step, receipts)
        except Exception as error:  # noqa: BLE001 - a migration or a type of the user's may raise anything
            await self._unreadable(record, workflow, step, error)
            self.let_go(hold)
            return
        if migrated is not None and not await self._migrate(hold, migrated, workflow):
            return
        if self._leaving:  # it comes too late to be asked to yield
            self.let_go(hold)
            return
        pass_.steps, pass_.since = hold.steps, hold.since
        if self._times is not None:
            pass_.mark, pass_.longest = self.clock.boottime(), 0.0
        self.passes[record.record_id] = pass_
        await (pass_.perform(hold.task, hold.on_verdict) if step is not None else undo.perform(pass_, hold.on_verdict))

    def settled(self, hold: Hold, verdict: Verdict | BaseException) -> None:
        """The ledger has answered: the record stays for its next step, or leaves."""
        if isinstance(verdict, Applied):
            record = verdict.record
            self.tell(record)
            # Under a lost answer the record may have gone on, and may even have come back to this worker: by a claim of
            # its own, which has a hold of its own.
            stays = record.status is Status.RUNNING and record.worker == self.worker_id and record.run_id == hold.run_id
            if stays and not self._leaving:
                self._free(hold)
                hold.record, hold.given = record, record.version
                self._given[record.record_id] = record.version
                self._lanes.begin(hold)
                return
        elif isinstance(verdict, Exception):
            log.error("a run ended badly: %s", verdict, exc_info=verdict)
        self.let_go(hold)

    def tell(self, record: Record) -> None:
        """Tell the watchers what became of a record."""
        for watcher in self.watchers:
            try:
                watcher(record)
            except Exception:
                log.exception("a watcher of %r failed", record.record_id)

    def _free(self, hold: Hold) -> None:
        """The pass is over."""
        pass_, hold.pass_ = hold.pass_, None
        if pass_ is not None:
            self._measured(pass_)
            if self.passes.get(hold.record.record_id) is pass_:
                del self.passes[hold.record.record_id]
            pass_.over()

    def let_go(self, hold: Hold) -> None:
        """The record leaves this worker."""
        self._free(hold)
        record_id = hold.record.record_id
        if self._given.get(record_id) == hold.given:  # a later claim of it is not this one's to forget
            del self._given[record_id]
        self._place_is_free()

    def _place_is_free(self) -> None:
        """Whoever waits for room looks again. What a record's end has made due, the ledger tells."""
        if self._until_idle or not (self._idle or self._asked):
            self._nudge.set()

    # -- for those that run alone ------------------------------------------------------------------------------

    @property
    def given(self) -> int:
        """How many records the ledger gave this worker."""
        return len(self._given)

    @property
    def stopping(self) -> bool:
        return self._stopping

    def nudge(self) -> None:
        """Something has changed: the dispatcher looks again."""
        self._nudge.set()

    async def tidy_up(self) -> None:
        """A process has ended: what its worker held goes back."""
        await self.look_after()
        self._nudge.set()

    async def nudged(self) -> None:
        """Wait until something has changed. Only the dispatcher waits."""
        await self._nudge.wait()
        self._nudge.clear()

    async def _receipts(self, record: Record) -> Sequence[Any]:
        found = await self.ledger.receipts(record_ids=[record.record_id])
        if record.step == UNDO:
            return found
        return [receipt for receipt in found if receipt.step == record.step and receipt.visit == record.visit]

    def _held(
        self, record: Record, workflow: Workflow[Any, Any, Any], step: Step | None, receipts: Sequence[Any]
    ) -> Pass:
        if step is None:  # undoing reads no data: they may be just what could not be read
            return Pass(self, record, workflow, _UNDO_STEP, receipts)
        pass_ = Pass(self, record, workflow, step, receipts)
        Run(pass_)
        return pass_

    async def _migrate(self, hold: Hold, made: transition.Move, workflow: Workflow[Any, Any, Any]) -> bool:
        """Commit what the migrations made of the data before the pass does anything with it; whether it may go on.

        Otherwise a kill after the pass's first receipt would leave the old data beside receipts of the new code.
        """
        record, pass_ = hold.record, hold.pass_
        assert pass_ is not None
        change = Change(next_id(), record.record_id, record.version, made.image, self.worker_id, made.lines)
        verdict = await self.submit(change)
        match verdict:
            case Applied(record=kept) if kept.status is Status.RUNNING and kept.run_id == hold.run_id:
                pass_.record = kept
                return True
            case Refused(code=code, reason=reason):
                await self._unreadable(record, workflow, pass_.step, ValueRefused(f"{code}: {reason}"))
                self.let_go(hold)
            case _:  # it is another's, or a wish to cancel was obeyed
                self.settled(hold, verdict)
        return False

    async def _unreadable(
        self, record: Record, workflow: Workflow[Any, Any, Any], step: Step | None, error: Exception
    ) -> None:
        """The record's data does not fit the code: it errs, with the reason, and nothing is lost.

        Nothing is undone, whatever the workflow says of failures: the code failed, not the work, and can be mended.
        """
        broke = Broke(**failure_of(error)._asdict())
        tell_failed(record, broke)
        made = transition.settle(record, broke, self.now())
        frees = workflow.cap is not None or (step is not None and step.cap is not None)
        change = Change(
            next_id(), record.record_id, record.version, made.image, self.worker_id, made.lines, frees=frees
        )
        await self.submit(change)

    # -- housekeeping ------------------------------------------------------------------------------------------

    async def _housekeeping(self) -> None:
        """Takeovers, sweeps, schedules: the periodic look that is the guarantee behind all hints."""
        more = False
        while True:
            if more:
                await self.clock.sleep(0.05)
            else:
                await self._until_look(self.ledger.traits.poll_seconds * random.uniform(1.0, 1.4))
            self._look_soon.clear()
            try:
                more = await self.look_after()
            except LedgerUnavailable as error:
                log.warning("housekeeping failed: %s", error)
                more = False
            except Exception:
                log.exception("housekeeping failed")  # the next look is the guarantee: it must come
                more = False

    async def _until_look(self, span: float) -> None:
        """Rest for the span, or until the ledger announced what nobody can claim, and at least for a moment."""
        await self.clock.sleep(min(span, LEAST_LOOK_SECONDS))
        waits = [asyncio.ensure_future(wait) for wait in (self._look_soon.wait(), self.clock.sleep(span))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def look_after(self) -> bool:
        """One look: take over from the dead, sweep, start what is scheduled. True: there is more to sweep."""
        recovered = await self.ledger.recover()
        # Workers of this machine whose process is gone need not be waited for.
        own = self.apart.pids  # what their ends mean is said by whoever watches them
        dead = [
            row.worker_id
            for row in recovered.open
            if row.worker_id != self.worker_id and row.pid not in own and self.known_dead(row)
        ]
        if dead:
            recovered = await self.ledger.recover(dead=dead)
        if recovered.records or recovered.workers:
            self._nudge.set()
        await schedule.start_due(self.ledger, self.registry, self.now())
        return recovered.more


def claimed_by_start(record: Record, change: Change) -> bool:
    """The record runs under the worker that started it, by that very start."""
    begun = (record.run_id or "").startswith(f"run_{change.change_id}_")
    return begun and record.status is Status.RUNNING and record.worker == change.worker and record.version == 2


_UNDO_STEP = Step(name=UNDO, fn=None, then=(), retry=undo.RETRY, timeout=3600.0)


def late(pass_: Pass) -> Failed:
    """What becomes of a try that is past its hard end."""
    text = f"step {pass_.step.name!r} took longer than its timeout of {pass_.step.timeout:g} s"
    return pass_.failed(TimeoutError(text), text)


def _migrated(record: Record, workflow: Workflow[Any, Any, Any], now: float) -> transition.Move | None:
    """Data of a record that started under an older version, converted by the workflow's migrations at a step's top.

    A step that has begun under the older version goes on with its data: its receipts were made with them.
    """
    if record.code_version not in workflow.migrations or record.facts or record.entry is not None:
        return None
    version, data = record.code_version, parse(record.data)
    while version in workflow.migrations and version < workflow.version:
        data = _converted(workflow, version, data)
        version += 1
    made = Migrated(PLAIN.encode(data, "what its migration made of its data"), version)
    return transition.settle(record, made, now)


def _converted(workflow: Workflow[Any, Any, Any], version: int, data: Any) -> Any:
    try:
        return workflow.migrations[version](data)
    except (Exception, SystemExit) as error:
        raise ValueRefused(
            f"its data could not be migrated from version {version} of {workflow.name!r}: {described(error)}"
        ) from error
