"""The time of a worker that works for a while only: what may be begun with what is left of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from quire.model.change import Slot
from quire.rules.outcome import Yielded
from quire.run.passes import Pass
from quire.worker.slices import FAREWELL_SECONDS, StepTimes

if TYPE_CHECKING:
    from quire.worker.worker import Worker

log = logging.getLogger("quire.worker")


class Budget:
    """The time of one worker. Without an end, everything may be begun."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        #: On the ledger's clock; None: no end.
        self.ends_at: float | None = None
        self.span = 0.0
        #: What is known of how long steps take; None: there is no end.
        self.times: StepTimes | None = None

    def begin(self, seconds: float) -> None:
        self.span = max(0.0, seconds - FAREWELL_SECONDS)
        self.ends_at = self._worker.now() + self.span
        self.times = StepTimes(seconds)

    def end(self) -> None:
        self.ends_at = self.times = None

    def time_for(self, span: float, since: float, *, harmless: bool) -> float:
        if self.ends_at is None:
            return span
        left = self.ends_at - self._worker.now()
        # With most of its time ahead a worker acts with what it has: otherwise a short budget would never act at all.
        if left >= span or left > self.span / 2:
            return min(left, span)
        # A record that was here from the start has no more time in any slice. An act that may be repeated is begun.
        if self.from_start(since) and (left > self.span / 4 or (harmless and left > 0)):
            return min(left, span)
        self._worker.stopping = True
        self._worker.changed.set()
        return 0.0

    def from_start(self, since: float) -> bool:
        if self.ends_at is None:
            return False
        return since - (self.ends_at - self._worker.lease.offset - self.span) <= self.span / 5

    def fits(self, workflow: str, step: str) -> bool:
        """Return whether a step may be begun with the time that is left."""
        left = (self.ends_at or 0.0) - self._worker.now()
        return left > 0 and (self.times is None or self.times.fits(workflow, step, left))

    def fitting(self, slots: list[Slot]) -> list[Slot]:
        """Return the slots of the steps that may be begun with the time that is left."""
        if self.ends_at is None or self.times is None:
            return slots
        return self.times.fitting(slots, self.ends_at - self._worker.now())

    def measured(self, pass_: Pass) -> None:
        """Keep how long a pass took, and say so at once if no slice of this length is enough for its step."""
        if self.times is None or pass_.longest is None:
            return
        place = (pass_.record.workflow, pass_.step.name)
        cut = isinstance(pass_.stop, Yielded)
        found = self.times.took(place, pass_.longest, self._worker.now(), ended=not cut)
        if found is not None:
            log.warning(
                "step %r of %r %s: a slice of %.3g s is too short for it, and it is not begun in one again for an "
                "hour; give it more (quire tick --budget %ds), or let quire worker run it",
                *(place[1], place[0], found.words(), found.slice, found.fitting),
            )
