"""What a seed came to."""

from __future__ import annotations

from typing import NamedTuple

from tests.simulation.check import Violation
from tests.simulation.history import History
from tests.simulation.plan import LEAST_FAULTS, LEAST_ORDERS


class Outcome(NamedTuple):
    """What a seed came to."""

    seed: int
    violations: list[Violation]
    records: int
    orders: int
    faults: int
    effects: int

    @property
    def counts(self) -> bool:
        """Whether enough happened in it. Not every fault strikes: a machine may be dead by then."""
        return self.orders >= LEAST_ORDERS and self.faults >= LEAST_FAULTS

    @classmethod
    def of(cls, seed: int, history: History, violations: list[Violation]) -> Outcome:
        acts = sum(one.kind == "acts" for one in history.happenings)
        return cls(seed, violations, len(history.found), len(history.orders), len(history.faults), acts)
