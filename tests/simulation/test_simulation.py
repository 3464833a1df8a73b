"""Some seeds of the simulation, and that it finds what is broken on purpose. All of it: ``make simulate``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.breakages import BREAKAGES
from tests.simulation.seeds import STORES, run, told

ROOT = Path(__file__).parents[2]
LOT = 20
#: The seeds that are run each time, and how many more follow from the commit's id.
FIXED, MORE = 300, 200

#: For each deliberate breakage a seed that finds it.
FOUND = {
    "a halted child counts": 8,
    "a halt is not taken back for what runs": 24,
    "a loss is a try": 16,
    "an undoing takes no place": 148,
    "an undo only cancels": 8,
    "a wish is forgotten at the next move": 1,
    "a resume brings back what people cancelled": 21,
    "a pause stops nothing": 26,
    "an end comes over a doubt": 1,
    "descendants are not undone": 12,
    "a cap does not count": 4,
    "a signal is heard twice": 18,
    "children are not let go": 4,
    "a halt holds nothing back": 6,
    "a wish over a doubt is dropped": 161,
    "undone in the wrong order": 34,
    "a signal before its wait is lost": 10,
    "the last child wakes nobody": 209,
    "nobody gets a turn": 1,
    "an effect begins over a wish": 44,
    "an effect begins under a halt": 181,
    "a child is born into an old halt": 97,
    "a rate takes no tokens": 13,
    "a late answer is the present": 68,
}

#: Breakages for which nobody has looked long enough with these scripts to keep a seed.
NOT_YET: set[str] = {
    "a retry keeps the wish",
    "absence is believed too soon",
}


def _from_the_commit() -> int:
    """The first of the seeds that follow from the commit's id. Without a repository: the same each time."""
    git = shutil.which("git")
    asked = [git, "rev-parse", "HEAD"] if git is not None else [sys.executable, "-c", ""]
    answer = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return 1_000_000 + int(answer[:6] or "0", 16) * MORE


LOTS = [range(first, first + LOT) for first in range(0, FIXED, LOT)]
LOTS += [range(_from_the_commit() + first, _from_the_commit() + first + LOT) for first in range(0, MORE, LOT)]


@pytest.mark.parametrize("seeds", LOTS, ids=[f"lot-{number}" for number, _ in enumerate(LOTS)])
def test_no_promise_is_broken(seeds: range) -> None:
    found = {seed: outcome.violations for seed in seeds if (outcome := run(seed)).violations}
    assert not found, f"tell the story of one: python -m tests.simulation --tell {next(iter(found))}"


def test_no_promise_is_broken_on_sqlite() -> None:
    assert not {seed: outcome.violations for seed in range(10) if (outcome := run(seed, "sqlite")).violations}


@pytest.mark.parametrize("name", FOUND)
def test_a_breakage_is_found(name: str) -> None:
    assert run(FOUND[name], breakage=name).violations


def test_every_breakage_has_a_seed() -> None:
    assert set(FOUND) | NOT_YET == {breakage.name for breakage in BREAKAGES}


@pytest.mark.parametrize("store", STORES)
def test_two_runs_of_a_seed_tell_the_same_story_in_any_process(store: str) -> None:
    script = f"from tests.simulation.seeds import told; print(told(4, {store!r}), end='')"
    stories = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert stories == {told(4, store)}


def test_a_story_says_who_did_what_and_what_was_promised() -> None:
    name = "children are not let go"
    text = told(FOUND[name], breakage=name)
    assert " asks: " in text
    assert "What was promised, and does not hold:" in text


def test_the_specification_can_be_read_at_one_sitting() -> None:
    text = (Path(__file__).parent / "specification.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
