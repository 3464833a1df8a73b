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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quire.clock import next_id
from quire.errors import DefinitionError, IllegalMove, InputError, LeaseLost, QuireError
from quire.model.change import Applied, Change, Conflict, Rate, Refused, Verdict
from quire.model.codec import dump
from quire.model.event import Line
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Fanin
from quire.model.wait import Wait, load_waits
from quire.rules.outcome import Broke, Outcome, Stopped, Waits
from quire.run import settling
from quire.run.exits import Suspended
from quire.run.failure import failure_of
from quire.run.host import Host
from quire.run.settling import GONE
from quire.workflows.workflow import Step, Workflow

if TYPE_CHECKING:
    from quire.run.run import Pending, Run

log = logging.getLogger("quire.worker")

#: Receipts of calls ride with the next commit, but not longer than this.
RIDE_SECONDS = 0.2
#: More receipts than this in one visit make its passes slow: there are better ways.
MANY_RECEIPTS = 1000
#: How often the loop turns before a blocked pass is taken to be blocked for good.
TURNS = 4
#: The same where something else of the step may go on beside it: an answer, or an error, takes a few turns to come out
#: of each ``gather`` in which it is.
TURNS_BESIDE = 40


class RateUsedUp(QuireError):
    """No token is left before ``until``."""

    def __init__(self, until: float) -> None:
        super().__init__(f"the rate is used up until {until}")
        self.until = until


class IntentTaken(QuireError):
    """Another record has intended, or done, the effect of this key."""


