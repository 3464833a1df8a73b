"""The quota of one user, shared by everything in this process that asks as that user; reads and writes apart.

Google counts calls per minute. Here no minute, wherever it begins, has more calls than the limit: the first half of it
may come at once, the rest is spread evenly, so that whoever is busy shares its calls instead of waiting out a minute.
Lanes say who goes first when it is short; a fifth is kept for the first two, so that receipts and beats land in every
storm (protocol 9).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from enum import IntEnum

from quire.clock import Clock

WINDOW_SECONDS = 60.0
#: The part of the quota that only receipts and beats may use.
RESERVED = 0.2


class Urgency(IntEnum):
    """Who goes first."""

    RECEIPT = 0
    BEAT = 1
    SETTLE = 2
    CLAIM = 3
    VIEW = 4
    ARCHIVE = 5


class Budget:
    """Calls of one kind, or units where Google counts these. Without a limit it only counts."""

    def __init__(self, clock: Clock, per_minute: float | None) -> None:
        self._clock = clock
        self.per_minute = per_minute
        #: How many processes share the quota.
        self.sharers = 1
        self.used = 0
        #: When each call of the last minute was made, and what it took.
        self._calls: deque[tuple[float, float]] = deque()
        self._spent = 0.0
        self._queue: list[tuple[int, int]] = []
        self._numbers = itertools.count()
        self._halved_until = 0.0

    def limit(self, urgency: Urgency) -> float:
        """How much a minute this urgency may see taken."""
        if self.per_minute is None:
            return float("inf")
        share = self.per_minute / max(1, self.sharers)
        if self._clock.boottime() < self._halved_until:
            share /= 2
        return max(1.0, share if urgency <= Urgency.BEAT else share * (1 - RESERVED))

    def halve(self) -> None:
        """Google said 429: somebody else uses the same quota. Half of it for a minute."""
        self._halved_until = self._clock.boottime() + WINDOW_SECONDS

    def _wait(self, urgency: Urgency, units: float) -> float:
        now = self._clock.boottime()
        while self._calls and self._calls[0][0] <= now - WINDOW_SECONDS:
            self._spent -= self._calls.popleft()[1]
        if self.per_minute is None:
            return 0.0
        limit = max(int(self.limit(urgency)), units)  # what takes more than there is waits for an empty minute
        if (over := self._spent + units - limit) > 0:
            for at, taken in self._calls:
                over -= taken
                if over <= 0:
                    return at + WINDOW_SECONDS - now
        if urgency > Urgency.BEAT and self._spent > limit / 2:
            return max(0.0, self._calls[-1][0] + WINDOW_SECONDS * units / limit - now)
        return 0.0

    async def take(self, urgency: Urgency, units: float = 1.0) -> bool:
        """Return when a call of this urgency may be made; whether that took a while."""
        waited = False
        place = (urgency, next(self._numbers))
        heapq.heappush(self._queue, place)
        try:
            while True:
                wait = self._wait(urgency, units)
                if wait <= 0 and self._queue[0] == place:
                    break
                waited = True
                await self._clock.sleep(max(wait, 0.01))
        finally:
            self._queue.remove(place)
            heapq.heapify(self._queue)
        self.used += 1
        if self.per_minute is not None:
            self._calls.append((self._clock.boottime(), units))
            self._spent += units
        return waited


class Budgets:
    """Reads and writes of one user at one endpoint."""

    def __init__(self, clock: Clock, per_minute: float | None) -> None:
        self.reads = Budget(clock, per_minute)
        self.writes = Budget(clock, per_minute)

    def of(self, write: bool) -> Budget:
        return self.writes if write else self.reads


_shared: dict[tuple[str, str, int], Budgets] = {}


def shared(endpoint: str, account: str, clock: Clock, per_minute: float | None) -> Budgets:
    """The budgets of this user: one for all connections of this event loop that ask as that user."""
    if per_minute is None:
        return Budgets(clock, None)
    key = (endpoint, account, id(asyncio.get_running_loop()))
    budgets = _shared.get(key)
    if budgets is None:
        budgets = _shared[key] = Budgets(clock, per_minute)
    return budgets


_lanes: dict[tuple[str, str, str, int], Budget] = {}


def lane(endpoint: str, account: str, name: str, per_minute: float, clock: Clock) -> Budget:
    """The budget of one API for this user: one for all connections of this event loop that ask as that user."""
    key = (endpoint, account, name, id(asyncio.get_running_loop()))
    if key not in _lanes:
        _lanes[key] = Budget(clock, per_minute)
    return _lanes[key]
