"""The Python client: everything that the command line does, from Python.

``quire.open(...)`` gives the plain face, ``quire.aopen(...)`` the asynchronous one. Both are the same ``Client``: the
plain face is made of it mechanically (``quire.client.plain``).

It is a chain: ``client_link`` (the ledger), ``client_looks`` (what only reads), ``client_acts`` (what is done to one
record), and here starting, working, and orders to the whole ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from typing_extensions import TypeVar

from quire.client import arguments, spawning
from quire.client.acts import ClientActs
from quire.client.finishing import Worked, why_idle
from quire.client.handle import Handle
from quire.client.link import landed
from quire.client.new_records import new_of
from quire.clock import SYSTEM, Clock, Span, new_id, new_record_id, seconds
from quire.errors import IllegalMove, InputError
from quire.ledger.base import Ledger
from quire.ledger.definition import new_from
from quire.ledger.finding import open_ledger
from quire.model.change import Change, Conflict, Order, Query, Standing, Verdict
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE
from quire.rules import moves as transition
from quire.rules.orders import cancelled_by_halt, outdated, under_way
from quire.run.dependencies import Dependencies
from quire.worker.schedule import starting
from quire.workflows.workflow import Workflow

if TYPE_CHECKING:
    from quire.worker.apart import Spawn
    from quire.worker.worker import Worker as RunningWorker

D = TypeVar("D", default=dict[str, Any])
R = TypeVar("R", default=Any)
W = TypeVar("W", bound="RunningWorker")

#: Starts are sent in batches of this size.
BATCH = 500


class Client(ClientActs):
    """A way into one ledger. Use it as ``async with quire.aopen(url, workflows=[...]) as client``.

    ``groups`` names the groups of people that questions are put to, with their members.
    ``deps`` is what the steps of all its workflows work with, instead of what their own factories make.
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
    ) -> None:
        super().__init__(_ledger(ledger, clock), clock, who)
        self.groups = dict(groups or {})
        #: By which another process opens the same ledger; None: it was given as an object.
        self.address = ledger if isinstance(ledger, str) else None
        for workflow in arguments.several(workflows, "workflows"):
            self.registry.add(workflow)
        self.dependencies = Dependencies(deps)
        self.public_url = public_url
        #: Called when somebody outside says that something has changed: hints.
        self.wakers: list[Callable[[], None]] = []
        #: How a process is started that does the same work, for records that run alone; None: as its modules tell.
        self.spawn: Spawn | None = None
        self._workers: WeakSet[RunningWorker] = WeakSet()

    async def __aexit__(self, *exc: object) -> None:
        """What still works here, or was only just cancelled, says farewell before the ledger is closed."""
        try:
            for worker in list(self._workers):
                await worker.leave()
        finally:
            await self.dependencies.close()
            await super().__aexit__(*exc)

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
        known, [record] = await self._made(workflow, [data], ids, after, priority)
        change = starting(record, self.who)
        for worker in self._workers:
            if after is None and (slot := worker.room_for(record)) is not None:
                return Handle[R](self, landed(await worker.start(change, slot)), known)
        [verdict] = await self._commit([change])
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
        known, records = await self._made(workflow, items, ids, after, priority)
        handles = []
        for place in range(0, len(records), BATCH):
            part = [starting(record, self.who) for record in records[place : place + BATCH]]
            handles += [Handle[R](self, landed(verdict), known) for verdict in await self._commit(part)]
        return handles

    async def _made(
        self,
        workflow: Workflow[D, R, Any] | str,
        items: Iterable[D | None],
        ids: Iterable[str] | None,
        after: Span | None,
        priority: int,
    ) -> tuple[Workflow[D, R, Any] | None, list[Record]]:
        """Records before their first commit, all of them checked."""
        arguments.checked_priority(priority)
        name = _name_of(workflow)
        known = self.registry.get(workflow) if isinstance(workflow, str) else workflow
        # What is due at once is due at the moment of its commit, which only the ledger knows.
        now = 0.0 if after is None else await self.ledger.now()
        due_at = None if after is None else now + seconds(after)
        names = arguments.several(ids, "ids") if ids is not None else None
        records: list[Record] = []
        definition: dict[str, Any] | None = None
        if known is None:
            definition = await self.definition(name)
        prefix, moment = f"{name}_", self.clock.now()
        for item in arguments.several(items, "items"):
            given = new_record_id(prefix, moment) if names is None else next(names, None)
            if given is None:
                raise InputError(f"item {len(records)} has no id: ids must name one for each item")
            record_id = arguments.checked_id(given)
            if known is not None:
                records.append(new_of(known, record_id, item, now, due_at, priority))
            else:
                assert definition is not None
                records.append(new_from(definition, record_id, {} if item is None else item, now, due_at, priority))
        return known, records

    async def start_records(self, records: Sequence[Record], *, whole: bool = False) -> list[Verdict]:
        """Start records that were made elsewhere (``runtime.definition.new_from``), ``whole``: all or none."""
        return await self._commit([replace(starting(record, self.who), whole=whole) for record in records])

    # -- working -----------------------------------------------------------------------------------------------

    def worker(self, **options: Any) -> RunningWorker:
        """A worker for this client's workflows: ``async with client.worker():`` runs it beside what is in the block.

        ``await worker.run()`` runs it alone.
        """
        from quire.worker.worker import Worker as RunningWorker

        arguments.count(options.get("concurrency", 1), "concurrency", 1)
        options.setdefault("spawn", self.spawn or spawning.of_client(self))
        return self.made_worker(RunningWorker, **options)

    def made_worker(self, make: Callable[..., W], **options: Any) -> W:
        """A worker of this class, for this client's workflows."""
        options.setdefault("public_url", self.public_url)
        worker = make(
            self.ledger,
            self.registry,
            dependencies=self.dependencies,
            keyring=self._keys,
            clock=self.clock,
            **options,
        )
        worker.watchers.append(self._settled)
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

    # -- orders ------------------------------------------------------------------------------------------------

    async def halt(self, workflow: str = "", *, reason: str = "", by: str | None = None) -> Standing:
        """Stop everything, durably: nothing starts, nothing begins. The answer lists the effects under way."""
        return await self._order("halt", workflow, reason, by)

    async def pause(self, workflow: str = "", *, reason: str = "", by: str | None = None) -> Standing:
        """Claim nothing more; what runs goes on."""
        return await self._order("pause", workflow, reason, by)

    async def resume(self, workflow: str = "", *, by: str | None = None, cancelled: bool = False) -> Standing:
        """End a pause or a halt; with ``cancelled``, records that the halt cancelled go on where they stood."""
        standing = await self._order("resume", workflow, "", by)
        if cancelled:
            await self._revive(workflow, self.who if by is None else by)
        return standing

    async def _revive(self, workflow: str, person: str) -> None:
        """Bring back what a halt cancelled, and take the halt back for what it has not stopped yet."""
        status = (Status.CANCELLED, Status.RUNNING, Status.NEEDS_APPROVAL)
        after = ""
        while found := await self.ledger.find(Query(workflow=workflow, status=status, after=after, limit=BATCH)):
            after = found[-1].record_id
            floors = (await self.ledger.standing()).controls
            for record in found:
                if record.status is not Status.CANCELLED and not outdated(record, floors):
                    continue
                if record.parent_id is not None and (await self.get(record.parent_id)).ended:
                    continue  # parents come first, by their ids: this one has gone on, or stays cancelled
                await self._brought_back(record, person)

    async def _brought_back(self, record: Record, person: str) -> None:
        """One record goes on. Its worker may be frozen or dead, and may settle it at this very moment."""
        while under_way(record):
            change = Change(new_id(), record.record_id, record.version, None, by=person, revive=True)
            [verdict] = await self._commit([change])
            if not isinstance(verdict, Conflict):
                landed(verdict)
                return
            record = await self.get(record.record_id)
        if record.status is not Status.CANCELLED:
            return
        log = await self.ledger.events(record_id=record.record_id, limit=100_000)
        if cancelled_by_halt(log):
            with suppress(IllegalMove):  # its parent has gone on without it, or somebody was faster
                await self._change(
                    record.record_id, lambda r: (transition.revive(r, r.updated_at, person, r.epoch), ())
                )

    async def _order(self, word: str, workflow: str, reason: str, by: str | None) -> Standing:
        if workflow:
            await self.definition(workflow)
        order = Order(word, workflow or EVERYWHERE, self.who if by is None else by, reason)
        standing: Standing = await self._patiently(lambda: self.ledger.order(order))
        return standing


def _ledger(given: object, clock: Clock) -> Ledger:
    if isinstance(given, str):
        return open_ledger(given, clock)
    if not isinstance(given, Ledger):
        raise InputError(f"{given!r} is no ledger; give its address as text, as 'sqlite:///ledger.db'")
    return given


def _name_of(workflow: object) -> str:
    return workflow.name if isinstance(workflow, Workflow) else arguments.name(workflow, "the workflow")


def aopen(ledger: Ledger | str = "sqlite:///.quire/ledger.db", **options: Any) -> Client:
    """An asynchronous client: ``async with quire.aopen(url, workflows=[...]) as client``."""
    return Client(ledger, **options)
