"""Records before their first commit, made of what people give: their data is checked here."""

from __future__ import annotations

from typing import Any

from quire.model.record import Record
from quire.worker.schedule import first_record
from quire.workflows.workflow import Workflow


def new_of(
    workflow: Workflow[Any, Any, Any], record_id: str, item: Any, now: float, due_at: float | None, priority: int
) -> Record:
    """The first record of this workflow with this data, which is checked by the workflow's type."""
    text = workflow.taken(item, f"the data of {record_id!r}")
    return first_record(workflow, record_id, text, now, due_at=due_at, priority=priority)
