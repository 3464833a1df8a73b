"""All documents, with the versions that an edit may still be made for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from hectograph.core.utf16 import code_units
from hectograph.docs.document import Document, Tab
from hectograph.docs.segment import Segment
from hectograph.docs.unit import TEXT, Unit, joined

#: Old versions kept of a document.
KEPT_VERSIONS = 64


@dataclass
class Shelf:
    """A document with its past."""

    current: Document
    at: datetime
    past: list[tuple[datetime, Document]] = field(default_factory=list)

    def publish(self, document: Document, at: datetime) -> None:
        self.past = [*self.past, (self.at, self.current)][-KEPT_VERSIONS:]
        self.current, self.at = document, at

    def revision(self, revision_id: str) -> Document | None:
        found = (held for _, held in [*self.past, (self.at, self.current)] if held.revision_id == revision_id)
        return next(found, None)

    def before(self, moment: datetime) -> Document:
        """Return the document as it was at a moment, or as far back as it is known."""
        found = self.past[0][1] if self.past else self.current
        for at, held in [*self.past, (self.at, self.current)]:
            if at <= moment:
                found = held
        return found


class DocsLibrary:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.shelves: dict[str, Shelf] = {}

    def add(self, document: Document) -> None:
        self.shelves[document.document_id] = Shelf(document, self.now())

    def shown(self, document_id: str, lag_seconds: float) -> Document:
        """Return the document as an export sees it, which may be late."""
        shelf = self.shelves[document_id]
        return shelf.before(self.now() - timedelta(seconds=lag_seconds)) if lag_seconds else shelf.current

    def dump(self) -> list[Any]:
        return [_document(shelf.current) for shelf in self.shelves.values()]

    def load(self, held: Iterable[Any]) -> None:
        for one in held:
            self.add(_read_document(one))


def _document(document: Document) -> dict[str, Any]:
    return {
        "id": document.document_id,
        "revision": document.revision_id,
        "version": document.version,
        "suggestions": document.suggestions,
        "suggested": document.suggested,
        "tabs": [_tab(tab) for tab in document.tabs.values()],
    }


_PLAIN = ("title", "parent", "icon", "names", "lists", "objects", "document_style", "named_styles")
_EDGES = ("headers", "footers", "footnotes")


def _tab(tab: Tab) -> dict[str, Any]:
    out: dict[str, Any] = {"id": tab.tab_id, "body": _units(tab.body.units)}
    out |= {name: getattr(tab, name) for name in _PLAIN}
    return out | {name: {key: _units(segment.units) for key, segment in getattr(tab, name).items()} for name in _EDGES}


def _same(unit: Unit) -> tuple[Any, ...]:
    return unit.kind, unit.style, unit.more, unit.names, unit.added, unit.removed


def _units(units: list[Unit]) -> list[dict[str, Any]]:
    """Return units as JSON, with those that differ by their letter alone in one."""
    out: list[dict[str, Any]] = []
    for (kind, style, more, names, added, removed), run in groupby(units, _same):
        held = list(run)
        one: dict[str, Any] = {"text": joined(held)} if kind == TEXT else {"kind": kind, "count": len(held)}
        sets = {"names": sorted(names), "added": sorted(added), "removed": sorted(removed)}
        out.append(one | {k: v for k, v in {"style": style, "more": more, **sets}.items() if v})
    return out


def _read_units(held: Iterable[Mapping[str, Any]]) -> list[Unit]:
    out: list[Unit] = []
    for one in held:
        letters = code_units(one["text"]) if "text" in one else [""] * one["count"]
        names, added, removed = (frozenset(one.get(name, ())) for name in ("names", "added", "removed"))
        kind, style, more = one.get("kind", TEXT), one.get("style", {}), one.get("more", {})
        out += [Unit(kind, text, style, more, names, added, removed) for text in letters]
    return out


def _read_document(held: Mapping[str, Any]) -> Document:
    tabs = {given["id"]: _read_tab(given) for given in held["tabs"]}
    return Document(held["id"], held["revision"], tabs, held["version"], held["suggestions"], held["suggested"])


def _read_tab(held: Mapping[str, Any]) -> Tab:
    tab = Tab(held["id"], held["title"], body=Segment("", _read_units(held["body"])))
    for name in _PLAIN:
        setattr(tab, name, held[name])
    for name in _EDGES:
        setattr(tab, name, {key: Segment(key, _read_units(units)) for key, units in held[name].items()})
    return tab
