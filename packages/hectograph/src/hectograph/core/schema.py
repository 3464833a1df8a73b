"""Knows which fields Google's messages have, and refuses the others with Google's words.

A message is a table of its fields: name to type. Types: ``s`` string, ``i`` int32, ``l`` int64, ``d`` number,
``b`` boolean, ``*`` anything, ``@M`` message M, ``[t`` list of t, ``{t`` map to t, ``=E`` one of the words of list E.
``discovery`` holds the documents that the tables are read from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from hectograph.core.error import ApiError

#: The names under which Google's error texts know the messages of an API.
_PACKAGES = {
    "sheets": "google.apps.sheets.v4.",
    "docs": "google.apps.docs.v1.",
    "slides": "google.apps.slides.v1.",
    "forms": "google.apps.forms.v1.",
    "chat": "google.chat.v1.",
    "gmail": "google.gmail.v1.",
    "pubsub": "google.pubsub.v1.",
}

#: Enumerations that are not declared inside the message that uses them; the rest are named after their field.
_SHARED_ENUMS = {
    "dimension": "Dimension",
    "majorDimension": "Dimension",
    "sortOrder": "SortOrder",
    "valueInputOption": "ValueInputOption",
    "valueRenderOption": "ValueRenderOption",
    "responseValueRenderOption": "ValueRenderOption",
    "dateTimeRenderOption": "DateTimeRenderOption",
    "responseDateTimeRenderOption": "DateTimeRenderOption",
    "pasteType": "PasteType",
    "horizontalAlignment": "HorizontalAlign",
    "verticalAlignment": "VerticalAlign",
    "wrapStrategy": "WrapStrategy",
    "sheetType": "SheetType",
    "themeColor": "ThemeColorType",
    "visibility": "DeveloperMetadataVisibility",
    "locationType": "DeveloperMetadataLocationType",
}

#: Messages of which only one field may be set, with the name that Google gives the choice.
_ONE_OF = {
    "Request": ("kind", None),
    "ExtendedValue": ("value", None),
    "ColorStyle": ("kind", None),
    "DataFilter": ("filter", None),
    "UpdateCellsRequest": ("area", frozenset({"start", "range"})),
    "AutoFillRequest": ("area", frozenset({"range", "sourceAndDestination"})),
    "FindReplaceRequest": ("scope", frozenset({"range", "sheetId", "allSheets"})),
    "ConditionalFormatRule": ("rule", frozenset({"booleanRule", "gradientRule"})),
    "EmbeddedObjectPosition": ("location", frozenset({"sheetId", "overlayPosition", "newSheet"})),
}

#: How a text says yes or no.
WORDS = {**dict.fromkeys(("true", "1", "t", "y", "yes"), True), **dict.fromkeys(("false", "0", "f", "n", "no"), False)}

#: Numbers that Google keeps in a message of their own, so that their paths end in ``value``.
_WRAPPED = {
    "GridRange": {"startRowIndex", "endRowIndex", "startColumnIndex", "endColumnIndex"},
    "DimensionRange": {"startIndex", "endIndex"},
    "DeveloperMetadataLookup": {"metadataId", "metadataKey", "metadataValue"},
}

_SCALARS = {"s": "TYPE_STRING", "i": "TYPE_INT32", "l": "TYPE_INT64", "d": "TYPE_DOUBLE", "b": "TYPE_BOOL"}


class Schema:
    """One API's messages."""

    def __init__(
        self,
        name: str,
        messages: Mapping[str, Mapping[str, str]],
        enums: Mapping[str, frozenset[str]],
        read_only: Mapping[str, frozenset[str]],
    ) -> None:
        self.package = "type.googleapis.com/" + _PACKAGES.get(name, f"google.{name}.")
        self.messages = messages
        self.enums = enums
        #: Fields that only Google sets, by message: a caller that sends one is not heard.
        self.read_only = read_only

    def has_path(self, message: str, path: Iterable[str]) -> bool:
        """Whether a field path exists below a message, looking through lists and maps."""
        kind = "@" + message
        for name in path:
            kind = kind.lstrip("[")
            if kind == "*" or kind.startswith("{"):
                return True
            if not kind.startswith("@"):
                return False
            if name == "*":
                return True
            fields = self.messages.get(kind[1:], {})
            found = fields.get(name) or fields.get(camel(name))
            if found is None:
                return False
            kind = found
        return True

    def check(
        self, message: str, body: Any, at: str = "", *, also: frozenset[str] = frozenset(), loose: bool = False
    ) -> Any:
        """Return the body with nulls dropped and numbers read, or refuse it as Google's JSON reader does.

        With ``loose`` fields that the message does not have are dropped, too.
        """
        wrong: list[tuple[str, str]] = []
        if body is None:
            body = {}
        if loose:
            body = self._known("@" + message, body)
        checked = self._message(message, body, at, wrong, also)
        if wrong:
            raise ApiError.bad_request(wrong)
        return checked

    def _known(self, kind: str, value: Any) -> Any:
        """Return a value without the fields that its message does not have."""
        if kind.startswith("[") and isinstance(value, list):
            return [self._known(kind[1:], item) for item in value]
        if kind.startswith("{") and isinstance(value, Mapping):
            return {key: self._known(kind[1:], item) for key, item in value.items()}
        if not kind.startswith("@") or not isinstance(value, Mapping):
            return value
        fields = self.messages[kind[1:]]
        found = {key: fields.get(key) or fields.get(camel(key)) for key in value}
        return {key: self._known(held, value[key]) for key, held in found.items() if held is not None}

    def _message(self, name: str, body: Any, at: str, wrong: list[tuple[str, str]], also: frozenset[str]) -> Any:
        if not isinstance(body, Mapping):
            if not at:
                text = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
                wrong.append(("", text))
            else:
                _bad_value(at, self.package + name, body, wrong)
            return {}
        fields, ignored = self.messages[name], self.read_only.get(name, frozenset())
        choice, among = _ONE_OF.get(name, ("", frozenset()))
        chosen = ""
        out: dict[str, Any] = {}
        for key, value in body.items():
            real = key if key in fields else camel(key)
            if real not in fields:
                if key not in also:
                    where = f" at '{at}'" if at else ""
                    text = f'Invalid JSON payload received. Unknown name "{key}"{where}: Cannot find field.'
                    wrong.append((at, text))
                continue
            if value is None or real in ignored:
                continue
            if choice and (among is None or real in among):
                if chosen and chosen != real:
                    where = f" at '{at}'" if at else ""
                    text = f"Invalid value{where} (oneof), oneof field '{choice}' is already set. Cannot set '{key}'"
                    wrong.append((at, text))
                    continue
                chosen = real
            if isinstance(value, str) and value.endswith("_UNSPECIFIED") and fields[real].startswith("="):
                continue  # the same as nothing
            here = _join(at, snake(real)) + (".value" if real in _WRAPPED.get(name, ()) else "")
            out[real] = self._value(name, real, fields[real], value, here, wrong)
        return out

    def _value(self, owner: str, field: str, kind: str, value: Any, at: str, wrong: list[tuple[str, str]]) -> Any:
        first, rest = kind[0], kind[1:]
        if first == "*":
            return value
        if first == "@":
            return self._message(rest, value, at, wrong, frozenset())
        if first == "{":
            if not isinstance(value, Mapping):
                _bad_value(at, "map", value, wrong)
                return {}
            return {k: self._value(owner, field, rest, v, at, wrong) for k, v in value.items()}
        if first == "[":
            return self._list(owner, field, rest, value, at, wrong)
        if first == "=":
            return self._enum(owner, field, rest, value, at, wrong)
        return _scalar(first, value, at, wrong)

    def _list(self, owner: str, field: str, kind: str, value: Any, at: str, wrong: list[tuple[str, str]]) -> Any:
        if owner in {"ValueRange", "DataFilterValueRange"} and field == "values":
            # Google declares a list of ListValue, and names that type even when the whole list is missing.
            if not isinstance(value, list):
                _bad_value(at, "type.googleapis.com/google.protobuf.ListValue", value, wrong)
                return []
            for index, row in enumerate(value):
                if not isinstance(row, list):
                    _bad_value(f"{at}[{index}]", "type.googleapis.com/google.protobuf.ListValue", row, wrong)
            return value
        if not isinstance(value, list):
            value = [value]
        if kind.startswith("@"):
            # A list inside a list of messages is read as its items: pygsheets sends such requests, and they work.
            value = [inner for item in value for inner in (item if isinstance(item, list) else [item])]
        out = []
        for index, item in enumerate(value):
            if item is None:
                continue
            out.append(self._value(owner, field, kind, item, f"{at}[{index}]", wrong))
        return out

    def _enum(self, owner: str, field: str, name: str, value: Any, at: str, wrong: list[tuple[str, str]]) -> Any:
        words = self.enums[name]
        if isinstance(value, str) and value in words:
            return value
        shared = _SHARED_ENUMS.get(field)
        if shared is None and words >= {"NUMBER_GREATER", "TEXT_CONTAINS"}:
            shared = "ConditionType"
        kind = self.package + (shared or f"{owner}.{field[0].upper()}{field[1:]}")
        _bad_value(at, kind, value, wrong)
        return None


