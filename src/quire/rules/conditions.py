"""Which rows a rule concerns: for each condition a predicate, and the same in SQL beside it. Pure.

The predicate is asked of a row; the SQL function makes the text that finds such rows in a store. A store gives its own
spellings of values (``:now``, ``$1::float8``), and of *waits*: which index serves the question of what may be claimed.
tests/rules/test_conditions.py makes some thousand random rows and asks every condition both ways on every store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from quire.model.change import Slot
from quire.model.receipt import Receipt, Stage
from quire.model.record import CLAIMABLE, UNDO, Record, Status
from quire.model.row import replace
from quire.model.side import EVERYWHERE, Control, Fanin, Worker

#: A lease that ran out is honoured this much longer by others than by its worker (protocol 8).
GRACE = 0.1

#: What may be claimed once it is due, in words that every SQL store understands. Not ``IN``: SQLite would make a table
#: of its own for the list whenever a row is written.
WAITS = "(status = 'PENDING' OR status = 'WAITING' OR status = 'NEEDS_APPROVAL')"


def waits(record: Record) -> bool:
    """Return whether the record may be claimed once it is due."""
    return record.status in CLAIMABLE


# -- due: a claim may take the record --------------------------------------------------------------------------


def due(record: Record, slot: Slot, now: float, floor: int) -> bool:
    """Return whether a claim may take the record for this step. ``floor``: the first epoch that is not halted."""
    return (
        waits(record)
        and (record.workflow, record.step) == (slot.workflow, slot.step)
        and record.due_at is not None
        and record.due_at <= now
        and record.epoch >= floor
        and record.code_version <= slot.version
    )


def due_sql(queued: str, *, now: str, floor: str, version: str) -> str:
    """``queued``: the record waits at this step, and time makes it due."""
    return f"{queued} AND due_at <= {now} AND epoch >= {floor} AND code_version <= {version}"


def queued_sql(*, workflow: str, step: str) -> str:
    """The record waits at this step, and time makes it due: for ``due_sql``, where no column is kept for that."""
    return f"{WAITS} AND due_at IS NOT NULL AND workflow = {workflow} AND step = {step}"


# -- halted: of an epoch that a halt has ended -----------------------------------------------------------------


def halted(record: Record, controls: Iterable[Control]) -> bool:
    """Return whether the record is of a halted epoch. Only a person takes that back."""
    return any(control.scope in (EVERYWHERE, record.workflow) and record.epoch < control.floor for control in controls)


def stopped(record: Record, controls: Iterable[Control]) -> bool:
    """Return whether a halt, which stands or stood, keeps this record from going on."""
    scopes = (EVERYWHERE, record.workflow)
    return any(c.scope in scopes and (c.halted or record.epoch < c.floor) for c in controls)


def in_doubt(record: Record) -> bool:
    """Return whether the record asks about an effect that may or may not have happened."""
    return record.status is Status.NEEDS_APPROVAL and record.open_intents > 0


def under_way(record: Record) -> bool:
    """Return whether a halt leaves the record as it is for now: it runs, or asks about an effect in doubt."""
    return record.status is Status.RUNNING or in_doubt(record)


def cancelled(record: Record, controls: Iterable[Control]) -> bool:
    """Return whether a halt has cancelled the record, and that is not written down yet."""
    return waits(record) and not in_doubt(record) and halted(record, controls)


def cancelled_sql(waits: str, *, scope: str, floor: str) -> str:
    """Records that the halt of one control has cancelled."""
    return f"{waits} AND epoch < {floor} AND ({scope} = '{EVERYWHERE}' OR workflow = {scope}) AND NOT ({_IN_DOUBT})"


_IN_DOUBT = "status = 'NEEDS_APPROVAL' AND open_intents > 0"


def as_seen(record: Record, controls: Iterable[Control]) -> Record:
    """Return the record as people see it: what a halt has cancelled is CANCELLED before that is written down."""
    return replace(record, status=Status.CANCELLED, due_at=None) if cancelled(record, controls) else record


def seen_status_sql(controls: Iterable[Control]) -> str:
    """The status as people see it."""
    floors = [control for control in controls if control.floor]
    if not floors:
        return "status"
    found = " OR ".join(f"epoch < {c.floor} AND {_quoted(c.scope)} IN ('{EVERYWHERE}', workflow)" for c in floors)
    return f"CASE WHEN {WAITS} AND NOT ({_IN_DOUBT}) AND ({found}) THEN 'CANCELLED' ELSE status END"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# -- overdue, abandoned ----------------------------------------------------------------------------------------


def overdue(record: Record, now: float) -> bool:
    """Return whether the record's run is past its hard end (protocol 7)."""
    return record.status is Status.RUNNING and record.run_until is not None and record.run_until < now


