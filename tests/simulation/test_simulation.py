"""Some seeds of the simulation, and that it finds what is broken on purpose. All of it: ``make simulate``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.seeds import STORES, run, told

ROOT = Path(__file__).parents[2]

#: Fixed seeds, in lots that are tested side by side.
LOTS = [range(first, first + 20) for first in range(0, 60, 20)]

#: Seeds that found something in the engine that is mended since.
KEPT = {
    43: "a worker whose store answered late was behind by as much, and a sleep was too short",
    116: "a `resume --cancelled` of everything was refused in the middle, over a workflow that another halt holds",
}

#: For each deliberate breakage a seed that finds it.
FOUND = {
    "a halted child counts": 9,
    "a child is born into an old halt": 9,
}


@pytest.mark.parametrize("seeds", LOTS, ids=lambda seeds: f"from-{seeds.start}")
def test_no_promise_is_broken(seeds: range) -> None:
    found = {seed: outcome.violations for seed in seeds if (outcome := run(seed)).violations}
    assert not found, f"tell the story of one: python -m tests.simulation --tell {next(iter(found))}"


@pytest.mark.parametrize("seed", KEPT, ids=str)
def test_what_was_found_stays_mended(seed: int) -> None:
    assert not run(seed).violations


@pytest.mark.parametrize("name", FOUND)
def test_a_breakage_is_found(name: str) -> None:
    assert run(FOUND[name], breakage=name).violations


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
    name = "a halted child counts"
    text = told(FOUND[name], breakage=name)
    assert "asks: halt" in text
    assert "What was promised, and does not hold:" in text
