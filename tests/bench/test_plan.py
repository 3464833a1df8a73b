"""The order of a run, what it repeats, and how it stays within its time."""

from __future__ import annotations

import pytest

from bench import plan, roster
from tests.bench import made

QUIRE, DBOS, RAW = (roster.choose([name])[0] for name in ("quire_sqlite", "dbos_sqlite", "raw_sqlite"))
PREFECT = roster.choose(["prefect"])[0]


def short(turns: list[plan.Turn]) -> list[str]:
    return [f"{name} {peer or 'all'} {repetition}" for name, peer, repetition in (turn.key for turn in turns)]


def test_everything_comes_once_before_anything_is_repeated_and_each_time_another_peer_is_first() -> None:
    made_turns = plan.turns(plan.choose(["W1", "W7"]), [QUIRE, DBOS], 2)
    assert short(made_turns) == [
        "W1 quire_sqlite 0",
        "W1 dbos_sqlite 0",
        "W7 all 0",
        "W1 dbos_sqlite 1",
        "W1 quire_sqlite 1",
    ]


@pytest.mark.parametrize(
    ("workload", "peer", "times"),
    [
        ("W1", QUIRE, 3),
        ("W1", DBOS, 3),
        ("W1", PREFECT, 1),
        ("W4", DBOS, 2),
        ("W5", QUIRE, 3),
        ("W5", DBOS, 1),
        ("W5", RAW, 0),
        ("W6", QUIRE, 3),
        ("W6", DBOS, 0),
        ("W11", DBOS, 0),
    ],
)
def test_a_slow_workload_or_peer_is_repeated_less_often(workload: str, peer: roster.Peer, times: int) -> None:
    assert len(plan.turns(plan.choose([workload]), [peer], 3)) == times


def test_every_workload_of_the_issue_is_there_at_its_full_size() -> None:
    sizes = {workload.name: workload.full for workload in plan.WORKLOADS}
    assert list(sizes) == [*plan.LEADING, *(f"W{number}" for number in range(1, 12))]
    assert sizes["W1"] == {"n": 2000}
    assert sizes["W2"] == {"records": 300, "steps": 10}
    assert sizes["W4"] == {"children": 1000}
    assert sizes["W5"] == {"n": 20, "seconds": 1.2, "cap": 5}
    assert sizes["W6"]["fills"] == [200_000, 1_000_000]
    assert (sizes["W8"]["records"], sizes["W8"]["steps"]) == (200, 5)
    assert sizes["W9"]["processes"] == [1, 2, 4]
    assert sizes["W10"]["turns"][-1] * sizes["W10"]["turn_bytes"] == 200_000 * 4
    assert sizes["W11"] == {"transitions": 1_000_000}


def test_only_a_slow_peer_has_smaller_sizes_and_never_larger_ones() -> None:
    w1 = plan.known("W1")
    assert plan.sized(w1, QUIRE, quick=False) == {"n": 2000}
    assert plan.sized(w1, DBOS, quick=False) == {"n": 800}
    assert plan.sized(w1, DBOS, quick=True) == {"n": 200}


def test_an_unknown_workload_or_peer_is_named() -> None:
    with pytest.raises(SystemExit, match="no workload 'W99'; there are: W0, W12, W1, W2"):
        plan.choose(["W99"])
    with pytest.raises(SystemExit, match="no peer 'nobody'; there are: quire_sqlite"):
        roster.choose(["nobody"])


def test_what_a_stopped_run_has_measured_is_not_measured_again() -> None:
    turns = plan.turns(plan.choose(["W1"]), [QUIRE, DBOS], 2)
    failed = {**made.w1("dbos_sqlite", 1), "error": "it fell over"}
    del failed["figures"]
    left = [turn for turn in turns if not plan.done(turn, [made.w1("quire_sqlite", 9), failed])]
    assert short(left) == ["W1 quire_sqlite 1"]


def test_disturbed_measurements_come_again_and_those_without_any_clean_one_first() -> None:
    turns = plan.turns(plan.choose(["W1", "W2"]), [QUIRE, DBOS], 2)
    runs = [
        made.w1("quire_sqlite", 9, noisy=True),
        made.w1("quire_sqlite", 9, 1),
        made.w1("dbos_sqlite", 9, noisy=True),
        made.w2("quire_sqlite", 9, noisy=True),
        made.w2("quire_sqlite", 9),  # made again already
    ]
    assert short(plan.disturbed(turns, runs)) == ["W1 dbos_sqlite 0", "W1 quire_sqlite 0"]


def test_idle_workers_are_measured_again_together_if_one_was_disturbed() -> None:
    turns = plan.turns(plan.choose(["W7"]), [QUIRE, DBOS], 1)
    assert short(plan.disturbed(turns, [made.run("W7", "quire_sqlite", noisy=True), made.run("W7", "dbos_sqlite")]))
    assert not plan.disturbed(turns, [made.run("W7", "quire_sqlite"), made.run("W7", "dbos_sqlite")])


def test_nothing_begins_that_would_end_too_late() -> None:
    now = 100.0
    first, second = plan.turns(plan.choose(["W1"]), [QUIRE, DBOS], 1)
    budget = plan.Budget(1, {("W1", "dbos_sqlite"): 55.0}, clock=lambda: now)
    assert budget.allows(first)
    assert budget.allows(second)
    now = 110.0
    assert budget.allows(first)
    assert not budget.allows(second)
    budget.learn(second, 20.0)
    assert budget.allows(second)
    assert budget.told([first, second]) == "[0:10, 2 to go: about 0:30, 0:50 left]"


def test_without_a_limit_there_is_always_time() -> None:
    [turn] = plan.turns(plan.choose(["W6"]), [QUIRE], 1)
    budget = plan.Budget(None, {}, clock=lambda: 0.0)
    assert budget.allows(turn)
    assert budget.told([turn]) == "[0:00, 1 to go: about 3:00]"
