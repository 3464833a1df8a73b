"""A wait: one named thing that a record waits for. A record waits for a list of them; any one makes it due."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from quire.model.codec import dump, parse
from quire.model.row import Row, as_dict


class On(StrEnum):
    """What is waited for."""

    TIMER = "timer"
    SIGNAL = "signal"
    QUESTION = "question"
    CHILDREN = "children"
    #: An intent without a receipt: did it happen?
    DOUBT = "doubt"
    #: A child beyond its map's limit waits for its turn.
    TURN = "turn"
    #: A state without a function rests until somebody moves the record.
    REST = "rest"
    #: Tokens of a rate.
    RATE = "rate"


class Wait(Row, frozen=True):
    on: On
    #: The receipt's key under which the answer is committed; empty for TURN and REST.
    key: str = ""
    #: Of the signal, the effect in doubt, the rate; the question's id.
    name: str = ""
    #: The record becomes due then, answered or not.
    until: float | None = None
    #: Which fan-in, for CHILDREN.
    generation: int | None = None
    #: What a question is about: see ``machine.approval``.
    about: dict[str, Any] | None = None


def dump_waits(waits: Iterable[Wait]) -> str | None:
    rows = [{k: v for k, v in as_dict(wait).items() if v is not None and v != ""} for wait in waits]
    return dump(rows) if rows else None


def load_waits(text: str | None) -> tuple[Wait, ...]:
    if not text:
        return ()
    return tuple(Wait(**{**row, "on": On(row["on"])}) for row in parse(text))


def earliest(waits: Iterable[Wait]) -> float | None:
    """Return when the first of these makes its record due by itself."""
    return min((wait.until for wait in waits if wait.until is not None), default=None)
