"""The Model Context Protocol over stdio and HTTP. The only module that knows the library.

Over stdio whoever started the process talks, as with the command line. Over HTTP the server's gate lets callers in and
say who they are; a request stands for itself, so any process behind the same address may answer it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from quire import __version__
from quire.client.client import Client
from quire.errors import QuireError
from quire.surfaces.chat.mcp.prompts import INSTRUCTIONS, PROMPTS, filled
from quire.surfaces.chat.mcp.tools import Desk, Tool, tools_of
from quire.surfaces.server.auth.tokens import Role

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

log = logging.getLogger("quire.mcp")
audit_log = logging.getLogger("quire.audit")

#: Whoever talks in this request.
Sitting = Callable[[Any], Desk]


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where or 'the arguments'}: {first['msg']}"


async def called(desk: Desk, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Use a tool. Every refusal is one sentence."""
    tools = tools_of(desk)
    tool = tools.get(name)
    if tool is None:
        raise QuireError(f"there is no tool {name!r}; there are {', '.join(tools)}")
    if desk.role.rank < tool.role.rank:
        audit_log.warning("refused the tool %s: %r is %s", name, desk.client.who, desk.role.one)
        raise QuireError(f"{desk.client.who!r} is {desk.role.one}; {name} takes {tool.role.one}")
    try:
        given = tool.takes.model_validate(dict(arguments))
    except ValidationError as error:
        raise QuireError(_sentence(error)) from None
    return await tool.act(desk, given)


def _listed(tools: Iterable[Tool]) -> types.ListToolsResult:
    listed = [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.what,
            input_schema=tool.takes.model_json_schema(),
            annotations=types.ToolAnnotations(
                title=tool.title, read_only_hint=tool.role is Role.VIEWER, destructive_hint=tool.destructive
            ),
        )
        for tool in tools
    ]
    return types.ListToolsResult(tools=listed)


async def _list_prompts(_: Any, __: Any) -> types.ListPromptsResult:
    listed = [
        types.Prompt(
            name=prompt.name,
            title=prompt.title,
            description=prompt.what,
            arguments=[
                types.PromptArgument(name=argument.name, description=argument.what, required=argument.required)
                for argument in prompt.arguments
            ],
        )
        for prompt in PROMPTS.values()
    ]
    return types.ListPromptsResult(prompts=listed)


async def _get_prompt(_: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    prompt = PROMPTS.get(params.name)
    if prompt is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}; there are {', '.join(PROMPTS)}")
    given = dict(params.arguments or {})
    missing = [argument.name for argument in prompt.arguments if argument.required and not given.get(argument.name)]
    if missing:
        raise MCPError(types.INVALID_PARAMS, f"the prompt {params.name!r} needs {', '.join(missing)}")
    text = types.TextContent(text=filled(prompt, given))
    return types.GetPromptResult(description=prompt.what, messages=[types.PromptMessage(role="user", content=text)])


def make(sitting: Sitting) -> Server[Any]:
    """Return the protocol's server; ``sitting`` says who talks in a request."""

    async def list_tools(context: Any, _: Any) -> types.ListToolsResult:
        return _listed(tools_of(sitting(context.request)).values())

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            result = await called(sitting(context.request), params.name, params.arguments or {})
        except QuireError as error:
            return _refused(str(error))
        except Exception as error:
            log.error("unexpected in tool %s: %s: %s", params.name, type(error).__name__, error, exc_info=error)
            return _refused("something unexpected happened; the server's log has the details")
        text = json.dumps(result, ensure_ascii=False, default=str)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=json.loads(text))

    return Server(
        "quire",
        version=__version__,
        title="Quire",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
    )


def _refused(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


# -- stdio -----------------------------------------------------------------------------------------------------


async def over_stdio(client: Client, groups: Mapping[str, Sequence[str]], google: Sequence[str] = ()) -> None:
    """Serve whoever started this process, until they close it."""

    def audit(act: str, target: str, **details: Any) -> None:
        rest = "".join(f" {key}={value!r}" for key, value in details.items() if value not in ("", None))
        audit_log.info("%s %r by %r (mcp, stdio)%s", act, target, client.who, rest)

    desk = Desk(client, Role.ADMIN, groups, audit, google)
    tools_of(desk)  # a word that names no act is refused at the start
    server = make(lambda _: desk)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


# -- HTTP ------------------------------------------------------------------------------------------------------


class OverHttp:
    """An ASGI application behind the server's gate, which has put the caller into the request's state."""

    def __init__(
        self,
        client: Client,
        groups: Mapping[str, Sequence[str]],
        audit: Callable[..., None],
        google: Sequence[str] = (),
    ) -> None:
        self._client = client
        self._google = google
        self._groups = groups
        self._audit = audit
        self._manager = StreamableHTTPSessionManager(make(self._sitting), json_response=True, stateless=True)

    def running(self) -> AbstractAsyncContextManager[None]:
        """It answers while this is open."""
        return self._manager.run()

    def _sitting(self, request: Any) -> Desk:
        actor = request.state.actor
        client = self._client.acting_as(actor.name)

        def audit(act: str, target: str, **details: Any) -> None:
            self._audit(request, act, target, via="mcp", **details)

        return Desk(client, actor.role, self._groups, audit, self._google)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._manager.handle_request(scope, receive, send)
