"""Lanes: tasks in which the passes of a worker's records run, as few as their steps allow.

What is ready runs one after the other in one lane as long as no step waits for anything. A step that waits keeps the
lane that it runs in, and another one takes the rest; so steps run side by side exactly as far as they wait. A lane is a
task like any other to the step in it: it is cancelled only while that step runs, and what a step leaves in its context
does not reach the next record (docs/decisions/027). After ``TURN_SECONDS`` a lane ends and leaves the rest to the next
one; in between, commits go out and beats are sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import TYPE_CHECKING

from quire.clock import Clock
from quire.errors import LeaseLost

if TYPE_CHECKING:
    from quire.worker.hold import Hold

log = logging.getLogger("quire.worker")

#: So long passes follow each other before the loop has its turn.
TURN_SECONDS = 0.01


class Lanes:
    """``perform`` makes one pass; ``let_go`` is called with a hold whose pass did not come to its end."""

    def __init__(
        self, perform: Callable[[Hold], Awaitable[None]], let_go: Callable[[Hold], None], clock: Clock
    ) -> None:
        self._perform = perform
        self._let_go = let_go
        self._clock = clock
        self._ready: deque[Hold] = deque()
        #: The lanes that run.
        self.tasks: set[asyncio.Task[None]] = set()
        self._context = copy_context()
        #: A lane is about to be made for what is ready, or was just made.
        self._going = False

    @property
    def busy(self) -> bool:
        """Something runs, or is about to."""
        return bool(self.tasks or self._ready)

    def begin(self, hold: Hold) -> None:
        """Its next pass may begin."""
        self._ready.append(hold)
        if not self._going:
            self._go()

    def _go(self) -> None:
        """Make a lane at the next turn of the loop: the next claim, which is asked for until then, goes out first."""
        self._going = True
        asyncio.get_running_loop().call_soon(self._gone)

    def _gone(self) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._lane(), context=self._context.copy())
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        loop.call_soon(self._go_on)  # its turn comes when the lane has ended, or waits

    def _go_on(self) -> None:
        self._going = False
        if self._ready:
            self._go()

    async def _lane(self) -> None:
        task = asyncio.current_task()
        end = self._clock.boottime() + TURN_SECONDS
        while self._ready:
            hold = self._ready.popleft()
            hold.task = task
            try:
                await self._perform(hold)
            except BaseException as error:
                self._let_go(hold)
                if isinstance(error, asyncio.CancelledError):
                    if task is None or task.cancelling():  # not the pass, but the lane is to end
                        raise
                elif not isinstance(error, Exception):
                    raise
                elif not isinstance(error, LeaseLost):
                    log.error("a run ended badly: %s", error, exc_info=error)
            if copy_context() != self._context or self._clock.boottime() > end:
                return

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if task.cancelled() or task.exception() is not None:  # the process ends
            while self._ready:
                self._let_go(self._ready.popleft())
