"""Tells a quiet machine from a busy one, so that a figure taken on a busy one says so."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")

#: A repetition is called noisy beyond these: cores used by others; slowness against the best probe of the session.
FOREIGN_CORES = 0.15
SYNC_RATIO = 2.0
SPIN_RATIO = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    fdatasync_ms: float
    spin_ms: float


def probe(directory: Path) -> Probe:
    return Probe(fdatasync_ms=_fdatasync_p50(directory), spin_ms=_spin())


def _fdatasync_p50(directory: Path, count: int = 40) -> float:
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for number in range(count):
            os.pwrite(file.fileno(), number.to_bytes(8, "big") * 512, 0)
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1000


def _spin(rounds: int = 7) -> float:
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


def tree_seconds(root: int) -> float:
    """CPU seconds of a process, its living descendants, and those that they have already waited for."""
    own = 0.0
    for pid in [root, *descendants(root)]:
        fields = _stat(pid)
        if fields is not None:
            own += sum(int(field) for field in fields[11:15])
    return own / TICKS


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


class Watch:
    """Foreign CPU use while something is measured: the machine's busy time less that of our own process tree."""

    def __init__(self, directory: Path, best: dict[str, float]) -> None:
        self._directory = directory
        self._best = best

    def __enter__(self) -> Watch:
        self._probe = probe(self._directory)
        for name, value in asdict(self._probe).items():
            self._best[name] = min(value, self._best.get(name, value))
        self._begin = time.monotonic()
        self._busy = busy_seconds()
        self._own = tree_seconds(os.getpid())
        return self

    def __exit__(self, *exc: object) -> None:
        seconds = max(time.monotonic() - self._begin, 1e-3)
        busy = busy_seconds() - self._busy
        own = tree_seconds(os.getpid()) - self._own
        self.foreign_cores = max(0.0, busy - own) / seconds

    def report(self) -> dict[str, Any]:
        reasons = []
        if self.foreign_cores > FOREIGN_CORES:
            reasons.append(f"others used {self.foreign_cores:.2f} cores")
        if self._probe.fdatasync_ms > SYNC_RATIO * self._best["fdatasync_ms"]:
            reasons.append(f"fdatasync took {self._probe.fdatasync_ms / self._best['fdatasync_ms']:.1f} x the best")
        if self._probe.spin_ms > SPIN_RATIO * self._best["spin_ms"]:
            reasons.append(f"the CPU took {self._probe.spin_ms / self._best['spin_ms']:.1f} x the best")
        return {**asdict(self._probe), "foreign_cores": round(self.foreign_cores, 3), "noisy": reasons}
