"""What is asked of a ledger, and what it answers: changes and verdicts, claims, beats, recoveries, signals, orders.

Every one carries an id of its own, made before the first try, so that repeating it after a lost answer returns the
first verdict (protocol 13).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quire.model.event import Line
from quire.model.receipt import Receipt
from quire.model.record import Record, Status
from quire.model.row import Row
from quire.model.side import Control, Fanin, Worker


class Rate(Row, frozen=True):
    """At most ``count`` per ``per`` seconds over all workers, under a name that steps and effects may share."""

    name: str
    count: float
    per: float


class Slot(Row, frozen=True):
    """What a run of this step takes: the caps and the rate that the ledger holds over all workers."""

    workflow: str
    step: str
    #: Hard end of a run, in seconds from the claim.
    timeout: float
    cap: int | None = None
    workflow_cap: int | None = None
    rate: Rate | None = None
    #: How many more this worker takes of this step now.
    free: int = 1_000_000
    #: The step's other names, if it was renamed: what runs under them takes its slots, too.
    also: tuple[str, ...] = ()
    #: The version of the workflow that the worker has: records of newer ones are left to others.
    version: int = 1 << 53


class Change(Row, frozen=True):
    """Replace version n of a record by this image, with its lines, receipts and children; whole or not at all.

    Without an image it is *facts*: lines and receipts that stand beside the image, fenced by the same version but not
    raising it. Completed effects (``once`` and ``undo`` receipts that are not intents any more) are fenced by their
    intent alone and land whatever happened to the record meanwhile (protocol 2).
    """

    change_id: str
    record_id: str
    #: The version that it replaces, or stands on; 0: the record must not exist yet.
    version: int
    image: Record | None
    #: The worker that holds the record; None for a person and for the engine itself.
    worker: str | None = None
    lines: tuple[Line, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    children: tuple[Record, ...] = ()
    fanins: tuple[Fanin, ...] = ()
    #: The image asks to stay RUNNING for its next step, or a new record to begin under the worker that starts it: that
    #: is a claim, with all its checks (protocol 16).
    keep: Slot | None = None
    #: Tokens that the intents take.
    rates: tuple[Rate, ...] = ()
    #: Cancel a RUNNING record: JSON text for ``Record.cancel``.
    cancel: str | None = None
    #: A new priority: it lies beside the image.
    priority: int | None = None
    #: The step that is left has a cap: whoever waits for a slot of it is woken.
    frees: bool = False
    #: Who gives the new priority, for the log; other acts name the person in their lines.
    by: str = ""
    #: It lands only if all changes of its commit do.
    whole: bool = False
    #: Take a halt back for a record that is under way, or in doubt, since before it: this is its epoch from now on.
    revive: int = 0


class Applied(Row, frozen=True):
    """The change is in the ledger; ``record`` is the row as it is now."""

    record: Record
    #: The store's clock at the commit.
    now: float
    #: It was there before: the same start, or this very change sent again.
    again: bool = False
    #: Beside a RUNNING record: somebody asked to cancel it, or halted it. Its holder ends its pass (protocol 6, 15).
    stop: bool = False


class Conflict(Row, frozen=True):
    """The record is not at the version that the change replaces. Its completed effects landed all the same."""

    #: The row as it is; None if there is none.
    record: Record | None
    now: float


class Refused(Row, frozen=True):
    """The ledger will not take this change, now or later (or, with ``until``, not before then)."""

    #: One word: halted, sealed, exists, running, cancelled, intent, parent, value, rate, whole.
    code: str
    reason: str
    until: float | None = None


Verdict = Applied | Conflict | Refused


class Claim(Row, frozen=True):
    """Due records of these steps become this worker's."""

    claim_id: str
    worker: str
    slots: tuple[Slot, ...]
    limit: int
    #: It was sent before and no answer came: records that it took then are given again.
    again: bool = False
    #: So many records it took before these, of other steps.
    before: int = 0


