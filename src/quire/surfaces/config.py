"""Configuration: the nearest ``quire.toml`` upwards, the environment and the flags; and where each value comes from.

A flag wins over the environment (``QUIRE_LEDGER``), the environment over the file, the file over the default. Paths in
the file are relative to the file, never to the current directory: the same ledger from wherever a command is typed.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from quire.errors import InputError, did_you_mean
from quire.ledger.finding import concealed, sqlite_path

FILE = "quire.toml"
DEFAULT_STATE = ".quire/state"
DEFAULT_LEDGER = "sqlite:///.quire/ledger.db"


class ConfigError(InputError):
    """The configuration cannot be used. Correct the line that the message names; ``quire config`` shows every value."""


class Key(NamedTuple):
    """One thing that can be configured."""

    name: str
    #: text, list (of texts), table (of texts), tables (of lists of texts), parts (tables of anything)
    #: or accounts (texts, and tables of texts)
    shape: str
    what: str
    #: How its paths are made absolute: "", "path", "paths" or "url".
    paths: str = ""


#: Everything that ``quire.toml`` may say. A part that needs more adds a row here.
KEYS = (
    Key("flows", "list", "files with workflows, and blueprints of missions", "paths"),
    Key("ledger", "text", "where the records are kept", "url"),
    Key("folder", "text", "where files for people go", "path"),
    Key("state", "text", "where workers of this machine keep what the ledger acknowledged to them", "path"),
    Key("retention", "text", "workers forget records that ended longer ago, like 90d; empty: they keep all"),
    Key("patience", "text", "how long a command waits for a ledger that does not answer, like 10s"),
    Key("panel", "text", "the sheet that people see and command from, like sheets://SPREADSHEET_ID"),
    Key("deps", "text", "what makes the dependencies of steps, as 'module:function'"),
    Key("public_url", "text", "where this ledger is reached from outside"),
    Key("who", "text", "who acts through this command line, for the log"),
    Key("callers", "table", "who may call the API: a name for each key's hash"),
    Key("oidc", "table", "where people sign in with OpenID Connect, and their roles"),
    Key("alerts", "table", "where people hear of what is stuck: a channel for each name"),
    Key("telemetry", "table", "where traces and metrics go (otlp), and how log lines look (logs)"),
    Key("groups", "tables", "groups of people that questions are put to, and their members"),
    Key("state_table", "table", "what the columns of the panel's state table are called, in their order; its header"),
    Key("states", "parts", "workflows that are only states, each with its moves and the tab that it is bound to"),
    Key("google", "accounts", "who acts at Google, and a table for each further connection"),
    Key("mcp", "tables", "which acts at Google a chat may ask for"),
)
_BY_NAME = {key.name: key for key in KEYS}


class Value(NamedTuple):
    """A value and where it comes from."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Config:
    """What holds for this command."""

    values: Mapping[str, Value]
    #: The file that was found; None: there is none.
    path: Path | None
    #: What paths of the file and of the defaults are relative to.
    base: Path

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def source(self, name: str) -> str:
        return self.values[name].source

    @property
    def flows(self) -> list[str]:
        return list(self["flows"])

    @property
    def ledger(self) -> str:
        return str(self["ledger"])

    @property
    def folder(self) -> str:
        return str(self["folder"])

    @property
    def state(self) -> str:
        return str(self["state"])

    @property
    def retention(self) -> str:
        return str(self["retention"])

    @property
    def patience(self) -> str:
        return str(self["patience"])

    @property
    def panel(self) -> str:
        return str(self["panel"])

    @property
    def deps(self) -> str:
        return str(self["deps"])

    @property
    def public_url(self) -> str:
        return str(self["public_url"])

    @property
    def who(self) -> str:
        return str(self["who"])

    @property
    def groups(self) -> dict[str, list[str]]:
        return dict(self["groups"])

    @property
    def state_table(self) -> dict[str, str]:
        return dict(self["state_table"])

    @property
    def states(self) -> dict[str, dict[str, Any]]:
        return dict(self["states"])

    @property
    def google(self) -> dict[str, Any]:
        return dict(self["google"])

    @property
    def mcp(self) -> dict[str, list[str]]:
        return dict(self["mcp"])

    @property
    def callers(self) -> dict[str, str]:
        return dict(self["callers"])

    @property
    def oidc(self) -> dict[str, str]:
        return dict(self["oidc"])

    @property
    def alerts(self) -> dict[str, str]:
        return dict(self["alerts"])

    @property
    def telemetry(self) -> dict[str, str]:
        return dict(self["telemetry"])


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    start: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """The configuration as seen from ``start``; ``file`` names the file instead of looking for it."""
    environ = os.environ if environ is None else environ
    start = (start or Path.cwd()).resolve()
    named = file or environ.get("QUIRE_CONFIG")
    if named:
        path: Path | None = (start / Path(named)).resolve()
        assert path is not None
        if not path.is_file():
            raise ConfigError(f"there is no configuration file {str(path)!r}")
    else:
        path = _found(start)
    base = path.parent if path is not None else start
    in_file = _read(path) if path is not None else {}
    values = {}
    for key in KEYS:
        given = (flags or {}).get(key.name)
        variable = f"QUIRE_{key.name.upper()}"
        if given is not None and given != () and given != []:
            value = Value(_placed(key, given, start), "flag")
        elif environ.get(variable) and key.shape in ("text", "list"):
            value = Value(_placed(key, _from_environment(key, environ[variable]), start), f"environment {variable}")
        elif key.name in in_file:
            value = Value(_placed(key, in_file[key.name], base), str(path))
        else:
            value = Value(_placed(key, _default(key), base), "default")
        values[key.name] = value
    return Config(values, path, base)


