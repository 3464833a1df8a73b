"""A family: a record that people started, and all that descends from it. It says who is whose child."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from tests.simulation.history import Found, Order
from tests.simulation.script import Do, Script, from_data

T = TypeVar("T")


class Member(NamedTuple):
    """What never changes of a record of a family."""

    record: str
    workflow: str
    script: Script
    parent: str = ""
    #: Which children of its parent it is one of: their name, and how often the parent had started children by then.
    of: str = ""
    family: int = 0


def member(found: Found) -> Member:
    """A record as it was found in the end. The id of a child says which one it is."""
    script = from_data(found.data).unrolled()
    if not found.parent:
        return Member(found.record, found.workflow, script)
    name, _, rest = found.record[len(found.parent) + 1 :].partition("~")
    return Member(found.record, found.workflow, script, found.parent, name, int(rest.split("/")[0]))


class Family:
    """The members by their numbers."""

    def __init__(self, members: Iterable[Member], killers: frozenset[str] = frozenset()) -> None:
        self.members = sorted(members)
        #: Those that may be taken for what ends processes.
        self.killers = killers
        self.numbers = {member.record: number for number, member in enumerate(self.members)}
        self.children: list[list[int]] = [[] for _ in self.members]
        for number, one in enumerate(self.members):
            if one.parent:
                self.children[self.numbers[one.parent]].append(number)

    def parent(self, number: int) -> int | None:
        return self.numbers.get(self.members[number].parent)

    def parents(self, number: int, lives: Sequence[frozenset[T]]) -> frozenset[T]:
        """What of these is of the parent of a record; nothing: it has none."""
        parent = self.parent(number)
        return frozenset() if parent is None else lives[parent]

    def born(self, number: int, name: str, family: int) -> list[int]:
        """The children of this name that a record started as its nth children."""
        return [n for n in self.children[number] if (self.members[n].of, self.members[n].family) == (name, family)]

    def families_after(self, number: int, name: str, family: int) -> set[int]:
        """Which children of this name may be the next. Their numbers grow, and some are left out."""
        own = (self.members[n] for n in self.children[number])
        return {one.family for one in own if one.of == name and one.family > family} or {family + 1}

    def concerns(self, order: Order) -> bool:
        return not order.record or order.record in self.numbers

    def descendants(self, number: int) -> list[int]:
        return [found for n in self.children[number] for found in (n, *self.descendants(n))]

    def do_at(self, number: int, part: int, place: int) -> Do | None:
        """What the script says here; None: it is done."""
        parts = self.members[number].script.parts
        return parts[part][place] if part < len(parts) else None

    def up_to(self, number: int, part: int, place: int) -> tuple[Do, ...]:
        """What the script says of this part, up to this place."""
        parts = self.members[number].script.parts
        return parts[part][: place + 1] if part < len(parts) else ()
