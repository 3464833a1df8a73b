"""What a simulated record is to do: a script of parts, each a list of simple things. A record carries its script.

A part is one visit of the step ``work``. Between two parts the record moves, or rests until a person moves it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple


class Word(StrEnum):
    """One thing that a step does."""

    #: An effect on the world, once.
    ACT = "act"
    SLEEP = "sleep"
    #: Wait for the signal of this name.
    WAIT = "wait"
    #: Ask a person.
    ASK = "ask"
    #: Start children, and wait for their ends.
    CHILDREN = "children"
    #: Fail so many times, then go on.
    FAIL = "fail"
    #: Call something that may be repeated.
    CALL = "call"


class How(StrEnum):
    """The kinds of effects."""

    #: Nobody can find out whether it happened: a person is asked.
    BLIND = "blind"
    #: It can be looked up whether it happened.
    PROBED = "probed"
    #: Looked up, and the target itself refuses a second act with the same key.
    FENCED = "fenced"
    #: To act again does no harm.
    REPEATED = "repeated"
    #: Looked up, and it can be taken back.
    UNDONE = "undone"
    #: At most three in ten seconds, over all workers.
    RATED = "rated"
    #: A plain function.
    PLAIN = "plain"


class Do(NamedTuple):
    word: Word
    name: str = ""
    #: How long a sleep takes, or an act.
    seconds: float = 0.0
    how: How = How.BLIND
    #: How often it fails.
    times: int = 0
    #: Of an act: it fails after it happened, and nobody can tell from the error. Otherwise it fails before.
    unclear: bool = False
    children: tuple[Script, ...] = ()
    #: So many children may run at once; 0: all.
    limit: int = 0
    #: The failures of children are kept, and fail nobody else.
    keep: bool = False


class Script(NamedTuple):
    parts: tuple[tuple[Do, ...], ...]
    #: Before these parts the record rests until a person moves it on.
    rests: tuple[int, ...] = ()
    #: The workflow whose records have this script: ``plain``, ``capped`` or ``undoing``.
    workflow: str = "plain"

    @property
    def size(self) -> int:
        """How many records it makes: itself and all its descendants."""
        return 1 + sum(child.size for do in self.every() for child in do.children)

    def every(self) -> Iterator[Do]:
        for part in self.parts:
            yield from part


def as_data(script: Script) -> dict[str, Any]:
    """The script as the data of a record."""
    parts = [[_as_data(do) for do in part] for part in script.parts]
    return {"part": 0, "parts": parts, "rests": list(script.rests), "workflow": script.workflow}


def _as_data(do: Do) -> dict[str, Any]:
    told = do._asdict() | {"children": [as_data(child) for child in do.children]}
    told |= {"word": do.word.value, "how": do.how.value}
    return {word: value for word, value in told.items() if value not in ([], do._field_defaults.get(word))}


def from_data(data: dict[str, Any]) -> Script:
    parts = tuple(tuple(_from_data(do) for do in part) for part in data["parts"])
    return Script(parts, tuple(data["rests"]), data["workflow"])


def _from_data(told: dict[str, Any]) -> Do:
    children = tuple(from_data(child) for child in told.get("children", ()))
    how, word = How(told.get("how", How.BLIND)), Word(told["word"])
    return Do(**(told | {"word": word, "how": how, "children": children}))
