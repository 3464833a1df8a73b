"""Workflows as the ledger knows them: enough to start records and to move them without importing user code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quire.errors import InputError
from quire.model.codec import dump, parse
from quire.model.fit import Fit
from quire.model.given import bare
from quire.model.record import Record, Status, new_record, started_as
from quire.model.row import replace
from quire.model.wait import On, Wait, dump_waits


def new_from(
    definition: Mapping[str, Any], record_id: str, item: Any, now: float, due_at: float | None, priority: int, what: str
) -> Record:
    """Return a new record at the first step of a registered workflow; the registered schema checks its data."""
    return Mould(definition, now, due_at, priority).record(record_id, item, what)


class Mould:
    """New records of one registered workflow, many of them: what they share is worked out once."""

    def __init__(self, definition: Mapping[str, Any], now: float, due_at: float | None, priority: int) -> None:
        first = next(step for step in definition["steps"] if step["name"] == definition["first"])
        rests = first["rests"]
        self.workflow = str(definition["name"])
        self.schema: Mapping[str, Any] | None = definition.get("schema")
        self.fit = fit_of(definition)
        blank = new_record(
            record_id="",
            workflow=self.workflow,
            step=first["name"],
            data="{}",
            now=now,
            status=Status.WAITING if rests else Status.PENDING,
            due_at=None if rests else (now if due_at is None else due_at),
            waits=dump_waits([Wait(On.REST, name=first["name"])]) if rests else None,
            code_version=definition["version"],
            priority=priority,
        )
        self._blank = blank

    def record(self, record_id: str, item: Any, what: str | None = None) -> Record:
        """One of them; data that does not fit is refused. ``what``: the name of the data in a refusal."""
        what = f"the data of {record_id!r}" if what is None else what
        if not isinstance(item, dict):
            whose = what or "it"
            raise InputError(f"{whose} must be an object of named fields, not {type(item).__name__}")
        text = self.fit.taken(item, what)
        given = dump(bare(parse(text), self.schema))
        return replace(self._blank, record_id=record_id, data=text, started_as=started_as(self.workflow, given))


def fit_of(definition: Mapping[str, Any]) -> Fit:
    """Return the check of data for a registered workflow."""
    return Fit(definition.get("schema"), f"workflow {definition['name']!r}")
