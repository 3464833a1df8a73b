"""A blueprint: a network of agents, declared. Read from YAML, TOML, JSON or Python, and checked before anything starts.

A mission keeps the blueprint that it started with, word for word and with its hash: a changed file is for new missions.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from quire.agents.lines import Lines, in_toml, in_yaml
from quire.agents.secrets import looks_secret
from quire.agents.words import normal
from quire.clock import seconds
from quire.errors import DefinitionError, InputError, did_you_mean

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
        return self


def _model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


Model = Annotated[ModelSpec, BeforeValidator(_model)]


def _turns(value: Any) -> Any:
    """Turn numbers may be texts, as JSON and TOML write them."""
    if not isinstance(value, dict):
        return value
    return {int(key) if isinstance(key, str) and key.strip().isdigit() else key: item for key, item in value.items()}


Turns = Annotated[dict[Annotated[int, Field(ge=1)], str], BeforeValidator(_turns)]


class AgentSpec(_Part):
    """One agent: who it is, what it is asked first, what it may use."""

    id: Name
    prompt: str = Field(min_length=1, description="what it is asked in turn 1 (initialPrompt)")
    instructions: str = Field("", description="said to the model in every turn, apart from the conversation")
    model: Model | None = None
    turns: Turns = Field(default_factory=dict, description="prompts for this agent alone, by turn")
    tools: list[str] = Field(default_factory=list, description="functions it may call, as module:name")
    approve: list[str] = Field(default_factory=list, description="tools that wait for a person's approval")
    approver: str | None = Field(None, description="who approves, and who answers what it asks")
    expires: Span | None = Field(None, description="how long a person may take")
    ask: bool = Field(False, description="it may put a question to a person and wait for the answer")
    mcp: list[str | dict[str, Any]] = Field(default_factory=list, description="MCP servers: addresses or commands")
    output: str | dict[str, Any] | None = Field(None, description="json, a JSON Schema, or module:Model")
    output_mode: Literal["prompted", "native", "tool"] = "prompted"


class ReducerSpec(AgentSpec):
    """The agent that makes one result of all reports: they are put below its prompt, each under its agent's name."""


class CorrectorSpec(_Part):
    """The agent that rewrites a prompt whose answer could not be read."""

    prompt: str = ""
    model: Model | None = None


class Quorum(_Part):
    quorum: float = Field(gt=0, description="how many agents must finish: a number, or a share below 1")