class Pass:
    """One pass over one record: its receipts, the record as it stands in the ledger, and what it waits for."""

    run: Run[Any, Any]
    #: Why the pass is to end before its own end.
    stop: Outcome | None = None
    #: The record is another's.
    lost = False
    #: The verdict on the move that stored what the record waits for.
    settled: Verdict | None = None
    #: The step's function has ended, and all that it had under way.
    returned = False
    #: Set by the worker before each pass: how many steps the record has been here for, and since when.
    steps = 0
    since = 0.0
    #: In a slice: when the pass last came to something that is kept, and the longest stretch between two of these.
    mark = 0.0
    longest: float | None = None
    #: The task in which the step runs, until it has ended.
    task: asyncio.Task[Any] | None = None
    _ride: asyncio.TimerHandle | None = None
    #: How many acts and reads are under way that must end first, and what is set when they have.
    flights = 0
    quiet: asyncio.Future[None] | None = None
    _activity = 0
    _turns = TURNS
    #: Stores what the record waits for, once everything in the step waits for something outside.
    suspending: asyncio.Task[None] | None = None
    # What most passes never have is made when it is needed: hundreds of them wait for their verdicts at a time, in
    # each of several processes, and what they take of the processors' caches is felt (docs/decisions/034).
    pending: list[Pending[Any]] | tuple[()] = ()
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
    def counts(self) -> dict[tuple[Any, ...], int]:
        """How often each thing was asked for, by its place (see ``keys``)."""
        return {}

    @cached_property
    def used(self) -> set[str]:
        """The names of effects that this pass has used."""
        return set()

    @cached_property
    def nonce(self) -> str:
        """Says of a receipt that this very pass wrote it."""
        return next_id()

    def asked_for(self, pending: Pending[Any]) -> None:
        """Remember what the step asked for: it must be awaited before the step returns."""
        self.pending = self.pending or []
        self.pending.append(pending)

    def opened_fanout(self) -> int:
        """Return the number of a new fan-in of this record."""
        return self.record.fanouts + sum(fanin is not None for *_, fanin in self._blocked) + 1

    # -- receipts and facts ------------------------------------------------------------------------------------

    def receipt(self, kind: Kind, key: str, name: str, value: str, **fields: Any) -> Receipt:
        """Make the receipt of an answer under this key, as this pass writes it."""
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
        """Note that the pass would have to last for this span more: in a slice of this length it cannot go on."""
        if self.longest is not None:
            self.longest = max(self.longest, self.host.clock.boottime() - self.mark + span)

    def _ride_soon(self) -> None:
        if self._ride is None:
            self._ride = asyncio.get_running_loop().call_later(RIDE_SECONDS, self._save)

    def _save(self) -> None:
        """Commit receipts that have waited longer than ``RIDE_SECONDS`` on their own, not with the next change."""
        self._ride = None
        over = self.lost or self.stop is not None or self.suspending is not None
        if (self._unsaved or self._lines) and not over and self.record.status is Status.RUNNING:
            self.forget_errors(asyncio.ensure_future(self.facts(())))

    def tell(self, kind: str, **body: Any) -> None:
        """Write a line into the log, with the next commit."""
        self._lines = self._lines or []
        self._lines.append(Line(kind, dump(body)))

    def noted(self, text: str) -> None:
        """Keep a note: in the log soon, also while the step goes on, and in the row with its next image."""
        self.note = text
        self.tell("noted", note=text)
        self._ride_soon()

    def note_from_thread(self, text: str) -> None:
        """Keep a note of a function that runs in a thread."""
        if self.task is not None:  # otherwise the step is over
            self.task.get_loop().call_soon_threadsafe(self.noted, text)

    @staticmethod
    def forget_errors(task: asyncio.Future[Any]) -> None:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    def taken(self) -> tuple[tuple[Receipt, ...], tuple[Line, ...]]:
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
        riding, lines = self.taken()
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
        """Commit completed effects. They land whatever happened to the record meanwhile."""
        self.progressed()
        change = Change(next_id(), self.record.record_id, self.record.version, None, self.host.worker_id)
        verdict = await self.host.submit(replace(change, receipts=receipts))
        if isinstance(verdict, Conflict):
            self.lose()
        elif isinstance(verdict, Applied) and verdict.stop:
            self.halt(Stopped("it was cancelled, or halted"))

    # -- blocking ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Refuse to go on in a pass that is over. Every method of ``run`` calls this first."""
        if self.lost:
            raise LeaseLost(f"another worker holds {self.record.record_id!r} now")
        if self.stop is not None or self.suspending is not None:
            raise asyncio.CancelledError
        if self.returned:
            raise DefinitionError(
                f"step {self.step.name!r} of {self.record.record_id!r} has returned; what it starts in the background "
                "must be awaited before it returns (run.all)"
            )

    @contextmanager
    def flight(self) -> Iterator[None]:
        """Mark what runs inside the ``with`` block as under way: it must end before the pass may be suspended."""
        self.check()
        self.flights += 1
        self._activity += 1
        try:
            yield
        finally:
            self.flights -= 1
            if self.flights == 0 and self.quiet is not None and not self.quiet.done():
                self.quiet.set_result(None)
            self._look_later()

    async def block(self, wait: Wait, children: tuple[Record, ...] = (), fanin: Fanin | None = None) -> None:
        """Wait for something that only the ledger can bring. Does not return: the pass ends here."""
        self.check()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._blocked = self._blocked or []
        self._blocked.append((wait, future, children, fanin))
        self._activity += 1
        if self.step.is_async and asyncio.current_task() is not self.task:
            self._turns = TURNS_BESIDE
        self._look_later()
        await future
        raise asyncio.CancelledError

    def _look_later(self) -> None:
        if self._blocked and not self.flights and self.suspending is None:
            asyncio.get_running_loop().call_soon(self._look, self._activity, self._turns)

    def _look(self, activity: int, turns: int) -> None:
        # Without a task the step has ended, though something that it began is blocked.
        over = self.task is None or self.suspending is not None or self.stop is not None
        if activity != self._activity or self.flights or over:
            return
        if turns:
            asyncio.get_running_loop().call_soon(self._look, activity, turns - 1)
        else:
            self.suspending = asyncio.ensure_future(self._suspend())

    async def _suspend(self) -> None:
        waits = tuple(wait for wait, *_ in self._blocked)
        children = tuple(child for _, _, some, _ in self._blocked for child in some)
        fanins = tuple(fanin for *_, fanin in self._blocked if fanin is not None)
        try:
            data = self.run._encoded()
            self.settled = await settling.move(self, Waits(waits, data, children, fanins))
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
        """End the pass. What it is made of is freed now, not when Python collects garbage."""
        self.run = GONE
        self.pending = ()

    def _unwind(self) -> None:
        """End the pass where it stands."""
        for _, future, *_ in self._blocked:
            if not future.done():
                if self.step.is_async:
                    future.cancel()
                else:
                    future.set_exception(Suspended())
        if self.task is not None and self.step.is_async:
            self.task.cancel()

    def halt(self, outcome: Outcome) -> None:
        """End the pass from outside: a timeout, a cancel request, the end of the worker's time."""
        if self.stop is None and self.suspending is None:
            self.stop = outcome
            self._unwind()

    def lose(self) -> None:
        """Give the record up: the ledger has given it to another worker, or taken it back."""
        if not self.lost:
            self.lost = True
            if self.suspending is None:
                self._unwind()
