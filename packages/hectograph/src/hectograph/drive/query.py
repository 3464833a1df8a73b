"""The search language of ``files.list``: ``name = 'x' and ('root' in parents or not trashed = true)``."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hectograph.core.error import ApiError

_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<op><=|>=|!=|=|<|>|\(|\)|\{|\})|(?P<word>[A-Za-z_.]+))""",
    re.DOTALL,
)

Test = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True)
class Query:
    """A compiled search: its test of a file's facts, and the fields that it asks about."""

    facts: Test
    fields: frozenset[str]

    def test(self, file: Any, buried: Collection[str] = (), me: str = "", root: str = "", text: str = "") -> bool:
        """Whether a file is found.

        ``buried`` are the ids in the trash, ``me`` the caller, ``root`` the top folder, ``text`` what the file holds.
        """
        facts = file.facts()
        facts["fullText"] += " " + text
        facts["trashed"] = facts["trashed"] or file.file_id in buried
        for name in ("owners", "writers", "readers"):
            facts[name] = [*facts[name], *(["me"] if me in facts[name] else [])]
        facts["parents"] = [*facts["parents"], *(["root"] if root in facts["parents"] else [])]
        return self.facts(facts)


def _bad() -> ApiError:
    return ApiError.drive(400, "invalid", "Invalid Value", location="q")


class _Parser:
    """``item`` is what is known about a file, by the names of its fields."""

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
            return lambda item: token in item.get(name, ())
        if kind != "word":
            raise _bad()
        self.fields.add(token)
        if token in _TYPES and (self.peek()[0] == "end" or self.peek()[1].lower() in {"and", "or", ")"}):
            return lambda item: bool(item.get(token))
        if self.word("has"):
            return self.has(token)
        if self.word("contains"):
            _, wanted = self.next()
            return lambda item: _contains(item, token, wanted)
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
        return lambda item: item.get(name, {}).get(wanted.get("key", "")) == wanted.get("value")


def _contains(facts: dict[str, Any], name: str, wanted: str) -> bool:
    low = wanted.casefold()
    if name == "name":
        # Drive matches the beginnings of words only, and an underscore does not end a word.
        text = str(facts.get("name", "")).casefold()
        return (
            text.startswith(low)
            or any(word.startswith(low) for word in re.split(r"[\s\-.]+", text))
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


#: Names are equal whatever the case of their ASCII letters; of other letters it counts.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def _moment(text: str) -> str:
    """A time as files carry theirs, to the second."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise _bad() from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _comparison(name: str, operator: str, wanted: str) -> Test:
    if name not in _KNOWN:
        raise _bad()
    if name in _TYPES:
        if wanted.lower() not in {"true", "false"}:
            raise _bad()
        truth = wanted.lower() == "true"
        return lambda item: (bool(item.get(name)) == truth) == (operator == "=")

    moment = _moment(wanted) if name.endswith("Time") else ""

    def test(item: dict[str, Any]) -> bool:
        value = str(item.get(name, ""))
        other = wanted
        if name.endswith("Time"):
            value, other = value[:19], moment
        elif name in {"name", "title"}:
            value, other = value.translate(_LOWER), other.translate(_LOWER)
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
