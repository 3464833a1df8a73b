"""Bringing back what a halt cancelled: the rest of ``resume --cancelled``, once the order itself is committed.

The person's own process does it. If that dies on the way, the housekeeping of a worker does. Every record is brought
back at most once, whoever tries, because its version decides.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from quire.clock import new_id
from quire.ledger.base import Ledger
from quire.model.change import Applied, Change, Conflict, Order, Query
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Control
from quire.model.wait import On, load_waits
from quire.rules import conditions, moves, returning
from quire.rules.orders import cancelled_by_halt

#: Workers leave an order so long to the process that gave it.
LEAVE_SECONDS = 10.0
#: How many records are read at once.
_PAGE = 500
#: No more cancelled records are looked at to say how many are held.
MOST_COUNTED = 20_000
_STATUS = (Status.CANCELLED, Status.RUNNING, Status.NEEDS_APPROVAL)


async def bring_back(ledger: Ledger, order: Control) -> int:
    """Bring back all records that this order concerns, say that all is back, and return how many they were."""
    scope, count = returning.scope_of(order), 0
    async for found in _pages(ledger, scope):
        controls = (await ledger.standing()).controls
        for record in found:
            if returning.concerns(order, record, controls):
                count += await _brought_back(ledger, record, order, controls)
    await ledger.order(Order("returned", scope, order.by, epoch=order.floor))
    return count


async def held(ledger: Ledger, scope: str, most: int = MOST_COUNTED) -> tuple[int, int, bool]:
    """Return how many records ``bring_back`` would let go on, how many of these asked a person, and if there are more.

    Whoever asks waits for the answer, so that no more than ``most`` records are looked at.
    """
    standing = await ledger.standing()
    order, controls = returning.if_given(scope, standing)
    if not any(control.floor for control in controls):
        return 0, 0, False
    count = asking = seen = 0
    async for found in _pages(ledger, scope):
        mine = [record for record in found if returning.concerns(order, record, controls)]
        mine = [record for record in mine if conditions.halted(record, controls) and not record.forgotten]
        logs = await ledger.logs([record.record_id for record in mine if not conditions.under_way(record)])
        for record in mine:
            if record.record_id not in logs or cancelled_by_halt(logs[record.record_id]):
                count += 1
                asking += any(wait.on in (On.QUESTION, On.DOUBT) for wait in load_waits(record.waits))
        seen += len(found)
        if seen >= most and len(found) == _PAGE:
            return count, asking, True
    return count, asking, False


async def _pages(ledger: Ledger, scope: str) -> AsyncIterator[list[Record]]:
    """Yield the records of this scope that a halt may have cancelled."""
    query = Query(workflow="" if scope == EVERYWHERE else scope, status=_STATUS, limit=_PAGE)
    after = ""
    while found := await ledger.find(replace(query, after=after)):
        after = found[-1].record_id
        yield found


async def _brought_back(ledger: Ledger, record: Record, order: Control, controls: tuple[Control, ...]) -> bool:
    """Let one record go on, and return whether it does.

    A worker may settle it at this very moment: then it is read again.
    """
    while conditions.under_way(record) or record.status is Status.CANCELLED:
        change = await _change(ledger, record, order, controls)
        if change is None:
            return False
        [verdict] = await ledger.commit([change])
        if not isinstance(verdict, Conflict):
            return isinstance(verdict, Applied)  # a refusal: its parent went on without it, or it was halted again
        found = await ledger.load([record.record_id])
        if not found:
            return False
        [record] = found
    return False


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
