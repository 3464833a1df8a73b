"""A document: tabs with segments, named ranges, lists and pictures; and how two edits of it are brought together."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hectograph.core.error import Invalid
from hectograph.docs import styles
from hectograph.docs.segment import Segment, line_end
from hectograph.docs.unit import SECTION, Unit, fresh

_KIX = "abcdefghijklmnopqrstuvwxyz0123456789"


def minted(prefix: str = "kix.", size: int = 12) -> str:
    return prefix + "".join(secrets.choice(_KIX) for _ in range(size))


def new_body() -> Segment:
    return Segment("", [Unit(SECTION, more={"style": dict(styles.SECTION)}), line_end()])


@dataclass
class Tab:
    tab_id: str
    title: str
    parent: str = ""
    icon: str = ""
    body: Segment = field(default_factory=new_body)
    headers: dict[str, Segment] = field(default_factory=dict)
    footers: dict[str, Segment] = field(default_factory=dict)
    footnotes: dict[str, Segment] = field(default_factory=dict)
    #: The names of named ranges by id; which units they cover is noted at the units.
    names: dict[str, str] = field(default_factory=dict)
    lists: dict[str, Any] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)
    document_style: dict[str, Any] = field(default_factory=lambda: copy.deepcopy(styles.DOCUMENT))
    named_styles: list[dict[str, Any]] = field(default_factory=lambda: copy.deepcopy(styles.NAMED))

    @property
    def segments(self) -> Iterator[Segment]:
        """Return all segments in reading order."""
        yield from self.headers.values()
        yield self.body
        yield from self.footnotes.values()
        yield from self.footers.values()

    def segment(self, segment_id: str) -> Segment:
        found = self.body if not segment_id else None
        for held in (self.headers, self.footers, self.footnotes):
            found = found or held.get(segment_id)
        if found is None:
            raise Invalid(f"Segment with ID {segment_id} was not found.")
        return found

    def fork(self) -> Tab:
        twin = copy.copy(self)
        twin.body = self.body.fork()
        for name in ("headers", "footers", "footnotes"):
            setattr(twin, name, {key: segment.fork() for key, segment in getattr(self, name).items()})
        for name in ("names", "lists", "objects", "document_style"):
            setattr(twin, name, dict(getattr(self, name)))
        twin.named_styles = list(self.named_styles)
        return twin

    def sweep(self) -> None:
        """Forget named ranges that cover nothing any more."""
        covered = frozenset[str]().union(*(unit.names for segment in self.segments for unit in segment.units))
        self.names = {key: name for key, name in self.names.items() if key in covered}


@dataclass
class Document:
    document_id: str
    revision_id: str = ""
    #: In the order in which they are shown; a tab below another one stands after it.
    tabs: dict[str, Tab] = field(default_factory=lambda: {"t.0": Tab("t.0", "Tab 1")})
    #: How often it was changed.
    version: int = 1
    #: Suggestions by id, each with its summary.
    suggestions: dict[str, str] = field(default_factory=dict)
    #: How many suggestions were ever made: their ids are numbers, the same in every run of a test.
    suggested: int = 0

    def __post_init__(self) -> None:
        self.revision_id = self.revision_id or minted_revision()

    @property
    def first(self) -> Tab:
        return next(iter(self.tabs.values()))

    def tab(self, tab_id: str) -> Tab:
        """Return a tab; without an id it is the first."""
        if not tab_id:
            return self.first
        found = self.tabs.get(tab_id)
        if found is None:
            raise Invalid(f"Tab with ID {tab_id} was not found.")
        return found

    def wanted(self, criteria: dict[str, Any] | None) -> list[Tab]:
        """Return the tabs that a request is about: all of them unless it names some."""
        ids = (criteria or {}).get("tabIds")
        return [self.tab(tab_id) for tab_id in ids] if ids else list(self.tabs.values())

    def children(self, parent: str) -> list[Tab]:
        return [tab for tab in self.tabs.values() if tab.parent == parent]

    def fork(self) -> Document:
        twin = copy.copy(self)
        twin.tabs = {key: tab.fork() for key, tab in self.tabs.items()}
        twin.suggestions = dict(self.suggestions)
        return twin

    def twin(self, document_id: str) -> Document:
        """Return a copy that is a document of its own; suggestions go with it."""
        made = self.fork()
        made.document_id, made.revision_id, made.version = document_id, minted_revision(), 1
        for tab in made.tabs.values():
            for segment in tab.segments:
                segment.units = fresh(segment.units)
        return made

    def changed(self, before: Document) -> bool:
        """Whether anything differs from a fork that was made before."""
        return (
            list(self.tabs) != list(before.tabs)
            or self.suggestions != before.suggestions
            or any(tab != before.tabs[key] for key, tab in self.tabs.items())
        )


def minted_revision() -> str:
    return "ALm37BX" + secrets.token_urlsafe(54).replace("=", "")


def merged(base: Document, ours: Document, theirs: Document) -> Document:
    """Return what ``ours`` made of ``base``, done to ``theirs``, which others made of it meanwhile."""
    out = theirs.fork()
    for key, tab in ours.tabs.items():
        if key not in base.tabs:
            out.tabs[key] = tab.fork()
        elif key in out.tabs:
            _merge_tab(base.tabs[key], tab, out.tabs[key])
    for key in base.tabs.keys() - ours.tabs.keys():
        out.tabs.pop(key, None)
    out.suggestions |= ours.suggestions
    out.suggested = ours.suggested
    return out


def _merge_tab(base: Tab, ours: Tab, into: Tab) -> None:
    into.body.units = merged_units(base.body.units, ours.body.units, into.body.units)
    for name in ("headers", "footers", "footnotes"):
        before, mine, held = getattr(base, name), getattr(ours, name), getattr(into, name)
        for key, segment in mine.items():
            if key not in before:
                held[key] = segment.fork()
            elif key in held:
                held[key].units = merged_units(before[key].units, segment.units, held[key].units)
        for key in before.keys() - mine.keys():
            held.pop(key, None)
    for name in ("names", "lists", "objects", "document_style"):
        before, mine, held = getattr(base, name), getattr(ours, name), getattr(into, name)
        held.update({key: value for key, value in mine.items() if before.get(key) != value})
        for key in before.keys() - mine.keys():
            held.pop(key, None)
    for name in ("title", "icon", "parent", "named_styles"):
        if getattr(ours, name) != getattr(base, name):
            setattr(into, name, getattr(ours, name))
    into.sweep()


def merged_units(base: list[Unit], ours: list[Unit], theirs: list[Unit]) -> list[Unit]:
    """Return their units with our deletions, changes and insertions.

    What we put in goes after the unit that stood before it. If they have taken that one out, it goes after the nearest
    one before it that is still there.
    """
    before = {unit.uid: unit for unit in base}
    mine = {unit.uid: unit for unit in ours}
    there = {unit.uid for unit in theirs}
    placed: dict[int, list[Unit]] = {}
    anchor = 0
    for unit in ours:
        if unit.uid in before:
            anchor = unit.uid
        else:
            placed.setdefault(anchor, []).append(unit)
    # The anchor of a run is moved back to a unit that they still have.
    living: dict[int, int] = {0: 0}
    last = 0
    for unit in base:
        last = unit.uid if unit.uid in there else last
        living[unit.uid] = last
    moved: dict[int, list[Unit]] = {}
    for at, run in placed.items():
        moved.setdefault(living[at], []).extend(run)
    out = list(moved.get(0, ()))
    for unit in theirs:
        if unit.uid not in before:
            out.append(unit)
        elif unit.uid in mine:
            changed = mine[unit.uid]
            out.append(unit if changed == before[unit.uid] else changed)
        # Else we have taken it out; what we put in its place follows all the same.
        out += moved.get(unit.uid, ())
    return out
