"""JSON for people and machines: a field a line, an entry of a list a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

compact = json.JSONEncoder(ensure_ascii=False).encode
#: One call for all plain fields of an object: indenting by the library is an order of magnitude slower.
_flat = json.JSONEncoder(ensure_ascii=False, separators=(",\n  ", ": ")).encode


def laid_out(fields: Mapping[str, Any], raw: Mapping[str, str] | None = None) -> bytes:
    """The text of an object: its plain fields, its nested ones, and those of ``raw``, which are JSON text already."""
    plain = {name: value for name, value in fields.items() if not isinstance(value, dict | list)}
    lines = [_flat(plain)[1:-1]] if plain else []
    lines += [f"{compact(name)}: {_nested(value)}" for name, value in fields.items() if name not in plain]
    lines += [f"{compact(name)}: {text}" for name, text in (raw or {}).items()]
    return ("{\n  " + ",\n  ".join(lines) + "\n}\n").encode("utf-8", "surrogatepass")


def _nested(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n    " + ",\n    ".join(map(compact, value)) + "\n  ]"
    return compact(value)
