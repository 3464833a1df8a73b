"""What this process knows of the ledger without asking the server."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from quire.clock import SYSTEM, Clock
from quire.ledger.postgres.fast.last_pages import LastPages
from quire.ledger.postgres.fast.queue_marks import QueueMarks
from quire.ledger.postgres.view import View
from quire.model.record import Record, Status
from quire.model.side import Control, Worker

#: How many images of records that run here are kept.
MOST_IMAGES = 20_000


class KnownOrders(NamedTuple):
    """The orders as they were when this process read them last."""

    epoch: int
    sealed: str
    controls: dict[str, Control]
    signature: str


class Known:
    """Rows as this process left them. Nobody decides over them alone: the server says whether they still hold."""

    def __init__(self, clock: Clock | None) -> None:
        self._clock = clock
        #: None: the orders were not read yet.
        self.orders: KnownOrders | None = None
        #: Records that run here.
        self.images: dict[str, Record] = {}
        self.last_pages = LastPages()
        self.marks = QueueMarks(clock or SYSTEM)
        #: Workers of this process, as they were at their last beat.
        self.workers: dict[str, Worker] = {}
        self._offset = 0.0

    @property
    def now(self) -> float:
        """The server's time, as far as this process knows it."""
        return SYSTEM.boottime() + self._offset if self._clock is None else self._clock.now()

    def heard(self, now: float) -> None:
        """Take over the server's time. The answer took a while to come, so the largest difference is the best one."""
        offset = now - SYSTEM.boottime()
        if offset > self._offset or offset < self._offset - 1.0:
            self._offset = offset

    def read(self, view: View) -> None:
        """Take over the orders that were read into this view, and the time."""
        self.orders = KnownOrders(view.epoch, view.sealed, view.controls, view.signature)
        self.heard(view.now)

    def remember(self, changed: Collection[Record]) -> None:
        """Keep the images of records that run, because their holder here will change them next."""
        for record in changed:
            if record.status is Status.RUNNING:
                self.images[record.record_id] = record
            else:
                self.images.pop(record.record_id, None)
        while len(self.images) > MOST_IMAGES:
            del self.images[next(iter(self.images))]
        self.marks.put(changed)
