"""A1 notation: columns as letters, rectangles with open sides, and the grammar of ranges.

    Sheet1!A1:B2   'My sheet'!A:C   A5:A   1:2   $A$1   Sheet1   NamedRange   Sheet1!NamedRange   R1C1:R2C2

An unquoted word means, in this order: a named range, a cell, a sheet's title (so a sheet called ``D3`` needs quotes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hectograph.core.error import Invalid
from hectograph.sheets import r1c1

MAX_COLUMNS = 18_278

_CELL = re.compile(r"\$?([A-Za-z]{1,3})?\$?([0-9]{1,7})?")
_PLAIN_TITLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOKS_LIKE_CELL = re.compile(r"[A-Za-z]{1,3}[0-9]+|R\d*C\d*|[RrCc]\d*|TRUE|FALSE", re.IGNORECASE)


def letters(column: int) -> str:
    """The name of a zero-based column: 0 is A, 26 is AA."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def column_index(name: str) -> int:
    value = 0
    for char in name.upper():
        value = value * 26 + ord(char) - 64
    return value - 1


def quoted(title: str) -> str:
    if _PLAIN_TITLE.fullmatch(title) and not _LOOKS_LIKE_CELL.fullmatch(title):
        return title
    return "'" + title.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle of one sheet, half-open, a missing side being unbounded."""

    sheet_id: int
    top: int | None = None
    bottom: int | None = None
    left: int | None = None
    right: int | None = None

    @classmethod
    def of(cls, grid: Mapping[str, Any]) -> Rect:
        return cls(
            int(grid.get("sheetId", 0)),
            grid.get("startRowIndex"),
            grid.get("endRowIndex"),
            grid.get("startColumnIndex"),
            grid.get("endColumnIndex"),
        )

    def json(self) -> dict[str, Any]:
        """As Google writes it: a sheet id of 0 is left out, an index of 0 is not."""
        out: dict[str, Any] = {"sheetId": self.sheet_id} if self.sheet_id else {}
        sides = (
            ("startRowIndex", self.top),
            ("endRowIndex", self.bottom),
            ("startColumnIndex", self.left),
            ("endColumnIndex", self.right),
        )
        return out | {name: value for name, value in sides if value is not None}

    def bounded(self, rows: int, columns: int) -> Box:
        return Box(
            min(self.top or 0, rows),
            min(rows if self.bottom is None else self.bottom, rows),
            min(self.left or 0, columns),
            min(columns if self.right is None else self.right, columns),
        )

    def moved(self, sheet_id: int) -> Rect:
        return replace(self, sheet_id=sheet_id)

    def text(self) -> str:
        """The part after the exclamation mark, or nothing for a whole sheet."""
        if self.top is None and self.bottom is None and self.left is None and self.right is None:
            return ""
        if self.left is None and self.right is None:
            if self.bottom == (self.top or 0) + 1:
                return str(self.bottom)
            return f"{(self.top or 0) + 1}:{self.bottom if self.bottom is not None else ''}"
        first = letters(self.left or 0) + ("" if self.top is None else str(self.top + 1))
        last = ("" if self.right is None else letters(self.right - 1)) + (
            "" if self.bottom is None else str(self.bottom)
        )
        one = self.bottom == (self.top or 0) + 1 and self.right == (self.left or 0) + 1
        column = self.top is None and self.bottom is None and first == last
        return first if column or (one and self.top is not None) else f"{first}:{last}"


@dataclass(frozen=True, slots=True)
class Box:
    """A bounded rectangle: rows ``top`` to ``bottom`` and columns ``left`` to ``right``, half-open."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def height(self) -> int:
        return max(0, self.bottom - self.top)

    @property
    def width(self) -> int:
        return max(0, self.right - self.left)

    def text(self) -> str:
        first = f"{letters(self.left)}{self.top + 1}"
        if self.height == 1 and self.width == 1:
            return first
        return f"{first}:{letters(self.right - 1)}{self.bottom}"

    def meets(self, other: Box) -> bool:
        return (
            self.top < other.bottom and other.top < self.bottom and self.left < other.right and other.left < self.right
        )

    def holds(self, other: Box) -> bool:
        return (
            self.top <= other.top
            and other.bottom <= self.bottom
            and self.left <= other.left
            and other.right <= self.right
        )

    def rect(self, sheet_id: int) -> Rect:
        return Rect(sheet_id, self.top, self.bottom, self.left, self.right)


class Names(Protocol):
    """What a range may refer to."""

    def sheet_named(self, title: str) -> int | None:
        """The id of the sheet with this title, upper and lower case being one."""

    def range_named(self, name: str) -> Rect | None:
        """The cells of a named range."""

    def first_sheet(self) -> int:
        """The sheet meant when none is named."""

    def title_of(self, sheet_id: int) -> str:
        """The title of a sheet."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A range as written: its rectangle, and whether it is one cell (which may anchor a larger block)."""

    rect: Rect

    @property
    def single(self) -> bool:
        rect = self.rect
        return (
            rect.top is not None
            and rect.left is not None
            and rect.bottom == rect.top + 1
            and rect.right == rect.left + 1
        )


