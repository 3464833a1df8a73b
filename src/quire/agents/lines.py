"""Where in its file a part of a blueprint stands, so that a message can name the line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from quire.agents.words import spelled
from quire.errors import DefinitionError

#: A way into the blueprint: words and numbers, as in ``("agents", 1, "prompt")``.
Path = tuple[str | int, ...]


class Lines:
    """Line numbers by path."""

    def __init__(self, found: dict[Path, int]) -> None:
        self._found = found

    def of(self, path: Sequence[str | int]) -> int | None:
        """The line of this part, or of the nearest part around it that has one."""
        way = tuple(path)
        while way:
            if way in self._found:
                return self._found[way]
            way = way[:-1]
        return self._found.get(())


def in_yaml(text: str) -> Lines:
    """Lines of a YAML (or JSON) text. A key that stands twice is refused: the second would win in silence."""
    import yaml

    found: dict[Path, int] = {}

    def walk(node: Any, path: Path) -> None:
        found.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            seen: dict[str, int] = {}
            for key, value in node.value:
                word = str(getattr(key, "value", ""))
                line = key.start_mark.line + 1
                if word in seen:
                    raise DefinitionError(f"line {line}: {word!r} stands here and on line {seen[word]}; keep one")
                seen[word] = line
                inner: str | int = int(word) if word.isdigit() else spelled(_place(path), word)
                found[(*path, inner)] = line
                walk(value, (*path, inner))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                walk(value, (*path, number))

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        walk(root, ())
    return Lines(found)


_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\"'.-]+)\s*=")


def in_toml(text: str) -> Lines:
    """Lines of a TOML text, by its table headers and the keys at the start of lines."""
    found: dict[Path, int] = {(): 1}
    counts: dict[str, int] = {}
    here: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            words = [word.strip(" \"'") for word in header[2].split(".")]
            here = ()
            for depth, word in enumerate(words):
                here = (*here, _inner(here, word))
                name = ".".join(words[: depth + 1])
                if header[1] == "[[" and depth == len(words) - 1:
                    counts[name] = counts.get(name, -1) + 1
                if name in counts:
                    here = (*here, counts[name])
            found.setdefault(here, number)
        elif key := _KEY.match(line):
            way = here
            for word in key[1].split("."):
                way = (*way, _inner(way, word.strip("\"'")))
            found.setdefault(way, number)
    return Lines(found)


def _inner(path: Path, word: str) -> str | int:
    return int(word) if word.isdigit() else spelled(_place(path), word)


def _place(path: Path) -> str:
    words = [part for part in path if isinstance(part, str)]
    return words[-1] if words else ""
