"""Who may begin: slots, tokens, halts and pauses, and the claim itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from quire.errors import Moved, WorkerClosed
from quire.model.change import Claim, Rate, Slot
from quire.model.record import Record, Status
from quire.model.side import Bucket
from quire.rules import moves as transition
from quire.rules.meeting import Meeting
from quire.rules.sketch import sealed_text

#: A token that is whole but for the rounding of its moment is whole: who comes at that moment takes it.
_ROUNDING = 1e-6


class Claiming(Meeting):
    """Due records become a worker's."""

    def _tokens_at(self, rate: Rate) -> float:
        """When the rate has a token."""
        tokens = self._tokens(rate)
        return self.now if tokens >= 1 - _ROUNDING else self.now + (1 - tokens) * rate.per / rate.count

    def _tokens(self, rate: Rate) -> float:
        bucket = self.buckets.get(rate.name) or self.view.bucket(rate.name)
        if bucket is None:
            return rate.count
        return min(rate.count, bucket.tokens + max(0.0, self.now - bucket.at) * rate.count / rate.per)

    def _take_token(self, rate: Rate) -> None:
        self.buckets[rate.name] = Bucket(rate.name, self._tokens(rate) - 1, self.now)

    def _free(self, slot: Slot, leaving: Record | None = None) -> int:
        free = slot.free
        if slot.cap is not None:
            under_way = sum(self.running(slot.workflow, name) for name in (slot.step, *slot.also))
            free = min(free, slot.cap - under_way)
        if slot.workflow_cap is not None:
            own = leaving is not None and leaving.workflow == slot.workflow and leaving.status is Status.RUNNING
            free = min(free, slot.workflow_cap - self.running(slot.workflow, None) + own)
        if slot.rate is not None:
            free = min(free, int(self._tokens(slot.rate) + _ROUNDING))
        return max(0, free)

    def allowance(self, slot: Slot) -> int:
        """How many records of this step may be claimed now, by slots, tokens, controls and what the worker has free."""
        if self.view.sealed or self.halted(slot.workflow) is not None or self.paused(slot.workflow):
            return 0
        return self._free(slot)

    def next_look(self, left: Iterable[Slot], next_due: float | None) -> float | None:
        """Return when more may be claimed: the next record falls due, or a rate lets another one begin.

        ``left``: the slots of steps at which records stay that are due.
        """
        moments = [] if next_due is None else [next_due]
        moments += [at for slot in left if slot.rate is not None and (at := self._tokens_at(slot.rate)) > self.now]
        return min(moments, default=None)

    def claim(self, claim: Claim, slot: Slot, due: Iterable[Record]) -> list[Record]:
        """These due records, already within the allowance, become the worker's."""
        self.open_to_work()
        worker = self.workers.get(claim.worker) or self.view.worker(claim.worker)
        may_claim(claim, known=worker is not None, closed=worker.closed if worker is not None else None)
        taken = []
        scarce = limited(slot)
        for record in due:
            if self.outdated(record) or (scarce and self._free(slot) < 1):
                continue
            run_id = f"{runs_of(claim.claim_id)}{claim.before + len(self.records)}"
            go = transition.claim(record, self.now, claim.worker, run_id, slot.timeout)
            taken.append(self._put(record, go.image, go.lines, claim.claim_id))
            if slot.rate is not None:
                self._take_token(slot.rate)
        return taken

    def open_to_work(self) -> None:
        """A sealed ledger has no workers: whoever claims or beats is told where its records went (protocol 25)."""
        if self.view.sealed:
            raise Moved(sealed_text(self.view.sealed))


def limited(slot: Slot) -> bool:
    """Something besides its place in the queue decides whether a record of this step may begin."""
    return slot.cap is not None or slot.workflow_cap is not None or slot.rate is not None


def runs_of(claim_id: str) -> str:
    """What the ids of runs begin with that this claim began; their number follows."""
    return f"run_{claim_id}_"


def of_claim(record: Record, claim_id: str) -> bool:
    return (record.run_id or "").startswith(runs_of(claim_id))


def claimed_by(claim: Claim, held: Iterable[Record]) -> list[Record]:
    """Of the records that the worker holds, those that this very claim took before."""
    return [record for record in held if of_claim(record, claim.claim_id)]


def may_claim(claim: Claim, *, known: bool, closed: str | None) -> None:
    """A worker is known by its first beat, and claims until it is closed (protocol 7, 8). Anybody may look."""
    if not known and claim.limit > 0:
        raise WorkerClosed(f"no worker {claim.worker} is known here: a worker beats before it claims")
    if closed is not None:
        raise WorkerClosed(f"worker {claim.worker} was closed: {closed}")