def cells(text: str, sheet_id: int) -> Rect | None:
    """Read ``A1``, ``A1:B2``, ``A:B``, ``1:2``, ``A1:B``, else R1C1 notation; nothing if it is none of these."""
    parts = text.split(":")
    if len(parts) > 2 or not all(parts):
        return None
    ends = [_end(part) for part in parts]
    if any(found is None for found in ends) or (len(ends) == 1 and None in (ends[0] or ())):
        return _by_number(text, sheet_id)
    (row, column), (last_row, last_column) = (found or (None, None) for found in (ends[0], ends[-1]))
    if len(ends) == 1 and row is not None and column is not None:
        return Rect(sheet_id, row, row + 1, column, column + 1)
    return _ordered(sheet_id, row, column, last_row, last_column)


def _end(part: str) -> tuple[int | None, int | None] | None:
    match = _CELL.fullmatch(part)
    if match is None or not any(match.groups()):
        return None
    column = column_index(match.group(1)) if match.group(1) else None
    row = int(match.group(2)) - 1 if match.group(2) else None
    return None if row is not None and row < 0 else (row, column)


def _by_number(text: str, sheet_id: int) -> Rect | None:
    found = r1c1.ends(text)
    if found is None:
        return None
    first, last = found
    if ":" not in text:
        row, column = first.row, first.column
        return Rect(sheet_id, row, None if row is None else row + 1, column, None if column is None else column + 1)
    rows = _spread(first.row, last.row)
    columns = _spread(first.column, last.column)
    return Rect(sheet_id, *rows, *columns)


def _spread(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """The half-open span between two ends, an open end being open."""
    if last is None or first is None:
        return first, None if last is None else last + 1
    return min(first, last), max(first, last) + 1


def _ordered(sheet_id: int, r0: int | None, c0: int | None, r1: int | None, c1: int | None) -> Rect | None:
    if r0 is None and r1 is not None and c0 is not None:
        r0, r1 = r1, None  # A:B5 means the same as A5:B
    if c0 is None and c1 is not None and r0 is not None:
        c0, c1 = c1, None
    if r0 is not None and r1 is not None and r1 < r0:
        r0, r1 = r1, r0
    if c0 is not None and c1 is not None and c1 < c0:
        c0, c1 = c1, c0
    if r0 is None and c0 is None:
        return None
    return Rect(sheet_id, r0, None if r1 is None else r1 + 1, c0, None if c1 is None else c1 + 1)


def split(text: str) -> tuple[str | None, str]:
    """Split ``'My sheet'!A1`` into its title and its cells; the title is missing where none is written."""
    if text.startswith("'"):
        end = 1
        while end < len(text):
            if text[end] == "'":
                if text[end + 1 : end + 2] == "'":
                    end += 2
                    continue
                break
            end += 1
        title, rest = text[1:end].replace("''", "'"), text[end + 1 :]
        if rest.startswith("!"):
            return title, rest[1:]
        return (title, "") if not rest and end < len(text) else (None, text)
    title, mark, rest = text.rpartition("!")
    return (title, rest) if mark else (None, text)


def parse(text: str, names: Names) -> Parsed:
    """Read a range against a book's sheets and named ranges."""
    title, rest = split(text)
    if title == "" and cells(rest, 0) is not None:
        title = names.title_of(names.first_sheet())
    if title is not None:
        sheet_id = names.sheet_named(title)
        whole = names.sheet_named(text) if sheet_id is None or not rest else None
        if whole is not None and "!" in text:
            return Parsed(Rect(whole))  # a title with an exclamation mark in it
        if sheet_id is None:
            raise Invalid(f"Unable to parse range: {text}")
        if not rest and not text.endswith("!"):
            return Parsed(Rect(sheet_id))
        rect = cells(rest, sheet_id) or names.range_named(rest)
        if rect is None:
            raise Invalid(f"Unable to parse range: {text}")
        return Parsed(rect)
    named = names.range_named(text)
    if named is not None:
        return Parsed(named)
    plain = cells(text, names.first_sheet())
    if plain is not None and (plain.left is None or plain.left < MAX_COLUMNS):
        return Parsed(plain)
    by_title = names.sheet_named(text)
    if by_title is None:
        raise Invalid(f"Unable to parse range: {text}")
    return Parsed(Rect(by_title))


def written(rect: Rect, names: Names) -> str:
    """A range as Google repeats it in its texts, open sides kept open."""
    title, inner = quoted(names.title_of(rect.sheet_id)), rect.text()
    return f"{title}!{inner}" if inner else title
