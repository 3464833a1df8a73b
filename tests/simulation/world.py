"""The world outside: what effects do there."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from quire import Act, NotDone, effect
from quire.clock import Clock
from quire.workflows.effect import Effect, rate
from tests.simulation.history import LATE, Happening
from tests.simulation.pace import PACE
from tests.simulation.script import How
from tests.simulation.told_loop import ToldLoop

T = TypeVar("T")

#: An act is given up after so long; its target shows it after so long.
TIMEOUT, SETTLE = 8.0 * PACE, 2.0 * PACE
#: So many records of the workflow ``capped`` run at a time.
CAP = 2
#: At most so many effects that are rated begin in so many seconds.
RATE_COUNT, RATE_SECONDS = 2.0, 10.0 * PACE


#: A process that a step ended comes back after so long.
POISON_SECONDS = 1.0


class Trouble(Exception):
    """What a step raises that is to fail."""


class Deed(NamedTuple):
    """One request to the world to do something. Half of its time passes on the way there, half on the way back."""

    key: str
    what: str
    seconds: float
    #: So often it fails: after it has happened, if that is ``unclear``.
    times: int = 0
    unclear: bool = False
    #: The target takes a key once.
    fenced: bool = False


class World:
    """Everything that happened outside. It knows the truth, and people may ask it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.happenings: list[Happening] = []
        #: What is done and not undone, by key.
        self.done: dict[str, str] = {}
        #: How often each act was tried, by key.
        self.tries: Counter[str] = Counter()
        #: When a step first came to each of its sleeps.
        self.came: dict[tuple[str, int, str], float] = {}

    def happen(self, kind: str, record: str, visit: int, name: str, **more: Any) -> None:
        self.happenings.append(Happening(self.clock.now(), kind, record, visit, name, **more))

    def did(self, record: str, visit: int, name: str) -> bool:
        """Whether this effect of the record is done in the world."""
        return f"{record}|{visit}|{name}" in self.done.values()

    async def act(self, deed: Deed, left: float, process: str, *, late: bool = False) -> str:
        """Do it within the time that is left. ``late``: the request came when its time was over."""
        clock = self.clock
        self.tries[deed.key] += 1
        fails = self.tries[deed.key] <= deed.times
        if fails and not deed.unclear:
            raise NotDone("the target did not take it")
        begun = clock.boottime()
        await clock.sleep(min(deed.seconds / 2, left * 0.9))
        if not late and clock.boottime() - begun > left + SETTLE / 2:
            raise Trouble("the target was too slow and gave it up")
        if not deed.fenced or deed.key not in self.done:
            self.acted(deed.key, deed.what, process, late=late)
        await clock.sleep(deed.seconds / 2)
        if fails:
            raise Trouble("the connection broke")
        return deed.what

    def acted(self, key: str, what: str, process: str, *, late: bool = False) -> None:
        record, visit, name = what.split("|")
        self.done[key] = what
        self.happen("acts", record, int(visit), name, key=key, process=process, value=LATE if late else None)

    async def probe(self, key: str) -> str | None:
        await self.clock.sleep(0.05 * PACE)
        return self.done.get(key)

    async def take_back(self, key: str, what: str, process: str) -> None:
        await self.clock.sleep(0.1 * PACE)
        record, visit, name = what.split("|")
        for one in [one for one, done in self.done.items() if done == what]:
            del self.done[one]
        self.happen("undoes", record, int(visit), name, key=key, process=process)
        await self.clock.sleep(0.1 * PACE)


class Site:
    """The world as the steps of one process reach it."""

    def __init__(self, world: World, process: str, die: Callable[[float], None] | None = None) -> None:
        self.world = world
        self.process = process
        #: Ends the process; it comes back after so many seconds.
        self.die = die

    async def act(
        self, act: Act[Site], what: str, seconds: float, times: int, unclear: bool, *, fenced: bool = False
    ) -> str:
        deed = Deed(act.key, what, seconds, times, unclear, fenced)
        return await self._sent(self.world.act(deed, act.time_left.total_seconds(), self.process))

    def act_at_once(self, act: Act[Site], what: str) -> str:
        self.world.acted(act.key, what, self.process)
        return what

    async def comes(self, record: str, visit: int, where: str) -> float:
        """A step comes to a sleep: when it first did."""
        return self.world.came.setdefault((record, visit, where), self.world.clock.now())

    def now(self) -> float:
        return self.world.clock.now()

    async def passes(self, record: str, visit: int, where: str, value: Any) -> None:
        """A step has come beyond this place of its script."""
        self.world.happen("passes", record, visit, where, value=value, process=self.process)

    async def rest(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    async def poison(self, what: str, times: int) -> None:
        """End this process, unless that was done so often before."""
        self.world.tries[what] += 1
        if self.die is not None and (times < 0 or self.world.tries[what] <= times):
            self.die(POISON_SECONDS)
            await asyncio.get_running_loop().create_future()  # what is dead does not go on

    async def probe(self, act: Act[Site]) -> str | NotDone:
        return await self.world.probe(act.key) or NotDone()

    async def undo(self, act: Act[Site], what: str) -> None:
        await self._sent(self.world.take_back(act.key, what, self.process))

    @staticmethod
    async def _sent(request: Coroutine[Any, Any, T]) -> T:
        """The answer to a request. It is on its way at once, whatever becomes of the process that sent it."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ToldLoop)
        answer: asyncio.Future[T] = loop.create_future()

        async def carried() -> None:
            try:
                value = await request
            except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(value)

        loop.begin(None, carried())
        return await answer


async def _find(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str | NotDone:
    return await act.deps.probe(act)


async def _undo(act: Act[Site], what: str) -> None:
    await act.deps.undo(act, what)


@effect(timeout=TIMEOUT, settle=SETTLE)
async def blind(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return await act.deps.act(act, what, seconds, times, unclear)


@effect(probe=_find, timeout=TIMEOUT, settle=SETTLE)
async def probed(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return await act.deps.act(act, what, seconds, times, unclear)


@effect(probe=_find, fenced=True, timeout=TIMEOUT, settle=SETTLE)
async def fenced(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return await act.deps.act(act, what, seconds, times, unclear, fenced=True)


@effect(repeat=True, timeout=TIMEOUT, settle=SETTLE)
async def repeated(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return await act.deps.act(act, what, seconds, times, unclear)


@effect(probe=_find, undo=_undo, timeout=TIMEOUT, settle=SETTLE)
async def undone(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return await act.deps.act(act, what, seconds, times, unclear)


@effect(timeout=TIMEOUT, settle=SETTLE, rate=rate(RATE_COUNT, RATE_SECONDS, "simulated"))
async def rated(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return await act.deps.act(act, what, seconds, times, unclear)


@effect(timeout=TIMEOUT, settle=SETTLE)
def plain(act: Act[Site], what: str, seconds: float, times: int, unclear: bool) -> str:
    return act.deps.act_at_once(act, what)


EFFECTS: dict[How, Effect[Any, Any, Any]] = {
    How.BLIND: blind,
    How.PROBED: probed,
    How.FENCED: fenced,
    How.REPEATED: repeated,
    How.UNDONE: undone,
    How.RATED: rated,
    How.PLAIN: plain,
}
