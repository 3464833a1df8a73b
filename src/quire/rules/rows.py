"""What a store lets the rules see: the rows as they are, after the store has taken its locks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from quire.model.change import Slot
from quire.model.receipt import Receipt
from quire.model.record import Record
from quire.model.side import Bucket, Control, Fanin, Signal, Worker


class View(Protocol):
    """The rows that a draft may look at by their keys."""

    #: Raised by every halt and resume.
    epoch: int
    #: Where the records went, if the ledger is sealed.
    sealed: str

    def record(self, record_id: str) -> Record | None: ...

    def receipt(self, key: str) -> Receipt | None: ...

    def intents(self, record_id: str) -> Sequence[Receipt]:
        """Return the record's open intents."""
        ...

    def fanin(self, parent_id: str, generation: int) -> Fanin | None: ...

    def fanins(self, parent_id: str) -> Sequence[Fanin]: ...

    def signals(self, record_id: str) -> Sequence[Signal]:
        """Return the record's signals that no wait has taken, in order."""
        ...

    def signal(self, signal_id: str) -> Signal | None: ...

    def worker(self, worker_id: str) -> Worker | None: ...

    def control(self, scope: str) -> Control | None: ...

    def bucket(self, name: str) -> Bucket | None: ...

    def running(self, workflow: str, step: str | None) -> int:
        """Return how many records run in this step, or in the whole workflow."""
        ...

    def change_at(self, record_id: str, version: int) -> str | None:
        """Return the id of the change that made this version."""
        ...

    def has_line(self, record_id: str, change_id: str) -> bool:
        """Return whether the record's log has a line of this change."""
        ...


class Rows(View, Protocol):
    """The rows that ``verbs`` looks for. What each condition means stands in ``conditions``, also as SQL."""

    def orders(self) -> Iterable[Control]:
        """Return all controls."""
        ...

    def due(self, slot: Slot, now: float, floor: int, limit: int) -> Sequence[Record]:
        """Return the first records that a claim may take for this step, in order of rank."""
        ...

    def next_due(self, slot: Slot, now: float) -> float | None:
        """Return when the next record of this step falls due, after this moment."""
        ...

    def held_by(self, worker_id: str) -> Sequence[Record]:
        """Return the records that run under this worker."""
        ...

    def open_workers(self) -> Sequence[Worker]:
        """Return the workers that are not closed, each with its lease on the clock of ``now``."""
        ...

    def overdue(self, now: float) -> Sequence[Record]:
        """Return the records whose run is past its hard end."""
        ...

    def cancelled(self, controls: Iterable[Control], limit: int) -> Sequence[Record]:
        """Return records that one of these halts has cancelled, and that do not say so yet."""
        ...

    def abandoned(self, limit: int) -> Sequence[tuple[Record, Fanin]]:
        """Return children that a sweep cancels, because their parent went on without them."""
        ...
