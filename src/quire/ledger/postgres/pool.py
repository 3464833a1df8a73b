"""Pools of connections to PostgreSQL: each pool has connections for one purpose, and lends them to blocks of code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quire.errors import LedgerError
from quire.ledger.postgres.wire import Wire


class Pool:
    """Connections for one purpose, at most ``size`` of them, made when they are needed and kept."""

    def __init__(self, connect: Callable[[], Awaitable[Wire]], size: int) -> None:
        self._connect = connect
        self._size = size
        #: How many connections exist, idle or lent.
        self._count = 0
        self._places = asyncio.Semaphore(size)
        self._idle: list[Wire] = []
        self._closed = False

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
                except BaseException:
                    self._count -= 1
                    raise
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
            else:
                await self._close(wire)
        finally:
            self._places.release()

    def _pass_on(self, wire: Wire) -> None:
        self._idle.append(wire)
        self._places.release()

    async def _close(self, wire: Wire) -> None:
        self._count -= 1
        await wire.close()

    async def drop(self) -> None:
        """Close the connections that nobody uses at this moment."""
        while self._idle:
            await self._close(self._idle.pop())

    async def close(self) -> None:
        self._closed = True
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
