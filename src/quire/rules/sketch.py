"""What a decision stands on, and what is written down of it. Pure.

A ``View`` has the rows as they are; a ``Sketch`` sees them through what was decided so far, so that two changes of one
record, or a parent and its children, may stand in one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Protocol, Self

from quire.model.event import Event, Line, chained
from quire.model.receipt import Receipt, Stage
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Bucket, Control, Fanin, Signal, Worker
from quire.rules import orders


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


class Sketch:
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
        self._new: set[str] = set()
        #: What was put, in order: the row before and after, and the change. What follows from it is seldom asked for,
        #: and made then: how many more run in each step, counted over so many of these.
        self._puts: list[tuple[Record | None, Record, str]] = []
        self._running: dict[tuple[str, str], int] = {}
        self._counted = 0
        self._ordered: dict[str, tuple[Control | None, bool, int]] = {}

    def apart(self) -> Self:
        """A copy: what is decided over it leaves this one as it is."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set):
                setattr(other, name, value.copy())
        return other

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
        more = self._more_running()
        if step is not None:
            return self.view.running(workflow, step) + more.get((workflow, step), 0)
        return self.view.running(workflow, None) + sum(count for (of, _), count in more.items() if of == workflow)

    @property
    def has_new(self) -> bool:
        """Records come into the ledger with this draft."""
        return bool(self._new)

    def is_new(self, record_id: str) -> bool:
        """The record comes into the ledger with this draft."""
        return record_id in self._new

    def _intents(self, record_id: str) -> list[Receipt]:
        known = {receipt.key: receipt for receipt in self.view.intents(record_id)}
        known |= {key: receipt for key, receipt in self.receipts.items() if receipt.record_id == record_id}
        found = (receipt for receipt in known.values() if receipt.stage is Stage.INTENDED)
        return sorted(found, key=lambda receipt: (receipt.seq, receipt.key))

    def orders(self, workflow: str) -> tuple[Control | None, bool, int]:
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
        return self.orders(workflow)[0]

    def paused(self, workflow: str) -> bool:
        return self.orders(workflow)[1]

    def outdated(self, record: Record) -> bool:
        """The record is of an epoch that was halted: if it waits or pends, it is CANCELLED by definition."""
        return record.epoch < self.floor(record.workflow)

    def cancelled(self, record: Record) -> bool:
        """The record is CANCELLED by definition: of a halted epoch, and neither running nor in doubt."""
        return not record.ended and self.outdated(record) and not orders.under_way(record)

    def floor(self, workflow: str) -> int:
        """The first epoch of this workflow that is not halted."""
        return self.orders(workflow)[2]

    # -- writing down ------------------------------------------------------------------------------------------

    def _put(self, before: Record | None, after: Record, lines: Iterable[Line], change_id: str) -> Record:
        """The row after a decision: its lines are chained."""
        record_id, version, n, hash_, at = after.record_id, after.version, after.log_seq, after.log_hash, self.now
        was = n
        for line in lines:
            n += 1
            hash_ = chained(hash_, record_id, n, version, at, line.kind, line.body)
            self.events.append(
                Event(0, record_id, n, version, at, line.kind, line.body, after.run_id, change_id, hash_)
            )
        if n != was:
            after = replace(after, log_seq=n, log_hash=hash_)
        if before is None:
            self._new.add(record_id)
        if after.due_at is not None and after.status is not Status.RUNNING:
            self.woke = True
        self._puts.append((before, after, change_id))
        self.records[record_id] = after
        return after

    def _more_running(self) -> dict[tuple[str, str], int]:
        """How many more records run in each step than before."""
        for before, after, _ in self._puts[self._counted :]:
            for record, by in ((before, -1), (after, +1)):
                if record is not None and record.status is Status.RUNNING:
                    place = (record.workflow, record.step)
                    self._running[place] = self._running.get(place, 0) + by
        self._counted = len(self._puts)
        return self._running

    def _change_at(self, record_id: str, version: int) -> str | None:
        """The change that made this version of the record, here or before."""
        for before, after, change_id in self._puts:
            if (
                after.record_id == record_id
                and after.version == version
                and (before is None or before.version != version)
            ):
                return change_id
        return self.view.change_at(record_id, version)


def sealed_text(where: str) -> str:
    return f"this ledger is sealed; its records are at {where}"


def halted_text(workflow: str, control: Control | None) -> str:
    who = f" by {control.by}" if control is not None and control.by else ""
    why = f" ({control.reason})" if control is not None and control.reason else ""
    return f"{workflow!r} is halted{who}{why}; nothing starts until somebody resumes it (quire resume)"
