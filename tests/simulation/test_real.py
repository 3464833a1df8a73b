"""A few seeds with real processes on real stores; a breakage is found there. More: ``make simulate STORE=postgres``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.check import WINDOW
from tests.simulation.history import Found, Happening, History, Order
from tests.simulation.real.keeping import keep, kept
from tests.simulation.real.seeds import PACES, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("store", PACES)
def test_no_promise_is_broken_by_real_processes(store: str, tmp_path: Path) -> None:
    found = list(outcomes(range(2), store, tmp_path))
    violations = [violation for outcome in found for violation in outcome.violations]
    assert not [violation for violation in violations if violation.kind != WINDOW]
    assert all(outcome.effects and outcome.faults for outcome in found)


@pytest.mark.slow
@pytest.mark.parametrize("store", PACES)
def test_a_breakage_is_found_with_real_processes(store: str, tmp_path: Path) -> None:
    """A halt that holds nothing back. Its history is kept, with what the workers wrote."""
    [outcome] = outcomes(range(1, 2), store, tmp_path, breakage="an undo only cancels")
    assert outcome.violations
    assert kept(tmp_path / "1.json").orders


def test_a_history_that_is_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    history = History(
        orders=[Order(1, "ann", "start", "r1", 1.0, "plain", {"part": 0}, 1.5, "PENDING")],
        happenings=[Happening(2.0, "acts", "r1", 1, "a1", key="k", process="w1.1")],
        found={"r1": Found("r1", "", "plain", {"part": 1}, "DONE", "ended", "'r1' is done.", "x")},
        faults=[(1.7, "w1 freezes")],
        ended_at=3.0,
    )
    keep(history, tmp_path / "deep" / "1.json")
    assert kept(tmp_path / "deep" / "1.json") == history
