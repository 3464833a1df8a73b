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
    #: Do something with each of several items, in a loop that keeps its place.
    EACH = "each"
    #: End the whole process, so many times.
    POISON = "poison"


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
    #: How long a sleep takes, or an act, or a call. A wait for a signal ends after so long; 0: never.
    seconds: float = 0.0
    how: How = How.BLIND
    #: How often it fails, or ends its process. How many items there are, or people who must agree.
    times: int = 0
    #: Of an act: it fails after it happened, and nobody can tell from the error. Otherwise it fails before.
    unclear: bool = False
    children: tuple[Script, ...] = ()
    #: So many children may run at once; 0: all.
    limit: int = 0
    #: The failures of children are kept, and fail nobody else, as long as this share of them has a result.
    keep: bool = False
    need: float = 0.0
    #: An act waits until people have released it.
    parked: bool = False


class Script(NamedTuple):
    parts: tuple[tuple[Do, ...], ...]
    #: Before these parts the record rests until a person moves it on.
    rests: tuple[int, ...] = ()
    #: The workflow whose records have this script.
    workflow: str = "plain"

    @property
    def size(self) -> int:
        """How many records it makes: itself and all its descendants."""
        return 1 + sum(child.size for do in self.every() for child in do.children)

    def every(self) -> Iterator[Do]:
        for part in self.parts:
            yield from part

    def unrolled(self) -> Script:
        """The same with its loops written out: an act for each item."""
        return self._replace(parts=tuple(tuple(one for do in part for one in items_of(do)) for part in self.parts))


def items_of(do: Do) -> list[Do]:
    """The acts of a loop, each under a name of its own; of anything else only itself."""
    if do.word is not Word.EACH:
        return [do]
    return [do._replace(word=Word.ACT, name=f"{do.name}x{item}", times=0) for item in range(do.times)]


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
