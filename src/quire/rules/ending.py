"""What follows from a record's end, whoever moved it there: the fan-in counts it, its own children are let go. Pure.

``put`` stands at the end of every move that may end a record.
"""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.event import Line
from quire.model.record import Record
from quire.model.row import replace
from quire.rules import children, moves, orders
from quire.rules.draft import Draft


def put(draft: Draft, row: Record, image: Record, lines: Sequence[Line], change_id: str) -> Record:
    """Write down a move, and all that follows from it if the record ends or leaves its step. Return the new row."""
    counts = image.ended and _counts(row, image, lines)
    if counts:
        image = replace(image, counted=True)
    if image.cancel is not None:
        image = replace(image, cancel=orders.request_left(row, image, lines))
    after = draft.put(row, image, lines, change_id)
    if counts and after.generation is not None:
        children.ended(draft, after, change_id)
    if after.fanouts and (after.ended or after.visit != row.visit) and orders.ends(lines):
        children.abandon(draft, after.record_id, None)
    return after


def _counts(row: Record, image: Record, lines: Sequence[Line]) -> bool:
    """Return whether this end is subtracted from the fan-in of the record's parent. No record is subtracted twice."""
    if row.counted or image.parent_id is None or (row.ended and orders.edits(lines)):
        return False
    return children.counts(lines)


def put_by_itself(draft: Draft, row: Record, image: Record, lines: Sequence[Line], change_id: str) -> Record:
    """Write down a move that the ledger makes by itself."""
    return put(draft, row, entered(row, image), lines, change_id)


def entered(row: Record, image: Record) -> Record:
    """Return the image of a move; a step that is entered has no receipts yet."""
    return replace(image, facts=0) if image.facts and image.visit != row.visit else image


def stop_of(draft: Draft, row: Record) -> moves.Move | None:
    """Return what becomes of a record that somebody asked to cancel, once nobody holds it and nothing is in doubt."""
    if row.cancel is None or row.open_intents:
        return None
    return moves.obeyed(row, draft.now, row.cancel)


def obey(draft: Draft, row: Record, change_id: str) -> Record:
    """Nothing stands in the way of the request beside this record any more."""
    stop = stop_of(draft, row)
    assert stop is not None
    return put_by_itself(draft, row, stop.image, stop.lines, change_id)
