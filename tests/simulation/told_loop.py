"""An event loop on told time, in which processes freeze and die at any point where they wait.

Nothing here reads a real clock or starts a thread. When nothing is left to run, the loop moves the ``ToldClock`` to the
next moment at which somebody wakes. What belongs to a process runs in a context that names it. A frozen process runs
nothing until it thaws; a dead one runs nothing any more.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

from quire.clock import Clock
from quire.run.run import SyncRun
from quire.testing import ToldClock
from tests.simulation.turns import Turns

T = TypeVar("T")


class Process:
    """What freezes and dies together: a worker, or a person with a client."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.frozen = False
        #: What would have run while the process was frozen.
        self.backlog: list[tuple[Callable[..., object], tuple[Any, ...], Context]] = []

    def thaw(self, loop: asyncio.AbstractEventLoop) -> None:
        self.frozen = False
        backlog, self.backlog = self.backlog, []
        for callback, args, context in backlog:
            loop.call_soon(callback, *args, context=context)


#: The process that the code runs in; None: the world outside, such as the store.
PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


class Deadlock(Exception):
    """Nothing runs, and nobody will ever wake."""


class _Selector:
    """Stands where a loop waits for files and sockets: there are none, so time passes instead."""

    def __init__(self, loop: ToldLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._loop.pass_time(timeout)
        return []


class _Numbered:
    """Sets of tasks and futures have an order of their own in each run, unless their hashes are numbers in order."""

    _number: int

    def __hash__(self) -> int:
        return self._number


class _Task(_Numbered, asyncio.Task[T]):
    def __init__(self, number: int, coroutine: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)


class _Future(_Numbered, asyncio.Future[Any]):
    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)


class ToldLoop(asyncio.BaseEventLoop):
    """The loop of one simulation. Executors run inline; plain steps take turns with the loop (``turns``)."""

    def __init__(self, clock: ToldClock) -> None:
        super().__init__()
        self.clock = clock
        self._selector = _Selector(self)
        #: A told moment, in seconds since 1970, is not finer than this.
        self._clock_resolution = 1e-6
        self._numbers = itertools.count(1)
        #: All tasks ever made, so that none of a dead process is tidied away, and so run, in the middle.
        self.made: list[asyncio.Task[Any]] = []
        self.threads: list[Turns] = []
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        return self.clock.boottime()

    def pass_time(self, timeout: float | None) -> None:
        """Move the clock to the next moment at which anybody wakes."""
        now = self.clock.now()
        wakes = [now + timeout] if timeout is not None else []
        if self.clock.wakes_at is not None:
            wakes.append(self.clock.wakes_at)
        if not wakes:
            raise Deadlock("nothing runs, and nobody will ever wake")
        self.clock.advance(max(self._clock_resolution, min(wakes) - now))

    # -- what BaseEventLoop asks of a loop with files -----------------------------------------------------------

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    # -- processes ----------------------------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        process = context.get(PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(_in_process, process, callback, args, context, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        process = context.get(PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, _in_process, process, callback, args, context, context=context)

    def begin(self, process: Process | None, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin a task in this process, or in the world outside."""
        context = Context()
        context.run(PROCESS.set, process)
        return self.create_task(work, context=context)

    # -- in order -----------------------------------------------------------------------------------------------

    def _new_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **options: Any,
    ) -> asyncio.Task[T]:
        assert asyncio.iscoroutine(coroutine)
        task: asyncio.Task[T] = _Task(next(self._numbers), coroutine, loop=loop, **options)
        self.made.append(task)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(next(self._numbers), self)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        if any(isinstance(arg, SyncRun) for arg in args):  # a plain step, which waits for what it asks of its run
            turns = Turns(self, func, args)
            self.threads.append(turns)
            turns.begin()
            return turns.answer
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except StopIteration as error:
            future.set_exception(RuntimeError(str(error)))
        except BaseException as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future

    def end(self) -> None:
        """Close the loop over what is still under way, without running any of it."""
        self.set_exception_handler(lambda loop, context: None)
        for turns in self.threads:
            turns.end()
        for task in self.made:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                # it waits in a 'finally': it is thrown away all the same
                with suppress(RuntimeError, ValueError, asyncio.CancelledError):
                    coroutine.close()
            elif not task.cancelled():
                task.exception()  # nobody need be told of it any more
        self.made.clear()
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        self.close()


def _in_process(process: Process, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
    if process.dead:
        return
    if process.frozen:
        process.backlog.append((callback, args, context))
    else:
        callback(*args)


class MachineClock:
    """The clock of one machine. People may set it, and it may run a little too fast or too slowly."""

    def __init__(self, clock: ToldClock, *, rate: float = 1.0) -> None:
        self._clock = clock
        self._rate = rate
        #: By so many seconds the wall clock is wrong.
        self.skew = 0.0

    def now(self) -> float:
        return self._clock.now() + self.skew

    def boottime(self) -> float:
        return self._clock.boottime() * self._rate

    async def sleep(self, span: float) -> None:
        await self._clock.sleep(span / self._rate)


def _is_a_clock(clock: MachineClock) -> Clock:
    return clock
