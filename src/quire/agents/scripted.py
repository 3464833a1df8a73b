"""A model that answers from a script. It is no AI, and says so in every answer. For tests, and for a first look.

A script names answers by agent and turn::

    delay: 0.3                    # seconds before each answer
    replies:
      CHAIN-MARS-ENGINEER:
        - "Turn 1 …"
        - "Turn 2 …"
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from quire.agents.provider import SCRIPTED
from quire.clock import SYSTEM

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.models.function import AgentInfo

NAME = SCRIPTED
MARK = "[scripted model: these words were written beforehand, no AI made them]"


def asked(messages: list[ModelMessage]) -> list[str]:
    """The prompts of a conversation so far, in order."""
    found = []
    for message in messages:
        for part in message.parts:
            if part.part_kind == "user-prompt":
                content = part.content
                found.append(content if isinstance(content, str) else " ".join(str(item) for item in content))
    return found


def answer(agent_id: str, script: dict[str, Any], prompts: list[str]) -> str:
    """The scripted answer to the last of these prompts."""
    replies = (script.get("replies") or {}).get(agent_id) or []
    turn = len(prompts)
    if turn <= len(replies):
        return f"{MARK}\n\n{replies[turn - 1].strip()}"
    first = next((line.strip() for line in prompts[-1].splitlines() if line.strip()), "") if prompts else ""
    return f"{MARK}\n\n{agent_id}, turn {turn}. I was asked: {first[:160]}"


def model(agent_id: str, script: dict[str, Any] | None) -> Model:
    """The scripted model of one agent."""
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    lines = dict(script or {})

    async def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if lines.get("delay"):
            await SYSTEM.sleep(float(lines["delay"]))
        return ModelResponse(parts=[TextPart(answer(agent_id, lines, asked(messages)))])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        response = await respond(messages, info)
        [part] = response.parts
        assert isinstance(part, TextPart)
        for word in part.content.split(" "):
            yield word + " "

    return FunctionModel(respond, stream_function=stream, model_name=NAME)
