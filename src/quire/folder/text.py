"""What files hold: JSON for people and machines, a field a line, an entry of a list a line; and the type of a file."""

from __future__ import annotations

import json
import mimetypes
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


#: Python's own table, without those of the machine, so that a file has the same type wherever it is written.
_TYPES = mimetypes.MimeTypes()
_OFFICE = "application/vnd.openxmlformats-officedocument."
for _ending, _type in {
    ".docx": f"{_OFFICE}wordprocessingml.document",
    ".xlsx": f"{_OFFICE}spreadsheetml.sheet",
    ".pptx": f"{_OFFICE}presentationml.presentation",
    ".md": "text/markdown",
    ".gz": "application/gzip",
    ".jsonl": "application/jsonl",
    ".webp": "image/webp",
}.items():
    _TYPES.add_type(_type, _ending)


def media_type(path: str, content: bytes) -> str:
    """Return the MIME type of a file: by the ending of its name, otherwise by whether its content is text."""
    known, encoding = _TYPES.guess_type(path)
    if encoding is not None:
        return f"application/{encoding}"
    if known is not None:
        return known
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "application/octet-stream" if b"\0" in content else "text/plain"
