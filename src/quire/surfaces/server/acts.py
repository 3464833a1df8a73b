"""Acts: on one record, on many, and orders for all. Each is one line of the audit log with its actor."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from starlette.responses import Response

from quire.client.arguments import checked_id
from quire.client.client import Client
from quire.errors import InputError, StaleVersion
from quire.explain import words
from quire.explain.stuck import cause_of
from quire.model.record import Status
from quire.model.side import EVERYWHERE
from quire.surfaces.server import shapes
from quire.surfaces.server.asking import At, Operator, RecordId, clean, problems, record_answer, unslashed
from quire.surfaces.server.refusal import Refusal, json_answer
from quire.surfaces.server.stream import controls_json

#: A group of errors is looked for among so many records.
GROUPED = 20_000

router = APIRouter(prefix="/api", responses=problems())

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
    """One act on many records, named or found. Each lands by itself; the answer names those that refused."""
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
    clean(where.workflow, where.step)
    found = await client.find(
        workflow=where.workflow, step=where.step, status=Status(where.status), limit=GROUPED, order="updated"
    )
    if where.cause:
        found = [record for record in found if cause_of(record.last_error or "") == where.cause]
    return [record.record_id for record in found[: where.limit]]


# -- orders -----------------------------------------------------------------------------------------------------


@router.post("/halt", response_model=shapes.StandingOut, tags=["orders"], responses=problems(404, 410, 413))
async def halt(at: Operator, body: shapes.OrderIn) -> Response:
    """Stop everything, durably. The answer lists the effects under way."""
    found = await at.client.halt(body.workflow, reason=body.reason)
    at.audit("halt", body.workflow or EVERYWHERE, reason=body.reason)
    return json_answer(words.standing_json(found) | {"controls": controls_json(found)})


@router.post("/pause", response_model=shapes.StandingOut, tags=["orders"], responses=problems(404, 410, 413))
async def pause(at: Operator, body: shapes.OrderIn) -> Response:
    """Claim nothing more; what runs goes on."""
    found = await at.client.pause(body.workflow, reason=body.reason)
    at.audit("pause", body.workflow or EVERYWHERE, reason=body.reason)
    return json_answer(words.standing_json(found) | {"controls": controls_json(found)})


@router.post("/resume", response_model=shapes.StandingOut, tags=["orders"], responses=problems(404, 409, 410, 413))
async def resume(at: Operator, body: shapes.ResumeIn) -> Response:
    """End a pause or a halt."""
    found = await at.client.resume(body.workflow, cancelled=body.cancelled)
    at.audit("resume", body.workflow or EVERYWHERE, cancelled=body.cancelled)
    return json_answer(words.standing_json(found) | {"controls": controls_json(found)})
