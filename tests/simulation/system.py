"""A whole system on told time: a store, workers, people, and what goes wrong between them."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import quire.clock
from quire.client.client import Client
from quire.errors import LedgerUnavailable, QuireError
from quire.explain.why import around, why_of
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.receipt import Kind, fingerprint
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Worker as WorkerRow
from quire.model.wait import On, load_waits
from quire.testing import ToldClock
from quire.testing.faults import PassingLedger
from quire.upkeep.verify import verify
from quire.worker.worker import Worker
from tests.simulation.history import CALL_SECONDS, Found, Happening, History, Order
from tests.simulation.plan import BUSY_SECONDS, PEOPLE, Fault, Plan
from tests.simulation.script import as_data
from tests.simulation.told_loop import MachineClock, Process, ToldLoop
from tests.simulation.world import Site, World, workflows

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
        self.calls = 0
        self.starts = 0
        self.dice = random.Random(f"machine {system.plan.seed} {name}")
        own = [fault for fault in system.plan.faults if fault.process == name]
        drift = sum(fault.span for fault in own if fault.kind == "clock drifts")
        self.clock = MachineClock(system.clock, rate=1.0 + max(-0.03, min(0.03, drift)))
        self.at_calls = {fault.nth: fault for fault in own if fault.nth}

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
        machine.calls += 1
        fault = machine.at_calls.pop(machine.calls, None) if not machine.system.quiet else None
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
        self.clerk = Person(self, "clerk")

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
        begun = self.now
        await self.ledger.open()
        try:
            await self.clerk.ready()
            for worker in self.workers:
                worker.start()
            for person in self.people.values():
                person.start()
            for fault in self.plan.faults:
                self._strikes(fault)
            end = max([BUSY_SECONDS, *(wish.at + 1.0 for wish in self.plan.wishes)])
            while self.now < begun + end:
                await self.clerk.look_after(seldom=True)
                await self.clock.sleep(self.clerk.machine.dice.uniform(2.0, 6.0))
            await self._come_to_rest()
            await self._find()
        finally:
            for worker in self.workers:
                worker.process.dead = True
            for person in self.people.values():
                person.machine.process.dead = True
            await self.ledger.close()

    def _strikes(self, fault: Fault) -> None:
        machine = next((one for one in self.workers if one.name == fault.process), None)
        if machine is None or not fault.at:
            return
        if fault.kind == "dies":
            self.later(fault.at, lambda: machine.die(fault.span))
        elif fault.kind == "freezes":
            self.later(fault.at, lambda: machine.freeze(fault.span))
        elif fault.kind == "clock is set":
            self.later(fault.at, lambda: machine.set_clock(fault.span))

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
            moving = [row for row in await self.ledger.find(Query(limit=10_000)) if _moves(row)]
            calm = calm + 1 if not asked and not moving else 0
            if calm >= 3:
                return
            await self.clock.sleep(4.0)
        names = ", ".join(f"{row.record_id} is {row.status}" for row in moving[:5])
        self.history.restless = f"{len(moving)} records still move after {MOST_QUIET_SECONDS:g} s: {names}"

    async def _find(self) -> None:
        history = self.history
        history.ended_at = self.now
        for row in await self.ledger.find(Query(limit=10_000)):
            why = why_of(row, await around(self.ledger, row))
            history.found[row.record_id] = Found(
                row.record_id,
                row.parent_id or "",
                row.workflow,
                parse(row.data),
                row.status,
                why.kind,
                why.sentence,
                parse(row.result) if row.result else None,
                row.last_error or "",
            )
        checked = await verify(self.ledger)
        history.differences = [str(difference) for difference in checked.differences]
        receipts = {receipt.key: receipt for receipt in await self.ledger.receipts(record_ids=list(history.found))}
        for event in await self.ledger.events(limit=1_000_000):
            if event.kind == "effect.intended":
                receipt = receipts[parse(event.body)["key"]]
                kind = "begins" if receipt.kind is Kind.ONCE else "begins to undo"
                history.happenings.append(
                    Happening(event.at, kind, receipt.record_id, receipt.visit, receipt.name, key=receipt.key)
                )
            elif event.kind in _HOLDS:
                history.happenings.append(Happening(event.at, _HOLDS[event.kind], event.record_id, 0, event.kind))
        history.happenings.sort(key=lambda one: one.at)


#: Lines of a log by which a worker holds a record, or lets it go.
_HOLDS = {"claimed": "is claimed"} | dict.fromkeys(
    (
        "moved",
        "waited",
        "asked",
        "failed",
        "broke",
        "done",
        "yielded",
        "lost",
        "orphaned",
        "cancelled",
        "doubted",
        "undone",
    ),
    "is let go",
)


def _moves(row: Record) -> bool:
    return row.status in (Status.PENDING, Status.RUNNING) or (not row.ended and row.due_at is not None)


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

    async def _work(self) -> None:
        site = Site(self.system.world, self.process.name)
        client = Client(Line(self.system.ledger, self), workflows=workflows(self.version), deps=site, clock=self.clock)
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


class Person:
    """Somebody with a client, who gives one order after the other."""

    def __init__(self, system: System, name: str) -> None:
        self.system = system
        self.name = name
        self.machine = PersonsMachine(self)
        plan = system.plan
        todo: list[tuple[float, str, str, str, Any]] = [
            (root.at, "start", root.record, root.script.workflow, as_data(root.script))
            for root in plan.roots
            if root.person == name
        ]
        todo += [(wish.at, wish.verb, wish.record, wish.what, None) for wish in plan.wishes if wish.person == name]
        self.todo = sorted(todo, key=lambda one: one[:4])
        self.client: Client | None = None
        self.signals = 0
        self.begun = system.now

    def start(self) -> None:
        self.machine.start()

    async def ready(self) -> None:
        line = Line(self.system.ledger, self.machine)
        self.client = Client(line, workflows=workflows(1), clock=self.machine.clock, who=self.name)
        await _until_it_answers(self.machine.clock, self.client.__aenter__)

    async def live(self) -> None:
        await self.ready()
        while self.todo:
            at, verb, record, what, value = self.todo[0]
            await self.machine.clock.sleep(max(0.0, self.begun + at - self.system.now))
            self.todo.pop(0)
            await self.order(verb, record, what, value)

    async def order(self, verb: str, record: str = "", what: str = "", value: Any = None) -> Order:
        """Give one order, and write down what came of it."""
        assert self.client is not None
        system = self.system
        orders = system.history.orders
        order = Order(len(orders) + 1, self.name, verb, record, system.now, what, value)
        orders.append(order)
        if verb == "signal":
            order.value = f"signal {order.number}"
        try:
            answer = await self._ask(order)
        except LedgerUnavailable:
            return order  # nobody knows
        except QuireError as error:
            order.answer, order.words = type(error).__name__, str(error)
        else:
            order.answer = str(answer.status) if isinstance(answer, Record) else "ok"
            if verb == "halt":
                order.value = sorted(receipt.key for receipt in answer.under_way)
        order.answered_at = system.now
        return order

    async def _ask(self, order: Order) -> Any:
        client, record, what = self.client, order.record, order.what
        assert client is not None
        match order.verb:
            case "start":
                return (await client.start(what, order.value, id=record)).started
            case "look":
                return await client.get(record)
            case "cancel":
                return await client.cancel(record)
            case "cancel --undo":
                return await client.cancel(record, undo=True)
            case "halt":
                return await client.halt(what)
            case "pause":
                return await client.pause(what)
            case "resume":
                return await client.resume(what)
            case "resume --cancelled":
                return await client.resume(what, cancelled=True)
            case "signal":
                return await client.signal(record, what, order.value)
            case "retry":
                return await client.retry(record)
            case "move":
                return await client.move(record, "work")
            case "rewind":
                return await client.retry(record, step="work")
            case "priority":
                return await client.prioritise(record, order.number)
            case "edit":
                seen = await client.get(record)
                data = parse(seen.data) | {"edited": order.number}
                return await client.edit(record, data, version=seen.version)
            case "answer":
                return await client.answer(record, order.value, question=what)
            case "resolve":
                return await client.resolve(record, effect=what, happened=order.value is not None, value=order.value)
        raise AssertionError(order.verb)

    # -- the clerk ----------------------------------------------------------------------------------------------

    async def resume_all(self) -> None:
        standing = await self.system.ledger.standing()
        verb = "resume --cancelled" if self.system.plan.brings_back else "resume"
        for control in sorted(standing.controls, key=lambda one: one.scope):
            if control.halted or control.paused:
                await self.order(verb, "", control.scope if control.scope != "*" else "")

    async def look_after(self, *, seldom: bool = False) -> int:
        """Answer what records ask, say of doubts what is true, and move on what rests. The answer: how many."""
        asked = 0
        for row in await self.system.ledger.find(Query(limit=10_000)):
            if row.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
                continue
            if seldom and self.machine.dice.random() < 0.5:
                continue
            asked += await self._attend(row)
        return asked

    async def _attend(self, row: Record) -> int:
        for wait in load_waits(row.waits):
            if wait.on is On.QUESTION:
                await self.order("answer", row.record_id, wait.name, self.machine.dice.choice(("yes", "no")))
                return 1
            if wait.on is On.DOUBT:
                await self.order("resolve", row.record_id, wait.name, await self._truth(wait.key))
                return 1
            if wait.on is On.REST:
                await self.order("move", row.record_id)
                return 1
        return 0

    async def _truth(self, key: str) -> str | None:
        """What the effect behind this key came to in the world; None: it did not happen."""
        world = self.system.world
        [receipt] = await self.system.ledger.receipts(keys=[key.removesuffix("value")])
        if receipt.kind is Kind.UNDO:
            own = fingerprint(receipt.key)
            return "undone" if any(one.kind == "undoes" and one.key == own for one in world.happenings) else None
        what = f"{receipt.record_id}|{receipt.visit}|{receipt.name}"
        return what if what in world.done.values() else None


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
    with seeded(plan.seed), suppress(asyncio.CancelledError):
        return System(plan, store).run()
    raise AssertionError("the simulation was cancelled")
