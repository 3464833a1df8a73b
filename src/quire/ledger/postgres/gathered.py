"""Reads that are asked for at the same time share one flush, and each answer comes with the orders of that moment.

A flush costs more than most statements do. The statements of one turn of the event loop go out in one flush; while two
flushes are under way, the statements of the next one gather. These statements always use an index, whatever the server
thinks of the size of its tables, and are planned once. A statement that may take long is sent alone, on another pool,
and is planned for its arguments, so that no other read waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from quire.ledger.postgres.pool import Pool
from quire.ledger.postgres.server import READS_UNDER_WAY, Server
from quire.ledger.postgres.view import STANDING, View
from quire.ledger.postgres.wire import Param, Wire

Rows = list[tuple[Any, ...]]


class _Asked(NamedTuple):
    sql: str
    params: tuple[Param, ...]
    answer: asyncio.Future[tuple[View, Rows]]


class GatheredReads:
    """Sends the reads of one ledger."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[_Asked] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def alone(self, sql: str, *params: Param) -> tuple[View, Rows]:
        """Return the orders, and the rows of one statement that may take long."""
        view, (found,) = await self._flushed(self._server.long_reads, [(sql, params)])
        return view, found

    async def together(self, sql: str, *params: Param) -> tuple[View, Rows]:
        """Return the orders, and the rows of one statement that takes little time."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the loop before has ended, and with it every read that it asked for
            self._loop, self._waiting, self._under_way = loop, [], set()
        asked = _Asked(sql, params, loop.create_future())
        self._waiting.append(asked)
        if len(self._waiting) == 1 and len(self._under_way) < READS_UNDER_WAY:
            loop.call_soon(self._begin)  # other reads of this turn of the loop go in the same flush
        return await asked.answer

    def _begin(self) -> None:
        asked = [one for one in self._waiting if not one.answer.done()]
        self._waiting = []
        if asked:
            task = asyncio.ensure_future(self._answer(asked))
            self._under_way.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if self._waiting:
            self._begin()

    async def _answer(self, asked: Sequence[_Asked]) -> None:
        try:
            view, found = await self._flushed(self._server.reads, [(one.sql, one.params) for one in asked])
        except asyncio.CancelledError:
            for one in asked:
                one.answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - raised where the read was asked for
            if len(asked) == 1:
                if not asked[0].answer.done():
                    asked[0].answer.set_exception(error)
            else:  # one statement spoils the flush: send each by itself
                await asyncio.gather(*[self._answer([one]) for one in asked])
            return
        for one, rows in zip(asked, found, strict=True):
            if not one.answer.done():
                one.answer.set_result((view, rows))

    async def _flushed(
        self, pool: Pool, statements: Sequence[tuple[str, tuple[Param, ...]]]
    ) -> tuple[View, list[Rows]]:
        async def body(wire: Wire) -> tuple[View, list[Rows]]:
            wire.send(STANDING)
            for sql, params in statements:
                wire.send(sql, *params)
            standing, *answers = await wire.flush()
            view = View()
            view.take_standing(standing, self._server.given_now)
            return view, [answer.rows() for answer in answers]

        return await self._server.transacted(pool, body)
