"""What orders leave behind until they are obeyed: the wish to cancel beside a record, the line of a halt. Pure.

An order that was acknowledged is a fact. A record that runs, or that has an effect in doubt, cannot obey at once: then
the *wish* is kept beside it (``Record.cancel``), through takeovers, doubts and halts. It goes away when it was obeyed,
when an end of the record came first, or when a later order of a person takes its place. ``order_table`` says what each
order comes to in each state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.model.codec import dump, parse
from quire.model.event import Event, Line
from quire.model.record import UNDO, Record, Status
from quire.model.side import EVERYWHERE, Control
from quire.rules import adoption

#: The line of a record that a halt cancelled, whoever writes it down: by this ``resume --cancelled`` knows it.
HALTED = Line("cancelled", dump({"reason": "halted"}))

#: Lines after which a record goes on: one that reads as CANCELLED after them was cancelled by a halt.
_GOES_ON = frozenset({"started", "retried", "rewound", "revived", "claimed", "woken"})
#: What people say about a record without an order to go on: it stays as halted as it was.
_SAYINGS = frozenset({"answered", "voted", "resolved", "edited"})
#: By these a person takes an earlier wish to cancel back.
_TRIES_AGAIN = frozenset({"retried", "rewound"})


def last_kind(lines: Sequence[Line]) -> str:
    return lines[-1].kind if lines else ""


# -- halts ---------------------------------------------------------------------------------------------------------


def by_halt(lines: Iterable[Line]) -> bool:
    """Whether a halt cancels the record that these lines are about."""
    return HALTED in lines


def outdated(record: Record, controls: Iterable[Control]) -> bool:
    """Whether the record is of an epoch that was halted. Only a person takes that back."""
    return any(control.scope in (EVERYWHERE, record.workflow) and record.epoch < control.floor for control in controls)


def cancelled_by_halt(log: Sequence[Event]) -> bool:
    """Whether a halt cancelled the record of this log, which reads as CANCELLED.

    What was told after its end, such as an edit of its data, changes nothing. If the record went on after its last end,
    a halt cancelled it by definition, and no sweep has written that down yet.
    """
    for event in reversed(log):
        if event.kind in _GOES_ON:
            return True
        if event.kind in ("cancelled", "undone"):
            told = parse(event.body)
            if told.get("undo"):
                return True  # it was to be undone, and went on with that
            # Only a person's cancelling names the step. An older release added to the halt's reason.
            return event.kind == "cancelled" and "step" not in told and str(told.get("reason")).startswith("halted")
    return False


def says(lines: Sequence[Line]) -> bool:
    """Whether a person only says something about the record: an answer, whether an effect happened, new data."""
    return last_kind(lines) in _SAYINGS


def edits(lines: Sequence[Line]) -> bool:
    """Whether a person gives the record other data. An ended record stays as ended as it was."""
    return last_kind(lines) == "edited"


def cancels(lines: Sequence[Line]) -> bool:
    """Whether somebody cancels the record, or wants it undone."""
    return last_kind(lines) == "cancelled" and not by_halt(lines)


def ends(lines: Sequence[Line]) -> bool:
    """Whether an ended image with these lines is an end for good: the record's children are let go by it."""
    return not by_halt(lines) and not edits(lines)


def under_way(record: Record) -> bool:
    """Whether a halt leaves the record as it is for now: it runs, or asks about an effect in doubt."""
    return record.status is Status.RUNNING or in_doubt(record)


def in_doubt(record: Record) -> bool:
    return record.status is Status.NEEDS_APPROVAL and record.open_intents > 0


# -- the wish to cancel --------------------------------------------------------------------------------------------


def wish(by: str, reason: str, *, undo: bool) -> str:
    """The text of ``Record.cancel``."""
    return dump({"by": by, "reason": reason, "undo": undo})


def wish_of(lines: Sequence[Line]) -> str:
    """The wish behind the lines of a person's cancelling, for a record that cannot obey yet."""
    told = parse(lines[-1].body)
    return wish(str(told.get("by", "")), str(told.get("reason", "")), undo=bool(told.get("undo")))


def undoes(wished: str | None) -> bool:
    """Whether somebody wishes that what was done is taken back."""
    return wished is not None and bool(parse(wished).get("undo"))


def joined(known: str | None, new: str) -> str:
    """Two wishes in a row: the later one, but what was to be undone still is."""
    return dump(parse(new) | {"undo": True}) if undoes(known) else new


def may_be_obeyed(record: Record) -> bool:
    """Whether a wish beside a record that nobody holds can be obeyed now.

    Not before every doubt is resolved, nor while a record of a copied book asks whether it goes on at all.
    """
    waits = record.status is Status.RUNNING or record.ended
    return record.cancel is not None and not record.open_intents and not waits and adoption.asked(record) is None


def gives_way(current: Record, image: Record, wished: str) -> bool:
    """Whether the holder's move becomes the stop that somebody wished for (protocol 6).

    An end that came first stands. Exception: what was done can be taken back after any end. An undoing is stopped by a
    wish that came while it ran, unless it has come to its end.
    """
    if only_stops(image):
        return True
    if current.step == UNDO:
        return not image.ended
    return image.step != UNDO and (not image.ended or undoes(wished))


def only_stops(image: Record) -> bool:
    """Whether the holder was told to stop, and does: it did not come to an end of its own, as that of an undoing."""
    return image.status is Status.CANCELLED and (image.step != UNDO or image.ending is not None)


def left_of_wish(current: Record, image: Record, lines: Sequence[Line]) -> str | None:
    """The wish that stands after this move.

    A halt does not obey it: the record would go on without it when the halt is taken back. A person who tries the
    record again after its end takes the wish back.
    """
    if image.cancel is None:
        return None
    if image.ended:
        return image.cancel if not ends(lines) else None
    if image.step == UNDO and current.step != UNDO:
        return None
    return image.cancel


def taken_back(lines: Sequence[Line]) -> bool:
    """Whether a person wants the record tried again, whatever somebody wished for it before its end."""
    return last_kind(lines) in _TRIES_AGAIN
