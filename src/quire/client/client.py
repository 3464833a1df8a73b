"""The Python client: everything that the command line does, from Python.

``quire.open(...)`` gives the plain face, ``quire.aopen(...)`` the asynchronous one. Both are the same ``Client``: the
plain face is made of it mechanically (``quire.client.plain``).

A client starts records and works. What it reads, what it does to one record and what it orders are parts of it, and it
lends their methods by name.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self
from weakref import WeakSet

from typing_extensions import TypeVar

from quire.client import arguments, spawning
from quire.client.acts import Acts
from quire.client.finishing import Worked, why_idle
from quire.client.handle import Handle
from quire.client.link import Link, landed
from quire.client.new_records import new_records
from quire.client.orders import Orders
from quire.client.reading import Reading
from quire.clock import SYSTEM, Clock, Span, seconds
from quire.errors import InputError
from quire.ledger.base import Ledger
from quire.ledger.finding import open_ledger
from quire.model.change import Verdict
from quire.model.receipt import Keyring
from quire.model.record import Record
from quire.model.row import replace
from quire.run.dependencies import Dependencies
from quire.worker.schedule import starting
from quire.workflows.workflow import Registry, Workflow

if TYPE_CHECKING:
    from quire.worker.apart import Spawn
    from quire.worker.worker import Worker as RunningWorker

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", default=dict[str, Any])
R = TypeVar("R", default=Any)
W = TypeVar("W", bound="RunningWorker")

#: Starts are sent in batches of this size.
BATCH = 500


def _lent(part: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Client, P], T]:
    """Return a method of a part as a method of the client."""

    @wraps(method)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = getattr(getattr(self, part), method.__name__)(*args, **kwargs)
        return answer

    return call


class Client:
    """A way into one ledger. Use it as ``async with quire.aopen(url, workflows=[...]) as client``.

    ``groups`` names the groups of people that questions are put to, with their members.
    ``state`` is a directory of this machine where workers keep marks, by which they notice a ledger that went back in
    time. ``deps`` is what the steps of all its workflows work with, instead of what their own factories make.
    """

    def __init__(
        self,
        ledger: Ledger | str = "sqlite:///.quire/ledger.db",
        *,
        workflows: Iterable[Workflow[Any, Any, Any]] = (),
        deps: Any = None,
        clock: Clock = SYSTEM,
        public_url: str = "",
        who: str = "",
        groups: Mapping[str, Sequence[str]] | None = None,
        state: str = "",
        retention: Span | None = None,
    ) -> None:
        self._assemble(Link(_ledger(ledger, clock), clock, who, groups))
        #: The address by which another process opens the same ledger; None: it was given as an object.
        self.address = ledger if isinstance(ledger, str) else None
        for workflow in arguments.several(workflows, "workflows"):
            self.registry.add(workflow)
        if self.registry.workflows:
            from quire.worker.mistakes import check_calls

            for known in self.registry.workflows.values():
                check_calls(known)
        self.dependencies = Dependencies(deps)
        self.public_url = public_url
        #: Its workers forget records that ended longer ago; None: they forget nothing.
        self.retention = retention
        #: The directory of this machine in which its workers keep what they saw acknowledged; empty: nowhere.
        self.state = state
        #: Called when somebody outside says that something has changed: hints.
        self.wakers: list[Callable[[], None]] = []
        #: How a process is started that does the same work, for records that run alone; None: as its modules tell.
        self.spawn: Spawn | None = None
        self._workers: WeakSet[RunningWorker] = WeakSet()

    def _assemble(self, link: Link) -> None:
        self.link = link
        self.ledger: Ledger = link.ledger
        self.registry: Registry = link.registry
        self.clock: Clock = link.clock
        self.reading = Reading(link)
        self.acts = Acts(link, self.reading)
        self.orders = Orders(link)

    def over(self, link: Link) -> Self:
        """Return this client over another link: for another person, or for many callers."""
        other = copy.copy(self)
        other._assemble(link)
        return other

    def acting_as(self, who: str) -> Self:
        """Return this client as another person uses it."""
        return self.over(self.link.acting_as(who))

    @property
    def who(self) -> str:
        """Who acts through this client, for the log."""
        return self.link.who

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """Groups of people that questions are put to, and their members."""
        return self.link.groups

    @property
    def keyring(self) -> Keyring | None:
        """The keys that sign receipts and links; None until the client is open."""
        return self.link.keyring

    async def __aenter__(self) -> Self:
        await self.link.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the ledger, after every worker of this client that still works has said farewell."""
        try:
            for worker in list(self._workers):
                await worker.leave()
        finally:
            await self.dependencies.close()
            await self.link.close()

    # -- starting ----------------------------------------------------------------------------------------------

    async def start(
        self,
        workflow: Workflow[D, R, Any] | str,
        data: D | None = None,
        *,
        id: str | None = None,
        after: Span | None = None,
        priority: int = 0,
    ) -> Handle[R]:
        """Start one record. The same id with the same data again returns the record; with other data it is refused."""
        ids = None if id is None else [id]
        known, [record] = await new_records(self.link, workflow, [data], ids, after, priority)
        change = starting(record, self.who)
        for worker in self._workers:
            if after is None and (slot := worker.room_for(record)) is not None:
                return Handle[R](self, landed(await worker.start(change, slot)), known)
        [verdict] = await self.link.commit([change])
        return Handle[R](self, landed(verdict), known)

    async def start_many(
        self,
        workflow: Workflow[D, R, Any] | str,
        items: Iterable[D | None],
        *,
        ids: Iterable[str] | None = None,
        after: Span | None = None,
        priority: int = 0,
    ) -> list[Handle[R]]:
        """Start many records, in batches. All are checked before the first is started."""
        known, records = await new_records(self.link, workflow, items, ids, after, priority)
        handles = []
        for place in range(0, len(records), BATCH):
            part = [starting(record, self.who) for record in records[place : place + BATCH]]
            handles += [Handle[R](self, landed(verdict), known) for verdict in await self.link.commit(part)]
        return handles

    async def start_records(self, records: Sequence[Record], *, whole: bool = False) -> list[Verdict]:
        """Start records that were made elsewhere (``ledger.definition.new_from``). ``whole``: all or none."""
        return await self.link.commit([replace(starting(record, self.who), whole=whole) for record in records])

    # -- working -----------------------------------------------------------------------------------------------

    def worker(self, **options: Any) -> RunningWorker:
        """Return a worker for this client's workflows: ``async with client.worker():`` runs it beside the block.

        ``await worker.run()`` runs it alone.
        """
        from quire.worker.worker import Worker as RunningWorker

        arguments.count(options.get("concurrency", 1), "concurrency", 1)
        options.setdefault("spawn", self.spawn or spawning.of_client(self))
        return self.made_worker(RunningWorker, **options)

    def made_worker(self, make: Callable[..., W], **options: Any) -> W:
        """Return a worker of this class, for this client's workflows."""
        options.setdefault("public_url", self.public_url)
        options.setdefault("state", self.state)
        options.setdefault("retention", self.retention)
        worker = make(
            self.ledger,
            self.registry,
            dependencies=self.dependencies,
            keyring=self.link.keys,
            clock=self.clock,
            **options,
        )
        worker.watchers.append(self.reading.settled)
        self._workers.add(worker)
        return worker

    async def work(
        self,
        *,
        until: str | None = None,
        budget: Span | None = None,
        forever: bool = False,
        concurrency: int = 100,
        lease: Span | None = None,
    ) -> Worked:
        """Work here: until nothing is due now, until a record ends, for a time, or for ever.

        The answer is how many times a record was settled; its ``why`` says why the work ended. A back-off or a timer
        that ends later is not waited for: ``handle.result()`` works until the record has ended.
        """
        worker = self.worker(concurrency=concurrency, lease=lease)
        worker.grace = 0.0 if until is not None else worker.grace
        count = 0

        def watch(record: Record) -> None:
            nonlocal count
            count += 1
            if record.record_id == until and record.ended:
                worker.stop()

        worker.watchers.append(watch)
        if until is not None and (await self.get(until)).ended:
            return Worked(0, f"{until!r} has ended")
        idle = not forever and until is None
        begun = self.clock.boottime()
        await worker.run(budget=budget, until_idle=idle)
        if until is not None and (await self.get(until)).ended:
            return Worked(count, f"{until!r} has ended")
        over = budget is not None and self.clock.boottime() - begun >= seconds(budget) - 1.0
        return Worked(count, await why_idle(self) if idle and not over else "its time is over, or it was stopped")

    @property
    def works(self) -> bool:
        """Whether a worker of this client runs."""
        return any(worker.running for worker in self._workers)

    # -- what its parts lend -----------------------------------------------------------------------------------

    definition = _lent("link", Link.definition)
    send = _lent("link", Link.send)

    get = _lent("reading", Reading.get)
    find = _lent("reading", Reading.find)
    counts = _lent("reading", Reading.counts)
    show = _lent("reading", Reading.show)
    events = _lent("reading", Reading.events)
    workers = _lent("reading", Reading.workers)
    standing = _lent("reading", Reading.standing)
    until_ended = _lent("reading", Reading.until_ended)
    failed = _lent("reading", Reading.failed)
    made = _lent("reading", Reading.made)

    signal = _lent("acts", Acts.signal)
    answer = _lent("acts", Acts.answer)
    resolve = _lent("acts", Acts.resolve)
    move = _lent("acts", Acts.move)
    refused = _lent("acts", Acts.refused)
    edit = _lent("acts", Acts.edit)
    retry = _lent("acts", Acts.retry)
    cancel = _lent("acts", Acts.cancel)
    prioritise = _lent("acts", Acts.prioritise)

    halt = _lent("orders", Orders.halt)
    pause = _lent("orders", Orders.pause)
    resume = _lent("orders", Orders.resume)
    reach = _lent("orders", Orders.reach)


def _ledger(given: object, clock: Clock) -> Ledger:
    if isinstance(given, str):
        return open_ledger(given, clock)
    if not isinstance(given, Ledger):
        raise InputError(f"{given!r} is not a ledger; give its address as text, as 'sqlite:///ledger.db'")
    return given


def aopen(ledger: Ledger | str = "sqlite:///.quire/ledger.db", **options: Any) -> Client:
    """Return an asynchronous client: ``async with quire.aopen(url, workflows=[...]) as client``."""
    return Client(ledger, **options)
