"""From raw figures to named values, and to medians."""

from __future__ import annotations

from typing import Any

import pytest

from bench import figures
from tests.bench import made


@pytest.mark.parametrize(
    ("workload", "found", "values"),
    [
        ("W1", {"n": 100, "drain_seconds": 2.0}, {"w1_drain": 50}),
        ("W1", {"n": 100, "enqueue_seconds": 1.0, "drain_seconds": 2.0}, {"w1_drain": 50, "w1_enqueue": 100}),
        (
            "W2",
            {"steps": 1000, "seconds": 2.0, "cpu": {"own": 1.5, "server": 0.5}},
            {"w2_steps": 500, "w2_cpu": 1500, "w2_server": 500},
        ),
        # No server behind it, and too little to be counted in clock ticks.
        ("W2", {"steps": 10, "seconds": 2.0, "cpu": {"own": 1.0, "server": 0.01}}, {"w2_steps": 5, "w2_cpu": 100_000}),
        ("W2", {"steps": 10, "seconds": 2.0, "cpu": {"own": 0.02, "server": 0.0}}, {"w2_steps": 5}),
        ("W3", {"latencies_ms": [1, 2, 3, 4, 9]}, {"w3_p50": 3, "w3_p99": 9}),
        ("W4", {"seconds": 0.25}, {"w4_seconds": 0.25}),
        ("W5", {"seconds": 4.9, "ideal": 4.8}, {"w5_seconds": 4.9, "w5_over": pytest.approx(2.083, abs=0.01)}),
        ("W8", {"seconds": 3.0, "duplicates": 0, "lost": 0}, {"w8_seconds": 3.0, "w8_duplicates": 0, "w8_lost": 0}),
        ("W8", {"seconds": 3.0, "duplicates": 1, "lost": 4, "failure": "gone"}, {"w8_duplicates": 1, "w8_lost": 4}),
        (
            "W10",
            {"points": [{"bytes": 10}, {"bytes": 1_000_000}, {"bytes": 2_000_000}]},
            {"w10_mb": 2.0, "w10_growth": 2.0},
        ),
    ],
)
def test_values(workload: str, found: dict[str, Any], values: dict[str, Any]) -> None:
    assert figures.values(made.run(workload, "quire_sqlite", **found)) == values


def test_w6_compares_each_drain_of_a_filled_ledger_with_the_one_of_the_empty_ledger_beside_it() -> None:
    def drains(*seconds: float) -> list[dict[str, Any]]:
        return [{"n": 100, "drain_seconds": second} for second in seconds]

    points = [
        {"finished": 200_000, "drains": drains(1.0, 2.0, 2.0), "beside": drains(1.0, 1.0, 9.0)},
        {"finished": 1_000_000, "drains": drains(4.0, 4.0, 1.0), "beside": drains(2.0, 2.0, 1.0)},
    ]
    found = figures.values(made.run("W6", "quire_sqlite", points=points))
    assert found == {"w6_empty": 75, "w6_drain_200k": 50, "w6_200k": 1.0, "w6_drain_1m": 25, "w6_1m": 0.5}


def test_w7_tells_the_worst_wake_beside_the_median() -> None:
    found = figures.values(made.run("W7", "quire_postgres", statements_per_minute=20, wake_ms=[3.0, 4.0, 60.0]))
    assert found == {"w7_statements": 20, "w7_wake": 4.0, "w7_wake_worst": 60.0}


def test_w9_has_a_rate_for_each_number_of_processes_and_the_cpu_of_one_and_four_and_rates_of_other_ways() -> None:
    spent = {"cpu": {"own": 0.5, "server": 0.25}, "processors": 2}
    points = [{"processes": count, "n": 1000, "seconds": count / 2, **spent} for count in (1, 2, 4)]
    points += [{"processes": count, "n": 1000, "seconds": 5 / count, **spent, "how": "default"} for count in (1, 4)]
    points += [{"processes": count, "n": 100, "seconds": 2 / count, **spent, "how": "labour"} for count in (1, 4)]
    assert figures.values(made.run("W9", "quire_postgres", points=points)) == {
        "w9_1": 2000, "w9_2": 1000, "w9_4": 500, "w9_cpu_1": 500, "w9_cpu_4": 500, "w9_server_1": 250,
        "w9_server_4": 250, "w9_busy_1": 75, "w9_busy_4": 18.75, "w9_default_1": 200, "w9_default_4": 800,
        "w9_labour_1": 50, "w9_labour_4": 200,
    }  # fmt: skip


def test_w11_grows_by_what_the_second_half_adds() -> None:
    samples = [[count * 1000, 50_000 + (1000 if count < 5 else 2000) + count, 900 + 2 * count] for count in range(11)]
    found = figures.values(made.run("W11", "quire_sqlite", samples=samples))
    assert found["w11_transitions"] == 10_000
    assert found["w11_growth"] == pytest.approx(1.0)  # kB for a thousand transitions
    assert found["w11_objects"] == pytest.approx(2.0)
    assert found["w11_last_mb"] == pytest.approx(52.01)


def test_a_disturbed_repetition_is_left_out_where_an_undisturbed_one_exists() -> None:
    runs = [made.w1("quire_sqlite", rate, noisy=noisy) for rate, noisy in ((10, True), (100, False), (250, False))]
    found = figures.summarise(made.results(*runs))["w1_drain"]["quire_sqlite"]
    assert (found.median, found.low, found.high, found.count, found.noisy) == (175, 100, 250, 2, False)


def test_a_figure_that_was_disturbed_each_time_says_so() -> None:
    found = figures.summarise(made.results(made.w1("quire_sqlite", 10, noisy=True)))["w1_drain"]["quire_sqlite"]
    assert found.noisy
    assert found.count == 1


def test_what_failed_has_no_values() -> None:
    assert figures.values({**made.run("W1", "huey_sqlite"), "error": "it fell over"}) == {}


def test_every_value_has_a_metric() -> None:
    known = {metric.key for metric in figures.METRICS}
    assert len(known) == len(figures.METRICS)
    assert {metric.workload for metric in figures.METRICS} == set(figures.EXTRACT)
