"""Runs seeds: one, or many in several processes; as they are, or on a broken engine."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from quire.ledger.base import Ledger
from quire.testing import ToldClock
from tests.simulation.breakages import broken, named
from tests.simulation.check import Violation, check
from tests.simulation.history import History
from tests.simulation.outcome import Outcome
from tests.simulation.plan import Plan, make
from tests.simulation.shrink import shrunk
from tests.simulation.story import story
from tests.simulation.system import memory, simulate, sqlite_in

STORES = ("memory", "sqlite")


@contextmanager
def _store(name: str) -> Iterator[Callable[[ToldClock], Ledger]]:
    if name == "memory":
        yield memory
        return
    with tempfile.TemporaryDirectory() as folder:
        yield sqlite_in(Path(folder))


def history_of(plan: Plan, store: str = "memory", breakage: str = "") -> History:
    with _store(store) as made, broken(named(breakage)) if breakage else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is thrown away at the end
        return simulate(plan, made)


def run(seed: int, store: str = "memory", breakage: str = "") -> Outcome:
    """Run one seed and check it."""
    plan = make(seed)
    history = history_of(plan, store, breakage)
    return Outcome.of(seed, history, check(plan, history))


def told(seed: int, store: str = "memory", breakage: str = "") -> str:
    """The story of a seed; of one that shows a violation, the story of the smallest plan that shows the same."""
    plan = make(seed)
    history = history_of(plan, store, breakage)
    violations = check(plan, history)
    if violations:

        def shows(other: Plan) -> list[Violation]:
            return check(other, history_of(other, store, breakage))

        plan = shrunk(plan, violations[0].kind, shows)
        history = history_of(plan, store, breakage)
        violations = check(plan, history)
    return story(plan, history, violations)
