"""References inside formulas: find them in the text, and write them anew when cells move.

A formula is kept as its text. Only the references in it are rewritten, so that spelling and spaces stay as typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from hectograph.sheets.a1 import Rect, column_index, letters, quoted
from hectograph.sheets.cell import Formula

_SHEET = r"(?:(?:'(?:[^']|'')+'|[A-Za-z_\u0080-\uffff][\w.]*)!)?"
_AREA = (
    r"(?:\$?[A-Za-z]{1,3}\$?\d+(?::(?:\$?[A-Za-z]{1,3}\$?\d+|\$?[A-Za-z]{1,3}|\$?\d+))?"
    r"|\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}(?:\$?\d+)?|\$?\d+:\$?\d+)"
)

TOKEN = re.compile(
    rf"""(?P<space>\s+)
    |(?P<string>"(?:[^"]|"")*")
    |(?P<error>\#(?:N/A|REF!|DIV/0!|VALUE!|NAME\?|NUM!|NULL!|ERROR!))
    |(?P<ref>{_SHEET}{_AREA}(?![\w(.!]))
    |(?P<deadref>(?:'(?:[^']|'')+'|[A-Za-z_][\w.]*)!\#REF!)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<call>[A-Za-z_][\w.]*(?=\s*\())
    |(?P<name>[A-Za-z_\u0080-\uffff][\w.]*)
    |(?P<op><=|>=|<>|[-+*/^&=<>%(),;{{}}:\\!])
    """,
    re.VERBOSE,
)

_END = re.compile(r"(\$?)([A-Za-z]{1,3})?(\$?)(\d+)?")


@dataclass(frozen=True, slots=True)
class Side:
    """One corner of a reference; a missing row or column is unbounded, and each may be fixed with a dollar."""

    row: int | None
    column: int | None
    row_fixed: bool
    column_fixed: bool

    def text(self) -> str:
        out = ""
        if self.column is not None:
            out += ("$" if self.column_fixed else "") + letters(self.column)
        if self.row is not None:
            out += ("$" if self.row_fixed else "") + str(self.row + 1)
        return out

    def shifted(self, down: int, right: int) -> Side | None:
        row, column = self.row, self.column
        if row is not None and not self.row_fixed:
            row += down
        if column is not None and not self.column_fixed:
            column += right
        if (row is not None and row < 0) or (column is not None and column < 0):
            return None
        return replace(self, row=row, column=column)


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference: the sheet as written, the first corner and, for an area, the second."""

    title: str | None
    first: Side
    last: Side | None

    def text(self) -> str:
        prefix = "" if self.title is None else quoted(self.title) + "!"
        return prefix + self.first.text() + ("" if self.last is None else ":" + self.last.text())

    def rect(self, sheet_id: int) -> Rect:
        last = self.last or self.first
        top, bottom = self.first.row, last.row
        left, right = self.first.column, last.column
        if top is not None and bottom is not None and bottom < top:
            top, bottom = bottom, top
        if left is not None and right is not None and right < left:
            left, right = right, left
        if top is None and bottom is not None and self.first.column is not None:
            top, bottom = bottom, None
        return Rect(sheet_id, top, None if bottom is None else bottom + 1, left, None if right is None else right + 1)

    def shifted(self, down: int, right: int) -> Ref | None:
        first = self.first.shifted(down, right)
        last = None if self.last is None else self.last.shifted(down, right)
        if first is None or (self.last is not None and last is None):
            return None
        return replace(self, first=first, last=last)


def _side(text: str) -> Side:
    match = _END.fullmatch(text)
    assert match is not None  # the token pattern matched it
    dollar, column, second, row = match.groups()
    if column is None:
        return Side(int(row) - 1, None, bool(dollar or second), False)
    return Side(int(row) - 1 if row else None, column_index(column), bool(second) and bool(row), bool(dollar))


@lru_cache(maxsize=65536)
def read(text: str) -> Ref:
    title: str | None = None
    mark = text.rfind("!")
    if mark >= 0:
        title = text[:mark]
        if title.startswith("'"):
            title = title[1:-1].replace("''", "'")
        text = text[mark + 1 :]
    first, colon, last = text.partition(":")
    return Ref(title, _side(first), _side(last) if colon else None)


@dataclass(frozen=True, slots=True)
class Uses:
    """What a formula refers to: the one row of its own sheet, or many; and other sheets."""

    #: The only row of its own sheet, if there is just one and it is not fixed with a dollar.
    row: int | None
    #: The titles of sheets that are named, in lower case.
    titles: frozenset[str]
    #: Whether a row of a named sheet moves along when the formula is copied.
    drifts: bool


@lru_cache(maxsize=262144)
def uses(formula: str) -> Uses:
    rows: set[int | None] = set()
    titles: set[str] = set()
    drifts = False
    for kind, text in tokens(formula) or ():
        if kind != "ref":
            continue
        ref = read(text)
        sides = [side for side in (ref.first, ref.last) if side is not None]
        if ref.title is not None:
            titles.add(ref.title.casefold())
            drifts |= any(side.row is not None and not side.row_fixed for side in sides)
            continue
        if all(side.row is None for side in sides):
            continue
        rows.update(None if side.row is None or side.row_fixed else side.row for side in sides)
    single = next(iter(rows)) if len(rows) == 1 else None
    return Uses(single, frozenset(titles), drifts)


def homed(value: Formula, row: int, title: str) -> Formula:
    """The formula as it is kept in a row: bound to it if it refers to no other row of its sheet."""
    if value.home is not None:
        return value
    used = uses(value.text)
    return Formula(value.text, row) if used.row == row and title.casefold() not in used.titles else value


def placed(value: Formula, row: int) -> str:
    """The text of a formula where it stands."""
    if value.home is None or value.home == row:
        return value.text
    down = row - value.home
    return rewritten(value.text, lambda ref: ref.shifted(down, 0) if ref.title is None else ref)


def tokens(formula: str) -> list[tuple[str, str]] | None:
    """The tokens of a formula after its equals sign, or nothing if it cannot be read."""
    out: list[tuple[str, str]] = []
    at = 1
    while at < len(formula):
        match = TOKEN.match(formula, at)
        if match is None:
            return None
        out.append((str(match.lastgroup), match.group()))
        at = match.end()
    return out


def rewritten(formula: str, change: Callable[[Ref], Ref | None]) -> str:
    """The formula with every reference put through ``change``; nothing in place of a reference makes it ``#REF!``."""
    found = tokens(formula)
    if found is None or all(kind != "ref" for kind, _ in found):
        return formula
    out = ["="]
    for kind, text in found:
        if kind == "ref":
            ref = read(text)
            new = change(ref)
            if new is None:
                text = "#REF!"
            elif new != ref:
                text = new.text()
        out.append(text)
    return "".join(out)


def copied(formula: str, down: int, right: int) -> str:
    """The formula as it reads when its cell is copied: relative references move along."""
    if not down and not right:
        return formula
    return rewritten(formula, lambda ref: ref.shifted(down, right))
