"""Signing in with OpenID Connect: authorization code with PKCE, state and nonce; roles by e-mail or by claim.

What must survive the way to the provider and back (state, nonce, verifier) lies in a signed cookie of ten minutes, so
any process may take the callback. Whoever comes back gets a token of the ledger that expires with the session: it is
listed, revoked and looked up like any other, and its text is known to nobody.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quire.errors import InputError, did_you_mean
from quire.ledger.base import Ledger
from quire.model.codec import dump
from quire.model.side import Setting
from quire.surfaces.server.asking import problems
from quire.surfaces.server.auth import keys, tokens
from quire.surfaces.server.auth.gate import COOKIE, Gate, Setup, audit
from quire.surfaces.server.auth.tokens import Role, Token
from quire.surfaces.server.refusal import Refusal

START, BACK = "/login/oidc", "/login/oidc/callback"
_TRIP = "quire_oidc"
_TRIP_SECONDS = 600
_SETTINGS = ("issuer", "client_id", "client_secret", *Role)

#: Both answer with a redirect.
_AWAY: dict[str, Any] = {
    "status_code": 303,
    "response_class": RedirectResponse,
    "tags": ["auth"],
    "responses": problems(404) | {303: {"description": "Go on there."}},
}
router = APIRouter()


class Provider(NamedTuple):
    """What ``[oidc]`` in quire.toml says."""

    issuer: str
    client_id: str
    client_secret: str
    #: For each role, who has it: an e-mail, "@domain", or "claim:value".
    roles: Mapping[Role, tuple[str, ...]]


def read(given: Mapping[str, str], public_url: str, environ: Mapping[str, str] = os.environ) -> Provider | None:
    """The provider that is configured; None: there is none. One sentence for whatever is wrong."""
    if not given:
        return None
    for name in given:
        if name not in _SETTINGS:
            raise InputError(f"oidc: there is no {name!r}{did_you_mean(name, _SETTINGS)}")
    for name in ("issuer", "client_id"):
        if not given.get(name):
            raise InputError(f"oidc.{name} is missing")
    if not public_url:
        raise InputError("oidc needs public_url: the provider sends people back there")
    secret = given.get("client_secret", "")
    if secret.startswith("$"):
        secret = environ.get(secret[1:], "")
        if not secret:
            raise InputError(f"oidc.client_secret: the environment has no {given['client_secret'][1:]}")
    roles = {role: tuple(part.strip() for part in given.get(role, "").split(",") if part.strip()) for role in Role}
    if not any(roles.values()):
        raise InputError('oidc: nobody has a role; write one like operator = "@example.org"')
    issuer = keys.checked_url(given["issuer"], "oidc.issuer")
    return Provider(issuer, given["client_id"], secret, roles)


def _email(claims: Mapping[str, Any]) -> str:
    """The e-mail that these claims prove: one that is not verified may be anybody's, and is none."""
    return str(claims.get("email") or "") if claims.get("email_verified") is True else ""


def role_of(provider: Provider, claims: Mapping[str, Any]) -> Role | None:
    """The highest role that these claims have; an e-mail counts only if the provider has verified it."""
    email = _email(claims).lower()

    def fits(rule: str) -> bool:
        name, colon, value = rule.partition(":")
        if colon:
            found = claims.get(name)
            return value in found if isinstance(found, list) else isinstance(found, str) and found == value
        if not email:
            return False
        return email.endswith(rule.lower()) if rule.startswith("@") else email == rule.lower()

    return next((role for role in reversed(Role) if any(map(fits, provider.roles[role]))), None)


def _trips(setup: Setup) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(setup.secret("oidc"), salt="quire.oidc")


