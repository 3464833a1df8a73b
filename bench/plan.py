"""What is measured: the workloads, their sizes, their time limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    title: str
    full: dict[str, Any]
    quick: dict[str, Any]
    #: Sizes of the run that is thrown away before the measured one.
    warm: dict[str, Any] = field(default_factory=dict)
    timeout: float = 300.0
    #: Repetitions at the most; some figures hardly vary or take long.
    repeat: int = 99


WORKLOADS = [
    Workload(
        name="W1",
        title="enqueue and drain 2,000 one-step records",
        full={"n": 2000},
        quick={"n": 200},
        warm={"n": 100},
    ),
    Workload(
        name="W2",
        title="300 records x 10 no-op durable steps at once",
        full={"records": 300, "steps": 10},
        quick={"records": 30, "steps": 10},
        warm={"records": 10, "steps": 10},
    ),
    Workload(
        name="W3",
        title="one record on an idle system",
        full={"n": 200, "pause": 0.02},
        quick={"n": 30, "pause": 0.02},
        warm={"n": 10, "pause": 0.0},
    ),
    Workload(
        name="W4",
        title="one parent, 1,000 children, reduce",
        full={"children": 1000},
        quick={"children": 100},
        warm={"children": 20},
        timeout=400,
    ),
    Workload(
        name="W5",
        title="20 x 1.2 s at cap 5 (ideal 4.8 s)",
        full={"n": 20, "seconds": 1.2, "cap": 5},
        quick={"n": 10, "seconds": 0.4, "cap": 5},
        warm={"n": 5, "seconds": 0.05, "cap": 5},
        repeat=3,
    ),
    Workload(
        name="W6",
        title="W1 with 200,000 and with 1,000,000 finished records in the ledger",
        full={"n": 2000, "fills": [200_000, 1_000_000]},
        quick={"n": 200, "fills": [20_000]},
        warm={"n": 100},
        timeout=1800,
        repeat=3,
    ),
    Workload(
        name="W7",
        title="idle cost, import time, installed size",
        full={"window": 60, "settle": 10, "pokes": 10},
        quick={"window": 6, "settle": 3, "pokes": 3},
        repeat=1,
    ),
    Workload(
        name="W8",
        title="kill -9 in the middle of 200 x 5 steps, then restart",
        full={"records": 200, "steps": 5, "step_seconds": 0.01, "concurrency": 50},
        quick={"records": 60, "steps": 5, "step_seconds": 0.01, "concurrency": 50},
        timeout=240,
        repeat=3,
    ),
    Workload(
        name="W9",
        title="1, 2 and 4 worker processes",
        full={"n": 2000, "processes": [1, 2, 4]},
        quick={"n": 200, "processes": [1, 2]},
        timeout=600,
        repeat=3,
    ),
    Workload(
        name="W10",
        title="a 200,000-token transcript over 100 turns",
        full={"turns": [25, 50, 100], "turn_bytes": 8000},
        quick={"turns": [10, 20], "turn_bytes": 8000},
        repeat=1,
    ),
    Workload(
        name="W11",
        title="memory of one process over 1,000,000 transitions",
        full={"transitions": 1_000_000},
        quick={"transitions": 1_000},
        timeout=1800,
        repeat=1,
    ),
]


def choose(names: list[str]) -> list[Workload]:
    if not names:
        return WORKLOADS
    known = {workload.name: workload for workload in WORKLOADS}
    for name in names:
        if name.upper() not in known:
            raise SystemExit(f"no workload {name!r}; there are: {', '.join(known)}")
    return [known[name.upper()] for name in names]
