"""Webhooks in: a signed call from outside becomes a record, once.

A hook is a setting of the ledger: which workflow it starts, and how its callers prove themselves. With ``hmac`` they
sign time, nonce and body with the hook's secret, which is derived from the ledger's keyring and stored nowhere. With
``pubsub`` they send the token that Pub/Sub push signs. The record's id comes from the event's own key, or else from
the nonce or the message id: a repetition finds the record that is there, in whatever process and after any restart.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections import OrderedDict
from typing import Any, NamedTuple

from quire.client.client import Client
from quire.errors import InputError, NotFound
from quire.ledger import engine
from quire.model.codec import dump, parse
from quire.model.record import Record
from quire.model.side import Setting
from quire.surfaces.server.auth import keys
from quire.surfaces.server.auth.gate import Setup
from quire.surfaces.server.auth.keys import Keys
from quire.surfaces.server.refusal import Refusal

HOOK = "hook/"
_MOST_NONCES = 200_000


class Hook(NamedTuple):
    name: str
    workflow: str
    #: hmac or pubsub
    kind: str = "hmac"
    #: The field of the data that tells two events apart; empty: the nonce, or the message id.
    key_field: str = ""
    #: Raising it makes a new secret.
    secret_number: int = 1
    #: For pubsub: what the push token must say; and the keys that sign it, as a JSON Web Key Set or its address.
    audience: str = ""
    email: str = ""
    #: Where neither is given, Google's are fetched.
    jwks: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    keys_url: str = ""
    #: Empty: Google, unless the keys are given.
    issuer: str = ""


class Nonces:
    """Nonces that this process has seen, for as long as their time is accepted."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], float] = OrderedDict()

    def fresh(self, hook: str, nonce: str, now: float, span: float) -> bool:
        while self._seen and (next(iter(self._seen.values())) < now - 2 * span or len(self._seen) > _MOST_NONCES):
            self._seen.popitem(last=False)
        if (hook, nonce) in self._seen:
            return False
        self._seen[hook, nonce] = now
        return True

    def forget(self, hook: str, nonce: str) -> None:
        """The call came to nothing: it may come again."""
        self._seen.pop((hook, nonce), None)


async def keep_hook(client: Client, hook: Hook) -> None:
    await engine.definition(client.ledger, hook.workflow)
    if hook.kind == "pubsub":
        if not (hook.audience and hook.email):
            raise InputError("a pubsub hook needs the audience and the e-mail of the pushing account")
        if hook.jwks:
            try:
                keys.keys_of(hook.jwks)
            except Refusal:
                raise InputError("the jwks of a pubsub hook must be a JSON Web Key Set with usable keys") from None
        if hook.keys_url:
            keys.checked_url(hook.keys_url, "keys_url")
            if not hook.issuer:
                raise InputError("a pubsub hook with a keys_url of its own needs the issuer whose keys these are")
    for _ in range(10):
        kept = await client.ledger.setting(HOOK + hook.name)
        version = kept.version if kept is not None else 0
        if await client.ledger.keep(Setting(HOOK + hook.name, dump(hook._asdict()), version)):
            return
    raise InputError(f"the hook {hook.name!r} changes all the time; try again")


async def all_hooks(client: Client) -> list[Hook]:
    return [Hook(**parse(setting.value)) for setting in await client.ledger.settings(HOOK)]


async def hook_of(client: Client, name: str) -> Hook:
    kept = await client.ledger.setting(HOOK + name)
    if kept is None:
        raise NotFound(f"there is no hook {name!r}")  # and which there are is nothing for strangers
    return Hook(**parse(kept.value))


def secret_of(setup: Setup, hook: Hook) -> str:
    return setup.secret(f"hook/{hook.secret_number}/{hook.name}")


def hook_json(hook: Hook) -> dict[str, Any]:
    return {key: value for key, value in hook._asdict().items() if key != "jwks"}


