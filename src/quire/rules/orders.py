"""What was ordered, and what an order leaves behind until it is obeyed. Pure.

A *halt* of everything or of one workflow raises the ledger's epoch. The records of older epochs are *halted*: they are
CANCELLED by definition, unless they run or an effect of theirs is in doubt. *Floor* is the first epoch that is not
halted.

An order that was acknowledged is a fact. A record that runs, or that has an effect in doubt, cannot be cancelled at
once. Then the *cancel request* is kept beside it (``Record.cancel``), through takeovers, doubts and halts. The request
goes away when it was obeyed, when an end of the record came first, or when a later order of a person takes its place.

``order_table`` says what each order comes to in each state; ``bending`` applies these rules to a move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.errors import Moved
from quire.model.change import Order
from quire.model.codec import dump, parse
from quire.model.event import Event, Line
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Control
from quire.rules import adoption, conditions, returning
from quire.rules.draft import Draft
from quire.rules.lines import GOES_ON, RETRIES, SAYS, LineKind

#: The line of a record that a halt cancelled, whoever writes it down: by this ``resume --cancelled`` knows it.
HALTED = Line("cancelled", dump({"reason": "halted"}))


def last_kind(lines: Sequence[Line]) -> str:
    return lines[-1].kind if lines else ""


# -- what was ordered ------------------------------------------------------------------------------------------


def order(draft: Draft, order: Order, known: Iterable[Control]) -> None:
    """Halt, pause or resume: one small commit, whatever the number of records (protocol 15). ``known``: all orders."""
    if order.word == "returned":
        returning.end(draft, order)
        return
    control = draft.control(order.scope) or Control(order.scope, False, 0, False, "", 0.0, "")
    control = replace(control, by=order.by, at=draft.now, reason=order.reason)
    if order.word == "halt":
        draft.epoch += 1
        control = replace(control, halted=True, floor=draft.epoch)
        draft.woke = True  # workers that wait for work hear of it, and end what they run
    elif order.word == "pause":
        control = replace(control, paused=True)
    elif order.word == "resume":
        if control.halted:
            draft.epoch += 1
        control = replace(control, halted=False, paused=False)
        draft.woke = True
    draft.controls[order.scope] = control
    draft.ordered.clear()
    if order.cancelled:
        returning.begin(draft, order, known)


def _ordered(draft: Draft, workflow: str) -> tuple[Control | None, bool, int]:
    """Return the halt of this workflow, whether it is paused, and its floor."""
    found = draft.ordered.get(workflow)
    if found is None:
        controls = [c for scope in (EVERYWHERE, workflow) if (c := draft.control(scope)) is not None]
        halt = next((control for control in controls if control.halted), None)
        floor = max((control.floor for control in controls), default=0)
        found = draft.ordered[workflow] = (halt, any(control.paused for control in controls), floor)
    return found


def halt_of(draft: Draft, workflow: str) -> Control | None:
    """Return the order that keeps work of this workflow from starting, if there is one."""
    return _ordered(draft, workflow)[0]


def paused(draft: Draft, workflow: str) -> bool:
    return _ordered(draft, workflow)[1]


def floor(draft: Draft, workflow: str) -> int:
    """Return the first epoch of this workflow that is not halted."""
    return _ordered(draft, workflow)[2]


def halted(draft: Draft, record: Record) -> bool:
    """Return whether the record is of a halted epoch, also after the halt itself was taken back."""
    return record.epoch < _ordered(draft, record.workflow)[2]


def held_back(draft: Draft, record: Record) -> bool:
    """Return whether a halt, which stands or stood, keeps this record from going on."""
    halt, _, first = _ordered(draft, record.workflow)
    return halt is not None or record.epoch < first


def cancelled(draft: Draft, record: Record) -> bool:
    """Return whether a halt has cancelled the record, written down or not."""
    return not record.ended and halted(draft, record) and not conditions.under_way(record)


def as_seen(draft: Draft, record: Record) -> Record:
    """Return the record as people see it: what a halt has cancelled is CANCELLED before that is written down."""
    return replace(record, status=Status.CANCELLED, due_at=None) if cancelled(draft, record) else record


def open_to_work(draft: Draft) -> None:
    """Raise ``Moved`` if the ledger is sealed: a worker that claims or beats learns where the records went."""
    if draft.view.sealed:
        raise Moved(sealed_text(draft.view.sealed))


def sealed_text(where: str) -> str:
    return f"this ledger is sealed; its records are at {where}"


def halted_text(workflow: str, control: Control | None) -> str:
    who = f" by {control.by}" if control is not None and control.by else ""
    why = f" ({control.reason})" if control is not None and control.reason else ""
    return f"{workflow!r} is halted{who}{why}; nothing starts until somebody resumes it (quire resume)"


# -- halts -----------------------------------------------------------------------------------------------------


def by_halt(lines: Iterable[Line]) -> bool:
    """Return whether a halt cancels the record that these lines are about."""
    return HALTED in lines


def cancelled_by_halt(log: Sequence[Event]) -> bool:
    """Return whether a halt cancelled the record of this log, which reads as CANCELLED.

    Lines after its end that do not move it, such as an edit of its data, change nothing. If the record went on after
    its last end, a halt cancelled it by definition, and no sweep has written that down yet.
    """
    for event in reversed(log):
        if event.kind in GOES_ON:
            return True
        if event.kind in (LineKind.CANCELLED, LineKind.UNDONE):
            body = parse(event.body)
            if body.get("undo"):
                return True  # it was to be undone, and went on with that
            # Only a person's cancelling names the step. An older release added to the halt's reason.
            return (
                event.kind == LineKind.CANCELLED and "step" not in body and str(body.get("reason")).startswith("halted")
            )
    return False


def says(lines: Sequence[Line]) -> bool:
    """Return whether a person only says something about the record: an answer, whether an effect happened, new data."""
    return last_kind(lines) in SAYS


def edits(lines: Sequence[Line]) -> bool:
    """Return whether a person gives the record other data. An ended record stays as ended as it was."""
    return last_kind(lines) == LineKind.EDITED


def cancels(lines: Sequence[Line]) -> bool:
    """Return whether somebody cancels the record, or wants it undone."""
    return last_kind(lines) == LineKind.CANCELLED and not by_halt(lines)


def revives(lines: Sequence[Line]) -> bool:
    """Return whether the record goes on because a halt was taken back."""
    return last_kind(lines) == LineKind.REVIVED


def ends(lines: Sequence[Line]) -> bool:
    """Return whether an ended image with these lines is an end for good: the record's children are let go by it."""
    return not by_halt(lines) and not edits(lines)


