"""Data as it is typed: ``k=v`` before JSON, because quoting JSON in a shell is the first thing that goes wrong.

A value becomes what the workflow's schema wants of that field: ``amount=3`` is a number where a number is wanted.
Without a schema it stays a text; ``amount:=3`` says that what follows is JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quire.errors import InputError

Schema = Mapping[str, Any] | None


def pairs(words: Sequence[str], schema: Schema = None) -> dict[str, Any]:
    """What ``k=v`` and ``k:=JSON`` say."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        is_json = name.endswith(":")
        name = name.removesuffix(":").strip()
        if not equals or not name:
            raise InputError(f"{word!r} is not a field: write it like keyword=quires, or count:=3 for JSON")
        if name in found:
            raise InputError(f"the field {name!r} is given twice")
        found[name] = parsed(text, f"the field {name!r}") if is_json else fitted(name, text, schema)
    return found


def parsed(text: str, what: str) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not JSON: {error}") from error


def given(data: str | None, words: Sequence[str], schema: Schema = None) -> dict[str, Any]:
    """``--data`` (JSON, ``@file`` or ``-``) with the fields on top of it."""
    base: Any = {}
    if data is not None:
        base = parsed(text_of(data), "what --data gives")
        if not isinstance(base, dict):
            raise InputError(f"what --data gives must be an object of named fields, not {type(base).__name__}")
    return {**base, **pairs(words, schema)}


def text_of(data: str) -> str:
    """Return the text itself, of a file (``@file``), or of standard input (``-``)."""
    if data == "-":
        return sys.stdin.read()
    if not data.startswith("@"):
        return data
    try:
        return Path(data[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{data[1:]!r} cannot be read: {error}") from error


def fitted(name: str, text: str, schema: Schema) -> Any:
    """The text as the schema wants this field; as it is where the schema wants a text, or says nothing."""
    wanted = kinds(((schema or {}).get("properties") or {}).get(name), schema)
    if not wanted or "string" in wanted:
        return text
    if text == "" and "null" in wanted:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        low = text.strip().lower()
        if "boolean" in wanted and low in ("yes", "no", "true", "false"):
            return low in ("yes", "true")
        return text
    if "boolean" in wanted and wanted <= {"boolean", "null"} and value in (0, 1):
        return bool(value)
    return value


def kinds(field: Any, schema: Schema) -> set[str]:
    """The JSON types that a field may have; none: anything."""
    if not isinstance(field, Mapping):
        return set()
    if "$ref" in field:
        name = str(field["$ref"]).rpartition("/")[2]
        return kinds(((schema or {}).get("$defs") or {}).get(name), schema)
    if "anyOf" in field:
        return set().union(*(kinds(part, schema) for part in field["anyOf"]))
    if "enum" in field:
        return {"string"} if all(isinstance(word, str) for word in field["enum"]) else set()
    kind = field.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())
