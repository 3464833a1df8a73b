"""The HTTP API: everything that the client does, as addresses under ``/api``."""

from __future__ import annotations

import copy
import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Depends, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from quire.clock import iso, seconds
from quire.errors import InputError, NotFound, QuireError, StaleVersion
from quire.machine import drawing
from quire.model.change import Query as Find
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import Record, Status
from quire.model.side import EVERYWHERE
from quire.model.wait import On, load_waits
from quire.runtime import engine
from quire.surfaces import telling
from quire.surfaces.client import Client, checked_id
from quire.surfaces.server import shapes, timeline
from quire.surfaces.server.doors import Actor, Setup, audit, needs
from quire.surfaces.server.refusal import WORDS, Problem, Refusal, json_answer
from quire.surfaces.server.stream import COLUMNS, Feed, controls_json, counts_json, row
from quire.surfaces.server.tokens import Role

#: The longest log that a record's page gets at once; the rest is paged under /events.
SHOWN_EVENTS = 1000
SHOWN_CHILDREN = 2000
GROUPED = 20_000

_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of an address, for the OpenAPI document."""
    # Any act may find the ledger halted or moved away, and any body may be too large.
    every = {400, 401, 403, 404, 409, 410, 413, 422, 423, 429, 500, 503, *statuses}
    return {status: {"model": Problem, "description": WORDS[status]} for status in sorted(every)}


class At(NamedTuple):
    """Whoever acts, and with what."""

    #: Acts in the actor's name.
    client: Client
    setup: Setup
    actor: Actor
    request: Request

    def audit(self, act: str, target: str, **told: Any) -> None:
        audit(self.request, act, target, **told)


def setup_of(request: Request) -> Setup:
    found: Setup = request.app.state.setup
    return found


def _at(role: Role) -> Callable[[Request, Actor], Awaitable[At]]:
    needed = Depends(needs(role))

    async def at(request: Request, actor: Actor = needed) -> At:
        setup = setup_of(request)
        client = copy.copy(setup.client)
        client.who = actor.name
        return At(client, setup, actor, request)

    return at


Viewer = Annotated[At, Depends(_at(Role.VIEWER))]
Operator = Annotated[At, Depends(_at(Role.OPERATOR))]
Admin = Annotated[At, Depends(_at(Role.ADMIN))]


def unslashed(text: str) -> str:
    """A name from the address, with the slashes that stand inside it (see ``Doors``); refused if it can be none."""
    text = text.replace("\x1f", "/")
    if _CONTROL.search(text):
        raise NotFound(f"{text!r} is no name here: it holds a control character")
    return text


async def _record_id(record_id: Annotated[str, Path(max_length=500)]) -> str:
    return unslashed(record_id)


async def _workflow_name(workflow: Annotated[str, Path(max_length=500)]) -> str:
    return unslashed(workflow)


RecordId = Annotated[str, Depends(_record_id)]
WorkflowName = Annotated[str, Depends(_workflow_name)]
Filter = Annotated[str, Query(max_length=500)]

router = APIRouter(prefix="/api", responses=problems())


def _clean(*texts: str) -> None:
    for text in texts:
        if _CONTROL.search(text):
            raise InputError(f"{text!r} cannot be looked for: it holds a control character")


def record_answer(record: Record, status: int = 200) -> Response:
    return json_answer(telling.record_json(record), status, {"ETag": f'"{record.version}"'})


def span(value: str | float | None) -> float | None:
    return None if value is None else seconds(seconds(value))


# -- records ---------------------------------------------------------------------------------------------------


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
    _clean(workflow, step, parent_id, text, after)
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
    return json_answer({"records": [telling.record_json(record) for record in found], "next": following})


@router.get("/grid", response_model=shapes.GridOut, tags=["records"])
async def grid(
    at: Viewer,
    workflow: Filter = "",
    after: Filter = "",
    limit: Annotated[int, Query(ge=1, le=10_000)] = 2000,
    order: Literal["id", "updated"] = "id",
) -> Response:
    """Records as short rows, for the dashboard's grid."""
    _clean(workflow, after)
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
    return record_answer(await handle.record(), 200 if there else 201)


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
    return telling.event_json(event) | {"words": telling.line(event)}


