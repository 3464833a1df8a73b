"""Outcomes: what a pass of a step came to. One value each; ``transition.settle`` turns it into a change."""

from __future__ import annotations

from typing import Any, NamedTuple

from quire.model.record import Record
from quire.model.side import Fanin
from quire.model.wait import Wait


class Next(NamedTuple):
    """The step is done; the record goes on with another."""

    step: str
    data: str
    #: The next step is a state without a function: the record rests there until somebody moves it.
    rests: bool = False
    #: The next step is a state without a function and without successors: the record ends there.
    ends: bool = False


class Done(NamedTuple):
    """The last step is done; this is the result."""

    result: str
    data: str


class Waits(NamedTuple):
    """The step waits for something named; any one of these makes the record due again."""

    waits: tuple[Wait, ...]
    data: str
    children: tuple[Record, ...] = ()
    fanins: tuple[Fanin, ...] = ()


class Saved(NamedTuple):
    """The step goes on; its working copy and its place in a loop are kept."""

    data: str


class Migrated(NamedTuple):
    """The step is about to begin under newer code; its data is what the workflow's migrations made of it."""

    data: str
    code_version: int


class Tried(NamedTuple):
    """The try failed and another follows after ``delay`` seconds."""

    error: str
    delay: float
    #: What the log keeps of the error: see ``quire.run.failure``.
    trace: tuple[dict[str, Any], ...] = ()


class Broke(NamedTuple):
    """The try failed and none follows: the dead letter, or the undoing of what was done."""

    error: str
    undo: bool = False
    trace: tuple[dict[str, Any], ...] = ()


class Yielded(NamedTuple):
    """The worker gives the record back before its end, unharmed: its time budget or the worker itself ends."""

    reason: str


class Suspect(NamedTuple):
    """Something ran out that the records of a worker share. Nobody knows whose fault it was: the record runs alone."""

    reason: str


class Stopped(NamedTuple):
    """The record is cancelled at the wish of a person, or by a halt."""

    reason: str
    undo: bool = False


Outcome = Next | Done | Waits | Saved | Migrated | Tried | Broke | Yielded | Suspect | Stopped
