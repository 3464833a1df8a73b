"""What is measured: the workloads, their sizes, their time limits, and in which order within how much time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.roster import Peer

#: Repetitions of a whole run, unless told otherwise. A workload or a peer may have fewer.
REPEAT = 3
NOT_RAW = ("quire", "engine", "queue")
ALL = (*NOT_RAW, "raw")


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
    #: Repetitions at the most of whoever is not Quire.
    repeat_peers: int = 99
    #: Kinds of peers that are measured, and why the other peers are not.
    kinds: tuple[str, ...] = NOT_RAW
    left_out: str = ""
    #: All peers side by side in one measurement.
    together: bool = False
    #: Seconds that one measurement takes on a quiet machine, as long as this run knows no better.
    guess: float = 8.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One measurement that is to be made; ``peer`` is empty for a workload that all peers do together."""

    workload: Workload
    peer: Peer | None
    repetition: int

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.workload.name, self.peer.name if self.peer else "", self.repetition)


def turns(chosen: list[Workload], peers: list[Peer], repeat: int = REPEAT) -> list[Turn]:
    """Everything once, then everything that is repeated: so a run that is stopped early has measured all there is.

    The peers are interleaved, each time with another one first.
    """
    made = []
    for repetition in range(repeat):
        shift = repetition % max(len(peers), 1)
        for workload in chosen:
            if repetition >= workload.repeat:
                continue
            if workload.together:
                made.append(Turn(workload, None, repetition))
                continue
            for peer in [*peers[shift:], *peers[:shift]]:
                most = 99 if peer.kind == "quire" else min(workload.repeat_peers, peer.repeat)
                if peer.kind in workload.kinds and repetition < most:
                    made.append(Turn(workload, peer, repetition))
    return made


def sized(workload: Workload, peer: Peer | None, *, quick: bool) -> dict[str, Any]:
    """A slow peer has sizes of its own, where they are smaller."""
    sizes = workload.quick if quick else workload.full
    own = peer.sizes.get(workload.name, {}) if peer else {}
    return {**sizes, **{name: min(value, sizes[name]) for name, value in own.items() if name in sizes}}


def done(turn: Turn, runs: Iterable[dict[str, Any]]) -> bool:
    """The turn has its figures already, or the peer has said that it does not offer this, or has failed at it."""
    workload, peer, repetition = turn.key
    for run in runs:
        if run["workload"] == workload and (run["peer"] == peer or not peer):
            if "figures" in run and run["repetition"] == repetition:
                return True
            if "figures" not in run:
                return True
    return False


def disturbed(todo: list[Turn], runs: list[dict[str, Any]]) -> list[Turn]:
    """What should be measured once more: turns without an undisturbed run; those whose figure has none at all first."""
    clean: dict[tuple[str, str], int] = {}
    settled: set[tuple[str, str, int]] = set()
    seen: dict[tuple[str, str, int], bool] = {}
    for run in runs:
        place = (run["workload"], run["peer"])
        key = (*place, run["repetition"])
        fine = "not_offered" in run or ("figures" in run and not run["noise"]["noisy"])
        seen[key] = seen.get(key, False) or fine
        clean[place] = clean.get(place, 0) + fine
        if fine:
            settled.add(key)
    found = []
    for turn in todo:
        keys = [key for key in seen if key[0] == turn.key[0] and key[2] == turn.key[2]]
        keys = keys if turn.peer is None else [turn.key] if turn.key in seen else []
        if any(key not in settled for key in keys):
            least = min(clean[key[:2]] for key in keys)
            found.append((least, turn.peer is not None and turn.peer.kind != "quire", turn))
    return [turn for *_, turn in sorted(found, key=lambda entry: entry[:2])]


