"""What the lines of a record's log mean: reports, timelines, spans, run logs and ``why`` ask here, only here. Pure.

A new kind of line is a member here, with what it means, and is written in ``moves`` (or by the rule that writes it).
tests/rules/test_lines.py fails if a kind is written that is not listed, or listed and written nowhere.
"""

from __future__ import annotations

from enum import Flag, StrEnum, auto
from functools import reduce
from operator import or_


class Means(Flag):
    """What a line says of its record."""

    NOTHING = 0
    #: After it no worker holds the record.
    RELEASES = auto()
    #: After it the record is due at once.
    WAKES = auto()
    #: After it the record has ended. Exception: it is undone instead, if the line's body says so (``undo``).
    ENDS = auto()
    #: Something went wrong: an error, or the loss of a worker.
    FAILS = auto()
    #: Others write it beside a run. It does not say whether the run goes on.
    ASIDE = auto()
    #: It is written of a record that a worker holds.
    HELD = auto()
    #: It is written of a record that nobody holds.
    FREE = auto()
    #: A person says something about the record. That is no order to go on: a halted record stays as halted as it was.
    SAYS = auto()
    #: A person tries the record again, whatever was requested before its end.
    RETRIES = auto()


_RELEASES, _WAKES, _ENDS, _FAILS = Means.RELEASES, Means.WAKES, Means.ENDS, Means.FAILS
_ASIDE, _HELD, _FREE, _SAYS, _RETRIES = Means.ASIDE, Means.HELD, Means.FREE, Means.SAYS, Means.RETRIES


class LineKind(StrEnum):
    """The kinds of lines. The value is the word that the log stores."""

    means: Means

    def __new__(cls, word: str, *means: Means) -> LineKind:
        kind = str.__new__(cls, word)
        kind._value_ = word
        kind.means = reduce(or_, means, Means.NOTHING)
        return kind

    # -- a worker ----------------------------------------------------------------------------------------------
    CLAIMED = "claimed"  # a worker took the record
    MOVED = "moved"  # its step is done; whether the worker keeps the record for the next step, later lines tell
    DONE = "done", _RELEASES, _ENDS  # its last step is done
    WAITED = "waited", _RELEASES  # the step waits for something named
    ASKED = "asked", _RELEASES  # the step waits for a person
    SAVED = "saved", _HELD  # the step goes on, and its working copy is kept
    MIGRATED = "migrated"  # the step begins under newer code
    FAILED = "failed", _RELEASES, _FAILS  # a try failed; another one follows
    BROKE = "broke", _RELEASES, _ENDS, _FAILS  # a try failed; none follows
    YIELDED = "yielded", _RELEASES, _WAKES  # the worker gave the record back before its end
    UNDONE = "undone", _RELEASES, _ENDS  # all that was to be undone is
    APART = "apart"  # a suspect began to run alone
    NOTED = "noted", _HELD, _ASIDE  # the step wrote a note
    REMINDED = "reminded", _ASIDE  # nobody has answered yet: people are reminded
    ESCALATED = "escalated", _ASIDE  # nobody has answered yet: others are asked
    EXPIRED = "expired"  # nobody has answered in time

    # -- the ledger --------------------------------------------------------------------------------------------
    STARTED = "started", _WAKES  # the record came into the ledger
    WOKEN = "woken", _WAKES, _FREE  # what it waited for has come
    LOST = "lost", _RELEASES, _WAKES, _FAILS  # its worker is lost
    ORPHANED = "orphaned", _RELEASES, _WAKES  # its worker knew nothing of it
    DOUBTED = "doubted", _RELEASES  # a person is asked whether an effect happened
    FORGOTTEN = "forgotten", _ASIDE  # it was old: its data, its receipts and its earlier lines are gone
    ADOPTED = "adopted", _FREE  # its book was copied or restored: a person is asked whether it goes on

    # -- a person ----------------------------------------------------------------------------------------------
    ANSWERED = "answered", _WAKES, _FREE, _SAYS  # a question has its answer
    VOTED = "voted", _ASIDE, _FREE, _SAYS  # one of several answers that a question needs
    RESOLVED = "resolved", _WAKES, _FREE, _SAYS  # somebody said whether an effect happened
    EDITED = "edited", _FREE, _SAYS  # its data are others now
    RETRIED = "retried", _WAKES, _FREE, _RETRIES  # its step is tried again
    REWOUND = "rewound", _WAKES, _FREE, _RETRIES  # it goes on from an earlier step
    REVIVED = "revived", _WAKES, _FREE  # it goes on after a halt that was taken back
    CANCELLED = "cancelled", _RELEASES, _ENDS  # by a person, a halt, or the end of its parent
    CANCEL_ASKED = "cancel_asked", _HELD  # it is to be cancelled as soon as that can be
    SIGNALLED = "signalled", _ASIDE  # a signal came
    PRIORITISED = "prioritised", _ASIDE  # its priority is another
    REFUSED = "refused", _ASIDE  # somebody wanted to move it, and it may not go there

    # -- effects -----------------------------------------------------------------------------------------------
    EFFECT_PARKED = "effect.parked", _HELD  # it is written down, and may not act yet
    EFFECT_RELEASED = "effect.released", _ASIDE, _FREE  # people have released it
    EFFECT_DROPPED = "effect.dropped", _ASIDE  # it is not to be done: people said so, or nobody answered in time
    EFFECT_INTENDED = "effect.intended", _HELD  # it is about to happen
    EFFECT_DONE = "effect.done"  # it happened
    EFFECT_VOID = "effect.void"  # it did not happen
    EFFECT_UNDONE = "effect.undone"  # it was taken back
    EFFECT_KEPT = "effect.kept", _HELD  # its undo took nothing back, and says why
    EFFECT_TWICE = "effect.twice"  # it happened although its intent was another's by then
    EFFECT_UNCLEAR = "effect.unclear", _HELD  # nobody knows whether it happened
    EFFECT_UNFIT = "effect.unfit"  # it happened, and what it returned cannot be kept


def _kinds(means: Means) -> frozenset[LineKind]:
    return frozenset(kind for kind in LineKind if means in kind.means)


#: Sets of kinds. A log may hold kinds of a newer Quire, which are in none of them.
RELEASES = _kinds(Means.RELEASES)
WAKES = _kinds(Means.WAKES)
ENDS = _kinds(Means.ENDS)
FAILS = _kinds(Means.FAILS)
ASIDE = _kinds(Means.ASIDE)
HELD = _kinds(Means.HELD)
FREE = _kinds(Means.FREE)
SAYS = _kinds(Means.SAYS)
RETRIES = _kinds(Means.RETRIES)
#: Lines after which a record goes on. One that reads as CANCELLED after them was cancelled by a halt.
GOES_ON = (WAKES - SAYS - RELEASES) | {LineKind.CLAIMED}
