"""Deliberate breakages: each replaces one rule of the engine by one that is wrong. The simulation must find them all.

Some are defects that the engine had, as they were. A breakage that nobody finds says that the checker is blind there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from quire.model.row import replace


class Breakage(NamedTuple):
    name: str
    #: What is wrong then.
    wrong: str
    #: The rule that is replaced: ``module:name``.
    rule: str
    #: Makes the wrong rule of the right one.
    makes: Callable[[Callable[..., Any]], Callable[..., Any]]


def _always(value: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A rule that answers the same whatever it is asked."""
    return lambda right: lambda *args, **kwargs: value


def _epoch_of_the_parent(right: Callable[..., Any]) -> Callable[..., Any]:
    def born(draft: Any, change: Any) -> None:
        right(draft, change)
        for child in change.children:
            row = draft.records[child.record_id]
            draft.records[child.record_id] = replace(row, epoch=draft.record(row.parent_id).epoch)

    return born


def _loss_is_a_try(right: Callable[..., Any]) -> Callable[..., Any]:
    def lose(record: Any, now: float, why: str) -> Any:
        go = right(record, now, why)
        attempt = record.attempt + 1
        image = replace(go.image, attempt=attempt, losses=0)
        if attempt >= 3:
            image = replace(image, status="ERROR", due_at=None, last_error="its worker was lost 3 times")
        return replace(go, image=image)

    return lose


def _halt_is_not_taken_back(right: Callable[..., Any]) -> Callable[..., Any]:
    def revived(draft: Any, change: Any, current: Any) -> Any:
        from quire.model.change import Applied

        return Applied(current, draft.now)

    return revived


BREAKAGES = (
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
        _halt_is_not_taken_back,
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
