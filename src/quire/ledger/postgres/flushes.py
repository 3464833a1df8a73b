"""Statements that are asked for together are sent together: one flush on one connection, with the standing ahead.

A flush costs more than most statements do. Statements of one turn of the loop go out as one, and while two of these
are under way the next gathers. They go by an index, whatever the server thinks of the size of its tables, and are
planned once. What may take long is asked alone and planned for its arguments, so that nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from quire.ledger.postgres.view import STANDING, View
from quire.ledger.postgres.wire import Param, Wire

#: So many flushes of gathered statements at once.
MOST_UNDER_WAY = 2

Rows = list[tuple[Any, ...]]
Body = Callable[[Wire], Awaitable[tuple[View, list[Rows]]]]
Running = Callable[[Body], Awaitable[tuple[View, list[Rows]]]]


class _Asked(NamedTuple):
    sql: str
    params: tuple[Param, ...]
    answer: asyncio.Future[tuple[View, Rows]]


class Asking:
    """Gathers statements. ``little`` and ``much`` run a body on a connection, ``told`` is the time if it is told."""

    def __init__(self, little: Running, much: Running, told: Callable[[], float | None]) -> None:
        self._little = little
        self._much = much
        self._told = told
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[_Asked] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def alone(self, sql: str, *params: Param) -> tuple[View, Rows]:
        """The standing, and the rows of one statement that may take long."""
        view, (found,) = await self._flushed(self._much, [(sql, params)])
        return view, found

    async def together(self, sql: str, *params: Param) -> tuple[View, Rows]:
        """The standing, and the rows of one statement that takes little."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the one before has ended, with whatever was asked in it
            self._loop, self._waiting, self._under_way = loop, [], set()
        asked = _Asked(sql, params, loop.create_future())
        self._waiting.append(asked)
        if len(self._waiting) == 1 and len(self._under_way) < MOST_UNDER_WAY:
            loop.call_soon(self._begin)  # whoever asks in this turn of the loop goes with it
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
            view, found = await self._flushed(self._little, [(one.sql, one.params) for one in asked])
        except asyncio.CancelledError:
            for one in asked:
                one.answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - raised where it was asked for
            if len(asked) == 1:
                if not asked[0].answer.done():
                    asked[0].answer.set_exception(error)
            else:  # one of them spoils the flush: each by itself
                await asyncio.gather(*[self._answer([one]) for one in asked])
            return
        for one, rows in zip(asked, found, strict=True):
            if not one.answer.done():
                one.answer.set_result((view, rows))

    async def _flushed(
        self, running: Running, statements: Sequence[tuple[str, tuple[Param, ...]]]
    ) -> tuple[View, list[Rows]]:
        async def body(wire: Wire) -> tuple[View, list[Rows]]:
            wire.send(STANDING)
            for sql, params in statements:
                wire.send(sql, *params)
            standing, *answers = await wire.flush()
            view = View()
            view.take_standing(standing, self._told())
            return view, [answer.rows() for answer in answers]

        return await running(body)