class Limits(_Part):
    """What a mission may spend before it asks a person."""

    tokens: int | None = Field(None, gt=0)
    usd: float | None = Field(None, gt=0)
    calls: int | None = Field(None, gt=0)
    wall: Span | None = Field(None, description="time since the start")
    calls_per_day: int | None = Field(None, gt=0, description="over all missions and workers; more wait")


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
        told = agent.turns.get(turn) or self.turns.get(turn)
        if turn == 1:
            return agent.prompt if told is None else f"{agent.prompt}\n\n{told}"
        return told if told is not None else self.go_on

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

    def told(self) -> dict[str, Any]:
        """The blueprint as plain data, in its inner spelling: this is what a mission keeps."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        return found

    @cached_property
    def hash(self) -> str:
        return hash_of(self.told())

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


def hash_of(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """The JSON Schema of blueprints, in their inner spelling."""
    made = Blueprint.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Quire blueprint", **made}


# -- reading -----------------------------------------------------------------------------------------------------------


def load(source: str | Path | Mapping[str, Any] | Blueprint) -> Blueprint:
    """The blueprint in a file, or in a dict; refused with every problem and its line."""
    if isinstance(source, Blueprint):
        return source
    if isinstance(source, Mapping):
        return checked(dict(source), "the blueprint", None)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DefinitionError(f"there is no blueprint {str(path)!r}") from None
    except (OSError, UnicodeError) as error:
        raise DefinitionError(f"the blueprint {str(path)!r} cannot be read: {error}") from error
    value, lines = parsed(text, path.name)
    if isinstance(value, dict) and not any(key in normal(value) for key in ("mission",)):
        value = {"mission": path.name.partition(".")[0], **value}
    return checked(value, path.name, lines, folder=path.parent)


def parsed(text: str, name: str) -> tuple[Any, Lines | None]:
    """The value of a file by its ending, and where its parts stand."""
    kind = name.rpartition(".")[2].lower()
    if kind == "toml":
        import tomllib

        try:
            return tomllib.loads(text), in_toml(text)
        except tomllib.TOMLDecodeError as error:
            raise DefinitionError(f"{name}: {error}") from None
    if kind == "json":
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise DefinitionError(f"{name}, line {error.lineno}: {error.msg}") from None
        return value, _yaml_lines(text, name)
    try:
        import yaml
    except ImportError:
        raise DefinitionError(f"{name}: YAML needs the extra: pip install 'quire[agents]'") from None
    try:
        return yaml.safe_load(text), _yaml_lines(text, name)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise DefinitionError(f"{name}{where}: {getattr(error, 'problem', None) or error}") from None


def _yaml_lines(text: str, name: str) -> Lines | None:
    try:
        import yaml
    except ImportError:
        return None
    try:
        return in_yaml(text)
    except DefinitionError as error:
        raise DefinitionError(f"{name}, {error}") from None
    except yaml.YAMLError:  # JSON that is no YAML, e.g. with tabs: its lines are not known
        return None


def checked(value: Any, name: str, lines: Lines | None, folder: Path | None = None) -> Blueprint:
    """The blueprint, or ``DefinitionError`` with every problem and where it stands."""
    if not isinstance(value, dict):
        raise DefinitionError(f"{name}: a blueprint is a mapping of words, such as mission, agents, reducer")
    if folder is not None:
        value = _with_scripts(normal(value), folder)
    try:
        made = Blueprint.model_validate(value)
    except ValidationError as error:
        problems = [_problem(problem) for problem in error.errors(include_url=False)]
        raise _refused(name, lines, problems) from None
    problems = list(_problems(made))
    if problems:
        raise _refused(name, lines, problems)
    return made


def _refused(name: str, lines: Lines | None, problems: list[tuple[tuple[str | int, ...], str]]) -> DefinitionError:
    told = []
    for path, text in problems:
        line = lines.of(path) if lines is not None else None
        where = ".".join(str(part) for part in path)
        told.append(f"{name}{f', line {line}' if line else ''}: {f'{where}: ' if where else ''}{text}")
    return DefinitionError("\n".join(told))


def _problem(problem: Any) -> tuple[tuple[str | int, ...], str]:
    path = tuple(part for part in problem["loc"] if not _inner_mark(part))
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        text = f"there is no such word{did_you_mean(str(path[-1]), _words_at(path[:-1]))}"
    elif problem["type"] == "missing":
        text = "it is missing"
    return path, text


def _inner_mark(part: Any) -> bool:
    """Pydantic names the branch of a union in the path; people did not write it."""
    return isinstance(part, str) and (
        part[:1].isupper()
        or part.startswith(("literal[", "function-", "constrained-", "dict[", "str", "float", "int"))
        or part == "[key]"
    )


def _words_at(path: tuple[str | int, ...]) -> list[str]:
    parts: dict[str, type[BaseModel]] = {
        "agents": AgentSpec,
        "reducer": ReducerSpec,
        "model": ModelSpec,
        "limits": Limits,
        "corrector": CorrectorSpec,
        "price": Price,
    }
    words = [part for part in path if isinstance(part, str)]
    return list((parts.get(words[-1], Blueprint) if words else Blueprint).model_fields)


def _problems(made: Blueprint) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What a schema cannot say."""
    seen: dict[str, int] = {}
    for number, agent in enumerate(made.agents):
        if agent.id in seen:
            yield (
                ("agents", number, "id"),
                f"{agent.id!r} stands here and at agent {seen[agent.id] + 1}; ids are unique",
            )
        seen.setdefault(agent.id, number)
        for name in agent.approve:
            if name not in [tool.rpartition(":")[2] for tool in agent.tools] and not agent.mcp:
                yield ("agents", number, "approve"), f"{name!r} is none of its tools"
    if made.reducer.id in seen:
        yield ("reducer", "id"), f"{made.reducer.id!r} is an agent already; the reducer has an id of its own"
    if made.max_turns:
        for turn in made.turns:
            if turn > made.max_turns:
                yield ("turns", turn), f"turn {turn} never comes: max_turns is {made.max_turns}"
    match made.policy:
        case Quorum(quorum=quorum) if quorum > len(made.agents):
            yield ("policy",), f"a quorum of {quorum:g} of {len(made.agents)} agents is never reached"
        case _:
            pass
    if made.inputs:
        for name in sorted(made.holes() - set(made.inputs)):
            yield ("inputs",), f"a prompt names {{{{{name}}}}}, which is not among the inputs"
    for path, text in _strings(made.told()):
        if looks_secret(text):
            yield path, "this looks like a key; a blueprint holds none: name its environment variable with key"


def _strings(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _strings(item, (*path, number))


def _with_scripts(value: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A script named by its file is read in: what a mission keeps is whole."""

    def read(model: Any) -> Any:
        if isinstance(model, dict) and isinstance(model.get("script"), str):
            path = folder / model["script"]
            try:
                script, _ = parsed(path.read_text(encoding="utf-8"), path.name)
            except OSError as error:
                raise DefinitionError(f"the script {str(path)!r} cannot be read: {error}") from error
            return {**model, "script": script}
        return model

    found = {**value, "model": read(value["model"])} if "model" in value else dict(value)
    for word in ("agents",):
        if isinstance(found.get(word), list):
            found[word] = [
                {**agent, "model": read(agent["model"])} if isinstance(agent, dict) and "model" in agent else agent
                for agent in found[word]
            ]
    return found
