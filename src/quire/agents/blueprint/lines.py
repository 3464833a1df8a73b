"""Where in its file a part of a blueprint stands, so that a message can name the line."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quire.agents.blueprint.words import spelled
from quire.errors import DefinitionError

#: A way into the blueprint: words and numbers, as in ``("agents", 1, "prompt")``.
Path = tuple[str | int, ...]


#: No blueprint lies deeper, or has more parts.
_DEEPEST, _MOST = 50, 100_000


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
    """Lines of a YAML text. A key that stands twice is refused: the second would win in silence."""
    import yaml

    found: dict[Path, int] = {}

    def walk(node: Any, path: Path) -> None:
        found.setdefault(path, node.start_mark.line + 1)
        if len(path) > _DEEPEST or len(found) > _MOST:  # by its aliases: a file is not that long
            raise DefinitionError(f"line {node.start_mark.line + 1}: it refers to itself, or to others too often")
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


_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def in_json(text: str) -> Lines:
    """Lines of a JSON text that is sound. A key that stands twice is refused."""
    found: dict[Path, int] = {(): 1}
    tokens = _tokens(_JSON, text)

    def value(path: Path, token: str, line: int) -> None:
        found.setdefault(path, line)
        if token == "{":
            _object(path)
        elif token == "[":
            _array(path)

    def _object(path: Path) -> None:
        seen: dict[str, int] = {}
        for token, line in tokens:
            if token == "}":
                return
            if token == ",":
                continue
            word = str(json.loads(token))
            if word in seen:
                raise DefinitionError(f"line {line}: {word!r} stands here and on line {seen[word]}; keep one")
            seen[word] = line
            way = (*path, inner(path, word))
            found[way] = line
            next(tokens)  # the colon
            value(way, *next(tokens))

    def _array(path: Path) -> None:
        number = 0
        for token, line in tokens:
            if token == "]":
                return
            if token != ",":
                value((*path, number), token, line)
                number += 1

    value((), *next(tokens))
    return Lines(found)


def _tokens(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, int]]:
    """The tokens of a text with the lines on which they begin."""
    line = last = 0
    for match in pattern.finditer(text):
        line += text.count("\n", last, match.start())
        last = match.start()
        yield match[0], line + 1


_TOML = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|\n|[\[\]{}=,.]|[^\s\[\]{}=,.#"\']+',
    re.DOTALL,
)


class _Toml:
    """Walks through a TOML text that is sound and notes where each key stands."""

    def __init__(self, text: str) -> None:
        self.found: dict[Path, int] = {(): 1}
        self.counts: dict[Path, int] = {}
        tokens = _tokens(_TOML, text)
        self.tokens = [(token, line) for token, line in tokens if not token.startswith("#")]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self) -> tuple[str, int]:
        self.at += 1
        return self.tokens[self.at - 1]

    def skip(self, *words: str) -> None:
        while self.peek() and self.peek() in words:
            self.at += 1

    def walk(self) -> None:
        here: Path = ()
        self.skip("\n")
        while self.peek():
            if self.peek() == "[":
                here = self.header()
            else:
                self.pair(here)
            self.skip("\n")

    def header(self) -> Path:
        _, line = self.take()
        many = self.peek() == "["
        self.skip("[")
        words = self.words("]")
        self.skip("]")
        here: Path = ()
        for place, word in enumerate(words):
            here = (*here, inner(here, word))
            if many and place == len(words) - 1:
                self.counts[here] = self.counts.get(here, -1) + 1
            if here in self.counts:
                here = (*here, self.counts[here])
        self.found.setdefault(here, line)
        return here

    def words(self, end: str) -> list[str]:
        found = []
        while self.peek() and self.peek() != end:
            token, _ = self.take()
            if token != ".":
                found.append(token.strip("\"'"))
        return found

    def pair(self, here: Path) -> None:
        line = self.tokens[self.at][1]
        for word in self.words("="):
            here = (*here, inner(here, word))
            self.found.setdefault(here, line)
        self.take()
        self.value(here)

    def value(self, here: Path) -> None:
        token, line = self.take()
        self.found.setdefault(here, line)
        if token == "[":
            number = 0
            self.skip(",", "\n")
            while self.peek() not in ("]", ""):
                self.value((*here, number))
                number += 1
                self.skip(",", "\n")
            self.skip("]")
        elif token == "{":
            self.skip(",", "\n")
            while self.peek() not in ("}", ""):
                self.pair(here)
                self.skip(",", "\n")
            self.skip("}")
        else:
            while self.peek() not in ("\n", ",", "]", "}", ""):  # the rest of a number or a moment
                self.take()


def in_toml(text: str) -> Lines:
    """Lines of a TOML text that is sound."""
    walker = _Toml(text)
    walker.walk()
    return Lines(walker.found)


def in_python(node: ast.expr) -> Lines:
    """Lines of a blueprint that is a dict in Python, as far as it is written out."""
    found: dict[Path, int] = {}

    def walk(node: ast.expr, path: Path) -> None:
        found.setdefault(path, node.lineno)
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str | int):
                    way = (*path, inner(path, str(key.value)))
                    found[way] = key.lineno
                    walk(value, way)
        elif isinstance(node, ast.List | ast.Tuple):
            for number, value in enumerate(node.elts):
                walk(value, (*path, number))

    walk(node, ())
    return Lines(found)


def inner(path: Path, word: str) -> str | int:
    """A word of the file as it is spelled inside, at its place; a turn by its number."""
    return int(word) if word.isdigit() else spelled(_place(path), word)


def _place(path: Path) -> str:
    words = [part for part in path if isinstance(part, str)]
    return words[-1] if words else ""
