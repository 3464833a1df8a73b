"""Tells a quiet machine from a busy one, so that a figure taken on a busy one says so."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")

#: A repetition is called noisy beyond these: cores used by others; slowness against the best probe of the session.
FOREIGN_CORES = 0.15
FOREIGN_SECONDS = 0.1
SYNC_RATIO = 2.0
SPIN_RATIO = 1.25
#: So long the machine may take to become quiet before a measurement begins anyway.
PATIENCE = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    fdatasync_ms: float
    spin_ms: float


def probe(directory: Path) -> Probe:
    return Probe(fdatasync_ms=_fdatasync_p50(directory), spin_ms=spin())


def _fdatasync_p50(directory: Path, count: int = 40) -> float:
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for number in range(count):
            os.pwrite(file.fileno(), number.to_bytes(8, "big") * 512, 0)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def spin() -> float:
    """How long a loop takes on the slowest of our processors: a neighbour may slow one and leave the others alone."""
    ours = os.sched_getaffinity(0)
    rounds = max(3, 14 // len(ours))
    try:
        return max(_spun(processor, rounds) for processor in ours)
    finally:
        os.sched_setaffinity(0, ours)


def _spun(processor: int, rounds: int) -> float:
    os.sched_setaffinity(0, {processor})
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        total = 0
        for number in range(100_000):
            total += number
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def busy_seconds() -> float:
    """CPU seconds of the whole machine so far, steal included, idle and iowait not."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in fields)
    return (user + nice + system + irq + softirq + steal) / TICKS


def own_seconds(pid: int) -> float:
    """CPU seconds of one process, and of the descendants that it has already waited for."""
    fields = _stat(pid)
    return 0.0 if fields is None else sum(int(field) for field in fields[11:15]) / TICKS


def tree_seconds(root: int) -> float:
    """The same of a process and of all its living descendants."""
    return sum(own_seconds(pid) for pid in [root, *descendants(root)])


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _stat(int(entry))
            if fields is not None:
                children.setdefault(int(fields[1]), []).append(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def resident_mb(root: int) -> float:
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for pid in [root, *descendants(root)]:
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
        except OSError:
            continue
    return total / 1e6


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the state on: [0] state, [1] parent, [11:15] utime, stime and the children's."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None


def reasons(found: Probe, best: dict[str, float], foreign_seconds: float = 0.0, seconds: float = 1.0) -> list[str]:
    """Why a measurement does not count; nothing if the machine was quiet."""
    why = []
    # Clock ticks are coarse: a few of them say nothing about a short measurement.
    if foreign_seconds > max(FOREIGN_CORES * seconds, FOREIGN_SECONDS):
        why.append(f"others used {foreign_seconds / seconds:.2f} cores")
    if found.fdatasync_ms > SYNC_RATIO * best["fdatasync_ms"]:
        why.append(f"fdatasync took {found.fdatasync_ms / best['fdatasync_ms']:.1f} x the best")
    if found.spin_ms > SPIN_RATIO * best["spin_ms"]:
        why.append(f"the CPU took {found.spin_ms / best['spin_ms']:.1f} x the best")
    return why


def settle(directory: Path, best: dict[str, float], patience: float) -> Probe:
    """The first quiet probe, or the last one when the patience is at its end: what the measurement before left behind
    (a checkpoint, processes that end) shall not disturb the next one."""
    deadline = time.monotonic() + patience
    while True:
        found = probe(directory)
        for name, value in asdict(found).items():
            best[name] = min(value, best.get(name, value))
        if not reasons(found, best) or time.monotonic() > deadline:
            return found
        time.sleep(0.25)


def calm(best: dict[str, float], patience: float) -> float:
    """Wait until the CPU is as quick as it was at its best, as long as the patience lasts; answers how quick it is.

    Neighbours on the same host come and go within seconds: what was quiet before a peer was set up need not be so when
    its clock starts.
    """
    deadline = time.monotonic() + patience
    while True:
        found = spin()
        if found <= SPIN_RATIO * best.get("spin_ms", found) or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


class Watch:
    """Foreign CPU use while something is measured: the machine's busy time less that of our own process tree."""

    def __init__(self, directory: Path, best: dict[str, float], patience: float = PATIENCE) -> None:
        self._directory = directory
        self._best = best
        self._patience = patience

    def __enter__(self) -> Watch:
        self._probe = settle(self._directory, self._best, self._patience)
        self._begin = time.monotonic()
        self._busy = busy_seconds()
        self._own = tree_seconds(os.getpid())
        return self

    def __exit__(self, *exc: object) -> None:
        self._seconds = max(time.monotonic() - self._begin, 1e-3)
        busy = busy_seconds() - self._busy
        own = tree_seconds(os.getpid()) - self._own
        self._foreign = max(0.0, busy - own)

    def felt(self, spin_ms: float) -> None:
        """The CPU was so slow right before the measured call, or right after it."""
        self._probe = replace(self._probe, spin_ms=max(self._probe.spin_ms, spin_ms))

    def report(self) -> dict[str, Any]:
        return {
            **asdict(self._probe),
            "foreign_cores": round(self._foreign / self._seconds, 3),
            "noisy": reasons(self._probe, self._best, self._foreign, self._seconds),
        }
