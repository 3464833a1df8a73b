"""A clock that runs faster than the machine's, the same in every process that is given the same beginning."""

from __future__ import annotations

from quire.clock import SYSTEM, Clock


class SwiftClock:
    def __init__(self, speed: float, beginning: float) -> None:
        self._speed = speed
        self._beginning = beginning

    def now(self) -> float:
        return self._beginning + (SYSTEM.now() - self._beginning) * self._speed

    def boottime(self) -> float:
        return SYSTEM.boottime() * self._speed

    async def sleep(self, span: float) -> None:
        await SYSTEM.sleep(span / self._speed)


def clock_of(speed: float, beginning: float) -> Clock:
    return SYSTEM if speed == 1.0 else SwiftClock(speed, beginning)


class OwnClock:
    """The clock of one machine. Its time is wrong, and it may run a little too fast or too slowly."""

    def __init__(self, clock: Clock, skew: float, rate: float) -> None:
        self._clock = clock
        self._skew = skew
        self._rate = rate
        self._beginning = clock.boottime()

    def now(self) -> float:
        return self._clock.now() + self._skew

    def boottime(self) -> float:
        return self._beginning + (self._clock.boottime() - self._beginning) * self._rate

    async def sleep(self, span: float) -> None:
        await self._clock.sleep(span / self._rate)
