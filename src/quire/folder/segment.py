"""A segment of the archive: lines of ended records, moved out of the ledger, each segment bound to the one before it.

A segment is a JSONL file. Its first line is the header, which holds the SHA-256 of the whole segment before; then come
the lines, those of one record together and in order. The ledger remembers the SHA-256 of the last segment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from quire.folder.base import FolderError
from quire.folder.layout import ARCHIVE
from quire.folder.text import compact
from quire.model.event import Event, chained
from quire.model.row import as_dict

FORMAT = 1
#: The ledger's setting that names the last segment.
SETTING = "archive"


class Segment(NamedTuple):
    """One segment, read."""

    number: int
    #: The SHA-256 of the segment before; empty for the first.
    previous: str
    lines: list[Event]
    #: Its own SHA-256.
    sha256: str

    def records(self) -> Iterator[tuple[str, list[Event]]]:
        """Yield the lines by record."""
        for record_id, lines in groupby(self.lines, lambda event: event.record_id):
            yield record_id, list(lines)


def path_of(number: int) -> str:
    return f"{ARCHIVE}/segment_{number:08d}.jsonl"


def line_of(event: Event) -> dict[str, Any]:
    return as_dict(event)


def segment_file(number: int, previous: str, lines: Sequence[Event], made_at: str) -> bytes:
    records = len({event.record_id for event in lines})
    header = {
        "segment": number,
        "format": FORMAT,
        "previous": previous,
        "lines": len(lines),
        "records": records,
        "made_at": made_at,
    }
    text = "\n".join([compact(header), *(compact(line_of(event)) for event in lines)]) + "\n"
    return text.encode()


def read_segment(number: int, content: bytes | None) -> Segment:
    """Return the segment of this number, checked within itself. What is wrong is named with its line."""
    where = path_of(number)
    if content is None:
        raise FolderError(f"{where!r} is missing: the ledger's log before it was moved there")
    rows = []
    for count, text in enumerate(content.splitlines(), 1):
        try:
            rows.append(json.loads(text))
        except ValueError:
            raise FolderError(f"{where!r} line {count} is not JSON") from None
    try:
        header = rows[0]
        lines = [Event(**row) for row in rows[1:]]
        right = (header["segment"], header["format"], header["lines"]) == (number, FORMAT, len(lines))
        previous = str(header["previous"])
    except (KeyError, TypeError, IndexError) as error:
        raise FolderError(f"{where!r} is not a segment of the archive: {error!r}") from None
    if not right:
        raise FolderError(f"{where!r} is not what its first line says: {compact(header)}")
    return Segment(number, previous, lines, hashlib.sha256(content).hexdigest())


def follows(lines: Sequence[Event], before: Event | None) -> Event | None:
    """The first of one record's lines that does not follow from the one before it; None: all do.

    ``before``: the line before the first, None if the first is the record's first. A line that is ``before`` itself may
    stand at the beginning: the ledger keeps the last line of what it moved to the archive.
    """
    if lines and before is not None and lines[0].n == before.n:
        if lines[0] != before:
            return lines[0]
        lines = lines[1:]
    previous, n = (before.hash, before.n) if before is not None else ("", 0)
    for event in lines:
        right = chained(previous, event.record_id, event.n, event.version, event.at, event.kind, event.body)
        if event.n != n + 1 or event.hash != right:
            return event
        previous, n = event.hash, event.n
    return None
