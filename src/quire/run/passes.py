"""One pass: a step's function, executed from its top.

The worker that holds the record makes a pass whenever the record is due. The function gets a fresh ``Run``. What it
asks for under a name is answered from the record's receipts if it was answered before, and done otherwise. When
everything that the function waits for can only come from outside (a timer, a signal, a person, children), the pass
ends: one change stores what the record waits for, and the record is released. The next pass starts again from the top
and finds the answers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from quire.clock import next_id
from quire.errors import DefinitionError, IllegalMove, InputError, LeaseLost, QuireError, did_you_mean, in_words
from quire.model.change import Applied, Change, Conflict, Rate, Refused, Verdict
from quire.model.codec import dump
from quire.model.event import Line
from quire.model.receipt import Kind, Receipt, Stage, key_of
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import Fanin
from quire.model.wait import Wait, load_waits
from quire.rules import moves as transition
from quire.rules.moves import Move
from quire.rules.outcome import Broke, Done, Next, Outcome, Saved, Stopped, Suspect, Tried, Waits, Yielded
from quire.run import forks
from quire.run.failure import MOST_OF_A_LINE, MOST_OF_AN_ERROR, Failure, Link, cut, failure_of, own_line
from quire.run.host import Host, OnVerdict
from quire.workflows.workflow import Step, Workflow

if TYPE_CHECKING:
    from quire.run.run import Pending, Run

log = logging.getLogger("quire.worker")

T = TypeVar("T")

_made = tuple.__new__
#: Stands where the run was when its pass is over: what passes are made of lets go of each other, and is freed at once.
_GONE: Any = None

#: Receipts of calls ride with the next commit, but not longer than this.
RIDE_SECONDS = 0.2
#: More receipts than this in one visit make its passes slow: there are better ways.
MANY_RECEIPTS = 1000
#: How often the loop turns before a blocked pass is taken to be blocked for good.
TURNS = 4
#: The same where something else of the step may go on beside it: an answer, or an error, takes a few turns to come out
#: of each ``gather`` in which it is.
TURNS_BESIDE = 40


#: In which items of which ``run.each`` the code is that asks. Code that runs beside a loop is not in it.
SCOPE: ContextVar[tuple[str, ...]] = ContextVar("scope", default=())


#: In which of the tasks that the step began the code is that asks, and the names of it and of those around it, which
#: are the same in every pass. A task has what the one around it has until it asks for something itself.
BRANCH: ContextVar[tuple[ref[asyncio.Task[Any]] | None, tuple[str, ...]]] = ContextVar("branch", default=(None, ()))
#: What has a name of its own, or may be given one, is counted in all branches together.
NAMED = (Kind.ONCE, Kind.MAP)


#: What a try that failed comes to.
Failed = Tried | Broke | Suspect


def tell_failed(record: Record, outcome: Tried | Broke) -> None:
    """Write one line about a failed try into the worker's output, with the line of the user's code."""
    again = f"again in {outcome.delay:.3g} s" if isinstance(outcome, Tried) else "not tried again"
    place = own_line(outcome.trace)
    log.warning(
        "%s: try %d of step %r failed, %s: %s%s",
        record.record_id,
        record.attempt + 1,
        record.step,
        again,
        " ".join(cut(outcome.error, MOST_OF_A_LINE).split()),
        f" [{place}]" if place else "",
        extra={"record_id": record.record_id},
    )


class Suspended(BaseException):
    """Unwinds a plain ``def`` step that waits for something. Not an Exception: user code shall not catch it."""


class RateUsedUp(QuireError):
    """No token is left before ``until``."""

    def __init__(self, until: float) -> None:
        super().__init__(f"the rate is used up until {until}")
        self.until = until


class IntentTaken(QuireError):
    """Another record has intended, or done, the effect of this key."""


class Exited(Exception):
    """The step's code called ``sys.exit``, or raised what Python itself raises to end a process or a coroutine."""


