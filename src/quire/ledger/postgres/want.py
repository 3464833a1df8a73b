"""What a transaction locks and reads before it decides: collected from the changes, and extended by what it missed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from quire.ledger.postgres.view import Missing, View
from quire.model.change import Change, Slot
from quire.model.receipt import Kind
from quire.model.record import ENDED
from quire.model.wait import On, load_waits


@dataclass
class Want:
    """The rows, by their keys."""

    #: Caps and rates, which are locked by name.
    caps: set[tuple[str, str | None]] = field(default_factory=set)
    buckets: set[str] = field(default_factory=set)
    #: Workers whose row is locked, and workers that shall claim nothing meanwhile.
    workers: set[str] = field(default_factory=set)
    quiet: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    #: Of these records, the ones that should not exist yet.
    unborn: set[str] = field(default_factory=set)
    receipts: set[str] = field(default_factory=set)
    intents: set[str] = field(default_factory=set)
    fanins: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    signals: set[str] = field(default_factory=set)
    changes: set[tuple[str, int]] = field(default_factory=set)
    #: Pairs of a record and a change, of which it is asked whether the record's log has a line of the change.
    lines: set[tuple[str, str]] = field(default_factory=set)
    held: set[str] = field(default_factory=set)

    def of_slot(self, slot: Slot) -> None:
        if slot.cap is not None:
            self.caps.update((slot.workflow, name) for name in (slot.step, *slot.also))
        if slot.workflow_cap is not None:
            self.caps.add((slot.workflow, None))
        if slot.rate is not None:
            self.buckets.add(slot.rate.name)

    def of_change(self, change: Change) -> None:
        self.records.add(change.record_id)
        for receipt in change.receipts:
            self.receipts.add(receipt.key)
            if receipt.kind is Kind.MAP:
                self.fanins.add(change.record_id)
        self.buckets.update(rate.name for rate in change.rates)
        image = change.image
        if image is None:
            if not change.receipts:  # lines only: were they written before?
                self.lines.add((change.record_id, change.change_id))
            return
        if change.version == 0:
            self.unborn.add(change.record_id)
            if change.keep is not None and change.worker is not None:
                self.of_slot(change.keep)
                self.quiet.add(change.worker)
            return
        for child in change.children:
            self.records.add(child.record_id)
            self.unborn.add(child.record_id)
        if image.generation is not None and image.parent_id is not None and (image.ended or change.worker is None):
            self.records.add(image.parent_id)
            self.fanins.add(image.parent_id)
        if image.fanouts:
            self.fanins.add(image.record_id)
        if image.waits is not None:
            for wait in load_waits(image.waits):
                if wait.on is On.SIGNAL:
                    self.waiting.add(image.record_id)
                elif wait.on is On.DOUBT:
                    self.receipts.add(wait.key)
        if change.keep is not None:
            self.of_slot(change.keep)

    def everything_of(self, changes: Iterable[Change]) -> None:
        """Add all that the rules may ask for if a change does not land as asked, for all these changes at once."""
        for change in changes:
            self.intents.add(change.record_id)
            self.fanins.add(change.record_id)
            self.waiting.add(change.record_id)
            if change.image is not None and change.image.parent_id is not None:
                self.records.add(change.image.parent_id)
                self.fanins.add(change.image.parent_id)

    def mark_absent(self, view: View) -> None:
        """Take every row of these for absent, until it is found."""
        for record_id in self.records:
            view.records.setdefault(record_id, None)
        for key in self.receipts:
            view.receipts.setdefault(key, None)
        for signal_id in self.signals:
            view.known_signals.setdefault(signal_id, None)
        for worker_id in self.workers | self.quiet:
            view.workers.setdefault(worker_id, None)
        for name in self.buckets:
            view.buckets.setdefault(name, None)
        for pair in self.changes:
            view.changes.setdefault(pair, None)
        view.lines |= dict.fromkeys(self.lines, False)
        view.counts |= dict.fromkeys(self.caps, 0)
        view.intents_of |= {record_id: [] for record_id in self.intents}
        view.fanins_of |= {parent_id: [] for parent_id in self.fanins}
        view.signals_of |= {record_id: [] for record_id in self.waiting}

    def missed(self, missing: Missing) -> bool:
        """Read this too. Return False if it was read already, so that reading it again is no use."""
        wanted: set[Any] = getattr(self, _WANTED[missing.kind])
        known = missing.key in wanted
        wanted.add(missing.key)
        return not known


#: The kind of row that a draft asked for, and the field that wants it.
_WANTED = {
    "record": "records",
    "receipt": "receipts",
    "intents": "intents",
    "fanins": "fanins",
    "signals": "waiting",
    "signal": "signals",
    "worker": "workers",
    "bucket": "buckets",
    "running": "caps",
    "change": "changes",
    "line": "lines",
}


def still_wanted(view: View, changes: Sequence[Change]) -> Want:
    """Return what the rules will ask for, now that the records are known."""
    want = Want()
    endings: dict[str, int] = {}
    for change in changes:
        image, current = change.image, view.records.get(change.record_id)
        if image is None or current is None or change.version == 0:
            continue
        if current.version != change.version:
            want.changes.add((change.record_id, change.version + 1))
        if current.open_intents and (image.status in ENDED or image.visit != current.visit):
            want.intents.add(change.record_id)
        if image.parent_id is not None:
            endings[image.parent_id] = endings.get(image.parent_id, 0) + 1
    for row in view.held:
        if row.cancel is not None:  # the record ends when its worker lets go of it
            want.intents.add(row.record_id)
            want.fanins.add(row.record_id)
            if row.parent_id is not None:
                want.fanins.add(row.parent_id)
                want.records.add(row.parent_id)
    want.records |= turns_of(view, endings)
    want.records -= view.records.keys()
    want.fanins -= view.fanins_of.keys()
    want.intents -= view.intents_of.keys()
    return want


def turns_of(view: View, endings: dict[str, int]) -> set[str]:
    """Return the children whose turn comes when so many others end. Their parent is locked: nobody else wakes them."""
    turns: set[str] = set()
    for parent_id, count in endings.items():
        for fanin in view.fanins_of.get(parent_id, ()):
            if fanin.limit is not None:
                last = min(fanin.total, fanin.next_place + count + max(0, fanin.limit - fanin.active))
                places = range(fanin.next_place, last)
                turns.update(f"{fanin.prefix}{place}" for place in places)
    return turns - view.records.keys()
