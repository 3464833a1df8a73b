"""Deliberate breakages: each replaces one rule of the engine by one that is wrong. The simulation must find them all.

Some are defects that the engine had, as they were. A breakage that nobody finds says that the checker is blind there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from quire.model.change import Applied
from quire.model.record import UNDO, Status
from quire.model.row import replace


class Breakage(NamedTuple):
    name: str
    #: What is wrong then.
    wrong: str
    #: The rule that is replaced: ``module:name``.
    rule: str
    #: Makes the wrong rule of the right one.
    makes: Callable[[Callable[..., Any]], Callable[..., Any]]


Rule = Callable[..., Any]


def _always(value: Any) -> Callable[[Rule], Rule]:
    """A rule that answers the same whatever it is asked."""
    return lambda right: lambda *args, **kwargs: value


def _epoch_of_the_parent(right: Rule) -> Rule:
    def born(draft: Any, change: Any) -> None:
        right(draft, change)
        for child in change.children:
            row = draft.records[child.record_id]
            draft.records[child.record_id] = replace(row, epoch=draft.record(row.parent_id).epoch)

    return born


def _loss_is_a_try(right: Rule) -> Rule:
    def lose(record: Any, now: float, why: str) -> Any:
        go = right(record, now, why)
        attempt = record.attempt + 1
        image = replace(go.image, attempt=attempt, losses=0)
        if attempt >= 3:
            image = replace(image, status=Status.ERROR, due_at=None, last_error="its worker was lost 3 times")
        return replace(go, image=image)

    return lose


def _nothing_is_taken_back(right: Rule) -> Rule:
    return lambda draft, change, current: Applied(current, draft.now)


def _over_a_wish(right: Rule) -> Rule:
    return lambda draft, row, change: right(draft, replace(row, cancel=None), change)


def _under_a_halt(right: Rule) -> Rule:
    def may_begin(draft: Any, row: Any, change: Any) -> Any:
        refused = right(draft, row, change)
        return None if refused is not None and refused.code == "halted" else refused

    return may_begin


def _waits_for_what_has_come(right: Rule) -> Rule:
    return lambda draft, image, lines: image


def _stays_with_the_ledger(right: Rule) -> Rule:
    def take(draft: Any, signal: Any, wait: Any, record: Any) -> None:
        right(draft, signal, wait, record)
        draft.signals[signal.signal_id] = signal

    return take


def _no_floor(right: Rule) -> Rule:
    def order(draft: Any, order: Any, known: Any) -> None:
        right(draft, order, known)
        for scope, control in draft.controls.items():
            draft.controls[scope] = replace(control, floor=0)

    return order


def _the_other_way_round(right: Rule) -> Rule:
    return lambda receipts: list(reversed(right(receipts)))


def _no_descendants(right: Rule) -> Rule:
    async def descendants(hold: Any, record_id: str) -> list[Any]:
        return []

    return descendants


def _ended_by_itself(right: Rule) -> Rule:
    async def ended(hold: Any, intent: Any) -> bool:
        return True

    return ended


def _over_a_doubt(right: Rule) -> Rule:
    return lambda draft, current, outcome, lines: outcome


def _no_turn(right: Rule) -> Rule:
    return lambda draft, fanin, change_id: fanin


def _all_that_the_worker_has(right: Rule) -> Rule:
    return lambda draft, slot, leaving=None: slot.free


def _is_now(right: Rule) -> Rule:
    def hear_time(lease: Any, now: float, asked: float) -> None:
        lease.offset = now - lease._clock.boottime()

    return hear_time


def _without_undo(right: Rule) -> Rule:
    return lambda record, now, reason, undo, by="": right(record, now, reason, False, by)


def _without_cap(right: Rule) -> Rule:
    return lambda flow: [replace(slot, workflow_cap=None) if slot.step == UNDO else slot for slot in right(flow)]


BREAKAGES = (
    # Defects that the engine had.
    Breakage(
        "a wish over a doubt is dropped",
        "`cancel --undo` of a record with an effect in doubt is answered well and forgotten.",
        "quire.rules.orders:request_of",
        _always(None),
    ),
    Breakage(
        "a halted child counts",
        "A child that a halt cancels counts for its parent as failed, also if the halt holds the parent as well.",
        "quire.rules.children:counts",
        _always(True),
    ),
    Breakage(
        "a halt is not taken back for what runs",
        "`resume --cancelled` leaves out what a frozen or dead worker holds, and the takeover cancels it.",
        "quire.rules.changes:_revived",
        _nothing_is_taken_back,
    ),
    Breakage(
        "a child is born into an old halt",
        "A child takes the epoch of its parent, and a halt that has ended cancels it.",
        "quire.rules.children:born",
        _epoch_of_the_parent,
    ),
    Breakage(
        "a loss is a try",
        "The loss of a worker counts as a try of each of its records, and three are an ERROR.",
        "quire.rules.moves:lose",
        _loss_is_a_try,
    ),
    Breakage(
        "a late answer is the present",
        "A worker takes the time in an answer of the store for the present moment, however late the answer comes.",
        "quire.worker.lease:Lease.hear_time",
        _is_now,
    ),
    Breakage(
        "an undoing takes no place",
        "An undoing runs beside as many records as the cap of its workflow allows.",
        "quire.workflows.workflow:Workflow.slots",
        _without_cap,
    ),
    # Orders.
    Breakage(
        "an undo only cancels",
        "`cancel --undo` cancels a record and takes nothing back.",
        "quire.rules.moves:stopped",
        _without_undo,
    ),
    Breakage(
        "a wish is forgotten at the next move",
        "A wish to cancel does not outlive the move of the worker that holds the record.",
        "quire.rules.orders:request_left",
        _always(None),
    ),
    Breakage(
        "a retry keeps the wish",
        "A record that is tried again after its end is cancelled by the wish that stood before.",
        "quire.rules.orders:taken_back",
        _always(False),
    ),
    Breakage(
        "a resume brings back what people cancelled",
        "`resume --cancelled` takes what a person cancelled for what a halt cancelled.",
        "quire.worker.returns:cancelled_by_halt",
        _always(True),
    ),
    Breakage(
        "a halt holds nothing back",
        "A halt keeps new work from starting, and what waited goes on after a plain resume.",
        "quire.rules.orders:order",
        _no_floor,
    ),
    Breakage(
        "a pause stops nothing",
        "Records are claimed over a pause.",
        "quire.rules.orders:paused",
        _always(False),
    ),
    # Effects.
    Breakage(
        "an effect begins over a wish",
        "An intent commits although somebody wishes to cancel the record.",
        "quire.rules.effects:may_begin",
        _over_a_wish,
    ),
    Breakage(
        "an effect begins under a halt",
        "An intent commits after a halt was answered.",
        "quire.rules.effects:may_begin",
        _under_a_halt,
    ),
    Breakage(
        "an end comes over a doubt",
        "A record leaves its step, or ends, while nobody knows whether its effect happened.",
        "quire.rules.bending:_over_doubt",
        _over_a_doubt,
    ),
    Breakage(
        "absence is believed too soon",
        "What a probe does not find is done again, although the worker that began it may still act.",
        "quire.run.effects:_actor_ended",
        _ended_by_itself,
    ),
    Breakage(
        "undone in the wrong order",
        "What a record did is taken back oldest first.",
        "quire.run.undo:_newest_first",
        _the_other_way_round,
    ),
    Breakage(
        "descendants are not undone",
        "What the children of a record did is not taken back with it.",
        "quire.run.undo:_descendants",
        _no_descendants,
    ),
    Breakage(
        "a rate takes no tokens",
        "Effects begin more often than their rate allows.",
        "quire.rules.claims:take_token",
        _always(None),
    ),
    Breakage(
        "a cap does not count",
        "More records run at a time than the cap of their workflow allows.",
        "quire.rules.claims:_free",
        _all_that_the_worker_has,
    ),
    # Signals and children.
    Breakage(
        "a signal before its wait is lost",
        "A record waits for what has come already.",
        "quire.rules.waiting:answered_already",
        _waits_for_what_has_come,
    ),
    Breakage(
        "a signal is heard twice",
        "A wait takes a signal and leaves it for the next wait.",
        "quire.rules.waiting:_take",
        _stays_with_the_ledger,
    ),
    Breakage(
        "the last child wakes nobody",
        "A parent waits for children that have all ended.",
        "quire.rules.children:_waits_for",
        _always(False),
    ),
    Breakage(
        "children are not let go",
        "Children that their parent does without stay as they are.",
        "quire.rules.children:abandon",
        _always(None),
    ),
    Breakage(
        "nobody gets a turn",
        "Where only some children may run at once, the others never do.",
        "quire.rules.children:_give_turns",
        _no_turn,
    ),
)


def named(name: str) -> Breakage:
    return next(breakage for breakage in BREAKAGES if breakage.name == name)


@contextmanager
def broken(breakage: Breakage) -> Iterator[None]:
    """While this lasts, the rule is wrong."""
    module, _, path = breakage.rule.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    right = vars(owner)[name]
    setattr(owner, name, breakage.makes(right))
    try:
        yield
    finally:
        setattr(owner, name, right)
