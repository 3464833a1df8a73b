"""A record: one row, one piece of work going through a workflow.

The fields are the columns of the table ``records``, in order. The comment says when a field changes. A change replaces
the whole *image* of version n; what stands under "beside the image" may be changed by others while a worker holds the
record, so the ledger keeps it up itself and ignores it in an image that it is given (protocol 6).
"""

from __future__ import annotations

from enum import StrEnum

from quire.model.receipt import fingerprint, key_of
from quire.model.row import Row, replace


class Status(StrEnum):
    """Where a record stands. Exactly one at any time."""

    # An enum's own is written in Python; sets of statuses are asked several times for every move.
    __hash__ = str.__hash__

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    NEEDS_APPROVAL = "NEEDS_APPROVAL"
    DONE = "DONE"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


#: The number of tries of a record whose data are forgotten: only what makes it known remains.
FORGOTTEN = -1
ENDED = frozenset({Status.DONE, Status.ERROR, Status.CANCELLED})
#: What a claim may take once it is due.
CLAIMABLE = frozenset({Status.PENDING, Status.WAITING, Status.NEEDS_APPROVAL})

#: The engine's own step: undoes receipts, newest intent first (protocol 18).
UNDO = "@undo"

#: One point of priority is worth this much waiting: so priorities age, and nothing starves.
PRIORITY_SECONDS = 60.0
#: A priority lies between this and its negative: about two years of waiting.
MOST_PRIORITY = 1_000_000


class Record(Row, frozen=True):
    #: Never changes; given by the user or made by the engine; unique in the ledger.
    record_id: str
    workflow: str
    #: At every move. People see it as ``next_step``; empty once the record has come to its end.
    step: str
    #: Goes up when a step is entered by a move; not by a retry, a resume or a takeover.
    visit: int
    status: Status
    #: JSON text. The working copy: what people see, also while the step waits.
    data: str
    #: JSON text of the data as at entry of the step; None while ``data`` still is that.
    entry: str | None
    #: JSON text, written with DONE; None again after a rewind.
    result: str | None
    #: Goes up when a try fails; 0 when the step changes, saves its place, or is retried.
    attempt: int
    #: How often a worker was lost under it, up to two: then it is a suspect (``transition.suspected``). Above that, how
    #: many processes died in which it ran alone. 0 when the step changes, gets on, or is retried.
    losses: int
    #: Not before this: back-off, sleep, timeout, reminder. None: nothing but an answer makes it due.
    due_at: float | None
    #: Hard end of the current run, set by the claim: past it the record is taken over although its worker lives.
    run_until: float | None
    #: The incarnation that holds it; set by the claim, None when it is released.
    worker: str | None
    #: The last run: one worker's hold on the record, from claim to release.
    run_id: str | None
    parent_id: str | None
    #: Which fan-in of its parent the record counts for, and its place in it.
    generation: int | None
    place: int | None
    #: True once its end was subtracted from its parent's fan-in (protocol 5).
    counted: bool
    #: Goes up by one with every committed change of the image. It is also the fence: who names an older one has lost.
    version: int
    #: The halt epoch in which the record was created or resumed. While it runs or is in doubt, a resume may raise it.
    epoch: int
    #: JSON text: what the record waits for, by name (see ``wait``), and what came of it while its step goes on.
    waits: str | None
    #: What a person is asked, in words.
    question: str | None
    note: str | None
    last_error: str | None
    dedupe_key: str | None
    #: Fingerprint of the workflow and data that it was started with: the same start again returns the record.
    started_as: str
    #: The workflow version that the data is of: the one that the record started with, until it is migrated.
    code_version: int
    #: How many fan-ins the record has opened.
    fanouts: int
    #: JSON text, while the record is being undone: the status and reason with which it ends afterwards.
    ending: str | None
    created_at: float
    updated_at: float
    # -- beside the image: the ledger keeps these up; an image cannot change them -------------------------------
    priority: int
    #: JSON text: who asked to cancel the record while it ran or was in doubt, why, and whether to undo. It is kept
    #: until it is obeyed (see ``quire.rules.orders``).
    cancel: str | None
    #: How many events the record's log has, and the hash of the last one: the chain's end.
    log_seq: int
    log_hash: str
    #: Receipts in the ledger under the current visit: 0 spares a claim the look-up.
    facts: int
    #: Intents without a receipt. No step is left over an open intent.
    open_intents: int

    @property
    def forgotten(self) -> bool:
        """Whether only what makes the record known remains."""
        return self.attempt == FORGOTTEN

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def rank(self) -> float | None:
        """The order of claiming: earliest due first, a point of priority counting as a minute of waiting."""
        return None if self.due_at is None else self.due_at - PRIORITY_SECONDS * self.priority


#: What of a record only its holder changes is its *image*. These fields stand beside it: others may change them.
SIDE_FIELDS = ("priority", "cancel", "log_seq", "log_hash", "facts", "open_intents")


def with_side_fields(image: Record, row: Record) -> Record:
    """Return the image with its side fields taken from the row, because an image cannot change those."""
    return replace(
        image,
        priority=row.priority,
        cancel=row.cancel,
        log_seq=row.log_seq,
        log_hash=row.log_hash,
        facts=row.facts,
        open_intents=row.open_intents,
    )


def started_as(workflow: str, given: str) -> str:
    """Return the fingerprint of a start's input. ``given``: text of ``given.bare``.

    Starting the same id again with the same fingerprint returns the existing record; another one is refused.
    """
    return fingerprint(key_of(workflow, given))


def new_record(
    *,
    record_id: str,
    workflow: str,
    step: str,
    data: str,
    now: float,
    status: Status = Status.PENDING,
    due_at: float | None = None,
    parent_id: str | None = None,
    generation: int | None = None,
    place: int | None = None,
    waits: str | None = None,
    dedupe_key: str | None = None,
    code_version: int = 1,
    priority: int = 0,
    given: str | None = None,
) -> Record:
    """Return a record before its first commit: version 0, in the ledger's current epoch once it is there."""
    return Record(
        record_id=record_id,
        workflow=workflow,
        step=step,
        visit=1,
        status=status,
        data=data,
        entry=None,
        result=None,
        attempt=0,
        losses=0,
        due_at=due_at,
        run_until=None,
        worker=None,
        run_id=None,
        parent_id=parent_id,
        generation=generation,
        place=place,
        counted=False,
        version=0,
        epoch=0,
        waits=waits,
        question=None,
        note=None,
        last_error=None,
        dedupe_key=dedupe_key,
        started_as=started_as(workflow, data if given is None else given),
        code_version=code_version,
        fanouts=0,
        ending=None,
        created_at=now,
        updated_at=now,
        priority=priority,
        cancel=None,
        log_seq=0,
        log_hash="",
        facts=0,
        open_intents=0,
    )
