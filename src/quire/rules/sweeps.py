"""What holds by definition already, and what the ledger writes down of it by itself, record by record. Pure."""

from __future__ import annotations

from quire.model.event import Line
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import Fanin
from quire.rules import conditions, ending, moves, orders
from quire.rules.draft import Draft
from quire.rules.orders import HALTED


def halted(draft: Draft, row: Record) -> bool:
    """A record that waits in a halted epoch is CANCELLED: write that down. Return whether there was anything to do."""
    if not orders.cancelled(draft, row) or draft.view.sealed:
        return False
    if orders.may_be_obeyed(row):
        ending.obey(draft, row, f"obeyed-{row.record_id}-{row.version}")
        return True
    image = replace(moves.halted(row), version=row.version + 1, updated_at=draft.now)
    ending.put_by_itself(draft, row, image, [HALTED], f"halt-{row.record_id}-{row.version}")
    return True


def abandoned(draft: Draft, row: Record, fanin: Fanin) -> bool:
    """Cancel a child whose parent went on without it, also one that a halt holds: nothing brings that back any more.

    A child that undoes what it did does so to the end.
    """
    over = row.ended and not conditions.held_by_halt(row)
    if over or not fanin.abandoned or row.step == UNDO or draft.view.sealed:
        return False
    reason = "its parent went on without it"
    if row.status is Status.RUNNING or row.open_intents:
        if row.cancel is None:
            request = orders.cancel_request("", reason, undo=False)
            line = Line("cancel_asked", request)
            draft.put(row, replace(row, cancel=request), [line], f"abandon-{row.record_id}")
            return True
        return False
    go = moves.stopped(row, draft.now, reason, False)
    ending.put_by_itself(draft, row, go.image, list(go.lines), f"abandon-{row.record_id}-{row.version}")
    return True


def adopted(draft: Draft, row: Record, by: str, why: str) -> bool:
    """A record of a book that was copied or restored asks a person before it goes on (protocol 11)."""
    if row.ended or halted(draft, row):
        return False
    if ending.stop_of(draft, row) is not None:
        row = ending.obey(draft, row, f"adopt-{row.record_id}-{row.version}")
        if row.ended:
            return False
    if row.status is Status.RUNNING:
        go = moves.orphan(row, draft.now)
        row = draft.put(row, go.image, go.lines, f"adopt-{row.run_id}")
    keys = [(receipt.key, receipt.name) for receipt in draft.intents(row.record_id)]
    go = moves.adopt(row, draft.now, by, why, draft.epoch, keys)
    draft.put(row, go.image, go.lines, f"adopt-{row.record_id}-{row.version}")
    return True
