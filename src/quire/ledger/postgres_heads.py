"""Where the queue of each step begins, as far as is known.

PostgreSQL keeps the entry of a claimed record in its index until a vacuum takes it away. A claim that began at the
first entry would go through all that were claimed since the last vacuum; after 100,000 of them that is more work than
the claim itself. So, when many claims in a row found as much as they asked for, the next one begins where the last one
ended: the last one of this process, or of any other, whichever went further. What other processes reached, they tell
while their claims are under way, by a sequence of the server (``reached``): that is seen at once, not only when they
commit. So claims that go on side by side do not pass over each other's records one by one.

What is due before there is rare, and is not lost: something more urgent, or something committed long after it was due,
or what a claim had reached that did not land. If this process wrote it, the next claim begins at the beginning; if
another did, one does within ``WHOLE_SECONDS``; and a claim that finds less than it asks for begins again, there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from zlib import crc32

from quire.clock import Clock
from quire.model.change import Slot
from quire.model.record import CLAIMABLE, Record

#: After so many records in a row: to go through fewer entries takes less than to begin again at the end of the row.
FAR = 2000
#: So long claims may pass over what is due before the heads.
WHOLE_SECONDS = 1.0
#: No head is later than so long ago: a record is due as soon as its start is decided, and committed a little later.
LATE_SECONDS = 0.25

#: A claim of fewer than so many does not tell how far it came.
LARGE = 20

#: The sequence holds one number: in its upper bits which step it is of, in its lower ones a rank, in microseconds.
_RANK_BITS = 51
_CODES = 1 << 63 - _RANK_BITS
#: Ranks are counted from here, the beginning of 2020; 51 bits reach to the end of the century.
_ERA = 1_577_836_800
_RANK = f"({_ERA} + (last_value & {(1 << _RANK_BITS) - 1})::float8 / 1000000)"


def _holds(code: str) -> str:
    """SQL: the number is of the step of this code, and not of the future, as after a clock was set back."""
    return f"last_value >> {_RANK_BITS} = {code} AND {_RANK} <= moment.now"


#: SQL: the rank from which a step is looked at, by its ``code`` and the rank ``known`` to this process. If that is the
#: beginning, it is the beginning.
HEAD = f"CASE WHEN known > '-infinity' AND {_holds('code')} THEN greatest(known, {_RANK}) ELSE known END"


def reached(large: str) -> str:
    """SQL: tells how far a claim came that found so many, in a table ``due``, if all are of one step."""
    last = f"SELECT CASE WHEN {_holds('min(due.code)')} THEN last_value ELSE 1 END FROM reached CROSS JOIN moment"
    rank = f"least(max(rank), (SELECT now FROM moment) - {LATE_SECONDS}) - {_ERA}"
    # A microsecond less: rounding shall not make it greater than the rank itself.
    new = f"min(code) << {_RANK_BITS} | greatest(1, floor(1000000 * ({rank})) - 1)::bigint"
    tells = f"setval('reached', greatest(({last}), {new}))"
    return f"SELECT CASE WHEN count(*) >= {large} AND min(code) = max(code) THEN {tells} END FROM due"


def code_of(slot: Slot) -> int:
    """A number for a step. Two steps may have the same, though rarely; each then begins at the other's rank."""
    return crc32(f"{slot.workflow}\0{slot.step}".encode()) % _CODES


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
