"""The gate of the server: who may come in, in which role, how often and with how much; and what every answer carries.

On loopback, whoever reaches the port is at the machine and is an admin, as with the command line. Two things keep
others out there: the Host must be loopback too (a foreign name that resolves to it is not), and nothing may have been
forwarded by a proxy. Everywhere else a token is needed, by header or by a session cookie that was opened with one.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from itsdangerous import URLSafeTimedSerializer
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quire.client.client import Client
from quire.clock import Clock
from quire.errors import InputError, QuireError
from quire.run.waits import signature
from quire.surfaces.server import sessions
from quire.surfaces.server.auth import tokens
from quire.surfaces.server.auth.tokens import Role, Token
from quire.surfaces.server.refusal import Refusal, refused, unexpected

audit_log = logging.getLogger("quire.audit")

COOKIE = "quire_session"
#: Browsers send it only from a page of ours: a foreign page cannot set a header without being asked first.
MARK = "x-quire"

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def _raw(headers: Mapping[str, str]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.encode(), value.encode()) for name, value in headers.items())


#: On every answer. No route sets one of these.
_HEADERS = _raw(
    {
        "content-security-policy": _CSP,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), microphone=(), geolocation=()",
    }
)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: Whoever forwards says so with one of these.
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much, how often and how long."""

    body_bytes: int = 10 * 1024 * 1024
    #: Requests a second of one caller, and how many at once.
    rate: float = 300.0
    burst: int = 1000
    #: The same for those that nobody knows: links, hooks, signing in.
    stranger_rate: float = 50.0
    stranger_burst: int = 200
    #: Wrong tokens, forged links and hooks, of one address.
    mistake_rate: float = 0.5
    mistake_burst: int = 20
    session_seconds: float = 12 * 3600.0
    #: A hook's time may be so far away from ours.
    hook_seconds: float = 300.0
    link_seconds: float = 3 * 86400.0
    #: Open streams, over all callers.
    streams: int = 500


@dataclass(slots=True)
class Setup:
    """What the server knows beside its client."""

    client: Client
    limits: Limits = field(default_factory=Limits)
    #: The server listens on loopback only.
    loopback: bool = True
    callers: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Which acts at Google a chat may ask for.
    google: Sequence[str] = ()

    @property
    def clock(self) -> Clock:
        return self.client.clock

    def secret(self, purpose: str) -> str:
        """Return a secret of this ledger for one purpose."""
        assert self.client.keyring is not None
        return signature(self.client.keyring, "server", purpose)


class Actor(NamedTuple):
    """Who calls."""

    name: str
    role: Role
    #: local, token, session
    way: str
    token_id: str = ""


class Buckets:
    """Token buckets by name, the least used forgotten first: a flood of names fills no memory."""

    def __init__(self, clock: Clock, most: int = 10_000) -> None:
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, rate: float, burst: int) -> float:
        """Take one; 0.0 if there was one, otherwise how long until there is."""
        now = self._clock.boottime()
        left, at = self._kept.pop(name, (float(burst), now))
        left = min(float(burst), left + (now - at) * rate)
        wait = 0.0 if left >= 1 else (1 - left) / rate
        self._kept[name] = (left - 1 if left >= 1 else left, now)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return wait


@lru_cache(256)
def is_loopback(host: str) -> bool:
    """Whether this address is reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by name; of one that comes twice, the first."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed([*scope["headers"]])}


@lru_cache(256)
def _host_name(netloc: str) -> str:
    try:
        return urlsplit(f"//{netloc}").hostname or ""
    except ValueError:
        return ""


class _Bounded:
    """A body without a stated length is counted as it comes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._seen = 0
        self.exceeded = False

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > self._most:
                self.exceeded = True
                raise _too_large(self._most)
        return message


