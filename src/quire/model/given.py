"""What was given to a start, apart from how: neither the order of fields counts, nor a default that is spelled out.

A process that knows a workflow's type starts records with all defaults filled in; one that knows only its registered
definition starts them with what was typed. The same id and the same data are the same start for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def bare(value: Any, schema: Schema | None = None, root: Schema | None = None) -> Any:
    """Return the value in one order, without fields that are what they would be anyway by the (JSON) schema."""
    root = schema if root is None else root
    schema = _resolved(schema, root, value)
    if isinstance(value, dict):
        fields: Mapping[str, Any] = schema.get("properties", {})
        rest: Any = schema.get("additionalProperties")
        found = {}
        for name in sorted(value):
            field = fields.get(name, rest if isinstance(rest, dict) else None)
            of_name = bare(value[name], field, root)
            if field is None or "default" not in field or of_name != bare(field["default"], field, root):
                found[name] = of_name
        return found
    if isinstance(value, list):
        items = schema.get("items")
        return [bare(item, items if isinstance(items, dict) else None, root) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 1.0 and 1 are one number to people, and to JSON
    return value


def _resolved(schema: Schema | None, root: Schema | None, value: Any) -> Schema:
    """Return the part of the schema that speaks about this value."""
    for _ in range(20):  # a reference may name another one
        if not schema:
            return {}
        reference = schema.get("$ref", "")
        if reference.startswith("#/$defs/"):
            schema = (root or {}).get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        elif alternatives := schema.get("anyOf") or schema.get("allOf"):
            schema = next((one for one in alternatives if _speaks_of(one, value)), None)
        else:
            return schema
    return {}


def _speaks_of(schema: Schema, value: Any) -> bool:
    if not isinstance(value, dict | list):
        return False
    return schema.get("type") == ("object" if isinstance(value, dict) else "array") or "$ref" in schema
