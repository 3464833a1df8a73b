"""From an agent of a blueprint to one of pydantic-ai: its model, tools, MCP servers and the shape of its answers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quire.agents import secrets
from quire.agents.blueprint.blueprint import AgentSpec, McpSpec
from quire.errors import DefinitionError, InputError
from quire.model.fit import Fit

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model

#: A server that is started for a turn may take this long on a busy machine; the library allows 5 s.
MCP_STARTS = 60.0

_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "description": "what you need to know"},
        "context": {"type": "string", "description": "what the person must know to answer"},
        "choices": {"type": "array", "items": {"type": "string"}, "description": "the answers to choose from, if any"},
    },
    "required": ["question"],
}


def named(path: str) -> Any:
    """What ``module:name`` stands for."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise DefinitionError(f"{path!r} cannot be found: {error}; write it like 'module:name'") from None


def agent(spec: AgentSpec, model: Model, recorded: Iterable[str] | None = None) -> Agent[Any, Any]:
    """The agent as the library knows it. It tries once: what follows a failure is decided by the turn.

    ``recorded``: names of tools that a recording answers; then no MCP server is needed.
    """
    import pydantic_ai
    from pydantic_ai import Agent, ModelRetry, Tool
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    from quire.agents.receipts import ASK_PERSON

    # A terminal on which agents stand side by side has no room for the library's banner.
    pydantic_ai.BANNER_ENABLED = False
    tools = [Tool(named(path), requires_approval=path.rpartition(":")[2] in spec.approve) for path in spec.tools]
    toolsets: list[Any] = []
    if spec.mcp and recorded is not None:
        own = {tool.name for tool in tools}
        toolsets.append(_recorded_tools([name for name in recorded if name not in own], spec))
    else:
        toolsets += [_mcp(server, spec) for server in spec.mcp]
    if spec.ask:
        asks = ToolDefinition(
            name=ASK_PERSON,
            description="Put a question to a person and wait for the answer, which may take days.",
            parameters_json_schema=_QUESTION,
        )
        toolsets.append(ExternalToolset([asks]))
    made: Agent[Any, Any] = Agent(
        model,
        name=spec.id,
        instructions=spec.instructions or None,
        output_type=_output(spec),
        tools=tools,
        toolsets=toolsets,
        retries={"output": 0, "tools": 1},
    )
    schema = _schema(spec)
    if schema is not None:
        fit = Fit(schema, "the schema", unknown=True)

        @made.output_validator
        def fits(output: Any) -> Any:
            try:
                fit.taken(output, "")
            except InputError as error:
                raise ModelRetry(str(error)) from error
            return output

    return made


def _schema(spec: AgentSpec) -> dict[str, Any] | None:
    """The schema of the answers. An object without declared fields may have any, and the schema says so."""
    schema: dict[str, Any] | None = {"type": "object"} if spec.output == "json" else None
    schema = spec.output if isinstance(spec.output, dict) else schema
    if schema is not None and schema.get("type") == "object" and not schema.get("properties"):
        return {"additionalProperties": True, **schema}
    return schema


def _output(spec: AgentSpec) -> Any:
    from pydantic_ai import NativeOutput, PromptedOutput, StructuredDict, ToolOutput

    if spec.output is None:
        return str
    modes: dict[str, Callable[[Any], Any]] = {"prompted": PromptedOutput, "native": NativeOutput, "tool": ToolOutput}
    schema = _schema(spec)
    shape: Any = StructuredDict(schema) if schema is not None else named(str(spec.output))
    return modes[spec.output_mode](shape)


def text_of(output: Any) -> str:
    """What an agent said, as text for a report."""
    if isinstance(output, str):
        return output
    from pydantic_core import to_jsonable_python

    return "```json\n" + json.dumps(to_jsonable_python(output), indent=2, ensure_ascii=False) + "\n```"


def _mcp(server: McpSpec, spec: AgentSpec) -> Any:
    """The tools of an MCP server: at an address, or of a process that is started for the turn."""
    from pydantic_ai.mcp import MCPToolset

    if server.url is not None:
        headers = _from_environment(server.headers) or None
        made: Any = MCPToolset(server.url, headers=headers, init_timeout=MCP_STARTS)
    else:
        from fastmcp.client.transports import StdioTransport

        env = _from_environment(server.env)
        process = StdioTransport(server.command or "", server.args, env=env or None, keep_alive=False)
        made = MCPToolset(process, init_timeout=MCP_STARTS)
    return _approved(made, spec)


def _recorded_tools(names: Iterable[str], spec: AgentSpec) -> Any:
    """Stands where MCP servers stood, when a mission is run from its recording: no server is asked for anything."""
    from pydantic_ai import Tool
    from pydantic_ai.toolsets import FunctionToolset

    def never() -> None:
        raise AssertionError("a recorded tool is answered from its receipt")

    tools = [Tool.from_schema(never, name, None, {"type": "object"}) for name in sorted(set(names))]
    return _approved(FunctionToolset(tools), spec)


def _approved(toolset: Any, spec: AgentSpec) -> Any:
    if not spec.approve:
        return toolset
    return toolset.approval_required(lambda ctx, tool, args: tool.name in spec.approve)


def _from_environment(values: Mapping[str, str]) -> dict[str, str]:
    """``$NAME`` is the environment variable of that name: a blueprint holds no secret."""
    found = {}
    for word, value in values.items():
        if value.startswith("$"):
            given = os.environ.get(value[1:])
            if given is None:
                raise DefinitionError(f"the environment variable {value[1:]!r}, which an MCP server needs, is not set")
            secrets.remember(given)
            value = given
        found[word] = value
    return found
