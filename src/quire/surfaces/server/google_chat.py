"""``POST /google/chat``: what people write to the Chat app, and press on its messages.

Google signs each call. ``QUIRE_CHAT_AUDIENCE`` says for whom: the number of the project, or this address. A press on a
button is the signal ``posted.clicked`` of the record that waits for it. A message is an order: *stuck*, *start*,
*approve*; it is answered with the record's id and link.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request

from quire.client.client import Client
from quire.errors import InputError, QuireError
from quire.explain import stuck
from quire.explain.words import record_link
from quire.surfaces.server.auth import keys
from quire.surfaces.server.refusal import Refusal

router = APIRouter()

AUDIENCE = "QUIRE_CHAT_AUDIENCE"
ISSUER = "chat@system.gserviceaccount.com"
KEYS = f"https://www.googleapis.com/service_accounts/v1/jwk/{ISSUER}"
_SHOWN = 8
_HELP = "Say *stuck*, *start WORKFLOW name=value …*, *why ID*, *approve ID*, *reject ID note…*."


@router.post("/google/chat", include_in_schema=False)
async def hear(request: Request) -> dict[str, Any]:
    """Take an event of Google Chat, and answer in its thread."""
    client: Client = request.app.state.setup.client
    await _check(request, client)
    event = await request.json()
    if not isinstance(event, dict):
        raise Refusal(400, "Misshapen", "this is no event of Google Chat")
    who = str(event.get("user", {}).get("email", "")).lower()
    try:
        if event.get("type") == "CARD_CLICKED":
            return {"text": await clicked(client, event, who)}
        if event.get("type") == "MESSAGE":
            return {"text": await ordered(client, event, who)}
    except QuireError as error:
        return {"text": str(error)}
    return {"text": _HELP} if event.get("type") == "ADDED_TO_SPACE" else {}


async def _check(request: Request, client: Client) -> None:
    """Refuse whatever Google did not sign for this app."""
    audience = os.environ.get(AUDIENCE, "")
    if not audience:
        raise Refusal(403, "Closed", f"set {AUDIENCE} to the number of the Chat app's project, or to this address")
    word, _, token = request.headers.get("authorization", "").partition(" ")
    if word.lower() != "bearer" or not token:
        raise Refusal(401, "Unauthorized", "the call has no token of Google Chat")
    key = await request.app.state.keys.of(_keys_url(), keys.key_id(token))
    keys.claims(token, key, audience=audience, issuers=(ISSUER,), now=await client.ledger.now())


def _keys_url() -> str:
    emulator = os.environ.get("QUIRE_GOOGLE", "").partition("?")[0].rstrip("/")
    return keys.checked_url(f"{emulator}/emulator/jwks" if emulator else KEYS, "the address of Chat's keys")


# -- what is pressed -----------------------------------------------------------------------------------------------


async def clicked(client: Client, event: Mapping[str, Any], who: str) -> str:
    """Signal the record that waits for a press on this message."""
    from quire.workspace.readers.waiting import waiting
    from quire.workspace.values import Clicked

    name = str(event.get("message", {}).get("name", ""))
    common = event.get("common", {})
    choice = str(common.get("parameters", {}).get("choice") or common.get("invokedFunction", ""))
    inputs = {word: _typed(value) for word, value in (common.get("formInputs") or {}).items()}
    waits = [wait for wait in await waiting(client, ("chat",)) if wait.signal == f"chat:{name}"]
    if not waits:
        return "Nobody waits for this any more."
    press = f"chat-{name.rpartition('/')[2]}-{event.get('eventTime', '')}-{choice}"
    for wait in waits:
        value = Clicked(name, choice, who, inputs)
        await client.signal(wait.record_id, wait.signal, value, signal_id=press[:200], by=who)
    return f"{choice}: {_linked(client, waits[0].record_id)}"


def _typed(value: Mapping[str, Any]) -> Any:
    given = value.get("stringInputs", {}).get("value", [])
    return given[0] if len(given) == 1 else given


# -- what is written -----------------------------------------------------------------------------------------------


async def ordered(client: Client, event: Mapping[str, Any], who: str) -> str:
    """Do what a message says."""
    message = event.get("message", {})
    text = str(message.get("argumentText") or message.get("text", "")).strip()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"{text!r} cannot be read: {error}") from error
    word = words[0].lower().rstrip("?") if words else ""
    if "stuck" in text.lower():
        return await _stuck(client)
    if word == "start" and len(words) > 1:
        return await _start(client, words[1], words[2:], str(message.get("name", "")))
    if word == "why" and len(words) > 1:
        record = await client.get(words[1])
        return f"{_linked(client, record.record_id)} is {record.status}" + (f" at {record.step}" if record.step else "")
    if word in ("approve", "reject") and len(words) > 1:
        _check_person(who)
        record = await client.answer(words[1], word, by=who, note=" ".join(words[2:]))
        return f"{word}: {_linked(client, record.record_id)}"
    return _HELP


def _check_person(who: str) -> None:
    if "@" not in who:
        raise InputError("Google does not say who you are, so you cannot answer here")


async def _stuck(client: Client) -> str:
    found = await stuck.look(client.ledger, client.link.groups)
    if not found:
        return "Nothing is stuck."
    lines = [f"• {one.sentence}" + (f" ({', '.join(one.record_ids[:3])})" if one.record_ids else "") for one in found]
    more = len(lines) - _SHOWN
    return "\n".join([*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])


async def _start(client: Client, workflow: str, given: list[str], name: str) -> str:
    """Start a record under an id made from the message, so that a repeated call starts none."""
    data: dict[str, Any] = {}
    for pair in given:
        field, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"{pair!r} is no field; write it like company=Acme")
        try:
            data[field] = json.loads(value)
        except ValueError:
            data[field] = value
    handle = await client.start(workflow, data, id=f"{workflow}-chat-{name.rpartition('/')[2]}")
    return f"started {_linked(client, handle.record_id)}"


def _linked(client: Client, record_id: str) -> str:
    link = record_link(client.public_url, record_id)
    return f"<{link}|{record_id}>" if link else record_id
