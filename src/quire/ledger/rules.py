"""What a ledger decides: pure, the same on every store.

A store locks the rows that a request may touch, reads them, and lets a ``Draft`` decide over them here; the draft then
holds the after-image of every row that changes, and the store writes these and commits. So version checks, fan-in,
signals, caps, halts and doubts are written once, and a store is only a way to lock, read and write (protocol 3, 4).

Within a draft later requests see what earlier ones decided: two changes of one record, or a parent and its children,
may stand in one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from quire.errors import Moved, WorkerClosed
from quire.machine import transition
from quire.model.change import (
    Applied,
    Beaten,
    Change,
    Claim,
    Conflict,
    Holding,
    Order,
    Rate,
    Refused,
    Send,
    Slot,
    Verdict,
)
from quire.model.codec import dump, parse
from quire.model.event import Event, Line, chained
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import ENDED, UNDO, Record, Status, beside, changed
from quire.model.side import EVERYWHERE, Bucket, Control, Fanin, Signal, Worker
from quire.model.wait import On, Wait, dump_waits, load_waits

#: What an effect's receipt may become: what was done stays done, or is undone; what is undone stays so (protocol 2).
_STAGES = frozenset(
    {
        (Stage.INTENDED, Stage.DONE),
        (Stage.INTENDED, Stage.VOID),
        (Stage.VOID, Stage.DONE),
        (Stage.DONE, Stage.UNDONE),
    }
)

#: Where a record keeps the length of its log; the hash of the last line follows.
_LOG_AT = Record._fields.index("log_seq")

_made = tuple.__new__

#: A lease that ran out is honoured this much longer by others than by its worker (protocol 8).
GRACE = 0.1


class View(Protocol):
    """The rows that a draft may look at, as they are after the locks were taken."""

    #: Raised by every halt and resume.
    epoch: int
    #: Where the records went, if the ledger is sealed.
    sealed: str

    def record(self, record_id: str) -> Record | None: ...

    def receipt(self, key: str) -> Receipt | None: ...

    def intents(self, record_id: str) -> Sequence[Receipt]:
        """The record's open intents."""
        ...

    def fanin(self, parent_id: str, generation: int) -> Fanin | None: ...

    def fanins(self, parent_id: str) -> Sequence[Fanin]: ...

    def signals(self, record_id: str) -> Sequence[Signal]:
        """Signals that no wait has taken, in order."""
        ...

    def signal(self, signal_id: str) -> Signal | None: ...

    def worker(self, worker_id: str) -> Worker | None: ...

    def control(self, scope: str) -> Control | None: ...

    def bucket(self, name: str) -> Bucket | None: ...

    def running(self, workflow: str, step: str | None) -> int:
        """How many records run in this step, or in the whole workflow."""
        ...

    def change_at(self, record_id: str, version: int) -> str | None:
        """The id of the change that made this version."""
        ...

    def told(self, record_id: str, change_id: str) -> bool:
        """Whether the record's log has a line of this change."""
        ...


