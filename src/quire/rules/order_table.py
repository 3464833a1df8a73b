"""What each order of a person does to a record in each state: one table. Pure.

``comes_to`` is the table. The conformance suite walks every cell of it on every ledger, and ``docs/orders.md`` is made
of it. The ledgers do not ask it: they decide by the rules of this package, and the table says what these must come to.

``at_last`` is what becomes of the record after everything in the order's way has gone: whoever held the record has
given it back or was taken over, each effect in doubt was said not to have happened, and a halt was taken back with
``resume --cancelled``. Exception: the orders ``halt`` and ``resume`` are followed by no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from quire.model.record import ENDED, Status


class Verb(StrEnum):
    """The orders of people."""

    CANCEL = "cancel"
    UNDO = "cancel --undo"
    HALT = "halt"
    PAUSE = "pause"
    RESUME = "resume"
    RESUME_CANCELLED = "resume --cancelled"
    RESOLVE = "resolve"
    ANSWER = "answer"
    MOVE = "move"
    EDIT = "edit"
    RETRY = "retry"
    SIGNAL = "signal"
    PRIORITY = "priority"


class Lease(StrEnum):
    """Who holds the record."""

    NOBODY = "nobody"
    RUNS = "a worker whose lease runs"
    RAN_OUT = "a worker whose lease ran out, not closed yet"


class Family(StrEnum):
    ALONE = "alone"
    PARENT = "it has open children"
    CHILD = "its parent waits for it"


class Answer(StrEnum):
    """The answer that the person gets."""

    #: The order had its whole effect at once.
    DONE = "done"
    #: It was acknowledged, and is kept until it has its effect.
    KEPT = "kept"
    #: It is refused by a sentence that names why.
    REFUSED = "refused"


class State(NamedTuple):
    #: As the ledger stores it: what a halt cancels by definition has the status that it had before.
    status: Status
    lease: Lease
    #: An effect of the record is in doubt, or may still be under way.
    doubt: bool
    halted: bool
    family: Family


class Comes(NamedTuple):
    answer: Answer
    #: What the record reads as right after the order.
    reads: Status
    at_last: str


#: Words for what becomes of a record that does not end. For a record that ends, its status says it.
GOES_ON, WAITS, ASKS, IS_UNDONE = "goes on", "waits on", "asks on", "is undone"

_R, _W, _N = Status.RUNNING, Status.WAITING, Status.NEEDS_APPROVAL


def states() -> Iterator[State]:
    """Every state that a record can be in.

    Only a RUNNING record is held. An ended record has no effect in doubt and no open child: it has let them go.
    """
    for status, lease, doubt, halted, family in product(Status, Lease, (False, True), (False, True), Family):
        held = lease is not Lease.NOBODY
        if held != (status is _R) or (status in ENDED and (doubt or family is Family.PARENT)):
            continue
        yield State(status, lease, doubt, halted, family)


def comes_to(verb: Verb, state: State) -> Comes:
    """What this order does to a record in this state."""
    return _TABLE[verb](state)


def reads(state: State) -> Status:
    """What people see: a halt cancels what neither runs nor asks about an effect in doubt."""
    asks = state.status is _N and state.doubt
    return (
        Status.CANCELLED if state.halted and state.status is not _R and not _over(state) and not asks else state.status
    )


def _over(state: State) -> bool:
    return state.status in ENDED


def _by_itself(state: State) -> str:
    """What becomes of the record without any order."""
    if _over(state):
        return state.status
    if state.halted or state.status is Status.PENDING or state.status is _R or (state.status is _N and state.doubt):
        return GOES_ON
    return WAITS if state.status is _W else ASKS


def _same(state: State, answer: Answer = Answer.DONE) -> Comes:
    """The order changes neither what the record reads as, nor what becomes of it."""
    return Comes(answer, reads(state), _by_itself(state))


def _refused(state: State) -> Comes:
    return _same(state, Answer.REFUSED)


def _goes_on(state: State) -> Comes:
    """The record is due at once."""
    return Comes(Answer.DONE, Status.PENDING, GOES_ON)


def _cancel(state: State) -> Comes:
    if state.status in (Status.DONE, Status.CANCELLED):
        return _refused(state)
    if state.status is _R:
        return Comes(Answer.KEPT, _R, Status.CANCELLED)
    if state.doubt:
        return Comes(Answer.KEPT, _N, Status.CANCELLED)
    return Comes(Answer.DONE, Status.CANCELLED, Status.CANCELLED)


def _undo(state: State) -> Comes:
    if state.status is _R:
        return Comes(Answer.KEPT, _R, IS_UNDONE)
    if state.halted and not (state.status is _N and state.doubt):
        return _refused(state)
    if state.doubt:
        return Comes(Answer.KEPT, _N, IS_UNDONE)
    return Comes(Answer.DONE, Status.PENDING, IS_UNDONE)


def _halt(state: State) -> Comes:
    return Comes(Answer.DONE, reads(state._replace(halted=True)), state.status if _over(state) else Status.CANCELLED)


def _resume(state: State) -> Comes:
    if state.halted and not _over(state):
        return Comes(Answer.DONE, reads(state), Status.CANCELLED)
    return _same(state)


def _resume_cancelled(state: State) -> Comes:
    brought_back = state.halted and state.status in (_W, _N) and not (state.status is _N and state.doubt)
    return Comes(Answer.DONE, Status.PENDING if brought_back else state.status, _by_itself(state))


def _resolve(state: State) -> Comes:
    if state.status is not _N or not state.doubt:
        return _refused(state)
    return Comes(Answer.DONE, Status.CANCELLED if state.halted else Status.PENDING, GOES_ON)


def _answer(state: State) -> Comes:
    return _goes_on(state) if state.status is _N and not (state.doubt or state.halted) else _refused(state)


def _move(state: State) -> Comes:
    still = state.status in (_R, Status.DONE, Status.CANCELLED)
    return _refused(state) if still or state.doubt or state.halted else _goes_on(state)


def _edit(state: State) -> Comes:
    if state.status in (_R, Status.DONE):
        return _refused(state)
    asks_anew = state.status is _N and not (state.doubt or state.halted)
    return _goes_on(state) if asks_anew else _same(state)


def _retry(state: State) -> Comes:
    tries = state.status in (Status.PENDING, Status.ERROR, Status.CANCELLED) and not state.halted
    return _goes_on(state) if tries else _refused(state)


def _signal(state: State) -> Comes:
    if state.halted or _over(state):
        return _refused(state)
    return _goes_on(state) if state.status is _W else _same(state, Answer.KEPT)


_TABLE: dict[Verb, Callable[[State], Comes]] = {
    Verb.CANCEL: _cancel,
    Verb.UNDO: _undo,
    Verb.HALT: _halt,
    Verb.PAUSE: _same,
    Verb.RESUME: _resume,
    Verb.RESUME_CANCELLED: _resume_cancelled,
    Verb.RESOLVE: _resolve,
    Verb.ANSWER: _answer,
    Verb.MOVE: _move,
    Verb.EDIT: _edit,
    Verb.RETRY: _retry,
    Verb.SIGNAL: _signal,
    Verb.PRIORITY: _same,
}
