"""Finds out within seconds that a server is frozen: it accepts what is sent, and never answers.

A statement may take long because it waits for a lock. So a connection that has been silent for a while is not given up:
another one to the very same address is asked a question. If that is not answered either, the server is frozen or gone,
and every connection to it is given up. The next ones go where the address leads by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from quire.ledger.postgres.address import Address
from quire.ledger.postgres.wire import Wire

#: After so much silence the server is asked whether it is alive, and it has so long to answer. Together with the time
#: for a new connection this is the most that a frozen server costs: 15 seconds.
SILENT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
#: In a pooler the question stands in a line behind transactions.
ANSWER_IN_LINE_SECONDS = 30.0


class Liveness:
    """Watches the connections of one ledger while they wait for answers."""

    def __init__(self, address: Address, drop: Callable[[], Awaitable[None]]) -> None:
        self._address = address
        #: Closes the connections that nobody uses at this moment.
        self._drop = drop
        self._questions: dict[tuple[str, str], asyncio.Task[bool]] = {}
        self._watches: set[asyncio.Task[None]] = set()

    @contextmanager
    def watched(self, wire: Wire) -> Iterator[None]:
        """Give the connection up while the block waits for it, if its server is found not to answer."""
        loop = asyncio.get_running_loop()
        handle: asyncio.TimerHandle | None = None
        over = False

        async def ask() -> None:
            nonlocal handle
            if await self._answers(wire.place):
                if not over:
                    handle = loop.call_later(SILENT_SECONDS, begin)
            else:
                wire.give_up(f"the server at {self._address.shown} does not answer")
                await self._drop()

        def begin() -> None:
            task = asyncio.ensure_future(ask())
            self._watches.add(task)
            task.add_done_callback(self._watches.discard)

        handle = loop.call_later(SILENT_SECONDS, begin)
        try:
            yield
        finally:
            over = True
            handle.cancel()

    async def _answers(self, place: tuple[str, str]) -> bool:
        """Ask once for all connections that are silent at the same time."""
        known = self._questions.get(place)
        if known is None or known.done():
            seconds = ANSWER_IN_LINE_SECONDS if self._address.manner.pooled else ANSWER_SECONDS
            known = self._questions[place] = asyncio.ensure_future(self._address.answers(place, seconds))
        return await asyncio.shield(known)

    async def close(self) -> None:
        """End the questions that are under way."""
        tasks = [*self._watches, *self._questions.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
