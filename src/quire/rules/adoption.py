"""What a record of a copied or restored book asks before it goes on there (protocol 11). Pure.

What was done in the other book, or in the part that is gone, is not known in this one: each open record asks a person,
and keeps where it stood inside the question, so that nothing else wakes it. Effects under way are asked of as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quire.model.receipt import key_of
from quire.model.record import Record, Status
from quire.model.row import replace
from quire.model.wait import On, Wait, dump_waits, load_waits
from quire.workflows import approval

GO_ON = "go-on"
CANCEL = "cancel"

_STOOD = "stood"


def question(record: Record, why: str, number: int, now: float) -> Wait:
    """Return the question of this record. One that was asked already, of a copy of a copy, keeps what it knew.

    ``number``: of this adoption. A record may be adopted several times.
    """
    waits = load_waits(record.waits)
    before = next((found for wait in waits if (found := stood(wait)) is not None), None)
    if before is None:
        before = {
            "status": record.status,
            "due_at": record.due_at,
            "question": record.question,
            "waits": dump_waits(wait for wait in waits if wait.on is not On.DOUBT),
        }
        if record.status is Status.RUNNING or (record.status is Status.NEEDS_APPROVAL and not before["waits"]):
            before |= {"status": Status.PENDING, "due_at": now}
    asked = approval.question(
        key=key_of("adopted", record.record_id, number),
        text=f"{why}: does it go on here, at {record.step!r}?",
        show=None,
        edit=(),
        choices=(GO_ON, CANCEL),
        by=None,
        quorum=1,
        remind=None,
        escalate=None,
        expires=None,
        now=now,
    )
    return replace(asked, about={**(asked.about or {}), _STOOD: before})


def stood(wait: Wait) -> Mapping[str, Any] | None:
    """Where the record stood, if this is the question of an adopted one."""
    found: Mapping[str, Any] | None = (wait.about or {}).get(_STOOD)
    return found


def to_ask_anew(wait: Wait, now: float) -> Wait:
    """The question of an adopted record whose data are edited: what it asked before is not asked as it stood."""
    before = dict(stood(wait) or {})
    waits = load_waits(before["waits"])
    left = [kept for kept in waits if kept.on is not On.QUESTION]
    if len(left) == len(waits):
        return wait
    before |= {"status": Status.PENDING, "due_at": now, "question": None, "waits": dump_waits(left)}
    return replace(wait, about={**(wait.about or {}), _STOOD: before})


def asked(record: Record) -> Wait | None:
    """The question of adoption that this record still asks."""
    if record.status is not Status.NEEDS_APPROVAL:
        return None
    return next((wait for wait in load_waits(record.waits) if stood(wait) is not None), None)
