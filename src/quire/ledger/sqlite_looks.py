"""Looks that are asked for together are answered together: by one hop to the reading thread, from one snapshot.

A hop costs more than most looks do. While one is under way the next gathers, as the committer does with changes; an
idle ledger answers a single look as fast as before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, Generic, TypeVar, cast

V = TypeVar("V")
T = TypeVar("T")

#: What is ready is handed over after so long, although more of the same hop is to come.
HAND_OVER_SECONDS = 0.002

Asked = tuple[Callable[[V], Any], "asyncio.Future[Any]"]
#: Answers all of these in the reading thread, each with ``answered(place, value or error)``.
Answering = Callable[[Sequence[Callable[[V], Any]], Callable[[Any], None]], None]


class Looks(Generic[V]):
    """Gathers looks and sends them to a thread."""

    def __init__(self, thread: Executor, answering: Answering[V]) -> None:
        self._thread = thread
        self._answering = answering
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: list[Asked[V]] = []
        self._under_way = False

    async def ask(self, look: Callable[[V], T]) -> T:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the one before has ended, with whatever was asked in it
            self._loop, self._asked, self._under_way = loop, [], False
        future: asyncio.Future[Any] = loop.create_future()
        self._asked.append((look, future))
        if not self._under_way:
            self._under_way = True
            loop.call_soon(self._begin, loop)  # whoever asks in this turn of the loop goes with it
        return cast(T, await future)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        asked = [one for one in self._asked if not one[1].done()]
        self._asked = []
        if not asked:
            self._under_way = False
            return
        try:
            hop = loop.run_in_executor(self._thread, self._answer, loop, asked)
        except RuntimeError as error:  # the ledger was closed
            self._under_way = False
            _tell(asked, [error] * len(asked))
            return
        hop.add_done_callback(lambda done: self._ended(loop, asked, done))

    def _answer(self, loop: asyncio.AbstractEventLoop, asked: Sequence[Asked[V]]) -> list[Any]:
        """In the thread. Answers the rest that was not handed over yet."""
        ready: list[Any] = []
        handed = 0
        since = time.monotonic()

        def answered(value: Any) -> None:
            nonlocal handed, since
            ready.append(value)
            now = time.monotonic()
            if now - since > HAND_OVER_SECONDS and handed + len(ready) < len(asked):
                loop.call_soon_threadsafe(_tell, asked[handed : handed + len(ready)], ready.copy())
                handed += len(ready)
                ready.clear()
                since = now

        self._answering([look for look, _ in asked], answered)
        return ready

    def _ended(
        self, loop: asyncio.AbstractEventLoop, asked: Sequence[Asked[V]], hop: asyncio.Future[list[Any]]
    ) -> None:
        if hop.cancelled():
            for _, future in asked:
                future.cancel()
        elif (error := hop.exception()) is not None:
            _tell(asked, [error] * len(asked))
        else:
            rest = hop.result()
            _tell(asked[len(asked) - len(rest) :], rest)
        self._begin(loop)


def _tell(asked: Sequence[Asked[Any]], answers: Sequence[Any]) -> None:
    for (_, future), answer in zip(asked, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
