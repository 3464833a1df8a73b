"""Where records meet: children and the fan-in of their parent, signals and those who wait for them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.change import Applied, Conflict, Refused, Send, Verdict
from quire.model.codec import dump
from quire.model.event import Line
from quire.model.receipt import Kind, Receipt, Stage, key_of
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Fanin, Signal
from quire.model.wait import On, Wait, load_waits
from quire.rules import moves as transition
from quire.rules.orders import by_halt
from quire.rules.sketch import Sketch, halted_text, sealed_text
from quire.workflows.fanout import met


class Meeting(Sketch):
    """What one record's move does to another."""

    # -- fan-in ------------------------------------------------------------------------------------------------

    def _child_ended(self, child: Record, change_id: str) -> None:
        assert child.parent_id is not None
        assert child.generation is not None
        fanin = self.fanin(child.parent_id, child.generation)
        if fanin is None:
            return
        fanin = replace(
            fanin,
            left=fanin.left - 1,
            failed=fanin.failed + (child.status is not Status.DONE),
            # A child that ends before its turn was not under way.
            active=max(0, fanin.active - (child.place is None or child.place < fanin.next_place)),
        )
        while fanin.limit is not None and fanin.next_place < fanin.total and fanin.active < fanin.limit:
            waiting = self.record(f"{fanin.prefix}{fanin.next_place}")
            if waiting is None:
                break
            fanin = replace(fanin, next_place=fanin.next_place + 1)
            if waiting.status is Status.WAITING and not fanin.abandoned:
                go = transition.turn(waiting, self.now)
                self._put(waiting, go.image, go.lines, change_id)
            if not waiting.counted:  # it may have ended before its turn, and may undo what it did since
                fanin = replace(fanin, active=fanin.active + 1)
        self.fanins[fanin.parent_id, fanin.generation] = fanin
        parent = self.record(fanin.parent_id)
        if parent is None or not met(fanin) or parent.status not in (Status.WAITING, Status.NEEDS_APPROVAL):
            return
        if self.halted(parent.workflow) is not None or self.outdated(parent):
            return
        for wait in load_waits(parent.waits):
            if wait.on is On.CHILDREN and wait.generation == fanin.generation:
                go = transition.wake(parent, self.now, "", "its children")
                self._put(parent, go.image, go.lines, change_id)
                return

    def _counts(self, child: Record, lines: Sequence[Line]) -> bool:
        """Whether this end is told to the parent. What a halt cancelled together with its parent is not: either both
        go on again where they stood, or neither does (protocol 15)."""
        if child.parent_id is None or not by_halt(lines):
            return True
        parent = self.record(child.parent_id)
        return parent is not None and self.halted(parent.workflow) is None and not self.outdated(parent)

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
            self.fanins[fanin.parent_id, fanin.generation] = replace(fanin, failed=failed)

    def _uncount(self, child: Record) -> Refused | None:
        """An ended child that goes on again counts again, while its parent still waits for it."""
        if child.parent_id is None or child.generation is None:
            return None
        if not child.counted:  # a halt cancelled it with its parent, which may have ended or undone all since
            known = self.fanin(child.parent_id, child.generation)
            if known is None or not known.abandoned:
                return None
        # One that undoes what it did and is still counted was let go by its parent before that.
        fanin = self._awaited(child) if child.ended else None
        if fanin is None:
            return Refused(
                "parent",
                f"{child.record_id!r} cannot go on again: its parent has gone on without it; retry the parent, which "
                f"does its failed children again (quire retry {child.parent_id})",
            )
        self.fanins[fanin.parent_id, fanin.generation] = replace(
            fanin,
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
                self.fanins[place] = replace(fanin, abandoned=True)
                self.woke = True  # a worker that rests looks after them at once

    # -- signals -----------------------------------------------------------------------------------------------

    def _signal(self, signal_id: str) -> Signal | None:
        return self.signals.get(signal_id) or self.view.signal(signal_id)

    def _signals(self, record_id: str) -> list[Signal]:
        known = {signal.signal_id: signal for signal in self.view.signals(record_id)}
        known |= {id_: signal for id_, signal in self.signals.items() if signal.record_id == record_id}
        return sorted((s for s in known.values() if s.taken_by is None), key=lambda signal: signal.seq)

    def _take(self, signal: Signal, wait: Wait, record: Record) -> None:
        self.signals[signal.signal_id] = replace(signal, taken_by=wait.key)
        self.receipts[wait.key] = Receipt(
            key=wait.key,
            record_id=record.record_id,
            step=record.step,
            visit=record.visit,
            name=wait.name,
            kind=Kind.WAIT,
            stage=Stage.DONE,
            value=signal.value,
            nonce=signal.signal_id,
            seq=record.log_seq,
            at=self.now,
            done_at=self.now,
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
            return Refused("sealed", sealed_text(self.view.sealed))
        row = self.record(sent.record_id)
        if row is None:
            return Conflict(None, self.now)
        if (known := self._signal(sent.signal_id)) is not None and not _same(known, sent):
            # What happened outside may concern several records: the id of it is kept apart for each.
            sent = replace(sent, signal_id=key_of(sent.record_id, sent.name, sent.signal_id))
            known = self._signal(sent.signal_id)
        if known is not None:
            return Applied(row, self.now, again=True)
        if row.ended:
            return Refused("ended", f"{sent.record_id!r} takes no signals: it is {row.status}")
        if (control := self.halted(row.workflow)) is not None or self.outdated(row):
            return Refused("halted", halted_text(row.workflow, control))
        told = {"signal": sent.name, "id": sent.signal_id} | ({"by": sent.by} if sent.by else {})
        line = Line("signalled", dump(told))
        row = self._put(row, row, [line], sent.signal_id)
        signal = Signal(sent.signal_id, sent.record_id, sent.name, sent.value, self.now, row.log_seq, None)
        self.signals[signal.signal_id] = signal
        if row.status in (Status.WAITING, Status.NEEDS_APPROVAL):
            for wait in load_waits(row.waits):
                if wait.on is On.SIGNAL and wait.name == sent.name:
                    self._take(signal, wait, row)
                    row = replace(row, facts=row.facts + 1)
                    go = transition.wake(row, self.now, wait.key, f"signal {sent.name}")
                    row = self._put(row, go.image, go.lines, sent.signal_id)
                    break
        return Applied(row, self.now)


def _same(signal: Signal, sent: Send) -> bool:
    return (signal.record_id, signal.name) == (sent.record_id, sent.name)
