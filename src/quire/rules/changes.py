"""A change lands, meets another version of its record, or is refused. Pure.

A change is a start, a move, or facts beside the image. It is decided against the row as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.change import Applied, Change, Claim, Conflict, Refused, Verdict
from quire.model.codec import dump, parse
from quire.model.event import Line
from quire.model.record import UNDO, Record, Status, with_side_fields
from quire.model.row import replace
from quire.rules import bending, children, claims, conditions, effects, ending, orders, waiting
from quire.rules.draft import Draft
from quire.rules.lines import LineKind

_NOT_WHOLE = Refused("whole", "another change of the same commit was refused, and they land together or not at all")


def commit(draft: Draft, changes: Sequence[Change]) -> list[Verdict]:
    """Decide these changes, in order; all or none of them, if one of them says so."""
    if not any(change.whole for change in changes):
        return [decide(draft, change) for change in changes]
    trial = draft.apart()
    verdicts = [decide(trial, change) for change in changes]
    if all(isinstance(verdict, Applied) for verdict in verdicts):
        draft.become(trial)
        return verdicts
    return [_NOT_WHOLE if isinstance(verdict, Applied) else verdict for verdict in verdicts]


def decide(draft: Draft, change: Change) -> Verdict:
    """Decide one change. A person is answered with the record as people see it."""
    verdict = _decided(draft, change)
    if change.worker is None and isinstance(verdict, Applied) and orders.cancelled(draft, verdict.record):
        return replace(verdict, record=orders.as_seen(draft, verdict.record))
    return verdict


def _decided(draft: Draft, change: Change) -> Verdict:
    current = draft.record(change.record_id)
    landed = False
    if change.receipts and current is not None:
        current, landed = effects.completed(draft, change, current)
    if draft.view.sealed and not (landed and change.image is None):
        return Refused("sealed", orders.sealed_text(draft.view.sealed))
    if change.image is None:
        return _beside(draft, change, current, landed=landed)
    if change.version == 0:
        return _started(draft, change, change.image, current)
    return _moved(draft, change, change.image, current)


# -- a move ----------------------------------------------------------------------------------------------------


def _moved(draft: Draft, change: Change, image: Record, row: Record | None) -> Verdict:
    """Decide over a new image, by which the holder of a record, or a person, replaces the one that is there."""
    if row is None or row.version != change.version:
        return _other_version(draft, change, row)
    if (refused := _not_permitted(draft, change, row)) is not None:
        return refused
    if (refused := effects.refused_before(draft, change)) is not None:
        return refused
    lines = list(change.lines)
    outcome = bending.bent(draft, row, with_side_fields(image, row), lines)
    if isinstance(outcome, Refused):
        return outcome
    image, as_asked = outcome
    if as_asked and change.children and (refused := children.there_already(draft, change)) is not None:
        return refused
    counted = children.counted_anew(draft, row, image, change.lines)
    if isinstance(counted, Refused):
        return counted
    image = ending.entered(row, counted)
    if change.receipts:
        image = effects.with_answers(draft, change, image, lines)
    if as_asked:
        children.born(draft, change)
        image = waiting.answered_already(draft, image, lines)
    if change.keep is not None and image.status is Status.RUNNING:
        image = claims.kept(draft, change.keep, row, image)
    after = ending.put(draft, row, image, lines, change.change_id)
    draft.woke |= change.frees
    return Applied(after, draft.now)


def _other_version(draft: Draft, change: Change, row: Record | None) -> Verdict:
    """The record is not at the version that the change replaces: this very change came before, or another one did."""
    if row is not None and draft.change_at(change.record_id, change.version + 1) == change.change_id:
        return Applied(row, draft.now, again=True)
    return Conflict(row, draft.now)


def _not_permitted(draft: Draft, change: Change, row: Record) -> Verdict | None:
    """Only the worker that holds a record moves it; nobody but a person moves one that nobody holds."""
    if change.receipts and any(receipt.open for receipt in change.receipts):
        return Refused("intent", "an intent is committed before its act, by a change of its own")
    held = row.status is Status.RUNNING
    if held and change.worker != row.worker:
        return Refused("running", f"{row.record_id!r} is running under worker {row.worker}")
    if not held and change.worker is not None:
        return Conflict(row, draft.now)
    return None


# -- a start ---------------------------------------------------------------------------------------------------


def _started(draft: Draft, change: Change, image: Record, current: Record | None) -> Verdict:
    """Let a new record come into the ledger. It may begin at once under the worker that starts it."""
    if current is not None:
        if current.started_as == image.started_as and current.workflow == image.workflow:
            return Applied(current, draft.now, again=True)
        return Refused(
            "exists",
            f"a record {image.record_id!r} of {current.workflow!r} exists already and was started with other data",
        )
    if (halt := orders.halt_of(draft, image.workflow)) is not None:
        return Refused("halted", orders.halted_text(image.workflow, halt))
    due_at = image.due_at if image.due_at is None else max(image.due_at, draft.now)
    image = replace(image, epoch=draft.epoch, created_at=draft.now, updated_at=draft.now, due_at=due_at)
    woke = draft.woke
    row = draft.put(None, image, change.lines, change.change_id)
    if change.keep is not None and change.worker is not None and claims.begins(draft, change.keep, change.worker, row):
        claim = Claim(change.change_id, change.worker, (change.keep,), 1)
        [row] = claims.take(draft, claim, change.keep, [row])
        draft.woke = woke
    return Applied(row, draft.now)


# -- beside the image ------------------------------------------------------------------------------------------


def _beside(draft: Draft, change: Change, current: Record | None, *, landed: bool) -> Verdict:
    """Receipts and lines of the holder, or what a person changes of a record while a worker holds it."""
    if current is None:
        return Conflict(None, draft.now)
    if not change.receipts and draft.has_line(change.record_id, change.change_id):
        return Applied(current, draft.now, again=True)
    if change.cancel is not None:
        return _cancel_asked(draft, change, current)
    if change.revive:
        return _revived(draft, change, current)
    if change.priority is not None:
        line = Line("prioritised", dump({"priority": change.priority} | ({"by": change.by} if change.by else {})))
        row = replace(current, priority=change.priority)
        return Applied(draft.put(current, row, [line], change.change_id), draft.now)
    if change.worker is None and change.lines and {line.kind for line in change.lines} == {LineKind.REFUSED}:
        return Applied(draft.put(current, current, change.lines, change.change_id), draft.now)
    return effects.facts(draft, change, current, landed=landed)


def _cancel_asked(draft: Draft, change: Change, current: Record) -> Verdict:
    """Keep a cancel request beside a record that runs, until it is obeyed."""
    if current.status is not Status.RUNNING:
        return Conflict(current, draft.now)
    if current.step == UNDO and change.cancel and parse(change.cancel).get("undo"):
        return Applied(current, draft.now)  # it is being undone already
    line = Line("cancel_asked", change.cancel or "{}")
    row = replace(current, cancel=orders.joined(current.cancel, change.cancel or "{}"))
    if orders.undoes(change.cancel):
        row = replace(row, epoch=draft.epoch)  # ordered after any halt: the undoing waits for its end, and no longer
    return Applied(draft.put(current, row, [line], change.change_id), draft.now)


def _revived(draft: Draft, change: Change, current: Record) -> Verdict:
    """A person takes a halt back for a record that is still under way: its holder goes on, or a takeover does.

    The epoch of such a record lies beside its image: the version, and with it the holder's next move, stays.
    """
    if not conditions.under_way(current):
        return Conflict(current, draft.now)
    if (halt := orders.halt_of(draft, current.workflow)) is not None:
        return Refused("halted", orders.halted_text(current.workflow, halt))
    if not orders.halted(draft, current):
        return Applied(current, draft.now)
    line = Line("revived", dump({"by": change.by, "epoch": change.revive}))
    row = replace(current, epoch=max(current.epoch, change.revive))
    return Applied(draft.put(current, row, [line], change.change_id), draft.now)
