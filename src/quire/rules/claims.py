"""Who may begin: slots, tokens, halts and pauses, and the claim itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from quire.errors import WorkerClosed
from quire.model.change import Claim, Rate, Slot
from quire.model.record import Record, Status
from quire.model.side import Bucket
from quire.rules import moves, orders
from quire.rules.draft import Draft

#: A token that is whole but for the rounding of its moment is whole: who comes at that moment takes it.
_ROUNDING = 1e-6


# -- rates and caps --------------------------------------------------------------------------------------------


def token_at(draft: Draft, rate: Rate) -> float:
    """Return when the rate has a token."""
    tokens = _tokens(draft, rate)
    return draft.now if tokens >= 1 - _ROUNDING else draft.now + (1 - tokens) * rate.per / rate.count


def take_token(draft: Draft, rate: Rate) -> None:
    draft.buckets[rate.name] = Bucket(rate.name, _tokens(draft, rate) - 1, draft.now)


def _tokens(draft: Draft, rate: Rate) -> float:
    bucket = draft.bucket(rate.name)
    if bucket is None:
        return rate.count
    return min(rate.count, bucket.tokens + max(0.0, draft.now - bucket.at) * rate.count / rate.per)


def limited(slot: Slot) -> bool:
    """Return whether something besides its place in the queue decides if a record of this step may begin."""
    return slot.cap is not None or slot.workflow_cap is not None or slot.rate is not None


def _free(draft: Draft, slot: Slot, leaving: Record | None = None) -> int:
    """Return how many more may begin by the slot, caps and rate. ``leaving``: a record that leaves its place."""
    free = slot.free
    if slot.cap is not None:
        under_way = sum(draft.running(slot.workflow, name) for name in (slot.step, *slot.also))
        free = min(free, slot.cap - under_way)
    if slot.workflow_cap is not None:
        own = leaving is not None and leaving.workflow == slot.workflow and leaving.status is Status.RUNNING
        free = min(free, slot.workflow_cap - draft.running(slot.workflow, None) + own)
    if slot.rate is not None:
        free = min(free, int(_tokens(draft, slot.rate) + _ROUNDING))
    return max(0, free)


def allowance(draft: Draft, slot: Slot) -> int:
    """Return how many records of this step may be claimed now, by caps, rates, orders and what the worker has free."""
    if draft.view.sealed or orders.halt_of(draft, slot.workflow) is not None or orders.paused(draft, slot.workflow):
        return 0
    return _free(draft, slot)


def next_look(draft: Draft, left: Iterable[Slot], next_due: float | None) -> float | None:
    """Return when more may be claimed: the next record falls due, or a rate lets another one begin.

    ``left``: the slots of steps at which records stay that are due.
    """
    moments = [] if next_due is None else [next_due]
    moments += [at for slot in left if slot.rate is not None and (at := token_at(draft, slot.rate)) > draft.now]
    return min(moments, default=None)


# -- the claim -------------------------------------------------------------------------------------------------


def take(draft: Draft, claim: Claim, slot: Slot, due: Iterable[Record]) -> list[Record]:
    """These due records, already within the allowance, become the worker's."""
    orders.open_to_work(draft)
    worker = draft.worker(claim.worker)
    may_claim(claim, known=worker is not None, closed=worker.closed if worker is not None else None)
    taken = []
    scarce = limited(slot)
    for record in due:
        if orders.halted(draft, record) or (scarce and _free(draft, slot) < 1):
            continue
        run_id = f"{runs_of(claim.claim_id)}{claim.before + len(draft.records)}"
        go = moves.claim(record, draft.now, claim.worker, run_id, slot.timeout)
        taken.append(draft.put(record, go.image, go.lines, claim.claim_id))
        if slot.rate is not None:
            take_token(draft, slot.rate)
    return taken


def kept(draft: Draft, slot: Slot, current: Record, image: Record) -> Record:
    """Return the image of a record that its worker keeps for the next step, or gives back if a claim may not be.

    To stay for the next step is a claim: with its caps, its tokens and the orders, or not at all (protocol 16).
    """
    scarce = limited(slot) and _free(draft, slot, leaving=current) < 1
    if scarce or orders.paused(draft, image.workflow):
        return moves.unkept(image, draft.now)
    if slot.rate is not None:
        take_token(draft, slot.rate)
    return image


def begins(draft: Draft, slot: Slot, worker_id: str, row: Record) -> bool:
    """Whether a new record may begin under the worker that starts it: that is a claim, with all its checks, or none."""
    worker = draft.worker(worker_id)
    open_ = worker is not None and worker.closed is None
    due = row.status is Status.PENDING and row.due_at is not None and row.due_at <= draft.now
    return open_ and due and row.step == slot.step and allowance(draft, slot) > 0


def runs_of(claim_id: str) -> str:
    """Return what the ids of runs begin with that this claim began; their number follows."""
    return f"run_{claim_id}_"


def of_claim(record: Record, claim_id: str) -> bool:
    return (record.run_id or "").startswith(runs_of(claim_id))


def claimed_by(claim: Claim, held: Iterable[Record]) -> list[Record]:
    """Of the records that the worker holds, return those that this very claim took before."""
    return [record for record in held if of_claim(record, claim.claim_id)]


def may_claim(claim: Claim, *, known: bool, closed: str | None) -> None:
    """A worker is known by its first beat, and claims until it is closed (protocol 7, 8). Anybody may look."""
    if not known and claim.limit > 0:
        raise WorkerClosed(f"no worker {claim.worker} is known here: a worker beats before it claims")
    if closed is not None:
        raise WorkerClosed(f"worker {claim.worker} was closed: {closed}")
