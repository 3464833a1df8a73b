"""Records: list them, start them, and everything about one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from quire.client.arguments import checked_id
from quire.clock import iso
from quire.errors import InputError
from quire.explain import timeline, words
from quire.explain.report import report_json, report_of
from quire.explain.why import Why, around, why_of
from quire.model.change import Query as Find
from quire.model.codec import dump, parse
from quire.model.event import Event
from quire.model.record import Record, Status
from quire.model.trace import trace_lines
from quire.rules.difference import differing, pairs
from quire.rules.versions import too_much, versions
from quire.surfaces.server import shapes
from quire.surfaces.server.asking import Filter, Operator, RecordId, Viewer, clean, problems, record_answer, span
from quire.surfaces.server.refusal import json_answer
from quire.surfaces.server.stream import COLUMNS, row

#: The longest log that a record's page gets at once; the rest is paged under /events.
SHOWN_EVENTS = 1000
SHOWN_CHILDREN = 2000
#: Older versions are left out when those before them take more characters than this.
SHOWN_VERSIONS = 200_000

router = APIRouter(prefix="/api", responses=problems())


@router.get("/records", response_model=shapes.RecordsOut, tags=["records"])
async def list_records(
    at: Viewer,
    workflow: Filter = "",
    step: Filter = "",
    status: Annotated[list[Status] | None, Query(max_length=20)] = None,
    parent_id: Filter = "",
    text: Filter = "",
    after: Filter = "",
    limit: Annotated[int, Query(ge=1, le=5000)] = 100,
    order: Literal["id", "updated", "place"] = "id",
) -> Response:
    """Records by workflow, step, status, parent, or part of their id. Pages go in the order of ids."""
    clean(workflow, step, parent_id, text, after)
    found = await at.client.find(
        workflow=workflow,
        step=step,
        status=status or (),
        parent_id=parent_id,
        text=text,
        after=after,
        limit=limit,
        order=order,
    )
    following = found[-1].record_id if order == "id" and len(found) == limit else None
    return json_answer({"records": [words.record_json(record) for record in found], "next": following})


@router.get("/grid", response_model=shapes.GridOut, tags=["records"])
async def grid(
    at: Viewer,
    workflow: Filter = "",
    after: Filter = "",
    limit: Annotated[int, Query(ge=1, le=10_000)] = 2000,
    order: Literal["id", "updated"] = "id",
) -> Response:
    """Records as short rows, for the dashboard's grid."""
    clean(workflow, after)
    found = await at.client.find(workflow=workflow, after=after, limit=limit, order=order)
    following = found[-1].record_id if order == "id" and len(found) == limit else None
    return json_answer({"columns": COLUMNS, "rows": [row(record) for record in found], "next": following})


@router.post(
    "/records",
    status_code=201,
    response_model=shapes.RecordOut,
    tags=["records"],
    responses=problems(404, 409, 410, 413, 423)
    | {200: {"model": shapes.RecordOut, "description": "It was started before."}},
)
async def start(
    at: Operator,
    body: shapes.StartIn,
    idempotency_key: Annotated[str | None, Header(max_length=500)] = None,
) -> Response:
    """Start a record. The same id or Idempotency-Key with the same data again returns the record that is there."""
    record_id = body.record_id
    if record_id is None and idempotency_key:
        record_id = f"{body.workflow[:200]}_{hashlib.sha256(idempotency_key.encode()).hexdigest()[:20]}"
    there = record_id is not None and bool(await at.client.ledger.load([checked_id(record_id)]))
    handle = await at.client.start(
        body.workflow, body.data, id=record_id, after=span(body.after), priority=body.priority
    )
    at.audit("start", handle.record_id, workflow=body.workflow)
    return record_answer(handle.started, 200 if there else 201)


@router.post(
    "/records/batch",
    status_code=201,
    response_model=shapes.StartedOut,
    tags=["records"],
    responses=problems(404, 409, 410, 413, 423),
)
async def start_many(at: Operator, body: shapes.StartManyIn) -> Response:
    """Start many records. All are checked before the first is started."""
    given = [item.record_id for item in body.items]
    if any(given) and not all(given):
        raise InputError("either every item has a record_id or none has")
    ids = [record_id for record_id in given if record_id is not None] or None
    items = [item.data for item in body.items]
    handles = await at.client.start_many(body.workflow, items, ids=ids, after=span(body.after), priority=body.priority)
    at.audit("start many", body.workflow, count=len(handles))
    return json_answer({"record_ids": [handle.record_id for handle in handles]}, 201)


