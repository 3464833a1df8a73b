"""Requests about single cells, and the rule behind them: what people typed is never written over.

A row is born by inserting it, so it is blank. After that a cell in a tab of people's is only ever replaced if it still
holds the text that was read there, or is still blank: ``findReplace`` on that one cell, whose reply tells. If people
sort, insert or delete between our look and our write, such a request meets another text and does nothing.

What the engine shows stands in hidden tabs of its own. A visible cell *refers* to its hidden cell by a fixed address
(``='quire_state'!$B$17``), so it goes wherever people move it, and no text of anybody is part of a formula.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Request = dict[str, Any]

_REFERENCE = re.compile(r"=(?:'((?:[^']|'')+)'|([^'!]+))!\$([A-Z]{1,2})\$(\d+)")
_PLAIN = re.compile(r"[A-Za-z_]\w*")
#: What a blank cell is filled with for a moment, inside one batch; nobody ever sees it.
_TOKEN = "\u2af7quire\u2af8"


class At(NamedTuple):
    """One cell; rows and columns count from 0."""

    sheet_id: int
    row: int
    column: int

    @property
    def range(self) -> dict[str, int]:
        return {
            "sheetId": self.sheet_id,
            "startRowIndex": self.row,
            "endRowIndex": self.row + 1,
            "startColumnIndex": self.column,
            "endColumnIndex": self.column + 1,
        }


class Refers(NamedTuple):
    """A visible cell refers to this hidden one."""

    title: str
    column: int
    row: int


def letters(column: int) -> str:
    out = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        out = chr(ord("A") + rest) + out
    return out


def reference(title: str, column: int, row: int) -> str:
    """The formula that shows a hidden cell."""
    name = title if _PLAIN.fullmatch(title) else "'" + title.replace("'", "''") + "'"
    return f"={name}!${letters(column)}${row + 1}"


def refers(text: Any) -> Refers | None:
    """What a cell's formula refers to, if it is one of ours."""
    found = _REFERENCE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    column = 0
    for letter in found[3]:
        column = column * 26 + ord(letter) - ord("A") + 1
    title = found[1].replace("''", "'") if found[1] else found[2]
    return Refers(title, column - 1, int(found[4]) - 1)


def cell(text: str) -> dict[str, Any]:
    """A cell with this text as it is: nothing is read as a formula, a number or a date."""
    return {"userEnteredValue": {"stringValue": text}} if text else {}


def values(given: Sequence[Any]) -> list[dict[str, Any]]:
    """Cells with these values: boxes and numbers as such, everything else as text."""
    made = []
    for value in given:
        kind = "boolValue" if isinstance(value, bool) else "numberValue" if isinstance(value, int | float) else ""
        made.append({"userEnteredValue": {kind: value}} if kind else cell(str(value)))
    return made


def formula(text: str) -> dict[str, Any]:
    return {"userEnteredValue": {"formulaValue": text}}


def write(sheet_id: int, row: int, column: int, rows: Sequence[Sequence[Mapping[str, Any]]]) -> Request:
    """Cells by their place: only for tabs of the engine's own, and for rows that the same batch has inserted."""
    start = {"sheetId": sheet_id, "rowIndex": row, "columnIndex": column}
    data = [{"values": list(cells)} for cells in rows]
    return {"updateCells": {"rows": data, "fields": "userEnteredValue", "start": start}}


def texts(sheet_id: int, row: int, rows: Sequence[Sequence[str]]) -> Request:
    return write(sheet_id, row, 0, [[cell(text) for text in texts] for texts in rows])


def insert_rows(sheet_id: int, row: int, count: int, *, last: bool = True) -> Request:
    """Blank rows before this one; ``last``: there is no such row, they come at the end."""
    span = {"sheetId": sheet_id, "dimension": "ROWS", "startIndex": row, "endIndex": row + count}
    return {"insertDimension": {"range": span, "inheritFromBefore": last}}


def wider(sheet_id: int, count: int) -> Request:
    return {"appendDimension": {"sheetId": sheet_id, "dimension": "COLUMNS", "length": count}}


def replace(at: At, was: str, text: str) -> Request:
    """Put ``text``, which is empty, a formula or words of ours, where ``was`` stands, if it still does."""
    return {
        "findReplace": {
            "find": was,
            "replacement": text,
            "range": at.range,
            "matchCase": True,
            "matchEntireCell": True,
            "includeFormulas": was.startswith("="),
        }
    }


def replaced(reply: Mapping[str, Any]) -> bool:
    """Whether a conditional request found what it looked for."""
    return bool(reply.get("findReplace", {}).get("occurrencesChanged"))


def fill(at: At, text: str, *, blanks: bool) -> list[Request]:
    """Put ``text`` into a cell, if it is still blank. ``blanks``: this book's ``findReplace`` sees blank cells.

    A pattern's replacement gives dollars a meaning, so the text itself comes by a second, plain replacement.
    """
    if not blanks:
        made = formula(text) if text.startswith("=") else cell(text)
        return [write(at.sheet_id, at.row, at.column, [[made]])]
    first = {"find": r"^\s*$", "replacement": _TOKEN, "range": at.range, "searchByRegex": True}
    return [{"findReplace": first}, replace(at, _TOKEN, text)]
