"""Bodies and parameters of the right types and with no sense: every method of the newer APIs refuses, none breaks."""

from __future__ import annotations

import json
import random
import re
import urllib.parse
from typing import Any

import pytest

from emulator_direct import Direct
from hectograph.core.discovery import Api, Method, api

VERSIONS = ("calendar.v3", "chat.v1", "forms.v1", "gmail.v1", "pubsub.v1", "tasks.v1")
TEXTS = (
    "",
    "a",
    "ann@example.org",
    "2026-03-04T12:00:00Z",
    "2026-03-04",
    "client-a",
    "é😀",
    "0",
    "abcde12345",
    "*",
    "x,y",
)


def value(chance: random.Random, document: Api, kind: str, depth: int) -> Any:
    """Return something of a type, as the schema names types."""
    first, rest = kind[0], kind[1:]
    if first == "[":
        return [value(chance, document, rest, depth + 1) for _ in range(chance.randrange(3))]
    if first == "{":
        return {chance.choice(TEXTS): value(chance, document, rest, depth + 1)}
    if first == "@":
        fields = document.schema.messages[rest]
        names = [] if depth > 4 else chance.sample(sorted(fields), min(len(fields), chance.randrange(6)))
        return {name: value(chance, document, fields[name], depth + 1) for name in names}
    if first == "=":
        return chance.choice(sorted(document.schema.enums[rest]))
    plain = {"i": chance.choice((-1, 0, 1, 7, 10**6)), "l": str(chance.choice((-1, 0, 2**40))), "d": 1.5}
    if first == "b":
        return chance.random() < 0.5
    return plain.get(first, chance.choice(TEXTS))


def target(chance: random.Random, method: Method, known: list[str]) -> str:
    """Return an address of a method, with parameters of the declared types."""
    pattern = re.sub(
        r"\(\?P<(\w+)>((?:[^()]|\([^()]*\))*)\)",
        lambda found: re.sub(r"\[\^/\]\+|\.\+|\.\*", lambda _: chance.choice(known), found.group(2)),
        method.pattern.pattern,
    )
    given: dict[str, Any] = {}
    for name, kind in method.parameters.items():
        if chance.random() < 0.4:
            words = sorted(method.words.get(name, ()))
            plain = {"boolean": "true", "integer": str(chance.choice((-1, 0, 3)))}.get(kind, chance.choice(TEXTS))
            given[name] = chance.choice(words) if words else plain
    return pattern.replace("/?:", ":").replace("\\", "") + "?" + urllib.parse.urlencode(given)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_method_breaks(version: str) -> None:
    chance, direct, document = random.Random(version), Direct(), api(version)
    direct.user = "ann@example.org"
    known = ["primary", "me", "none", "@default", "a", "INBOX"]
    broken = []
    for _ in range(15):
        for method in document.methods:
            place = target(chance, method, known)
            body = value(chance, document, "@" + method.body, 0) if method.body else {}
            try:
                status, raw, _ = direct.raw(method.verb, place, json.dumps(body).encode())
            except Exception as error:  # noqa: BLE001 - what breaks is what is looked for
                broken.append((method.name, place, body, repr(error)))
                continue
            found = json.loads(raw) if raw[:1] == b"{" else {}
            assert status != 500
            for name in ("id", "name", "formId", "messageId"):
                if isinstance(found.get(name), str) and len(known) < 60:
                    known.append(urllib.parse.quote(found[name].rpartition("/")[2], safe=""))
    assert broken == []
