"""What lines of a record's log mean."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import Record


def end_of(record: Record, log: Sequence[Event]) -> Event | None:
    """The line that made a record CANCELLED, whatever was told after it; None: a halt did, and nobody wrote it yet."""
    for event in reversed(log):
        if event.version == record.version and event.kind in ("cancelled", "undone"):
            return None if parse(event.body).get("undo") else event  # what is to be undone has not ended by that
    return None


def by_halt(end: Event | None) -> bool:
    """Whether a halt cancelled the record that ended by this line; without one it did, and is not written down yet."""
    if end is None or end.kind not in ("cancelled", "undone"):
        return True
    return end.kind == "cancelled" and str(parse(end.body).get("reason", "")).startswith("halted")