async def contained(work: Awaitable[T]) -> T:
    """The same, but ``sys.exit`` is an error like any other: in a task of its own it would end the whole process."""
    task = asyncio.current_task()
    try:
        return await work
    except SystemExit as error:
        raise Exited(f"sys.exit({error.code!r}) was called").with_traceback(error.__traceback__) from error
    except (KeyboardInterrupt, GeneratorExit) as error:
        if from_outside(error, task):
            raise
        raise Exited(f"{in_words(error)} was raised").with_traceback(error.__traceback__) from error


def contained_in_thread(fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The same for what runs in a thread: a GeneratorExit would close the coroutine that waits for the thread."""
    try:
        return fn(*args, **kwargs)
    except GeneratorExit as error:
        raise Exited(f"{in_words(error)} was raised").with_traceback(error.__traceback__) from error


def from_outside(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Whether Ctrl-C raised this, or Python did as it closed the coroutine; and not the code of a step.

    ``task``: the task in which the step runs. A coroutine that is closed is not resumed by its task.
    """
    if isinstance(error, GeneratorExit):
        return task is None or _current_task() is not task
    if threading.current_thread() is not threading.main_thread():
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    by_runner = last is not None and last.tb_frame.f_code.co_name == "_on_sigint"  # a second Ctrl-C under asyncio.run
    return by_runner or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs any more
        return None


class Pass:
    """One pass over one record: its receipts, the record as it stands in the ledger, and what it waits for."""

    run: Run[Any, Any]
    #: Why the pass is to end before its own end.
    stop: Outcome | None = None
    #: The record is another's.
    lost = False
    settled: Verdict | None = None
    #: The step's function has ended, and all that it had under way.
    _over = False
    #: Set by the worker before each pass: how many steps the record has been here for, and since when.
    steps = 0
    since = 0.0
    #: In a slice: when the pass last came to something that is kept, and the longest stretch between two of these.
    mark = 0.0
    longest: float | None = None
    _task: asyncio.Task[Any] | None = None
    _ride: asyncio.TimerHandle | None = None
    _flights = 0
    _quiet: asyncio.Future[None] | None = None
    _activity = 0
    _turns = TURNS
    _suspending: asyncio.Task[None] | None = None
    #: While its settling is under way: the record before it, and the function that is called with the verdict.
    _before: Record
    _on_verdict: OnVerdict
    # What most passes never have is made when it is needed: hundreds of them wait for their verdicts at a time, in
    # each of several processes, and what they take of the processors' caches is felt (docs/decisions/034).
    _pending: list[Pending[Any]] | tuple[()] = ()
    _unsaved: list[Receipt] | tuple[()] = ()
    _lines: list[Line] | tuple[()] = ()
    _blocked: list[tuple[Wait, asyncio.Future[None], tuple[Record, ...], Fanin | None]] | tuple[()] = ()

    def __init__(
        self, host: Host, record: Record, workflow: Workflow[Any, Any, Any], step: Step, receipts: Sequence[Receipt]
    ) -> None:
        self.host = host
        #: The record as it is in the ledger once all that was submitted has landed.
        self.record = record
        self.workflow = workflow
        self.step = step
        self.note = record.note
        self._receipts = receipts
        self._waited = record.waits

    @cached_property
    def known(self) -> dict[str, Receipt]:
        """The receipts of this visit, by key."""
        return {receipt.key: receipt for receipt in self._receipts}

    @cached_property
    def remembered(self) -> dict[str, Wait]:
        """What the record waited for when the pass began, by key."""
        return {wait.key: wait for wait in load_waits(self._waited) if wait.key}

    @cached_property
    def _counts(self) -> dict[tuple[Any, ...], int]:
        return {}

    @cached_property
    def _used(self) -> set[str]:
        return set()

    @cached_property
    def nonce(self) -> str:
        """Says of a receipt that this very pass wrote it."""
        return next_id()

    # -- keys --------------------------------------------------------------------------------------------------

    def key(self, kind: Kind, name: str) -> str:
        """The key of the next thing of this kind and name, counted at the moment of the call (protocol 17)."""
        branch = self._branch()  # also of what is not counted in it: it is the first use that numbers a branch
        if kind in NAMED:
            branch = ()
        count = self._counted((kind, SCOPE.get(), branch, name))
        return self._key(kind, branch, name, count)

    def has_next(self, kind: Kind, name: str) -> bool:
        """Return whether an earlier pass wrote under the key that the next ``key`` of this kind and name gives."""
        branch = self._branch()
        if kind in NAMED:
            branch = ()
        count = self._counts.get((kind, SCOPE.get(), branch, name), 0)
        return self._key(kind, branch, name, count) in self.known

    def _key(self, kind: Kind, branch: tuple[str, ...], name: str, count: int) -> str:
        record = self.record
        scope = "/".join((*SCOPE.get(), *branch))
        return key_of(record.workflow, record.record_id, record.step, record.visit, scope, kind, name, count)

    def _counted(self, place: tuple[Any, ...]) -> int:
        count = self._counts.get(place, 0)
        self._counts[place] = count + 1
        return count

    def _branch(self) -> tuple[str, ...]:
        """Where the code is that asks, if it runs beside the step's own (``gather``): there each counts for itself.

        What is answered already takes no time, so that those side by side come in another order in another pass.
        """
        if not self.step.is_async or (task := asyncio.current_task()) is None or task is self._task:
            return ()
        begun, branch = BRANCH.get()
        if begun is None or begun() is not task:
            name = getattr(task.get_coro(), "__qualname__", "")
            branch = (*branch, f"{name}~{self._counted(('branch', SCOPE.get(), branch, name))}")
            BRANCH.set((ref(task), branch))
        return branch

    def use_once(self, name: str) -> None:
        """An effect's name stands once in a pass: a second use is a mistake, not a repetition."""
        self._branch()
        place = "/".join((*SCOPE.get(), name))
        if place in self._used:
            from quire.errors import EffectRepeated

            raise EffectRepeated(
                f"the effect {name!r} stands twice in one pass of step {self.step.name!r}; "
                f"give each its own name with .named(...)"
            )
        self._used.add(place)

    def asked_for(self, pending: Pending[Any]) -> None:
        """It must be awaited before the step returns."""
        self._pending = self._pending or []
        self._pending.append(pending)

    def opened_fanout(self) -> int:
        """The number of a new fan-in of this record."""
        return self.record.fanouts + sum(fanin is not None for *_, fanin in self._blocked) + 1

    # -- receipts and facts ------------------------------------------------------------------------------------

    def receipt(self, kind: Kind, key: str, name: str, value: str, **fields: Any) -> Receipt:
        """An answer under this key, as this pass writes it."""
        made = Receipt(
            key=key,
            record_id=self.record.record_id,
            step=self.record.step,
            visit=self.record.visit,
            name=name,
            kind=kind,
            stage=Stage.DONE,
            value=value,
            nonce=self.nonce,
            worker=self.host.worker_id,
        )
        return replace(made, **fields) if fields else made

    def answer(self, receipt: Receipt) -> None:
        """Remember an answer: it rides with the next commit, and that comes soon."""
        self.known[receipt.key] = receipt
        self.progressed()
        self._unsaved = self._unsaved or []
        self._unsaved.append(receipt)
        if len(self.known) == MANY_RECEIPTS:
            log.warning(
                "%r has %d receipts in one visit of step %r: use run.each or run.map, or return to the same step",
                self.record.record_id,
                MANY_RECEIPTS,
                self.step.name,
            )
        self._ride_soon()

    def progressed(self) -> None:
        """Measure how long it took to come to something that is kept, if the worker's time ends."""
        if self.longest is not None:
            now = self.host.clock.boottime()
            self.longest, self.mark = max(self.longest, now - self.mark), now

    def needs(self, span: float) -> None:
        """The pass cannot go on in a slice of this length: it would have to last for this span more."""
        if self.longest is not None:
            self.longest = max(self.longest, self.host.clock.boottime() - self.mark + span)

    def _ride_soon(self) -> None:
        if self._ride is None:
            self._ride = asyncio.get_running_loop().call_later(RIDE_SECONDS, self._save)

    def _save(self) -> None:
        """What has waited long enough for a commit to ride with gets one of its own."""
        self._ride = None
        over = self.lost or self.stop is not None or self._suspending is not None
        if (self._unsaved or self._lines) and not over and self.record.status is Status.RUNNING:
            self.forget_errors(asyncio.ensure_future(self.facts(())))

    def tell(self, kind: str, **body: Any) -> None:
        """A line for the log, with the next commit."""
        self._lines = self._lines or []
        self._lines.append(Line(kind, dump(body)))

    def noted(self, text: str) -> None:
        """Keep a note: in the log soon, also while the step goes on, and in the row with its next image."""
        self.note = text
        self.tell("noted", note=text)
        self._ride_soon()

    def note_from_thread(self, text: str) -> None:
        """The same for a function that runs in a thread."""
        if self._task is not None:  # otherwise the step is over
            self._task.get_loop().call_soon_threadsafe(self.noted, text)

    @staticmethod
    def forget_errors(task: asyncio.Future[Any]) -> None:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _taken(self) -> tuple[tuple[Receipt, ...], tuple[Line, ...]]:
        if not self._unsaved and not self._lines:
            return (), ()
        receipts, self._unsaved = tuple(self._unsaved), ()
        lines, self._lines = tuple(self._lines), ()
        if self._ride is not None:
            self._ride.cancel()
            self._ride = None
        return receipts, lines

    async def facts(self, receipts: Sequence[Receipt], rates: tuple[Rate, ...] = ()) -> None:
        """Commit receipts beside the image: intents, completed effects, answers."""
        self.check()
        riding, lines = self._taken()
        if not (riding or lines or receipts):  # another commit took what this one is for; an empty change is a conflict
            return
        change = Change(
            change_id=next_id(),
            record_id=self.record.record_id,
            version=self.record.version,
            image=None,
            worker=self.host.worker_id,
            lines=lines,
            receipts=(*riding, *receipts),
            rates=rates,
        )
        verdict = await self.host.submit(change)
        if isinstance(verdict, Refused) and verdict.code != "value":  # what rode with it rides with the next one
            self._unsaved, self._lines = [*riding, *self._unsaved], [*lines, *self._lines]
            if riding:
                self._ride_soon()
        match verdict:
            case Applied(stop=stop):
                if stop:
                    self.halt(Stopped("it was cancelled, or halted"))
                return
            case Conflict():
                self.lose()
                raise LeaseLost(f"another worker holds {self.record.record_id!r} now")
            case Refused(code="rate", until=until) if until is not None:
                raise RateUsedUp(until)
            case Refused(code="intent", reason=reason):
                raise IntentTaken(reason)
            case Refused(code="halted" | "cancelled" | "sealed", reason=reason):
                self.halt(Stopped(reason))
                raise asyncio.CancelledError
            case Refused(reason=reason):
                raise IllegalMove(reason)

    async def deliver(self, *receipts: Receipt) -> None:
        """Completed effects: they land whatever happened to the record meanwhile."""
        self.progressed()
        change = Change(next_id(), self.record.record_id, self.record.version, None, self.host.worker_id)
        verdict = await self.host.submit(replace(change, receipts=receipts))
        if isinstance(verdict, Conflict):
            self.lose()
        elif isinstance(verdict, Applied) and verdict.stop:
            self.halt(Stopped("it was cancelled, or halted"))

    async def move(self, outcome: Outcome) -> Verdict:
        """Commit what the pass came to so far: the record's next image."""
        before = self.record
        verdict = await self.host.submit(self._change(outcome))
        instead = self._heard(before, verdict)
        return verdict if instead is None else await self.host.submit(instead)

    def settle(self, outcome: Outcome, on_verdict: OnVerdict) -> None:
        """The same at the end of the pass, which does not wait for it: ``on_verdict`` is called with the verdict."""
        before = self.record
        keep = False
        if isinstance(outcome, Next) and self.stop is None:
            keep = self.host.may_keep(before, outcome.step, self.steps, self.since)
        self._before, self._on_verdict = before, on_verdict
        self.run = _GONE  # and with it the data, which are in the change
        self.host.put(self._change(outcome, keep=keep), self._settled)

    def _settled(self, verdict: Verdict | BaseException) -> None:
        instead = None if isinstance(verdict, BaseException) else self._heard(self._before, verdict)
        on_verdict = self._on_verdict
        del self._before, self._on_verdict  # it refers to the hold, and the hold to this pass
        if instead is None:
            on_verdict(verdict)
        else:
            self.host.put(instead, on_verdict)

    def _change(self, outcome: Outcome, *, keep: bool = False) -> Change:
        """The change that an outcome leads to. What is submitted after it stands on its image."""
        slot = self._slot(outcome) if keep or isinstance(outcome, Saved) else None
        before = self.record
        if isinstance(outcome, Broke):
            outcome = self._broke(outcome.error, before, outcome.trace)
        if isinstance(outcome, Tried | Broke):
            tell_failed(before, outcome)
        made = transition.settle(before, outcome, self.host.now(), keep=slot)
        image = made.image
        if self.note is not image.note:
            image = replace(image, note=self.note)
        children: tuple[Record, ...] = ()
        fanins: tuple[Fanin, ...] = ()
        if isinstance(outcome, Waits):
            children, fanins = outcome.children, outcome.fanins
            image = replace(image, fanouts=image.fanouts + len(fanins))
        riding, lines = self._taken()
        self.record = image
        return Change(
            change_id=next_id(),
            record_id=before.record_id,
            version=before.version,
            image=image,
            worker=self.host.worker_id,
            lines=(*lines, *made.lines) if lines else made.lines,
            receipts=riding,
            children=children,
            fanins=fanins,
            keep=slot if isinstance(outcome, Next) else None,
            frees=self.step.cap is not None or self.workflow.cap is not None,
        )

    def _broke(self, error: str, before: Record, trace: tuple[Link, ...] = ()) -> Broke:
        """No try follows. Whatever made it so, the workflow says whether what was done is undone."""
        return Broke(error, self.workflow.on_failure == "undo" and before.step != UNDO, trace)

    def _heard(self, before: Record, verdict: Verdict) -> Change | None:
        """What a verdict means for the pass; and the change to make instead where the ledger will not take this one."""
        if isinstance(verdict, Applied):
            if verdict.record.version >= self.record.version:  # or another move is under way that stands on this one
                self.record = verdict.record
        elif isinstance(verdict, Conflict):
            self.lose()
        elif self.record.status is not Status.ERROR:
            self.record = before
            broke = self._broke(cut(f"{verdict.code}: {verdict.reason}", MOST_OF_AN_ERROR), before)
            tell_failed(before, broke)
            return self._plain(transition.settle(before, broke, self.host.now()))
        return None

    async def submit(self, made: Move) -> Verdict:
        """Commit a move with nothing but its own lines."""
        return await self.host.submit(self._plain(made))

    def _plain(self, made: Move) -> Change:
        record = self.record
        return Change(next_id(), record.record_id, record.version, made.image, self.host.worker_id, made.lines)

    def _slot(self, outcome: Outcome) -> Any:
        if isinstance(outcome, Next):
            step = self.workflow.steps[outcome.step]
            return None if step.rests else self.workflow.slot(step)
        return self.workflow.slot(self.step)

    # -- blocking ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Every way into ``run`` goes through here: a pass that is over does nothing more."""
        if self.lost:
            raise LeaseLost(f"another worker holds {self.record.record_id!r} now")
        if self.stop is not None or self._suspending is not None:
            raise asyncio.CancelledError
        if self._over:
            raise DefinitionError(
                f"step {self.step.name!r} of {self.record.record_id!r} has returned; what it starts in the background "
                "must be awaited before it returns (run.all)"
            )

    @contextmanager
    def flight(self) -> Iterator[None]:
        """Something is under way that must end before the pass may be suspended."""
        self.check()
        self._flights += 1
        self._activity += 1
        try:
            yield
        finally:
            self._flights -= 1
            if self._flights == 0 and self._quiet is not None and not self._quiet.done():
                self._quiet.set_result(None)
            self._look_later()

    async def block(self, wait: Wait, children: tuple[Record, ...] = (), fanin: Fanin | None = None) -> None:
        """Wait for something that only the ledger can bring. Does not return: the pass ends here."""
        self.check()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._blocked = self._blocked or []
        self._blocked.append((wait, future, children, fanin))
        self._activity += 1
        if self.step.is_async and asyncio.current_task() is not self._task:
            self._turns = TURNS_BESIDE
        self._look_later()
        await future
        raise asyncio.CancelledError

    def _look_later(self) -> None:
        if self._blocked and not self._flights and self._suspending is None:
            asyncio.get_running_loop().call_soon(self._look, self._activity, self._turns)

    def _look(self, activity: int, turns: int) -> None:
        # Without a task the step has ended, though something that it began is blocked.
        over = self._task is None or self._suspending is not None or self.stop is not None
        if activity != self._activity or self._flights or over:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._look, activity, turns - 1)
        else:
            self._suspending = asyncio.ensure_future(self._suspend())

    async def _suspend(self) -> None:
        waits = tuple(wait for wait, *_ in self._blocked)
        children = tuple(child for _, _, some, _ in self._blocked for child in some)
        fanins = tuple(fanin for *_, fanin in self._blocked if fanin is not None)
        try:
            data = self.run._encoded()
            self.settled = await self.move(Waits(waits, data, children, fanins))
        except InputError as error:  # what it waits with cannot be kept
            self.stop = Broke(**failure_of(error)._asdict())
        except BaseException:  # nobody knows whether it landed: the next beat, or the next worker, finds out
            self.lost = True
            raise
        finally:
            self._unwind()

    @property
    def is_under_way(self) -> bool:
        """Whether the pass has not been settled, and the record has not gone to another."""
        return self.record.status is Status.RUNNING and not self.lost

    def over(self) -> None:
        """The pass has ended. What it is made of is freed now, not when somebody tidies."""
        self.run = _GONE
        self._pending = ()

    def _unwind(self) -> None:
        """End the pass where it stands."""
        for _, future, *_ in self._blocked:
            if not future.done():
                if self.step.is_async:
                    future.cancel()
                else:
                    future.set_exception(Suspended())
        if self._task is not None and self.step.is_async:
            self._task.cancel()

    def halt(self, outcome: Outcome) -> None:
        """End the pass from outside: a timeout, a wish to cancel, the end of the worker's time."""
        if self.stop is None and self._suspending is None:
            self.stop = outcome
            self._unwind()

    def lose(self) -> None:
        """The ledger has given the record to another, or taken it back."""
        if not self.lost:
            self.lost = True
            if self._suspending is None:
                self._unwind()

    # -- performing --------------------------------------------------------------------------------------------

    async def perform(self, task: asyncio.Task[Any] | None, on_verdict: OnVerdict) -> None:
        """One pass of the step, in this task. Its settling is under way when it returns; ``on_verdict`` gets its end.

        Raises ``LeaseLost`` when the record is lost to this worker: then there is nothing to settle.
        """
        self._task = task
        outcome = await self._outcome()
        self.progressed()
        if self._suspending is not None:
            await asyncio.wait({self._suspending})
            if self.lost:
                self._suspending.result()
            elif self.stop is None:
                assert self.settled is not None
                on_verdict(self.settled)
                return
            outcome = self.stop
        if self.lost or outcome is None:
            raise LeaseLost(f"another worker holds {self.record.record_id!r} now")
        self.settle(outcome, on_verdict)

    async def _outcome(self) -> Outcome | None:
        """Run the step's function. As soon as it is over, nobody cancels its task any more: others run in it, too."""
        failure: BaseException | None = None
        value: Any = None
        task, copies = self._task, forks.generation()
        try:
            if self.step.is_async:
                assert self.step.fn is not None
                value = await self.step.fn(self.run)
            else:
                value = await self._in_thread()
        except asyncio.CancelledError as error:
            asked = self._suspending is not None or self.stop is not None or self.lost
            if not asked and self.host.ending():
                raise
            self._task = None
            while task is not None and task.cancelling():
                task.uncancel()
            if asked:
                if isinstance(self.stop, Tried | Broke) and not self.stop.trace:  # it took too long: here it stood
                    self.stop = self.stop._replace(trace=failure_of(error).trace)
                await self._landed()
                return self.stop
            failure = error
        except Suspended:
            return None
        except LeaseLost:
            self.lost = True
            return None
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, GeneratorExit)) and from_outside(error, task):  # the process ends
                raise
            failure = error
        finally:
            self._task = None
            forks.end_if_copied(copies)
        if isinstance(self.stop, Yielded) and failure is None and not self.step.is_async:
            self.stop = None  # a thread cannot be stopped: the step has ended after all, and what it came to counts
        if self.stop is not None or self._suspending is not None:
            self.host.swallowed(self.record)
        if self._flights:
            await self._landed()
        if self.stop is not None or self._suspending is not None:
            return self.stop
        self._over = True
        try:
            return self._returned(value) if failure is None else self.failed(failure)
        except Exception as error:  # noqa: BLE001 - what a step returns may have code of its own
            return self.failed(error)

    async def _in_thread(self) -> Any:
        from quire.run.run import SyncRun

        assert self.step.fn is not None
        loop = asyncio.get_running_loop()
        # In a context of its own: what the step leaves there does not reach the thread's next one.
        run_step = copy_context().run
        return await loop.run_in_executor(
            self.host.threads, run_step, contained_in_thread, self.step.fn, SyncRun(self.run, loop)
        )

    async def _landed(self) -> None:
        """What is under way (an act, its receipt) ends before the record is settled."""
        while self._flights:
            self._quiet = asyncio.get_running_loop().create_future()
            await self._quiet

    def failed(self, error: BaseException, text: str = "") -> Failed:
        """What a try that failed comes to: another one, or none. Whether to try again is asked of the user's code."""
        if isinstance(error, MemoryError) and not self.host.alone:
            # All that runs here shares the memory: whoever asked last need not have used it up.
            return Suspect(text or failure_of(error).error)
        found = Failure(text) if text else failure_of(error)
        try:
            delay = self.step.retry.delay(self.record.attempt + 1, error)
        except Exception as odd:  # noqa: BLE001 - it may raise anything, too
            second = failure_of(odd)
            text = f"{found.error}; it is not tried again, for its Retry(on=...) raised {second.error}"
            return Broke(text, trace=(*found.trace, *second.trace))
        return Broke(found.error, trace=found.trace) if delay is None else Tried(found.error, delay, found.trace)

    def _returned(self, value: Any) -> Outcome:
        """What the step's return value means."""
        for pending in self._pending:
            if not pending.awaited:
                raise DefinitionError(
                    f"step {self.step.name!r} never awaited {pending.what}: write 'await run.…', or it is not done"
                )
        data = self.run._encoded()
        then = self.step.then
        if not then:
            text, _ = self.workflow.result.taken(value, "its result")
            return Done(text, data)
        if value is None and len(then) == 1:
            value = then[0]
        if value not in then:
            legal = ", ".join(map(repr, then))
            hint = did_you_mean(value, then) if isinstance(value, str) else ""
            raise IllegalMove(f"step {self.step.name!r} returned {value!r}; it may return {legal}{hint}")
        target = self.workflow.steps[value]
        return Next(value, data, rests=target.rests and not target.ends, ends=target.rests and target.ends)
