"""What people put into ``config/``: constants, flags, and pointers to credentials; never a secret itself.

Steps get credentials through ``run.deps``; from here they read what is no secret and may change without a new release.
``constants.json`` and ``flags.toml`` become ``config["constants"]`` and ``config["flags"]``.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from quire.errors import InputError
from quire.folder.secret import has_shape, is_secret

_LINE = re.compile(r"^\s*[\"']?(?P<name>[\w.\-]+)[\"']?\s*[:=]\s*[\"']?(?P<value>[^\"'#\n]+)", re.MULTILINE)


class SecretFound(InputError):
    """A secret stands in a folder that people share. Move it to where secrets live, and put a pointer in its place."""


class Config(Mapping[str, Any]):
    """The contents of ``config/`` by the stem of their files; ``version`` changes whenever any of them does."""

    def __init__(self, values: Mapping[str, Any], version: str) -> None:
        self._values = dict(values)
        self.version = version

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def load(base: str, files: Mapping[str, bytes]) -> Config:
    """What these files say. Refuses a file that holds a secret, naming where it stands and not what it is."""
    for path, content in files.items():
        if (where := secret_in(path, content)) is not None:
            raise SecretFound(
                f"{path!r} holds what looks like a secret, at {where}; anybody who can open the folder can read it. "
                f"Take it out, hand it to the steps through deps, and write a pointer here, like 'env:NAME'"
            )
    values = {}
    for path, content in files.items():
        stem, _, kind = path.removeprefix(base + "/").rpartition(".")
        if kind in ("json", "toml"):
            values[stem] = _parsed(path, content)
    return Config(values, version_of(files))


def version_of(files: Mapping[str, bytes]) -> str:
    """Return a short hash over the names and contents of these files."""
    whole = hashlib.sha256()
    for path, content in sorted(files.items()):
        whole.update(hashlib.sha256(path.encode()).digest() + hashlib.sha256(content).digest())
    return whole.hexdigest()[:16]


def secret_in(path: str, content: bytes) -> str | None:
    """Where in this file something looks like a secret; None if nothing does."""
    text = content.decode("utf-8", "replace")
    if path.endswith((".json", ".toml")):
        try:
            found = next(_secrets(_parsed(path, content), ""), None)
        except InputError:
            found = None
        if found is not None:
            return found
    for number, line in enumerate(text.splitlines(), 1):
        if has_shape(line):
            return f"line {number}"
        named = _LINE.match(line)
        if named is not None and not path.endswith(".json") and is_secret(named["name"], named["value"].strip()):
            return f"line {number} ({named['name']})"
    return None


def _secrets(value: Any, where: str) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _secrets(inner, f"{where}.{name}" if where else str(name))
        case list():
            for inner in value:
                yield from _secrets(inner, where)
        case str() if is_secret(where.rpartition(".")[2], value):
            yield repr(where)


def _parsed(path: str, content: bytes) -> Any:
    try:
        return json.loads(content) if path.endswith(".json") else tomllib.loads(content.decode())
    except (ValueError, UnicodeError) as error:
        raise InputError(f"{path!r} cannot be read: {error}") from error
