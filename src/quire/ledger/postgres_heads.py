"""Where the queue of each step begins, as far as this process knows.

PostgreSQL keeps the entry of a claimed record in its index until a vacuum takes it away. A claim that began at the
first entry would go through all that were claimed since the last vacuum; after 100,000 of them that is more work than
the claim itself. So, when many claims in a row found as much as they asked for, the next one begins where
the last one ended.

What is due before there is rare, and is not lost: something more urgent, or something committed long after it was due.
If this process wrote it, the next claim begins at the beginning; if another did, one does within ``WHOLE_SECONDS``; and
a claim that finds less than it asks for begins again, there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from quire.clock import Clock
from quire.model.change import Slot
from quire.model.record import CLAIMABLE, Record

#: After so many records in a row: to go through fewer entries takes less than to begin again at the end of the row.
FAR = 2000
#: So long claims may pass over what is due before the heads.
WHOLE_SECONDS = 1.0
#: No head is later than so long ago: a record is due as soon as its start is decided, and committed a little later.
LATE_SECONDS = 0.25


class Heads:
    """For each step, by workflow and name, the rank from which a claim looks for what is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ranks: dict[tuple[str, str], float] = {}
        self._until = 0.0
        #: How many records claims took in a row that found as much as they asked for.
        self._row = 0

    def of(self, slots: Sequence[Slot]) -> list[float] | None:
        """None: the next claim begins at the beginning."""
        if self._ranks and self._clock.boottime() >= self._until:
            self._ranks = {}
        return [self._ranks.get((slot.workflow, slot.step), -inf) for slot in slots] if self._ranks else None

    def reached(self, taken: Sequence[Record], now: float) -> None:
        """A claim took all that it asked for, of each step in the order of rank."""
        self._row += len(taken)
        if self._row < FAR:
            return
        if not self._ranks:
            self._until = self._clock.boottime() + WHOLE_SECONDS
        for place, last in {(record.workflow, record.step): record for record in taken}.items():
            if last.rank is not None:
                self._ranks[place] = min(last.rank, now - LATE_SECONDS)

    def put(self, changed: Iterable[Record]) -> None:
        """This process wrote these rows: does any come before the head of its step?"""
        if not self._ranks:
            return
        for record in changed:
            if record.status in CLAIMABLE:
                rank, head = record.rank, self._ranks.get((record.workflow, record.step))
                if rank is not None and head is not None and rank < head:
                    self._ranks = {}
                    return

    def forget(self) -> None:
        """A claim found less than it asked for."""
        self._ranks, self._row = {}, 0
