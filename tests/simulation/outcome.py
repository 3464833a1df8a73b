"""What a seed came to."""

from __future__ import annotations

from typing import NamedTuple

from tests.simulation.check import Violation
from tests.simulation.history import History
from tests.simulation.plan import LEAST_FAULTS, LEAST_ORDERS, LEAST_RECORDS
from tests.simulation.reach import Cell


class Outcome(NamedTuple):
    """What a seed came to."""

    seed: int
    violations: list[Violation]
    records: int
    orders: int
    faults: int
    effects: int
    #: The cells of the table of orders that it reached.
    cells: frozenset[Cell] = frozenset()

    @property
    def counts(self) -> bool:
        """Whether enough happened in it. Not every fault strikes: a machine may be dead by then."""
        enough = self.records >= LEAST_RECORDS and self.orders >= LEAST_ORDERS
        return enough and self.faults >= LEAST_FAULTS

    @classmethod
    def of(cls, seed: int, history: History, violations: list[Violation]) -> Outcome:
        acts = sum(one.kind == "acts" for one in history.happenings)
        counts = (len(history.found), len(history.orders), len(history.faults), acts)
        return cls(seed, violations, *counts, frozenset(history.cells))
