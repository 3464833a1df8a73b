"""Queue marks: for each step, the rank up to which claims have come.

PostgreSQL keeps the entry of a claimed record in its index until a vacuum takes it away. A claim that begins at the
first entry goes through the entries of all records that were claimed since the last vacuum; after 100,000 of them that
takes longer than the claim itself. So, when many claims in a row found as much as they asked for, the next one begins
at the mark: where the last claim of this process, or of any other, ended, whichever came further. Other processes tell
how far they came by a sequence of the server (``reached``) while their claims are under way. A sequence is seen at
once, not only after the commit, so claims that run side by side do not pass over each other's records one by one.

Records that are due before the mark are rare, and are not lost: a more urgent record, one that was committed long after
it was due, or what a claim had reached that did not land. If this process wrote such a record, the next claim begins at
the beginning; otherwise one claim does so every ``WHOLE_SECONDS``, and so does every claim that finds less than it asks
for. Such a claim leads all others back to where it came, because there may be more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from zlib import crc32

from quire.clock import Clock
from quire.model.change import Slot
from quire.model.record import CLAIMABLE, Record

#: Marks are set after this many records in a row: passing over fewer entries takes less time than marks save.
FAR = 2000
#: For so long, claims may pass over records that are due before the marks.
WHOLE_SECONDS = 1.0
#: No mark is later than so long ago: a record is due as soon as its start is decided, and committed a little later.
LATE_SECONDS = 0.25

#: A claim of fewer records does not tell how far it came.
LARGE = 20

#: The sequence holds one number: in its upper bits which step it is of, in its lower ones a rank, in microseconds.
_RANK_BITS = 51
_CODES = 1 << 63 - _RANK_BITS
#: Ranks are counted from here, the beginning of 2020; 51 bits reach to 2091, and later ranks are written as that.
_ERA = 1_577_836_800
_MOST = (1 << _RANK_BITS) - 1
#: Ranks that differ by less are taken for the same.
_ALIKE = 0.001
_RANK = f"({_ERA} + (last_value & {_MOST})::float8 / 1000000)"


def _holds(code: str) -> str:
    """SQL: the number is of the step of this code, and not of the future, as after a clock was set back."""
    return f"last_value >> {_RANK_BITS} = {code} AND {_RANK} <= moment.now"


#: SQL: the rank at which the claim of a step begins, by the step's ``code`` and the rank ``known`` to this process. If
#: that is the beginning, the claim begins at the beginning.
MARK = f"CASE WHEN known > '-infinity' AND {_holds('code')} THEN greatest(known, {_RANK}) ELSE known END"


def reached(large: str) -> str:
    """SQL: writes down how far a claim came that found so many in a table ``due``, if all are of one step.

    A claim from the beginning writes it also if others have come further: what it found lay before them, and there may
    be more. A claim from a ``mark`` after the written one leaves that one: somebody has gone back since it began.
    """
    rank = f"least(max(rank), (SELECT now FROM moment) - {LATE_SECONDS}) - {_ERA}"
    # A microsecond less: rounding shall not make it greater than the rank itself.
    new = f"min(code) << {_RANK_BITS} | greatest(1, least(floor(1000000 * ({rank})) - 1, {_MOST}))::bigint"
    others = f"{_holds('min(due.code)')} AND min(due.mark) > '-infinity'"
    last = f"CASE WHEN {_RANK} < min(due.mark) - {_ALIKE} THEN last_value ELSE greatest(last_value, {new}) END"
    written = (
        f"(SELECT setval('reached', CASE WHEN {others} THEN {last} ELSE {new} END) FROM reached CROSS JOIN moment)"
    )
    return f"SELECT CASE WHEN count(*) >= {large} AND min(code) = max(code) THEN {written} END FROM due"


def code_of(slot: Slot) -> int:
    """Return a number for a step. Two steps may have the same, though rarely; each then begins at the other's rank."""
    return crc32(f"{slot.workflow}\0{slot.step}".encode()) % _CODES


class QueueMarks:
    """For each step, by workflow and name, the rank at which the next claim begins."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ranks: dict[tuple[str, str], float] = {}
        self._until = 0.0
        #: How many records were taken by claims in a row that found as much as they asked for.
        self._row = 0
        #: The next claim begins at the beginning, whatever the claims that are under way will find.
        self._anew = False

    def of(self, slots: Sequence[Slot]) -> list[float] | None:
        """Return the marks of these steps; None: begin at the beginning, while other claims go on from the marks."""
        if not self._ranks:
            return None
        now = self._clock.boottime()
        if self._anew or now >= self._until:
            self._anew, self._until = False, now + WHOLE_SECONDS
            return None
        return [self._ranks.get((slot.workflow, slot.step), -inf) for slot in slots]

    def reached(self, taken: Sequence[Record], now: float, began: Mapping[tuple[str, str], float]) -> None:
        """Note that a claim took all that it asked for, of each step in the order of rank.

        ``began``: where it began, by step; a step that is missing began at the beginning. What the claim found there
        may lie before the marks, and so may more. Claims that began after it and are answered later then do not count.
        """
        self._row += len(taken)
        if self._row < FAR:
            return
        if not self._ranks:
            self._until = self._clock.boottime() + WHOLE_SECONDS
        for place, last in {(record.workflow, record.step): record for record in taken}.items():
            if last.rank is not None:
                end, mark = min(last.rank, now - LATE_SECONDS), began.get(place, -inf)
                if mark == -inf:
                    self._ranks[place] = end
                elif self._ranks.get(place, -inf) >= mark:
                    self._ranks[place] = max(self._ranks[place], end)

    def put(self, changed: Iterable[Record]) -> None:
        """Note that this process wrote these rows: one of them may be due before the mark of its step."""
        if not self._ranks:
            return
        for record in changed:
            if record.status in CLAIMABLE:
                rank, mark = record.rank, self._ranks.get((record.workflow, record.step))
                if rank is not None and mark is not None and rank < mark:
                    self._anew = True
                    return

    def forget(self) -> None:
        """Drop all marks: a claim found less than it asked for."""
        self._ranks, self._row, self._anew = {}, 0, False
