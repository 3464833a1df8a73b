"""Data of a record that started under an older version of its workflow, converted before a step begins with them."""

from __future__ import annotations

from typing import Any

from quire.errors import ValueRefused
from quire.model.codec import PLAIN, parse
from quire.model.record import Record
from quire.rules import moves as transition
from quire.rules.outcome import Migrated
from quire.run.failure import described
from quire.workflows.workflow import Workflow


def migrated(record: Record, workflow: Workflow[Any, Any, Any], now: float) -> transition.Move | None:
    """Data of a record that started under an older version, converted by the workflow's migrations at a step's top.

    A step that has begun under the older version goes on with its data: its receipts were made with them.
    """
    if record.code_version not in workflow.migrations or record.facts or record.entry is not None:
        return None
    version, data = record.code_version, parse(record.data)
    while version in workflow.migrations and version < workflow.version:
        data = _converted(workflow, version, data)
        version += 1
    made = Migrated(PLAIN.encode(data, "what its migration made of its data"), version)
    return transition.settle(record, made, now)


def _converted(workflow: Workflow[Any, Any, Any], version: int, data: Any) -> Any:
    try:
        return workflow.migrations[version](data)
    except (Exception, SystemExit) as error:
        raise ValueRefused(
            f"its data could not be migrated from version {version} of {workflow.name!r}: {described(error)}"
        ) from error
