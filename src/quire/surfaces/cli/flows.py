"""Users' flow files: loaded by path, with one sentence for whatever is wrong with one."""

from __future__ import annotations

import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from quire.errors import DefinitionError, InputError, NotFound, QuireError
from quire.installing import install
from quire.surfaces.cli.command import Session
from quire.surfaces.config import FILE, states_in
from quire.workflows import states
from quire.workflows.workflow import Workflow


class FlowError(InputError):
    """A flow file cannot be loaded. Correct the line that the message names; ``quire check`` looks without a ledger."""


class _AsItIs(SourceFileLoader):
    """Reads the source. Bytecode counts as current by its second and its size: a quick edit of one would be missed."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_flows(files: Sequence[str]) -> list[Workflow[Any, Any, Any]]:
    """Return the workflows of these files, each once."""
    if not files:
        raise FlowError(
            'no workflows to run: name a file (quire up flows.py), or write flows = ["flows.py"] in quire.toml'
        )
    found: dict[int, Workflow[Any, Any, Any]] = {}
    for file in files:
        found |= {id(made): made for made in load_file(file)}
    return list(found.values())


def built_in(session: Session) -> list[Workflow[Any, Any, Any]]:
    """The workflow of single acts at Google, in a project that says who acts there."""
    if not (session.config.google or session.config.mcp.get("google")):
        return []
    from quire.workspace import single

    return [single.google]


def load_file(file: str) -> list[Workflow[Any, Any, Any]]:
    """Return the workflows of one file: a Python module, or the blueprint of a mission."""
    path = Path(file)
    if not path.is_file():
        raise NotFound(f"there is no flow file {str(path)!r}")
    if path.name in (FILE, "pyproject.toml"):
        return _states(path)
    if path.suffix in (".yaml", ".yml", ".json", ".toml", ".js"):
        return [_mission(path)]
    module = load_module(path)
    made = [value for value in vars(module).values() if isinstance(value, Workflow)]
    if not made:
        raise FlowError(f"there is no workflow in {str(path)!r}; make one with Workflow(...) or @workflow")
    return list({id(one): one for one in made}.values())


def _states(path: Path) -> list[Workflow[Any, Any, Any]]:
    """The workflows of states that a configuration file holds."""
    found, panel = states_in(path)
    if not found:
        raise FlowError(f"{str(path)!r} holds no states; write them like [states.orders]")
    made = []
    for name, given in found.items():
        whose = f"[states.{name}] in {path.name!r}"
        if title := states.tab_of(given):
            if not panel:
                raise FlowError(f'{whose} has its moves in the tab {title!r}; name the sheet: panel = "sheets://ID"')
            from quire.surfaces.panel.tables.moves import read_now

            moves = states.moves_in(read_now(panel, title), f"the tab {title!r}")
        else:
            moves = states.moves_of(given, whose)
        made.append(states.workflow_of(name, given, moves, whose))
    return made


def load_module(path: Path) -> Any:
    """Return the module of a file, under the name of the file, with its directory on the path."""
    path = path.resolve()
    name = path.stem
    if path.suffix != ".py" or not name.isidentifier():
        raise FlowError(f"{str(path)!r} is not a Python module; name it like 'flows.py'")
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) and Path(str(known.__file__)).resolve() == path:
            return known
        raise FlowError(f"{str(path)!r} has the name of another module, {name!r}; give the file another name")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = util.spec_from_file_location(name, path, loader=_AsItIs(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _quire_error(path, error) from error
    return module


def _quire_error(path: Path, error: BaseException) -> QuireError:
    shown = str(path)
    match error:
        case SyntaxError(lineno=line, msg=message):
            where = error.filename or shown
            return FlowError(f"{where!r}{'' if line is None else f', line {line}'}: {message}")
        case DefinitionError():
            return DefinitionError(f"{shown!r}{_where(path, error)}: {error}")
        case ImportError():
            return FlowError(f"{shown!r}{_where(path, error)}: {error}; is it installed in this environment?")
        case SystemExit():
            return FlowError(f"{shown!r}{_where(path, error)} ends the process when it is loaded")
        case _:
            text = str(error).strip().splitlines()
            what = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
            return FlowError(f"{shown!r}{_where(path, error)}: {what}")


def _where(path: Path, error: BaseException) -> str:
    """Return the line of the user's file on which it happened."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f", line {lines[-1]}" if lines else ""


def _mission(path: Path) -> Workflow[Any, Any, Any]:
    try:
        from quire import agents

        mission: Any = agents.mission
    except (ImportError, AttributeError) as error:
        raise FlowError(
            f"{str(path)!r} is the blueprint of a mission; missions need more: {install('agents')}"
        ) from error
    made: Workflow[Any, Any, Any] = mission(str(path))
    return made


def deps_factory(target: str) -> Callable[[], Any] | None:
    """The function that ``deps = "flows:make_deps"`` names. Its module is a flow file, or any that can be imported."""
    from importlib import import_module

    if not target:
        return None
    module_name, colon, name = target.partition(":")
    if not colon or not name:
        raise FlowError(f"deps = {target!r} names no function; write it like 'flows:make_deps'")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise FlowError(f"deps = {target!r}: {error}") from error
    make = getattr(module, name, None)
    if make is None:
        raise FlowError(f"deps = {target!r}: there is no {name!r} in {module_name!r}")
    return make if callable(make) else lambda: make


@asynccontextmanager
async def made_deps(target: str) -> AsyncIterator[Any]:
    """What the configured function makes for the steps of all workflows; None if the configuration names none."""
    from quire.run.dependencies import made

    factory = deps_factory(target)
    if factory is None:
        yield None
        return
    async with AsyncExitStack() as stack:
        try:
            deps = await stack.enter_async_context(made(factory))
        except Exception as error:
            raise FlowError(f"deps = {target!r}: {type(error).__name__}: {error}") from error
        yield deps
