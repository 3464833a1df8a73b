"""The application and its server."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from quire.client.client import Client
from quire.errors import InputError, QuireError
from quire.ledger import process
from quire.ledger.base import Ledger
from quire.surfaces.config import Config
from quire.surfaces.server import api, chat, google_chat, measuring
from quire.surfaces.server.auth import oidc, sessions, tokens
from quire.surfaces.server.auth.gate import Gate, Limits, Setup, is_loopback
from quire.surfaces.server.auth.keys import Keys
from quire.surfaces.server.connections import BACKLOG, Connection
from quire.surfaces.server.crowd import crowd
from quire.surfaces.server.hooks import Nonces
from quire.surfaces.server.refusal import WORDS, json_answer, refused
from quire.surfaces.server.stream import Feed
from quire.surfaces.server.ticking import Ticking

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


_ROUTERS = (sessions.router, measuring.router, oidc.router, google_chat.router)


def app(
    client: Client,
    *,
    loopback: bool = True,
    limits: Limits | None = None,
    callers: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    provider: oidc.Provider | None = None,
    ticking: Ticking | None = None,
    google: Sequence[str] = (),
) -> FastAPI:
    """The API and the dashboard for an open client. ``loopback``: it is reached from this machine only.

    ``provider``: where people sign in with OpenID Connect. ``ticking``: what ``/tick`` does. ``google``:
    which acts at Google a chat may ask for.
    """
    if client.keyring is None:
        raise InputError("the client is not open; use it in a 'with' block")
    for name, given in (callers or {}).items():
        tokens.caller(name, given)
    setup = Setup(crowd(client), limits or Limits(), loopback, callers or {}, groups or {}, google)
    feed = Feed(setup.client, setup.limits.streams)
    others, late = chat.routes(setup)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        feed.keep_history()
        yield
        await feed.close()
        for way in late:
            await way.close()

    made = _App(
        title="Quire",
        description="Records, and everything that can be done with them.",
        version="1",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    made.state.setup = setup
    made.state.feed = feed
    made.state.nonces = Nonces()
    made.state.measuring = measuring.Measuring(client)
    made.state.keys = Keys(client.clock)
    made.state.oidc = provider
    made.state.ticking = ticking
    # As they were declared: an included router makes each of its routes anew for every application, at its first page.
    for declared in (api.ROUTES, *(router.routes for router in _ROUTERS), others):
        made.router.routes += declared
    _pages(made)
    made.add_exception_handler(QuireError, _quire_error)
    made.add_exception_handler(HTTPException, _http_error)
    made.add_exception_handler(RequestValidationError, _misshapen)
    made.add_middleware(_short_way)
    made.add_middleware(_doors_of, setup=setup)
    return made


class _App(FastAPI):
    """FastAPI without its own telemetry, which looks for providers at every request; ours is made from the log."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.middleware_stack is None:
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await self.middleware_stack(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """With the ways in that are no routes of FastAPI."""
        if self.openapi_schema is None:
            super().openapi()["paths"].update(chat.documented())
        return super().openapi()


def _short_way(inner: ASGIApp) -> ASGIApp:
    return api.short_way(inner)


def _doors_of(inner: ASGIApp, setup: Setup) -> ASGIApp:
    return Gate(inner, setup)


async def _quire_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, QuireError)
    return refused(error)


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    word = {404: "NotFound", 405: "Method"}.get(error.status_code, "InputError")
    message = WORDS.get(error.status_code, str(error.detail))
    return json_answer({"error": word, "message": message}, error.status_code, error.headers)


