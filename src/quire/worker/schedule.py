"""Schedules: a record for each moment of a cron, under an id made from the moment, so that no two workers start two."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from quire.clock import iso, next_id
from quire.errors import InputError
from quire.ledger.base import Ledger
from quire.model.change import Applied, Change, Refused, Verdict
from quire.model.codec import dump, parse
from quire.model.given import bare
from quire.model.record import Record, Status, new_record
from quire.model.row import replace
from quire.model.side import Setting
from quire.model.wait import On, Wait, dump_waits
from quire.rules import moves as transition
from quire.workflows.workflow import Registry, Workflow

if TYPE_CHECKING:
    from quire.workflows.sources import Cron

log = logging.getLogger("quire.worker")


def first_record(
    workflow: Workflow[Any, Any, Any],
    record_id: str,
    data: str,
    now: float,
    *,
    due_at: float | None = None,
    priority: int = 0,
    dedupe_key: str | None = None,
) -> Record:
    """Return a new record at the first step of its workflow."""
    first = workflow.first
    rests = first.rests
    return new_record(
        record_id=record_id,
        workflow=workflow.name,
        step=first.name,
        data=data,
        now=now,
        status=Status.WAITING if rests else Status.PENDING,
        due_at=None if rests else (now if due_at is None else due_at),
        waits=dump_waits([Wait(On.REST, name=first.name)]) if rests else None,
        code_version=workflow.version,
        priority=priority,
        dedupe_key=dedupe_key,
        given=dump(bare(parse(data), None if workflow.data.plain else workflow.data.schema)),
    )


def starting(record: Record, by: str = "") -> Change:
    """Return the change that brings a new record into the ledger."""
    made = transition.start(record, record.created_at, by)
    return Change(next_id(), record.record_id, 0, made.image, lines=made.lines)


async def start_due(ledger: Ledger, registry: Registry, now: float) -> int:
    """Start what schedules ask for up to now. The cursor moves after the starts, so a crash between repeats them."""
    sourced = [workflow for workflow in registry.workflows.values() if workflow.sources]
    if not sourced:  # most have none, and a worker that starts need not load what they are made of
        return 0
    from quire.workflows.sources import Cron

    started = 0
    for workflow in sourced:
        schedules = 0
        for number, (source, options) in enumerate(workflow.sources):
            if isinstance(source, Cron):
                schedules += 1
                # The first has the moment alone, as all had once; two that are due at one moment are two records.
                ending = "" if schedules == 1 else f"-{schedules}"
                try:
                    started += await _start_cron(ledger, workflow, source, options, number, now, ending)
                except InputError as error:  # it keeps no other from starting
                    log.error("the schedule %r of %r starts nothing: %s", source.spec, workflow.name, error)
    return started


async def _start_cron(
    ledger: Ledger,
    workflow: Workflow[Any, Any, Any],
    cron: Cron,
    options: dict[str, Any],
    number: int,
    now: float,
    ending: str,
) -> int:
    name = f"cron/{workflow.name}/{cron.spec}/{cron.tz}/{number}"
    kept = await ledger.setting(name)
    if kept is None:
        await ledger.keep(Setting(name, dump({"until": now}), 0))
        return 0
    until = float(parse(kept.value)["until"])
    moments = cron.between(until, now)
    if not moments:
        return 0
    if cron.catch_up == "last":
        moments = moments[-1:]
    elif cron.catch_up == "none":
        moments = [moment for moment in moments[-1:] if now - moment < 60.0]
    data = workflow.scheduled(options)
    changes = []
    for moment in moments:
        record_id = f"{workflow.name}@{iso(moment)[:16]}Z{ending}"
        record = first_record(workflow, record_id, data, now, dedupe_key=f"{name}|{iso(moment)}")
        changes.append(starting(record, by=f"cron {cron.spec}"))
    verdicts = await ledger.commit(changes)
    if any(isinstance(verdict, Refused) and verdict.code in ("halted", "sealed") for verdict in verdicts):
        return 0  # its moments are not over: they start when the halt is
    _tell_refused(cron, changes, verdicts)
    await ledger.keep(replace(kept, value=dump({"until": now})))
    return sum(isinstance(verdict, Applied) and not verdict.again for verdict in verdicts)


def _tell_refused(cron: Cron, changes: Sequence[Change], verdicts: Iterable[Verdict]) -> None:
    """Log that this moment passes without a record: trying again would change nothing."""
    for change, verdict in zip(changes, verdicts, strict=True):
        if isinstance(verdict, Refused):
            log.error("the schedule %r could not start %r: %s", cron.spec, change.record_id, verdict.reason)
