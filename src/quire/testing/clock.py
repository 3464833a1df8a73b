"""A clock that is told the time, so that no test sleeps and every test sees the same moments."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
from typing import NamedTuple

from quire.clock import Clock, Span, seconds

#: 2026-01-01T00:00:00Z: where every told clock starts unless it is said otherwise.
START = 1767225600.0


class _Sleeper(NamedTuple):
    until: float
    #: Who fell asleep first wakes first, if two wake at the same moment.
    number: int
    loop: asyncio.AbstractEventLoop
    woken: asyncio.Future[None]

    def wake(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class ToldClock:
    """Stands still until ``advance`` moves it. Other threads may read it; sleepers of any loop are woken."""

    def __init__(self, start: float = START) -> None:
        self._start = start
        self._now = start
        self._lock = threading.Lock()
        self._sleepers: list[_Sleeper] = []
        self._numbers = itertools.count()

    def now(self) -> float:
        return self._now

    def boottime(self) -> float:
        return self._now - self._start

    async def sleep(self, span: float) -> None:
        """Return once the clock was advanced by ``span`` seconds; at once, after the others' turn, for none."""
        if span <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        sleeper = _Sleeper(self._now + span, next(self._numbers), loop, loop.create_future())
        with self._lock:
            heapq.heappush(self._sleepers, sleeper)
        try:
            await sleeper.woken
        finally:
            with self._lock:
                if sleeper in self._sleepers:
                    self._sleepers.remove(sleeper)
                    heapq.heapify(self._sleepers)

    @property
    def wakes_at(self) -> float | None:
        """When the first sleeper wakes; None if nobody sleeps."""
        with self._lock:
            return self._sleepers[0].until if self._sleepers else None

    def advance(self, span: Span) -> float:
        """Move the time on, wake whoever is due, in the order of their moments, and tell the new time.

        Whoever is woken runs when its loop does, and then sees the new time, not the moment at which it was due.
        """
        with self._lock:
            self._now += seconds(span)
            while self._sleepers and self._sleepers[0].until <= self._now:
                sleeper = heapq.heappop(self._sleepers)
                if not sleeper.loop.is_closed():
                    sleeper.loop.call_soon_threadsafe(sleeper.wake)
            return self._now

    def skewed(self, skew: float) -> Clock:
        """The same clock as a machine sees it whose wall clock is wrong by so many seconds."""
        return _SkewedClock(self, skew)


class _SkewedClock:
    def __init__(self, clock: ToldClock, skew: float) -> None:
        self._clock = clock
        self._skew = skew

    def now(self) -> float:
        return self._clock.now() + self._skew

    def boottime(self) -> float:
        return self._clock.boottime()

    async def sleep(self, span: float) -> None:
        await self._clock.sleep(span)