def sign(secret: str, time: str, nonce: str, body: bytes) -> str:
    """What a caller of an ``hmac`` hook sends as X-Quire-Signature."""
    return hmac.new(secret.encode(), f"{time}.{nonce}.".encode() + body, hashlib.sha256).hexdigest()


#: The parts of what is signed, in a form in which no other cut of the same bytes is accepted: neither holds a dot.
_TIME = re.compile(r"[0-9]{1,12}")
_NONCE = re.compile(r"[!-\-/-~]{8,100}")


def check_hmac(setup: Setup, hook: Hook, time: str, nonce: str, given: str, body: bytes, now: float) -> None:
    """Refuse a call that is not signed, or whose time is far away."""
    if not given or not _TIME.fullmatch(time) or not _NONCE.fullmatch(nonce):
        text = (
            "a hook needs X-Quire-Time (whole seconds since 1970), X-Quire-Nonce (8 to 100 ASCII characters without "
            "dots and spaces) and X-Quire-Signature"
        )
        raise Refusal(401, "Unsigned", text)
    made = sign(secret_of(setup, hook), time, nonce, body)
    if not hmac.compare_digest(made.encode(), given.encode("utf-8", "replace")):
        raise Refusal(403, "Forged", "the signature does not fit this hook, time, nonce and body")
    if abs(now - int(time)) > setup.limits.hook_seconds:
        raise Refusal(403, "Expired", f"the call's time is more than {setup.limits.hook_seconds:g} s away from ours")


async def check_push(known: Keys, hook: Hook, authorization: str, now: float) -> None:
    """Refuse a push whose token is not signed by the issuer's keys for the hook's audience and account."""
    word, _, token = authorization.partition(" ")
    if word.lower() != "bearer" or not token:
        raise Refusal(401, "Unsigned", "a push carries its token: Authorization: Bearer …")
    named = keys.key_id(token)
    if hook.jwks:
        key = keys.keys_of(hook.jwks).get(named)
        if key is None:
            raise Refusal(403, "Forged", "the push token is signed with a key that this hook does not know")
    else:
        key = await known.of(hook.keys_url or keys.GOOGLE_KEYS, named)
    issuers = (hook.issuer,) if hook.issuer else () if hook.jwks else keys.GOOGLE_ISSUERS
    claims = keys.claims(token, key, audience=hook.audience, issuers=issuers, now=now)
    if claims.get("email") != hook.email or claims.get("email_verified") is not True:
        raise Refusal(403, "Forged", "the push token is another account's")


def event_of(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(value, dict):
        raise InputError("the body must be an object of named fields")
    return value


def pushed(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the message id and the data of a Pub/Sub push."""
    message = event_of(body).get("message")
    if not isinstance(message, dict):
        raise InputError("a push has a 'message' with 'data' and 'messageId'")
    message_id = message.get("messageId") or message.get("message_id")
    if not isinstance(message_id, str) or not 0 < len(message_id) <= 200:
        raise InputError("the message has no 'messageId'")
    try:
        raw = base64.b64decode(str(message.get("data") or ""), validate=True)
    except ValueError:
        raise InputError("the message's 'data' is not base64") from None
    return message_id, event_of(raw)


def record_id(hook: Hook, data: dict[str, Any], otherwise: str) -> str:
    """Return the dedupe key as an id: the same event is the same record."""
    key = otherwise
    if hook.key_field:
        found = data.get(hook.key_field)
        if not isinstance(found, str | int) or isinstance(found, bool) or found == "":
            raise InputError(f"the event has no {hook.key_field!r}, which tells it apart from others")
        key = str(found)
    return f"{hook.name}:{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:20]}"


async def started(client: Client, hook: Hook, id_: str, data: dict[str, Any]) -> tuple[Record, bool]:
    """Return the record of this event, and whether it was there before."""
    there = bool(await client.ledger.load([id_]))
    handle = await client.start(hook.workflow, data, id=id_)
    return await handle.record(), there
