"""The Python client: everything that the command line does, from Python.

``quire.open(...)`` gives the plain face, ``quire.aopen(...)`` the asynchronous one. Both are the same ``Client``: the
plain face is made of it mechanically (``quire.surfaces.plain``).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple
from weakref import WeakSet

from typing_extensions import TypeVar

from quire.clock import SYSTEM, Clock, Span, new_id, new_record_id, seconds
from quire.errors import (
    AlreadyExists,
    Halted,
    IllegalMove,
    InputError,
    LedgerUnavailable,
    Moved,
    NotFound,
    QuireError,
    ResultMissing,
    StaleVersion,
    did_you_mean,
)
from quire.ledger.base import Ledger
from quire.ledger.opening import open_ledger
from quire.machine import approval, transition
from quire.machine.approval import Vote
from quire.machine.transition import Move
from quire.machine.workflow import Registry, Workflow
from quire.model.change import (
    Applied,
    Change,
    Conflict,
    Count,
    Order,
    Query,
    Refused,
    Send,
    Standing,
    Verdict,
)
from quire.model.codec import PLAIN, dump, parse
from quire.model.event import Event
from quire.model.receipt import Keyring, Kind, Receipt, Stage
from quire.model.record import Record, Status
from quire.model.side import EVERYWHERE, Signal, Worker
from quire.model.wait import On, Wait, load_waits
from quire.runtime import engine
from quire.runtime.definition import misfit
from quire.runtime.schedule import first_record, starting
from quire.runtime.worker import Worker as RunningWorker

D = TypeVar("D", default=dict[str, Any])
R = TypeVar("R", default=Any)

_NO_TEXT = re.compile("[\x00-\x1f\ud800-\udfff]")

#: Starts are sent in batches of this size.
BATCH = 500


class Shown(NamedTuple):
    """Everything about one record."""

    record: Record
    waits: tuple[Wait, ...]
    events: list[Event]
    receipts: list[Receipt]
    signals: list[Signal]
    children: list[Record]


class Handle(Generic[R]):
    """A record that was started, and its result to come."""

    def __init__(self, client: Client, record: Record, workflow: Workflow[Any, R, Any] | None) -> None:
        self.record_id = record.record_id
        #: The record as it was when its start had landed.
        self.started = record
        self._client = client
        self._workflow = workflow

    async def record(self) -> Record:
        return await self._client.get(self.record_id)

    async def result(self, *, timeout: Span | None = None) -> R:
        """Wait until the record ends and return its result; an end without one raises ``ResultMissing``."""
        record = await self._client.until_ended(self.record_id, timeout=timeout)
        if record.status is not Status.DONE:
            why = f": {record.last_error}" if record.last_error else ""
            raise ResultMissing(f"{self.record_id!r} has no result: it ended as {record.status}{why}")
        type_ = self._workflow.result if self._workflow is not None else PLAIN
        value: R = type_.decode(record.result or "null", f"the result of {self.record_id!r}")
        return value


class Client:
    """A way into one ledger. Use it as ``async with quire.aopen(url, workflows=[...]) as client``."""

    def __init__(
        self,
        ledger: Ledger | str = "sqlite:///.quire/ledger.db",
        *,
        workflows: Iterable[Workflow[Any, Any, Any]] = (),
        deps: Any = None,
        clock: Clock = SYSTEM,
        public_url: str = "",
        who: str = "",
    ) -> None:
        self.ledger = open_ledger(ledger, clock) if isinstance(ledger, str) else ledger
        self.registry = Registry()
        for workflow in workflows:
            self.registry.add(workflow)
        self.deps = deps
        self.clock = clock
        self.public_url = public_url
        #: Who acts through this client, for the log.
        self.who = who
        self.keyring: Keyring | None = None
        #: Called when somebody outside says that something has changed: hints.
        self.wakers: list[Callable[[], None]] = []
        self._workers: WeakSet[RunningWorker] = WeakSet()
        self._waiting: dict[str, asyncio.Event] = {}

    async def __aenter__(self) -> Client:
        try:
            await self.ledger.open()
            self.keyring = await engine.shared_keyring(self.ledger)
            await engine.register(self.ledger, self.registry)
        except BaseException:
            await self.ledger.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.ledger.close()

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
                return Handle[R](self, self._landed(await worker.start(change, slot)), known)
        [verdict] = await self._commit([change])
        return Handle[R](self, self._landed(verdict), known)

    async def start_many(
        self,
        workflow: Workflow[D, R, Any] | str,
        items: Iterable[D | None],
        *,
        ids: Iterable[str] | None = None,
        after: Span | None = None,
        priority: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> list[Handle[R]]:
        """Start many records, in batches. All are checked before the first is started."""
        known, records = await self._made(workflow, items, ids, after, priority)
        handles = []
        for place in range(0, len(records), BATCH):
            part = [starting(record, self.who) for record in records[place : place + BATCH]]
            handles += [Handle[R](self, self._landed(verdict), known) for verdict in await self._commit(part)]
            if progress is not None:
                progress(len(handles))
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
        known = self.registry.get(workflow) if isinstance(workflow, str) else workflow
        # What is due at once is due at the moment of its commit, which only the ledger knows.
        now = 0.0 if after is None else await self.ledger.now()
        due_at = None if after is None else now + seconds(after)
        names = iter(ids) if ids is not None else None
        records = []
        definition: dict[str, Any] | None = None
        if known is None:
            definition = await self._definition(_name_of(workflow))
        prefix, moment = f"{_name_of(workflow)}_", self.clock.now()
        for item in items:
            record_id = checked_id(next(names) if names is not None else new_record_id(prefix, moment))
            if known is not None:
                records.append(_new(known, record_id, item, now, due_at, priority))
            else:
                assert definition is not None
                records.append(_new_from(definition, record_id, item, now, due_at, priority))
        return known, records

    async def start_records(self, records: Sequence[Record]) -> list[Verdict]:
        """Start records that were made elsewhere (``runtime.definition.new_from``); one verdict each."""
        return await self._commit([starting(record, self.who) for record in records])

    # -- working -----------------------------------------------------------------------------------------------

    def worker(self, **options: Any) -> RunningWorker:
        """A worker for this client's workflows; ``await worker.run()`` runs it."""
        if self.keyring is None:
            raise InputError("the client is not open; use it in a 'with' block")
        options.setdefault("public_url", self.public_url)
        worker = RunningWorker(
            self.ledger, self.registry, deps=self.deps, keyring=self.keyring, clock=self.clock, **options
        )
        worker.watchers.append(self._settled)
        self._workers.add(worker)
        return worker

    def _settled(self, record: Record) -> None:
        """A worker of this client has settled a record: whoever waits here for its end need not look."""
        if record.ended and (waiting := self._waiting.pop(record.record_id, None)) is not None:
            waiting.set()

    async def work(
        self,
        *,
        until: str | None = None,
        budget: Span | None = None,
        forever: bool = False,
        concurrency: int = 100,
        lease: Span | None = None,
    ) -> int:
        """Work here: until nothing is due, until a record ends, for a time, or for ever. Answers how many settled."""
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
            return 0
        await worker.run(budget=budget, until_idle=not forever and until is None)
        return count

    # -- looking -----------------------------------------------------------------------------------------------

    async def get(self, record_id: str) -> Record:
        found = await self.ledger.load([record_id])
        if not found:
            near = [record.record_id for record in await self.ledger.find(Query(text=record_id[:8], limit=50))]
            raise NotFound(f"Record with ID {record_id} not found.{_hint(record_id, near)}")
        return found[0]

    async def find(
        self,
        *,
        workflow: str = "",
        step: str = "",
        status: Status | str | Sequence[Status] = (),
        parent_id: str = "",
        text: str = "",
        after: str = "",
        limit: int = 100,
        order: str = "id",
    ) -> list[Record]:
        """Records by workflow, step, status, parent, or part of their id; ``order``: id, updated or place."""
        words = (Status(status),) if isinstance(status, str) else tuple(status)
        query = Query(workflow, step, words, parent_id, text=text, after=after, limit=limit, order=order)
        return await self.ledger.find(query)

    async def counts(self) -> list[Count]:
        return await self.ledger.counts()

    async def show(self, record_id: str) -> Shown:
        record = await self.get(record_id)
        return Shown(
            record,
            load_waits(record.waits) if not record.ended else (),
            await self.ledger.events(record_id=record_id, limit=100_000),
            await self.ledger.receipts(record_ids=[record_id]),
            await self.ledger.signals(record_id),
            await self.ledger.find(Query(parent_id=record_id, order="place", limit=100_000)),
        )

    async def events(self, record_id: str = "", *, after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.ledger.events(record_id=record_id, after=after, limit=limit)

    async def workers(self) -> list[Worker]:
        return await self.ledger.workers()

    async def standing(self) -> Standing:
        return await self.ledger.standing()

    async def until_ended(self, record_id: str, *, timeout: Span | None = None) -> Record:
        """The record once it has ended."""
        deadline = None if timeout is None else self.clock.boottime() + seconds(timeout)
        pause = 0.01
        try:
            while True:
                ended = self._waiting.setdefault(record_id, asyncio.Event())
                record = await self.get(record_id)
                if record.ended:
                    return record
                if deadline is not None and self.clock.boottime() >= deadline:
                    raise ResultMissing(
                        f"{record_id!r} has not ended in time: it is {record.status} at {record.step!r}"
                    )
                looks = [asyncio.ensure_future(wait) for wait in (self.clock.sleep(pause), ended.wait())]
                try:
                    await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for look in looks:
                        look.cancel()
                pause = min(pause * 1.5, 0.5)
        finally:
            self._waiting.pop(record_id, None)

    # -- acting ------------------------------------------------------------------------------------------------

    async def signal(
        self,
        record_id: str,
        signal: str,
        value: object = None,
        *,
        signal_id: str | None = None,
        by: str | None = None,
    ) -> Record:
        """Send a signal. The same ``signal_id`` again is the same signal."""
        text = PLAIN.encode(value, f"the value of signal {signal!r}")
        sent = Send(signal_id or new_id("s_"), record_id, signal, text, self.who if by is None else by)
        verdict = await self._send(sent)
        if isinstance(verdict, Conflict):
            await self.get(record_id)
        return self._landed(verdict)

    async def answer(
        self,
        record_id: str,
        choice: str,
        *,
        by: str | None = None,
        note: str = "",
        edits: Mapping[str, Any] | None = None,
        seen: str = "",
        question: str = "",
        via: str = "python",
        groups: Mapping[str, Sequence[str]] | None = None,
        change_id: str = "",
    ) -> Record:
        """Answer what a record asks. ``seen``: the hash of what was shown; an answer to anything else is refused."""
        person = self.who if by is None else by
        schema = await self._schema_of(record_id) if edits else None

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            wait = _asked(record, question)
            vote = Vote(choice, person, note, dict(edits or {}), via, self.clock.now(), seen)
            approval.check_vote(wait, vote, groups)
            if edits:  # also of one vote among several: the last one must not fail for it
                self._check_data(record, dump(parse(record.data) | dict(edits)), schema)
            new, answer = approval.counted(wait, vote)
            told: dict[str, Any] = {"choice": choice, "by": person, "via": via, "note": note, "question": wait.name}
            if edits:
                told["edits"] = dict(edits)
            if answer is None:
                waits = [new if w.key == wait.key else w for w in load_waits(record.waits)]
                return transition.voted(record, record.updated_at, waits, told), ()
            value = {
                "choice": answer.choice,
                "by": answer.by,
                "note": answer.note,
                "edits": dict(answer.edits),
                "ahead": answer.ahead,
            }
            data = dump(parse(record.data) | dict(answer.edits)) if answer.edits else None
            if data is not None:
                self._check_data(record, data, schema)
            receipt = _answer_receipt(record, wait, Kind.ASK, dump(value), f"answer-{record.version}")
            return transition.answered(record, record.updated_at, wait.key, told, data), (receipt,)

        return await self._change(record_id, decide, change_id)

    async def resolve(
        self,
        record_id: str,
        *,
        happened: bool,
        value: object = None,
        by: str | None = None,
        effect: str = "",
        change_id: str = "",
    ) -> Record:
        """Say whether an effect in doubt happened, and what came of it."""
        person = self.who if by is None else by
        found = await self.ledger.receipts(record_ids=[record_id])

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            doubts = [wait for wait in load_waits(record.waits) if wait.on is On.DOUBT]
            if effect:
                doubts = [wait for wait in doubts if wait.name == effect]
            if record.status is not Status.NEEDS_APPROVAL or not doubts:
                raise IllegalMove(f"nothing of {record_id!r} is in doubt; it is {record.status}")
            wait = doubts[0]
            intent = next((receipt for receipt in found if receipt.key == wait.key), None)
            if intent is None:
                raise NotFound(f"the intent behind {wait.name!r} of {record_id!r} is not there any more")
            if happened:
                text = PLAIN.encode(value, f"the value of effect {wait.name!r}")
                receipt = self._keys.signed(intent._replace(stage=Stage.DONE, value=text))
            else:
                receipt = intent._replace(stage=Stage.VOID)
            told = {"effect": wait.name, "happened": happened, "by": person}
            return transition.resolved(record, record.updated_at, wait.key, told), (receipt,)

        return await self._change(record_id, decide, change_id)

    async def move(self, record_id: str, step: str, *, by: str | None = None, change_id: str = "") -> Record:
        """Move a record by hand along a declared transition."""
        person = self.who if by is None else by
        definition = await self._definition((await self.get(record_id)).workflow)
        steps = {row["name"]: row for row in definition["steps"]}

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            here = steps.get(record.step)
            legal = here["then"] if here is not None else []
            target = steps.get(step)
            rests = bool(target and target["rests"])
            ends = bool(target and target["rests"] and target["ends"])
            return transition.move(record, record.updated_at, person, step, legal, rests=rests, ends=ends), ()

        return await self._change(record_id, decide, change_id)

    async def edit(
        self, record_id: str, data: Mapping[str, Any], *, version: int | None = None, by: str | None = None
    ) -> Record:
        """Replace the data of a record that nobody holds; with ``version``, only if it is still that one."""
        person = self.who if by is None else by
        text = PLAIN.encode(dict(data), f"the data of {record_id!r}")
        schema = await self._schema_of(record_id)

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            if version is not None and record.version != version:
                raise StaleVersion(f"{record_id!r} has changed since it was read: it is at version {record.version}")
            self._check_data(record, text, schema)
            return transition.edit(record, record.updated_at, person, text), ()

        return await self._change(record_id, decide)

    async def retry(self, record_id: str, *, step: str = "", by: str | None = None, change_id: str = "") -> Record:
        """Try an ended or backing-off record again where it stopped; with ``step``, from that step anew (a rewind)."""
        person = self.who if by is None else by
        current = await self.get(record_id)
        if step:
            definition = await self._definition(current.workflow)
            names = [row["name"] for row in definition["steps"]]
            if step not in names:
                raise NotFound(f"{current.workflow!r} has no step {step!r}{did_you_mean(step, names)}")
        failed_maps = await self._failed_maps(current)

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            return transition.retry(record, record.updated_at, person, step=step), failed_maps

        return await self._change(record_id, decide, change_id)

    async def _failed_maps(self, record: Record) -> tuple[Receipt, ...]:
        """Maps of this visit in which children failed: a retry of the parent does those children again."""
        if not record.fanouts or record.status is not Status.ERROR:
            return ()
        found = await self.ledger.receipts(record_ids=[record.record_id])
        return tuple(
            receipt._replace(stage=Stage.VOID)
            for receipt in found
            if receipt.kind is Kind.MAP
            and receipt.visit == record.visit
            and receipt.stage is Stage.DONE
            and any("error" in row for row in parse(receipt.value))
        )

    async def cancel(
        self, record_id: str, *, undo: bool = False, reason: str = "", by: str | None = None, change_id: str = ""
    ) -> Record:
        """Cancel a record; one that runs is asked to stop. With ``undo``, what it did is taken back."""
        person = self.who if by is None else by
        for _ in range(20):
            record = await self.get(record_id)
            if record.status is Status.RUNNING:
                wish = dump({"by": person, "reason": reason or f"cancelled by {person or 'a person'}", "undo": undo})
                change = Change(change_id or new_id(), record_id, record.version, None, cancel=wish)
                [verdict] = await self._commit([change])
                if isinstance(verdict, Applied):
                    return verdict.record
                continue
            try:
                return await self._change(
                    record_id,
                    lambda r: (transition.cancel(r, r.updated_at, person, reason, undo=undo), ()),
                    change_id,
                )
            except IllegalMove:
                if (await self.get(record_id)).status is not Status.RUNNING:
                    raise
        raise StaleVersion(f"{record_id!r} changes all the time; try again")

    async def prioritise(self, record_id: str, priority: int, *, by: str | None = None) -> Record:
        """Give a record another priority; it may be running."""
        record = await self.get(record_id)
        person = self.who if by is None else by
        change = Change(new_id(), record_id, record.version, None, priority=priority, by=person)
        [verdict] = await self._commit([change])
        return self._landed(verdict)

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

    async def _revive(self, workflow: str, person: str) -> int:
        count, after = 0, ""
        while found := await self.ledger.find(
            Query(workflow=workflow, status=(Status.CANCELLED,), after=after, limit=BATCH)
        ):
            after = found[-1].record_id
            for record in found:
                [raw] = [record]
                last = (await self.ledger.events(record_id=raw.record_id, limit=100_000))[-1:]
                by_halt = not last or last[0].kind != "cancelled" or parse(last[0].body).get("reason") == "halted"
                if by_halt:
                    await self._change(
                        raw.record_id, lambda r: (transition.revive(r, r.updated_at, person, r.epoch), ())
                    )
                    count += 1
        return count

    async def _order(self, word: str, workflow: str, reason: str, by: str | None) -> Standing:
        if workflow:
            await self._definition(workflow)
        order = Order(word, workflow or EVERYWHERE, self.who if by is None else by, reason)
        standing: Standing = await self._patiently(lambda: self.ledger.order(order))
        return standing

    # -- in common ---------------------------------------------------------------------------------------------

    @property
    def _keys(self) -> Keyring:
        if self.keyring is None:
            raise InputError("the client is not open; use it in a 'with' block")
        return self.keyring

    async def definition(self, workflow: str) -> dict[str, Any]:
        """What a workflow is, as this process or the ledger knows it."""
        return await self._definition(workflow)

    async def made(self, record_id: str, change_id: str) -> bool:
        """Whether the log of this record has a line of this change: whoever names its changes does none twice."""
        return any(line.change_id == change_id for line in await self.ledger.events(record_id=record_id, limit=100_000))

    async def _definition(self, workflow: str) -> dict[str, Any]:
        known = self.registry.get(workflow)
        return known.definition() if known is not None else await engine.definition(self.ledger, workflow)

    async def _schema_of(self, record_id: str) -> Mapping[str, Any] | None:
        """The registered schema of a record's data; None where this process knows the workflow itself."""
        workflow = (await self.get(record_id)).workflow
        if self.registry.get(workflow) is not None:
            return None
        found: Mapping[str, Any] | None = (await engine.definition(self.ledger, workflow)).get("schema")
        return found

    def _check_data(self, record: Record, text: str, schema: Mapping[str, Any] | None) -> None:
        """Refuse data that the workflow does not take, by its type, or by the schema that a worker registered."""
        known = self.registry.get(record.workflow)
        if known is not None:
            known.data.decode(text, f"the data of {record.record_id!r}")
        elif problem := misfit(schema, parse(text)):
            raise InputError(f"the data of {record.record_id!r} would not fit workflow {record.workflow!r}: {problem}")

    async def _patiently(self, work: Callable[[], Any]) -> Any:
        """Repeat the same request while the store does not answer: it is deduplicated by its id."""
        pause = 0.05
        while True:
            try:
                return await work()
            except LedgerUnavailable:
                if pause > 5:
                    raise
                await self.clock.sleep(pause)
                pause *= 2

    async def send(self, sends: Sequence[Send]) -> list[Verdict]:
        """Send signals that were made elsewhere; one verdict each."""
        verdicts: list[Verdict] = await self._patiently(lambda: self.ledger.send(sends))
        return verdicts

    async def _send(self, sent: Send) -> Verdict:
        [verdict] = await self.send([sent])
        return verdict

    async def _commit(self, changes: Sequence[Change]) -> list[Verdict]:
        verdicts: list[Verdict] = await self._patiently(lambda: self.ledger.commit(changes))
        return verdicts

    async def _change(
        self, record_id: str, decide: Callable[[Record], tuple[Move, tuple[Receipt, ...]]], change_id: str = ""
    ) -> Record:
        """Read, decide, compare-and-swap; and again if somebody else was faster."""
        for _ in range(20):
            record, now = await asyncio.gather(self.get(record_id), self.ledger.now())
            move, receipts = decide(record._replace(updated_at=now))
            id_ = change_id or new_id()
            change = Change(id_, record_id, record.version, move.image, lines=move.lines, receipts=receipts)
            [verdict] = await self._commit([change])
            if isinstance(verdict, Conflict):
                continue
            return self._landed(verdict)
        raise StaleVersion(f"{record_id!r} changes all the time; try again")

    @staticmethod
    def _landed(verdict: Verdict) -> Record:
        match verdict:
            case Applied(record=record):
                return record
            case Refused(code=code, reason=reason):
                raise _REFUSALS.get(code, InputError)(reason)
            case Conflict():
                raise StaleVersion("the record has changed meanwhile; read it again")


_REFUSALS: dict[str, type[QuireError]] = {
    "exists": AlreadyExists,
    "halted": Halted,
    "sealed": Moved,
    "running": IllegalMove,
    "intent": IllegalMove,
    "parent": IllegalMove,
    "ended": IllegalMove,
}


def _name_of(workflow: Workflow[Any, Any, Any] | str) -> str:
    return workflow if isinstance(workflow, str) else workflow.name


def _hint(word: str, known: Iterable[str]) -> str:
    near = did_you_mean(word, known)
    return near.replace("; d", " D") if near.startswith("; did") else ""


def checked_id(record_id: str) -> str:
    """The id, refused unless it can be one."""
    if not record_id or len(record_id) > 500 or record_id != record_id.strip():
        raise InputError(f"{record_id!r} is no record id: 1 to 500 characters, no space at either end")
    if _NO_TEXT.search(record_id):
        raise InputError(f"{record_id!r} is no record id: it holds a control character")
    return record_id


def _new(
    workflow: Workflow[Any, Any, Any], record_id: str, item: Any, now: float, due_at: float | None, priority: int
) -> Record:
    what = f"the data of {record_id!r}"
    if item is None:
        item = {}
    if isinstance(item, dict) and not workflow.data.plain:
        item = workflow.data.decode(PLAIN.encode(item, what), what)
    if workflow.data.plain and not isinstance(item, dict):
        raise InputError(f"{what} must be a dict of {workflow.name!r}, not {type(item).__name__}")
    text, _ = workflow.data.taken(item, what)
    return first_record(workflow, record_id, text, now, due_at=due_at, priority=priority)


def _new_from(
    definition: Mapping[str, Any], record_id: str, item: Any, now: float, due_at: float | None, priority: int
) -> Record:
    """A record of a workflow that this process knows by its registered definition only."""
    from quire.runtime.definition import new_from

    return new_from(definition, record_id, {} if item is None else item, now, due_at, priority)


def _asked(record: Record, question: str) -> Wait:
    waits = [wait for wait in load_waits(record.waits) if wait.on is On.QUESTION]
    if record.status is not Status.NEEDS_APPROVAL or not waits:
        doubts = any(wait.on is On.DOUBT for wait in load_waits(record.waits))
        if record.status is Status.NEEDS_APPROVAL and doubts:
            raise IllegalMove(
                f"{record.record_id!r} asks whether an effect happened; say so with "
                f"quire resolve {record.record_id} --happened | --not"
            )
        raise IllegalMove(f"{record.record_id!r} asks nothing; it is {record.status}")
    if not question:
        return waits[0]
    for wait in waits:
        if question in (wait.name, wait.key, (wait.about or {}).get("hash")):
            return wait
    raise StaleVersion(f"{record.record_id!r} does not ask {question!r} any more; look at it again, then answer")


def _answer_receipt(record: Record, wait: Wait, kind: Kind, value: str, nonce: str) -> Receipt:
    return Receipt(
        key=wait.key,
        record_id=record.record_id,
        step=record.step,
        visit=record.visit,
        name=str((wait.about or {}).get("text", wait.name)),
        kind=kind,
        stage=Stage.DONE,
        fn="",
        args_hash="",
        args="",
        value=value,
        nonce=nonce,
        worker="",
        act_by=None,
        seq=0,
        at=0.0,
        done_at=None,
        undo="",
        signature="",
        key_id="",
    )


def aopen(ledger: Ledger | str = "sqlite:///.quire/ledger.db", **options: Any) -> Client:
    """An asynchronous client: ``async with quire.aopen(url, workflows=[...]) as client``."""
    return Client(ledger, **options)
