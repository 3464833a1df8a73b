"""What one commit of a Sheets ledger will say: a draft over the replica, and what stands beside the draft.

Several verbs may be planned into one commit, so each looks at the replica through what the earlier ones decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quire.clock import next_id
from quire.ledger.base import Recovered
from quire.ledger.columns import references
from quire.ledger.memory.tables import Tables
from quire.ledger.sheets.journal_rows import rows_with_references
from quire.ledger.sheets.replica import Replica
from quire.model.change import Beaten, Change, Claim, Claimed, Holding, Order
from quire.model.event import Event
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.row import replace
from quire.model.side import Bucket, Control, Fanin, Setting, Signal, Worker
from quire.rules import moves as transition
from quire.rules import verbs
from quire.rules.draft import Draft
from quire.rules.outcome import Broke
from quire.rules.workers import expired

#: Shorter leases are renewed by every beat; longer ones by a third of the lease more, so that most beats need no write.
SHORT_LEASE = 60.0


def _slack(lease: float) -> float:
    return lease / 3 if lease >= SHORT_LEASE else 0.0


class Plan:
    def __init__(self, view: Tables, now: float) -> None:
        self.view = view
        self.draft = Draft(view, now)
        self.settings: dict[str, Setting] = {}
        self.sealed: str | None = None
        self.forgotten: list[Event] = []
        self.restored: tuple[type[Any], Sequence[Any], int] | None = None
        #: The commit begins a new generation; it writes the tab state anew.
        self.snapshot = False
        self.rewrite_state = False
        #: Who writes, for the journal's readers.
        self.by = ""

    @property
    def writes(self) -> bool:
        draft = self.draft
        return bool(
            draft.records
            or draft.receipts
            or draft.fanins
            or draft.signals
            or draft.workers
            or draft.buckets
            or draft.controls
            or draft.events
            or self.settings
            or self.forgotten
            or self.sealed is not None
            or self.restored is not None
            or self.snapshot
            or self.rewrite_state
        )

    def body(self, replica: Replica) -> tuple[dict[str, list[Any]], dict[str, str], dict[str, str], dict[str, Any]]:
        """What the entry will say: rows, the long values that are new, those of them that are files, and the rest."""
        draft, others = self.draft, dict[str, Any]()
        rows: dict[type[Any], Sequence[Any]] = {
            Record: list(draft.records.values()),
            Receipt: list(draft.receipts.values()),
            Fanin: list(draft.fanins.values()),
            Signal: list(draft.signals.values()),
            Worker: list(draft.workers.values()),
            Bucket: list(draft.buckets.values()),
            Control: list(draft.controls.values()),
            Setting: list(self.settings.values()),
            Event: draft.events,
        }
        if self.restored is not None:
            type_, given, epoch = self.restored
            rows = {type_: given}
            others |= {"restored": True, "epoch": epoch}
        elif draft.epoch != self.view.epoch:
            others["epoch"] = draft.epoch
        if self.sealed is not None:
            others["sealed"] = self.sealed
        if self.forgotten:
            others["forgotten"] = [[event.seq, event.hash] for event in self.forgotten]
        if draft.woke:
            others["woke"] = True
        short, blobs = rows_with_references(rows)
        return short, {name: text for name, text in blobs.items() if name not in replica.blobs}, {}, others

    # -- the replica, seen through the draft -----------------------------------------------------------------------

    def _worker(self, worker_id: str) -> Worker | None:
        return self.draft.workers.get(worker_id) or self.view.worker(worker_id)

    # -- verbs -----------------------------------------------------------------------------------------------------

    def renew(self, worker_id: str) -> None:
        """Every commit of a worker that lands is a beat of it (protocol 9)."""
        known = self._worker(worker_id)
        if known is None or known.closed is not None:
            return
        until = self.draft.now + known.lease_seconds + _slack(known.lease_seconds)
        if until - known.expires_at > known.lease_seconds / 10:
            self.draft.workers[worker_id] = replace(known, expires_at=until)

    def claim(self, claim: Claim) -> Claimed:
        draft = self.draft
        self.by = claim.worker
        claimed = verbs.claim(draft, self.view, claim)
        taken: list[Record] = []
        for record in claimed.records:
            if (lost := self._lost(record)) is None:
                taken.append(record)
            else:
                self._fail(record, claim.worker, lost)
        return replace(claimed, records=tuple(taken))

    def _lost(self, record: Record) -> str | None:
        """A long value of this record whose file in Drive is gone."""
        rows = [(record, Record), *((receipt, Receipt) for receipt in self.view.receipts_of(record.record_id))]
        return next((lost for row, type_ in rows for lost in sorted(references([row], type_))), None)

    def _fail(self, record: Record, worker: str, lost: str) -> None:
        """Its value cannot be had: it errs with the hash, and no step runs on something else (protocol 20)."""
        text = f"a long value of this record is lost: no file in Drive has it any more ({lost})"
        made = transition.settle(record, Broke(text), self.draft.now)
        verbs.change(self.draft, Change(next_id(), record.record_id, record.version, made.image, worker, made.lines))

    def beat(self, worker: Worker, holding: Holding) -> Beaten | None:
        draft, worker_id = self.draft, worker.worker_id
        before = draft.workers.get(worker_id)
        known = self._worker(worker_id)
        beaten = verbs.beat(draft, self.view, worker, holding)
        if beaten is None:
            return None
        self.by = worker_id
        slack = _slack(worker.lease_seconds)
        row = draft.workers[worker_id]
        row = draft.workers[worker_id] = replace(row, expires_at=row.expires_at + slack)
        if known is not None and row.expires_at - known.expires_at < slack and _same(known, row):
            # A commit of this worker landed a little while ago: its lease is long enough as it is.
            if before is not None:
                draft.workers[worker_id] = before
            else:
                del draft.workers[worker_id]
        return beaten

    def farewell(self, worker_id: str) -> None:
        self.by = worker_id
        verbs.farewell(self.draft, self.view, worker_id)

    def writers_beside(self, worker: Worker) -> int:
        """Return how many other processes have a live worker; none count against one that is known already."""
        if self._worker(worker.worker_id) is not None:
            return 0
        mine = worker.boot_id, worker.pid
        rows = {**self.view.all_workers, **self.draft.workers}.values()
        live = {(row.boot_id, row.pid) for row in rows if row.closed is None and not expired(self.draft, row)}
        return len(live - {mine})

    def recover(self, limit: int, dead: Sequence[str], *, silent: Callable[[Worker], bool]) -> Recovered:
        """``silent``: whether a worker whose lease ran out may be taken for dead (``sheets_takeover``)."""
        return verbs.recover(self.draft, self.view, limit, dead, silent=silent)

    def order(self, order: Order) -> None:
        self.by = order.by
        if order.word in ("seal", "unseal"):
            self.sealed = order.seal(self.view.sealed)
        else:
            verbs.order(self.draft, order, self.view.orders())

    def keep(self, setting: Setting) -> bool:
        known = self.settings.get(setting.name) or self.view.all_settings.get(setting.name)
        if (known.version if known is not None else 0) != setting.version:
            return False
        self.settings[setting.name] = replace(setting, version=setting.version + 1)
        return True

    def forget(self, events: Sequence[Event]) -> int:
        gone = {(event.seq, event.hash) for event in events}
        self.forgotten = [event for event in self.view.all_events if (event.seq, event.hash) in gone]
        return len(self.forgotten)


def _same(known: Worker, row: Worker) -> bool:
    return replace(known, expires_at=0.0, started_at=0.0) == replace(row, expires_at=0.0, started_at=0.0)
