"""Ways in that carry their own proof: sessions, tokens, approval links, hooks and signals from outside."""

from __future__ import annotations

import hmac
import json
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from quire.client.arguments import checked_id
from quire.clock import iso
from quire.errors import InputError
from quire.run.waits import signature
from quire.surfaces.server import hooks, shapes
from quire.surfaces.server.asking import Admin, RecordId, problems, record_answer, setup_of, span, unslashed
from quire.surfaces.server.auth import links, tokens
from quire.surfaces.server.auth.gate import COOKIE, Gate, actor_of, audit, needs
from quire.surfaces.server.auth.tokens import Role
from quire.surfaces.server.refusal import Refusal, json_answer
from quire.surfaces.server.ticking import Ticking
from quire.surfaces.waking import WAKE, leave_hint
from quire.upkeep import ticks as relay

router = APIRouter(responses=problems(413))


def _gate(request: Request) -> Gate:
    found: Gate = request.state.gate
    return found


def _mistaken(request: Request, refusal: Refusal) -> Refusal:
    """Log a forged, expired or repeated try before it is refused."""
    if refusal.status in (401, 403, 409, 410):
        _gate(request).mistake(request.scope, str(refusal))
    return refusal


# -- sessions --------------------------------------------------------------------------------------------------


@router.get("/api/session", response_model=shapes.Said, tags=["auth"])
async def session(request: Request) -> Response:
    """Who is signed in: the name, the role, and how they came in; all null if nobody is."""
    actor = actor_of(request)
    if actor is None:
        return json_answer({"name": None, "role": None, "way": None})
    return json_answer({"name": actor.name, "role": str(actor.role), "way": actor.way})


@router.post("/api/session", response_model=shapes.Said, tags=["auth"])
async def sign_in(request: Request, body: shapes.SessionIn) -> Response:
    """Open a session with a token: the cookie is signed, for this site only, and not for scripts."""
    setup = setup_of(request)
    found = await tokens.recognised(setup.client.ledger, body.token.strip(), setup.callers)
    if found is None:
        text = "this token is not known, has expired or was revoked"
        raise _mistaken(request, Refusal(401, "Unauthorized", text))
    answer = json_answer({"name": found.name, "role": str(found.role), "way": "session"})
    secure = request.url.scheme == "https" or setup.client.public_url.startswith("https:")
    value = _gate(request).session_of(found)
    age = int(setup.limits.session_seconds)
    answer.set_cookie(COOKIE, value, max_age=age, httponly=True, samesite="strict", secure=secure)
    audit(request, "sign in", found.name, by=found.name)
    return answer


@router.delete("/api/session", response_model=shapes.Said, tags=["auth"])
async def sign_out(request: Request) -> Response:
    """End the session of this browser. Copies of its cookie open nothing any more."""
    await _gate(request).end_session(request.cookies.get(COOKIE, ""))
    answer = json_answer({"name": None, "role": None, "way": None})
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


# -- tokens ----------------------------------------------------------------------------------------------------


@router.get("/api/tokens", response_model=list[dict[str, Any]], tags=["auth"])
async def list_tokens(at: Admin) -> Response:
    """The tokens, without what opens anything."""
    return json_answer([tokens.token_json(token) for token in await tokens.all_tokens(at.client.ledger)])


@router.post("/api/tokens", status_code=201, response_model=shapes.Said, tags=["auth"])
async def make_token(at: Admin, body: shapes.TokenIn) -> Response:
    """Make a token. Its text is in this answer and nowhere else."""
    expires = span(body.expires)
    text, token = await tokens.make_token(at.client.ledger, body.name, body.role, by=at.actor.name, expires=expires)
    at.audit("make token", token.token_id, name=token.name, role=str(token.role))
    return json_answer(tokens.token_json(token) | {"token": text}, 201)


@router.delete("/api/tokens/{token_id}", response_model=shapes.Said, tags=["auth"], responses=problems(404))
async def revoke_token(at: Admin, token_id: Annotated[str, Path(max_length=100)]) -> Response:
    """Revoke a token, and the sessions that were opened with it."""
    token = await tokens.revoke_token(at.client.ledger, unslashed(token_id), by=at.actor.name)
    at.audit("revoke token", token.token_id, name=token.name)
    return json_answer(tokens.token_json(token))


# -- approval links --------------------------------------------------------------------------------------------


