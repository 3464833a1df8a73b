"""The tables of a ledger in memory: what a draft looks at, and where its after-images go.

The memory ledger is made of them, and so is the replica that a ledger without queries of its own keeps.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from quire.ledger.columns import key_of
from quire.model.change import Count, Query, Slot
from quire.model.event import Event
from quire.model.receipt import Receipt, Stage
from quire.model.record import CLAIMABLE, Record, Status
from quire.model.row import replace
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker
from quire.rules import conditions
from quire.rules.draft import Draft


class Tables:
    """Rows by their keys, with the few indexes that claims and fan-ins need. Implements ``rules.rows.Rows``."""

    def __init__(self) -> None:
        self.epoch = 1
        self.sealed = ""
        self.all_records: dict[str, Record] = {}
        self.all_receipts: dict[str, Receipt] = {}
        self.all_fanins: dict[tuple[str, int], Fanin] = {}
        self.all_signals: dict[str, Signal] = {}
        self.all_workers: dict[str, Worker] = {}
        self.all_buckets: dict[str, Bucket] = {}
        self.all_controls: dict[str, Control] = {}
        self.all_settings: dict[str, Setting] = {}
        self.all_events: list[Event] = []
        self.last_seq = 0
        self._claimable: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._running: defaultdict[tuple[str, str | None], dict[str, None]] = defaultdict(dict)
        self._receipts_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._fanins_of: defaultdict[str, dict[int, None]] = defaultdict(dict)
        self._signals_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._events_of: defaultdict[str, list[Event]] = defaultdict(list)
        self._children_of: defaultdict[str, dict[str, None]] = defaultdict(dict)

    # -- rules.rows.View --------------------------------------------------------------------------------------------

    def record(self, record_id: str) -> Record | None:
        return self.all_records.get(record_id)

    def receipt(self, key: str) -> Receipt | None:
        return self.all_receipts.get(key)

    def intents(self, record_id: str) -> list[Receipt]:
        return [r for r in self.receipts_of(record_id) if r.stage is Stage.INTENDED]

    def fanin(self, parent_id: str, generation: int) -> Fanin | None:
        return self.all_fanins.get((parent_id, generation))

    def fanins(self, parent_id: str) -> list[Fanin]:
        return [self.all_fanins[parent_id, generation] for generation in self._fanins_of.get(parent_id, ())]

    def signals(self, record_id: str) -> list[Signal]:
        return [s for s in self.signals_of(record_id) if s.taken_by is None]

    def signal(self, signal_id: str) -> Signal | None:
        return self.all_signals.get(signal_id)

    def worker(self, worker_id: str) -> Worker | None:
        return self.all_workers.get(worker_id)

    def control(self, scope: str) -> Control | None:
        return self.all_controls.get(scope)

    def bucket(self, name: str) -> Bucket | None:
        return self.all_buckets.get(name)

    def running(self, workflow: str, step: str | None) -> int:
        return len(self._running.get((workflow, step), ()))

    def change_at(self, record_id: str, version: int) -> str | None:
        made = (event.change_id for event in self._events_of.get(record_id, ()) if event.version == version)
        return next(made, None)  # later lines of the version are facts

    def has_line(self, record_id: str, change_id: str) -> bool:
        return any(event.change_id == change_id for event in self._events_of.get(record_id, ()))

    # -- writing -----------------------------------------------------------------------------------------------

    def apply(self, draft: Draft) -> list[Event]:
        """Take over what the draft decided; answers the events as they are kept."""
        self.epoch = draft.epoch
        for record in draft.records.values():
            self.put_record(record)
        for receipt in draft.receipts.values():
            self.all_receipts[receipt.key] = receipt
            self._receipts_of[receipt.record_id][receipt.key] = None
        for place, fanin in draft.fanins.items():
            self.all_fanins[place] = fanin
            self._fanins_of[fanin.parent_id][fanin.generation] = None
        for signal in draft.signals.values():
            self.all_signals[signal.signal_id] = signal
            self._signals_of[signal.record_id][signal.signal_id] = None
        self.all_workers |= draft.workers
        self.all_buckets |= draft.buckets
        self.all_controls |= draft.controls
        kept = []
        for event in draft.events:
            self.last_seq += 1
            event = replace(event, seq=self.last_seq)
            kept.append(event)
            self.all_events.append(event)
            self._events_of[event.record_id].append(event)
        return kept

    def put_record(self, record: Record) -> None:
        before = self.all_records.get(record.record_id)
        if before is not None:
            self._claimable[before.workflow, before.step].pop(before.record_id, None)
            for step in (before.step, None):
                self._running[before.workflow, step].pop(before.record_id, None)
        elif record.parent_id is not None:
            self._children_of[record.parent_id][record.record_id] = None
        self.all_records[record.record_id] = record
        if record.status is Status.RUNNING:
            for step in (record.step, None):
                self._running[record.workflow, step][record.record_id] = None
        elif record.status in CLAIMABLE and record.due_at is not None:
            self._claimable[record.workflow, record.step][record.record_id] = None

    # -- queries -----------------------------------------------------------------------------------------------

    def orders(self) -> Iterable[Control]:
        return self.all_controls.values()

    def due(self, slot: Slot, now: float, floor: int, limit: int) -> list[Record]:
        """Return all records that are due at this step, however many: the limit spares nothing here."""
        rows = (self.all_records[record_id] for record_id in self._claimable.get((slot.workflow, slot.step), ()))
        due = [row for row in rows if conditions.due(row, slot, now, floor)]
        return sorted(due, key=lambda row: (row.rank, row.record_id))

    def next_due(self, slot: Slot, now: float) -> float | None:
        rows = (self.all_records[record_id] for record_id in self._claimable.get((slot.workflow, slot.step), ()))
        moments = (row.due_at for row in rows)
        return min((moment for moment in moments if moment is not None and moment > now), default=None)

    def held_by(self, worker_id: str) -> list[Record]:
        return [row for row in self._all_running() if row.worker == worker_id]

    def open_workers(self) -> list[Worker]:
        return [worker for worker in self.all_workers.values() if worker.closed is None]

    def overdue(self, now: float) -> list[Record]:
        return [row for row in self._all_running() if conditions.overdue(row, now)]

    def _all_running(self) -> Iterator[Record]:
        for (_, step), ids in list(self._running.items()):
            if step is None:
                for record_id in list(ids):
                    yield self.all_records[record_id]

    def cancelled(self, controls: Iterable[Control], limit: int) -> list[Record]:
        halts = [control for control in controls if control.floor]
        found = (row for row in self.all_records.values() if conditions.cancelled(row, halts))
        return list(islice(found, limit)) if halts else []

    def abandoned(self, limit: int) -> list[tuple[Record, Fanin]]:
        found = [
            (child, fanin)
            for fanin in self.all_fanins.values()
            if conditions.left_alone(fanin)
            for child in self.children_of(fanin.parent_id)
            if child.generation == fanin.generation and conditions.abandoned(child, fanin)
        ]
        return found[:limit]

    def receipts_of(self, record_id: str) -> list[Receipt]:
        return [self.all_receipts[key] for key in self._receipts_of.get(record_id, ())]

    def signals_of(self, record_id: str) -> list[Signal]:
        rows = (self.all_signals[signal_id] for signal_id in self._signals_of.get(record_id, ()))
        return sorted(rows, key=lambda signal: signal.seq)

    def events_of(self, record_id: str) -> list[Event]:
        return list(self._events_of.get(record_id, ()))

    def open_intents(self, now: float) -> list[Receipt]:
        return [receipt for receipt in self.all_receipts.values() if conditions.acting(receipt, now)]

    def find(self, query: Query, seen: Iterable[Record]) -> list[Record]:
        """``seen``: the records to look through, as people see them."""
        rows = [row for row in seen if _fits(row, query)]
        if query.order == "updated":
            rows.sort(key=lambda row: (-row.updated_at, row.record_id))
        elif query.order == "place":
            rows.sort(key=lambda row: (row.place if row.place is not None else -1, row.record_id))
        else:
            rows.sort(key=lambda row: row.record_id)
        return rows[: query.limit]

    def children_of(self, parent_id: str) -> list[Record]:
        return [self.all_records[record_id] for record_id in self._children_of.get(parent_id, ())]

    def counts(self, seen: Iterable[Record]) -> list[Count]:
        table: defaultdict[tuple[str, str, Status], int] = defaultdict(int)
        for row in seen:
            table[row.workflow, row.step, row.status] += 1
        return [Count(*place, count) for place, count in sorted(table.items())]

    def forget(self, events: Sequence[Event]) -> int:
        gone = {(event.seq, event.hash) for event in events}
        before = len(self.all_events)
        self.all_events = [e for e in self.all_events if (e.seq, e.hash) not in gone]
        for record_id in {event.record_id for event in events}:
            self._events_of[record_id] = [e for e in self._events_of[record_id] if (e.seq, e.hash) not in gone]
        return before - len(self.all_events)

    # -- copying -----------------------------------------------------------------------------------------------

    def rows_of(self, type_: type[Any]) -> list[Any]:
        """Return all rows of one type, in the order of their key."""
        kept: dict[type[Any], Iterable[Any]] = {
            Record: self.all_records.values(),
            Receipt: self.all_receipts.values(),
            Signal: self.all_signals.values(),
            Fanin: self.all_fanins.values(),
            Worker: self.all_workers.values(),
            Control: self.all_controls.values(),
            Bucket: self.all_buckets.values(),
            Setting: self.all_settings.values(),
            Event: self.all_events,
        }
        return sorted(kept[type_], key=key_of)

    def put_rows(self, type_: type[Any], given: Sequence[Any], epoch: int) -> None:
        """Take over rows of another ledger as they are; those that are there already are replaced."""
        self.epoch = epoch
        for row in given:
            if type_ is Event:
                self._put_event(row)
            elif type_ is Setting:
                self.all_settings[row.name] = row
            else:
                draft = Draft(self, 0.0)
                table: dict[type[Any], Any] = {
                    Record: draft.records,
                    Receipt: draft.receipts,
                    Signal: draft.signals,
                    Fanin: draft.fanins,
                    Worker: draft.workers,
                    Control: draft.controls,
                    Bucket: draft.buckets,
                }
                key = key_of(row)
                table[type_][key if type_ is Fanin else key[0]] = row
                self.apply(draft)

    def _put_event(self, event: Event) -> None:
        """A line never changes: one that is there already stays."""
        place = bisect_left(self.all_events, event.seq, key=lambda known: known.seq)
        if place < len(self.all_events) and self.all_events[place].seq == event.seq:
            return
        self.all_events.append(event)
        self._events_of[event.record_id].append(event)
        self.last_seq = max(self.last_seq, event.seq)


def _fits(row: Record, query: Query) -> bool:
    return (
        (not query.workflow or row.workflow == query.workflow)
        and (not query.step or row.step == query.step)
        and (not query.status or row.status in query.status)
        and (not query.parent_id or row.parent_id == query.parent_id)
        and (query.generation is None or row.generation == query.generation)
        and (not query.text or query.text in row.record_id)
        and (not query.after or row.record_id > query.after)
        and (query.before is None or (row.updated_at < query.before and not row.forgotten))
    )