class Draft:
    """Decisions over a view, and the after-images that they lead to. Nothing is written until the store does it."""

    def __init__(self, view: View, now: float) -> None:
        self.view = view
        self.now = now
        self.records: dict[str, Record] = {}
        self.receipts: dict[str, Receipt] = {}
        self.fanins: dict[tuple[str, int], Fanin] = {}
        self.signals: dict[str, Signal] = {}
        self.workers: dict[str, Worker] = {}
        self.buckets: dict[str, Bucket] = {}
        self.controls: dict[str, Control] = {}
        self.events: list[Event] = []
        self.epoch = view.epoch
        #: Something may have become due: wake the workers.
        self.woke = False
        self._running: dict[tuple[str, str | None], int] = {}
        self._new: set[str] = set()
        self._made: dict[tuple[str, int], str] = {}
        self._ordered: dict[str, tuple[Control | None, bool, int]] = {}

    # -- what stands, seen through the draft -------------------------------------------------------------------

    def record(self, record_id: str) -> Record | None:
        found = self.records.get(record_id)
        return found if found is not None else self.view.record(record_id)

    def receipt(self, key: str) -> Receipt | None:
        return self.receipts.get(key) or self.view.receipt(key)

    def fanin(self, parent_id: str, generation: int) -> Fanin | None:
        return self.fanins.get((parent_id, generation)) or self.view.fanin(parent_id, generation)

    def control(self, scope: str) -> Control | None:
        return self.controls.get(scope) or self.view.control(scope)

    def running(self, workflow: str, step: str | None) -> int:
        key = (workflow, step)
        return self.view.running(workflow, step) + self._running.get(key, 0)

    def is_new(self, record_id: str) -> bool:
        """The record comes into the ledger with this draft."""
        return record_id in self._new

    def _intents(self, record_id: str) -> list[Receipt]:
        known = {receipt.key: receipt for receipt in self.view.intents(record_id)}
        known |= {key: receipt for key, receipt in self.receipts.items() if receipt.record_id == record_id}
        found = (receipt for receipt in known.values() if receipt.stage is Stage.INTENDED)
        return sorted(found, key=lambda receipt: (receipt.seq, receipt.key))

    def _orders(self, workflow: str) -> tuple[Control | None, bool, int]:
        """What was ordered for this workflow: the halt, whether it is paused, the first epoch that is not halted."""
        orders = self._ordered.get(workflow)
        if orders is None:
            controls = [c for scope in (EVERYWHERE, workflow) if (c := self.control(scope)) is not None]
            halt = next((control for control in controls if control.halted), None)
            floor = max((control.floor for control in controls), default=0)
            orders = self._ordered[workflow] = (halt, any(control.paused for control in controls), floor)
        return orders

    def halted(self, workflow: str) -> Control | None:
        """The order that keeps work of this workflow from starting, if there is one."""
        return self._orders(workflow)[0]

    def paused(self, workflow: str) -> bool:
        return self._orders(workflow)[1]

    def outdated(self, record: Record) -> bool:
        """The record is of an epoch that was halted: if it waits or pends, it is CANCELLED by definition."""
        return record.epoch < self.floor(record.workflow)

    def floor(self, workflow: str) -> int:
        """The first epoch of this workflow that is not halted."""
        return self._orders(workflow)[2]

    # -- writing down ------------------------------------------------------------------------------------------

    def _put(self, before: Record | None, after: Record, lines: Iterable[Line], change_id: str) -> Record:
        """The row after a decision: its lines are chained, its slots counted."""
        hash_, n, at = after.log_hash, after.log_seq, self.now
        for line in lines:
            n += 1
            hash_ = chained(hash_, after.record_id, n, after.version, at, line.kind, line.body)
            event = (0, after.record_id, n, after.version, at, line.kind, line.body, after.run_id, change_id, hash_)
            self.events.append(_made(Event, event))
        if n != after.log_seq:
            # As ``_replace`` does, in a fifth of its time: every line of every record comes by here.
            after = _made(Record, (*after[:_LOG_AT], n, hash_, *after[_LOG_AT + 2 :]))
        if before is None or before.version != after.version:
            self._made[after.record_id, after.version] = change_id
        if before is None:
            self._new.add(after.record_id)
        elif before.status is Status.RUNNING:
            self._count(before, -1)
        if after.status is Status.RUNNING:
            self._count(after, +1)
        elif after.due_at is not None:
            self.woke = True
        self.records[after.record_id] = after
        return after

    def _count(self, record: Record, by: int) -> None:
        running, workflow = self._running, record.workflow
        running[workflow, record.step] = running.get((workflow, record.step), 0) + by
        running[workflow, None] = running.get((workflow, None), 0) + by

    # -- changes -----------------------------------------------------------------------------------------------

    def change(self, change: Change) -> Verdict:
        """Decide one change."""
        current = self.record(change.record_id)
        landed = False
        if change.receipts and current is not None:
            current, landed = self._completed(change, current)
        if self.view.sealed and not (landed and change.image is None):
            return Refused("sealed", _sealed_text(self.view.sealed))
        if change.image is None:
            return self._facts(change, current, landed)
        if change.version == 0:
            return self._started(change, current)
        return self._moved(change, current)

    def _completed(self, change: Change, current: Record) -> tuple[Record, bool]:
        """Effects that were done, undone or resolved: fenced by the intent alone (protocol 2)."""
        lines: list[Line] = []
        landed = False
        wakes: list[str] = []
        row = current
        for receipt in change.receipts:
            if receipt.kind not in (Kind.ONCE, Kind.UNDO) or receipt.stage is Stage.INTENDED:
                continue
            known = self.receipt(receipt.key)
            if known is None:
                continue
            told = {"effect": receipt.name, "key": receipt.key}
            if known.nonce != receipt.nonce and known.stage is not Stage.VOID:
                if receipt.stage is Stage.DONE:
                    lines.append(Line("effect.twice", dump(told | {"value": receipt.value, "by": receipt.worker})))
                    landed = True
                continue
            if (known.stage, receipt.stage) not in _STAGES:
                landed |= receipt.stage in (known.stage, Stage.DONE)  # delivered again
                continue
            done = receipt._replace(seq=known.seq, at=known.at, done_at=self.now)
            self.receipts[receipt.key] = done
            landed = True
            if known.stage is Stage.INTENDED:
                row = row._replace(open_intents=max(0, row.open_intents - 1))
                wakes.append(receipt.key)
            lines.append(Line(f"effect.{receipt.stage}", dump(told)))
        if lines or row is not current:
            row = self._put(current, row, lines, change.change_id)
        if change.image is None:
            for key in wakes:
                row = self._wake(row, key, "its receipt", change.change_id)
        return row, landed

    def _facts(self, change: Change, current: Record | None, landed: bool) -> Verdict:
        if current is None:
            return Conflict(None, self.now)
        if not change.receipts and self._told(change):
            return Applied(current, self.now, again=True)
        if change.cancel is not None:
            return self._cancel_asked(change, current)
        if change.priority is not None:
            line = Line("prioritised", dump({"priority": change.priority} | ({"by": change.by} if change.by else {})))
            row = current._replace(priority=change.priority)
            return Applied(self._put(current, row, [line], change.change_id), self.now)
        rest = [r for r in change.receipts if r.kind not in (Kind.ONCE, Kind.UNDO) or r.stage is Stage.INTENDED]
        if not rest and not change.lines:
            return Applied(current, self.now, stop=self._stops(current)) if landed else Conflict(current, self.now)
        held = current.version == change.version and current.worker == change.worker
        if not held or current.status is not Status.RUNNING:
            return Conflict(current, self.now)
        row = current
        again = bool(rest) and all(self._known(receipt) for receipt in rest)
        lines = [] if again else list(change.lines)
        before = (dict(self.receipts), dict(self.fanins), dict(self.buckets)) if len(rest) > 1 else None
        for receipt in rest:
            refused = self._fact(receipt, row, change, lines)
            if isinstance(refused, Refused):
                if before is not None:  # the change lands whole or not at all
                    self.receipts, self.fanins, self.buckets = before
                return refused
            row = refused
        if row is not current and row.losses:
            row = row._replace(losses=0)  # it gets on: whatever killed its workers, this step is no trap for them
        return Applied(self._put(current, row, lines, change.change_id), self.now, again, self._stops(row))

    def _told(self, change: Change) -> bool:
        """The lines of this very change came before."""
        own = any(event.change_id == change.change_id for event in self.events)
        return own or self.view.told(change.record_id, change.change_id)

    def _stops(self, row: Record) -> bool:
        """The record's holder is to end its pass: told with every verdict, so that it need not wait for its beat."""
        if row.status is not Status.RUNNING or row.step == UNDO:
            return False
        return row.cancel is not None or self.halted(row.workflow) is not None or self.outdated(row)

    def _known(self, receipt: Receipt) -> bool:
        """This very receipt came before. The place in a loop is kept under one key and written anew."""
        known = self.receipt(receipt.key)
        if known is None or known.nonce != receipt.nonce or receipt.kind is Kind.EACH:
            return False
        return not _sooner(receipt, known)

    def _fact(self, receipt: Receipt, row: Record, change: Change, lines: list[Line]) -> Record | Refused:
        """One intent or answer comes to stand beside the record."""
        known = self.receipt(receipt.key)
        if known is not None and known.nonce == receipt.nonce and receipt.kind is not Kind.EACH:
            if _sooner(receipt, known):
                self.receipts[receipt.key] = known._replace(act_by=receipt.act_by)  # its actor has ended
            return row  # this very change, sent again
        if receipt.stage is Stage.INTENDED:
            if known is not None and known.stage not in (Stage.VOID, Stage.UNDONE):
                return Refused("intent", f"the effect {receipt.name!r} is {known.stage} already under this key")
            if (refused := self._may_begin(row, change)) is not None:
                return refused
            told = {"effect": receipt.name, "key": receipt.key}
            lines.append(Line("effect.intended", dump(told)))
            receipt = receipt._replace(seq=row.log_seq + len(lines), at=self.now)
            self.receipts[receipt.key] = receipt
            return row._replace(open_intents=row.open_intents + 1, facts=row.facts + 1)
        if known is not None and known.stage is Stage.DONE and receipt.kind is not Kind.EACH:
            return row  # answered already: the first answer stands
        self.receipts[receipt.key] = receipt._replace(seq=row.log_seq + len(lines), at=self.now, done_at=self.now)
        if receipt.kind is Kind.MAP:
            self._abandon(row.record_id, receipt.key)
        return row._replace(facts=row.facts + 1)

    def _may_begin(self, row: Record, change: Change) -> Refused | None:
        """An effect begins when its intent commits: not after a halt, nor over a wish to cancel (protocol 15, 6)."""
        if row.cancel is not None and row.step != UNDO:
            return Refused("cancelled", f"{row.record_id!r} is to be cancelled; no effect begins")
        if self.halted(row.workflow) is not None or self.outdated(row):
            return Refused("halted", f"{row.workflow!r} is halted; no effect begins")
        if change.rates:
            waits = [self._tokens_at(rate) for rate in change.rates]
            if max(waits) > self.now:
                return Refused("rate", "the rate is used up", until=max(waits))
            for rate in change.rates:
                self._take_token(rate)
        return None

    def _cancel_asked(self, change: Change, current: Record) -> Verdict:
        if current.status is not Status.RUNNING:
            return Conflict(current, self.now)
        line = Line("cancel_asked", change.cancel or "{}")
        row = current._replace(cancel=change.cancel)
        return Applied(self._put(current, row, [line], change.change_id), self.now)

    def _started(self, change: Change, current: Record | None) -> Verdict:
        image = change.image
        assert image is not None
        if current is not None:
            if current.started_as == image.started_as and current.workflow == image.workflow:
                return Applied(current, self.now, again=True)
            return Refused(
                "exists",
                f"a record {image.record_id!r} of {current.workflow!r} exists already and was started with other data",
            )
        if (control := self.halted(image.workflow)) is not None:
            return Refused("halted", _halted_text(image.workflow, control))
        due_at = image.due_at if image.due_at is None else max(image.due_at, self.now)
        fields = {"epoch": self.epoch, "created_at": self.now, "updated_at": self.now, "due_at": due_at}
        woke = self.woke
        row = self._put(None, changed(image, fields), change.lines, change.change_id)
        if change.keep is not None and change.worker is not None and self._begins(change.keep, change.worker, row):
            claim = Claim(change.change_id, change.worker, (change.keep,), 1)
            [row] = self.claim(claim, change.keep, [row])
            self.woke = woke
        return Applied(row, self.now)

    def _begins(self, slot: Slot, worker_id: str, row: Record) -> bool:
        """A new record may begin under the worker that starts it: that is a claim, with all its checks, or none."""
        worker = self.workers.get(worker_id) or self.view.worker(worker_id)
        open_ = worker is not None and worker.closed is None
        due = row.status is Status.PENDING and row.due_at is not None and row.due_at <= self.now
        return open_ and due and row.step == slot.step and self.allowance(slot) > 0

    def _moved(self, change: Change, current: Record | None) -> Verdict:
        image = change.image
        assert image is not None
        if current is None:
            return Conflict(None, self.now)
        if current.version != change.version:
            if self._version_made_by(change) == change.change_id:
                return Applied(current, self.now, again=True)
            return Conflict(current, self.now)
        if change.receipts and any(receipt.open for receipt in change.receipts):
            return Refused("intent", "an intent is committed before its act, by a change of its own")
        held = current.status is Status.RUNNING
        if held and change.worker != current.worker:
            return Refused("running", f"{current.record_id!r} is running under worker {current.worker}")
        if not held and change.worker is not None:
            return Conflict(current, self.now)
        image = beside(image, current)
        lines = list(change.lines)
        outcome = self._bent(change, current, image, lines)
        if isinstance(outcome, Refused):
            return outcome
        image, as_asked = outcome
        if as_asked and change.children:
            for child in change.children:
                if self.record(child.record_id) is not None:
                    return Refused("exists", f"a child {child.record_id!r} cannot start: a record of that id exists")
        if not held and current.ended and not image.ended:
            refused = self._uncount(current)
            if refused is None:
                image = image._replace(counted=False)
            elif image.step != UNDO:  # what it did may be undone whatever its parent made of it
                return refused
        elif not held and current.ended and current.status is not image.status:
            self._recount(current, image)
        if image.facts and image.visit != current.visit:
            image = image._replace(facts=0)
        if change.receipts:
            image = self._answers(change, image, lines)
        if as_asked:
            self._born(change, image)
            image = self._already(image, lines)
        if change.keep is not None and image.status is Status.RUNNING:
            image = self._kept(change.keep, current, image)
        ends = image.status in ENDED and not current.counted
        if ends and image.parent_id is not None:
            image = image._replace(counted=True)
        row = self._put(current, _without_wish(image), lines, change.change_id)
        self.woke |= change.frees
        if ends and row.parent_id is not None and row.generation is not None:
            self._child_ended(row, change.change_id)
        if row.fanouts and (row.ended or row.visit != current.visit):
            self._abandon(row.record_id, None)
        return Applied(row, self.now)

    def _version_made_by(self, change: Change) -> str | None:
        place = (change.record_id, change.version + 1)
        return self._made.get(place) or self.view.change_at(*place)

    def _bent(self, change: Change, current: Record, image: Record, lines: list[Line]) -> tuple[Record, bool] | Refused:
        """What the change must become where a halt, a wish to cancel or an open intent stands in its way."""
        outcome = self._obeyed(current, image, lines)
        if isinstance(outcome, Refused) or not current.open_intents:
            return outcome
        image, _ = outcome
        if image.status not in ENDED and image.visit == current.visit:
            return outcome
        if current.status is not Status.RUNNING and image.step != UNDO:
            return Refused(
                "intent",
                f"{current.open_intents} effects of {current.record_id!r} are in doubt; "
                f"say first whether they happened (quire resolve {current.record_id} --happened | --not)",
            )
        base = current._replace(version=image.version, updated_at=self.now, last_error=image.last_error)
        lines.clear()
        return self._doubted(base, lines), False

    def _doubted(self, image: Record, lines: list[Line]) -> Record:
        keys = [(receipt.key, receipt.name) for receipt in self._intents(image.record_id)]
        lines.append(Line("doubted", dump({"effects": [name for _, name in keys]})))
        return transition.doubt(image, self.now, keys)

    def _obeyed(self, current: Record, image: Record, lines: list[Line]) -> tuple[Record, bool] | Refused:
        held = current.status is Status.RUNNING
        goes_on = image.status not in ENDED
        if held and goes_on and current.cancel is not None and image.step != UNDO:
            wish = parse(current.cancel)
            stop = transition.stopped(current, self.now, str(wish.get("reason", "")), bool(wish.get("undo")))
            lines[:] = stop.lines
            return beside(stop.image, current), False
        if goes_on and (self.halted(image.workflow) is not None or (held and self.outdated(image))):
            if held:
                lines.append(Line("cancelled", dump({"reason": "halted"})))
                return transition.halted(image), False
            doubts = any(wait.on is On.DOUBT for wait in load_waits(current.waits))
            if not doubts:
                control = self.halted(image.workflow)
                return Refused("halted", _halted_text(image.workflow, control))
            return image if current.open_intents else transition.halted(image), True
        if not held and goes_on and image.epoch < self.epoch:
            image = image._replace(epoch=self.epoch)
        return image, True

    def _answers(self, change: Change, image: Record, lines: list[Line]) -> Record:
        """Answers (calls, sleeps, signals, questions) that ride with a move."""
        count = 0
        for receipt in change.receipts:
            if receipt.kind is Kind.MAP and receipt.stage is Stage.VOID:
                # A person retries the parent: the children that failed are done again.
                self.receipts[receipt.key] = receipt
            if receipt.stage is Stage.DONE and receipt.kind not in (Kind.ONCE, Kind.UNDO):
                known = self.receipt(receipt.key)
                if known is None or known.stage is not Stage.DONE or receipt.kind is Kind.EACH:
                    made = receipt._replace(seq=image.log_seq + len(lines), at=self.now, done_at=self.now)
                    self.receipts[receipt.key] = made
                    count += receipt.visit == image.visit
                    if receipt.kind is Kind.MAP:
                        self._abandon(image.record_id, receipt.key)
        return image._replace(facts=image.facts + count) if count else image

    def _born(self, change: Change, parent: Record) -> None:
        for fanin in change.fanins:
            self.fanins[fanin.parent_id, fanin.generation] = fanin
        for child in change.children:
            born = transition.start(child, self.now)
            row = born.image._replace(epoch=parent.epoch, created_at=self.now)
            if row.due_at is not None:
                row = row._replace(due_at=max(row.due_at, self.now))
            self._put(None, row, born.lines, change.change_id)

    def _already(self, image: Record, lines: list[Line]) -> Record:
        """The record is about to wait for something that has come already: then it does not wait (protocol 4)."""
        if image.waits is None or image.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
            return image
        waits = load_waits(image.waits)
        answered: list[Wait] = []
        signals = list(self._signals(image.record_id)) if any(w.on is On.SIGNAL for w in waits) else []
        for wait in waits:
            if wait.on is On.SIGNAL:
                taken = next((signal for signal in signals if signal.name == wait.name), None)
                if taken is not None:
                    signals.remove(taken)
                    self._take(taken, wait, image)
                    image = image._replace(facts=image.facts + 1)
                    answered.append(wait)
            elif wait.on is On.CHILDREN and wait.generation is not None:
                fanin = self.fanin(image.record_id, wait.generation)
                if fanin is None or _met(fanin):
                    answered.append(wait)
            elif wait.on is On.DOUBT:
                receipt = self.receipt(wait.key)
                if receipt is not None and receipt.stage is not Stage.INTENDED:
                    answered.append(wait)
        if not answered:
            return image
        # The wait for children stays: the next pass finds by it which children they are.
        left = dump_waits(wait for wait in waits if wait not in answered or wait.on is On.CHILDREN)
        lines.append(Line("woken", dump({"by": f"{answered[0].on} {answered[0].name}".strip()})))
        return image._replace(status=Status.PENDING, due_at=self.now, waits=left, question=None)

    def _kept(self, slot: Slot, current: Record, image: Record) -> Record:
        """Staying for the next step is a claim: with its slots, its tokens and the controls, or not at all."""
        free = self._free(slot, leaving=current)
        if free < 1 or self.paused(image.workflow):
            return transition.unkept(image, self.now)
        if slot.rate is not None:
            self._take_token(slot.rate)
        return image

    # -- fan-in ------------------------------------------------------------------------------------------------

    def _child_ended(self, child: Record, change_id: str) -> None:
        assert child.parent_id is not None
        assert child.generation is not None
        fanin = self.fanin(child.parent_id, child.generation)
        if fanin is None:
            return
        fanin = fanin._replace(
            left=fanin.left - 1,
            failed=fanin.failed + (child.status is not Status.DONE),
            # A child that ends before its turn was not under way.
            active=max(0, fanin.active - (child.place is None or child.place < fanin.next_place)),
        )
        while fanin.limit is not None and fanin.next_place < fanin.total and fanin.active < fanin.limit:
            waiting = self.record(f"{fanin.prefix}{fanin.next_place}")
            if waiting is None:
                break
            fanin = fanin._replace(next_place=fanin.next_place + 1)
            if waiting.status is Status.WAITING and not fanin.abandoned:
                go = transition.turn(waiting, self.now)
                self._put(waiting, go.image, go.lines, change_id)
            if not waiting.ended:
                fanin = fanin._replace(active=fanin.active + 1)
        self.fanins[fanin.parent_id, fanin.generation] = fanin
        parent = self.record(fanin.parent_id)
        if parent is None or not _met(fanin) or parent.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
            return
        if self.halted(parent.workflow) is not None or self.outdated(parent):
            return
        for wait in load_waits(parent.waits):
            if wait.on is On.CHILDREN and wait.generation == fanin.generation:
                go = transition.wake(parent, self.now, "", "its children")
                self._put(parent, go.image, go.lines, change_id)
                return

    def _awaited(self, child: Record) -> Fanin | None:
        """The fan-in of an ended child whose parent still waits for it."""
        if child.parent_id is None or child.generation is None:
            return None
        fanin = self.fanin(child.parent_id, child.generation)
        parent = self.record(child.parent_id)
        if fanin is None or fanin.abandoned or parent is None:
            return None
        if parent.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
            return None
        waits = load_waits(parent.waits)
        return fanin if any(w.on is On.CHILDREN and w.generation == child.generation for w in waits) else None

    def _recount(self, child: Record, image: Record) -> None:
        """An ended child was moved by hand to another end: it is counted, but it may have failed no longer."""
        if child.counted and (fanin := self._awaited(child)) is not None:
            failed = fanin.failed + (image.status is not Status.DONE) - (child.status is not Status.DONE)
            self.fanins[fanin.parent_id, fanin.generation] = fanin._replace(failed=failed)

    def _uncount(self, child: Record) -> Refused | None:
        """An ended child that goes on again counts again, while its parent still waits for it."""
        if not child.counted or child.parent_id is None or child.generation is None:
            return None
        fanin = self._awaited(child)
        if fanin is None:
            return Refused(
                "parent",
                f"{child.record_id!r} cannot go on again: its parent has gone on without it; retry the parent, which "
                f"does its failed children again (quire retry {child.parent_id})",
            )
        self.fanins[fanin.parent_id, fanin.generation] = fanin._replace(
            left=fanin.left + 1,
            failed=fanin.failed - (child.status is not Status.DONE),
            active=fanin.active + (child.place is None or child.place < fanin.next_place),
        )
        return None

    def _abandon(self, parent_id: str, key: str | None) -> None:
        """The parent goes on, or ends, without the children that are still open: the sweep cancels them."""
        fanins = {(f.parent_id, f.generation): f for f in self.view.fanins(parent_id)}
        fanins |= {place: f for place, f in self.fanins.items() if f.parent_id == parent_id}
        for place, fanin in fanins.items():
            if fanin.left > 0 and not fanin.abandoned and (key is None or fanin.key == key):
                self.fanins[place] = fanin._replace(abandoned=True)

    # -- signals -----------------------------------------------------------------------------------------------

    def _signals(self, record_id: str) -> list[Signal]:
        known = {signal.signal_id: signal for signal in self.view.signals(record_id)}
        known |= {id_: signal for id_, signal in self.signals.items() if signal.record_id == record_id}
        return sorted((s for s in known.values() if s.taken_by is None), key=lambda signal: signal.seq)

    def _take(self, signal: Signal, wait: Wait, record: Record) -> None:
        self.signals[signal.signal_id] = signal._replace(taken_by=wait.key)
        self.receipts[wait.key] = Receipt(
            key=wait.key,
            record_id=record.record_id,
            step=record.step,
            visit=record.visit,
            name=wait.name,
            kind=Kind.WAIT,
            stage=Stage.DONE,
            fn="",
            args_hash="",
            args="",
            value=signal.value,
            nonce=signal.signal_id,
            worker="",
            act_by=None,
            seq=record.log_seq,
            at=self.now,
            done_at=self.now,
            undo="",
            signature="",
            key_id="",
        )

    def _wake(self, row: Record, key: str, why: str, change_id: str) -> Record:
        if row.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
            return row
        if self.halted(row.workflow) is not None or self.outdated(row):
            return row
        if not any(wait.key == key for wait in load_waits(row.waits)):
            return row
        go = transition.wake(row, self.now, key, why)
        return self._put(row, go.image, go.lines, change_id)

    def send(self, sent: Send) -> Verdict:
        """A signal comes: the wait of that name takes it, or it is kept until there is one."""
        if self.view.sealed:
            return Refused("sealed", _sealed_text(self.view.sealed))
        row = self.record(sent.record_id)
        if row is None:
            return Conflict(None, self.now)
        if sent.signal_id in self.signals or self.view.signal(sent.signal_id) is not None:
            return Applied(row, self.now, again=True)
        if row.ended:
            return Refused("ended", f"{sent.record_id!r} takes no signals: it is {row.status}")
        if (control := self.halted(row.workflow)) is not None or self.outdated(row):
            return Refused("halted", _halted_text(row.workflow, control))
        told = {"signal": sent.name, "id": sent.signal_id} | ({"by": sent.by} if sent.by else {})
        line = Line("signalled", dump(told))
        row = self._put(row, row, [line], sent.signal_id)
        signal = Signal(sent.signal_id, sent.record_id, sent.name, sent.value, self.now, row.log_seq, None)
        self.signals[signal.signal_id] = signal
        if row.status in (Status.WAITING, Status.NEEDS_APPROVAL):
            for wait in load_waits(row.waits):
                if wait.on is On.SIGNAL and wait.name == sent.name:
                    self._take(signal, wait, row)
                    row = row._replace(facts=row.facts + 1)
                    go = transition.wake(row, self.now, wait.key, f"signal {sent.name}")
                    row = self._put(row, go.image, go.lines, sent.signal_id)
                    break
        return Applied(row, self.now)

    # -- claims ------------------------------------------------------------------------------------------------

    def _tokens_at(self, rate: Rate) -> float:
        """When the rate has a token."""
        tokens = self._tokens(rate)
        return self.now if tokens >= 1 else self.now + (1 - tokens) * rate.per / rate.count

    def _tokens(self, rate: Rate) -> float:
        bucket = self.buckets.get(rate.name) or self.view.bucket(rate.name)
        if bucket is None:
            return rate.count
        return min(rate.count, bucket.tokens + max(0.0, self.now - bucket.at) * rate.count / rate.per)

    def _take_token(self, rate: Rate, count: int = 1) -> None:
        self.buckets[rate.name] = Bucket(rate.name, self._tokens(rate) - count, self.now)

    def _free(self, slot: Slot, leaving: Record | None = None) -> int:
        free = slot.free
        if slot.cap is not None:
            free = min(free, slot.cap - self.running(slot.workflow, slot.step))
        if slot.workflow_cap is not None:
            own = leaving is not None and leaving.workflow == slot.workflow and leaving.status is Status.RUNNING
            free = min(free, slot.workflow_cap - self.running(slot.workflow, None) + own)
        if slot.rate is not None:
            free = min(free, int(self._tokens(slot.rate)))
        return max(0, free)

    def allowance(self, slot: Slot) -> int:
        """How many records of this step may be claimed now, by slots, tokens, controls and what the worker has free."""
        if self.view.sealed or self.halted(slot.workflow) is not None or self.paused(slot.workflow):
            return 0
        return self._free(slot)

    def claim(self, claim: Claim, slot: Slot, due: Iterable[Record]) -> list[Record]:
        """These due records, already within the allowance, become the worker's."""
        self.open_to_work()
        worker = self.workers.get(claim.worker) or self.view.worker(claim.worker)
        may_claim(claim, known=worker is not None, closed=worker.closed if worker is not None else None)
        taken = []
        for record in due:
            if self.outdated(record) or self._free(slot) < 1:
                continue
            run_id = f"run_{claim.claim_id}_{len(self.records)}"
            go = transition.claim(record, self.now, claim.worker, run_id, slot.timeout)
            taken.append(self._put(record, go.image, go.lines, claim.claim_id))
            if slot.rate is not None:
                self._take_token(slot.rate)
        return taken

    def open_to_work(self) -> None:
        """A sealed ledger has no workers: whoever claims or beats is told where its records went (protocol 25)."""
        if self.view.sealed:
            raise Moved(_sealed_text(self.view.sealed))

    # -- workers -----------------------------------------------------------------------------------------------

    def beat(self, worker: Worker, holding: Holding, held: Sequence[Record]) -> Beaten | None:
        """Renew the lease and agree on what the worker holds; None: it was closed. ``held``: its RUNNING rows."""
        self.open_to_work()
        known = self.workers.get(worker.worker_id) or self.view.worker(worker.worker_id)
        if known is not None and known.closed is not None:
            return None
        started_at = self.now if known is None else known.started_at
        self.workers[worker.worker_id] = worker._replace(
            started_at=started_at, expires_at=self.now + worker.lease_seconds, closed=None
        )
        given = {row.record_id: row for row in held}
        cancelled = []
        for row in held:
            if row.record_id in holding.versions:
                if row.cancel is not None or self.halted(row.workflow) is not None or self.outdated(row):
                    cancelled.append(row.record_id)
            elif not any(_of_claim(row, claim_id) for claim_id in holding.claims):
                self._give_back(row, f"orphan-{row.run_id}")
        lost = tuple(record_id for record_id in holding.versions if record_id not in given)
        controls = tuple(c for scope in (EVERYWHERE,) if (c := self.control(scope)) is not None)
        return Beaten(self.now, lost, tuple(cancelled), controls)

    def farewell(self, worker_id: str, held: Iterable[Record]) -> None:
        """The worker ends of its own will: what it still holds goes back unharmed. Not where the ledger is sealed."""
        known = self.workers.get(worker_id) or self.view.worker(worker_id)
        if known is None or known.closed is not None or self.view.sealed:
            return
        self.workers[worker_id] = known._replace(closed="farewell")
        for row in held:
            self._give_back(row, f"farewell-{row.run_id}")

    def _give_back(self, row: Record, change_id: str) -> None:
        go = self._stopped(row) or transition.orphan(row, self.now)
        self._finish(row, go.image, list(go.lines), change_id)

    def _stopped(self, row: Record) -> transition.Move | None:
        """What becomes of a record that somebody wishes to cancel when its worker lets go of it."""
        if row.cancel is None or row.open_intents:
            return None
        wish = parse(row.cancel)
        return transition.stopped(row, self.now, str(wish.get("reason", "")), bool(wish.get("undo")))

    def expired(self, worker: Worker) -> bool:
        return (
            not self.view.sealed
            and worker.closed is None
            and worker.expires_at + GRACE * worker.lease_seconds < self.now
        )

    def close(self, worker: Worker, held: Iterable[Record], *, dead: bool = False) -> int:
        """Take over from a worker whose lease ran out, or that is dead: it is closed, then its records are free.

        See protocol 8: a beat of a closed worker is refused, so it cannot believe in a lease that others deny.
        """
        if worker.closed is not None or self.view.sealed or not (dead or self.expired(worker)):
            return 0
        why = "its process is dead" if dead else "its lease ran out"
        self.workers[worker.worker_id] = worker._replace(closed=why)
        return sum(self.lose(row, why) for row in held)

    def overdue(self, row: Record) -> int:
        """A run past its hard end is taken over although its worker lives (protocol 7)."""
        if row.status is not Status.RUNNING or row.run_until is None or row.run_until >= self.now or self.view.sealed:
            return 0
        return self.lose(row, "its run is past its end")

    def lose(self, row: Record, why: str) -> int:
        halts = self.halted(row.workflow) is not None or self.outdated(row)
        go = self._stopped(row) or transition.lose(row, self.now, why)
        image, lines = go.image, list(go.lines)
        if row.open_intents and (halts or image.ended):
            image = self._doubted(image, lines)
        elif halts:
            image = transition.halted(row)._replace(version=row.version + 1, updated_at=self.now)
            lines = [Line("cancelled", dump({"reason": f"halted; {why}"}))]
        self._finish(row, image, lines, f"lost-{row.run_id}")
        return 1

    def _finish(self, row: Record, image: Record, lines: list[Line], change_id: str) -> None:
        """A move that the ledger makes by itself and that may end the record."""
        image = _without_wish(image)
        if image.visit != row.visit and image.facts:
            image = image._replace(facts=0)
        ends = image.status in ENDED and not row.counted and row.parent_id is not None
        if ends:
            image = image._replace(counted=True)
        after = self._put(row, image, lines, change_id)
        if ends and after.generation is not None:
            self._child_ended(after, change_id)
        if after.fanouts and after.ended:
            self._abandon(after.record_id, None)

    # -- orders and sweeps -------------------------------------------------------------------------------------

    def order(self, order: Order) -> None:
        """Halt, pause, resume: one small commit, whatever the number of records (protocol 15)."""
        known = self.control(order.scope) or Control(order.scope, False, 0, False, "", 0.0, "")
        told = known._replace(by=order.by, at=self.now, reason=order.reason)
        if order.word == "halt":
            self.epoch += 1
            told = told._replace(halted=True, floor=self.epoch)
            self.woke = True  # workers that wait for work hear of it, and end what they run
        elif order.word == "pause":
            told = told._replace(paused=True)
        elif order.word == "resume":
            if told.halted:
                self.epoch += 1
            told = told._replace(halted=False, paused=False)
            self.woke = True
        self.controls[order.scope] = told
        self._ordered.clear()

    def sweep_halted(self, row: Record) -> bool:
        """Write down what holds by definition: what waits in a halted epoch is CANCELLED. No fan-in is told."""
        if row.status not in (Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL) or not self.outdated(row):
            return False
        if (row.status is Status.NEEDS_APPROVAL and row.open_intents) or self.view.sealed:
            return False
        image = transition.halted(row)._replace(version=row.version + 1, updated_at=self.now)
        self._put(row, image, [Line("cancelled", dump({"reason": "halted"}))], f"halt-{row.record_id}-{row.version}")
        return True

    def sweep_abandoned(self, row: Record, fanin: Fanin) -> bool:
        """A child whose parent went on without it is cancelled; one that undoes what it did does so to the end."""
        if row.ended or not fanin.abandoned or row.step == UNDO or self.view.sealed:
            return False
        reason = "its parent went on without it"
        if row.status is Status.RUNNING:
            if row.cancel is None:
                wish = dump({"by": "", "reason": reason, "undo": False})
                self._put(row, row._replace(cancel=wish), [Line("cancel_asked", wish)], f"abandon-{row.record_id}")
                return True
            return False
        if row.open_intents:
            return False
        go = transition.stopped(row, self.now, reason, False)
        self._finish(row, go.image, list(go.lines), f"abandon-{row.record_id}-{row.version}")
        return True


