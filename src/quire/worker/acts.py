"""The acts of a worker: calling an effect's parts, plain functions in threads of their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from quire.run import forks
from quire.run.exits import contained, contained_in_thread
from quire.workflows.effect import Act, Effect, NotDone, is_async


class Acts:
    """The one place where a worker changes the world outside."""

    def __init__(self, concurrency: int) -> None:
        self._count = min(32, max(4, concurrency))
        #: Acts that go on in their threads although their steps have given them up.
        self._late: set[asyncio.Task[None]] = set()
        self.make_threads()

    def make_threads(self) -> None:
        """Make the threads for plain steps, and those for plain effects, which waiting steps cannot take away."""
        self.threads = ThreadPoolExecutor(self._count, forks.STEP_THREAD)
        self.act_threads = ThreadPoolExecutor(self._count, forks.STEP_THREAD)

    async def prepare(
        self, effect: Effect[Any, Any, Any], part: Callable[..., Any], act: Act[Any], args: Any, kwargs: Any
    ) -> Any:
        return await self._called(part, act, act, *args, **kwargs)

    async def act(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        return await self._called(effect.act, act, *(() if effect.bare else (act,)), *args, **kwargs)

    async def probe(self, effect: Effect[Any, Any, Any], act: Act[Any], args: Any, kwargs: Any) -> Any:
        assert effect.probe is not None
        return await self._called(effect.probe, act, act, *args, **kwargs)

    async def undo(self, effect: Effect[Any, Any, Any], act: Act[Any], value: Any) -> object:
        assert effect.undo is not None
        return await contained(self._called(effect.undo, act, act, value))

    async def _called(self, fn: Callable[..., Any], act: Act[Any], *args: Any, **kwargs: Any) -> Any:
        """Call a part of an effect; a plain function in a thread. One that gets its thread too late is not called."""
        if is_async(fn):
            return await fn(*args, **kwargs)

        def begun() -> Any:
            if act.time_left <= timedelta(0):
                raise NotDone("it got no thread in time; it did not act")
            return contained_in_thread(fn, *args, **kwargs)

        value = await asyncio.get_running_loop().run_in_executor(self.act_threads, begun)
        return await value if inspect.isawaitable(value) else value

    def late(self, work: Coroutine[Any, Any, None]) -> None:
        """Keep the task of an act that goes on in its thread; this worker does not end before it."""
        task = asyncio.ensure_future(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def ended(self) -> None:
        """Wait until no act goes on in a thread. Nobody can stop a thread."""
        while self._late:
            await asyncio.wait(self._late)

    @property
    def lasting(self) -> int:
        """How many acts go on in their threads although their steps have given them up."""
        return len(self._late)

    def new_threads(self) -> None:
        """Leave the threads to what still runs in them, and make new ones."""
        for threads in (self.threads, self.act_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self.make_threads()
