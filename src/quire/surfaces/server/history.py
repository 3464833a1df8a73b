"""Counts over the last hour, by status and by step, for as long as this process looks."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

#: Between two samples of the counts, and how many are kept: an hour.
SAMPLE_SECONDS = 10.0
SAMPLES = 360
#: Of so many steps at most, the fullest: a ledger with a thousand steps fills no memory.
STEPS = 60


class History:
    """Samples of moment, counts by status, and counts by workflow and step of what has not ended."""

    def __init__(self) -> None:
        self.samples: deque[list[Any]] = deque(maxlen=SAMPLES)

    def add(self, at: float, counts: list[list[Any]]) -> None:
        """Keep a sample, or put it in the place of the last one if that is fresh."""
        statuses: Counter[str] = Counter()
        steps: Counter[tuple[str, str]] = Counter()
        for workflow, step, status, count in counts:
            statuses[status] += count
            if step and status not in ("DONE", "CANCELLED"):
                steps[workflow, step] += count
        fullest = [[workflow, step, count] for (workflow, step), count in steps.most_common(STEPS)]
        sample = [round(at, 1), dict(statuses), fullest]
        if len(self.samples) > 1 and at - float(self.samples[-2][0]) < SAMPLE_SECONDS:
            self.samples[-1] = sample
        else:
            self.samples.append(sample)
