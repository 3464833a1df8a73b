"""Whether people changed rows of the journal that this process read long ago: a look at some of them with each read.

A read begins at the last entry, so an edit further up would be found by whoever starts later, when nobody is left who
knows what the row said. Rows ride along in the request that is made anyway, so many at a time, all of them in turn; the
first one, the header, rides along each time, so that a column that was inserted, moved or deleted is noticed at once.
What differs is no damage yet, since people may sort and move rows: the whole journal is read then, which tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from quire.ledger.sheets.journal_rows import WIDTH, Entry, cells

#: A look takes so many rows, and no more than so many characters unless one row alone is longer.
PART_ROWS = 100
PART_CHARACTERS = 50_000


class Row(NamedTuple):
    """What is remembered of a row: enough to tell whether it is as it was."""

    hash: int
    length: int


class Seen:
    """The rows of the journal as the book showed them last, or as an accepted commit wrote them."""

    def __init__(self) -> None:
        self._rows: list[Row] = [_row(())]
        #: The row with which the next look begins, counted from 1.
        self._next = 2

    def learn(self, rows: Iterable[Sequence[Any]]) -> None:
        """This is the whole journal, from its header on."""
        self._rows = [_row(row) for row in rows] or [_row(())]

    def add(self, entry: Entry) -> None:
        """This entry was inserted where it stands; a snapshot takes the place of all that was there."""
        new = [_row(row) for row in cells(entry)]
        at = entry.position - len(new)
        self._rows += [_row(())] * (at - len(self._rows))
        if entry.snapshot:
            self._rows[1:] = new
        else:
            self._rows[at:at] = new

    def part(self) -> tuple[int, int] | None:
        """The rows to look at now, first and last, counted from 1; None: there are none."""
        first = self._next if self._next <= len(self._rows) else 2  # a new generation is shorter
        rows = length = 0
        for row in self._rows[first - 1 : first - 1 + PART_ROWS]:
            length += row.length
            if rows and length > PART_CHARACTERS:
                break
            rows += 1
        last = first + rows - 1
        # Reported now, not when the next check begins: rows come all the time, and it would check nothing else.
        self._next = last + 1 if last < len(self._rows) else 2
        return (first, last) if rows else None

    def differ(self, part: tuple[int, int], header: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> bool:
        """Whether the header and these rows are not as they were. What came with them must have been added before."""
        known = self._rows[part[0] - 1 : part[1]]
        shown = [_row(row) for row in found] + [_row(())] * (len(known) - len(found))
        return _row(header[0] if header else ()) != self._rows[0] or shown != known


def _row(cells: Sequence[Any]) -> Row:
    """Cells that Google leaves away at the end of a row are empty."""
    texts = tuple(str(cell) for cell in cells[:WIDTH])
    return Row(hash(texts + ("",) * (WIDTH - len(texts))), sum(map(len, texts)))
