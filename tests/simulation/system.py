"""A whole system on told time: a store, workers, people, and what goes wrong between them."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import quire.clock
from quire.client.client import Client
from quire.errors import LedgerUnavailable, QuireError
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Query
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Worker as WorkerRow
from quire.testing import ToldClock
from quire.testing.faults import PassingLedger
from quire.worker.worker import Worker
from quire.workflows.workflow import Workflow
from tests.simulation import people
from tests.simulation.finding import find, moves
from tests.simulation.history import CALL_SECONDS, History, Order
from tests.simulation.plan import BUSY_SECONDS, PEOPLE, Fault, Plan
from tests.simulation.reach import cells
from tests.simulation.steps import workflows
from tests.simulation.told_loop import MachineClock, Process, ToldLoop
from tests.simulation.turns import in_turns
from tests.simulation.world import Site, World

T = TypeVar("T")

#: Shorter than in earnest, so that a takeover comes soon.
LEASE_SECONDS = 20.0
#: After the faults everything comes to rest within so many seconds.
MOST_QUIET_SECONDS = 1500.0


class Machine:
    """One machine: its clock, the processes that were on it, and the faults that wait for it."""

    def __init__(self, system: System, name: str) -> None:
        self.system = system
        self.name = name
        self.process = Process(name)
        self.ended: set[str] = set()
        self.starts = 0
        self.dice = random.Random(f"machine {system.plan.seed} {name}")
        own = [fault for fault in system.plan.faults if fault.process == name]
        drift = sum(fault.span for fault in own if fault.kind == "clock drifts")
        self.clock = MachineClock(system.clock, rate=1.0 + max(-0.03, min(0.03, drift)))
        #: By the number of the request, and by its number among the requests of one verb.
        self.at_calls = {(fault.verb, fault.nth): fault for fault in own if fault.nth}
        self.counts: Counter[str] = Counter()

    def fault_of(self, verb: str) -> Fault | None:
        """What goes wrong with this request."""
        for counted in ("", verb):
            self.counts[counted] += 1
        found = [self.at_calls.pop((counted, self.counts[counted]), None) for counted in ("", verb)]
        return found[0] or found[1]

    def tell(self, what: str) -> None:
        self.system.history.faults.append((self.system.clock.now(), f"{self.name} {what}"))

    def die(self, span: float) -> None:
        if self.process.dead:
            return
        self.tell(f"dies, and comes back after {span:g} s")
        self.process.dead = True
        self.ended.add(self.process.name)
        self.system.later(span, self.start)

    def start(self) -> None:
        """A new process on this machine."""
        self.starts += 1
        self.process = Process(f"{self.name}.{self.starts}")

    def freeze(self, span: float) -> None:
        if self.process.dead or self.process.frozen:
            return
        self.tell(f"freezes for {span:g} s")
        process = self.process
        process.frozen = True
        self.system.later(span, lambda: process.thaw(self.system.loop))


class Line(PassingLedger):
    """The way from one process to the store, with all that goes wrong on it."""

    def __init__(self, ledger: Ledger, machine: Machine) -> None:
        super().__init__(ledger)
        self.machine = machine
        self.process = machine.process

    async def wait_for_work(self, timeout: float) -> None:
        await self.ledger.wait_for_work(timeout)

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        machine, loop = self.machine, self.machine.system.loop
        fault = machine.fault_of(verb) if not machine.system.quiet else None
        answer: asyncio.Future[T] = loop.create_future()
        loop.begin(None, self._carried(verb, call, fault, answer))
        return await answer

    async def _carried(
        self, verb: str, call: Callable[[], Awaitable[T]], fault: Fault | None, answer: asyncio.Future[T]
    ) -> None:
        """Carry a request to the store and its answer back. The process may be gone meanwhile."""
        self.machine.system.faulty += fault is not None
        try:
            await self._there_and_back(verb, call, fault, answer)
        finally:
            self.machine.system.faulty -= fault is not None

    async def _there_and_back(
        self, verb: str, call: Callable[[], Awaitable[T]], fault: Fault | None, answer: asyncio.Future[T]
    ) -> None:
        machine, clock = self.machine, self.machine.system.clock
        kind = fault.kind if fault is not None else ""
        span = fault.span if fault is not None else 0.0
        if kind == "dies before":
            machine.die(span)
            return
        if kind == "freezes before":
            machine.freeze(span)
        await clock.sleep(machine.dice.uniform(0.0005, 0.005))
        if kind == "request lost":
            machine.tell(f"asks for {verb!r}, and the store never hears of it")
            await clock.sleep(CALL_SECONDS)
            _give(answer, LedgerUnavailable(f"{verb} got no answer"))
            return
        try:
            given: T | BaseException = await call()
        except QuireError as error:
            given = error
        if kind == "dies after":
            machine.tell(f"has just asked for {verb!r}")
            machine.die(span)
            return
        if kind == "freezes after":
            machine.tell(f"has just asked for {verb!r}")
            machine.freeze(span)
        if kind == "slow":
            machine.tell(f"waits {span:g} s for the answer to {verb!r}")
            await clock.sleep(span)
        await clock.sleep(machine.dice.uniform(0.0005, 0.005))
        if kind == "answer lost":
            machine.tell(f"never hears the answer to {verb!r}")
            await clock.sleep(CALL_SECONDS)
            given = LedgerUnavailable(f"{verb} got no answer")
        _give(answer, given)


def _give(answer: asyncio.Future[T], given: T | BaseException) -> None:
    if answer.done():
        return
    if isinstance(given, BaseException):
        answer.set_exception(given)
    else:
        answer.set_result(given)


class SimulatedWorker(Worker):
    machine: Machine
    _told: WorkerRow | None = None

    def row(self) -> WorkerRow:
        self._told = replace(self._told or super().row(), worker_id=self.worker_id)
        return self._told

    def known_dead(self, worker: WorkerRow) -> bool:
        return worker.label in self.machine.ended

    def swallowed(self, record: Record) -> None:
        pass


class System:
    """Runs one plan."""

    def __init__(self, plan: Plan, store: Callable[[ToldClock], Ledger]) -> None:
        self.plan = plan
        self.clock = ToldClock()
        self.loop = ToldLoop(self.clock)
        self.ledger = store(self.clock)
        self.world = World(self.clock)
        self.history = History(happenings=self.world.happenings)
        self.quiet = False
        #: How many requests are under way in which something goes wrong.
        self.faulty = 0
        self.workers = [WorkingMachine(self, f"w{n + 1}", plan.versions[n]) for n in range(plan.workers)]
        self.people = {name: Person(self, name) for name in PEOPLE}
        self.clerks_machine = Machine(self, "clerk")
        self.clerk = people.Clerk(self, "clerk", self.clerks_machine.dice)

    @property
    def now(self) -> float:
        return self.clock.now()

    def later(self, span: float, do: Callable[[], object]) -> None:
        """Do something in the world outside, after so many seconds."""

        async def waited() -> None:
            await self.clock.sleep(span)
            do()

        self.loop.begin(None, waited())

    def run(self) -> History:
        main = self.loop.begin(None, self._run())
        try:
            asyncio.set_event_loop(self.loop)
            self.loop.run_until_complete(main)
        finally:
            asyncio.set_event_loop(None)
            self.loop.end()
        return self.history

    async def _run(self) -> None:
        begun = self.history.begun_at = self.now
        await self.ledger.open()
        try:
            self.clerk.client = await _client_of("clerk", self.clerks_machine)
            for worker in self.workers:
                worker.start()
            for person in self.people.values():
                person.start()
            for fault in self.plan.faults:
                self._strikes(fault)
            end = max([BUSY_SECONDS, *(wish.at + 1.0 for wish in self.plan.wishes)])
            while self.now < begun + end:
                await self.clerk.look_after(seldom=True)
                await self.clock.sleep(self.clerk.dice.uniform(2.0, 6.0))
            await self._come_to_rest()
            await find(self.ledger, self.history, self.now)
        finally:
            for worker in self.workers:
                worker.process.dead = True
            for person in self.people.values():
                person.machine.process.dead = True
            await self.ledger.close()

    def _strikes(self, fault: Fault) -> None:
        machine = next((one for one in self.workers if one.name == fault.process), None)
        if fault.record:
            self.loop.begin(None, self._strikes_holder(fault))
        if machine is None or not fault.at or fault.record:
            return
        if fault.kind == "dies":
            self.later(fault.at, lambda: machine.die(fault.span))
        elif fault.kind == "freezes":
            self.later(fault.at, lambda: machine.freeze(fault.span))
        elif fault.kind == "clock is set":
            self.later(fault.at, lambda: machine.set_clock(fault.span))

    async def _strikes_holder(self, fault: Fault) -> None:
        """Strike the machine that holds a record, as soon as one does."""
        await self.clock.sleep(fault.at)
        for _ in range(40):
            found = await self.ledger.load([fault.record])
            holder = found[0].worker if found and found[0].status is Status.RUNNING else None
            labels = [row.label.split(".")[0] for row in await self.ledger.workers() if row.worker_id == holder]
            if machine := next((one for one in self.workers if one.name in labels), None):
                if not self.quiet:
                    machine.die(fault.span) if fault.kind == "dies" else machine.freeze(fault.span)
                return
            await self.clock.sleep(0.25)

    async def _come_to_rest(self) -> None:
        """No more faults. The clerk answers all questions until nothing moves by itself."""
        self.quiet = True
        self.history.quiet_from = self.now
        end = self.now + MOST_QUIET_SECONDS
        machines = [*self.workers, *(person.machine for person in self.people.values())]
        while self.faulty or any(machine.process.dead or machine.process.frozen for machine in machines):
            await self.clock.sleep(1.0)
        await self.clerk.resume_all()
        calm = 0
        while self.now < end:
            asked = await self.clerk.look_after()
            moving = [row for row in await self.ledger.find(Query(limit=10_000)) if moves(row)]
            calm = calm + 1 if not asked and not moving else 0
            if calm >= 3:
                return
            await self.clock.sleep(4.0)
        names = ", ".join(f"{row.record_id} is {row.status}" for row in moving[:5])
        self.history.restless = f"{len(moving)} records still move after {MOST_QUIET_SECONDS:g} s: {names}"


class WorkingMachine(Machine):
    """A machine with a worker on it."""

    def __init__(self, system: System, name: str, version: int) -> None:
        super().__init__(system, name)
        self.version = version

    def set_clock(self, span: float) -> None:
        self.tell(f"has its clock set forward by {span:g} s")
        self.clock.skew += span

    def start(self) -> None:
        super().start()
        self.system.loop.begin(self.process, self._work())

    def _workflows(self) -> list[Workflow[Any, Any, Site]]:
        return workflows(self.version, self.system.plan.scheduled)

    async def _work(self) -> None:
        site = Site(self.system.world, self.process.name, self.die)
        client = Client(Line(self.system.ledger, self), workflows=self._workflows(), deps=site, clock=self.clock)
        await _until_it_answers(self.clock, client.__aenter__)
        while not self.process.dead:
            worker = client.made_worker(SimulatedWorker, lease=LEASE_SECONDS, label=self.process.name, concurrency=5)
            worker.machine = self
            try:
                await worker.run()
            except LedgerUnavailable:
                await self.clock.sleep(1.0)


async def _until_it_answers(clock: MachineClock, ask: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await ask()
            return
        except LedgerUnavailable:
            await clock.sleep(1.0)


class PersonsMachine(Machine):
    def __init__(self, person: Person) -> None:
        super().__init__(person.system, person.name)
        self.person = person

    def start(self) -> None:
        super().start()
        self.system.loop.begin(self.process, self.person.live())


class Person(people.Person):
    """Somebody whose machine may fail, too."""

    def __init__(self, system: System, name: str) -> None:
        super().__init__(system, name)
        self.system = system
        self.machine = PersonsMachine(self)
        self.todo = people.todo_of(name, system.plan)
        self.begun = system.now

    def start(self) -> None:
        self.machine.start()

    async def ready(self) -> None:
        self.client = await _client_of(self.name, self.machine)

    async def order(self, verb: str, record: str = "", what: str = "", value: Any = None) -> Order:
        self.system.history.cells |= await cells(self.system.ledger, verb, record, what)
        return await super().order(verb, record, what, value)

    async def live(self) -> None:
        await self.ready()
        while self.todo:
            at, verb, record, what, value = self.todo[0]
            await self.machine.clock.sleep(max(0.0, self.begun + at - self.system.now))
            self.todo.pop(0)
            await self.order(verb, record, what, value)


async def _client_of(name: str, machine: Machine) -> Client:
    line = Line(machine.system.ledger, machine)
    client = Client(line, workflows=workflows(1), clock=machine.clock, who=name)
    await _until_it_answers(machine.clock, client.__aenter__)
    return client


def memory(clock: ToldClock) -> Ledger:
    return MemoryLedger(clock)


def sqlite_in(folder: Path) -> Callable[[ToldClock], Ledger]:
    def made(clock: ToldClock) -> Ledger:
        return SqliteLedger(folder / "ledger.db", clock)

    return made


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Everything that is drawn by lot in the engine follows from the seed."""
    dice = random.Random(f"engine {seed}")
    kept, real = random.getstate(), os.urandom
    level = logging.root.manager.disable
    random.seed(f"jitter {seed}")
    os.urandom = dice.randbytes
    quire.clock._counter.renew()
    logging.disable(logging.CRITICAL)
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = hook
        logging.disable(level)
        os.urandom = real
        random.setstate(kept)
        quire.clock._counter.renew()


def simulate(plan: Plan, store: Callable[[ToldClock], Ledger] = memory) -> History:
    """Run a plan. The same plan on the same store has the same history, to the byte."""
    with seeded(plan.seed), in_turns(), suppress(asyncio.CancelledError):
        return System(plan, store).run()
    raise AssertionError("the simulation was cancelled")
