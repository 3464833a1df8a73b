"""Orders to the whole ledger, or to one workflow: halt, pause, resume."""

from __future__ import annotations

from contextlib import suppress

from quire.client.acts import Acts
from quire.client.link import Link, landed
from quire.client.reading import Reading
from quire.clock import new_id
from quire.errors import IllegalMove
from quire.model.change import Change, Conflict, Order, Query, Standing
from quire.model.record import Record, Status
from quire.model.side import EVERYWHERE
from quire.rules import conditions
from quire.rules import moves as transition
from quire.rules.orders import cancelled_by_halt

#: How many records are read at once.
_PAGE = 500


class Orders:
    """The verbs that stop work everywhere, and let it go on."""

    def __init__(self, link: Link, reading: Reading, acts: Acts) -> None:
        self._link = link
        self._reading = reading
        self._acts = acts

    async def halt(self, workflow: str = "", *, reason: str = "", by: str | None = None) -> Standing:
        """Stop everything, durably: nothing starts, nothing begins. The answer lists the effects under way."""
        return await self._order("halt", workflow, reason, by)

    async def pause(self, workflow: str = "", *, reason: str = "", by: str | None = None) -> Standing:
        """Claim nothing more; what runs goes on."""
        return await self._order("pause", workflow, reason, by)

    async def resume(self, workflow: str = "", *, by: str | None = None, cancelled: bool = False) -> Standing:
        """End a pause or a halt; with ``cancelled``, records that the halt cancelled go on where they stood."""
        standing = await self._order("resume", workflow, "", by)
        if cancelled:
            await self._revive(workflow, self._link.by(by))
        return standing

    async def _revive(self, workflow: str, person: str) -> None:
        """Bring back the records that a halt cancelled, and take it back for those that it has not stopped yet."""
        status = (Status.CANCELLED, Status.RUNNING, Status.NEEDS_APPROVAL)
        after = ""
        while found := await self._link.ledger.find(Query(workflow=workflow, status=status, after=after, limit=_PAGE)):
            after = found[-1].record_id
            floors = (await self._link.ledger.standing()).controls
            for record in found:
                if any(control.halted and control.scope in (EVERYWHERE, record.workflow) for control in floors):
                    continue  # another halt still holds it: the end of that one brings it back
                if record.status is not Status.CANCELLED and not conditions.halted(record, floors):
                    continue
                if record.parent_id is not None and (await self._reading.get(record.parent_id)).ended:
                    continue  # parents come first, by their ids: the child has gone on, or stays cancelled
                await self._brought_back(record, person)

    async def _brought_back(self, record: Record, person: str) -> None:
        """Let one record go on. Its worker may be frozen or dead, and may settle it at this very moment."""
        while conditions.under_way(record):
            change = Change(new_id(), record.record_id, record.version, None, by=person, revive=True)
            [verdict] = await self._link.commit([change])
            if not isinstance(verdict, Conflict):
                landed(verdict)
                return
            record = await self._reading.get(record.record_id)
        if record.status is not Status.CANCELLED:
            return
        log = await self._link.ledger.events(record_id=record.record_id, limit=100_000)
        if cancelled_by_halt(log):
            with suppress(IllegalMove):  # its parent has gone on without it, or somebody was faster
                await self._acts.change(
                    record.record_id, lambda r: (transition.revive(r, r.updated_at, person, r.epoch), ())
                )

    async def _order(self, word: str, workflow: str, reason: str, by: str | None) -> Standing:
        if workflow:
            await self._link.definition(workflow)
        order = Order(word, workflow or EVERYWHERE, self._link.by(by), reason)
        return await self._link.patiently(lambda: self._link.ledger.order(order))
