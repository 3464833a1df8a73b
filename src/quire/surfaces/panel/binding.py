"""A binding: rows of a tab that are bound to records, with columns that are ours, theirs or both. Pure.

The state table, an inbox and a table of people's are declarations of it. Each bound row has a *hidden row*, which lies
in a tab of the engine's own. The visible cells of ours refer to it by a fixed address, so a row keeps its record
wherever people sort or move it, and what the engine wrote is never taken for what a person typed.

- The *reader* is ``Bound``: which hidden row a visible row belongs to, and which of its cells are not as they should.
- The *planner* decides what to write: ``repair`` for visible cells, ``hidden_rows`` for hidden ones.
- The *writer* is ``cells.fill`` and ``cells.replace``: each visible cell only if it still holds what was read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from quire.surfaces.panel.cells import At, Request, fill, insert_rows, reference, refers, replace, wider, write

Grid = Sequence[Sequence[Any]]

RECORD_ID = "record_id"
#: An id that stays text when it is put into a cell: no formula, no number, no date.
_SAFE = re.compile(r"[a-z][a-z0-9_]*_[a-z0-9_]+")


class _HiddenRow(Protocol):
    @property
    def record_id(self) -> str: ...


R = TypeVar("R", bound=_HiddenRow)
L = TypeVar("L")


class Gap(NamedTuple):
    """A cell of ours that is not as it should be."""

    name: str
    at: At
    #: What stands there; empty: it is blank.
    found: Any
    #: What belongs there.
    wanted: str


def cell_at(cells: Sequence[Any], column: int | None) -> Any:
    return cells[column] if column is not None and column < len(cells) else ""


class Bound:
    """Reads the rows of one tab.

    ``columns``: where our columns stand; ``hidden``: the column of the hidden tab that each of them shows; ``ids``: the
    record of each hidden row of this tab; ``title``: of the hidden tab.
    """

    def __init__(
        self,
        sheet_id: int,
        columns: Mapping[str, int],
        hidden: Mapping[str, int],
        ids: Mapping[int, str],
        title: str,
    ) -> None:
        self.sheet_id = sheet_id
        self.columns = columns
        self.ids = ids
        self.places = {record_id: place for place, record_id in ids.items()}
        self.title = title
        self.hidden = {name: hidden[name] for name in columns if name in hidden}
        shown = [(columns[name], reference(title, at, 0)[:-1]) for name, at in self.hidden.items()]
        self._references = [each for each in shown if each[0] != columns.get(RECORD_ID)]

    def also(self, place: int, record_id: str) -> Bound:
        """The same, with one more hidden row."""
        return Bound(self.sheet_id, self.columns, self.hidden, {place: record_id}, self.title)

    def wanted(self, name: str, place: int) -> str:
        """What our cell of this column holds beside a row of this hidden row."""
        if name == RECORD_ID and _SAFE.fullmatch(self.ids.get(place, "")):
            return self.ids[place]
        return reference(self.title, self.hidden[name], place)

    def shown(self, text: Any) -> int | None:
        """The hidden row that a cell refers to; None: it is no reference of ours."""
        found = refers(text)
        return found.row if found is not None and found.title == self.title else None

    def place(self, cells: Sequence[Any]) -> int | None:
        """The hidden row of a visible one: by what most of its cells refer to, or by the id that stands in it."""
        if (quick := self._whole(cells)) is not None:
            return quick
        found = [self.shown(cell_at(cells, self.columns[name])) for name in self.hidden]
        votes = Counter(place for place in found if place in self.ids)
        given = cell_at(cells, self.columns.get(RECORD_ID))
        by_id = self.places.get(given) if isinstance(given, str) else None
        if votes:
            [(most, count)] = votes.most_common(1)
            # An id that was typed over is put back; a row of which only the id is left is that record's.
            return most if count > 1 or by_id is None else by_id
        return by_id

    def refers_to(self, cells: Sequence[Any], place: int) -> bool:
        """Whether a cell of ours refers to this hidden row: the id alone may have met a wrong row."""
        return any(self.shown(cell_at(cells, self.columns[name])) == place for name in self.hidden)

    def gaps(self, row: int, cells: Sequence[Any], place: int) -> tuple[Gap, ...]:
        if self._whole(cells) == place:
            return ()
        gaps = []
        for name, hidden in self.hidden.items():
            column = self.columns[name]
            text = cell_at(cells, column)
            found = refers(text)
            if found is not None and (found.title, found.column, found.row) == (self.title, hidden, place):
                continue
            if not (name == RECORD_ID and text == self.ids.get(place)):
                gaps.append(Gap(name, At(self.sheet_id, row, column), text, self.wanted(name, place)))
        return tuple(gaps)

    def _whole(self, cells: Sequence[Any]) -> int | None:
        """The hidden row of a row that is as it was made, found quickly: nearly all rows are."""
        if not self._references:
            return None
        column, start = self._references[0]
        text = cell_at(cells, column)
        if not isinstance(text, str) or not text.startswith(start):
            return None
        row = text[len(start) :]
        place = int(row) - 1 if row.isdecimal() else -1
        if place not in self.ids:
            return None
        if RECORD_ID in self.columns and self.ids[place] != cell_at(cells, self.columns[RECORD_ID]):
            return None
        if any(cell_at(cells, at) != start + row for at, start in self._references[1:]):
            return None
        return place

    def beside(self, row: int, cells: Sequence[Any]) -> list[tuple[At, str, int]]:
        """Cells of ours in a row that is bound to nothing."""
        found = []
        for column in self.columns.values():
            text = cell_at(cells, column)
            place = self.shown(text)
            if place is None and isinstance(text, str):
                place = self.places.get(text)
            if place is not None:
                found.append((At(self.sheet_id, row, column), text, place))
        return found

    def misplaced(self, row: int, cells: Sequence[Any], theirs: Iterable[int], standing: frozenset[str]) -> list[At]:
        """Cells of ours in columns of people's. ``standing``: ids that stand where they belong, too."""
        found = []
        for column in theirs:
            text = cell_at(cells, column)
            lost = isinstance(text, str) and text in self.places and text not in standing
            if lost or self.shown(text) is not None:
                found.append(At(self.sheet_id, row, column))
        return found

    def standing(self, grid: Grid) -> frozenset[str]:
        """The ids that stand where they belong: the same text elsewhere was typed by somebody who means it."""
        column = self.columns.get(RECORD_ID)
        texts = [cell_at(cells, column) for cells in grid[1:]] if column is not None else []
        shown = [(self.shown(text), str(text)) for text in texts]
        return frozenset(self.ids.get(place, text) if place is not None else text for place, text in shown)

    def repair(self, gap: Gap, *, kept: bool, blanks: bool, shown: Mapping[At, str] | None = None) -> list[Request]:
        """Put a cell of ours right, if it still is as it was read. ``kept``: also where somebody typed over it.

        ``shown``: how cells that hold no text look: only by that can they be found.
        """
        if gap.found == "":
            return fill(gap.at, gap.wanted, blanks=blanks)
        text = gap.found if isinstance(gap.found, str) else (shown or {}).get(gap.at, "")
        ours = "#REF!" in text or self.shown(text) is not None or text in self.places
        return [replace(gap.at, text, gap.wanted)] if text and (kept or ours) else []

    def name_copy(self, name: str, row: int, place: int, text: str) -> list[Request]:
        """Say of a pasted row that it is one, once."""
        column = self.columns.get(name)
        if column is None:
            return []
        return [replace(At(self.sheet_id, row, column), reference(self.title, self.hidden[name], place), text)]


