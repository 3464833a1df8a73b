"""Orders to the whole ledger, or to one workflow: halt, pause, resume."""

from __future__ import annotations

from quire.client.link import Link
from quire.model.change import Order, Reach, Standing
from quire.model.record import Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Control
from quire.rules.returning import scope_of, under_way
from quire.worker.returns import bring_back, held


class Orders:
    """The verbs that stop work everywhere, and let it go on."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def halt(self, workflow: str = "", *, reason: str = "", by: str | None = None) -> Standing:
        """Stop everything, durably: nothing starts, nothing begins. The answer lists the effects under way."""
        return await self._order("halt", workflow, reason, by)

    async def pause(self, workflow: str = "", *, reason: str = "", by: str | None = None) -> Standing:
        """Claim nothing more; what runs goes on."""
        return await self._order("pause", workflow, reason, by)

    async def resume(self, workflow: str = "", *, by: str | None = None, cancelled: bool = False) -> Standing:
        """End a pause or a halt; with ``cancelled``, records that the halt cancelled go on where they stood.

        The order itself is one commit. Should this process die before all is back, workers bring back the rest.
        """
        standing = await self._order("resume", workflow, "", by, cancelled=cancelled)
        if not cancelled:
            return standing
        mine = [order for order in under_way(standing.controls) if scope_of(order) == (workflow or EVERYWHERE)]
        return replace(standing, returned=sum([await self._bring_back(order) for order in mine]))

    async def reach(self, workflow: str = "") -> Reach:
        """Count the records that a halt of this workflow, or of all, stops, and those that a resume lets go on."""
        if workflow:
            await self._link.definition(workflow)
        counts = [each for each in await self._link.counts() if workflow in ("", each.workflow)]

        def of(*statuses: Status) -> int:
            return sum(each.count for each in counts if each.status in statuses)

        pending, running, asking = of(Status.PENDING), of(Status.RUNNING), of(Status.NEEDS_APPROVAL)
        found = await self._link.patiently(lambda: held(self._link.ledger, workflow or EVERYWHERE))
        return Reach(pending + running + asking + of(Status.WAITING), pending, running, asking, *found)

    async def _bring_back(self, order: Control) -> int:
        return await self._link.patiently(lambda: bring_back(self._link.ledger, order))

    async def _order(
        self, word: str, workflow: str, reason: str, by: str | None, *, cancelled: bool = False
    ) -> Standing:
        if workflow:
            await self._link.definition(workflow)
        order = Order(word, workflow or EVERYWHERE, self._link.by(by), reason, cancelled=cancelled)
        return await self._link.patiently(lambda: self._link.ledger.order(order))
