"""Reading blueprints: from YAML, TOML, JSON, JavaScript or Python, checked before anything starts, with lines."""

from __future__ import annotations

import ast
import json
import logging
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from quire.agents import provider
from quire.agents.blueprint import javascript
from quire.agents.blueprint.blueprint import (
    AgentSpec,
    Blueprint,
    CorrectorSpec,
    JudgeSpec,
    Limits,
    McpSpec,
    ModelSpec,
    Price,
    Quorum,
    ReducerSpec,
)
from quire.agents.blueprint.lines import Lines, in_json, in_python, in_toml, in_yaml
from quire.agents.blueprint.words import normal
from quire.agents.secrets import looks_secret
from quire.errors import DefinitionError, did_you_mean
from quire.installing import install

log = logging.getLogger("quire.agents")

#: What a Python file calls its blueprint, as the source article does.
IN_PYTHON = "MISSION_BLUEPRINT"


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
    value, lines = _python(text, path) if path.suffix == ".py" else parsed(text, path.name)
    if isinstance(value, dict) and not any(key in normal(value) for key in ("mission",)):
        value = {"mission": path.name.partition(".")[0], **value}
    return checked(value, path.name, lines, folder=path.parent)


def parsed(text: str, name: str) -> tuple[Any, Lines]:
    """The value of a file by its ending, and where its parts stand."""
    kind = name.rpartition(".")[2].lower()
    try:
        if kind == "toml":
            return _toml(text, name)
        if kind == "js" or javascript.is_javascript(text):
            return _javascript(text, name)
        return _json(text, name) if kind == "json" else _yaml(text, name)
    except RecursionError:
        raise DefinitionError(f"{name}: its parts lie too deep within each other") from None


def _python(text: str, path: Path) -> tuple[Any, Lines]:
    """The blueprint that a Python file assigns to ``MISSION_BLUEPRINT``. What is written out is not executed."""
    try:
        tree = ast.parse(text, path.name)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise DefinitionError(f"{path.name}{where}: {getattr(error, 'msg', None) or error}") from None
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="MISSION_BLUEPRINT")], value=value):
                return _evaluated(value, path), in_python(value)
            case ast.AnnAssign(target=ast.Name(id="MISSION_BLUEPRINT"), value=ast.expr() as value):
                return _evaluated(value, path), in_python(value)
            case _:
                pass
    raise DefinitionError(
        f"{path.name}: it assigns no {IN_PYTHON}; write it like {IN_PYTHON} = {{'agents': [...], ...}}"
    )


def _evaluated(node: ast.expr, path: Path) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # made of more than plain values
        pass
    try:
        return runpy.run_path(str(path))[IN_PYTHON]
    except Exception as error:  # noqa: BLE001 - a file of the user's may raise anything
        raise DefinitionError(f"{path.name} cannot be run: {type(error).__name__}: {error}") from None


def _toml(text: str, name: str) -> tuple[Any, Lines]:
    import tomllib

    try:
        return tomllib.loads(text), in_toml(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error).replace("at end of document", f"at line {len(text.splitlines())}, the end")
        raise DefinitionError(f"{name}: {reason}") from None


def _javascript(text: str, name: str) -> tuple[Any, Lines]:
    try:
        return javascript.read(text)
    except DefinitionError as error:
        raise DefinitionError(f"{name}, {error}") from None


def _json(text: str, name: str) -> tuple[Any, Lines]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DefinitionError(f"{name}, line {error.lineno}: {error.msg}") from None
    try:
        return value, in_json(text)
    except DefinitionError as error:
        raise DefinitionError(f"{name}, {error}") from None


