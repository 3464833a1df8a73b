"""Plain steps on told time: a thread that runs while the loop waits, and waits while the loop runs.

So there is never more than one thing that runs, and two runs of a seed are the same.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, cast

_local = threading.local()
_threadsafe = asyncio.run_coroutine_threadsafe


class Gone(BaseException):
    """The simulation is over: the thread ends where it stands."""


class Turns:
    """One such thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.loop = loop
        #: What the function comes to, for whoever awaits it.
        self.answer: asyncio.Future[Any] = loop.create_future()
        self._loop_may, self._thread_may = threading.Semaphore(0), threading.Semaphore(0)
        #: What the thread asks for while the loop runs; None: it has ended.
        self._asks: tuple[Coroutine[Any, Any, Any], Any] | None = None
        self._asked: asyncio.Task[Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._over = False
        target = copy_context().run
        self._thread = threading.Thread(target=target, args=(self._live, func, args), daemon=True)

    def begin(self) -> None:
        self._thread.start()
        self._until_it_asks()

    def end(self) -> None:
        """Nobody will answer the thread any more."""
        self._over = True
        while self._thread.is_alive():
            self._thread_may.release()
            self._thread.join(0.05)

    # -- in the thread ------------------------------------------------------------------------------------------

    def _live(self, func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        _local.turns = self
        try:
            self._result = func(*args)
        except BaseException as error:  # noqa: BLE001 - as an executor does
            self._error = error
        self._asks = None
        self._loop_may.release()

    def asks(self, coroutine: Coroutine[Any, Any, Any]) -> _Answer:
        return _Answer(self, coroutine)

    def exchange(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Let the loop run until it has done this."""
        if self._over:
            coroutine.close()
            raise Gone
        self._asks = (coroutine, copy_context())
        self._loop_may.release()
        self._thread_may.acquire()
        if self._over:
            raise Gone
        assert self._asked is not None
        return self._asked.result()

    # -- in the loop --------------------------------------------------------------------------------------------

    def _until_it_asks(self) -> None:
        self._loop_may.acquire()
        if self._asks is not None:
            coroutine, context = self._asks
            self._asked = self.loop.create_task(coroutine, context=context)
            self._asked.add_done_callback(self._answered, context=context)
        elif not self.answer.done():
            if self._error is None:
                self.answer.set_result(self._result)
            else:
                self.answer.set_exception(self._error)

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self._thread_may.release()
        self._until_it_asks()


class _Answer:
    """Stands where a thread gets a future of the loop."""

    def __init__(self, turns: Turns, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._turns = turns
        self._coroutine = coroutine

    def result(self, timeout: float | None = None) -> Any:
        return self._turns.exchange(self._coroutine)


def _asked(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    turns: Turns | None = getattr(_local, "turns", None)
    return _threadsafe(coroutine, loop) if turns is None else turns.asks(coroutine)


@contextmanager
def in_turns() -> Iterator[None]:
    """While this lasts, plain steps take turns with their loop."""
    asyncio.run_coroutine_threadsafe = cast(Any, _asked)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe = _threadsafe
