"""Holds: the records that the ledger gave this worker, from claim to release.

Each hold makes pass after pass (``run.passes``), in the lanes of the worker, as long as the record stays here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from quire.clock import next_id
from quire.errors import ValueRefused
from quire.model.change import Applied, Change, Claimed, Refused, Verdict
from quire.model.record import UNDO, Record, Status
from quire.rules import moves as transition
from quire.rules.outcome import Broke
from quire.run import undo
from quire.run.failure import failure_of
from quire.run.passes import Pass
from quire.run.performing import perform
from quire.run.run import Run
from quire.run.settling import Failed, failed, tell_failed
from quire.worker.lanes import Lanes
from quire.worker.migrating import migrated
from quire.workflows.workflow import Step, Workflow

if TYPE_CHECKING:
    from quire.worker.worker import Worker

log = logging.getLogger("quire.worker")

_UNDO_STEP = Step(name=UNDO, fn=None, then=(), retry=undo.RETRY, timeout=3600.0)


class Hold:
    """A worker's hold on a record, from claim to release: pass after pass, as long as the record stays here."""

    __slots__ = ("_on_settled", "given", "pass_", "record", "run_id", "since", "steps", "task")

    def __init__(self, record: Record, since: float, on_settled: OnSettled) -> None:
        self.record = record
        self.run_id = record.run_id
        #: The version at which the ledger gave it to this worker.
        self.given = record.version
        self.since = since
        self.steps = 0
        #: While a pass is under way: it, and the lane in which it is.
        self.pass_: Pass | None = None
        self.task: asyncio.Task[Any] | None = None
        self._on_settled = on_settled

    def on_verdict(self, verdict: Verdict | BaseException) -> None:
        """Take the ledger's answer to the settling of the pass."""
        self._on_settled(self, verdict)


#: Called with a hold whose pass is settled, and the verdict on that.
OnSettled = Callable[[Hold, Verdict | BaseException], None]


