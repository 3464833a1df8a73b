"""A few seeds with real processes on real stores; a breakage is found there. More: ``make simulate STORE=postgres``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.simulation.check import WINDOW
from tests.simulation.history import Found, Happening, History, Order
from tests.simulation.real.keeping import keep, kept
from tests.simulation.real.seeds import outcomes

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("store", "count"), [("postgres", 2), ("sheets", 1), ("restored", 1)])
def test_no_promise_is_broken_by_real_processes(store: str, count: int, tmp_path: Path) -> None:
    """``restored``: a book that somebody restores to an earlier version."""
    found = list(outcomes(range(1, 1 + count), store, tmp_path))
    violations = [violation for outcome in found for violation in outcome.violations]
    assert not [violation for violation in violations if violation.kind != WINDOW]
    assert all(outcome.effects and outcome.faults for outcome in found)


@pytest.mark.slow
def test_a_breakage_is_found_with_real_processes(tmp_path: Path) -> None:
    """It is found by one of the first seeds, though not by the same each time. Its history is kept."""
    with closing(outcomes(range(1, 13), "postgres", tmp_path, breakage="an undo only cancels")) as found:
        seed = next(one.seed for one in found if any(broken.kind == "not undone" for broken in one.violations))
    assert kept(tmp_path / f"{seed}.json").orders


@pytest.mark.slow
def test_when_the_command_is_killed_its_processes_end(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from tests.simulation.real.seeds import outcomes
for outcome in outcomes(range(1, 100), "postgres", Path({str(tmp_path)!r})): print(outcome.seed, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"1\n"
        [driver] = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        command.kill()
    for _ in range(600):
        try:
            os.killpg(int(driver), 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)  # noqa: TID251 - nobody is told of the end of a process that is not one's own
    os.killpg(int(driver), signal.SIGKILL)
    pytest.fail("the processes of the driver went on")


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