def _scalar(kind: str, value: Any, at: str, wrong: list[tuple[str, str]]) -> Any:
    if kind == "s" and isinstance(value, str):
        return value
    if kind == "b":
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in WORDS:
            return WORDS[value.lower()]
    if kind in "il" and not isinstance(value, bool):
        try:
            number = float(value) if isinstance(value, (int, float, str)) else None
        except ValueError:
            number = None
        if number is not None and number == int(number):
            return int(value) if isinstance(value, (int, str)) and str(value).lstrip("-").isdigit() else int(number)
    if kind == "d" and not isinstance(value, bool):
        try:
            return float(value) if isinstance(value, str) else value + 0
        except (TypeError, ValueError):
            pass
    _bad_value(at, _SCALARS[kind], value, wrong)
    return None


def _bad_value(at: str, kind: str, value: Any, wrong: list[tuple[str, str]]) -> None:
    if isinstance(value, list) and not kind.endswith("ListValue"):
        text = f'Invalid JSON payload received. Unknown name "{camel(at.rsplit(".", 1)[-1])}"'
        parent = at.rsplit(".", 1)[0] if "." in at else ""
        text += (f" at '{parent}'" if parent else "") + ": Proto field is not repeating, cannot start list."
        wrong.append((parent, text))
        return
    shown = json.dumps(value, ensure_ascii=False) if not isinstance(value, Mapping) else "{...}"
    wrong.append((at, f"Invalid value at '{at}' ({kind}), {shown}"))


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


