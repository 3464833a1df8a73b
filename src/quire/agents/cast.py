"""From an agent of a blueprint to one of pydantic-ai: its model, tools, MCP servers and the shape of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quire.agents.blueprint import AgentSpec
from quire.errors import DefinitionError
from quire.runtime.definition import misfit

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.models import Model

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


def agent(spec: AgentSpec, model: Model) -> Agent[Any, Any]:
    """The agent as the library knows it. It tries once: what follows a failure is decided by the turn."""
    from pydantic_ai import Agent, ModelRetry, Tool
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import ExternalToolset

    from quire.agents.receipts import ASK_PERSON

    tools = [Tool(named(path), requires_approval=path.rpartition(":")[2] in spec.approve) for path in spec.tools]
    toolsets: list[Any] = [_mcp(server, spec) for server in spec.mcp]
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

        @made.output_validator
        def fits(output: Any) -> Any:
            if problem := misfit(schema, output):
                raise ModelRetry(problem)
            return output

    return made


def _schema(spec: AgentSpec) -> dict[str, Any] | None:
    if spec.output == "json":
        return {"type": "object"}
    return spec.output if isinstance(spec.output, dict) else None


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


def _mcp(server: str | dict[str, Any], spec: AgentSpec) -> Any:
    from pydantic_ai.mcp import MCPToolset

    if isinstance(server, str):
        made: Any = MCPToolset(server)
    else:
        from fastmcp.client.transports import StdioTransport

        options = {"env": server["env"]} if "env" in server else {}
        made = MCPToolset(StdioTransport(server["command"], list(server.get("args", [])), **options))
    if not spec.approve:
        return made
    return made.approval_required(lambda ctx, tool, args: tool.name in spec.approve)
