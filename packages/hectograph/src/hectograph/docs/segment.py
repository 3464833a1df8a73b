"""The body of a document, a header, a footer or a footnote: what may be put where, and what may be taken out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hectograph.core.error import Invalid
from hectograph.core.utf16 import code_units
from hectograph.docs.unit import CELL, END, NONE, ROW, SECTION, TABLE, TEXT, Unit, splits_letter

#: What Docs strips from an inserted text without a word.
_STRIPPED = frozenset(map(chr, [*range(0x09), *range(0x0C, 0x20), *range(0xE000, 0xF900)]))

_NO_PARAGRAPH = (
    "The insertion index must be inside the bounds of an existing paragraph. You can still create new paragraphs by "
    "inserting newlines."
)
_NOT_DELETED = "Invalid deletion range. Cannot delete the requested range."


@dataclass(frozen=True)
class Cell:
    start: int
    end: int


@dataclass(frozen=True)
class Row:
    start: int
    end: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Block:
    """A paragraph, a table or a section break, with its places."""

    kind: str
    start: int
    end: int
    rows: tuple[Row, ...] = ()


def blocks(units: Sequence[Unit], start: int, end: int) -> Iterator[Block]:
    """Return what stands between two places, from one whole block to the next."""
    at = start
    while at < end:
        if units[at].kind == SECTION:
            yield Block(SECTION, at, at + 1)
            at += 1
        elif units[at].kind == TABLE:
            table = table_at(units, at)
            yield table
            at = table.end
        else:
            stop = at
            while not units[stop].line_end:
                stop += 1
            yield Block("paragraph", at, stop + 1)
            at = stop + 1


def table_at(units: Sequence[Unit], start: int) -> Block:
    """Return the table that begins at a place, with its rows and cells; tables in cells are passed over."""
    rows: list[Row] = []
    cells: list[Cell] = []
    row = cell = 0
    depth = 0
    at = start
    while True:
        kind = units[at].kind
        if kind == TABLE:
            depth += 1
        elif depth == 1 and kind in {ROW, CELL, END}:
            if cell:
                cells.append(Cell(cell, at))
                cell = 0
            if kind != CELL and row:
                rows.append(Row(row, at, tuple(cells)))
                cells, row = [], 0
            if kind == ROW:
                row = at
            elif kind == CELL:
                cell = at
            else:
                return Block(TABLE, start, at + 1, tuple(rows))
        elif kind == END:
            depth -= 1
        at += 1


@dataclass
class Segment:
    """``segment_id`` is empty for the body."""

    segment_id: str
    units: list[Unit] = field(default_factory=list)

    def fork(self) -> Segment:
        return Segment(self.segment_id, list(self.units))

    @property
    def end(self) -> int:
        return len(self.units)

    def check_index(self, at: int) -> None:
        if at >= self.end:
            raise Invalid(f"Index {at} must be less than the end index of the referenced segment, {self.end}.")
        if at < 0:
            raise Invalid(f"Index {at} must be greater than or equal to 0.")

    def check_place(self, at: int) -> None:
        """Refuse a place where nothing can be put in: only a paragraph takes something in."""
        self.check_index(at)
        if not self.units[at].inline:
            raise Invalid(_NO_PARAGRAPH)
        if splits_letter(self.units, at):
            raise Invalid("The insertion index cannot be within a grapheme cluster.")

    def check_range(self, start: int, end: int) -> None:
        if end <= start:
            raise Invalid("The range should not be empty.")
        self.check_index(start)
        self.check_index(end - 1)

    def paragraph(self, at: int) -> tuple[int, int]:
        """Return where the paragraph around a place begins and ends."""
        start = at
        while start > 0 and self.units[start - 1].inline and not self.units[start - 1].line_end:
            start -= 1
        end = at
        while not self.units[end].line_end:
            end += 1
        return start, end + 1

    def paragraphs(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the places of all paragraphs that a range touches."""
        out: list[tuple[int, int]] = []
        at = start
        while at < end:
            if self.units[at].inline:
                out.append(self.paragraph(at))
                at = out[-1][1]
            else:
                at += 1
        return out

    def in_table(self, at: int) -> bool:
        depth = 0
        for unit in self.units[:at]:
            depth += (unit.kind == TABLE) - (unit.kind == END)
        return depth > 0

    def neighbour(self, at: int) -> Unit:
        """Return the unit whose style a new text takes: the one before it in its paragraph, or else the next."""
        before = self.units[at - 1] if at else None
        return before if before is not None and before.kind == TEXT and not before.line_end else self.units[at]

    def names_at(self, at: int) -> frozenset[str]:
        """Return the named ranges that something put in at a place belongs to: those on both sides of it."""
        return self.units[at - 1].names & self.units[at].names if at else NONE

    def put(self, at: int, new: Sequence[Unit]) -> None:
        self.units[at:at] = new

    def insert_text(self, at: int, text: str, added: frozenset[str] = NONE, like: Unit | None = None) -> int:
        """Put a text in, and return how many units it takes. A new line end takes its paragraph's style with it."""
        self.check_place(at)
        model = like or self.neighbour(at)
        names = self.names_at(at) if like is None else like.names
        line_end = self.units[self.paragraph(at)[1] - 1]
        style = model.style if model.kind == TEXT else {}
        new = [
            Unit(TEXT, one, style, line_end.more if one == "\n" else {}, names, added)
            for one in code_units("".join(letter for letter in text if letter not in _STRIPPED))
        ]
        self.put(at, new)
        return len(new)

    def check_deletion(self, start: int, end: int) -> None:
        """Refuse a range that would leave half a letter, half a table, or no last line end."""
        self.check_range(start, end)
        if end == self.end:
            raise Invalid("The range cannot include the newline character at the end of the segment.")
        if splits_letter(self.units, start) or splits_letter(self.units, end):
            raise Invalid(_NOT_DELETED)
        at, depth = start, 0
        while at < end:
            unit = self.units[at]
            if unit.kind == SECTION and at == 0:
                raise Invalid(_NOT_DELETED)
            depth += (unit.kind == TABLE) - (unit.kind == END)
            # Marks of rows and cells may go only together with their whole table.
            if depth < 0 or (depth == 0 and unit.kind in {ROW, CELL}):
                raise Invalid(_NOT_DELETED)
            at += 1
        # The line end before a table or a section break, and the last one of a cell, stay.
        if depth or (self.units[end - 1].line_end and not self.units[end].inline):
            raise Invalid(_NOT_DELETED)

    def delete(self, start: int, end: int) -> None:
        self.check_deletion(start, end)
        del self.units[start:end]


#: The style of a paragraph that nobody has styled.
NORMAL: Mapping[str, Any] = {"namedStyleType": "NORMAL_TEXT", "direction": "LEFT_TO_RIGHT"}


def line_end(style: Mapping[str, Any] = NORMAL) -> Unit:
    return Unit(TEXT, "\n", {}, {"style": dict(style)})


def empty_table(rows: int, columns: int) -> list[Unit]:
    """Return the units of a table whose cells hold one empty paragraph each."""
    out = [Unit(TABLE, more={"columns": [{"widthType": "EVENLY_DISTRIBUTED"} for _ in range(columns)]})]
    for _ in range(rows):
        out += empty_row(columns)
    return [*out, Unit(END)]


def empty_row(columns: int) -> list[Unit]:
    out = [Unit(ROW)]
    for _ in range(columns):
        out += empty_cell()
    return out


def empty_cell() -> list[Unit]:
    return [Unit(CELL), line_end()]
