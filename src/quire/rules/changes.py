"""Changes: a start, a move or facts beside the image, each decided against the row as it is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.change import Applied, Change, Claim, Conflict, Refused, Slot, Verdict
from quire.model.codec import dump, parse
from quire.model.event import Line
from quire.model.receipt import Kind, Receipt, Stage
from quire.model.record import ENDED, UNDO, Record, Status, with_side_fields
from quire.model.row import replace
from quire.model.wait import On, Wait, dump_waits, load_waits
from quire.rules import adoption, orders
from quire.rules import moves as transition
from quire.rules.claims import Claiming, limited
from quire.rules.orders import HALTED
from quire.rules.outcome import Yielded
from quire.rules.sketch import halted_text, sealed_text
from quire.workflows.fanout import met

#: What an effect's receipt may become: what was done stays done, or is undone; what is undone stays so (protocol 2).
_STAGES = frozenset(
    {
        (Stage.INTENDED, Stage.DONE),
        (Stage.INTENDED, Stage.VOID),
        (Stage.VOID, Stage.DONE),
        (Stage.DONE, Stage.UNDONE),
    }
)


_NOT_WHOLE = Refused("whole", "another change of the same commit was refused, and they land together or not at all")


class Changing(Claiming):
    """What becomes of a change: it lands, it meets another version, or it is refused."""

    def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        """Decide these changes, in order; all or none of them, if one of them says so."""
        if not any(change.whole for change in changes):
            return [self.change(change) for change in changes]
        trial = self.apart()
        verdicts = [trial.change(change) for change in changes]
        if all(isinstance(verdict, Applied) for verdict in verdicts):
            vars(self).update(vars(trial))
            return verdicts
        return [_NOT_WHOLE if isinstance(verdict, Applied) else verdict for verdict in verdicts]

    def change(self, change: Change) -> Verdict:
        """Decide one change."""
        current = self.record(change.record_id)
        landed = False
        if change.receipts and current is not None:
            current, landed = self._completed(change, current)
        if self.view.sealed and not (landed and change.image is None):
            return Refused("sealed", sealed_text(self.view.sealed))
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
            if (known.stage, receipt.stage) not in _STAGES and not receipt.gives_value(known):
                landed |= receipt.stage in (known.stage, Stage.DONE)  # delivered again
                continue
            done = replace(receipt, seq=known.seq, at=known.at, done_at=self.now)
            self.receipts[receipt.key] = done
            landed = True
            if known.stage is Stage.INTENDED:
                row = replace(row, open_intents=max(0, row.open_intents - 1))
                wakes.append(receipt.key)
            lines.append(Line(f"effect.{receipt.stage}", dump(told)))
        if lines or row is not current:
            row = self._put(current, row, lines, change.change_id)
        if change.image is None:
            if orders.may_be_obeyed(row) and not self.view.sealed:
                return self._obey(row, change.change_id), landed
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
        if change.revive:
            return self._revived(change, current)
        if change.priority is not None:
            line = Line("prioritised", dump({"priority": change.priority} | ({"by": change.by} if change.by else {})))
            row = replace(current, priority=change.priority)
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
            row = replace(row, losses=0)  # it gets on: whatever killed its workers, this step is no trap for them
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
                self.receipts[receipt.key] = replace(known, act_by=receipt.act_by)  # its actor has ended
            return row  # this very change, sent again
        if receipt.stage is Stage.INTENDED:
            if known is not None and known.stage not in (Stage.VOID, Stage.UNDONE):
                return Refused("intent", f"the effect {receipt.name!r} is {known.stage} already under this key")
            if (refused := self._may_begin(row, change)) is not None:
                return refused
            told = {"effect": receipt.name, "key": receipt.key}
            lines.append(Line("effect.intended", dump(told)))
            receipt = replace(receipt, seq=row.log_seq + len(lines), at=self.now)
            self.receipts[receipt.key] = receipt
            return replace(row, open_intents=row.open_intents + 1, facts=row.facts + 1)
        if known is not None and known.stage is Stage.DONE and receipt.kind is not Kind.EACH:
            return row  # answered already: the first answer stands
        self.receipts[receipt.key] = replace(receipt, seq=row.log_seq + len(lines), at=self.now, done_at=self.now)
        if receipt.kind is Kind.MAP:
            self._abandon(row.record_id, receipt.key)
        return replace(row, facts=row.facts + 1)

    def _may_begin(self, row: Record, change: Change) -> Refused | None:
        """An effect begins when its intent commits: not after a halt, nor over a wish to cancel (protocol 15, 6)."""
        if row.cancel is not None:
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
        if current.step == UNDO and change.cancel and parse(change.cancel).get("undo"):
            return Applied(current, self.now)  # it is being undone already
        line = Line("cancel_asked", change.cancel or "{}")
        row = replace(current, cancel=orders.joined(current.cancel, change.cancel or "{}"))
        return Applied(self._put(current, row, [line], change.change_id), self.now)

    def _revived(self, change: Change, current: Record) -> Verdict:
        """A person takes a halt back for a record that is still under way: whoever holds it goes on, or takes it over.

        The epoch of such a record lies beside its image: the version, and with it the holder's next move, stays.
        """
        if not orders.under_way(current):
            return Conflict(current, self.now)
        if (control := self.halted(current.workflow)) is not None:
            return Refused("halted", halted_text(current.workflow, control))
        if not self.outdated(current):
            return Applied(current, self.now)
        line = Line("revived", dump({"by": change.by, "epoch": self.epoch}))
        row = replace(current, epoch=self.epoch)
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
            return Refused("halted", halted_text(image.workflow, control))
        due_at = image.due_at if image.due_at is None else max(image.due_at, self.now)
        fields = {"epoch": self.epoch, "created_at": self.now, "updated_at": self.now, "due_at": due_at}
        woke = self.woke
        row = self._put(None, replace(image, **fields), change.lines, change.change_id)
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
            if self._change_at(change.record_id, change.version + 1) == change.change_id:
                return Applied(current, self.now, again=True)
            return Conflict(current, self.now)
        if change.receipts and any(receipt.open for receipt in change.receipts):
            return Refused("intent", "an intent is committed before its act, by a change of its own")
        held = current.status is Status.RUNNING
        if held and change.worker != current.worker:
            return Refused("running", f"{current.record_id!r} is running under worker {current.worker}")
        if not held and change.worker is not None:
            return Conflict(current, self.now)
        image = with_side_fields(image, current)
        lines = list(change.lines)
        outcome = self._bent(current, image, lines)
        if isinstance(outcome, Refused):
            return outcome
        image, as_asked = outcome
        if as_asked and change.children:
            for child in change.children:
                if self.record(child.record_id) is not None:
                    return Refused("exists", f"a child {child.record_id!r} cannot start: a record of that id exists")
        cancels = not held and orders.cancels(change.lines)
        if not held and not image.ended and (current.ended or (current.counted and not cancels)):
            refused = self._uncount(current)
            if refused is None:
                image = replace(image, counted=False)
            elif not cancels:  # what it did may be undone whatever its parent made of it
                return refused
        elif not held and current.ended and current.status is not image.status:
            self._recount(current, image)
        if image.facts and image.visit != current.visit:
            image = replace(image, facts=0)
        if change.receipts:
            image = self._answers(change, image, lines)
        if as_asked:
            if change.fanins or change.children:
                self._born(change)
            if image.waits is not None:
                image = self._already(image, lines)
        if change.keep is not None and image.status is Status.RUNNING:
            image = self._kept(change.keep, current, image)
        anew = not (current.ended and orders.edits(lines))
        ends = image.status in ENDED and not current.counted and anew and self._counts(image, lines)
        if ends and image.parent_id is not None:
            image = replace(image, counted=True)
        if image.cancel is not None:
            image = replace(image, cancel=orders.left_of_wish(current, image, lines))
        row = self._put(current, image, lines, change.change_id)
        self.woke |= change.frees
        if ends and row.parent_id is not None and row.generation is not None:
            self._child_ended(row, change.change_id)
        if row.fanouts and (row.ended or row.visit != current.visit) and orders.ends(lines):
            self._abandon(row.record_id, None)
        return Applied(row, self.now)

    def _obey(self, row: Record, change_id: str) -> Record:
        """Nothing stands in the way of the wish beside this record any more."""
        stop = self._stopped(row)
        assert stop is not None
        return self._finish(row, stop.image, list(stop.lines), change_id)

    def _stopped(self, row: Record) -> transition.Move | None:
        """What becomes of a record that somebody wishes to cancel when nobody holds it any more."""
        if row.cancel is None or row.open_intents:
            return None
        return transition.obeyed(row, self.now, row.cancel)

    def _finish(self, row: Record, image: Record, lines: list[Line], change_id: str) -> Record:
        """A move that the ledger makes by itself and that may end the record."""
        image = replace(image, cancel=orders.left_of_wish(row, image, lines))
        if image.visit != row.visit and image.facts:
            image = replace(image, facts=0)
        ends = image.status in ENDED and not row.counted and row.parent_id is not None and self._counts(image, lines)
        if ends:
            image = replace(image, counted=True)
        after = self._put(row, image, lines, change_id)
        if ends and after.generation is not None:
            self._child_ended(after, change_id)
        if after.fanouts and (after.ended or after.visit != row.visit) and orders.ends(lines):
            self._abandon(after.record_id, None)
        return after

    def _bent(self, current: Record, image: Record, lines: list[Line]) -> tuple[Record, bool] | Refused:
        """What the change must become where a halt, a wish to cancel or an open intent stands in its way."""
        held = current.status is Status.RUNNING
        outcome = self._of_holder(current, image, lines) if held else self._of_person(current, image, lines)
        if isinstance(outcome, Refused) or not current.open_intents:
            return outcome
        image, _ = outcome
        stays = image.status not in ENDED and image.visit == current.visit
        if stays or (not held and image.ended and orders.edits(lines)):
            return outcome
        base = replace(
            current, version=image.version, updated_at=self.now, last_error=image.last_error, epoch=image.epoch
        )
        if held:
            lines.clear()
        elif orders.cancels(lines):
            # It is asked what happened first. The wish is kept beside it, and obeyed when that is known.
            base = replace(base, cancel=orders.joined(current.cancel, orders.wish_of(lines)))
            lines[:] = [Line("cancel_asked", base.cancel or "")]
        else:
            return Refused(
                "intent",
                f"{current.open_intents} effects of {current.record_id!r} are in doubt; "
                f"say first whether they happened (quire resolve {current.record_id} --happened | --not)",
            )
        return self._doubted(base, lines), False

    def _doubted(self, image: Record, lines: list[Line]) -> Record:
        keys = [(receipt.key, receipt.name) for receipt in self._intents(image.record_id)]
        lines.append(Line("doubted", dump({"effects": [name for _, name in keys]})))
        return transition.doubt(image, keys)

    def _of_holder(self, current: Record, image: Record, lines: list[Line]) -> tuple[Record, bool]:
        """A move of the worker that holds the record, as a wish to cancel and a halt leave it."""
        if current.cancel is not None and orders.gives_way(current, image, current.cancel):
            stop = transition.obeyed(current, self.now, current.cancel)
            lines[:] = stop.lines
            return with_side_fields(stop.image, current), False
        if image.epoch < current.epoch:
            # The halt was taken back while it ran. A holder that stops for it gives the record back instead.
            image = replace(image, epoch=current.epoch)
            if orders.only_stops(image):
                go = transition.settle(current, Yielded("resumed"), self.now)
                lines[:] = go.lines
                return go.image, False
        halt, _, floor = self.orders(image.workflow)
        halts = halt is not None or image.epoch < floor
        if halts and orders.only_stops(image):
            # It keeps what it waits for, and what else it stopped with: it may be revived where it stood.
            lines[:] = [HALTED]
            return replace(transition.halted(current), version=image.version, updated_at=self.now), False
        if halts and image.status not in ENDED:
            lines.append(HALTED)
            return transition.halted(image), False
        return image, True

    def _of_person(self, current: Record, image: Record, lines: list[Line]) -> tuple[Record, bool] | Refused:
        """A move of a record that nobody holds, as a wish to cancel and a halt leave it."""
        if image.cancel is not None and orders.taken_back(lines) and (current.ended or self.cancelled(current)):
            image = replace(image, cancel=None)
        if image.ended:
            if orders.edits(lines) and not current.ended:
                lines.insert(0, HALTED)  # what held by definition is written down
            return image, True
        halt, _, floor = self.orders(image.workflow)
        epoch = max(image.epoch, current.epoch) if halt is not None else self.epoch
        if orders.may_be_obeyed(image) and image.cancel is not None:
            stop = transition.obeyed(current, self.now, image.cancel)
            lines += stop.lines
            return replace(with_side_fields(stop.image, current), epoch=epoch), False
        says = orders.says(lines)
        halted = current.epoch < floor and not current.ended and says
        if halt is not None or halted:
            asks = any(wait.on is On.DOUBT for wait in load_waits(current.waits))
            if not asks or not (says or (current.open_intents and orders.cancels(lines))):
                return Refused("halted", halted_text(image.workflow, halt))
            if current.open_intents:
                return image, True
            lines.append(HALTED)
            return transition.halted(image), True
        return replace(image, epoch=epoch), True

    def _answers(self, change: Change, image: Record, lines: list[Line]) -> Record:
        """Answers (calls, sleeps, signals, questions) that ride with a move."""
        count = 0
        for receipt in change.receipts:
            if receipt.kind is Kind.MAP and receipt.stage is Stage.VOID:
                # A person retries the parent: the children that failed are done again.
                count += self.receipt(receipt.key) is None and receipt.visit == image.visit
                self.receipts[receipt.key] = receipt
            if receipt.stage is Stage.DONE and receipt.kind not in (Kind.ONCE, Kind.UNDO):
                known = self.receipt(receipt.key)
                if known is None or known.stage is not Stage.DONE or receipt.kind is Kind.EACH:
                    made = replace(receipt, seq=image.log_seq + len(lines), at=self.now, done_at=self.now)
                    self.receipts[receipt.key] = made
                    count += receipt.visit == image.visit
                    if receipt.kind is Kind.MAP:
                        self._abandon(image.record_id, receipt.key)
        return replace(image, facts=image.facts + count) if count else image

    def _born(self, change: Change) -> None:
        for fanin in change.fanins:
            self.fanins[fanin.parent_id, fanin.generation] = fanin
        for child in change.children:
            born = transition.start(child, self.now)
            # Not the epoch of its parent: a halt of its own workflow that has ended since does not concern it.
            row = replace(born.image, epoch=self.epoch, created_at=self.now)
            if row.due_at is not None:
                row = replace(row, due_at=max(row.due_at, self.now))
            self._put(None, row, born.lines, change.change_id)

    def _already(self, image: Record, lines: list[Line]) -> Record:
        """The record is about to wait for something that has come already: then it does not wait (protocol 4)."""
        if image.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
            return image
        waits = load_waits(image.waits)
        if adoption.asked(image) is not None:
            return image  # whatever has come, a person says whether it goes on
        answered: list[Wait] = []
        signals = list(self._signals(image.record_id)) if any(w.on is On.SIGNAL for w in waits) else []
        for wait in waits:
            if wait.on is On.SIGNAL:
                taken = next((signal for signal in signals if signal.name == wait.name), None)
                if taken is not None:
                    signals.remove(taken)
                    self._take(taken, wait, image)
                    image = replace(image, facts=image.facts + 1)
                    answered.append(wait)
            elif wait.on is On.CHILDREN and wait.generation is not None:
                fanin = self.fanin(image.record_id, wait.generation)
                if fanin is None or met(fanin):
                    answered.append(wait)
            elif wait.on is On.TURN and image.parent_id is not None and image.generation is not None:
                fanin = self.fanin(image.parent_id, image.generation)
                if fanin is None or image.place is None or image.place < fanin.next_place:
                    answered.append(wait)  # its turn came while a halt held it
            elif wait.on is On.DOUBT:
                receipt = self.receipt(wait.key)
                if receipt is not None and receipt.stage is not Stage.INTENDED:
                    answered.append(wait)
        if not answered:
            return image
        # The wait for children stays: the next pass finds by it which children they are.
        left = dump_waits(wait for wait in waits if wait not in answered or wait.on is On.CHILDREN)
        lines.append(Line("woken", dump({"by": f"{answered[0].on} {answered[0].name}".strip()})))
        return replace(image, status=Status.PENDING, due_at=self.now, waits=left, question=None)

    def _kept(self, slot: Slot, current: Record, image: Record) -> Record:
        """Staying for the next step is a claim: with its slots, its tokens and the controls, or not at all."""
        if (limited(slot) and self._free(slot, leaving=current) < 1) or self.paused(image.workflow):
            return transition.unkept(image, self.now)
        if slot.rate is not None:
            self._take_token(slot.rate)
        return image


def _sooner(receipt: Receipt, known: Receipt) -> bool:
    """The same intent, but its actor has ended before its time: nobody acts on it any more."""
    return receipt.open and known.open and (receipt.act_by or 0.0) < (known.act_by or 0.0)
