"""A blueprint: a network of agents, declared.

A mission keeps the blueprint that it started with, word for word and with its hash: a changed file is for new missions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from quire.agents.blueprint.words import normal
from quire.clock import seconds
from quire.errors import InputError, did_you_mean

#: What an agent is asked in a turn for which the blueprint has no prompt.
GO_ON = "Go on: take what you have said so far one step further."

_HOLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


def _span(value: Any) -> Any:
    if value is not None:
        try:
            seconds(value)
        except InputError as error:
            raise ValueError(str(error)) from None
    return value


Span = Annotated[str | float | int, BeforeValidator(_span)]
Name = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^/~|\s][^/~|\n\t]*$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Price(_Part):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class ModelSpec(_Part):
    """Which model answers, and how it is reached."""

    model: str = Field(min_length=1, description="provider:name, e.g. google:gemini-2.5-flash; or scripted, or local")
    base_url: str | None = Field(None, description="another address of the provider, or any OpenAI-compatible server")
    key: str | None = Field(None, description="the NAME of the environment variable that holds the key, never the key")
    rate: str | None = Field(None, description="calls over all workers, e.g. 60/1m", pattern=r"^\d+(\.\d+)?\s*/\s*\S+$")
    price: Price | None = None
    timeout: Span = Field("2m", description="one call takes no longer than this")
    stream: bool = Field(False, description="read the answer as a stream")
    settings: dict[str, Any] = Field(default_factory=dict, description="settings of pydantic-ai, e.g. temperature")
    script: dict[str, Any] | None = Field(None, description="answers of the scripted model, by agent")

    @model_validator(mode="after")
    def _sound(self) -> ModelSpec:
        if self.key is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.key):
            raise ValueError("key is the name of an environment variable, such as GEMINI_API_KEY, never the key itself")
        if self.rate is not None:
            _span(self.rate.partition("/")[2].strip())
        _no_password(self.base_url)
        return self


def _no_password(url: str | None) -> None:
    """Whatever stands in a blueprint is kept in the ledger, for everybody who may read there."""
    if url is not None and urlsplit(url).password:
        raise ValueError("this address holds a password; a blueprint holds none: name an environment variable instead")


def _model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


Model = Annotated[ModelSpec, BeforeValidator(_model)]


def _turns(value: Any) -> Any:
    """Turn numbers may be texts, as JSON and TOML write them."""
    if not isinstance(value, dict):
        return value
    return {int(key) if isinstance(key, str) and key.strip().isdigit() else key: item for key, item in value.items()}


Turns = Annotated[dict[Annotated[int, Field(ge=1)], str], BeforeValidator(_turns)]


def _found(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
        raise ValueError(f"{value!r} names nothing in Python; write it like 'module:name'")
    return value


Found = Annotated[str, BeforeValidator(_found)]


class McpSpec(_Part):
    """An MCP server: at an address, or a process that is started for each turn."""

    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict, description="$NAME is an environment variable")
    command: str | None = None
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict, description="$NAME is an environment variable")

    @model_validator(mode="after")
    def _one(self) -> McpSpec:
        if (self.url is None) == (self.command is None):
            raise ValueError("an MCP server has either a url or a command")
        _no_password(self.url)
        return self


Mcp = Annotated[McpSpec, BeforeValidator(lambda value: {"url": value} if isinstance(value, str) else value)]


class AgentSpec(_Part):
    """One agent: who it is, what it is asked first, what it may use."""

    id: Name
    prompt: str = Field(min_length=1, description="what it is asked in turn 1 (initialPrompt)")
    instructions: str = Field("", description="said to the model in every turn, apart from the conversation")
    model: Model | None = None
    turns: Turns = Field(default_factory=dict, description="prompts for this agent alone, by turn")
    tools: list[Found] = Field(default_factory=list, description="functions it may call, as module:name")
    approve: list[str] = Field(default_factory=list, description="tools that wait for a person's approval")
    approver: str | None = Field(None, description="who approves, and who answers what it asks")
    expires: Span | None = Field(None, description="how long a person may take")
    ask: bool = Field(False, description="it may put a question to a person and wait for the answer")
    mcp: list[Mcp] = Field(default_factory=list, description="MCP servers: addresses, or how to start one")
    output: str | dict[str, Any] | None = Field(None, description="json, a JSON Schema, or module:Model")
    output_mode: Literal["prompted", "native", "tool"] = "prompted"

    @model_validator(mode="after")
    def _shape(self) -> AgentSpec:
        if isinstance(self.output, str) and self.output != "json":
            _found(self.output)
        return self


class ReducerSpec(AgentSpec):
    """The agent that makes one result of all reports: they are put below its prompt, each under its agent's name."""


class CorrectorSpec(_Part):
    """The agent that advises on the form of an answer which could not be read."""

    prompt: str = Field("", description="more words for it")
    model: Model | None = None


class JudgeSpec(_Part):
    """The judge that says whether the answer to a corrected prompt still does what was asked at first."""

    prompt: str = Field("", description="more words for it")
    model: Model | None = Field(None, description="the agent's own, if it names none")


Judge = Annotated[JudgeSpec | Literal[False], BeforeValidator(lambda value: {} if value is True else value)]


class Quorum(_Part):
    quorum: float = Field(gt=0, description="how many agents must finish: a number, or a share below 1")


