"""All readers of one process: which are due, and what each brings."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

from quire.client.client import Client
from quire.clock import seconds
from quire.errors import QuireError
from quire.workflows.google_sources import Dropped, Form, Inbound
from quire.workflows.workflow import Workflow
from quire.workspace.connection import Google, connections, google
from quire.workspace.readers import dropped, forms, inbound
from quire.workspace.readers.cursor import Cursor, Fields
from quire.workspace.readers.events import EventReader
from quire.workspace.readers.mail import MailReader
from quire.workspace.readers.waiting import Waiting, waiting

log = logging.getLogger("quire.workspace")

#: Between two looks at mailboxes and calendars.
EVERY_SECONDS = 20.0

Look = Callable[[Client, Workflow[Any, Any, Any], Any, Fields], Awaitable[Fields]]
_SOURCES: dict[type, Look] = {Form: forms.look, Inbound: inbound.look, Dropped: dropped.look}


def _name(source: Any) -> str:
    return next(str(getattr(source, word)) for word in ("form", "address", "folder") if hasattr(source, word))


class Readers:
    """Use ``run`` beside a worker, or ``look`` for one look at everything."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._cursors: dict[str, Cursor] = {}
        self._mail: dict[str, MailReader] = {}
        self._events: dict[str, EventReader] = {}
        self._due: dict[str, float] = {}
        #: Set by a push of Google: the next look comes at once.
        self.hinted = asyncio.Event()

    async def run(self) -> None:
        """Look again and again, until it is cancelled; then let another process look."""
        try:
            while True:
                await self.look(everything=self.hinted.is_set())
                self.hinted.clear()
                await self._rest()
        finally:
            await asyncio.shield(self.release())

    async def _rest(self) -> None:
        sleep = self._client.clock.sleep(min(EVERY_SECONDS, 10.0))
        waits = [asyncio.ensure_future(wait) for wait in (sleep, self.hinted.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def release(self) -> None:
        """Give every cursor back."""
        for cursor in self._cursors.values():
            try:
                await cursor.release()
            except QuireError as error:
                log.debug("a cursor was not given back: %s", error)

    async def look(self, *, everything: bool = True) -> None:
        """Look at all that is due. What goes wrong with one keeps no other from being looked at."""
        for name, look in await self._looks(everything):
            cursor = self._cursors.setdefault(name, Cursor(self._client.ledger, name, self._client.clock))
            try:
                await cursor.move(look)
            except QuireError as error:
                log.warning("nobody could look at %s: %s", name, error)

    async def _looks(self, everything: bool) -> list[tuple[str, Callable[[Fields], Awaitable[Fields]]]]:
        found: list[tuple[str, Callable[[Fields], Awaitable[Fields]]]] = []
        for workflow in self._client.registry.workflows.values():
            for source, _ in workflow.sources:
                if look := _SOURCES.get(type(source)):
                    name = f"{type(source).__name__.lower()}/{workflow.name}/{_name(source)}"
                    if self._is_due(name, seconds(getattr(source, "every", EVERY_SECONDS)), everything):
                        found.append((name, _bound(look, self._client, workflow, source)))
        if self._is_due("waits", EVERY_SECONDS, everything):
            found += await self._of_waits()
        return found

    def _is_due(self, name: str, every: float, everything: bool) -> bool:
        now = self._client.clock.boottime()
        if not everything and now < self._due.get(name, float("-inf")):
            return False
        self._due[name] = now + every
        return True

    async def _of_waits(self) -> list[tuple[str, Callable[[Fields], Awaitable[Fields]]]]:
        groups: dict[tuple[str, str], list[Waiting]] = defaultdict(list)
        for wait in await waiting(self._client, ("mail", "event")):
            kind = wait.signal.partition(":")[0]
            key = wait.parts[0] if kind == "mail" else "/".join(wait.parts[:2])
            groups[kind, key].append(wait)
        found: list[tuple[str, Callable[[Fields], Awaitable[Fields]]]] = []
        for (kind, key), waits in sorted(groups.items()):
            connection = await self._of_account(key.partition("/")[0])
            if connection is None:
                log.warning("records wait for %s of %s, and no connection here is this account", kind, key)
                continue
            if kind == "mail":
                mail = self._mail.setdefault(key, MailReader(self._client, connection.gmail))
                found.append((f"mail/{key}", _with(mail.look, waits)))
            else:
                calendar = key.partition("/")[2]
                events = self._events.setdefault(key, EventReader(self._client, connection.calendar, calendar))
                found.append((f"events/{key}", _with(events.look, waits)))
        return found

    async def _of_account(self, account: str) -> Google | None:
        """The connection of this process that signs in as this account."""
        for name in connections():
            connection = await google(name)
            if connection.transport.credentials.account == account:
                return connection
        return None


def _bound(
    look: Look, client: Client, workflow: Workflow[Any, Any, Any], source: Any
) -> Callable[[Fields], Awaitable[Fields]]:
    async def bound(fields: Fields) -> Fields:
        return await look(client, workflow, source, fields)

    return bound


def _with(look: Any, waits: list[Waiting]) -> Callable[[Fields], Awaitable[Fields]]:
    async def bound(fields: Fields) -> Fields:
        after: Fields = await look(waits, fields)
        return after

    return bound
