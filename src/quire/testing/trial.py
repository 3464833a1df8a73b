"""``Trial``: a workflow under test, in one process, with told time; and ``every_kill``, which kills it everywhere.

The engine is the real one, on the memory ledger. Effects are faked or done for real, and counted. A probe is answered
by what the trial saw happen, and so is a doubt: the trial is the world, so it knows.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple

from typing_extensions import TypeVar

from quire.client.client import Client
from quire.clock import Span, seconds
from quire.errors import DefinitionError, QuireError
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.record import Record, Status
from quire.model.side import Worker as WorkerRow
from quire.model.wait import On, load_waits
from quire.run.host import NOTHING
from quire.testing.clock import ToldClock
from quire.testing.faults import PassingLedger
from quire.worker.worker import Worker
from quire.workflows.effect import Act, Effect, NotDone
from quire.workflows.workflow import Workflow

if TYPE_CHECKING:
    from hectograph import Emulator

D = TypeVar("D")
R = TypeVar("R")
X = TypeVar("X")

#: A trial that settles so often has workflows that never come to rest.
ROUNDS = 10_000


class Killed(BaseException):
    """The process is gone. Not an Exception: nothing shall handle it."""


class Kill(NamedTuple):
    """Die at the nth write of the worker: before it reached the ledger, or after it did and before the answer came."""

    nth: int
    applied: bool


class _Mortal(PassingLedger):
    """A process's way to the ledger. Once it is dead, nothing of it reaches the ledger any more."""

    def __init__(self, ledger: Ledger, trial: Trial[Any, Any, Any]) -> None:
        super().__init__(ledger)
        self.trial = trial
        self.dead = False

    async def _pass(self, verb: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if self.dead:
            raise Killed
        return await (self.written(call) if verb in ("commit", "claim", "send") else call())

    async def written(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """A write of the process, which may be its last."""
        if self.dead:
            raise Killed
        self.trial.writes += 1
        kill = self.trial.kill
        if kill is not None and self.trial.writes == kill.nth:
            self.trial.struck = True
            if kill.applied:
                await call()
            self.dead = True
            raise Killed
        return await call()


class _TrialWorker(Worker):
    trial: Trial[Any, Any, Any]

    async def prepare(
        self, effect: Effect[Any, Any, Any], part: Callable[..., Any], act: Act[Any], args: Any, kwargs: Any
    ) -> Any:
        if effect in self.trial._fakes:
            return NOTHING
        return await super().prepare(effect, part, act, args, kwargs)

    async def act(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        return await self.trial._act(effect, act, args, kwargs)

    async def probe(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        if self.trial._asks_google(effect):
            return await super().probe(effect, act, args, kwargs)
        done = self.trial._done.get(act.key)
        return NotDone() if done is None else done[0]

    async def undo(self, effect: Effect[Any, Any, Any], act: Act[Any], value: Any) -> object:
        said = await super().undo(effect, act, value)
        self.trial._done[act.key] = (None,)
        return said

    def known_dead(self, worker: WorkerRow) -> bool:
        return worker.worker_id != self.worker_id

    def swallowed(self, record: Record) -> None:
        self.trial._swallowed.append(record.record_id)


class TrialRecord(Generic[D, R]):
    """A record of a trial, as it is now."""

    def __init__(self, trial: Trial[D, R, Any], record_id: str) -> None:
        self.record_id = record_id
        self._trial = trial

    @property
    def record(self) -> Record:
        found = self._trial.ledger.tables.record(self.record_id)
        assert found is not None
        return found

    @property
    def data(self) -> D:
        data: D = self._trial.workflow.data.decode(self.record.data, f"the data of {self.record_id!r}")
        return data

    @property
    def status(self) -> str:
        return str(self.record.status)

    @property
    def step(self) -> str:
        """Where the record is; the last step that it was at, once it has ended."""
        return self.record.step or self._trial._last_step(self.record_id)

    @property
    def question(self) -> str:
        return self.record.question or ""

    @property
    def error(self) -> str:
        return self.record.last_error or ""

    @property
    def result(self) -> R:
        if self.record.status is not Status.DONE:
            raise QuireError(f"{self.record_id!r} has no result: it is {self.record.status} ({self.error})")
        result: R = self._trial.workflow.result.decode(
            self.record.result or "null", f"the result of {self.record_id!r}"
        )
        return result

    async def answer(
        self, choice: str, *, by: str = "", edits: Mapping[str, Any] | None = None, note: str = ""
    ) -> None:
        """Answer what the record asks. Without ``by``, one of those who may answer does."""
        if not by:
            asked = [wait.about or {} for wait in load_waits(self.record.waits) if wait.on is On.QUESTION]
            by = next((str(name) for about in asked for name in about.get("by", ())), "somebody")
        await self._trial.client.answer(self.record_id, choice, by=by, edits=edits, note=note)

    async def signal(self, name: str, value: object = None) -> None:
        """Send the record a signal."""
        await self._trial.client.signal(self.record_id, name, value)


_kill: ContextVar[Kill | None] = ContextVar("kill", default=None)
_trials: ContextVar[list[Trial[Any, Any, Any]] | None] = ContextVar("trials", default=None)


class Trial(Generic[D, R, X]):
    """``async with Trial(workflow, deps=fakes) as trial``; see ``quire.testing``."""

    def __init__(
        self,
        workflow: Workflow[D, R, X],
        *,
        deps: X = None,  # type: ignore[assignment]  # a workflow without deps needs none
        fakes: Mapping[Effect[..., Any, Any], Any] | None = None,
        also: Sequence[Workflow[Any, Any, Any]] = (),
        groups: Mapping[str, Sequence[str]] | None = None,
        google: bool = False,
        kill_at: int | None = None,
        kill_applied: bool = False,
    ) -> None:
        self.workflow = workflow
        self.clock = ToldClock()
        self.ledger = MemoryLedger(self.clock)
        self.client = Client(self.ledger, workflows=[workflow, *also], deps=deps, clock=self.clock, groups=groups)
        self.client.public_url = "http://trial"
        self.kill = _kill.get() if kill_at is None else Kill(kill_at, kill_applied)
        #: How many writes the workers of this trial have made, and whether one was killed.
        self.writes = 0
        self.struck = False
        self._wants_google = google
        self._emulator: Emulator | None = None
        self._opened = AsyncExitStack()
        self._mortal: _Mortal | None = None
        self._fakes = dict(fakes or {})
        self._acts: list[tuple[Effect[..., Any, Any], tuple[Any, ...]]] = []
        self._done: dict[str, tuple[Any]] = {}
        self._swallowed: list[str] = []
        self._worker: _TrialWorker | None = None
        self._count = 0

    async def __aenter__(self) -> Trial[D, R, X]:
        await self.client.__aenter__()
        if self._wants_google:
            from quire.testing.google import emulated

            self._emulator = await self._opened.enter_async_context(emulated(self._at_google))
        trials = _trials.get()
        if trials is not None:
            trials.append(self)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._opened.aclose()
        await self.client.__aexit__(*exc)

    @property
    def google(self) -> Emulator:
        """The Google of this trial, as its people see it: ``google.outbox`` is all that has left."""
        if self._emulator is None:
            raise DefinitionError("this trial has no Google; write Trial(workflow, google=True)")
        return self._emulator

    async def start(self, data: D, *, id: str = "") -> TrialRecord[D, R]:
        """Start a record. It has not moved yet: ``settle`` makes it."""
        self._count += 1
        handle = await self.client.start(self.workflow, data, id=id or f"{self.workflow.name}-{self._count}")
        return TrialRecord(self, handle.record_id)

    def record(self, record_id: str) -> TrialRecord[Any, Any]:
        """Any record of the trial, children too."""
        return TrialRecord(self, record_id)

    def acts(self, effect: Effect[..., Any, Any]) -> list[tuple[Any, ...]]:
        """The arguments of every act of this effect, in order: what happened to the world."""
        return [args for acted, args in self._acts if acted == effect]

    async def settle(self) -> None:
        """Work until nothing moves by itself. Back-offs are waited out; sleeps and timeouts are not: ``advance``."""
        for _ in range(ROUNDS):
            await self._work()
            if self._swallowed:
                raise DefinitionError(
                    f"a step of {self._swallowed[0]!r} went on after it was cancelled: its code swallows the "
                    "cancellation (an 'except BaseException', or an 'await' in a 'finally'); let CancelledError pass"
                )
            if await self._resolve():
                continue
            due = self._backing_off()
            if due is None:
                return
            self.clock.advance(max(0.0, due - self.clock.now()))
        raise QuireError("the trial does not come to rest")

    async def advance(self, span: Span) -> None:
        """Let this much time pass, and everything happen that falls due in it."""
        end = self.clock.now() + seconds(span)
        while True:
            await self.settle()
            moments = [
                r.due_at for r in self.ledger.tables.all_records.values() if not r.ended and r.due_at is not None
            ]
            due = min(moments, default=None)
            if due is None or due > end:
                break
            self.clock.advance(max(0.0, due - self.clock.now()))
        self.clock.advance(max(0.0, end - self.clock.now()))
        await self.settle()

    async def _at_google(self, write: Callable[[], Awaitable[Any]]) -> Any:
        """One write of a worker to Google: as one to the ledger, it may be the last."""
        assert self._mortal is not None
        return await self._mortal.written(write)

    def _asks_google(self, effect: Effect[Any, Any, Any]) -> bool:
        return self._emulator is not None and effect.path.startswith("quire.workspace.") and effect not in self._fakes

    # -- the machinery -----------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            worker = self._new_worker()
            try:
                await worker.run(until_idle=True)
                return
            except Killed:
                await self.ledger.recover(dead=[worker.worker_id])

    def _new_worker(self) -> _TrialWorker:
        client = self.client
        assert client.keyring is not None
        self._mortal = _Mortal(self.ledger, self)
        worker = _TrialWorker(
            self._mortal,
            client.registry,
            dependencies=client.dependencies,
            keyring=client.keyring,
            clock=self.clock,
            public_url=client.public_url,
        )
        worker.trial = self
        worker.grace = 0.0
        return worker

    def _backing_off(self) -> float | None:
        """When the next record goes on that waits only for a back-off, or for an effect to settle."""
        moments = []
        for record in self.ledger.tables.all_records.values():
            if record.ended or record.due_at is None:
                continue
            settling = any(wait.key.endswith("settle") and wait.on is On.TIMER for wait in load_waits(record.waits))
            if record.status is Status.PENDING or (record.status is Status.WAITING and settling):
                moments.append(record.due_at)
        return min(moments, default=None)

    async def _resolve(self) -> bool:
        """Doubts that a kill left behind: the trial knows the truth, and says it."""
        if not self.struck:
            return False
        resolved = False
        for record in list(self.ledger.tables.all_records.values()):
            if record.status is not Status.NEEDS_APPROVAL:
                continue
            for wait in load_waits(record.waits):
                if wait.on is On.DOUBT:
                    receipt = self.ledger.tables.receipt(wait.key)
                    if receipt is not None and self._emulator is not None and receipt.fn.startswith("quire.workspace."):
                        continue  # what a probe at Google cannot tell is a person's to say
                    done = self._done.get(receipt.known_as) if receipt is not None else None
                    value = done[0] if done is not None else None
                    await self.client.resolve(
                        record.record_id, happened=done is not None, value=value, by="trial", effect=wait.name
                    )
                    resolved = True
        return resolved

    async def _act(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        self._acts.append((effect, (*args, *kwargs.values())))
        fake = self._fakes.get(effect, _MISSING)
        if fake is _MISSING:
            value = effect.act(*args, **kwargs) if effect.bare else effect.act(act, *args, **kwargs)
            if isinstance(value, Awaitable):
                value = await value
        elif isinstance(fake, BaseException):
            self._acts.pop()
            raise fake
        elif callable(fake):
            value = fake(*args, **kwargs)
            if isinstance(value, Awaitable):
                value = await value
        else:
            value = fake
        self._done[act.key] = (value,)
        return value

    def _last_step(self, record_id: str) -> str:
        from quire.model.codec import parse

        for event in reversed(self.ledger.tables.events_of(record_id)):
            body = parse(event.body)
            if event.kind in ("done", "moved") and "from" in body:
                return str(body["from"])
        return ""


_MISSING = object()


def every_kill(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run an ``async def`` test as it is, then once for each write of its trials' workers, killed there.

    Each write is lost twice: once before it reached the ledger, once after it did and before the answer came.
    """

    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        await test(*args, **kwargs)
        for applied in (False, True):
            nth = 1
            while await _killed(test, Kill(nth, applied), args, kwargs):
                nth += 1

    return run


async def _killed(test: Callable[..., Awaitable[None]], kill: Kill, args: Any, kwargs: Any) -> bool:
    kill_token, trials_token = _kill.set(kill), _trials.set([])
    try:
        await test(*args, **kwargs)
        return any(trial.struck for trial in _trials.get() or [])
    except BaseException as error:
        when: Literal["after", "before"] = "after" if kill.applied else "before"
        error.add_note(f"killed {when} write {kill.nth} reached the ledger")
        raise
    finally:
        _kill.reset(kill_token)
        _trials.reset(trials_token)
