"""Settling: an outcome becomes a change, and the ledger's verdict on it becomes what the pass does next."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from quire.clock import next_id
from quire.model.change import Applied, Change, Conflict, Verdict
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import Fanin
from quire.rules import moves
from quire.rules.moves import Move
from quire.rules.outcome import Broke, Next, Outcome, Saved, Suspect, Tried, Waits
from quire.run.failure import MOST_OF_A_LINE, MOST_OF_AN_ERROR, Failure, Link, cut, failure_of, own_line
from quire.run.host import OnVerdict

if TYPE_CHECKING:
    from quire.run.passes import Pass

log = logging.getLogger("quire.worker")

#: Stands where the run was when its pass is over. What passes are made of lets go of each other, and is freed at once.
GONE: Any = None
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


async def move(pass_: Pass, outcome: Outcome) -> Verdict:
    """Commit what the pass came to so far: the record's next image."""
    before = pass_.record
    verdict = await pass_.host.submit(_change(pass_, outcome))
    instead = _instead(pass_, before, verdict)
    return verdict if instead is None else await pass_.host.submit(instead)


def settle(pass_: Pass, outcome: Outcome, on_verdict: OnVerdict) -> None:
    """Commit what the pass came to at its end. The pass does not wait: ``on_verdict`` is called with the verdict."""
    before = pass_.record
    keep = False
    if isinstance(outcome, Next) and pass_.stop is None:
        keep = pass_.host.may_keep(before, outcome.step, pass_.steps, pass_.since)
    pass_.run = GONE  # and with it the data, which are in the change
    pass_.host.put(_change(pass_, outcome, keep=keep), partial(_settled, pass_, before, on_verdict))


def _settled(pass_: Pass, before: Record, on_verdict: OnVerdict, verdict: Verdict | BaseException) -> None:
    instead = None if isinstance(verdict, BaseException) else _instead(pass_, before, verdict)
    if instead is None:
        on_verdict(verdict)
    else:
        pass_.host.put(instead, on_verdict)


def _change(pass_: Pass, outcome: Outcome, *, keep: bool = False) -> Change:
    """Make the change that an outcome leads to. What is submitted after it stands on its image."""
    slot = _slot(pass_, outcome) if keep or isinstance(outcome, Saved) else None
    before = pass_.record
    if isinstance(outcome, Broke):
        outcome = _broke(pass_, outcome.error, before, outcome.trace)
    if isinstance(outcome, Tried | Broke):
        tell_failed(before, outcome)
    made = moves.settle(before, outcome, pass_.host.now(), keep=slot)
    image = made.image
    if pass_.note is not image.note:
        image = replace(image, note=pass_.note)
    children: tuple[Record, ...] = ()
    fanins: tuple[Fanin, ...] = ()
    if isinstance(outcome, Waits):
        children, fanins = outcome.children, outcome.fanins
        image = replace(image, fanouts=image.fanouts + len(fanins))
    riding, lines = pass_.taken()
    pass_.record = image
    return Change(
        change_id=next_id(),
        record_id=before.record_id,
        version=before.version,
        image=image,
        worker=pass_.host.worker_id,
        lines=(*lines, *made.lines) if lines else made.lines,
        receipts=riding,
        children=children,
        fanins=fanins,
        keep=slot if isinstance(outcome, Next) else None,
        frees=pass_.step.cap is not None or pass_.workflow.cap is not None,
    )


def _broke(pass_: Pass, error: str, before: Record, trace: tuple[Link, ...] = ()) -> Broke:
    """Return the outcome of a record for which no try follows; the workflow says whether its effects are undone."""
    return Broke(error, pass_.workflow.on_failure == "undo" and before.step != UNDO, trace)


def _instead(pass_: Pass, before: Record, verdict: Verdict) -> Change | None:
    """Note what the verdict means for the pass. Return the change to make instead, if the ledger refused this one."""
    if isinstance(verdict, Applied):
        if verdict.record.version >= pass_.record.version:  # or another move is under way that stands on this one
            pass_.record = verdict.record
    elif isinstance(verdict, Conflict):
        pass_.lose()
    elif pass_.record.status is not Status.ERROR:
        pass_.record = before
        broke = _broke(pass_, cut(f"{verdict.code}: {verdict.reason}", MOST_OF_AN_ERROR), before)
        tell_failed(before, broke)
        return _plain(pass_, moves.settle(before, broke, pass_.host.now()))
    return None


async def submit(pass_: Pass, made: Move) -> Verdict:
    """Commit a move with nothing but its own lines."""
    return await pass_.host.submit(_plain(pass_, made))


def _plain(pass_: Pass, made: Move) -> Change:
    record = pass_.record
    return Change(next_id(), record.record_id, record.version, made.image, pass_.host.worker_id, made.lines)


def _slot(pass_: Pass, outcome: Outcome) -> Any:
    if isinstance(outcome, Next):
        step = pass_.workflow.steps[outcome.step]
        return None if step.rests else pass_.workflow.slot(step)
    return pass_.workflow.slot(pass_.step)


def failed(pass_: Pass, error: BaseException, text: str = "") -> Failed:
    """Decide whether a failed try is followed by another one.

    The workflow's ``Retry`` decides; its ``on=`` may be the user's own function, which may raise anything.
    """
    if isinstance(error, MemoryError) and not pass_.host.alone:
        # All that runs here shares the memory: whoever asked last need not have used it up.
        return Suspect(text or failure_of(error).error)
    found = Failure(text) if text else failure_of(error)
    try:
        delay = pass_.step.retry.delay(pass_.record.attempt + 1, error)
    except Exception as odd:  # noqa: BLE001 - it may raise anything, too
        second = failure_of(odd)
        text = f"{found.error}; it is not tried again, for its Retry(on=...) raised {second.error}"
        return Broke(text, trace=(*found.trace, *second.trace))
    return Broke(found.error, trace=found.trace) if delay is None else Tried(found.error, delay, found.trace)