class Claimed(Row, frozen=True):
    records: tuple[Record, ...]
    now: float
    #: When something of these steps falls due next, if nothing is due now; None: nothing is.
    next_due_at: float | None = None
    #: The highest priority among due records that were left.
    left_priority: int | None = None
    #: Raised by every halt and resume; 0: the store does not say.
    epoch: int = 0


class Holding(Row, frozen=True):
    """What a worker says that it holds: for each record the version."""

    versions: Mapping[str, int]
    #: Claims whose answer has not come yet: their records are not orphans.
    claims: tuple[str, ...] = ()
    #: An id made when this was said: of claims that were made later it says nothing, though they may have come first.
    said: str = ""


class Beaten(Row, frozen=True):
    """The ledger's answer to a beat: both sides then agree on what the worker holds."""

    now: float
    #: The worker holds these, the ledger does not give them to it: cancel them locally.
    lost: tuple[str, ...]
    #: Somebody asked to cancel these.
    cancelled: tuple[str, ...]


class Recovered(NamedTuple):
    """What one call of ``recover`` did."""

    workers: int = 0
    records: int = 0
    swept: int = 0
    #: There is more to sweep: call again soon.
    more: bool = False
    #: The workers that are not closed: a process that knows one of them to be dead says so in its next call.
    open: tuple[Worker, ...] = ()
    #: What was resumed, and has not brought back all yet that a halt cancelled (``rules.returning``).
    returning: tuple[Control, ...] = ()


class Send(Row, frozen=True):
    """A signal on its way."""

    signal_id: str
    record_id: str
    name: str
    value: str
    #: Who sends it, for the log.
    by: str = ""


class Order(Row, frozen=True):
    """What a person says to the whole ledger, or to one workflow."""

    #: halt, pause, resume, returned, seal, unseal
    word: str
    scope: str
    by: str
    reason: str = ""
    #: For seal: where the records go.
    target: str = ""
    #: For seal and unseal: only over this seal ("": none stands); None: over any. The standing says which one stands.
    over: str | None = None
    #: For resume: what a halt cancelled comes back, too.
    cancelled: bool = False
    #: For returned: all that the resume of this epoch brings back is back.
    epoch: int = 0

    def seal(self, now: str) -> str:
        """The seal that stands after this order, over the one that stands ``now``."""
        if self.over is not None and self.over != now:
            return now
        return (self.target or "elsewhere") if self.word == "seal" else ""


class Standing(Row, frozen=True):
    """How the ledger stands after an order, or when asked."""

    now: float
    epoch: int
    controls: tuple[Control, ...]
    #: Intents without a receipt before their ``act_by``: what was under way.
    under_way: tuple[Receipt, ...]
    sealed: str = ""
    #: How many records a resume brought back; None: it was not to bring any back.
    returned: int | None = None


class Reach(Row, frozen=True):
    """How many records a halt stops, and how many go on when what halts cancelled is brought back."""

    #: Neither ended nor cancelled by a halt: so many a halt stops. Three parts of these follow.
    open: int
    pending: int
    running: int
    asking: int
    #: So many ``resume --cancelled`` lets go on, and so many of these asked a person something.
    held: int
    held_asking: int
    #: There were too many cancelled records to count: at least so many are held.
    more: bool = False


class Query(Row, frozen=True):
    """Which records. Empty fields do not restrict."""

    workflow: str = ""
    step: str = ""
    status: tuple[Status, ...] = ()
    parent_id: str = ""
    generation: int | None = None
    #: Part of the record id.
    text: str = ""
    #: Records after this id, in order of ids; for paging.
    after: str = ""
    limit: int = 100
    #: Records that have not changed since this moment, and whose data are not forgotten yet.
    before: float | None = None
    #: ``id``, ``updated`` (newest first), ``oldest`` or ``place``.
    order: str = "id"


class Count(Row, frozen=True):
    workflow: str
    step: str
    status: Status
    count: int