class Limits(_Part):
    """What a mission may spend before it asks a person."""

    tokens: int | None = Field(None, gt=0)
    usd: float | None = Field(None, gt=0)
    calls: int | None = Field(None, gt=0)
    wall: Span | None = Field(None, description="time since the start")
    calls_per_day: int | None = Field(None, gt=0, description="over all missions of the ledger; days are UTC's")
    tokens_per_day: int | None = Field(None, gt=0, description="over all missions of the ledger; days are UTC's")
    usd_per_day: float | None = Field(None, gt=0, description="over all missions of the ledger; days are UTC's")


class Blueprint(_Part):
    """A mission, declared."""

    mission: Name
    model: Model = ModelSpec(model="google:gemini-2.5-flash")
    max_turns: int = Field(0, ge=0, description="0: as many as the turns name")
    max_retries: int = Field(2, ge=0, description="tries after the first, for each turn")
    inputs: list[str] = Field(default_factory=list, description="what a start must bring; {{name}} in prompts")
    agents: list[AgentSpec] = Field(min_length=1)
    turns: Turns = Field(default_factory=dict, description="what every agent is asked in turn n (TURN_PROMPTS)")
    go_on: str = Field(GO_ON, description="what is asked in a turn without a prompt")
    reducer: ReducerSpec
    corrector: CorrectorSpec = CorrectorSpec()
    judge: Judge = Field(JudgeSpec(), description="false: answers to corrected prompts are not judged")
    barrier: bool = Field(False, description="true: a turn begins when all agents have ended the one before")
    policy: Literal["all", "best_effort"] | Quorum = "all"
    deadline: Span | None = Field(None, description="after this the reducer goes on with what is there")
    cap: int | None = Field(None, ge=1, description="turns under way at the same time, over all workers")
    limits: Limits = Limits()
    start_delay_ms: int = Field(0, ge=0)
    history_tokens: int = Field(100_000, ge=1000, description="longer conversations are compacted")
    approver: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return normal(value) if isinstance(value, Mapping) else value

    @property
    def last_turn(self) -> int:
        named = [1, *self.turns, *(number for agent in self.agents for number in agent.turns)]
        return self.max_turns or max(named)

    def agent(self, agent_id: str) -> AgentSpec:
        for agent in (*self.agents, self.reducer):
            if agent.id == agent_id:
                return agent
        raise InputError(f"there is no agent {agent_id!r}{did_you_mean(agent_id, [a.id for a in self.agents])}")

    def model_of(self, agent: AgentSpec) -> ModelSpec:
        return agent.model or self.model

    def prompt(self, agent: AgentSpec, turn: int) -> str:
        """What the agent is asked in this turn, before inputs are filled in."""
        prompt = agent.turns.get(turn) or self.turns.get(turn)
        if turn == 1:
            return agent.prompt if prompt is None else f"{agent.prompt}\n\n{prompt}"
        return prompt if prompt is not None else self.go_on

    def needed(self) -> int:
        """How many agents must finish."""
        match self.policy:
            case "all":
                return len(self.agents)
            case "best_effort":
                return 1
            case Quorum(quorum=quorum):
                exact = quorum * len(self.agents) if quorum < 1 else quorum
                return min(len(self.agents), max(1, int(exact + 0.999999)))

    def as_json(self) -> dict[str, Any]:
        """The blueprint as plain data, in its inner spelling: this is what a mission keeps."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        return found

    def about(self) -> dict[str, Any]:
        """What surfaces that publish the mission tell of it; without its prompts."""
        needed = list(dict.fromkeys([*self.inputs, *sorted(self.holes())]))
        agents = [agent.id for agent in self.agents]
        return {"mission": {"inputs": needed, "agents": agents, "turns": self.last_turn, "reducer": self.reducer.id}}

    @cached_property
    def hash(self) -> str:
        return hash_of(self.as_json())

    def holes(self) -> set[str]:
        """The inputs that the prompts name."""
        return {name for text in self._texts() for name in _HOLE.findall(text)}

    def _texts(self) -> Iterator[str]:
        yield from self.turns.values()
        yield self.go_on
        for agent in (*self.agents, self.reducer):
            yield agent.prompt
            yield agent.instructions
            yield from agent.turns.values()

    def filled(self, text: str, inputs: Mapping[str, Any]) -> str:
        """The prompt with its ``{{holes}}`` filled."""
        return _HOLE.sub(lambda hole: _shown(inputs.get(hole[1], hole[0])), text)

    def given(self, inputs: Mapping[str, Any]) -> str:
        """Inputs that no prompt names, as lines below the first prompt: nothing that was given is lost in silence."""
        loose = {name: value for name, value in inputs.items() if name not in self.holes()}
        if not loose:
            return ""
        return "\n\nGiven:\n" + "\n".join(f"- {name}: {_shown(value)}" for name, value in loose.items())

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        missing = [name for name in dict.fromkeys([*self.inputs, *sorted(self.holes())]) if name not in inputs]
        if missing:
            raise InputError(
                f"mission {self.mission!r} needs {', '.join(map(repr, missing))}; "
                f"start it with {' '.join(f'{name}=…' for name in missing)}"
            )


def hash_of(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """The JSON Schema of blueprints, in their inner spelling."""
    made = Blueprint.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "Quire blueprint"}
