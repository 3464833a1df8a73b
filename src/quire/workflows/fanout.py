"""Fan-out: the ids of children, how many may fail, and what their ends come to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quire.model.record import Record, Status
from quire.model.side import Fanin


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands in a map's results for a child that ended without one."""

    record_id: str
    error: str


def prefix(parent_id: str, name: str, generation: int) -> str:
    """Children are ``parent/name~generation/place``: readable, and no two fan-outs of a parent share one."""
    return f"{parent_id}/{name}~{generation}/"


def bearable(total: int, keep: bool, need: float) -> int:
    """Return how many children may fail before the parent cannot succeed any more."""
    if not keep:
        return 0
    return total - math.ceil(total * need - 1e-9)


def opened(
    parent_id: str, generation: int, key: str, name: str, total: int, *, limit: int | None, may_fail: int
) -> Fanin:
    active = total if limit is None else min(limit, total)
    return Fanin(
        parent_id=parent_id,
        generation=generation,
        key=key,
        total=total,
        left=total,
        failed=0,
        bearable=may_fail,
        limit=limit,
        active=active,
        next_place=active,
        prefix=prefix(parent_id, name, generation),
        abandoned=False,
    )


def met(fanin: Fanin) -> bool:
    """The parent has nothing more to wait for: all ended, or too many failed."""
    return fanin.left <= 0 or fanin.failed > fanin.bearable


def why_no_result(child: Record) -> str:
    """Return why a child has no result, in words."""
    if child.status is Status.CANCELLED:
        return child.last_error or "it was cancelled"
    if child.status is Status.ERROR:
        return child.last_error or "it ended in ERROR"
    return f"it had not ended in time; it was {child.status}"
