"""Bringing back what a halt cancelled: the rest of ``resume --cancelled``, once the order itself is committed.

The person's own process does it. If that dies on the way, the housekeeping of a worker does. Every record is brought
back at most once, whoever tries, because its version decides.
"""

from __future__ import annotations

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import Change, Conflict, Order, Query
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Control
from quire.rules import conditions, moves, returning
from quire.rules.orders import cancelled_by_halt

#: Workers leave an order so long to the process that gave it.
LEAVE_SECONDS = 10.0
#: How many records are read at once.
_PAGE = 500
_STATUS = (Status.CANCELLED, Status.RUNNING, Status.NEEDS_APPROVAL)


async def bring_back(ledger: Ledger, order: Control) -> None:
    """Bring back all records that this order concerns, then say that all is back."""
    scope = returning.scope_of(order)
    query = Query(workflow="" if scope == EVERYWHERE else scope, status=_STATUS, limit=_PAGE)
    after = ""
    while found := await ledger.find(replace(query, after=after)):
        after = found[-1].record_id
        controls = (await ledger.standing()).controls
        for record in found:
            if returning.concerns(order, record, controls):
                await _brought_back(ledger, record, order, controls)
    await ledger.order(Order("returned", scope, order.by, epoch=order.floor))


async def _brought_back(ledger: Ledger, record: Record, order: Control, controls: tuple[Control, ...]) -> None:
    """Let one record go on. A worker may settle it at this very moment: then it is read again."""
    while conditions.under_way(record) or record.status is Status.CANCELLED:
        change = await _change(ledger, record, order, controls)
        if change is None:
            return
        [verdict] = await ledger.commit([change])
        if not isinstance(verdict, Conflict):
            return  # a refusal: its parent has gone on without it, or it was halted again
        found = await ledger.load([record.record_id])
        if not found:
            return
        [record] = found


async def _change(ledger: Ledger, record: Record, order: Control, controls: tuple[Control, ...]) -> Change | None:
    """Return what brings the record back; None: no halt cancelled it."""
    if conditions.under_way(record):
        if not conditions.halted(record, controls):
            return None
        return Change(new_id(), record.record_id, record.version, None, by=order.by, revive=order.floor)
    if not cancelled_by_halt(await ledger.events(record_id=record.record_id, limit=100_000)):
        return None
    go = moves.revive(record, record.updated_at, order.by, order.floor)
    return Change(new_id(), record.record_id, record.version, go.image, lines=go.lines)
