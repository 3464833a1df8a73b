"""Ways in that speak another protocol: chats (MCP) and agents (A2A). Each is loaded when it is first called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, Protocol

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from quire.installing import install
from quire.surfaces.server.auth.gate import Setup, actor_of, audit
from quire.surfaces.server.refusal import Refusal


class Way(Protocol):
    """An application that answers while it is running."""

    def running(self) -> AbstractAsyncContextManager[None]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Late:
    """A way in that is made at its first call, for callers whom the gate knows."""

    def __init__(self, module: str, extra: str, make: Callable[[Any], Way]) -> None:
        self._module = module
        self._extra = extra
        self._make = make
        self._way: asyncio.Future[Way] | None = None
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if actor_of(Request(scope)) is None:
            text = "send a token: Authorization: Bearer …"
            raise Refusal(401, "Unauthorized", text, {"WWW-Authenticate": "Bearer"})
        if self._way is None:
            self._way = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._way))
        way = await asyncio.shield(self._way)
        await way(scope, receive, send)

    async def _run(self, made: asyncio.Future[Way]) -> None:
        """Keeps it open in a task of its own: it outlives the request that came first."""
        try:
            # In a thread: these libraries take a second to load, and a worker may live in this loop.
            way = self._make(await asyncio.to_thread(import_module, self._module))
            async with way.running():
                made.set_result(way)
                await self._ending.wait()
        except Exception as error:  # noqa: BLE001 - whoever called gets it
            self._way = None  # the next call tries again
            if not made.done():
                missing = Refusal(404, "NotFound", f"this is not installed here ({install(self._extra)})")
                made.set_exception(missing if isinstance(error, ImportError) else error)

    async def close(self) -> None:
        self._ending.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


def documented() -> dict[str, dict[str, Any]]:
    """These addresses for the OpenAPI document. The protocols themselves say what is sent there."""
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {
        "4XX": {"description": "Refused: by the gate, or in the words of the protocol.", "content": problem},
        "5XX": {"description": "The ledger does not answer, or something unexpected.", "content": problem},
    }
    said = {"schema": {"type": "object"}}
    json_ = {"content": {"application/json": said}, "required": True}
    either = {"application/json": said, "text/event-stream": {}}
    mission = {
        "name": "mission",
        "in": "path",
        "required": True,
        "schema": {"type": "string"},
        "description": "The name of a mission, as a workflow of this ledger.",
    }

    def way(summary: str, tag: str, content: dict[str, Any], **more: Any) -> dict[str, Any]:
        good = {"200": {"description": "The answer of the protocol.", "content": content}}
        return {"summary": summary, "tags": [tag], "responses": good | refusals, **more}

    return {
        "/mcp": {
            "post": way(
                "A message of the Model Context Protocol (streamable HTTP).", "chat", either, requestBody=json_
            ),
            "get": way("What the MCP server says by itself.", "chat", {"text/event-stream": {}}),
            "delete": way("End an MCP session.", "chat", either),
        },
        "/a2a/{mission}": {
            "post": way("A call of A2A (JSON-RPC).", "agents", either, requestBody=json_, parameters=[mission])
        },
        "/a2a/{mission}/.well-known/agent-card.json": {
            "get": way("The card of a mission that is published as an agent.", "agents", either, parameters=[mission])
        },
    }


def routes(setup: Setup) -> tuple[list[Any], list[Late]]:
    """Return the routes, and what has to be closed at the end."""

    def over_http(module: Any) -> Way:
        made: Way = module.OverHttp(setup.client, setup.groups, audit)
        return made

    def chatting(module: Any) -> Way:
        made: Way = module.OverHttp(setup.client, setup.groups, audit, setup.google)
        return made

    chat = Late("quire.surfaces.chat.mcp.server", "mcp", chatting)
    agents = Late("quire.surfaces.chat.a2a.server", "a2a", over_http)
    found = [
        Route("/mcp", chat, methods=["GET", "POST", "DELETE"]),
        Route("/a2a/{mission}", agents, methods=["POST"]),
        Route("/a2a/{mission}/.well-known/agent-card.json", agents, methods=["GET"]),
    ]
    return found, [chat, agents]
