"""A spreadsheet as data: sheets of rows of cells, named ranges, developer metadata.

A version of a book is never changed once it is published. A writer forks it, which shares all rows; the first write to
a row copies that row. So a batch that fails costs nothing, a reader needs no lock, and old versions are cheap to keep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from hectograph.core.error import Invalid
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.cell import EMPTY, Cell, Formula
from hectograph.sheets.color import default_format, theme
from hectograph.sheets.formulas.syntax import spreads
from hectograph.sheets.reference import homed, uses

MAX_CELLS = 10_000_000

Row = dict[int, Cell]


class Sheet:
    """One tab. ``rows`` may be shorter than the grid: what is missing is empty."""

    def __init__(self, sheet_id: int, title: str, rows: int = 1000, columns: int = 26) -> None:
        self.sheet_id = sheet_id
        self.properties: dict[str, Any] = {
            "sheetId": sheet_id,
            "title": title,
            "sheetType": "GRID",
            "gridProperties": {"rowCount": rows, "columnCount": columns},
        }
        self.rows: list[Row] = []
        self.merges: list[Box] = []
        self.row_properties: dict[int, dict[str, Any]] = {}
        self.column_properties: dict[int, dict[str, Any]] = {}
        self.extras: dict[str, Any] = {}
        #: Whether a formula was ever put here; a sheet without one need not be searched for them.
        self.formulas = False
        #: Whether one of them may fill more than its own cell.
        self.spills = False
        #: The titles that formulas here have named, in lower case; it may name too many, never too few.
        self.mentions: frozenset[str] = frozenset()
        self._own: set[int] = set()

    def fork(self) -> Sheet:
        """A writable twin; what its lists and dicts hold is replaced, never changed, by whoever writes."""
        twin = Sheet.__new__(Sheet)
        twin.sheet_id = self.sheet_id
        twin.properties = dict(self.properties)
        twin.rows = list(self.rows)
        twin.merges = list(self.merges)
        twin.row_properties = dict(self.row_properties)
        twin.column_properties = dict(self.column_properties)
        twin.extras = dict(self.extras)
        twin.formulas = self.formulas
        twin.spills = self.spills
        twin.mentions = self.mentions
        twin._own = set()
        return twin

    @property
    def title(self) -> str:
        return str(self.properties["title"])

    @property
    def row_count(self) -> int:
        return int(self.properties["gridProperties"].get("rowCount", 0))

    @property
    def column_count(self) -> int:
        return int(self.properties["gridProperties"].get("columnCount", 0))

    def set_size(self, rows: int, columns: int) -> None:
        grid = {**self.properties["gridProperties"], "rowCount": rows, "columnCount": columns}
        self.properties = {**self.properties, "gridProperties": grid}

    def box(self, rect: Rect) -> Box:
        return rect.bounded(self.row_count, self.column_count)

    def whole(self) -> Box:
        return Box(0, self.row_count, 0, self.column_count)

    def get(self, row: int, column: int) -> Cell:
        if row < len(self.rows):
            return self.rows[row].get(column, EMPTY)
        return EMPTY

    def row(self, row: int) -> Row:
        return self.rows[row] if row < len(self.rows) else {}

    def writable(self, row: int) -> Row:
        while len(self.rows) <= row:
            fresh: Row = {}
            self._own.add(id(fresh))
            self.rows.append(fresh)
        found = self.rows[row]
        if id(found) not in self._own:
            found = dict(found)
            self._own.add(id(found))
            self.rows[row] = found
        return found

    def put(self, row: int, column: int, cell: Cell) -> None:
        if cell.blank:
            if row < len(self.rows) and column in self.rows[row]:
                del self.writable(row)[column]
            return
        if isinstance(cell.value, Formula):
            value = homed(cell.value, row, self.title)
            if not uses(value.text).titles <= self.mentions:
                self.mentions |= uses(value.text).titles
            self.formulas = True
            self.spills = self.spills or spreads(value.text)
            if value is not cell.value:
                cell = Cell(value, cell.format, cell.note, cell.extra)
        self.writable(row)[column] = cell

    def adopt(self, rows: list[Row]) -> None:
        """Take rows that were made for this writer and are in place already."""
        self._own.update(id(row) for row in rows)

    def own_rows(self, rows: list[Row]) -> None:
        """Replace all rows by rows made for this writer."""
        self._own = {id(row) for row in rows}
        self.rows = rows

    def cells(self, box: Box) -> Iterator[tuple[int, int, Cell]]:
        """The cells that exist inside a box, row by row, left to right."""
        wide = box.width
        for row in range(box.top, min(box.bottom, len(self.rows))):
            held = self.rows[row]
            if not held:
                continue
            if len(held) <= wide:
                columns = sorted(c for c in held if box.left <= c < box.right)
            else:
                columns = [c for c in range(box.left, box.right) if c in held]
            for column in columns:
                yield row, column, held[column]

    def grow(self, rows: int, columns: int) -> None:
        """Make the grid at least this large."""
        if rows > self.row_count or columns > self.column_count:
            self.set_size(max(rows, self.row_count), max(columns, self.column_count))


class Book:
    """One version of a spreadsheet."""

    def __init__(self, book_id: str, title: str, seed: int) -> None:
        self.book_id = book_id
        self.version = 0
        self.properties: dict[str, Any] = {
            "title": title,
            "locale": "en_US",
            "autoRecalc": "ON_CHANGE",
            "timeZone": "Etc/GMT",
            "defaultFormat": default_format(),
            "spreadsheetTheme": theme(),
        }
        self.order: list[int] = []
        self.sheets: dict[int, Sheet] = {}
        self.named: dict[str, dict[str, Any]] = {}
        self.metadata: dict[int, dict[str, Any]] = {}
        #: Values of formulas and look-up tables of this version; emptied by whoever writes.
        self.memo: dict[Any, Any] = {}
        self.seed = seed
        self.minted = 0
        self._forked: set[int] = set()

    @classmethod
    def fresh(cls, book_id: str, title: str, seed: int = 0) -> Book:
        book = cls(book_id, title, seed)
        book.add(Sheet(0, "Sheet1"))
        return book

    def fork(self, book_id: str | None = None) -> Book:
        twin = Book.__new__(Book)
        twin.book_id = book_id or self.book_id
        twin.version = self.version + 1
        twin.properties = dict(self.properties)
        twin.order = list(self.order)
        twin.sheets = dict(self.sheets)
        twin.named = dict(self.named)
        twin.metadata = dict(self.metadata)
        twin.memo = {}
        twin.seed = self.seed
        twin.minted = self.minted
        twin._forked = set()
        return twin

    def mint(self) -> int:
        """An id that no sheet, range or object of this book has."""
        while True:
            self.minted += 1
            digest = hashlib.sha256(f"{self.book_id}/{self.seed}/{self.minted}".encode()).digest()
            made = int.from_bytes(digest[:4], "big") % (2**31 - 2) + 1
            if made not in self.sheets and str(made) not in self.named and made not in self.metadata:
                return made

    def add(self, sheet: Sheet, index: int | None = None) -> None:
        self.sheets[sheet.sheet_id] = sheet
        self._forked.add(sheet.sheet_id)
        self.order.insert(len(self.order) if index is None else min(index, len(self.order)), sheet.sheet_id)

    def drop(self, sheet_id: int) -> None:
        del self.sheets[sheet_id]
        self.order.remove(sheet_id)

    def write(self, sheet_id: int) -> Sheet:
        """A sheet to be changed by the writer of this fork."""
        self.memo.clear()
        if sheet_id not in self._forked:
            self.sheets[sheet_id] = self.sheets[sheet_id].fork()
            self._forked.add(sheet_id)
        return self.sheets[sheet_id]

    def all_sheets(self) -> Iterator[Sheet]:
        for sheet_id in self.order:
            yield self.sheets[sheet_id]

    def grid(self, sheet_id: int) -> Sheet:
        """The sheet of a range, or the refusal Google gives for ranges."""
        if sheet_id not in self.sheets:
            raise Invalid(f"No grid with id: {sheet_id}")
        return self.sheets[sheet_id]

    def sheet(self, sheet_id: int) -> Sheet:
        if sheet_id not in self.sheets:
            raise Invalid(f"No sheet with id: {sheet_id}")
        return self.sheets[sheet_id]

    def check_size(self) -> None:
        if sum(sheet.row_count * sheet.column_count for sheet in self.sheets.values()) > MAX_CELLS:
            raise Invalid(
                f"This action would increase the number of cells in the workbook above the limit of {MAX_CELLS} cells."
            )

    def sheet_named(self, title: str) -> int | None:
        wanted = title.casefold()
        for sheet in self.all_sheets():
            if sheet.title.casefold() == wanted:
                return sheet.sheet_id
        return None

    def range_named(self, name: str) -> Rect | None:
        wanted = name.casefold()
        for named in self.named.values():
            if named["name"].casefold() == wanted and named.get("range") is not None:
                return Rect.of(named["range"])
        return None

    def first_sheet(self) -> int:
        for sheet in self.all_sheets():
            if not sheet.properties.get("hidden"):
                return sheet.sheet_id
        return self.order[0]

    def title_of(self, sheet_id: int) -> str:
        return self.sheets[sheet_id].title