@router.post(
    "/api/records/{record_id}/link",
    status_code=201,
    response_model=shapes.Said,
    tags=["links"],
    responses=problems(404, 409),
)
async def make_link(at: Admin, record_id: RecordId, body: shapes.LinkIn) -> Response:
    """A link with which one person answers what the record asks now, once."""
    url, end = await links.make_link(at.setup, record_id, body.person, span(body.expires))
    at.audit("make link", record_id, person=body.person)
    return json_answer({"url": url, "expires_at": iso(end)}, 201)


async def _opened(request: Request, text: str) -> Any:
    actor = actor_of(request)
    signed_in = actor.name if actor is not None and actor.way in ("token", "session") else None
    try:
        return await links.opened(setup_of(request), text, signed_in)
    except Refusal as refusal:
        raise _mistaken(request, refusal) from None


@router.post("/api/link", response_model=shapes.Said, tags=["links"], responses=problems(404, 410))
async def open_link(request: Request, body: shapes.LinkText) -> Response:
    """What the link asks. Changes nothing."""
    return json_answer(links.link_json(*await _opened(request, body.link)))


@router.post(
    "/api/link/answer", response_model=shapes.RecordOut, tags=["links"], responses=problems(404, 409, 410, 423)
)
async def answer_link(request: Request, body: shapes.LinkAnswerIn) -> Response:
    """Answer in the name of the person whom the link is for."""
    link, _, _ = await _opened(request, body.link)
    record = await links.answer(setup_of(request), link, body.choice, body.note, body.edits)
    audit(request, "answer by link", link.record_id, by=link.person, person=link.person, choice=body.choice)
    return record_answer(record)


# -- hooks -----------------------------------------------------------------------------------------------------


@router.get("/api/hooks", response_model=list[dict[str, Any]], tags=["hooks"])
async def list_hooks(at: Admin) -> Response:
    """The hooks of this ledger."""
    return json_answer([hooks.hook_json(hook) for hook in await hooks.all_hooks(at.client)])


@router.put("/api/hooks/{name}", response_model=shapes.Said, tags=["hooks"], responses=problems(404))
async def keep_hook(
    at: Admin, name: Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,100}$")], body: shapes.HookIn
) -> Response:
    """Make or change a hook. The answer has its address and, for ``hmac``, the secret that its callers sign with."""
    hook = hooks.Hook(name=name, **body.model_dump())
    await hooks.keep_hook(at.client, hook)
    at.audit("keep hook", name, workflow=hook.workflow)
    secret = {"secret": hooks.secret_of(at.setup, hook)} if hook.kind == "hmac" else {}
    url = f"{at.client.public_url.rstrip('/')}/hooks/{name}"
    return json_answer(hooks.hook_json(hook) | {"url": url} | secret)


@router.post(
    "/hooks/{name}",
    status_code=201,
    response_model=shapes.Said,
    tags=["hooks"],
    responses=problems(404, 409, 410, 423)
    | {200: {"model": shapes.Said, "description": "The event's record was there before."}},
)
async def call_hook(
    request: Request,
    name: Annotated[str, Path(max_length=100)],
    body: Annotated[dict[str, Any], Body()],
    x_quire_time: Annotated[str, Header(max_length=40)] = "",
    x_quire_nonce: Annotated[str, Header(max_length=200)] = "",
    x_quire_signature: Annotated[str, Header(max_length=200)] = "",
    authorization: Annotated[str, Header(max_length=8000)] = "",
) -> Response:
    """An event from outside becomes a record, once. Signed by HMAC over time, nonce and body, or by Pub/Sub."""
    setup = setup_of(request)
    client = setup.client
    hook = await hooks.hook_of(client, unslashed(name))
    raw = await request.body()
    now = await client.ledger.now()
    try:
        if hook.kind == "pubsub":
            await hooks.check_push(request.app.state.keys, hook, authorization, now)
            otherwise, data = hooks.pushed(raw)
        else:
            hooks.check_hmac(setup, hook, x_quire_time, x_quire_nonce, x_quire_signature, raw, now)
            otherwise, data = x_quire_nonce, hooks.event_of(raw)
    except Refusal as refusal:
        raise _mistaken(request, refusal) from None
    id_ = hooks.record_id(hook, data, otherwise)
    nonces: hooks.Nonces = request.app.state.nonces
    if hook.kind == "hmac" and not nonces.fresh(hook.name, x_quire_nonce, now, setup.limits.hook_seconds):
        raise _mistaken(request, Refusal(409, "Replayed", "this nonce was used before"))
    try:
        record, there = await hooks.started(client, hook, id_, data)
    except BaseException:
        # Nothing was started, as far as is known: the caller comes again with the same call, and the id keeps it one.
        nonces.forget(hook.name, x_quire_nonce)
        raise
    if there and hook.kind == "hmac" and not hook.key_field:
        raise _mistaken(request, Refusal(409, "Replayed", "this nonce was used before"))
    audit(request, "hook", record.record_id, by=f"hook {hook.name}", again=there)
    answer = {"record_id": record.record_id, "again": there}
    return json_answer(answer, 200 if there else 201)