def added(sheet_id: int, header: int, names: Sequence[str], grid: Grid, wide: int, *, blanks: bool) -> list[Request]:
    """Give the tab columns of ours after the last one that is used. ``wide``: how many columns it has."""
    first = max([len(cells) for cells in grid[header:]], default=0)
    over = first + len(names) - wide
    requests = [wider(sheet_id, over)] if over > 0 else []
    for number, name in enumerate(names):
        requests += fill(At(sheet_id, header, first + number), name, blanks=blanks)
    return requests


def one_each(lines: Iterable[tuple[Hashable, L]], rank: Callable[[L], Any]) -> tuple[list[L], list[L]]:
    """Of several rows that are bound to the same, the one of the lowest rank, and the others: copies."""
    found: dict[Hashable, list[L]] = {}
    for key, line in lines:
        found.setdefault(key, []).append(line)
    chosen, copies = [], []
    for same in found.values():
        same.sort(key=rank)
        chosen.append(same[0])
        copies += same[1:]
    return chosen, copies


# -- hidden rows ---------------------------------------------------------------------------------------------------


def hidden_cells(grid: Grid, wide: int) -> Iterator[tuple[int, list[str], tuple[Any, ...]]]:
    """Read the hidden rows of a tab: their places, what stands in their own columns, and what they show after those.

    The blanks at the end, which Google does not send, do not count.
    """
    for place, cells in enumerate(grid):
        if place >= 1 and cells and str(cells[0]) not in ("", RECORD_ID):
            yield place, [str(cell_at(cells, at)) for at in range(wide)], trimmed(cells[wide:])


def trimmed(values: Sequence[Any]) -> tuple[Any, ...]:
    """Without the blanks at the end."""
    kept = list(values)
    while kept and kept[-1] == "":
        kept.pop()
    return tuple(kept)


class Written(Generic[R]):
    """What the hidden rows say by the last write of this process. What somebody changed in them is put back."""

    def __init__(self) -> None:
        self._rows: Mapping[int, R] = {}
        #: Rows that were put back, as they were found: what reads like that all the same is let be.
        self._odd: dict[int, R] = {}

    def know(self, rows: Mapping[int, R]) -> None:
        self._rows = dict(rows)

    def forget(self) -> None:
        self._rows = {}

    def restore(self, found: dict[int, R]) -> dict[int, R]:
        """Make the rows that were changed say again what was written. Answers those, as they were found."""
        changed = {}
        for place, row in found.items():
            wrote = self._rows.get(place)
            if wrote is None or wrote == row or wrote.record_id != row.record_id:
                self._odd.pop(place, None)
            elif self._odd.get(place) != row:
                self._odd[place] = changed[place] = row
        for place in changed:
            found[place] = self._rows[place]
        return changed


def hidden_rows(
    sheet_id: int,
    before: Mapping[int, R],
    after: Mapping[int, R],
    size: int,
    cells: Callable[[R], Sequence[Mapping[str, Any]]],
) -> list[Request]:
    """The requests that bring the hidden rows from one to the other. ``size``: how many rows the hidden tab has."""
    requests: list[Request] = []
    top = max([size - 1, *after])
    if top >= size:
        requests.append(insert_rows(sheet_id, size, top - size + 1))
    run: list[int] = []
    for place in [*sorted(place for place, row in after.items() if before.get(place) != row), -1]:
        if run and place != run[-1] + 1:
            requests.append(write(sheet_id, run[0], 0, [cells(after[at]) for at in run]))
            run = []
        run.append(place)
    return requests