class Gate:
    """The outermost layer: sizes, rates, callers, and headers of every answer; and the last net under every error."""

    def __init__(self, inner: ASGIApp, setup: Setup) -> None:
        self.inner = inner
        self.setup = setup
        self.buckets = Buckets(setup.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        begun = False
        body = _Bounded(receive, self.setup.limits.body_bytes)

        async def out(message: Message) -> None:
            nonlocal begun
            if body.exceeded and not begun:
                return  # whatever a route makes of a body that was cut off: the refusal follows
            if message["type"] == "http.response.start":
                begun = True
                headers = [*message.get("headers", ()), *_HEADERS]
                if scope["path"].startswith("/api/") and not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message["headers"] = headers
            await send(message)

        try:
            await self._admit(scope)
            await self.inner(scope, body, out)
            if body.exceeded and not begun:
                raise _too_large(self.setup.limits.body_bytes)
        except QuireError as error:
            if begun:
                raise
            body.exceeded = False
            await refused(error)(scope, receive, out)
        except RecursionError:
            if begun:
                raise
            await refused(InputError("the body is nested too deeply to be read"))(scope, receive, out)
        except Exception as error:
            # The last net: whatever a route raises, the caller gets a sentence and the log gets the rest.
            if begun:
                raise
            body.exceeded = False
            await unexpected(error, f"{scope['method']} {scope['path']}")(scope, receive, out)

    async def _admit(self, scope: Scope) -> None:
        headers = headers_of(scope)
        self._check_size(headers)
        raw = scope.get("raw_path") or b""
        if b"%2f" in raw.lower():
            # A slash inside an id is not a slash of the address: routes see it as \x1f, which no id holds.
            scope["path"] = unquote(raw.decode("ascii", "replace").replace("%2F", "%1F").replace("%2f", "%1F"))
        actor = await self._actor(scope, headers)
        address = scope["client"][0] if scope.get("client") else ""
        limits = self.setup.limits
        if actor is not None:
            name, rate, burst = f"{actor.way}:{actor.token_id or actor.name}", limits.rate, limits.burst
        else:
            name, rate, burst = f"stranger:{address}", limits.stranger_rate, limits.stranger_burst
        wait = self.buckets.take(name, rate, burst)
        if wait:
            raise _too_many(wait)
        if actor is not None and scope["method"] not in _SAFE:
            check_origin(headers, actor)
        scope.setdefault("state", {})
        scope["state"] |= {"actor": actor, "gate": self, "address": address}

    def _check_size(self, headers: Mapping[str, str]) -> None:
        length = headers.get("content-length", "0")
        number = length.isascii() and length.isdigit() and len(length) < 18
        if not number or int(length) > self.setup.limits.body_bytes:
            raise _too_large(self.setup.limits.body_bytes)

    async def _actor(self, scope: Scope, headers: Mapping[str, str]) -> Actor | None:
        path = scope["path"]
        if path.startswith("/static/") or path in ("/", "/login", "/link", "/health", "/ready", "/favicon.ico"):
            return None
        if path.startswith(("/hooks/", "/signal/", "/login/")) or path in ("/wake", "/google/chat"):
            return None  # their own signature opens them
        if path == "/tick" and "x-quire-baton" in headers:
            return None
        ledger = self.setup.client.ledger
        given = headers.get("authorization", "")
        if given:
            word, _, text = given.partition(" ")
            found = None
            if word.lower() == "bearer" and len(text) < 500:
                found = await tokens.recognised(ledger, text.strip(), self.setup.callers)
            if found is None:
                self.mistake(scope, "a token that is not known, has expired or was revoked")
                raise Refusal(
                    401,
                    "Unauthorized",
                    "this token is not known, has expired or was revoked",
                    {"WWW-Authenticate": "Bearer"},
                )
            return Actor(found.name, found.role, "token", found.token_id)
        cookie = Request(scope).cookies.get(COOKIE) if "cookie" in headers else None
        if cookie:
            actor = await self._session(cookie)
            if actor is not None:
                return actor
        return self._local(headers)

    async def _session(self, cookie: str) -> Actor | None:
        found = sessions.read(self.sessions, cookie, self.setup.limits.session_seconds)
        if found is None:
            return None
        ledger = self.setup.client.ledger
        if found.token_id.startswith("caller:"):
            name = found.token_id.removeprefix("caller:")
            given = self.setup.callers.get(name)
            token = tokens.caller(name, given) if given is not None else None
        else:
            token = await tokens.token_of(ledger, found.token_id)
        if token is None or sessions.mark_of(token) != found.mark or await sessions.has_ended(ledger, found):
            return None
        return Actor(token.name, token.role, "session", token.token_id)

    def session_of(self, token: Token) -> str:
        """The cookie of a session that this token opens; with another secret, as after a revocation, it ends."""
        return sessions.cookie_of(self.sessions, token)

    async def end_session(self, cookie: str) -> None:
        """End the session of this cookie, also for whoever has a copy of it."""
        seconds = self.setup.limits.session_seconds
        found = sessions.read(self.sessions, cookie, seconds)
        if found is not None:
            await sessions.end(self.setup.client.ledger, found, seconds)

    @property
    def sessions(self) -> URLSafeTimedSerializer:
        return URLSafeTimedSerializer(self.setup.secret("session"), salt="quire.session")

    def _local(self, headers: Mapping[str, str]) -> Actor | None:
        if not self.setup.loopback or not is_loopback(_host_name(headers.get("host", ""))):
            return None
        if not _FORWARDED.isdisjoint(headers):
            return None
        name = unquote(headers.get("x-quire-as", "")).strip()
        if len(name) > 200 or not name.isprintable():
            raise Refusal(400, "InputError", "X-Quire-As is a name of at most 200 printable characters")
        return Actor(name or self.setup.client.who or "local", Role.ADMIN, "local")

    def mistake(self, scope: Scope, what: str) -> None:
        """Log a forged or wrong try, and slow down whoever makes many."""
        address = scope["client"][0] if scope.get("client") else "?"
        audit_log.warning("refused %s %s from %s: %s", scope["method"], _shown(scope["path"]), address, what)
        limits = self.setup.limits
        wait = self.buckets.take(f"mistake:{address}", limits.mistake_rate, limits.mistake_burst)
        if wait:
            raise _too_many(wait)


def check_origin(headers: Mapping[str, str], actor: Actor) -> None:
    """Refuse what a foreign page makes a browser send. A token in a header cannot be sent so, and is not asked."""
    if actor.way == "token":
        return
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    same = True
    if origin is not None:
        same = origin != "null" and origin.partition("://")[2].lower() == headers.get("host", "").lower()
    if site is not None:
        same = same and site in ("same-origin", "none")
    marked = MARK in headers
    browser = origin is not None or site is not None
    if not same or ((browser or actor.way == "session") and not marked):
        audit_log.warning("refused a request from another page: origin %r, site %r, as %r", origin, site, actor.name)
        raise Refusal(403, "Forbidden", "this request comes from another page; act from the dashboard, or with a token")


def _shown(path: str) -> str:
    return path[:120].encode("unicode_escape").decode()


def _too_many(wait: float) -> Refusal:
    seconds = max(1, round(wait + 0.5))
    return Refusal(429, "TooMany", f"too many requests; come again in {seconds} s", {"Retry-After": str(seconds)})


def _too_large(most: int) -> Refusal:
    text = f"the body is larger than {most:,} bytes; send less, or raise the limit"
    return Refusal(413, "TooLarge", text, {"Connection": "close"})


#: Acts whose target is no record.
_NO_RECORD = frozenset({"halt", "pause", "resume", "sign in", "make token", "revoke token", "keep hook", "tick"})


def audit(request: Request, act: str, target: str, **details: Any) -> None:
    """One line for every act, with its actor."""
    actor: Actor | None = request.state.actor
    name, way = (actor.name, actor.way) if actor is not None else (details.pop("by", "?"), "signed")
    rest = "".join(f" {key}={value!r}" for key, value in details.items() if value not in ("", None))
    address = request.state.address
    record_id = None if act in _NO_RECORD or act.endswith(" many") else target
    about = {"act": act, "actor": name, "way": way, "address": address, "record_id": record_id}
    audit_log.info("%s %r by %r (%s, %s)%s", act, target, name, way, address, rest, extra=about)


def actor_of(request: Request) -> Actor | None:
    found: Actor | None = request.state.actor
    return found


def needs(role: Role) -> Any:
    """Return a dependency: refuse a caller whose role may not do this."""

    async def check(request: Request) -> Actor:
        actor = actor_of(request)
        if actor is None:
            text = "sign in, or send a token: Authorization: Bearer …"
            raise Refusal(401, "Unauthorized", text, {"WWW-Authenticate": "Bearer"})
        if actor.role.rank < role.rank:
            audit_log.warning(
                "refused %s %s: %r is %s", request.method, _shown(request.url.path), actor.name, actor.role.one
            )
            raise Refusal(403, "Forbidden", f"{actor.name!r} is {actor.role.one}; this takes {role.one}")
        return actor

    return check
