"""What people do to one record: signal, answer, resolve, move, edit, retry, cancel, prioritise.

Each verb reads the record, lets ``rules.moves`` decide what becomes of it, and commits that, if the record is still at
the version that was read. Otherwise the verb reads the record again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from quire.client import arguments
from quire.client.link import Link, landed
from quire.client.reading import Reading
from quire.client.signals import check_signal
from quire.clock import iso, new_id
from quire.errors import IllegalMove, InputError, NotFound, StaleVersion, did_you_mean
from quire.ledger import engine
from quire.ledger.definition import fit_of
from quire.model.change import Applied, Change, Conflict, Send
from quire.model.codec import PLAIN, dump, parse
from quire.model.event import Line
from quire.model.fit import Fit
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import UNDO, Record, Status
from quire.model.row import replace
from quire.model.wait import On, Wait, load_waits
from quire.rules import moves as transition
from quire.rules import orders
from quire.rules.difference import carried
from quire.rules.moves import Move
from quire.workflows import approval
from quire.workflows.approval import Vote


class Acts:
    """The verbs that change one record."""

    def __init__(self, link: Link, reading: Reading) -> None:
        self._link = link
        self._reading = reading

    async def signal(
        self,
        record_id: str,
        signal: str,
        value: object = None,
        *,
        signal_id: str | None = None,
        by: str | None = None,
    ) -> Record:
        """Send a signal. The same ``signal_id`` again, to the same record and by the same name, is the same signal."""
        arguments.asked_id(record_id)
        arguments.name(signal, "the signal")
        arguments.name(signal_id or "", "signal_id")
        text = PLAIN.encode(value, f"the value of signal {signal!r}")
        record = await self._reading.get(record_id)
        if not record.ended:
            await check_signal(self._link, record, signal, value)
        sent = Send(signal_id or new_id("s_"), record_id, signal, text, self._link.by(by))
        [verdict] = await self._link.send([sent])
        if isinstance(verdict, Conflict):
            await self._reading.get(record_id)
        return landed(verdict)

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
        """Answer what a record asks. ``seen``: the hash of what was shown; an answer to anything else is refused.

        Without it the answer is bound to what the record asks when it is first read here.
        """
        person = self._link.by(by)
        if edits is not None:
            what = f"what the answer edits of {record_id!r}"
            edits = parse(PLAIN.encode(arguments.fields(edits, what), what))
        fit = await self._fit_of(record_id) if edits else None

        bound = seen

        async def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            nonlocal bound
            wait = _asked(record, question)
            bound = bound or str((wait.about or {}).get("hash", ""))
            vote = Vote(choice, person, note, dict(edits or {}), via, self._link.clock.now(), bound)
            approval.check_vote(wait, vote, self._link.groups if groups is None else groups)
            if edits and fit is not None:  # also of one vote among several: the last one must not fail for it
                _check_data(record, parse(record.data) | dict(edits), fit)
            new, answer = approval.counted(wait, vote)
            body: dict[str, Any] = {"choice": choice, "by": person, "via": via, "note": note, "question": wait.name}
            if edits:
                body["edits"] = dict(edits)
            if answer is None:
                waits = [new if w.key == wait.key else w for w in load_waits(record.waits)]
                return transition.voted(record, record.updated_at, waits, body), ()
            data = dump(parse(record.data) | dict(answer.edits)) if answer.edits else None
            if data is not None and fit is not None:
                _check_data(record, parse(data), fit)
            receipt = _answer_receipt(record, wait, dump(approval.said(answer, record)))
            receipts = (receipt, *await self._parked(wait, released=bool(answer)))
            return transition.answered(record, record.updated_at, wait.key, body, data), receipts

        return await self._read_and_changed(record_id, decide, change_id)

    async def _parked(self, wait: Wait, *, released: bool) -> tuple[Receipt, ...]:
        """The parked intent that this question is about, released or dropped."""
        parked = (wait.about or {}).get(approval.PARKED)
        if parked is None:
            return ()
        stage = Stage.RELEASED if released else Stage.DROPPED
        found = await self._link.ledger.receipts(keys=[parked["key"]])
        return tuple(replace(receipt, stage=stage, nonce=parked["nonce"]) for receipt in found)

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
        person = self._link.by(by)
        wait = _in_doubt(await self._reading.get(record_id), effect)
        about = wait.about or {}
        found = await self._link.ledger.receipts(keys=[about.get("of", wait.key)])
        if not found:
            raise NotFound(f"the intent behind {wait.name!r} of {record_id!r} is not there any more")
        if happened:
            text = _returned(record_id, wait, value)
            receipt = self._link.keys.signed(replace(found[0], stage=Stage.DONE, value=text))
        elif found[0].open:
            await self._over(record_id, found[0])
            receipt = replace(found[0], stage=Stage.VOID)
        else:
            raise IllegalMove(f"{wait.name!r} of {record_id!r} happened; say what it returned, with --happened --value")
        own = receipt.record_id == record_id
        if not own:  # an undoing asks about what a descendant did: the answer stands beside that one
            await self._link.commit([Change(new_id(), receipt.record_id, 0, None, receipts=(receipt,))])

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            if _in_doubt(record, effect).key != wait.key:
                raise StaleVersion(f"{record_id!r} does not ask about {wait.name!r} any more; look at it again")
            body = {"effect": wait.name, "happened": happened, "by": person}
            return transition.resolved(record, record.updated_at, wait.key, body), (receipt,) if own else ()

        return await self.change(record_id, decide, change_id)

    async def _over(self, record_id: str, intent: Receipt) -> None:
        """Refuse that an act did not happen while it still may: what a dead process had sent can be on its way."""
        if intent.act_by is not None and intent.act_by > await self._link.ledger.now():
            raise IllegalMove(
                f"{intent.name!r} of {record_id!r} may still happen until {iso(intent.act_by)}; "
                "if it has not happened by then, say so after that"
            )

    async def move(self, record_id: str, step: str, *, by: str | None = None, change_id: str = "") -> Record:
        """Move a record by hand along a declared transition."""
        person = self._link.by(by)
        definition = await self._link.definition((await self._reading.get(record_id)).workflow)
        steps = {row["name"]: row for row in definition["steps"]}

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            here = steps.get(record.step)
            legal = here["then"] if here is not None else []
            target = steps.get(step)
            if step in legal:
                self._check_mover(record, here or {}, step, person)
            rests = bool(target and target["rests"])
            ends = bool(target and target["rests"] and target["ends"])
            return transition.move(record, record.updated_at, person, step, legal, rests=rests, ends=ends), ()

        try:
            return await self.change(record_id, decide, change_id)
        except IllegalMove as error:
            here = (await self._reading.get(record_id)).step
            await self.refused(record_id, here, step, str(error), by=person)
            raise

    def _check_mover(self, record: Record, here: Mapping[str, Any], step: str, person: str) -> None:
        """Refuse a move that the workflow keeps for others."""
        people: list[str] = here.get("who", {}).get(step, [])
        if people and not approval.is_one_of(person, people, self._link.groups):
            named = ", ".join(people)
            raise IllegalMove(
                f"Invalid state transition: Cannot move from {record.step} to {step}. "
                f"(this move is for {named}, and it was asked by {person or 'somebody without a name'})"
            )

    async def refused(self, record_id: str, origin: str, target: str, why: str, *, by: str | None = None) -> None:
        """Write into the log of a record that somebody wanted to move it, and was refused. Nothing else changes."""
        body = {"by": self._link.by(by), "from": origin, "to": target, "why": why}
        line = Line("refused", dump({word: text for word, text in body.items() if text}))
        record = await self._reading.get(record_id)
        await self._link.commit([Change(new_id(), record_id, record.version, None, lines=(line,))])

    async def edit(
        self, record_id: str, data: Mapping[str, Any], *, version: int | None = None, by: str | None = None
    ) -> Record:
        """Replace the data of a record that nobody holds; with ``version``, only if it is still that one.

        The loops of its step (``run.each``) have saved data of their own. The same changes are made there, so that they
        go on with them.
        """
        person = self._link.by(by)
        text = PLAIN.encode(arguments.fields(data, f"the data of {record_id!r}"), f"the data of {record_id!r}")
        fit = await self._fit_of(record_id)

        async def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            if version is not None and record.version != version:
                raise StaleVersion(f"{record_id!r} has changed since it was read: it is at version {record.version}")
            _check_data(record, parse(text), fit)
            return transition.edit(record, record.updated_at, person, text), await self._loops(record, text)

        return await self._read_and_changed(record_id, decide)

    async def _loops(self, record: Record, text: str) -> tuple[Receipt, ...]:
        """Return what the loops of this visit have saved, with the changes that ``text`` makes to the record's data."""
        found = await self._link.ledger.receipts(record_ids=[record.record_id]) if record.facts else []
        loops = [receipt for receipt in found if receipt.kind is Kind.EACH and receipt.visit == record.visit]
        was, now = parse(record.data), parse(text)
        return tuple(
            replace(receipt, value=dump({**saved, "data": carried(saved["data"], was, now)}))
            for receipt in loops
            for saved in [parse(receipt.value)]
        )

    async def retry(self, record_id: str, *, step: str = "", by: str | None = None, change_id: str = "") -> Record:
        """Try an ended or backing-off record again where it stopped; with ``step``, from that step anew (a rewind)."""
        person = self._link.by(by)
        current = await self._reading.get(record_id)
        if step:
            definition = await self._link.definition(current.workflow)
            names = [row["name"] for row in definition["steps"]]
            if arguments.name(step, "the step") not in names:
                raise NotFound(f"{current.workflow!r} has no step {step!r}{did_you_mean(step, names)}")
        failed_maps = await self._failed_maps(current)

        def decide(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            return transition.retry(record, record.updated_at, person, step=step), failed_maps

        return await self.change(record_id, decide, change_id)

    async def _failed_maps(self, record: Record) -> tuple[Receipt, ...]:
        """Return the maps of this visit in which children failed: a retry of the parent does those children again."""
        if not record.fanouts or record.status is not Status.ERROR:
            return ()
        found = await self._link.ledger.receipts(record_ids=[record.record_id])
        return tuple(
            replace(receipt, stage=Stage.VOID)
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
        person = self._link.by(by)

        async def decide(r: Record) -> tuple[Move, tuple[Receipt, ...]]:
            if _is_asked_to_stop(r, undo):
                raise _Runs
            halted = r.status is Status.CANCELLED and await self._cancelled_by_halt(record_id)
            return transition.cancel(r, r.updated_at, person, reason, undo=undo, halted=halted), ()

        for _ in range(20):
            record = await self._reading.get(record_id)
            if _is_asked_to_stop(record, undo):
                request = orders.cancel_request(person, reason or f"cancelled by {person or 'a person'}", undo=undo)
                change = Change(change_id or new_id(), record_id, record.version, None, cancel=request)
                [verdict] = await self._link.commit([change])
                if isinstance(verdict, Applied):
                    return verdict.record
                continue
            with suppress(_Runs):  # it was claimed meanwhile
                return await self._read_and_changed(record_id, decide, change_id)
        raise StaleVersion(f"{record_id!r} changes all the time; try again")

    async def _cancelled_by_halt(self, record_id: str) -> bool:
        return orders.cancelled_by_halt(await self._link.ledger.events(record_id=record_id, limit=100_000))

    async def prioritise(self, record_id: str, priority: int, *, by: str | None = None) -> Record:
        """Give a record another priority; it may be running."""
        arguments.checked_priority(priority)
        record = await self._reading.get(record_id)
        person = self._link.by(by)
        change = Change(new_id(), record_id, record.version, None, priority=priority, by=person)
        [verdict] = await self._link.commit([change])
        return landed(verdict)

    async def _fit_of(self, record_id: str) -> Fit:
        """Return the check of the record's data: by its type, or by the schema that a worker registered."""
        workflow = (await self._reading.get(record_id)).workflow
        known = self._link.registry.get(workflow)
        return known.fit if known is not None else fit_of(await engine.definition(self._link.ledger, workflow))

    async def change(
        self, record_id: str, decide: Callable[[Record], tuple[Move, tuple[Receipt, ...]]], change_id: str = ""
    ) -> Record:
        """Read, decide, commit; and again if somebody else was faster."""

        async def decided(record: Record) -> tuple[Move, tuple[Receipt, ...]]:
            return decide(record)

        return await self._read_and_changed(record_id, decided, change_id)

    async def _read_and_changed(
        self,
        record_id: str,
        decide: Callable[[Record], Awaitable[tuple[Move, tuple[Receipt, ...]]]],
        change_id: str = "",
    ) -> Record:
        """Return the same, for a decision that reads more than the record."""
        for _ in range(20):
            record, now = await asyncio.gather(self._reading.get(record_id), self._link.ledger.now())
            move, receipts = await decide(replace(record, updated_at=now))
            id_ = change_id or new_id()
            change = Change(id_, record_id, record.version, move.image, lines=move.lines, receipts=receipts)
            [verdict] = await self._link.commit([change])
            if isinstance(verdict, Conflict):
                continue
            return landed(verdict)
        raise StaleVersion(f"{record_id!r} changes all the time; try again")


class _Runs(Exception):
    """The record runs: it is asked to stop, and nobody else may change it."""


def _is_asked_to_stop(record: Record, undo: bool) -> bool:
    """Return whether a cancel is a request to the worker that runs it. What is being undone is not undone once more."""
    return record.status is Status.RUNNING and not (undo and record.step == UNDO)


def _check_data(record: Record, data: Mapping[str, Any], fit: Fit) -> None:
    """Refuse data that the workflow does not take. A field that the record already has may stay."""
    fit.taken(dict(data), f"the data of {record.record_id!r}", known=parse(record.data))


def _returned(record_id: str, wait: Wait, value: object) -> str:
    """Return the value that a person says an effect returned. A value that the effect cannot return is refused."""
    text = PLAIN.encode(value, f"the value of effect {wait.name!r}")
    schema = (wait.about or {}).get("value")
    try:
        Fit(schema, f"what effect {wait.name!r} returns").taken(value, "the value")
    except InputError as error:
        if value is not None:
            raise
        raise InputError(
            f"the step goes on with what {wait.name!r} returned, so say what it was: "
            f"quire resolve {record_id} --happened --value JSON"
        ) from error
    return text


def _in_doubt(record: Record, effect: str) -> Wait:
    """Return the first effect in doubt, or the one of this name."""
    doubts = [wait for wait in load_waits(record.waits) if wait.on is On.DOUBT and effect in ("", wait.name)]
    if record.status is not Status.NEEDS_APPROVAL or not doubts:
        settles = next((wait for wait in load_waits(record.waits) if _settles(wait)), None)
        if settles is None or record.ended:
            raise IllegalMove(f"nothing of {record.record_id!r} is in doubt; it is {record.status}")
        raise IllegalMove(
            f"{record.record_id!r} asks nobody yet: it waits until {iso(settles.until)} for {settles.name}, because "
            "the act may still be under way or not be seen yet. Then it is probed, and asks only if that does not tell"
        )
    return doubts[0]


def _settles(wait: Wait) -> bool:
    """Return whether an effect waits until nobody can act on it any more, and until its target shows it."""
    return wait.on is On.TIMER and wait.key.endswith("settle") and wait.until is not None


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


def _answer_receipt(record: Record, wait: Wait, value: str) -> Receipt:
    about = wait.about or {}
    return Receipt(
        key=wait.key,
        record_id=record.record_id,
        step=record.step,
        visit=record.visit,
        name=str(about.get("text", wait.name)),
        kind=Kind.ASK,
        stage=Stage.DONE,
        args_hash=approval.shown_print(about.get("show")),
        value=value,
        nonce=f"answer-{record.version}",
    )
