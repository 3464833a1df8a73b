"""The specification applied to a whole family: of each record the set of all places where it can be.

This is the machinery of the check, and promises nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.simulation.history import Found, Happening, Order
from tests.simulation.specification import Life, Specification


class State(NamedTuple):
    """Of each record the possibilities. And which orders to the whole ledger stand."""

    lives: tuple[frozenset[Life], ...]
    #: Halted: workflows, or everything ("").
    halted: frozenset[str] = frozenset()

    def having(self, number: int, found: set[Life]) -> State | None:
        """The same, with these possibilities of one record; None: there are none."""
        lives = (*self.lives[:number], frozenset(found), *self.lives[number + 1 :])
        return self._replace(lives=lives) if found else None


class Possibilities(Specification):
    """What can be of a family."""

    def beginning(self) -> State:
        return State(tuple(frozenset({Life()}) for _ in self.members))

    def later(self, state: State) -> State:
        """All that can be after any number of Quire's own moves."""
        lives = list(state.lives)
        todo = set(range(len(lives)))
        while todo:
            number = todo.pop()
            found = set(lives[number])
            new = list(found)
            while new:
                new = [life for old in new for life in self.moves(number, old, lives) if life not in found]
                found.update(new)
            if len(found) > len(lives[number]):
                lives[number] = frozenset(found)
                todo.update(self.children[number])
                todo.update([] if (parent := self.parent(number)) is None else [parent])
        return state._replace(lives=tuple(lives))

    def obeys(self, state: State, order: Order) -> State | None:
        """Where all can be after this order was answered as it was; None: it cannot have been answered so."""
        if not order.record:
            return self._of_ledger(state, order)
        number = self.numbers[order.record]
        halted = bool(state.halted & {"", self.members[number].workflow})
        after = state.having(
            number, {new for life in state.lives[number] for new in self.answers(number, life, halted, order)}
        )
        if after is None or order.refused or order.answered_at is None or order.sent_again:
            return after
        after = self.later(after)  # the answer says where the record is once the order has been taken
        fits = {life for life in after.lives[number] if self.can_read(number, life, order.answer)}
        return after.having(number, fits)

    def _of_ledger(self, state: State, order: Order) -> State:
        halted = state.halted | {order.what} if order.verb == "halt" else state.halted
        if order.verb.startswith("resume"):
            halted = halted - {order.what}
        found = (
            frozenset(self.ordered(number, life, halted, order) for life in lives)
            for number, lives in enumerate(state.lives)
        )
        return State(tuple(found), halted)

    def answered(self, state: State, order: Order) -> State:
        """The answer to ``resume --cancelled`` has come."""
        lives = list(state.lives)
        for number, found in enumerate(state.lives):  # parents come before their children
            lives[number] = frozenset(self.is_back(number, life, order) for life in found)
        return state._replace(lives=tuple(lives))

    def sees(self, state: State, happening: Happening) -> State | None:
        """Where all can be once this was seen; None: it cannot have happened."""
        number = self.numbers[happening.record]
        return state.having(number, {life for one in state.lives[number] for life in self.seen(number, one, happening)})

    def rest(self, state: State, found: Mapping[str, Found]) -> str:
        """What is wrong with where all came to rest; empty: nothing is."""
        for number, member in enumerate(self.members):
            fits = {life for life in state.lives[number] if self.rests(number, life, found, state.lives)}
            after = state.having(number, fits)
            if after is None:
                one = found[member.record]
                return f"{one.record} is {one.status} in the end, which it cannot be ({one.sentence})"
            state = after
        return ""
