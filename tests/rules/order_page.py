"""The page ``docs/orders.md``, made of the table of orders: ``python -m tests.rules.order_page`` writes it anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from pathlib import Path

from quire.model.record import Status
from quire.rules.order_table import Family, Lease, State, Verb, comes_to, reads, states

PAGE = Path(__file__).parents[2] / "docs" / "orders.md"

_SAME, _NATURAL = "as before", "as without the order"

_HEAD = """# What each order does

An order of a person that was acknowledged is a fact. It is kept until it has its whole effect. If it cannot have one,
it is refused at once, by a sentence that names why. This page says what each order does to a record in each state. It
is made of one table (`quire/rules/order_table.py`). A test gives every order to a record in every state, on every
ledger.

- **The record**: its status, before the halt if there is one. The lease is that of the worker that holds the record.
- **In doubt**: an effect of the record is in doubt, or may still be under way. An ended record has none.
- **Halted**: the record's workflow, or the whole ledger, is halted.
- **Answer**: *done* at once; *kept*, which is acknowledged, and obeyed when what is in its way has gone; or *refused*,
  and nothing has changed.
- **It reads**: the status that people see right after the order.
- **At last**: what becomes of the record when nothing is in the way any more. Whoever held it has given it back or was
  taken over, each effect in doubt was said not to have happened, and a halt was taken back by `resume --cancelled`.

No row depends on whether the record has open children, or is a child that its parent waits for. What becomes of the
others follows from the record. Its end counts for the parent, once. Its end, its undoing and a move let its children
go. What a halt cancels does neither. An ended record has no open child.

While a wish to cancel stands, no effect begins. A wish goes away when it is obeyed, when the record came to an end of
its own before (its effects can be undone all the same), or when a person retries the record after its end.
"""

_NOTES = {
    Verb.CANCEL: "A record that a halt cancelled can be cancelled for good: then no resume brings it back. A record in "
    "ERROR can be cancelled, too: it no longer counts among what is stuck.",
    Verb.UNDO: "A record that is being undone can only be stopped (`cancel`). A retry then goes on with the undoing.",
    Verb.HALT: "Nobody takes this halt back here, so that the last column shows what it comes to.",
    Verb.RESUME: "It ends the halt, and brings nothing back.",
    Verb.RESUME_CANCELLED: "It also brings back what the halt cancelled. A record that still runs goes on under its "
    "worker, or under the one that takes it over.",
    Verb.RESOLVE: "To say what happened is no order to go on: under a halt the record becomes CANCELLED as others did.",
    Verb.MOVE: "The record goes on at the step that the person names.",
    Verb.EDIT: "A record that asks a question asks anew. A record that a halt cancelled keeps what it waits for.",
    Verb.RETRY: "A PENDING record is retried if it backs off. Without a back-off the retry is refused.",
    Verb.SIGNAL: "The record here waits for this very signal. Others keep the signal until they do.",
    Verb.PAUSE: "Nothing is claimed until somebody resumes; what runs goes on.",
}

#: A record's status, and for RUNNING also the lease.
_RECORDS = [(status, lease) for status in Status for lease in Lease if (lease is Lease.NOBODY) != (status == "RUNNING")]
_Box = tuple[frozenset[tuple[Status, Lease]], frozenset[bool], frozenset[bool]]
_ALL: _Box = (frozenset(_RECORDS), frozenset({False, True}), frozenset({False, True}))


def _in(box: _Box) -> Iterator[State]:
    """The possible states in these ranges of each column."""
    possible = set(states())
    for (status, lease), doubt, halted, family in product(*box, Family):
        state = State(status, lease, doubt, halted, family)
        if state in possible:
            yield state


def folded(result: Callable[[State], Hashable]) -> Iterator[tuple[_Box, Hashable]]:
    """Rows that are as large as they can be. All possible states of a row have its result; together they are all."""
    covered: set[State] = set()
    for state in states():
        if state in covered:
            continue
        wanted = result(state)
        box: _Box = (frozenset({(state.status, state.lease)}), frozenset({state.doubt}), frozenset({state.halted}))
        for place in (2, 1, 0):
            for value in sorted(_ALL[place], key=lambda given: str(given)):
                wider: _Box = tuple(  # type: ignore[assignment]
                    side | {value} if at == place else side for at, side in enumerate(box)
                )
                more = set(_in(wider)) - set(_in(box))
                if more - covered and all(result(found) == wanted for found in more):
                    box = wider
        covered |= set(_in(box))
        yield box, wanted


def _records(side: frozenset[tuple[Status, Lease]]) -> str:
    if len(side) == len(_RECORDS):
        return "any"
    words = []
    for status in Status:
        leases = [lease for found, lease in side if found is status]
        if len(leases) == 1 and status is Status.RUNNING:
            words.append("RUNNING, its lease runs" if leases[0] is Lease.RUNS else "RUNNING, its lease ran out")
        elif leases:
            words.append(status)
    return ", ".join(words)


def _yes_no(side: frozenset[bool]) -> str:
    return "any" if len(side) == 2 else "yes" if True in side else "no"


def _told(verb: Verb) -> Callable[[State], tuple[str, str, str]]:
    def told(state: State) -> tuple[str, str, str]:
        answer, seen, at_last = comes_to(verb, state)
        natural = comes_to(Verb.PRIORITY, state).at_last
        # After a halt, or the plain end of one, the record is compared with what it would come to without both.
        apart = verb is Verb.HALT or (verb is Verb.RESUME and state.halted)
        same = at_last == natural and (not apart or state.status == natural)
        return answer, _SAME if seen is reads(state) else seen, _NATURAL if same else at_last

    return told


def _table(head: Sequence[str], told: Callable[[State], Hashable]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for (records, doubts, halts), result in folded(told):
        assert isinstance(result, tuple)
        lines.append(f"| {' | '.join([_records(records), _yes_no(doubts), _yes_no(halts), *map(str, result)])} |")
    return "\n".join(lines)


def page() -> str:
    """The text of the page."""
    columns = ["the record", "in doubt", "halted"]

    def natural(state: State) -> tuple[str, str]:
        _, seen, at_last = comes_to(Verb.PRIORITY, state)
        return ("its status" if seen is state.status else seen), ("stays as it ended" if seen == at_last else at_last)

    parts = [_HEAD, "## Without an order\n", _table([*columns, "it reads", "at last"], natural) + "\n"]
    for verb in Verb:
        note = f"{_NOTES[verb]}\n\n" if verb in _NOTES else ""
        parts.append(f"## {verb}\n\n{note}{_table([*columns, 'answer', 'it reads', 'at last'], _told(verb))}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