async def _misshapen(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: Mapping[str, Any] = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    text = f"{where}: {first['msg']}".encode("utf-8", "replace").decode()
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", "")).lower().rstrip(".")
        text = f"the body is not JSON: {reason} at character {first['loc'][-1]}"
    elif where == "body" and "json" not in request.headers.get("content-type", ""):
        text = "the body must be JSON, and say so: Content-Type: application/json"
    return json_answer({"error": "Misshapen", "message": text}, 422)


# -- pages -----------------------------------------------------------------------------------------------------


def _static() -> dict[str, tuple[bytes, str]]:
    """Return the dashboard's files, by name. They are few and small, so they are kept."""
    folder = resources.files("quire.surfaces.server") / "static"
    found = {}
    for entry in folder.iterdir():
        kind = _TYPES.get(entry.name.rpartition(".")[2])
        if kind is not None:
            found[entry.name] = (entry.read_bytes(), kind)
    return found


_OIDC = f'<p><a class="button primary" href="{oidc.START}">Sign in with your account</a></p>'.encode()


def _pages(made: FastAPI) -> None:
    files = _static()

    def page(name: str) -> Response:
        found = files.get(name)
        if found is None:
            raise HTTPException(404)
        return Response(found[0], 200, {"Cache-Control": "no-cache"}, found[1])

    async def index() -> Response:
        return page("index.html")

    async def login() -> Response:
        found = page("login.html")
        if made.state.oidc is None:
            return found
        body = bytes(found.body).replace(b"<!-- oidc -->", _OIDC)
        return Response(body, 200, {"Cache-Control": "no-cache"}, _TYPES["html"])

    async def link() -> Response:
        return page("link.html")

    async def static(name: str) -> Response:
        return page(name)

    async def icon() -> Response:
        return RedirectResponse("/static/icon.svg")

    async def health() -> Response:
        return json_answer({"status": "alive"})

    async def readiness() -> Response:
        good, text = await api.ready(made.state.setup.client)
        return json_answer({"status": "ready" if good else "not ready", "message": text}, 200 if good else 503)

    for path, answer in (("/", index), ("/login", login), ("/link", link), ("/favicon.ico", icon)):
        made.add_api_route(path, answer, include_in_schema=False)
    made.add_api_route("/static/{name}", static, include_in_schema=False)
    answers: dict[int | str, dict[str, Any]] = {503: {"description": "The ledger does not answer."}}
    made.add_api_route("/health", health, response_model=dict[str, str], tags=["health"])
    made.add_api_route("/ready", readiness, response_model=dict[str, str], tags=["health"], responses=answers)


# -- the server ------------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """Leaves the process's signals alone: whoever runs it beside a worker ends both."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _somebody_has_a_token(ledger: Ledger, host: str) -> None:
    """Refuse an address that other machines reach as long as nobody could prove who calls."""
    now = await ledger.now()
    if not any(token.valid(now) for token in await tokens.all_tokens(ledger)):
        raise InputError(
            f"{host!r} is reached from other machines, and nobody has a token: make one first, on loopback "
            "(quire token create), or name callers or an OpenID Connect provider in quire.toml"
        )


async def serve(
    client: Client,
    host: str = "127.0.0.1",
    port: int = 8700,
    *,
    config: Config | None = None,
    limits: Limits | None = None,
    callers: Mapping[str, str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    started: asyncio.Future[int] | None = None,
    ticking: Ticking | None = None,
) -> None:
    """Serve until cancelled, in this process and loop. ``started`` gets the port once it listens.

    Any address but loopback is refused unless there is a token, or a caller or a provider in quire.toml. An address
    that is taken raises ``OSError``.
    """
    callers = dict(callers if callers is not None else (config.callers if config is not None else {}))
    groups = dict(groups if groups is not None else (config.groups if config is not None else {}))
    local = is_loopback(host)
    provider = oidc.read(config.oidc if config is not None else {}, client.public_url)
    if not local and provider is None and not callers:
        await _somebody_has_a_token(client.ledger, host)
    google = config.mcp.get("google", []) if config is not None else []
    options: dict[str, Any] = {"callers": callers, "groups": groups, "provider": provider, "ticking": ticking}
    made = app(client, loopback=local, limits=limits, google=google, **options)
    listening = _bound(host, port)
    settings = uvicorn.Config(
        made,
        http=Connection,
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
        # Who forwarded a request is not believed: the gate refuses what was forwarded unless it has a token.
        proxy_headers=False,
    )
    server = _Server(settings)
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        while not server.started and not running.done():
            await client.clock.sleep(0.01)
        if started is not None and not started.done():
            started.set_result(listening.getsockname()[1])
        with process.tidying_rarely():
            await asyncio.shield(running)
    finally:
        server.should_exit = True
        await made.state.feed.close()
        try:
            await running
        finally:
            listening.close()


_UNBOUND = {
    errno.EADDRINUSE: "is taken by another program; choose another port",
    errno.EADDRNOTAVAIL: "is not an address of this machine",
    errno.EACCES: "may not be taken by this user; choose a port above 1023",
}


def _bound(host: str, port: int) -> socket.socket:
    """Return a listening socket; ``OSError`` if the address is taken or is none of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: asyncio turns off Nagle's algorithm only for a socket that says so; answers would wait 40 ms each.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        why = _UNBOUND.get(error.errno or 0, error.strerror or str(error))
        raise OSError(f"{host}:{port} {why}") from error
    return listening