def _found(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder / FILE
        project = folder / "pyproject.toml"
        if project.is_file() and "tool.quire" in _text(project):
            return project
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error


def _read(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{str(path)!r} is not TOML: {error}") from error
    if path.name == "pyproject.toml":
        parsed = parsed.get("tool", {}).get("quire", {})
        if not isinstance(parsed, dict):
            raise ConfigError(f"{str(path)!r}: tool.quire must be a table, like [tool.quire]")
    for name, value in parsed.items():
        key = _BY_NAME.get(name)
        where = f"{str(path)!r}, line {_line(text, name)}"
        if key is None:
            raise ConfigError(f"{where}: there is no key {name!r}{did_you_mean(name, _BY_NAME)}")
        problem = _misshaped(key, value)
        if problem:
            raise ConfigError(f"{where}: {name!r} {problem}, not {value!r:.80}")
    if isinstance(parsed.get("flows"), str):
        parsed["flows"] = [parsed["flows"]]
    return parsed


def _line(text: str, name: str) -> int:
    """Where the key stands; 1 if nobody can say."""
    plain = re.compile(rf"\s*(?:\[(?:tool\.quire\.)?{re.escape(name)}\]|[\"']?{re.escape(name)}[\"']?\s*[.=])")
    return next((number for number, line in enumerate(text.splitlines(), 1) if plain.match(line)), 1)


def _texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(item, str) for item in values)


def _table_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


#: By the shape of a key: whether a value has it, and what to say if it does not.
_SHAPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "must be a text"),
    "list": (lambda value: isinstance(value, str) or _texts(value), "must be a list of texts"),
    "table": (_table_of(lambda item: isinstance(item, str)), "must be a table of texts"),
    "parts": (_table_of(lambda item: isinstance(item, dict)), "must be a table of tables, like [states.orders]"),
    "accounts": (
        _table_of(lambda item: isinstance(item, str | dict)),
        "must be a table of texts, and of tables of texts",
    ),
    "tables": (_table_of(_texts), "must be a table whose values are lists of texts"),
}


def _misshaped(key: Key, value: Any) -> str:
    fits, problem = _SHAPES[key.shape]
    return "" if fits(value) else problem


def _from_environment(key: Key, text: str) -> Any:
    return [part for part in re.split(rf"[{re.escape(os.pathsep)},]", text) if part] if key.shape == "list" else text


def _default(key: Key) -> Any:
    match key:
        case Key(name="ledger"):
            return DEFAULT_LEDGER
        case Key(name="state"):
            return DEFAULT_STATE
        case Key(name="who"):
            return _login()
        case Key(shape="list"):
            return []
        case Key(shape="text"):
            return ""
        case _:
            return {}


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def _placed(key: Key, value: Any, base: Path) -> Any:
    match key.paths:
        case "paths":
            items: Sequence[str] = [value] if isinstance(value, str) else value
            return [str(_absolute(item, base)) for item in items]
        case "path":
            return str(_absolute(value, base)) if value and "://" not in value else value
        case "url":
            return absolute_url(value, base)
        case _:
            return value


def _absolute(path: str, base: Path) -> Path:
    return base / Path(path).expanduser()


def absolute_url(url: str, base: Path) -> str:
    """Return a ledger's address that means the same from every directory."""
    path = sqlite_path(url)
    return url if path is None else f"sqlite:///{_absolute(path, base)}"


def ledger_there(url: str) -> bool:
    """Return whether there is a ledger to look at: a file that is empty is none yet. What cannot become one is refused.

    Of a ledger that is no file only its opening tells.
    """
    path = sqlite_path(url)
    if path is None:
        return True
    file = Path(path)
    if file.exists() and not file.is_file():
        what = "a directory" if file.is_dir() else "no file"
        raise InputError(f"{path!r} is {what}, and a ledger is a file; 'quire config' says who named it")
    return file.is_file() and file.stat().st_size > 0


def states_in(path: Path) -> tuple[dict[str, dict[str, Any]], str]:
    """The workflows of states that a configuration file holds, and the sheet that it names."""
    found = _read(path)
    return found.get("states", {}), os.environ.get("QUIRE_PANEL") or found.get("panel", "")


def shown(config: Config) -> Iterator[tuple[str, Any, str]]:
    """Each key with its value, as it may be shown, and where that comes from."""
    for key in KEYS:
        value, source = config.values[key.name]
        if key.name == "ledger":
            value = concealed(str(value))
        if key.name in ("callers", "alerts", "oidc", "states"):
            value = dict.fromkeys(value, "…")
        yield key.name, value, source