def _yaml(text: str, name: str) -> tuple[Any, Lines]:
    try:
        import yaml
    except ImportError:
        raise DefinitionError(f"{name}: YAML needs an extra: {install('agents')}") from None
    try:
        lines = in_yaml(text)  # first: it refuses what refers to itself
        return yaml.safe_load(text), lines
    except DefinitionError as error:
        raise DefinitionError(f"{name}, {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise DefinitionError(f"{name}{where}: {getattr(error, 'problem', None) or error}") from None
    except ValueError as error:  # a date that is none
        raise DefinitionError(f"{name}: {error}") from None


def checked(value: Any, name: str, lines: Lines | None, folder: Path | None = None) -> Blueprint:
    """The blueprint, or ``DefinitionError`` with every problem and where it stands."""
    if not isinstance(value, dict):
        raise DefinitionError(f"{name}: a blueprint is a mapping of words, such as mission, agents, reducer")
    if folder is not None:
        value = _with_scripts(normal(value), folder)
    try:
        made = Blueprint.model_validate(value)
    except ValidationError as error:
        problems = _without_branches([_problem(problem) for problem in error.errors(include_url=False)])
        raise _refused(name, lines, problems) from None
    problems = list(_problems(made))
    if problems:
        raise _refused(name, lines, problems)
    late = [turn for turn in made.turns if made.max_turns and turn > made.max_turns]
    if late:
        line = lines.of(("turns", late[0])) if lines is not None else None
        some = ", ".join(map(str, late))
        log.warning(
            "%s%s: max_turns is %d, so what is asked in turn %s is never asked",
            *(name, f", line {line}" if line else "", made.max_turns, some),
        )
    return made


def _refused(name: str, lines: Lines | None, problems: list[tuple[tuple[str | int, ...], str]]) -> DefinitionError:
    wrong = []
    for path, text in problems:
        line = lines.of(path) if lines is not None else None
        where = ".".join(str(part) for part in path)
        wrong.append((line or 0, f"{name}{f', line {line}' if line else ''}: {f'{where}: ' if where else ''}{text}"))
    return DefinitionError("\n".join(text for _, text in sorted(wrong, key=lambda one: one[0])))


def _problem(problem: Any) -> tuple[tuple[str | int, ...], str]:
    path = tuple(part for part in problem["loc"] if not _inner_mark(part))
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        text = f"there is no such word{did_you_mean(str(path[-1]), _words_at(path[:-1]))}"
    elif problem["type"] == "missing":
        text = "it is missing"
    elif problem["type"] in _SHAPES:
        text = _SHAPES[problem["type"]]
    elif problem["type"] == "string_pattern_mismatch" and path[-1:] in (("mission",), ("id",)):
        text = "a name holds no '/', '~', '|', tab or line break, and does not begin with a blank"
    return path, text.replace("Input should be", "it should be")


def _without_branches(
    problems: list[tuple[tuple[str | int, ...], str]],
) -> list[tuple[tuple[str | int, ...], str]]:
    """Where a value may be of several kinds, the library complains for each; what lies deepest is what was meant."""
    paths = [path for path, _ in problems]
    deepest = [
        (path, text)
        for path, text in problems
        if not any(len(other) > len(path) and other[: len(path)] == path for other in paths)
    ]
    return list({path: (path, text) for path, text in reversed(deepest)}.values())[::-1]


#: The library's words for a value of the wrong kind are about Python; these are about blueprints.
_SHAPES = {
    "model_type": "it should be a mapping of words",
    "dict_type": "it should be a mapping",
    "list_type": "it should be a list",
    "string_type": "it should be a text; put it in quotes",
    "int_type": "it should be a whole number",
    "int_parsing": "it should be a whole number",
    "int_from_float": "it should be a whole number",
    "float_type": "it should be a number",
    "float_parsing": "it should be a number",
    "bool_type": "it should be true or false",
    "bool_parsing": "it should be true or false",
    "string_too_short": "it is empty",
    "too_short": "it is empty; there should be at least one",
}


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
        "judge": JudgeSpec,
        "price": Price,
        "mcp": McpSpec,
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
    match made.policy:
        case Quorum(quorum=quorum) if quorum > len(made.agents):
            yield ("policy",), f"a quorum of {quorum:g} of {len(made.agents)} agents is never reached"
        case _:
            pass
    if made.inputs:
        for name in sorted(made.holes() - set(made.inputs)):
            yield ("inputs",), f"a prompt names {{{{{name}}}}}, which is not among the inputs"
    yield from _models(made)
    for path, text in _strings(made.as_json()):
        if looks_secret(text):
            yield path, "this looks like a key; a blueprint holds none: name its environment variable with key"


def _models(made: Blueprint) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Models that no library could find."""
    places: list[tuple[tuple[str | int, ...], ModelSpec | None]] = [(("model",), made.model)]
    places += [(("agents", number, "model"), agent.model) for number, agent in enumerate(made.agents)]
    places += [(("reducer", "model"), made.reducer.model), (("corrector", "model"), made.corrector.model)]
    if made.judge:
        places.append((("judge", "model"), made.judge.model))
    for path, spec in places:
        if spec is not None and (problem := provider.problem(spec.model)):
            yield path, problem


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
                why = error.strerror or str(error)
                raise DefinitionError(f"the script {str(path)!r} cannot be read: {why}") from error
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