@router.get("/records/{record_id}", response_model=shapes.ShownOut, tags=["records"], responses=problems(404))
async def show(at: Viewer, record_id: RecordId) -> Response:
    """Everything about one record: data, log, receipts, signals, children, timeline, and why it does not move."""
    client = at.client
    shown = await client.show(record_id)
    record = shown.record
    around = await telling.around(client.ledger, record)
    why = telling.why(record, around)
    steps = around.definition["steps"] if around.definition is not None else []
    here: dict[str, Any] = next((step for step in steps if step["name"] == record.step), {})
    told = {
        "record": telling.record_json(record),
        "entry": None if record.entry is None else parse(record.entry),
        "why": _why(why),
        "moves": here.get("then", []),
        "events": [_event(event) for event in shown.events[-SHOWN_EVENTS:]],
        "events_left_out": max(0, len(shown.events) - SHOWN_EVENTS),
        "receipts": [telling.receipt_json(receipt) for receipt in shown.receipts],
        "signals": [telling.signal_json(signal) for signal in shown.signals],
        "children": [row(child) for child in shown.children[:SHOWN_CHILDREN]],
        "timeline": timeline.spans(shown.events)[-SHOWN_EVENTS:],
        "report": telling.report_json(telling.report(shown.events, [], around.now)),
        "now": iso(around.now),
    }
    return json_answer(told, 200, {"ETag": f'"{record.version}"'})


def _why(why: telling.Why) -> dict[str, Any]:
    return {"sentence": why.sentence, "kind": why.kind, "until": iso(why.until) or None, "remedy": why.remedy}


@router.get("/records/{record_id}/why", response_model=shapes.WhyOut, tags=["records"], responses=problems(404))
async def why(at: Viewer, record_id: RecordId) -> Response:
    """Why the record does not move, in one sentence."""
    record = await at.client.get(record_id)
    return json_answer(_why(telling.why(record, await telling.around(at.client.ledger, record))))


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
    return json_answer([telling.receipt_json(r) for r in await at.client.ledger.receipts(record_ids=[record_id])])


# -- acts on one record ----------------------------------------------------------------------------------------

_ACT: dict[str, Any] = {
    "response_model": shapes.RecordOut,
    "tags": ["acts"],
    "responses": problems(404, 409, 410, 412, 413, 423),
}


@router.post("/records/{record_id}/signals/{signal}", **_ACT)
async def send_signal(
    at: Operator,
    record_id: RecordId,
    signal: Annotated[str, Path(max_length=500)],
    body: shapes.SignalIn | None = None,
) -> Response:
    """Send a signal."""
    body = body or shapes.SignalIn()
    name = unslashed(signal)
    if body.signal_id is not None:
        checked_id(body.signal_id)
    record = await at.client.signal(record_id, name, body.value, signal_id=body.signal_id)
    at.audit("signal", record_id, signal=name)
    return record_answer(record)


@router.post("/records/{record_id}/answer", **_ACT)
async def answer(at: Operator, record_id: RecordId, body: shapes.AnswerIn) -> Response:
    """Answer what the record asks. With ``seen``, only if it still asks what was shown."""
    record = await at.client.answer(
        record_id,
        body.choice,
        note=body.note,
        edits=body.edits,
        seen=body.seen,
        question=body.question,
        via="api",
        groups=at.setup.groups,
    )
    at.audit("answer", record_id, choice=body.choice, seen=body.seen)
    return record_answer(record)


@router.post("/records/{record_id}/resolve", **_ACT)
async def resolve(at: Operator, record_id: RecordId, body: shapes.ResolveIn) -> Response:
    """Say whether an effect in doubt happened."""
    record = await at.client.resolve(record_id, happened=body.happened, value=body.value, effect=body.effect)
    at.audit("resolve", record_id, happened=body.happened)
    return record_answer(record)


@router.post("/records/{record_id}/move", **_ACT)
async def move(at: Operator, record_id: RecordId, body: shapes.MoveIn) -> Response:
    """Move the record by hand along a declared transition."""
    record = await at.client.move(record_id, body.step)
    at.audit("move", record_id, step=body.step)
    return record_answer(record)


