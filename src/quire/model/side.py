"""What stands beside the records: signals, fan-ins, workers, controls, buckets, settings. One row type each."""

from __future__ import annotations

from quire.model.row import Row


class Signal(Row, frozen=True):
    """Something sent to a record. Kept until a wait of that name takes it."""

    signal_id: str
    record_id: str
    name: str
    #: JSON text.
    value: str
    at: float
    #: The order in which waits take them.
    seq: int
    #: The receipt's key that took it.
    taken_by: str | None


class Fanin(Row, frozen=True):
    """The open children of one ``run.map``: falls as they end; at zero, or as its policy says, the parent is due."""

    parent_id: str
    generation: int
    #: The receipt's key under which the parent waits for it.
    key: str
    total: int
    left: int
    failed: int
    #: More failures than this and the parent goes on at once: it cannot succeed any more.
    bearable: int
    #: At most this many children may be under way; None: all.
    limit: int | None
    active: int
    #: The next child that waits for its turn.
    next_place: int
    #: Children's ids are ``prefix`` + place (``fanout.child_id``).
    prefix: str
    #: The parent ended or went on without them: open children are cancelled by the sweep.
    abandoned: bool


class Worker(Row, frozen=True):
    """One incarnation of a worker process. An id is never used again."""

    worker_id: str
    label: str
    host: str
    boot_id: str
    pid: int
    started_at: float
    expires_at: float
    lease_seconds: float
    #: Why it was closed; None while it lives. A closed worker writes nothing but receipts.
    closed: str | None
    #: JSON text: the (workflow, step) pairs that it can run.
    knows: str


class Control(Row, frozen=True):
    """What holds for all records (scope ``*``) or for one workflow (its name)."""

    scope: str
    halted: bool
    #: Records of an older epoch that nobody holds, and in which nothing is in doubt, are CANCELLED by definition.
    floor: int
    paused: bool
    by: str
    at: float
    reason: str


class Bucket(Row, frozen=True):
    """A token bucket. Filled by looking: tokens grow with the time since ``at``."""

    name: str
    tokens: float
    at: float


class Setting(Row, frozen=True):
    """A named value of the ledger, replaced by compare-and-swap on its version."""

    name: str
    #: JSON text.
    value: str
    version: int


EVERYWHERE = "*"