def overdue_sql(*, now: str) -> str:
    return f"status = 'RUNNING' AND run_until < {now}"


def abandoned(child: Record, fanin: Fanin) -> bool:
    """Return whether a sweep cancels this child, because its parent went on without it.

    A child that runs, or has an effect in doubt, is asked to stop, once. One that undoes what it did is left alone.
    """
    if not left_alone(fanin) or child.step == UNDO:
        return False
    if child.ended:
        return held_by_halt(child)
    if child.status is Status.RUNNING or child.open_intents > 0:
        return child.cancel is None
    return True


def held_by_halt(child: Record) -> bool:
    """Return whether a halt cancelled this child, so that its parent still waits for it."""
    return child.status is Status.CANCELLED and not child.counted


def left_alone(fanin: Fanin) -> bool:
    """Return whether the parent went on without children of this fan-in that are still open."""
    return fanin.abandoned and fanin.left > 0


#: The fan-ins of which ``abandoned_sql`` finds the children.
LEFT_ALONE = 'abandoned AND "left" > 0'


def abandoned_sql(waits: str) -> str:
    """Children of a fan-in that is ``LEFT_ALONE``."""
    asked = f"{waits} AND (open_intents = 0 OR cancel IS NULL) OR status = 'RUNNING' AND cancel IS NULL"
    return f"step <> '{UNDO}' AND ({asked} OR status = 'CANCELLED' AND NOT counted)"


# -- workers ---------------------------------------------------------------------------------------------------


def expired(worker: Worker, now: float) -> bool:
    """Return whether the worker's lease has run out, with the grace that others give it."""
    return worker.closed is None and worker.expires_at + GRACE * worker.lease_seconds < now


def expired_sql(*, now: str, expires_at: str = "expires_at") -> str:
    return f"closed IS NULL AND {expires_at} + {GRACE} * lease_seconds < {now}"


def forgotten(worker: Worker, before: float, intents: Iterable[Receipt], running: Iterable[Record]) -> bool:
    """Whether a worker that was closed may be deleted: its lease ended long ago, and no row names it any more."""
    old = worker.closed is not None and worker.expires_at < before
    named: Collection[str | None] = {receipt.worker for receipt in intents} | {row.worker for row in running}
    return old and worker.worker_id not in named


def forgotten_sql(*, before: str) -> str:
    return (
        f"closed IS NOT NULL AND expires_at < {before} "
        "AND worker_id NOT IN (SELECT worker FROM receipts WHERE stage = 'intended') "
        "AND worker_id NOT IN (SELECT worker FROM records WHERE status = 'RUNNING')"
    )


# -- effects ---------------------------------------------------------------------------------------------------


def acting(receipt: Receipt, now: float) -> bool:
    """Return whether the effect of this intent may be under way at this moment."""
    return receipt.stage is Stage.INTENDED and (receipt.act_by is None or receipt.act_by > now)


def acting_sql(*, now: str) -> str:
    return f"stage = 'intended' AND (act_by IS NULL OR act_by > {now})"
