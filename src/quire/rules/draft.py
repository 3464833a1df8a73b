"""A draft: the rows as they stand after what was decided so far. It holds data and decides nothing. Pure.

A store locks the rows that a request may touch and lets the rules decide over a ``Draft``. Each rule is a function that
takes the draft, reads rows from it, and puts the changed ones into it. So two changes of one record, or of a parent and
its child, may stand in one batch. The draft then holds the after-image of every row that changes; the store writes
these and commits. So version checks, fan-in, signals, caps, halts and doubts are written once for all stores, and a
store is only a way to lock, read and write (protocol 3, 4).

Where a rule stands: ``changes`` (a change lands, meets another version, or is refused), ``bending`` (what an order
makes of a move), ``orders`` (halts, pauses, requests to cancel), ``effects`` (intents, receipts, doubts), ``waiting``
(signals and waits), ``children`` (fan-ins), ``ending`` (what follows from a record's end), ``claims`` (who may begin),
``workers`` (leases and takeover), ``sweeps`` (what orders left to be written down).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from quire.model.event import Event, Line, chained
from quire.model.receipt import Receipt, Stage
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.side import Bucket, Control, Fanin, Signal, Worker
from quire.rules.rows import View


class Draft:
    """Rows over a view, and the after-images of those that change. Nothing is written until the store does it."""

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
        #: What ``orders`` found out about each workflow; it changes only with ``controls``.
        self.ordered: dict[str, tuple[Control | None, bool, int]] = {}

    # -- trying ------------------------------------------------------------------------------------------------

    def apart(self) -> Draft:
        """Return a copy: what is decided over it leaves this draft as it is."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set):
                setattr(other, name, value.copy())
        return other

    def become(self, other: Draft) -> None:
        """Take over what was decided over a copy."""
        vars(self).update(vars(other))

    # -- rows, as they stand by now ----------------------------------------------------------------------------

    def record(self, record_id: str) -> Record | None:
        found = self.records.get(record_id)
        return found if found is not None else self.view.record(record_id)

    def receipt(self, key: str) -> Receipt | None:
        return self.receipts.get(key) or self.view.receipt(key)

    def fanin(self, parent_id: str, generation: int) -> Fanin | None:
        return self.fanins.get((parent_id, generation)) or self.view.fanin(parent_id, generation)

    def signal(self, signal_id: str) -> Signal | None:
        return self.signals.get(signal_id) or self.view.signal(signal_id)

    def worker(self, worker_id: str) -> Worker | None:
        return self.workers.get(worker_id) or self.view.worker(worker_id)

    def bucket(self, name: str) -> Bucket | None:
        return self.buckets.get(name) or self.view.bucket(name)

    def control(self, scope: str) -> Control | None:
        return self.controls.get(scope) or self.view.control(scope)

    def intents(self, record_id: str) -> list[Receipt]:
        """Return the record's open intents, in order."""
        known = {receipt.key: receipt for receipt in self.view.intents(record_id)}
        known |= {key: receipt for key, receipt in self.receipts.items() if receipt.record_id == record_id}
        found = (receipt for receipt in known.values() if receipt.stage is Stage.INTENDED)
        return sorted(found, key=lambda receipt: (receipt.seq, receipt.key))

    def fanins_of(self, parent_id: str) -> list[Fanin]:
        """Return all fan-ins of this parent."""
        fanins = {(fanin.parent_id, fanin.generation): fanin for fanin in self.view.fanins(parent_id)}
        fanins |= {place: fanin for place, fanin in self.fanins.items() if fanin.parent_id == parent_id}
        return list(fanins.values())

    def signals_of(self, record_id: str) -> list[Signal]:
        """Return the record's signals that no wait has taken, in order."""
        known = {signal.signal_id: signal for signal in self.view.signals(record_id)}
        known |= {id_: signal for id_, signal in self.signals.items() if signal.record_id == record_id}
        return sorted((s for s in known.values() if s.taken_by is None), key=lambda signal: signal.seq)

    def running(self, workflow: str, step: str | None) -> int:
        """Return how many records run in this step, or in the whole workflow."""
        more = self._more_running()
        if step is not None:
            return self.view.running(workflow, step) + more.get((workflow, step), 0)
        return self.view.running(workflow, None) + sum(count for (of, _), count in more.items() if of == workflow)

    def change_at(self, record_id: str, version: int) -> str | None:
        """Return the id of the change that made this version of the record, here or before."""
        for before, after, change_id in self._puts:
            if (
                after.record_id == record_id
                and after.version == version
                and (before is None or before.version != version)
            ):
                return change_id
        return self.view.change_at(record_id, version)

    def has_line(self, record_id: str, change_id: str) -> bool:
        """Return whether the record's log has a line of this change, here or before."""
        own = any(event.change_id == change_id for event in self.events)
        return own or self.view.has_line(record_id, change_id)

    @property
    def has_new(self) -> bool:
        """Whether records come into the ledger with this draft."""
        return bool(self._new)

    def is_new(self, record_id: str) -> bool:
        """Return whether the record comes into the ledger with this draft."""
        return record_id in self._new

    # -- writing down ------------------------------------------------------------------------------------------

    def put(self, before: Record | None, after: Record, lines: Iterable[Line], change_id: str) -> Record:
        """Write down the row after a decision, and chain its lines to its log. Return the row as it then stands.

        Rules call ``ending.put`` instead where the record may end.
        """
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

    def put_fanin(self, fanin: Fanin) -> None:
        self.fanins[fanin.parent_id, fanin.generation] = fanin

    def _more_running(self) -> dict[tuple[str, str], int]:
        """Return how many more records run in each step than before."""
        for before, after, _ in self._puts[self._counted :]:
            for record, by in ((before, -1), (after, +1)):
                if record is not None and record.status is Status.RUNNING:
                    place = (record.workflow, record.step)
                    self._running[place] = self._running.get(place, 0) + by
        self._counted = len(self._puts)
        return self._running