def _event(event: Event) -> dict[str, Any]:
    answer = words.event_json(event) | {"words": words.line(event)}
    trace = trace_lines(event)
    return answer | {"trace": "\n".join(trace)} if trace else answer


@router.get("/records/{record_id}", response_model=shapes.ShownOut, tags=["records"], responses=problems(404))
async def show(at: Viewer, record_id: RecordId) -> Response:
    """Everything about one record: data, log, receipts, signals, children, timeline, and why it does not move."""
    client, ledger = at.client, at.client.ledger
    # Asked for together: the store answers them in one go instead of waking up for each.
    record, log, receipts_, signals, children = await asyncio.gather(
        client.get(record_id),
        ledger.events(record_id=record_id, limit=100_000),
        ledger.receipts(record_ids=[record_id]),
        ledger.signals(record_id),
        ledger.find(Find(parent_id=record_id, order="place", limit=SHOWN_CHILDREN)),
    )
    seen = await around(ledger, record, log, at.setup.groups)
    why = why_of(record, seen)
    steps = seen.definition["steps"] if seen.definition is not None else []
    here: dict[str, Any] = next((step for step in steps if step["name"] == record.step), {})
    answer = {
        "record": words.record_json(record),
        "entry": None if record.entry is None else parse(record.entry),
        **_versions(record, log),
        "why": _why(why),
        "moves": here.get("then", []),
        "events": [_event(event) for event in log[-SHOWN_EVENTS:]],
        "events_left_out": max(0, len(log) - SHOWN_EVENTS),
        "receipts": [words.receipt_json(receipt) for receipt in receipts_],
        "signals": [words.signal_json(signal) for signal in signals],
        "children": [row(child) for child in children],
        "timeline": timeline.spans(log)[-SHOWN_EVENTS:],
        "report": report_json(report_of(log, [], seen.now)),
        "now": iso(seen.now),
    }
    return json_answer(answer, 200, {"ETag": f'"{record.version}"'})


def _versions(record: Record, log: Sequence[Event]) -> dict[str, Any]:
    """What the data were, version by version, each as its difference from how they are."""
    found, end = versions(record, reversed(log))
    rows: list[dict[str, Any]] = []
    room = SHOWN_VERSIONS
    for one in found:
        was, now = one.data.fields, found[0].data.fields
        names = [name for name in differing(was, now) if name not in one.data.unknown]
        answer: dict[str, Any] = {"version": one.version, "at": iso(one.at) or None, "kind": one.kind, "by": one.by}
        answer |= {"changes": {}, "came": [], "went": [], **pairs(was, now, names), "changed": sorted(one.data.unknown)}
        room -= len(dump(answer))
        if room < 0:
            end = too_much(rows[-1]["version"])
            break
        rows.append(answer)
    return {"versions": rows, "versions_end": end}


def _why(why: Why) -> dict[str, Any]:
    return {"sentence": why.sentence, "kind": why.kind, "until": iso(why.until) or None, "remedy": why.remedy}


@router.get("/records/{record_id}/why", response_model=shapes.WhyOut, tags=["records"], responses=problems(404))
async def why(at: Viewer, record_id: RecordId) -> Response:
    """Why the record does not move, in one sentence."""
    record = await at.client.get(record_id)
    return json_answer(_why(why_of(record, await around(at.client.ledger, record, groups=at.setup.groups))))


@router.get("/records/{record_id}/events", response_model=shapes.EventsOut, tags=["records"], responses=problems(404))
async def record_events(
    at: Viewer,
    record_id: RecordId,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> Response:
    """The record's log, in order, after a ``seq``."""
    await at.client.get(record_id)
    return _events(await at.client.events(record_id, after=after, limit=limit), limit)


@router.get("/events", response_model=shapes.EventsOut, tags=["looking"])
async def events(
    at: Viewer,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> Response:
    """The ledger's log, in the order of commits, after a ``seq``."""
    return _events(await at.client.events(after=after, limit=limit), limit)


def _events(found: list[Event], limit: int) -> Response:
    following = found[-1].seq if len(found) == limit else None
    return json_answer({"events": [_event(event) for event in found], "next": following})


@router.get(
    "/records/{record_id}/receipts", response_model=list[dict[str, Any]], tags=["records"], responses=problems(404)
)
async def receipts(at: Viewer, record_id: RecordId) -> Response:
    """The receipts and intents of a record."""
    await at.client.get(record_id)
    return json_answer([words.receipt_json(r) for r in await at.client.ledger.receipts(record_ids=[record_id])])