class Holds:
    """All holds of one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._clock = worker.clock
        self._lease = worker.lease
        self._ledger = worker.ledger
        self._registry = worker.registry
        #: Every record that the ledger gave this worker, from the claim's answer on, by its version then.
        self.given: dict[str, int] = {}
        #: The passes that are under way, by record.
        self.passes: dict[str, Pass] = {}
        self.lanes = Lanes(self._perform, self.let_go, worker.clock)
        #: Called with every record that this worker has settled, as it is then.
        self.watchers: list[Callable[[Record], None]] = []
        self._on_settled = self.settled

    def begin_all(self, claimed: Claimed, claim_id: str) -> None:
        if claim_id not in self._worker.dispatcher.claims:  # they did not wait for their turn
            return
        self._worker.dispatcher.claims.discard(claim_id)  # from here on they are among what is given
        since, worker_id = self._clock.boottime(), self._lease.worker_id
        for record in claimed.records:
            if record.worker == worker_id:  # what an incarnation took that is over meanwhile goes to others
                self.begin(record, since)

    def begin(self, record: Record, since: float) -> None:
        self.given[record.record_id] = record.version
        hold = Hold(record, since, self._on_settled)
        if record.losses >= transition.SUSPECT_LOSSES:
            self._worker.apart.add(hold)
        else:
            self.lanes.begin(hold)

    async def _perform(self, hold: Hold) -> None:
        """Make one pass over a record, from the top of its step."""
        record = hold.record
        workflow = self._registry.get(record.workflow)
        step = workflow.find(record.step) if workflow is not None else None
        if workflow is None or (step is None and record.step != UNDO):
            self.let_go(hold)  # not claimed for these; the next beat gives it back
            return
        receipts = await self._receipts(record) if record.facts or record.step == UNDO else ()
        hold.steps += 1
        try:
            older = step is not None and record.code_version < workflow.version
            made = migrated(record, workflow, self._worker.now()) if older else None
            found = record if made is None else made.image
            pass_ = hold.pass_ = self._pass_over(found, workflow, step, receipts)
        except Exception as error:  # noqa: BLE001 - a migration or a type of the user's may raise anything
            await self._unreadable(record, workflow, step, error)
            self.let_go(hold)
            return
        if made is not None and not await self._migrate(hold, made, workflow):
            return
        if self._worker.leaving:  # it comes too late to be asked to yield
            self.let_go(hold)
            return
        pass_.steps, pass_.since = hold.steps, hold.since
        if self._worker.budget.times is not None:
            pass_.mark, pass_.longest = self._clock.boottime(), 0.0
        self.passes[record.record_id] = pass_
        await (perform(pass_, hold.task, hold.on_verdict) if step is not None else undo.perform(pass_, hold.on_verdict))

    def settled(self, hold: Hold, verdict: Verdict | BaseException) -> None:
        """Take the ledger's answer: the record stays here for its next step, or leaves."""
        if isinstance(verdict, Applied):
            record = verdict.record
            self.tell(record)
            # Under a lost answer the record may have gone on, and may even have come back to this worker: by a claim of
            # its own, which has a hold of its own.
            here = record.worker == self._lease.worker_id and record.run_id == hold.run_id
            stays = record.status is Status.RUNNING and here
            if stays and not self._worker.leaving:
                self._free(hold)
                hold.record, hold.given = record, record.version
                self.given[record.record_id] = record.version
                self.lanes.begin(hold)
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
            self._worker.budget.measured(pass_)
            if self.passes.get(hold.record.record_id) is pass_:
                del self.passes[hold.record.record_id]
            pass_.over()

    def let_go(self, hold: Hold) -> None:
        """Let the record leave this worker."""
        self._free(hold)
        record_id = hold.record.record_id
        if self.given.get(record_id) == hold.given:  # a later claim of it is not this one's to forget
            del self.given[record_id]
        self._worker.dispatcher.place_is_free()

    async def _receipts(self, record: Record) -> Sequence[Any]:
        found = await self._ledger.receipts(record_ids=[record.record_id])
        if record.step == UNDO:
            return found
        return [receipt for receipt in found if receipt.step == record.step and receipt.visit == record.visit]

    def _pass_over(
        self, record: Record, workflow: Workflow[Any, Any, Any], step: Step | None, receipts: Sequence[Any]
    ) -> Pass:
        if step is None:  # undoing reads no data: they may be just what could not be read
            return Pass(self._worker, record, workflow, _UNDO_STEP, receipts)
        pass_ = Pass(self._worker, record, workflow, step, receipts)
        Run(pass_)
        return pass_

    async def _migrate(self, hold: Hold, made: transition.Move, workflow: Workflow[Any, Any, Any]) -> bool:
        """Commit what the migrations made of the data before the pass does anything with it; whether it may go on.

        Otherwise a kill after the pass's first receipt would leave the old data beside receipts of the new code.
        """
        record, pass_ = hold.record, hold.pass_
        assert pass_ is not None
        change = Change(next_id(), record.record_id, record.version, made.image, self._lease.worker_id, made.lines)
        verdict = await self._worker.submit(change)
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

        Nothing is undone, whatever the workflow says of failures: the code failed, not the work, and can be corrected.
        """
        broke = Broke(**failure_of(error)._asdict())
        tell_failed(record, broke)
        made = transition.settle(record, broke, self._worker.now())
        frees = workflow.cap is not None or (step is not None and step.cap is not None)
        change = Change(
            next_id(), record.record_id, record.version, made.image, self._lease.worker_id, made.lines, frees=frees
        )
        await self._worker.submit(change)

    async def minding(self) -> None:
        """Ends runs that are past their hard end."""
        while True:
            ends = [pass_.record.run_until for pass_ in self.passes.values() if pass_.record.run_until is not None]
            rest = min([end - self._worker.now() for end in ends], default=1.0)
            await self._clock.sleep(min(max(rest, 0.05), 1.0))
            for pass_ in list(self.passes.values()):
                end = pass_.record.run_until
                if end is not None and self._worker.now() >= end and pass_.record.status is Status.RUNNING:
                    pass_.halt(late(pass_))


def late(pass_: Pass) -> Failed:
    """Return the outcome of a try that is past its hard end."""
    text = f"step {pass_.step.name!r} took longer than its timeout of {pass_.step.timeout:g} s"
    return failed(pass_, TimeoutError(text), text)