class Budget:
    """How much time is left, and what a turn is expected to take."""

    def __init__(
        self, minutes: float | None, took: dict[tuple[str, str], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._begin = clock()
        self._end = None if minutes is None else self._begin + minutes * 60
        self._took = took

    def expected(self, turn: Turn) -> float:
        workload, peer, _ = turn.key
        return self._took.get((workload, peer), turn.workload.guess)

    def learn(self, turn: Turn, seconds: float) -> None:
        workload, peer, _ = turn.key
        self._took[workload, peer] = seconds

    def left(self) -> float:
        return float("inf") if self._end is None else self._end - self._clock()

    def allows(self, turn: Turn) -> bool:
        return self.expected(turn) <= self.left()

    def told(self, todo: list[Turn]) -> str:
        """For the terminal: how long it has been, how much is to come."""
        coming = sum(self.expected(turn) for turn in todo)
        text = f"[{_minutes(self._clock() - self._begin)}, {len(todo)} to go: about {_minutes(coming)}"
        return text + (f", {_minutes(max(self.left(), 0))} left]" if self._end is not None else "]")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


#: What the page begins with: settings that nobody has touched, and steps that do something.
LEADING = ("W0", "W12")
_ALONE = "The adapters of the other peers have no such step yet."

WORKLOADS = [
    Workload(
        name="W0",
        title="1,000 records, each with a call over HTTP of 5 ms and an effect, at default settings",
        full={"n": 1000, "alone": 20, "call_seconds": 0.005},
        quick={"n": 100, "alone": 3, "call_seconds": 0.005},
        warm={"n": 100},
        kinds=("quire",),
        left_out=_ALONE,
        guess=15,
    ),
    Workload(
        name="W12",
        title="kill -9 in the middle of 200 x 5 effects, then restart, at default settings",
        full={"records": 200, "steps": 5, "step_seconds": 0.01, "concurrency": 100, "by_default": True},
        quick={"records": 60, "steps": 5, "step_seconds": 0.01, "concurrency": 100, "by_default": True},
        timeout=240,
        repeat=1,
        kinds=("quire",),
        left_out=_ALONE,
        guess=100,
    ),
    Workload(
        name="W1",
        title="enqueue and drain 2,000 one-step records",
        kinds=ALL,
        full={"n": 2000},
        quick={"n": 200},
        warm={"n": 500},
        guess=10,
    ),
    Workload(
        name="W2",
        title="300 records x 10 no-op durable steps at once",
        kinds=ALL,
        full={"records": 300, "steps": 10},
        quick={"records": 30, "steps": 10},
        warm={"records": 10, "steps": 10},
    ),
    Workload(
        name="W3",
        title="one record on an idle system",
        kinds=ALL,
        full={"n": 200, "pause": 0.02},
        quick={"n": 30, "pause": 0.02},
        warm={"n": 10, "pause": 0.0},
    ),
    Workload(
        name="W4",
        title="one parent, 1,000 children, reduce",
        kinds=ALL,
        full={"children": 1000},
        quick={"children": 100},
        warm={"children": 20},
        timeout=400,
        repeat_peers=2,
    ),
    Workload(
        name="W5",
        title="20 x 1.2 s at cap 5 (ideal 4.8 s)",
        full={"n": 20, "seconds": 1.2, "cap": 5},
        quick={"n": 10, "seconds": 0.4, "cap": 5},
        warm={"n": 5, "seconds": 0.05, "cap": 5},
        repeat_peers=1,
    ),
    Workload(
        name="W6",
        title="W1 with 200,000 and with 1,000,000 finished records in the ledger",
        full={"n": 2000, "fills": [200_000, 1_000_000], "drains": 21},
        quick={"n": 200, "fills": [20_000], "drains": 2},
        warm={"n": 100},
        timeout=1800,
        repeat=3,
        kinds=("quire",),
        left_out="The bar compares Quire with itself; a store with a million finished rows for each peer takes hours.",
        guess=180,
    ),
    Workload(
        name="W7",
        title="idle cost, import time, installed size",
        full={"window": 60, "settle": 10, "pokes": 10},
        quick={"window": 6, "settle": 3, "pokes": 3},
        repeat=1,
        together=True,
        guess=300,
    ),
    Workload(
        name="W8",
        title="kill -9 in the middle of 200 x 5 steps, then restart",
        full={"records": 200, "steps": 5, "step_seconds": 0.01, "concurrency": 50},
        quick={"records": 60, "steps": 5, "step_seconds": 0.01, "concurrency": 50},
        timeout=240,
        repeat_peers=1,
        guess=30,
    ),
    Workload(
        name="W9",
        title="40,000 one-step records drained by 1, 2 and 4 worker processes",
        full={"n": 40_000, "processes": [1, 2, 4], "labours": 2000, "labour_seconds": 0.001},
        quick={"n": 200, "processes": [1, 2, 4], "labours": 50, "labour_seconds": 0.001},
        timeout=600,
        repeat_peers=1,
        guess=20,
    ),
    Workload(
        name="W10",
        title="a 200,000-token transcript over 100 turns",
        full={"turns": [25, 50, 100], "turn_bytes": 8000},
        quick={"turns": [10, 20], "turn_bytes": 8000},
        repeat=1,
        guess=10,
    ),
    Workload(
        name="W11",
        title="memory of one process over 1,000,000 transitions",
        full={"transitions": 1_000_000},
        quick={"transitions": 1_000},
        timeout=1800,
        repeat=1,
        kinds=("quire",),
        left_out="The question is whether Quire's process grows; at 200 steps a second a peer takes 80 minutes.",
        guess=120,
    ),
]


def known(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


def choose(names: list[str]) -> list[Workload]:
    if not names:
        return WORKLOADS
    there = [workload.name for workload in WORKLOADS]
    for name in names:
        if name.upper() not in there:
            raise SystemExit(f"no workload {name!r}; there are: {', '.join(there)}")
    return [workload for workload in WORKLOADS if workload.name in map(str.upper, names)]