@cache
def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match.group(1).lower(), name)


@cache
def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def compiled(document: Mapping[str, Any]) -> Schema:
    """Read the messages and enumerations of a discovery document."""
    enums: dict[tuple[str, ...], str] = {}
    messages: dict[str, dict[str, str]] = {}
    read_only: dict[str, frozenset[str]] = {}

    def kind_of(owner: str, field: str, spec: Mapping[str, Any]) -> str:
        if "$ref" in spec:
            return "@" + str(spec["$ref"])
        kind = spec.get("type")
        if kind == "array":
            return "[" + kind_of(owner, field, spec["items"])
        if kind == "object":
            if "properties" in spec:
                name = owner + field[0].upper() + field[1:]
                message(name, spec)
                return "@" + name
            return "{" + kind_of(owner, field, spec.get("additionalProperties", {"type": "any"}))
        if "enum" in spec:
            return "=" + enums.setdefault(tuple(spec["enum"]), f"E{len(enums)}")
        if kind == "string":
            return "l" if spec.get("format") in ("int64", "uint64") else "s"
        return {"integer": "i", "number": "d", "boolean": "b"}.get(str(kind), "*")

    def message(name: str, spec: Mapping[str, Any]) -> None:
        fields = spec.get("properties", {})
        messages[name] = {f: kind_of(name, f, s) for f, s in sorted(fields.items())}
        read_only[name] = frozenset(f for f, s in fields.items() if s.get("readOnly"))

    for name, spec in sorted(document["schemas"].items()):
        message(name, spec)
    named = {name: frozenset(words) for words, name in enums.items()}
    return Schema(str(document["name"]), messages, named, read_only)
