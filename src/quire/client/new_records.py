"""Records before their first commit, made of what people give. Their data is checked here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quire.client import arguments
from quire.client.link import Link
from quire.clock import Span, new_record_id, seconds
from quire.errors import InputError
from quire.ledger.definition import new_from
from quire.model.record import Record
from quire.worker.schedule import first_record
from quire.workflows.workflow import Workflow


async def new_records(
    link: Link,
    workflow: Workflow[Any, Any, Any] | str,
    items: Iterable[Any],
    ids: Iterable[str] | None,
    after: Span | None,
    priority: int,
) -> tuple[Workflow[Any, Any, Any] | None, list[Record]]:
    """Return the workflow, if this process knows it, and a record for each item. All items are checked."""
    arguments.checked_priority(priority)
    name = _name_of(workflow)
    known = link.registry.get(workflow) if isinstance(workflow, str) else workflow
    # A record that is due at once is due at the moment of its commit, which only the ledger knows.
    now = 0.0 if after is None else await link.ledger.now()
    due_at = None if after is None else now + seconds(after)
    names = arguments.several(ids, "ids") if ids is not None else None
    records: list[Record] = []
    definition: dict[str, Any] | None = None
    if known is None:
        definition = await link.definition(name)
    prefix, moment = f"{name}_", link.clock.now()
    for item in arguments.several(items, "items"):
        given = new_record_id(prefix, moment) if names is None else next(names, None)
        if given is None:
            raise InputError(f"item {len(records)} has no id: ids must name one for each item")
        record_id = arguments.checked_id(given)
        # An id that was made here says nothing to whoever reads a refusal.
        what = "the data" if names is None else f"the data of {record_id!r}"
        if known is not None:
            records.append(new_of(known, record_id, item, now, due_at, priority, what))
        else:
            assert definition is not None
            records.append(new_from(definition, record_id, {} if item is None else item, now, due_at, priority, what))
    return known, records


def new_of(
    workflow: Workflow[Any, Any, Any],
    record_id: str,
    item: Any,
    now: float,
    due_at: float | None,
    priority: int,
    what: str,
) -> Record:
    """Return the first record of this workflow with this data, which is checked by the workflow's type."""
    text = workflow.taken(item, what)
    return first_record(workflow, record_id, text, now, due_at=due_at, priority=priority)


def _name_of(workflow: object) -> str:
    return workflow.name if isinstance(workflow, Workflow) else arguments.name(workflow, "the workflow")
