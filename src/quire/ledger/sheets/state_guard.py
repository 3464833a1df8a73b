"""Whether people changed the tab ``state``, which nobody but the engine writes: a look at a part of it with each poll.

Rows ride along in a request that is made anyway, so many at a time, all of them in turn. What differs from what the
journal says is no damage at once: the two are not read in one instant. If it differs in the same way the next time, the
tab is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from quire.clock import Clock
from quire.ledger.sheets.book import STATE_COLUMNS, state_row
from quire.ledger.sheets.replica import Replica

#: A part is looked at so often, and has so many rows.
LOOK_SECONDS = 10.0
PART_ROWS = 200


class Looked:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = float("-inf")
        #: How many records were looked at in this turn.
        self._next = 0
        #: What differed the last time, by row; and what differed when the tab was last written anew.
        self._odd: dict[int, list[str]] = {}
        self._mended: dict[int, list[str]] = {}

    def part(self, replica: Replica) -> tuple[int, int] | None:
        """The rows to look at now, first and last, counted from 1 with the header; None: none yet."""
        now, count = self._clock.boottime(), len(replica.places)
        if now - self._at < LOOK_SECONDS or not count:
            return None
        self._at = now
        if self._next >= count:
            self._next = 0
        return self._next + 2, min(self._next + PART_ROWS, count) + 1

    def changed(self, replica: Replica, part: tuple[int, int], found: Sequence[Sequence[Any]] | None) -> bool:
        """Return whether these rows differ from what they should say, as they did the last time."""
        first, last = part
        found_odd = differing(replica, first, islice(replica.places, first - 2, last - 1), found)
        self._mended = {
            row: cells for row, cells in self._mended.items() if not first <= row <= last or row in found_odd
        }
        # What was written, and reads like this all the same, is let be.
        odd = {row: cells for row, cells in found_odd.items() if self._mended.get(row) != cells}
        if any(self._odd.get(row) == cells for row, cells in odd.items()):
            self._mended, self._odd = {**self._mended, **odd}, {}
            return True
        self._odd = odd
        if not odd:
            self._next = last - 1
        return False


def differing(
    replica: Replica, first: int, record_ids: Iterable[str], found: Sequence[Sequence[Any]] | None
) -> dict[int, list[str]]:
    """Of these records, whose rows begin at ``first``, those whose row is not as it should be, and what it says."""
    odd: dict[int, list[str]] = {}
    for at, record_id in enumerate(record_ids):
        record = replica.tables.record(record_id)
        cells = [str(cell) for cell in found[at]] if found is not None and at < len(found) else []
        cells += [""] * (len(STATE_COLUMNS) - len(cells))
        if record is not None and cells != state_row(record):
            odd[first + at] = cells
    return odd
