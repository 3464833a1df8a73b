"""What waits for people: what records ask, whom they ask, and in which order people read it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from quire.errors import InputError
from quire.model.record import Record, Status
from quire.model.wait import On, Wait, load_waits
from quire.workflows.approval import Vote, check_vote

#: What expires next first, what has waited longest first, or by workflow and then what expires next.
By = Literal["expiry", "age", "workflow"]
BY: tuple[By, ...] = ("expiry", "age", "workflow")


class Asked(NamedTuple):
    """One question of a record, or one effect that it asks about."""

    record: Record
    wait: Wait

    @property
    def expires_at(self) -> float:
        """When nobody is asked any more; infinite, if that never comes."""
        moment = (self.wait.about or {}).get("expires_at")
        return math.inf if moment is None else float(moment)


def ahead(waits: Sequence[Wait]) -> str:
    """Return the choice that goes ahead; where nothing is asked, any word: the client says what is wrong."""
    return str((waits[0].about or {}).get("choices", ["approve"])[0]) if waits else "approve"


def asked(records: Iterable[Record]) -> list[Asked]:
    """Return all that these records ask people."""
    return [
        Asked(record, wait)
        for record in records
        if record.status is Status.NEEDS_APPROVAL
        for wait in load_waits(record.waits)
        if wait.on in (On.QUESTION, On.DOUBT)
    ]


def may_answer(wait: Wait, who: str, groups: Mapping[str, Sequence[str]]) -> bool:
    """Return whether this waits for this person: a question that they may answer, or an effect in doubt."""
    if wait.on is On.DOUBT:
        return True
    try:
        check_vote(wait, Vote(ahead([wait]), who), groups)
    except InputError:
        return False
    return True


def in_order(found: Iterable[Asked], by: By) -> list[Asked]:
    """Sort questions. Those that are alike in this stand in the order in which they came."""

    def rank(one: Asked) -> tuple[str, float, float, str]:
        workflow = one.record.workflow if by == "workflow" else ""
        expires_at = 0.0 if by == "age" else one.expires_at
        return workflow, expires_at, one.record.updated_at, one.record.record_id

    return sorted(found, key=rank)


def records_of(found: Iterable[Asked]) -> list[Record]:
    """Return whose questions these are, each record once, in the order of its first question."""
    return list({one.record.record_id: one.record for one in found}.values())
