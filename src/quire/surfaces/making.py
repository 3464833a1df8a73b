"""Records before their first commit, made of what people give: id, data and priority are checked here."""

from __future__ import annotations

import re
from typing import Any

from quire.errors import InputError
from quire.machine.workflow import Workflow
from quire.model.record import MOST_PRIORITY, Record
from quire.runtime.schedule import first_record

_NO_TEXT = re.compile("[\x00-\x1f\ud800-\udfff]")


def checked_id(record_id: str) -> str:
    """The id, refused unless it can be one."""
    if not record_id or len(record_id) > 500 or record_id != record_id.strip():
        raise InputError(f"{record_id!r} is no record id: 1 to 500 characters, no space at either end")
    if _NO_TEXT.search(record_id):
        raise InputError(f"{record_id!r} is no record id: it holds a control character")
    return record_id


def checked_priority(priority: object) -> int:
    """The priority, if every store takes it."""
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise InputError(f"a priority is a whole number, not {priority!r:.80}")
    if not -MOST_PRIORITY <= priority <= MOST_PRIORITY:
        raise InputError(f"a priority lies between -{MOST_PRIORITY:,} and {MOST_PRIORITY:,}")
    return priority


def new_of(
    workflow: Workflow[Any, Any, Any], record_id: str, item: Any, now: float, due_at: float | None, priority: int
) -> Record:
    """The first record of this workflow with this data, which is checked by the workflow's type."""
    text = workflow.taken(item, f"the data of {record_id!r}")
    return first_record(workflow, record_id, text, now, due_at=due_at, priority=priority)
