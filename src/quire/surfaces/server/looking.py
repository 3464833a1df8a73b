"""Looking at the whole ledger: errors, approvals, counts, machines, missions, workers, and what changes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from quire.clock import iso
from quire.explain import asking, stuck, words
from quire.explain.stuck import cause_of
from quire.ledger import engine
from quire.model.codec import parse
from quire.model.record import Record, Status
from quire.model.row import as_dict
from quire.surfaces.server import shapes
from quire.surfaces.server.acts import GROUPED
from quire.surfaces.server.asking import Filter, RecordId, Viewer, WorkflowName, clean, problems
from quire.surfaces.server.refusal import json_answer
from quire.surfaces.server.stream import COLUMNS, Feed, controls_json, counts_json, row
from quire.workflows import drawing

#: More records that ask are not read for one answer.
MOST_ASKED = 100_000

router = APIRouter(prefix="/api", responses=problems())


@router.get("/errors", response_model=list[dict[str, Any]], tags=["looking"])
async def errors(at: Viewer) -> Response:
    """Records in ERROR, grouped by cause, the largest group first."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in await at.client.find(status=(Status.ERROR,), limit=GROUPED, order="updated"):
        groups.setdefault((record.workflow, record.step, cause_of(record.last_error or "")), []).append(record)
    answer = [
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
    return json_answer(sorted(answer, key=lambda group: -int(str(group["count"]))))


@router.get("/tables", response_model=list[dict[str, Any]], tags=["looking"])
async def tables(at: Viewer) -> Response:
    """What is wrong with tables of the sheet, and with rows of theirs: each a sentence with its remedy."""
    found = await stuck.tables(at.client.ledger)
    return json_answer(
        [{"text": each.sentence, "since": iso(each.since) or None, "remedy": each.remedy} for each in found]
    )


@router.get("/approvals", response_model=shapes.ApprovalsOut, tags=["looking"])
async def approvals(
    at: Viewer,
    workflow: Filter = "",
    mine: bool = False,
    by: asking.By = "expiry",
    offset: Annotated[int, Query(ge=0, le=MOST_ASKED)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """What people are asked: the question, what will be approved, what may be edited, and who may answer.

    ``by``: what expires next first, the longest waiting first, or by workflow. ``mine``: what whoever asks may answer.
    """
    clean(workflow)
    found = asking.asked(await at.client.find(status=(Status.NEEDS_APPROVAL,), limit=MOST_ASKED, order="updated"))
    if mine:
        found = [one for one in found if asking.may_answer(one.wait, at.client.who, at.setup.groups)]
    workflows = Counter(one.record.workflow for one in found)
    chosen = asking.in_order([one for one in found if workflow in ("", one.record.workflow)], by)
    page = [_approval(one) for one in chosen[offset : offset + limit]]
    return json_answer({"approvals": page, "total": len(chosen), "workflows": dict(sorted(workflows.items()))})


def _approval(one: asking.Asked) -> dict[str, Any]:
    record = one.record
    return {
        "record_id": record.record_id,
        "workflow": record.workflow,
        "step": record.step,
        "asked_since": iso(record.updated_at),
        "asked": words.wait_json(one.wait),
        "data": parse(record.data),
        "entry": None if record.entry is None else parse(record.entry),
    }


@router.get("/counts", response_model=list[list[Any]], tags=["looking"])
async def counts(at: Viewer) -> Response:
    """How many records, as rows of workflow, step, status, count."""
    return json_answer(await counts_json(at.client))


@router.get("/history", response_model=list[list[Any]], tags=["looking"])
async def history(at: Viewer) -> Response:
    """Counts over the last hour, as this process saw them: rows of moment, counts by status, counts by step."""
    feed: Feed = at.request.app.state.feed
    return json_answer(list(feed.history.samples))


@router.get("/workflows", response_model=list[dict[str, Any]], tags=["looking"])
async def workflows(at: Viewer) -> Response:
    """The workflows with their definitions, and how many records stand at each step."""
    found = await at.client.counts()
    answer = []
    for definition in await engine.definitions(at.client.ledger):
        mine = [[count.step, str(count.status), count.count] for count in found if count.workflow == definition["name"]]
        answer.append(definition | {"counts": mine})
    return json_answer(answer)


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


@router.get("/missions", response_model=list[dict[str, Any]], tags=["looking"])
async def missions(at: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    """The missions, by workflow and the newest first: how far each is. Their agents' parts are records below them."""
    names = [one["name"] for one in await engine.definitions(at.client.ledger) if "mission" in one.get("about", {})]
    found = await asyncio.gather(*[at.client.find(workflow=name, limit=5 * limit, order="updated") for name in names])
    answer = [row(record) for records in found for record in records if record.parent_id is None]
    return json_answer([dict(zip(COLUMNS, one, strict=True)) for one in answer[:limit]])


@router.get("/missions/{record_id}", response_model=shapes.Said, tags=["looking"], responses=problems(404))
async def mission(at: Viewer, record_id: RecordId) -> Response:
    """One mission: its agents' turns side by side, what was spent, what is asked, and the result."""
    from quire.agents import mission_view

    await at.client.get(record_id)
    return json_answer(await mission_view(at.client.ledger, record_id))


@router.get("/workers", response_model=list[dict[str, Any]], tags=["looking"])
async def workers(at: Viewer) -> Response:
    """The workers, and whether they live."""
    now = await at.client.ledger.now()
    return json_answer([words.worker_json(worker, now) for worker in await at.client.workers()])


@router.get("/standing", response_model=shapes.StandingOut, tags=["orders"])
async def standing(at: Viewer) -> Response:
    """Whether the ledger is halted or paused, by whom and why, and which effects are under way."""
    found = await at.client.standing()
    return json_answer(words.standing_json(found) | {"controls": controls_json(found)})


@router.get("/reach", response_model=shapes.ReachOut, tags=["orders"], responses=problems(404))
async def reach(at: Viewer, workflow: Filter = "") -> Response:
    """How many records a halt of all, or of one workflow, would stop, and how many a resume would let go on."""
    clean(workflow)
    return json_answer(as_dict(await at.client.reach(workflow)))


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
    return _Stream(feed, last)


class _Stream(Response):
    """The answer to one listener, who is counted as such for exactly as long as the answer lasts."""

    def __init__(self, feed: Feed, last: int | None) -> None:
        super().__init__()
        self._feed = feed
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        async with self._feed.listening(self._last) as messages:
            answer = StreamingResponse(messages, media_type="text/event-stream", headers=headers)
            await answer(scope, receive, send)
