"""R1C1 notation: ``R2C3``, offsets from A1 in brackets (``R[1]C[1]``), letters without a number.

A letter without a number is the first row or column; a missing letter beside a numbered one leaves its side open. Both
ends of a range are written in this notation or neither is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_END = re.compile(r"(?:(R)(?:(\d+)|\[(\d+)\])?)?(?:(C)(?:(\d+)|\[(\d+)\])?)?", re.IGNORECASE)


class End(NamedTuple):
    """One corner: row and column from zero, open sides missing, and the numbers as they were written."""

    row: int | None
    column: int | None
    row_written: tuple[int, bool] | None
    column_written: tuple[int, bool] | None


def end(text: str) -> End | None:
    match = _END.fullmatch(text)
    if match is None or not text:
        return None
    r, row, row_offset, c, column, column_offset = match.groups()
    if "0" in {n.lstrip("0") or "0" for n in (row, column) if n is not None}:
        return None
    rows = _number(row, row_offset)
    columns = _number(column, column_offset)
    return End(_index(r, rows, columns), _index(c, columns, rows), rows, columns)


def _number(absolute: str | None, offset: str | None) -> tuple[int, bool] | None:
    if absolute is not None:
        return int(absolute), True
    return None if offset is None else (int(offset), False)


def _index(letter: str | None, own: tuple[int, bool] | None, other: tuple[int, bool] | None) -> int | None:
    if own is not None:
        return own[0] - 1 if own[1] else own[0]
    return 0 if letter or other is None else None


def ends(text: str) -> tuple[End, End] | None:
    """Both corners of a range, or nothing if it is not written so; one that just misses its start is refused."""
    parts = text.split(":")
    if len(parts) > 2:
        return None
    found = [end(part) for part in parts]
    first, last = found[0], found[-1]
    if first is None or last is None:
        return None
    if len(parts) == 2:
        pairs = ((first.row_written, last.row_written), (first.column_written, last.column_written))
        for a, b in pairs:
            if a is not None and b is not None and a[1] == b[1] and a[0] == b[0] + 1:
                return None
    return first, last
