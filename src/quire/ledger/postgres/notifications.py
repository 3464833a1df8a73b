"""Notifications that there may be work: within this process at once, to and from other processes over NOTIFY.

They are hints only. A worker also polls, and the poll is the guarantee.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from quire.clock import SYSTEM
from quire.errors import LedgerError
from quire.ledger.postgres.pooler import Mode
from quire.ledger.postgres.server import Server
from quire.ledger.postgres.wire import Clash, Lost, Wire

#: Other processes are notified at most this often.
NOTIFY_SECONDS = 0.05
#: A listener that was lost is made again after this long.
LISTEN_AGAIN_SECONDS = 5.0


class Notifications:
    """The channel of one ledger."""

    def __init__(self, server: Server) -> None:
        self.channel = f"quire_{server.key('work') & 0xFFFFFFFFFFFF:x}"
        self._server = server
        self._work = asyncio.Event()
        self._closing = asyncio.Event()
        self._unsent = False
        self._sender: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        #: The server's process that sent this process's last notification: it brings no news here.
        self._sent_by = 0

    def announce(self) -> None:
        """Say that something may be due. This process knows at once, and the others soon."""
        self._work.set()
        self._unsent = True
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    def clear(self) -> None:
        """Forget what was announced: the claim that begins now sees all of it."""
        self._work.clear()

    async def wait(self, timeout: float) -> None:
        """Return after a notification, from here or elsewhere, or after the timeout."""
        if self._listener is None and self._arrive:
            self._listener = asyncio.create_task(self._listen())
        if self._work.is_set():
            return
        work = asyncio.ensure_future(self._work.wait())
        timer = asyncio.ensure_future((self._server.clock or SYSTEM).sleep(timeout))
        await _first_of(work, timer)

    async def close(self) -> None:
        self._closing.set()
        self._work.set()
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener
        if self._sender is not None:
            await self._sender

    @property
    def _arrive(self) -> bool:
        """Whether notifications of other processes arrive. A pooler in transaction mode does not pass them on."""
        return self._server.mode is not Mode.TRANSACTION or self._server.direct is not None

    async def _send(self) -> None:
        """Notify other processes, after the commit and on another connection.

        No commit carries a NOTIFY of its own, because NOTIFY makes commits wait for each other (protocol 23).
        """
        while self._unsent:
            self._unsent = False
            with suppress(LedgerError):
                await self._server.transacted(self._server.long_reads, self._notified)
            closing = asyncio.ensure_future(self._closing.wait())
            pause = asyncio.ensure_future(SYSTEM.sleep(NOTIFY_SECONDS))
            await _first_of(closing, pause)

    async def _notified(self, wire: Wire) -> None:
        self._sent_by = wire.pid
        ((_, self._sent_by),) = await wire.ask("SELECT pg_notify($1, ''), pg_backend_pid()", self.channel)

    async def _listen(self) -> None:
        """Take notifications of other processes, for as long as the ledger is open."""
        while True:
            with suppress(LedgerError, Lost, Clash):
                wire = await self._server.connected(by_index=False, address=self._server.direct)
                try:
                    await wire.ask(f"LISTEN {self.channel}")
                    self._work.set()  # notifications that were sent before do not arrive
                    while True:
                        if set(await wire.notified()) - {self._sent_by}:
                            self._work.set()
                finally:
                    await wire.close()
            await SYSTEM.sleep(LISTEN_AGAIN_SECONDS)


async def _first_of(*futures: asyncio.Future[Any]) -> None:
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
