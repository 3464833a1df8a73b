"""Pools of connections to PostgreSQL: each pool has connections for one purpose, and lends them to blocks of code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quire.clock import SYSTEM
from quire.errors import Full, LedgerError
from quire.ledger.postgres.wire import Wire

#: A connection that nobody used for so long is closed.
IDLE_SECONDS = 60.0
#: While the server takes no more connections, the next one that this pool gets back is waited for.
_LOOK_SECONDS = 0.05


class Pool:
    """Connections for one purpose, at most ``size`` of them, made when they are needed and kept."""

    def __init__(self, connect: Callable[[], Awaitable[Wire]], size: int) -> None:
        self._connect = connect
        self._size = size
        #: How many connections exist, idle or lent.
        self._count = 0
        self._places = asyncio.Semaphore(size)
        self._idle: list[Wire] = []
        #: Since when each of them is idle, on the loop's clock.
        self._since: dict[Wire, float] = {}
        self._closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._pruning: asyncio.Task[None] | None = None

    @property
    def free(self) -> bool:
        """Whether a block gets a connection at once."""
        return not self._places.locked()

    def wire(self, *, behind: bool = False) -> Lent:
        """Lend a connection to a block. A connection that the block leaves in the middle of something is closed.

        ``behind``: prefer a connection that another block has passed on, although answers are still on their way to
        that block, to a new connection.
        """
        return Lent(self, behind)

    async def _lend(self, behind: bool) -> Wire:
        await self._places.acquire()
        try:
            if self._closed:
                raise LedgerError("this ledger is closed")
            while dead := [wire for wire in self._idle if not wire.alive]:
                self._idle.remove(dead[0])
                await self._close(dead[0])
            free = self._idle if behind else [wire for wire in self._idle if not wire.under_way]
            if not free and self._count < self._size:
                self._count += 1
                try:
                    return await self._connect()
                except BaseException as error:
                    self._count -= 1
                    if not isinstance(error, Full) or not self._count:
                        raise
                while not self._idle:  # others of this pool are in use: one of them comes back
                    await SYSTEM.sleep(_LOOK_SECONDS)
                free = self._idle
            wire = (free or self._idle)[-1]
            self._idle.remove(wire)
            return wire
        except BaseException:
            self._places.release()
            raise

    async def _take_back(self, wire: Wire) -> None:
        try:
            if wire.clean and not self._closed:
                self._idle.append(wire)
                self._prune_later(wire)
            else:
                await self._close(wire)
        finally:
            self._places.release()

    def _pass_on(self, wire: Wire) -> None:
        self._idle.append(wire)
        self._places.release()

    def _prune_later(self, wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        self._since[wire] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(IDLE_SECONDS, self._begin_pruning)

    def _begin_pruning(self) -> None:
        self._timer = None
        self._pruning = asyncio.ensure_future(self._prune())

    async def _prune(self) -> None:
        """Close the connections that were idle for long."""
        now = asyncio.get_running_loop().time()
        for wire in [wire for wire in self._idle if not wire.under_way]:
            if now - self._since.get(wire, now) >= IDLE_SECONDS - 1 and wire in self._idle:
                self._idle.remove(wire)
                await self._close(wire)
        if self._idle and not self._closed and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._begin_pruning)

    async def _close(self, wire: Wire) -> None:
        self._count -= 1
        self._since.pop(wire, None)
        await wire.close()

    async def drop(self) -> None:
        """Close the connections that nobody uses at this moment."""
        while self._idle:
            await self._close(self._idle.pop())

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pruning is not None:
            await asyncio.wait({self._pruning})
        await self.drop()


class Lent:
    """A connection of a pool, lent to one block."""

    #: The block has sent its last statement, and only waits for answers.
    passed_on = False

    def __init__(self, pool: Pool, behind: bool) -> None:
        self._pool = pool
        self._behind = behind

    async def __aenter__(self) -> Wire:
        self._wire = await self._pool._lend(self._behind)
        self._wire.pass_on = self.pass_on
        return self._wire

    def pass_on(self) -> None:
        """Let the next block have the connection, unless the pool is closed."""
        if self._pool._closed:
            return
        self.passed_on = True
        self._wire.pass_on = None
        self._pool._pass_on(self._wire)

    async def __aexit__(self, *_: object) -> None:
        if not self.passed_on:  # otherwise the next block finds out whether the connection is still good
            self._wire.pass_on = None
            await self._pool._take_back(self._wire)
