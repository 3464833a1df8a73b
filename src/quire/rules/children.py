"""Children and the fan-in of their parent: birth, turns, ends, and children that go on again. Pure.

A fan-in is a row beside the parent. A child is subtracted from it once, when it ends (``Record.counted``), and the
parent is due when the fan-in says so (protocol 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.change import Change, Refused
from quire.model.event import Line
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import Fanin
from quire.model.wait import On, load_waits
from quire.rules import moves, orders
from quire.rules.draft import Draft
from quire.workflows.fanout import met


def born(draft: Draft, change: Change) -> None:
    """Bring the fan-ins and the children of a move into the ledger with it."""
    for fanin in change.fanins:
        draft.put_fanin(fanin)
    for child in change.children:
        start = moves.start(child, draft.now)
        # Not the epoch of its parent: a halt of its own workflow that has ended since does not concern it.
        row = replace(start.image, epoch=draft.epoch, created_at=draft.now)
        if row.due_at is not None:
            row = replace(row, due_at=max(row.due_at, draft.now))
        draft.put(None, row, start.lines, change.change_id)


def there_already(draft: Draft, change: Change) -> Refused | None:
    """Refuse a move whose child has the id of a record that exists."""
    for child in change.children:
        if draft.record(child.record_id) is not None:
            return Refused("exists", f"a child {child.record_id!r} cannot start: a record of that id exists")
    return None


# -- ends ------------------------------------------------------------------------------------------------------


def ended(draft: Draft, child: Record, change_id: str) -> None:
    """Subtract an ended child from its fan-in: others have their turn, and the parent may be due."""
    assert child.parent_id is not None
    assert child.generation is not None
    fanin = draft.fanin(child.parent_id, child.generation)
    if fanin is None:
        return
    fanin = replace(
        fanin,
        left=fanin.left - 1,
        failed=fanin.failed + (child.status is not Status.DONE),
        # A child that ends before its turn was not under way.
        active=max(0, fanin.active - _had_its_turn(child, fanin)),
    )
    draft.put_fanin(fanin := _give_turns(draft, fanin, change_id))
    parent = draft.record(fanin.parent_id)
    if parent is None or not met(fanin) or parent.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
        return
    if orders.held_back(draft, parent):
        return
    if _waits_for(parent, fanin):
        go = moves.wake(parent, draft.now, "", "its children")
        draft.put(parent, go.image, go.lines, change_id)


def _give_turns(draft: Draft, fanin: Fanin, change_id: str) -> Fanin:
    """Let the next children begin, as far as the fan-in's limit has room."""
    while fanin.limit is not None and fanin.next_place < fanin.total and fanin.active < fanin.limit:
        waiting = draft.record(f"{fanin.prefix}{fanin.next_place}")
        if waiting is None:
            break
        fanin = replace(fanin, next_place=fanin.next_place + 1)
        if waiting.status is Status.WAITING and not fanin.abandoned:
            go = moves.turn(waiting, draft.now)
            draft.put(waiting, go.image, go.lines, change_id)
        if not waiting.counted:  # it may have ended before its turn, and may undo what it did since
            fanin = replace(fanin, active=fanin.active + 1)
    return fanin


def _had_its_turn(child: Record, fanin: Fanin) -> bool:
    return child.place is None or child.place < fanin.next_place


def _waits_for(parent: Record, fanin: Fanin) -> bool:
    return any(wait.on is On.CHILDREN and wait.generation == fanin.generation for wait in load_waits(parent.waits))


def counts(lines: Sequence[Line]) -> bool:
    """Return whether a child with these lines has ended for its parent, and is subtracted from its fan-in.

    What a halt cancelled has not: it may be brought back, and its parent waits for it (protocol 15). When the parent
    goes on or ends without it, the sweep cancels it for good.
    """
    return not orders.by_halt(lines)


def abandon(draft: Draft, parent_id: str, key: str | None) -> None:
    """Leave the open children of a parent that goes on, or ends, without them: the sweep cancels them."""
    for fanin in draft.fanins_of(parent_id):
        if fanin.left > 0 and not fanin.abandoned and (key is None or fanin.key == key):
            draft.put_fanin(replace(fanin, abandoned=True))
            draft.woke = True  # a worker that rests looks after them at once


# -- children that a person moves after their end --------------------------------------------------------------


def counted_anew(draft: Draft, row: Record, image: Record, lines: Sequence[Line]) -> Record | Refused:
    """Count a child again that a person moves after it was counted. Return the image with its mark, or a refusal.

    ``lines``: what the person does, as the change says it.
    """
    if row.status is Status.RUNNING:
        return image
    if image.ended:
        if row.ended and row.status is not image.status:
            _recount(draft, row, image)
        return image
    undoes = image.step == UNDO
    if not row.ended and (not row.counted or undoes):
        return image
    refused = _uncount(draft, row)
    if refused is None:
        return replace(image, counted=False)
    return image if undoes else refused  # what it did may be undone whatever its parent made of it


def _awaited(draft: Draft, child: Record) -> Fanin | None:
    """Return the fan-in of an ended child whose parent still waits for it."""
    if child.parent_id is None or child.generation is None:
        return None
    fanin = draft.fanin(child.parent_id, child.generation)
    parent = draft.record(child.parent_id)
    if fanin is None or fanin.abandoned or parent is None:
        return None
    if parent.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
        return None
    return fanin if _waits_for(parent, fanin) else None


def _recount(draft: Draft, child: Record, image: Record) -> None:
    """An ended child was moved by hand to another end: it is counted, but it may have failed no longer."""
    if child.counted and (fanin := _awaited(draft, child)) is not None:
        failed = fanin.failed + (image.status is not Status.DONE) - (child.status is not Status.DONE)
        draft.put_fanin(replace(fanin, failed=failed))


def _uncount(draft: Draft, child: Record) -> Refused | None:
    """An ended child that goes on again counts again, while its parent still waits for it."""
    if child.parent_id is None or child.generation is None:
        return None
    if not child.counted:  # a halt cancelled it with its parent, which may have ended or undone all since
        known = draft.fanin(child.parent_id, child.generation)
        if known is None or not known.abandoned:
            return None
    # One that undoes what it did and is still counted was let go by its parent before that.
    fanin = _awaited(draft, child) if child.ended else None
    if fanin is None:
        return Refused(
            "parent",
            f"{child.record_id!r} cannot go on again: its parent has gone on without it; retry the parent, which "
            f"does its failed children again (quire retry {child.parent_id})",
        )
    draft.put_fanin(
        replace(
            fanin,
            left=fanin.left + 1,
            failed=fanin.failed - (child.status is not Status.DONE),
            active=fanin.active + _had_its_turn(child, fanin),
        )
    )
    return None
