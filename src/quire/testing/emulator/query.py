"""The search language of ``files.list``: ``name = 'x' and ('root' in parents or not trashed = true)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quire.testing.emulator.error import ApiError

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<op><=|>=|!=|=|<|>|\(|\)|\{|\})|(?P<word>[A-Za-z_.]+))""",
    re.DOTALL,
)

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Query:
    """A compiled search: the test, and the fields that it asks about."""

    test: Test
    fields: frozenset[str]


def _bad() -> ApiError:
    return ApiError.drive(400, "invalid", "Invalid Value", location="q")


class _Parser:
    """``item`` is a Drive file with ``facts()``: its fields by name."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.fields: set[str] = set()
        at = 0
        text = text.strip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise _bad()
            kind = str(match.lastgroup)
            token = match.group(kind)
            if kind == "string":
                token = re.sub(r"\\(.)", r"\1", token[1:-1])
            self.tokens.append((kind, token))
            at = match.end()
        self.at = 0

    def peek(self, offset: int = 0) -> tuple[str, str]:
        at = self.at + offset
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def next(self) -> tuple[str, str]:
        found = self.peek()
        self.at += 1
        return found

    def word(self, text: str) -> bool:
        kind, found = self.peek()
        if kind == "word" and found.lower() == text:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if self.next()[1] != token:
            raise _bad()

    def disjunction(self) -> Test:
        tests = [self.conjunction()]
        while self.word("or"):
            tests.append(self.conjunction())
        return tests[0] if len(tests) == 1 else lambda item: any(test(item) for test in tests)

    def conjunction(self) -> Test:
        tests = [self.negation()]
        while self.word("and"):
            tests.append(self.negation())
        return tests[0] if len(tests) == 1 else lambda item: all(test(item) for test in tests)

    def negation(self) -> Test:
        if self.word("not"):
            inner = self.negation()
            return lambda item: not inner(item)
        if self.peek() == ("op", "("):
            self.at += 1
            test = self.disjunction()
            self.expect(")")
            return test
        return self.term()

    def term(self) -> Test:
        kind, token = self.next()
        if kind == "string":
            if not self.word("in"):
                raise _bad()
            _, name = self.next()
            self.fields.add(name)
            return lambda item: token in item.facts().get(name, ())
        if kind != "word":
            raise _bad()
        self.fields.add(token)
        if self.word("has"):
            return self.has(token)
        if self.word("contains"):
            _, wanted = self.next()
            return lambda item: _contains(item.facts(), token, wanted)
        if self.word("in"):
            raise _bad()
        _, operator = self.next()
        value_kind, wanted = self.next()
        if operator not in {"=", "!=", "<", "<=", ">", ">="} or value_kind not in {"string", "word"}:
            raise _bad()
        return _comparison(token, operator, wanted)

    def has(self, name: str) -> Test:
        self.expect("{")
        wanted: dict[str, str] = {}
        while True:
            _, part = self.next()
            self.expect("=")
            wanted[part] = self.next()[1]
            if not self.word("and"):
                break
        self.expect("}")
        return lambda item: item.facts().get(name, {}).get(wanted.get("key", "")) == wanted.get("value")


def _contains(facts: dict[str, Any], name: str, wanted: str) -> bool:
    low = wanted.casefold()
    if name == "name":
        # Drive matches the beginnings of words only.
        text = str(facts.get("name", "")).casefold()
        return (
            text.startswith(low)
            or any(word.startswith(low) for word in re.split(r"[\s_\-.]+", text))
            or (" " in low and low in text)
        )
    if name == "fullText":
        return low.strip('"') in str(facts.get("fullText", "")).casefold()
    return str(facts.get(name, "")).casefold().startswith(low)


_TYPES: dict[str, type] = {"trashed": bool, "starred": bool, "sharedWithMe": bool}
_KNOWN = {
    "name", "title", "mimeType", "trashed", "starred", "modifiedTime", "createdTime", "viewedByMeTime", "sharedWithMe",
    "visibility", "shortcutDetails.targetId", "id",
}  # fmt: skip


def _comparison(name: str, operator: str, wanted: str) -> Test:
    if name not in _KNOWN:
        raise _bad()
    if name in _TYPES:
        if wanted.lower() not in {"true", "false"}:
            raise _bad()
        truth = wanted.lower() == "true"
        return lambda item: (bool(item.facts().get(name)) == truth) == (operator == "=")

    def test(item: Any) -> bool:
        value = str(item.facts().get(name, ""))
        other = wanted
        if name.endswith("Time"):
            value, other = value[:19], wanted[:19].ljust(19, "0")
        return {
            "=": value == other,
            "!=": value != other,
            "<": value < other,
            "<=": value <= other,
            ">": value > other,
            ">=": value >= other,
        }[operator]

    return test


def compiled(text: str) -> Query:
    if not text.strip():
        return Query(lambda item: True, frozenset())
    parser = _Parser(text)
    test = parser.disjunction()
    if parser.at != len(parser.tokens):
        raise _bad()
    return Query(test, frozenset(parser.fields))
