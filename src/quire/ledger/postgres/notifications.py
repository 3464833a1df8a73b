"""Told of new work: by this process at once, by others over NOTIFY. A hint only: the poll is the guarantee."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from quire.clock import SYSTEM, Clock
from quire.errors import LedgerError
from quire.ledger.postgres.wire import Clash, Lost, Wire

#: Other processes are told of new work at most this often.
NOTIFY_SECONDS = 0.05
#: A listener that was lost is made again after this long.
LISTEN_AGAIN_SECONDS = 5.0

Transacted = Callable[[Callable[[Wire], Awaitable[None]]], Awaitable[None]]


class Bell:
    """One channel of one ledger. ``transacted`` runs something on a connection, ``connected`` makes a new one."""

    def __init__(self, channel: str, transacted: Transacted, connected: Callable[[], Awaitable[Wire]]) -> None:
        self.channel = channel
        self._transacted = transacted
        self._connected = connected
        self._work = asyncio.Event()
        self._closing = asyncio.Event()
        self._untold = False
        self._teller: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None
        #: The server's process that told of our own work last: it tells us nothing new.
        self._told_by = 0

    def ring(self) -> None:
        """Something may be due: this process knows at once, the others are told soon."""
        self._work.set()
        self._untold = True
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell())

    def still(self) -> None:
        """Whoever looks now sees what was rung for before."""
        self._work.clear()

    async def heard(self, timeout: float, clock: Clock) -> None:
        """Until it rings, here or elsewhere, or so long."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        if self._work.is_set():
            return
        work = asyncio.ensure_future(self._work.wait())
        timer = asyncio.ensure_future(clock.sleep(timeout))
        await _first_of(work, timer)

    async def close(self) -> None:
        self._closing.set()
        self._work.set()
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener
        if self._teller is not None:
            await self._teller

    async def _tell(self) -> None:
        """After the commit, on another connection, and not more often than is useful: NOTIFY makes commits wait for
        each other, so none carries one (protocol 23)."""
        while self._untold:
            self._untold = False
            with suppress(LedgerError):
                await self._transacted(self._notified)
            closing = asyncio.ensure_future(self._closing.wait())
            pause = asyncio.ensure_future(SYSTEM.sleep(NOTIFY_SECONDS))
            await _first_of(closing, pause)

    async def _notified(self, wire: Wire) -> None:
        self._told_by = wire.pid
        await wire.ask("SELECT pg_notify($1, '')", self.channel)

    async def _listen(self) -> None:
        """Be told by other processes, for as long as the ledger is open."""
        while True:
            with suppress(LedgerError, Lost, Clash):
                wire = await self._connected()
                try:
                    await wire.ask(f"LISTEN {self.channel}")
                    self._work.set()  # what was said before it listened is not heard
                    while True:
                        if set(await wire.notified()) - {self._told_by}:
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