@router.put("/records/{record_id}/data", **_ACT)
async def edit(
    at: Operator,
    record_id: RecordId,
    body: shapes.EditIn,
    if_match: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Replace the data. With If-Match, only if the record is still at that version."""
    version = _version(if_match)
    try:
        record = await at.client.edit(record_id, body.data, version=version)
    except StaleVersion as error:
        raise Refusal(412, "StaleVersion", str(error)) from error
    at.audit("edit", record_id, version=record.version)
    return record_answer(record)


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 18):
        raise InputError(f'If-Match is the record\'s version, like "3", not {if_match!r}')
    return int(text)


@router.post("/records/{record_id}/retry", **_ACT)
async def retry(at: Operator, record_id: RecordId, body: shapes.RetryIn | None = None) -> Response:
    """Try the record again where it stopped, or from a step anew."""
    step = body.step if body is not None else ""
    record = await at.client.retry(record_id, step=step)
    at.audit("retry", record_id, step=step)
    return record_answer(record)


@router.post("/records/{record_id}/cancel", **_ACT)
async def cancel(at: Operator, record_id: RecordId, body: shapes.CancelIn | None = None) -> Response:
    """Cancel the record; with ``undo``, what it did is taken back."""
    body = body or shapes.CancelIn()
    record = await at.client.cancel(record_id, undo=body.undo, reason=body.reason)
    at.audit("cancel", record_id, undo=body.undo, reason=body.reason)
    return record_answer(record)


@router.post("/records/{record_id}/priority", **_ACT)
async def prioritise(at: Operator, record_id: RecordId, body: shapes.PriorityIn) -> Response:
    """Give the record another priority."""
    record = await at.client.prioritise(record_id, body.priority)
    at.audit("prioritise", record_id, priority=body.priority)
    return record_answer(record)


# -- acts on many ----------------------------------------------------------------------------------------------


@router.post("/many", response_model=shapes.ManyOut, tags=["acts"], responses=problems(404, 409, 410, 413, 423))
async def many(at: Operator, body: shapes.ManyIn) -> Response:
    """One act on many records, named or found. Each lands by itself; those that refuse are told."""
    if (body.record_ids is None) == (body.where is None):
        raise InputError("name the records (record_ids) or say which (where), one of both")
    ids = body.record_ids if body.record_ids is not None else await _found(at.client, body.where or shapes.Where())
    done, refusals = 0, []
    for record_id in ids:
        try:
            await _one_of_many(at, body, record_id)
            done += 1
        except InputError as error:
            refusals.append({"record_id": record_id, "error": type(error).__name__, "message": str(error)})
    at.audit(f"{body.act} many", body.where.model_dump_json() if body.where else f"{len(ids)} named", done=done)
    return json_answer({"done": done, "refused": refusals[:1000]})


async def _one_of_many(at: At, body: shapes.ManyIn, record_id: str) -> None:
    client = at.client
    match body.act:
        case "retry":
            await client.retry(record_id, step=body.step)
        case "cancel":
            await client.cancel(record_id, undo=body.undo, reason=body.reason)
        case "prioritise":
            await client.prioritise(record_id, body.priority)
        case "answer":
            seen = body.seen.get(record_id, "")
            if not seen:
                raise InputError("an answer to many needs the hash of what was shown for each (seen)")
            await client.answer(record_id, body.choice, note=body.note, seen=seen, via="api", groups=at.setup.groups)
    at.audit(body.act, record_id)


async def _found(client: Client, where: shapes.Where) -> list[str]:
    _clean(where.workflow, where.step)
    found = await client.find(
        workflow=where.workflow, step=where.step, status=Status(where.status), limit=GROUPED, order="updated"
    )
    if where.cause:
        found = [record for record in found if cause(record.last_error or "") == where.cause]
    return [record.record_id for record in found[: where.limit]]


_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.IGNORECASE)


def cause(error: str) -> str:
    """An error without what differs from record to record: names in quotes, numbers, ids."""
    first = next(iter(error.strip().splitlines()), "")
    return _VARYING.sub("…", first)[:300] or "no reason was given"


@router.get("/errors", response_model=list[dict[str, Any]], tags=["looking"])
async def errors(at: Viewer) -> Response:
    """Records in ERROR, grouped by cause, the largest group first."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in await at.client.find(status=(Status.ERROR,), limit=GROUPED, order="updated"):
        groups.setdefault((record.workflow, record.step, cause(record.last_error or "")), []).append(record)
    told = [
        {
            "workflow": workflow,
            "step": step,
            "cause": reason,
            "count": len(records),
            "latest_at": iso(records[0].updated_at),
            "first_at": iso(records[-1].updated_at),
            "example": records[0].last_error,
            "record_ids": [record.record_id for record in records[:20]],
        }
        for (workflow, step, reason), records in groups.items()
    ]
    return json_answer(sorted(told, key=lambda group: -int(str(group["count"]))))


@router.get("/approvals", response_model=list[dict[str, Any]], tags=["looking"])
async def approvals(at: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 200) -> Response:
    """What people are asked: the question, what will be approved, what may be edited, and who may answer."""
    found = await at.client.find(status=(Status.NEEDS_APPROVAL,), limit=limit, order="updated")
    told = [
        {
            "record_id": record.record_id,
            "workflow": record.workflow,
            "step": record.step,
            "asked_since": iso(record.updated_at),
            "asked": telling.wait_json(wait),
            "data": parse(record.data),
            "entry": None if record.entry is None else parse(record.entry),
        }
        for record in found
        for wait in load_waits(record.waits)
        if wait.on in (On.QUESTION, On.DOUBT)
    ]
    return json_answer(told)


# -- the whole ledger ------------------------------------------------------------------------------------------


@router.get("/counts", response_model=list[list[Any]], tags=["looking"])
async def counts(at: Viewer) -> Response:
    """How many records, as rows of workflow, step, status, count."""
    return json_answer(await counts_json(at.client))


@router.get("/history", response_model=list[list[Any]], tags=["looking"])
async def history(at: Viewer) -> Response:
    """Counts per status over the last hour, as rows of moment and counts: what this process saw while it looked."""
    feed: Feed = at.request.app.state.feed
    return json_answer(list(feed.history.samples))


@router.get("/workflows", response_model=list[dict[str, Any]], tags=["looking"])
async def workflows(at: Viewer) -> Response:
    """The workflows with their definitions, and how many records stand at each step."""
    found = await at.client.counts()
    told = []
    for definition in await engine.definitions(at.client.ledger):
        mine = [[count.step, str(count.status), count.count] for count in found if count.workflow == definition["name"]]
        told.append(definition | {"counts": mine})
    return json_answer(told)


@router.get("/workflows/{workflow}", response_model=shapes.Said, tags=["looking"], responses=problems(404))
async def one_workflow(at: Viewer, workflow: WorkflowName) -> Response:
    """One workflow: its definition, and how many records stand at each step."""
    definition = await engine.definition(at.client.ledger, workflow)
    mine = [
        [count.step, str(count.status), count.count] for count in await at.client.counts() if count.workflow == workflow
    ]
    return json_answer(definition | {"counts": mine})


@router.get(
    "/workflows/{workflow}/graph.svg",
    response_class=Response,
    tags=["looking"],
    responses=problems(404) | {200: {"content": {"image/svg+xml": {}}, "description": "The drawing."}},
)
async def graph(at: Viewer, workflow: WorkflowName) -> Response:
    """The machine, drawn, with the records at each step."""
    definition = await engine.definition(at.client.ledger, workflow)
    found: Counter[tuple[str, str]] = Counter()
    for count in await at.client.counts():
        if count.workflow == workflow:
            found[count.step, str(count.status)] += count.count
    return Response(drawing.svg(definition, found), media_type="image/svg+xml")


@router.get("/workers", response_model=list[dict[str, Any]], tags=["looking"])
async def workers(at: Viewer) -> Response:
    """The workers, and whether they live."""
    now = await at.client.ledger.now()
    return json_answer([telling.worker_json(worker, now) for worker in await at.client.workers()])


@router.get("/standing", response_model=shapes.StandingOut, tags=["orders"])
async def standing(at: Viewer) -> Response:
    """Whether the ledger is halted or paused, by whom and why, and which effects are under way."""
    found = await at.client.standing()
    return json_answer(telling.standing_json(found) | {"controls": controls_json(found)})


@router.post("/halt", response_model=shapes.StandingOut, tags=["orders"], responses=problems(404, 410, 413))
async def halt(at: Operator, body: shapes.OrderIn) -> Response:
    """Stop everything, durably. The answer lists the effects under way."""
    found = await at.client.halt(body.workflow, reason=body.reason)
    at.audit("halt", body.workflow or EVERYWHERE, reason=body.reason)
    return json_answer(telling.standing_json(found) | {"controls": controls_json(found)})


@router.post("/pause", response_model=shapes.StandingOut, tags=["orders"], responses=problems(404, 410, 413))
async def pause(at: Operator, body: shapes.OrderIn) -> Response:
    """Claim nothing more; what runs goes on."""
    found = await at.client.pause(body.workflow, reason=body.reason)
    at.audit("pause", body.workflow or EVERYWHERE, reason=body.reason)
    return json_answer(telling.standing_json(found) | {"controls": controls_json(found)})


@router.post("/resume", response_model=shapes.StandingOut, tags=["orders"], responses=problems(404, 409, 410, 413))
async def resume(at: Operator, body: shapes.ResumeIn) -> Response:
    """End a pause or a halt."""
    found = await at.client.resume(body.workflow, cancelled=body.cancelled)
    at.audit("resume", body.workflow or EVERYWHERE, cancelled=body.cancelled)
    return json_answer(telling.standing_json(found) | {"controls": controls_json(found)})


@router.get(
    "/stream",
    response_class=StreamingResponse,
    tags=["looking"],
    responses=problems() | {200: {"content": {"text/event-stream": {}}, "description": "What changes, as it does."}},
)
async def stream(at: Viewer, last_event_id: Annotated[str | None, Header(max_length=30)] = None) -> Response:
    """Server-sent events: ``changes`` (rows), ``counts``, ``standing``, ``reset`` (load anew). The id is a ``seq``."""
    last = None
    if last_event_id is not None and last_event_id.isascii() and last_event_id.isdigit():
        last = int(last_event_id)
    feed: Feed = at.request.app.state.feed
    messages = await feed.listen(last)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)


async def ready(client: Client) -> tuple[bool, str]:
    """Whether the ledger answers."""
    try:
        found = await client.ledger.find(Find(limit=1))
        return True, f"the ledger answers ({(len(found) and 'it has records') or 'it is empty'})"
    except QuireError as error:
        return False, str(error)
