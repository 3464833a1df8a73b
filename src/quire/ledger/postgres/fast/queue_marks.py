"""Where the queue of each step begins, as far as is known.

PostgreSQL keeps the entry of a claimed record in its index until a vacuum takes it away. A claim that began at the
first entry would go through all that were claimed since the last vacuum; after 100,000 of them that is more work than
the claim itself. So, when many claims in a row found as much as they asked for, the next one begins where the last one
ended: the last one of this process, or of any other, whichever went further. What other processes reached, they tell
while their claims are under way, by a sequence of the server (``reached``): that is seen at once, not only when they
commit. So claims that go on side by side do not pass over each other's records one by one.

What is due before there is rare, and is not lost: something more urgent, or something committed long after it was due,
or what a claim had reached that did not land. If this process wrote it, before its own head, the next claim begins at
the beginning; otherwise one does within ``WHOLE_SECONDS``; and a claim that finds less than it asks for begins again,
there. Such a claim leads all others back to where it came, for there may be more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
#: Ranks are counted from here, the beginning of 2020; 51 bits reach to 2091, and later ranks are told as that.
_ERA = 1_577_836_800
_MOST = (1 << _RANK_BITS) - 1
#: Ranks that differ by less are taken for the same.
_ALIKE = 0.001
_RANK = f"({_ERA} + (last_value & {_MOST})::float8 / 1000000)"


def _holds(code: str) -> str:
    """SQL: the number is of the step of this code, and not of the future, as after a clock was set back."""
    return f"last_value >> {_RANK_BITS} = {code} AND {_RANK} <= moment.now"


#: SQL: the rank from which a step is looked at, by its ``code`` and the rank ``known`` to this process. If that is the
#: beginning, it is the beginning.
HEAD = f"CASE WHEN known > '-infinity' AND {_holds('code')} THEN greatest(known, {_RANK}) ELSE known END"


def reached(large: str) -> str:
    """SQL: tells how far a claim came that found so many, in a table ``due``, if all are of one step.

    One from the beginning says it also if others have come further: what it found lay before them, and more may. One
    from a ``head`` that lies after what is told now leaves that: somebody has gone back since it began.
    """
    rank = f"least(max(rank), (SELECT now FROM moment) - {LATE_SECONDS}) - {_ERA}"
    # A microsecond less: rounding shall not make it greater than the rank itself.
    new = f"min(code) << {_RANK_BITS} | greatest(1, least(floor(1000000 * ({rank})) - 1, {_MOST}))::bigint"
    others = f"{_holds('min(due.code)')} AND min(due.head) > '-infinity'"
    last = f"CASE WHEN {_RANK} < min(due.head) - {_ALIKE} THEN last_value ELSE greatest(last_value, {new}) END"
    tells = f"(SELECT setval('reached', CASE WHEN {others} THEN {last} ELSE {new} END) FROM reached CROSS JOIN moment)"
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
        #: The next claim begins at the beginning, whatever those that are under way will find.
        self._anew = False

    def of(self, slots: Sequence[Slot]) -> list[float] | None:
        """None: the next claim begins at the beginning. While it is under way others go on from the heads."""
        if not self._ranks:
            return None
        now = self._clock.boottime()
        if self._anew or now >= self._until:
            self._anew, self._until = False, now + WHOLE_SECONDS
            return None
        return [self._ranks.get((slot.workflow, slot.step), -inf) for slot in slots]

    def reached(self, taken: Sequence[Record], now: float, began: Mapping[tuple[str, str], float]) -> None:
        """A claim took all that it asked for, of each step in the order of rank.

        ``began``: where it began, by step; at the beginning, where none is given. What it found there may lie before
        the heads, and more may; then claims that began after it, and are answered later, do not count.
        """
        self._row += len(taken)
        if self._row < FAR:
            return
        if not self._ranks:
            self._until = self._clock.boottime() + WHOLE_SECONDS
        for place, last in {(record.workflow, record.step): record for record in taken}.items():
            if last.rank is not None:
                end, head = min(last.rank, now - LATE_SECONDS), began.get(place, -inf)
                if head == -inf:
                    self._ranks[place] = end
                elif self._ranks.get(place, -inf) >= head:
                    self._ranks[place] = max(self._ranks[place], end)

    def put(self, changed: Iterable[Record]) -> None:
        """This process wrote these rows: does any come before the head of its step?"""
        if not self._ranks:
            return
        for record in changed:
            if record.status in CLAIMABLE:
                rank, head = record.rank, self._ranks.get((record.workflow, record.step))
                if rank is not None and head is not None and rank < head:
                    self._anew = True
                    return

    def forget(self) -> None:
        """A claim found less than it asked for."""
        self._ranks, self._row, self._anew = {}, 0, False
