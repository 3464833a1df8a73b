"""What starts records by itself at Google: answers to a form, mails that come in, files that are put into a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from quire.clock import Span
from quire.errors import DefinitionError
from quire.workflows import declared

_LEAST_EVERY = 10.0


def _check(source: Any, what: str, shape: str, every: Span) -> str:
    whose = type(source).__name__
    if not declared.is_text(what):
        like = "support@example.org" if whose == "Inbound" else "1AbC…"
        raise DefinitionError(f"{what!r} is no {shape}; write it like {whose}({like!r})")
    if declared.span(every, f"every of {whose}({what!r})") < _LEAST_EVERY:
        raise DefinitionError(f"every of {whose}({what!r}) is {every!r}; the least is 10s, for Google counts each look")
    return whose


@dataclass(frozen=True, slots=True)
class Form:
    """A form whose answers start records, once each. ``fields`` maps the title of a question to a field of the data.

    ``on_edit`` says what happens if somebody edits an answer later: nothing, the signal ``edited``, or a new record.
    """

    form: str
    every: Span = field(default="1m", kw_only=True)
    fields: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    on_edit: Literal["ignore", "signal", "start"] = field(default="ignore", kw_only=True)
    using: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _check(self, self.form, "form", self.every)
        fields: object = self.fields
        if not isinstance(fields, Mapping) or not all(map(declared.is_text, [*fields, *fields.values()])):
            raise DefinitionError(f"fields of Form({self.form!r}) is {fields!r}; it maps titles of questions to fields")
        declared.word(self.on_edit, ("ignore", "signal", "start"), f"on_edit of Form({self.form!r})")

    def problems(self, schema: Mapping[str, Any] | None) -> list[str]:
        """What the workflow's data has no place for, or would lack."""
        known = (schema or {}).get("properties")
        if known is None or not self.fields:
            return []
        found = [
            f"Form({self.form!r}) maps {title!r} to {name!r}, which its data has not"
            for title, name in self.fields.items()
            if name not in known
        ]
        lacking = sorted(set((schema or {}).get("required", ())) - set(self.fields.values()))
        return found + [f"Form({self.form!r}) has no question for {name!r}, which its data needs" for name in lacking]

    def as_json(self) -> dict[str, Any]:
        about = {"fields": dict(self.fields), "on_edit": self.on_edit}
        return {"kind": "form", "form": self.form, "every": self.every, "using": self.using, **about}


@dataclass(frozen=True, slots=True)
class Inbound:
    """Mails to an address, each of which starts a record. ``query`` narrows them, in the words of Gmail's search.

    A mail gets the label ``label`` when its record exists.
    """

    address: str
    query: str = field(default="", kw_only=True)
    every: Span = field(default="1m", kw_only=True)
    label: str = field(default="Quire/done", kw_only=True)
    using: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _check(self, self.address, "address", self.every)
        if "@" not in self.address:
            raise DefinitionError(f"{self.address!r} is not an address; write it like Inbound('support@example.org')")
        if not declared.is_text(self.label):
            raise DefinitionError(f"label of Inbound({self.address!r}) is {self.label!r}; it has a name")

    def as_json(self) -> dict[str, Any]:
        about = {"query": self.query, "label": self.label}
        return {"kind": "inbound", "address": self.address, "every": self.every, "using": self.using, **about}


@dataclass(frozen=True, slots=True)
class Dropped:
    """A folder in Drive: each new file in it starts a record."""

    folder: str
    every: Span = field(default="1m", kw_only=True)
    using: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _check(self, self.folder, "folder", self.every)

    def as_json(self) -> dict[str, Any]:
        return {"kind": "dropped", "folder": self.folder, "every": self.every, "using": self.using}
