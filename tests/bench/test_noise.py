"""A quiet machine is told from a busy one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import noise

BEST = {"fdatasync_ms": 0.1, "spin_ms": 3.0}


@pytest.mark.parametrize(
    ("fdatasync", "spin", "foreign", "seconds", "reasons"),
    [
        (0.1, 3.0, 0.0, 1.0, []),
        (0.19, 3.7, 0.14, 1.0, []),
        (0.21, 3.0, 0.0, 1.0, ["fdatasync took 2.1 x the best"]),
        (0.1, 3.9, 0.0, 1.0, ["the CPU took 1.3 x the best"]),
        (0.1, 3.0, 2.0, 10.0, ["others used 0.20 cores"]),
        (0.1, 3.0, 1.4, 10.0, []),
        # Three clock ticks beside a measurement of a tenth of a second say nothing.
        (0.1, 3.0, 0.03, 0.1, []),
    ],
)
def test_reasons(fdatasync: float, spin: float, foreign: float, seconds: float, reasons: list[str]) -> None:
    found = noise.Probe(fdatasync_ms=fdatasync, spin_ms=spin)
    assert noise.reasons(found, BEST, foreign, seconds) == reasons


def probes(monkeypatch: pytest.MonkeyPatch, *spins: float) -> list[float]:
    left = list(spins)
    monkeypatch.setattr(noise, "probe", lambda _: noise.Probe(fdatasync_ms=0.1, spin_ms=left.pop(0)))
    monkeypatch.setattr("time.sleep", lambda _: None)
    return left


def test_a_measurement_waits_until_the_machine_is_quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = probes(monkeypatch, 9.0, 6.0, 3.1, 3.0)
    assert noise.settle(tmp_path, dict(BEST), patience=60).spin_ms == 3.1
    assert left == [3.0]


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = probes(monkeypatch, 9.0, 9.0)
    assert noise.settle(tmp_path, dict(BEST), patience=-1).spin_ms == 9.0
    assert left == [9.0]


def test_a_better_probe_becomes_the_measure_of_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    best: dict[str, float] = {}
    probes(monkeypatch, 5.0, 2.0, 5.0)
    noise.settle(tmp_path, best, patience=-1)
    noise.settle(tmp_path, best, patience=-1)
    with noise.Watch(tmp_path, best, patience=-1) as watch:
        pass
    assert best["spin_ms"] == 2.0
    assert "the CPU took 2.5 x the best" in watch.report()["noisy"]


def test_the_tree_of_a_process_holds_its_own_time() -> None:
    assert noise.tree_seconds(os.getpid()) >= noise.own_seconds(os.getpid()) > 0
    assert noise.own_seconds(2**22 + 1) == 0.0  # there is no such process


def test_the_clock_starts_when_the_cpu_is_quick_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([5.0, 4.0, 3.1])
    monkeypatch.setattr(noise, "spin", lambda: next(found))
    monkeypatch.setattr("time.sleep", lambda _: None)

    assert noise.calm(BEST, patience=60.0) == 3.1
    assert list(found) == []


def test_a_cpu_that_stays_slow_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "spin", lambda: 9.0)

    assert noise.calm(BEST, patience=-1) == 9.0


def test_a_cpu_that_was_slow_beside_the_measured_call_makes_it_noisy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    quiet = noise.Probe(fdatasync_ms=0.1, spin_ms=3.0)
    monkeypatch.setattr(noise, "probe", lambda directory: quiet)
    with noise.Watch(tmp_path, dict(BEST), patience=-1) as watch:
        pass

    watch.felt(3.5)
    assert (watch.report()["spin_ms"], watch.report()["noisy"]) == (3.5, [])
    watch.felt(6.0)
    watch.felt(3.0)
    assert (watch.report()["spin_ms"], watch.report()["noisy"]) == (6.0, ["the CPU took 2.0 x the best"])


def test_the_slowest_processor_tells_and_the_process_may_use_all_of_them_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = os.sched_getaffinity(0)
    looked: list[int] = []

    def spun(processor: int, rounds: int) -> float:
        looked.append(processor)
        return 3.0 + len(looked)

    monkeypatch.setattr(noise, "_spun", spun)
    assert noise.spin() == 3.0 + len(ours)
    assert set(looked) == ours

    monkeypatch.undo()
    assert noise.spin() > 0
    assert os.sched_getaffinity(0) == ours
