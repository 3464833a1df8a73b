"""What a store lets the rules see: the rows as they are, after the store has taken its locks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
        """Whether the record's log has a line of this change."""
        ...
