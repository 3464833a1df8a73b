"""Alerting: find what is stuck, write down what is to be sent, send it, write down that it was sent.

The book lies in the ledger, with a lease, so of many processes one sends. An alert is written down before it is sent
and crossed out after it arrived: a process that dies in between leaves it to the next, which sends it again under the
same id. No record depends on any of this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from quire.client.client import Client
from quire.errors import LedgerUnavailable, QuireError
from quire.explain import stuck
from quire.ledger.sole import Sole, to_its_end
from quire.surfaces.alerts import book, sending
from quire.surfaces.alerts.channel import Alert, Alerts, Channel

log = logging.getLogger("quire.alerts")

BOOK = "alerts"
LOOK_SECONDS = 10.0

#: Something to add to an alert for one channel: where to answer it, for instance.
Adding = Callable[[Channel, Alert], Awaitable[str]]


class Alerting:
    def __init__(
        self,
        client: Client,
        alerts: Alerts,
        adding: Adding | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.client = client
        self.alerts = alerts
        self._adding = adding
        self._groups = groups
        self._book = Sole(client.ledger, BOOK, client.clock, {"value": None})
        self._pages: dict[str, book.Page] = {}

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await to_its_end(self.once())
            await self.client.clock.sleep(max(LOOK_SECONDS, self.client.ledger.traits.poll_seconds))

    async def once(self) -> int:
        """One look, and what is due is sent; how many arrived. Whatever goes wrong is logged: it fails no record."""
        try:
            if not await self._take():
                return 0
            return await self._looked()
        except LedgerUnavailable:
            return 0
        except QuireError as error:
            log.warning("alerts: %s", error)
            return 0

    async def _looked(self) -> int:
        ledger = self.client.ledger
        now = await ledger.now()
        found = await stuck.look(ledger, self._groups)
        before = dict(self._pages)
        for channel in self.alerts.channels:
            page = self._pages.get(channel.name, book.Page())
            self._pages[channel.name] = book.planned(page, found, now, self.alerts.quiet, self.alerts.kinds)
        if not _same(before, self._pages) and not await self._keep():
            return 0
        arrived = 0
        for channel in self.alerts.channels:
            for one in self._pages[channel.name].waiting:
                if one.next_at > now:
                    continue
                arrived += await self._sent(channel, one)
                if not await self._keep():
                    return arrived  # another process sends from now on
        return arrived

    async def _sent(self, channel: Channel, one: book.Waiting) -> int:
        now = await self.client.ledger.now()
        alert = one.alert
        try:
            if self._adding is not None and (more := await self._adding(channel, alert)):
                alert = alert._replace(text=f"{alert.text}\n{more}")
            await sending.send(self.alerts, channel, alert, now)
        except QuireError as error:
            page = book.failed(self._pages[channel.name], alert.alert_id, now, str(error))
            given_up = all(other.alert.alert_id != alert.alert_id for other in page.waiting)
            log.warning("alert not sent: %s%s", error, "; it is given up" if given_up else "")
            self._pages[channel.name] = page
            return 0
        self._pages[channel.name] = book.sent(self._pages[channel.name], alert.alert_id)
        return 1

    # -- the book --------------------------------------------------------------------------------------------------

    async def _take(self) -> bool:
        """Be the process that alerts, if no other is, and read the book where another may have written it."""
        mine, kept = await self._book.take()
        if kept is not None and kept["value"] is not None:
            self._pages = {name: book.read_page(page) for name, page in kept["value"].items()}
        return mine

    async def _keep(self) -> bool:
        return await self._book.keep({"value": self._value()})

    def _value(self) -> dict[str, Any]:
        return {name: book.page_json(page) for name, page in self._pages.items()}

    async def release(self) -> None:
        """Let another process alert."""
        await self._book.release({"value": self._value()})


def _same(before: dict[str, book.Page], after: dict[str, book.Page]) -> bool:
    """Nothing that must be written: when a cause was seen last may be a little old in the book."""

    def kept(page: book.Page) -> book.Page:
        alerted = {key: replace(row, seen_at=0.0) for key, row in page.alerted.items()}
        return replace(page, alerted=alerted, moments=())

    return {name: kept(page) for name, page in before.items()} == {name: kept(page) for name, page in after.items()}