@router.post("/wake", status_code=202, response_model=shapes.Said, tags=["hooks"], responses=problems(409))
async def wake(
    request: Request,
    x_quire_time: Annotated[str, Header(max_length=40)] = "",
    x_quire_nonce: Annotated[str, Header(max_length=200)] = "",
    x_quire_signature: Annotated[str, Header(max_length=200)] = "",
) -> Response:
    """Something has changed in the sheet: look now. A hint, signed like a hook's call; what is in it does not count."""
    setup = setup_of(request)
    hook = hooks.Hook(WAKE, "")
    now = await setup.client.ledger.now()
    try:
        hooks.check_hmac(setup, hook, x_quire_time, x_quire_nonce, x_quire_signature, await request.body(), now)
        nonces: hooks.Nonces = request.app.state.nonces
        if not nonces.fresh(hook.name, x_quire_nonce, now, setup.limits.hook_seconds):
            raise Refusal(409, "Replayed", "this nonce was used before")
    except Refusal as refusal:
        raise _mistaken(request, refusal) from None
    for waker in setup.client.wakers:
        waker()
    await leave_hint(setup.client.ledger)
    return json_answer({"woken": len(setup.client.wakers)}, 202)


# -- ticks -----------------------------------------------------------------------------------------------------


@router.post("/tick", response_model=shapes.Said, tags=["ticks"], responses=problems(404))
async def tick(request: Request, x_quire_baton: Annotated[str, Header(max_length=200)] = "") -> Response:
    """Work for one slice of time. A periodic caller comes with a token; the slice before, with its signed baton.

    A baton that is not the slot's present one does nothing. The answer comes when the slice has ended.
    """
    ticking: Ticking | None = request.app.state.ticking
    if ticking is None:
        raise Refusal(404, "NotFound", "this server does not work on calls; start it with quire serve --tick SPAN FILE")
    baton = None
    if x_quire_baton:
        try:
            baton = relay.Baton.parse(x_quire_baton)
        except InputError as error:
            raise _mistaken(request, Refusal(403, "Forged", str(error))) from None
        if not relay.genuine(ticking.keyring, baton):
            raise _mistaken(request, Refusal(403, "Forged", "the baton was not signed by this ledger"))
    else:
        await needs(Role.OPERATOR)(request)
    answer = await ticking.slice(baton)
    audit(request, "tick", str(answer.get("slot", "")), by="the slice before", ran=answer["ran"])
    return json_answer(answer)


# -- signals from outside --------------------------------------------------------------------------------------


@router.post(
    "/signal/{record_id}/{signal}", response_model=shapes.Said, tags=["signals"], responses=problems(404, 409, 410, 423)
)
async def outside_signal(
    request: Request,
    record_id: RecordId,
    signal: Annotated[str, Path(max_length=500)],
    key: Annotated[str, Query(max_length=200)] = "",
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """What ``run.signal_url`` leads to: the body, if there is one, is the signal's value."""
    setup = setup_of(request)
    name = unslashed(signal)
    assert setup.client.keyring is not None
    made = signature(setup.client.keyring, "signal", record_id, name)
    if not hmac.compare_digest(made.encode(), key.encode("utf-8", "replace")):
        raise _mistaken(request, Refusal(403, "Forged", "the key does not fit this record and signal"))
    raw = await request.body()
    try:
        value = json.loads(raw) if raw.strip() else None
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    signal_id = None if not idempotency_key else checked_id(f"{record_id[:200]}:{name[:50]}:{idempotency_key}")
    bearer = "the bearer of its address"
    record = await setup.client.signal(record_id, name, value, signal_id=signal_id, by=bearer)
    audit(request, "signal", record_id, by=bearer, signal=name)
    return json_answer({"record_id": record.record_id, "status": str(record.status)})