# -- requests to cancel ----------------------------------------------------------------------------------------


def cancel_request(by: str, reason: str, *, undo: bool) -> str:
    """Return the text of ``Record.cancel``."""
    return dump({"by": by, "reason": reason, "undo": undo})


def request_of(lines: Sequence[Line]) -> str:
    """Return the request behind the lines of a person's cancelling, for a record that cannot obey yet."""
    body = parse(lines[-1].body)
    return cancel_request(str(body.get("by", "")), str(body.get("reason", "")), undo=bool(body.get("undo")))


def undoes(request: str | None) -> bool:
    """Return whether the request is that what was done is taken back."""
    return request is not None and bool(parse(request).get("undo"))


def joined(known: str | None, new: str) -> str:
    """Return one request for two in a row: the later one, but what was to be undone still is."""
    return dump(parse(new) | {"undo": True}) if undoes(known) else new


def may_be_obeyed(record: Record) -> bool:
    """Return whether the request beside a record that nobody holds can be obeyed now.

    Not before every doubt is resolved, nor while a record of a copied book asks whether it goes on at all.
    """
    waits = record.status is Status.RUNNING or record.ended
    return record.cancel is not None and not record.open_intents and not waits and adoption.asked(record) is None


def gives_way(current: Record, image: Record, request: str) -> bool:
    """Return whether the holder's move becomes the stop that somebody asked for (protocol 6).

    An end that came first stands. Exception: what was done can be taken back after any end. An undoing is stopped by a
    request that came while it ran, unless it has come to its end.
    """
    if only_stops(image):
        return True
    if current.step == UNDO:
        return not image.ended
    return image.step != UNDO and (not image.ended or undoes(request))


def only_stops(image: Record) -> bool:
    """Whether the holder ends its pass because it was asked to, and not by an end of its own, as that of an undoing."""
    return image.status is Status.CANCELLED and (image.step != UNDO or image.ending is not None)


def request_left(current: Record, image: Record, lines: Sequence[Line]) -> str | None:
    """Return the request that stands after this move.

    A halt does not obey it: the record would go on without it when the halt is taken back. A person who tries the
    record again after its end takes the request back.
    """
    if image.cancel is None:
        return None
    if image.ended:
        return image.cancel if not ends(lines) else None
    if image.step == UNDO and current.step != UNDO:
        return None
    return image.cancel


def taken_back(lines: Sequence[Line]) -> bool:
    """Return whether a person wants the record tried again, whatever was requested before its end."""
    return last_kind(lines) in RETRIES