async def _discovered(request: Request, provider: Provider) -> dict[str, Any]:
    """Return the provider's own description; it must be the one that was named."""
    found: dict[str, Any] | None = getattr(request.app.state, "oidc_found", None)
    if found is None:
        found = await keys.fetched(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(found, dict) or found.get("issuer") != provider.issuer:
            raise Refusal(503, "Provider", f"{provider.issuer} describes itself as another issuer")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            keys.checked_url(str(found.get(name, "")), f"the provider's {name}")
        request.app.state.oidc_found = found
    return found


def _provider(request: Request) -> tuple[Setup, Provider]:
    setup: Setup = request.app.state.setup
    provider: Provider | None = request.app.state.oidc
    if provider is None:
        raise Refusal(404, "NotFound", "signing in with OpenID Connect is not configured; use a token")
    return setup, provider


def _secure(setup: Setup) -> bool:
    return setup.client.public_url.startswith("https:")


@router.get(START, **_AWAY)
async def leave(request: Request) -> Response:
    """Send the browser to the provider."""
    setup, provider = _provider(request)
    found = await _discovered(request, provider)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": setup.client.public_url.rstrip("/") + BACK,
        "scope": "openid email profile",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    mark = "&" if "?" in found["authorization_endpoint"] else "?"
    answer = RedirectResponse(f"{found['authorization_endpoint']}{mark}{urlencode(query)}", 303)
    trip = str(_trips(setup).dumps([state, nonce, verifier]))
    # Lax, not strict: it has to come along when the provider sends the browser back.
    answer.set_cookie(
        _TRIP, trip, max_age=_TRIP_SECONDS, path=START, httponly=True, samesite="lax", secure=_secure(setup)
    )
    return answer


@router.get(BACK, **_AWAY)
async def back(request: Request) -> Response:
    """Take the browser back, and open a session for whom the provider names."""
    setup, provider = _provider(request)
    gate: Gate = request.state.gate
    try:
        token = await _signed_in(request, setup, provider)
    except Refusal as refusal:
        if refusal.status in (400, 401, 403):
            gate.mistake(request.scope, str(refusal))
        raise
    audit(request, "sign in", token.name, by=token.name, role=str(token.role), via="oidc")
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(_TRIP, path=START)
    value = gate.session_of(token)
    age = int(setup.limits.session_seconds)
    answer.set_cookie(COOKIE, value, max_age=age, httponly=True, samesite="strict", secure=_secure(setup))
    return answer


async def _signed_in(request: Request, setup: Setup, provider: Provider) -> Token:
    query = request.query_params
    try:
        state, nonce, verifier = _trips(setup).loads(request.cookies.get(_TRIP, ""), max_age=_TRIP_SECONDS)
    except (BadSignature, ValueError, TypeError):
        raise Refusal(
            403, "Forged", "this sign-in did not begin in this browser, or took too long; try again"
        ) from None
    if not hmac.compare_digest(state.encode(), query.get("state", "").encode("utf-8", "replace")):
        raise Refusal(403, "Forged", "this sign-in did not begin in this browser; try again")
    if query.get("error") or not query.get("code"):
        raise Refusal(403, "Forbidden", "the provider did not let you in")
    found = await _discovered(request, provider)
    form = {
        "grant_type": "authorization_code",
        "code": query["code"],
        "redirect_uri": setup.client.public_url.rstrip("/") + BACK,
        "client_id": provider.client_id,
        "code_verifier": verifier,
    }
    auth = None
    if provider.client_secret:
        ways = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if "client_secret_basic" in ways:
            auth = (provider.client_id, provider.client_secret)
        else:
            form["client_secret"] = provider.client_secret
    answered = await keys.fetched(found["token_endpoint"], form, auth)
    id_token = str(answered.get("id_token", "")) if isinstance(answered, dict) else ""
    kept: keys.Keys = request.app.state.keys
    key = await kept.of(found["jwks_uri"], keys.key_id(id_token))
    now = await setup.client.ledger.now()
    claims = keys.claims(id_token, key, audience=provider.client_id, issuers=(provider.issuer,), now=now)
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise Refusal(403, "Forged", "the token belongs to another sign-in")
    if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != provider.client_id:
        raise Refusal(403, "Forged", "the token was made for another client")
    role = role_of(provider, claims)
    subject, name = str(claims.get("sub") or ""), _email(claims) or str(claims.get("sub") or "")
    if role is None or not subject or not name.isprintable() or not 0 < len(name) <= 200:
        raise Refusal(403, "Forbidden", f"{name[:200]!r} has no role here; ask whoever keeps quire.toml")
    return await _kept(setup.client.ledger, provider, subject, name, role, now, setup.limits.session_seconds)


async def _kept(
    ledger: Ledger, provider: Provider, subject: str, name: str, role: Role, now: float, length: float
) -> Token:
    """Return the person's token: one row for each person, written anew at each sign-in.

    Sessions in other browsers go on with it, unless it was revoked or has expired: then it is another.
    """
    token_id = "oidc" + hashlib.sha256(f"{provider.issuer}\n{subject}".encode()).hexdigest()[:20]
    unknown = tokens.hashed(secrets.token_urlsafe(32))
    for _ in range(10):
        kept = await ledger.setting(tokens.TOKEN + token_id)
        version = kept.version if kept is not None else 0
        before = tokens.loaded(kept) if kept is not None else None
        hash_ = before.hash if before is not None and before.valid(now) else unknown
        token = Token(token_id, name, role, hash_, now, provider.issuer, now + length)
        if await ledger.keep(Setting(tokens.TOKEN + token_id, dump(token._asdict()), version)):
            return token
    raise InputError("the sign-in collides with another one; try again")
