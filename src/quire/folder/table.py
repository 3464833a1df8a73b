"""``state_table.csv``: all records of a workflow, one a line. New lines come last, changed ones stay where they are."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from quire.folder.state import COLUMNS

HEADER = (",".join(COLUMNS) + "\n").encode()
_BREAK = re.compile(r"[\r\n]+")


def line(cells: Sequence[str]) -> bytes:
    """One line of CSV. A line break within a cell becomes a space, so that a line is a record."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([_BREAK.sub(" ", cell) for cell in cells])
    return text.getvalue().encode()


def key(cells: Sequence[str]) -> bytes:
    """What a record's line begins with, and no other's."""
    return _key(line([*cells, ""]))


def merged(old: bytes, rows: Mapping[str, Sequence[str]]) -> bytes:
    """Return the table with these rows in it."""
    lines = {_key(text): text for text in old.removeprefix(HEADER).splitlines(keepends=True)}
    for cells in rows.values():
        text = line(cells)
        if (written := _key(text)) not in lines and cells[0].startswith("''"):
            before = key([cells[0][1:]])  # as it was written before apostrophes got one of their own
            if before in lines and _file(lines[before]) == _file(text):
                del lines[before]
        lines[written] = text
    return HEADER + b"".join(lines.values())


def table(rows: Iterable[Sequence[str]]) -> bytes:
    return HEADER + b"".join(map(line, rows))


def _key(text: bytes) -> bytes:
    """The first cell as it is written."""
    if not text.startswith(b'"'):
        return text.partition(b",")[0]
    place = 1
    while (place := text.index(b'"', place)) >= 0 and text[place + 1 : place + 2] == b'"':
        place += 2
    return text[: place + 1]


def _file(text: bytes) -> bytes:
    """What follows the last comma, of the last cell: the name of the record's file, or its end."""
    return text.rpartition(b",")[2]


def rows_of(content: bytes) -> list[dict[str, str]]:
    """The table read back."""
    return list(csv.DictReader(io.StringIO(content.decode("utf-8", "replace"), newline="")))
