"""An event: one line of a record's log, in the past tense; and the hash chain that binds the lines.

Each line's hash covers the line and the hash before it, per record, so that a changed, dropped or inserted line is
found by reading one record's log (protocol 19).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from quire.model.row import Row


class Event(Row, frozen=True):
    """A line as stored. ``seq`` is the ledger's order of commits; ``n`` counts within the record."""

    seq: int
    record_id: str
    n: int
    #: The record's version after the change that wrote the line.
    version: int
    at: float
    kind: str
    #: JSON text.
    body: str
    run_id: str | None
    change_id: str
    hash: str


class Line(Row, frozen=True):
    """A line that is about to be written: the ledger adds its place, its time and its hash."""

    kind: str
    body: str = "{}"


def chained(previous: str, record_id: str, n: int, version: int, at: float, kind: str, body: str) -> str:
    """Return the hash of a line, given the hash of the line before it."""
    text = f"{previous}\n{record_id}\n{n}\n{version}\n{_written(at)}\n{kind}\n{body}"
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=64, typed=True)
def _written(at: float) -> str:
    """A moment as it is hashed. All lines of a batch are of one moment, and writing it takes as long as hashing."""
    return repr(at)


def first_break(events: Iterable[Event]) -> Event | None:
    """Return the first line of one record's log, given from its start, that does not follow from the one before it."""
    previous, expected = "", 1
    for event in events:
        right = chained(previous, event.record_id, event.n, event.version, event.at, event.kind, event.body)
        if event.n != expected or event.hash != right:
            return event
        previous, expected = event.hash, expected + 1
    return None