def _without_wish(image: Record) -> Record:
    """A wish to cancel is kept until it is obeyed: by an end, or by the undoing."""
    return image._replace(cancel=None) if image.cancel is not None and (image.ended or image.step == UNDO) else image


def _sooner(receipt: Receipt, known: Receipt) -> bool:
    """The same intent, but its actor has ended before its time: nobody acts on it any more."""
    return receipt.open and known.open and (receipt.act_by or 0.0) < (known.act_by or 0.0)


def _of_claim(record: Record, claim_id: str) -> bool:
    return (record.run_id or "").startswith(f"run_{claim_id}_")


def claimed_by(claim: Claim, held: Iterable[Record]) -> list[Record]:
    """Of the records that the worker holds, those that this very claim took before."""
    return [record for record in held if _of_claim(record, claim.claim_id)]


def may_claim(claim: Claim, *, known: bool, closed: str | None) -> None:
    """A worker is known by its first beat, and claims until it is closed (protocol 7, 8). Anybody may look."""
    if not known and claim.limit > 0:
        raise WorkerClosed(f"no worker {claim.worker} is known here: a worker beats before it claims")
    if closed is not None:
        raise WorkerClosed(f"worker {claim.worker} was closed: {closed}")


def _sealed_text(where: str) -> str:
    return f"this ledger is sealed; its records are at {where}"


def _met(fanin: Fanin) -> bool:
    """The parent has nothing more to wait for: all ended, or too many failed."""
    return fanin.left <= 0 or fanin.failed > fanin.bearable


def _halted_text(workflow: str, control: Control | None) -> str:
    who = f" by {control.by}" if control is not None and control.by else ""
    why = f" ({control.reason})" if control is not None and control.reason else ""
    return f"{workflow!r} is halted{who}{why}; nothing starts until somebody resumes it (quire resume)"


def as_seen(record: Record, controls: Iterable[Control]) -> Record:
    """The record as people see it: what a halt cancelled by definition shows as CANCELLED before the sweep wrote it."""
    if record.status not in (Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL):
        return record
    if record.status is Status.NEEDS_APPROVAL and record.open_intents:
        return record
    for control in controls:
        if control.scope in (EVERYWHERE, record.workflow) and record.epoch < control.floor:
            return record._replace(status=Status.CANCELLED, due_at=None)
    return record
