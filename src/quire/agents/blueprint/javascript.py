"""A blueprint that is an object in JavaScript, as the source article prints it: ``const MISSION_BLUEPRINT = {…};``.

Only what is written out is read: objects, lists, texts, numbers, true, false and null, with comments and commas as
JavaScript has them. Nothing is executed.
"""

from __future__ import annotations

import json
import re
from typing import Any

from quire.agents.blueprint.lines import Lines, Path, inner
from quire.errors import DefinitionError

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)
      | (?P<number>[-+]?(?:\d[\d_]*)(?:\.\d+)?(?:[eE][-+]?\d+)?)
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<mark>[{}\[\]:,;=+.])""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}
#: An object that is assigned to a name.
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?(?:default\s+|(?:const|let|var)\s+[\w$]+\s*=\s*)(?=\{)", re.MULTILINE)


def is_javascript(text: str) -> bool:
    """Whether a text assigns an object as JavaScript does."""
    return _ASSIGNED.search(text) is not None


def read(text: str) -> tuple[Any, Lines]:
    """The first object that is assigned, and where its parts stand."""
    found = _ASSIGNED.search(text)
    reader = _Reader(text, found.end() if found is not None else 0)
    return reader.value(()), Lines(reader.lines)


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at
        self.lines: dict[Path, int] = {}
        self._kind, self._token, self._line = "", "", 0
        self._next()

    def _next(self) -> None:
        while True:
            match = _TOKEN.match(self._text, self._at)
            if match is None:
                self._line = self._text.count("\n", 0, self._at) + 1
                if self._at >= len(self._text):
                    self._kind = self._token = ""
                    return
                raise self._wrong(f"{self._text[self._at]!r} is not read here")
            at, self._at = self._at, match.end()
            if match.lastgroup != "skip":
                self._kind, self._token = str(match.lastgroup), match[0]
                self._line = self._text.count("\n", 0, at) + 1
                return

    def _wrong(self, what: str) -> DefinitionError:
        return DefinitionError(f"line {self._line}: {what}; a blueprint in JavaScript is one object of plain values")

    def _take(self, mark: str) -> bool:
        if self._token != mark or self._kind == "text":
            return False
        self._next()
        return True

    def value(self, path: Path) -> Any:
        self.lines.setdefault(path, self._line)
        if self._take("{"):
            return self._object(path)
        if self._take("["):
            return self._list(path)
        kind, token = self._kind, self._token
        if kind == "text":
            return self._joined()
        if kind == "number":
            self._next()
            digits = token.replace("_", "")
            return float(digits) if re.search("[.eE]", digits) else int(digits)
        if kind == "word" and token in _WORDS:
            self._next()
            return _WORDS[token]
        raise self._wrong(f"{token!r} is not a plain value" if token else "the text ends within the object")

    def _joined(self) -> str:
        """A text, or several that are joined by ``+``."""
        text = self._unquoted()
        while self._take("+"):
            if self._kind != "text":
                raise self._wrong(f"{self._token!r} is not a text")
            text += self._unquoted()
        return text

    def _unquoted(self) -> str:
        token = self._token
        if token[0] == "`" and "${" in token:
            raise self._wrong("a text with ${…} is computed")
        body = token[1:-1].replace("\\\n", "")
        if token[0] != '"':
            body = re.sub(r"\\(['`$])", r"\1", body)
            body = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', body)
        try:
            text = str(json.loads('"' + body.replace("\n", "\\n").replace("\t", "\\t") + '"'))
        except json.JSONDecodeError as error:
            raise self._wrong(f"a text cannot be read ({error.msg})") from None
        self._next()
        return text

    def _object(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        seen: dict[str, int] = {}
        while not self._take("}"):
            if self._kind not in ("text", "word", "number"):
                raise self._wrong(f"{self._token!r} is not the name of a part" if self._token else "the object is open")
            line = self._line
            if self._kind == "text":
                word = self._unquoted()
            else:
                word = self._token
                self._next()
            if word in seen:
                raise DefinitionError(f"line {line}: {word!r} stands here and on line {seen[word]}; keep one")
            seen[word] = line
            if not self._take(":"):
                raise self._wrong(f"after {word!r} there is no ':'")
            way = (*path, inner(path, word))
            self.lines[way] = line
            found[word] = self.value(way)
            if not self._take(",") and self._token != "}":
                raise self._wrong(f"after {word!r} there is neither ',' nor '}}'")
        return found

    def _list(self, path: Path) -> list[Any]:
        found: list[Any] = []
        while not self._take("]"):
            found.append(self.value((*path, len(found))))
            if not self._take(",") and self._token != "]":
                raise self._wrong("a list has neither ',' nor ']' here")
        return found
