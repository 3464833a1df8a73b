"""A whole system of real processes: a store, workers, people, and what goes wrong between them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import LedgerUnavailable
from quire.ledger.base import Ledger
from quire.model.change import Query
from quire.testing.faults import PassingLedger
from tests.simulation import people
from tests.simulation.finding import find, moves
from tests.simulation.history import CALL_SECONDS, History, Order
from tests.simulation.pace import PACE
from tests.simulation.plan import BUSY_SECONDS, PEOPLE, Fault, Plan
from tests.simulation.real.machine import Machine, strike
from tests.simulation.real.plans import poisons_of
from tests.simulation.real.proxy import Proxy
from tests.simulation.real.setup import ledger_at
from tests.simulation.real.stores import Store
from tests.simulation.real.target import Target
from tests.simulation.real.worker import until_it_answers
from tests.simulation.steps import workflows
from tests.simulation.world import World

T = TypeVar("T")

#: After the faults everything comes to rest within so many seconds.
MOST_QUIET_SECONDS = 900.0
#: Nothing must have moved for so long: children that are let go, for one, are found by a worker that looks around.
CALM_SECONDS = 20.0
LOOK_SECONDS = 4.0


class PatientLedger(PassingLedger):
    """What only reads is asked again until there is an answer."""

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except LedgerUnavailable:
                await SYSTEM.sleep(0.1)


class Person(people.Person):
    """Somebody whose line may fail at the nth thing that is asked for."""

    def __init__(self, system: System, name: str, proxy: Proxy) -> None:
        super().__init__(system, name)
        self.system = system
        self.proxy = proxy
        self.todo = people.todo_of(name, system.plan)
        self.strikes = {fault.nth: fault for fault in system.plan.faults if fault.process == name}

    async def live(self) -> None:
        system = self.system
        number = 0
        while self.todo:
            at, verb, record, what, value = self.todo.pop(0)
            await system.clock.sleep(max(0.0, system.history.begun_at + at - system.now))
            number += 1
            if (fault := self.strikes.get(number)) is not None and not system.quiet:
                kind = "answer lost" if fault.kind.startswith(("dies", "freezes")) else fault.kind
                system.strikes(f"{self.name} asks for {verb!r}: {kind}, for {fault.span:g} s", fault.span)
                strike(self.proxy, kind, fault.span)
            await self.order(verb, record, what, value)


class System:
    """Runs one plan."""

    def __init__(self, plan: Plan, store: Store, folder: Path) -> None:
        self.plan = plan
        self.store = store
        self.folder = folder
        self.clock = store.clock
        self.dice = random.Random(f"real {plan.seed}")
        self.history = History()
        self.world = World(self.clock)
        self.history.happenings = self.world.happenings
        self.lease = store.lease
        self.poisons = poisons_of(plan)
        self.quiet = self.ending = False
        self.workers: list[Machine] = []
        self._tasks: set[asyncio.Task[None]] = set()
        #: From when to when something went wrong on the way of people to the store.
        self._disturbances: list[tuple[float, float]] = []

    @property
    def now(self) -> float:
        return self.clock.now()

    def strikes(self, what: str, disturbs: float | None = None) -> None:
        """Write a fault down. ``disturbs``: for so long it may touch what people ask."""
        self.history.faults.append((self.now, what))
        if disturbs is not None:
            self._disturbances.append((self.now, self.now + disturbs + CALL_SECONDS))

    def _disturbed(self, order: Order) -> bool:
        end = order.answered_at or self.now
        return any(order.asked_at <= until and begin <= end for begin, until in self._disturbances)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def run(self) -> History:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(Target(self.world, self.folder / "target", self._struck, self._poisoned))
            direct = ledger_at(self.store.address(self.store.port), self.clock)
            self.ledger: Ledger = PatientLedger(direct)
            client = Client(direct, workflows=workflows(1), clock=self.clock, who="clerk")
            await stack.enter_async_context(client)
            self.clerk = people.Clerk(self, "clerk", random.Random(f"clerk {self.plan.seed}"))
            self.clerk.client = client
            persons = [await self._person(name, stack) for name in PEOPLE]
            for number in range(self.plan.workers):
                proxy = await stack.enter_async_context(self._proxy())
                self.workers.append(Machine(self, f"w{number + 1}", self.plan.versions[number], proxy))
            try:
                await self._lives(persons)
            finally:
                self.ending = True
                for task in list(self._tasks):
                    task.cancel()
                await asyncio.gather(*self._tasks, *(worker.end() for worker in self.workers), return_exceptions=True)
        return self.history

    def _proxy(self) -> Proxy:
        return Proxy("127.0.0.1", self.store.port, self.clock)

    async def _person(self, name: str, stack: AsyncExitStack) -> Person:
        person = Person(self, name, await stack.enter_async_context(self._proxy()))
        ledger = ledger_at(self.store.address(person.proxy.port), self.clock)
        person.client = Client(ledger, workflows=workflows(1), clock=self.clock, who=name)
        await until_it_answers(self.clock, person.client.__aenter__)
        stack.push_async_exit(person.client.__aexit__)
        return person

    async def _lives(self, persons: list[Person]) -> None:
        for worker in self.workers:
            worker.begin()
        await asyncio.gather(*(worker.ready.wait() for worker in self.workers))
        self.history.begun_at = self.now
        lives = [asyncio.ensure_future(person.live()) for person in persons]
        for fault in self.plan.faults:
            if fault.at:
                self.later(self._strikes(fault))
        try:
            await self.busy(lives)
            await asyncio.gather(*lives)
        finally:
            for life in lives:
                life.cancel()
        await self.come_to_its_end()

    async def busy(self, lives: Sequence[asyncio.Future[None]]) -> None:
        """Live through the faults, and answer now and then what records ask."""
        end = self.history.begun_at + BUSY_SECONDS * PACE
        while self.now < end or not all(life.done() for life in lives):
            await self.clerk.look_after(seldom=True)
            await self.clock.sleep(self.clerk.dice.uniform(2.0, 6.0) * PACE)

    async def come_to_its_end(self) -> None:
        await self._come_to_rest()
        await find(self.ledger, self.history, self.now)
        for order in self.history.orders:
            order.disturbed = self._disturbed(order)

    async def _struck(self, process: str, kind: str, verb: str, span: float) -> None:
        worker = next(worker for worker in self.workers if worker.name == process.partition(".")[0])
        if kind == "ready":
            worker.ready.set()
        else:
            await worker.struck(kind, verb, span)

    async def _poisoned(self, process: str, record: str, where: str) -> bool:
        """A process has come to a place where the record ends it, if that is still to happen."""
        left = self.poisons[record, where]
        if left == 0:
            return False
        self.poisons[record, where] -= 1
        self.strikes(f"{process} is ended by {record}, at {where} of its script")
        name, _, alone = process.partition("+")
        if not alone:
            worker = next(worker for worker in self.workers if worker.name == name.partition(".")[0])
            worker.expected, worker.off_for = True, PACE
        return True

    async def _strikes(self, fault: Fault) -> None:
        await self.clock.sleep(max(0.0, self.history.begun_at + fault.at - self.now))
        worker = next((one for one in self.workers if one.name == fault.process), None)
        if self.quiet:
            return
        if worker is None:
            self.strikes(f"{fault.process} {fault.kind}, for {fault.span:g} s", fault.span)
            await self.store.strike(fault)
        elif fault.kind == "dies":
            worker.die(fault.span)
        elif fault.kind == "freezes":
            await worker.freeze(fault.span)
        elif fault.kind in ("cut", "half-open"):
            worker.tell(f"has its connections {fault.kind}, for {fault.span:g} s")
            strike(worker.proxy, fault.kind, fault.span)

    async def _come_to_rest(self) -> None:
        """No more faults. The clerk answers all questions until nothing moves by itself."""
        self.quiet = True
        await self.store.calm()
        while any(worker.down for worker in self.workers):
            await SYSTEM.sleep(0.05)
        self.history.quiet_from = self.now
        await self.clerk.resume_all()
        end = self.now + MOST_QUIET_SECONDS * PACE
        calm = 0
        while self.now < end:
            asked = await self.clerk.look_after()
            moving = [row for row in await self.ledger.find(Query(limit=10_000)) if moves(row)]
            calm = calm + 1 if not asked and not moving else 0
            if calm * LOOK_SECONDS >= CALM_SECONDS:
                return
            await self.clock.sleep(LOOK_SECONDS * PACE)
        names = ", ".join(f"{row.record_id} is {row.status}" for row in moving[:5])
        span = f"{MOST_QUIET_SECONDS * PACE:g} s"
        self.history.restless = f"{len(moving)} records still move after {span}: {names}"
