"""What a record's data were, version by version: from what they are now, back over its log as far as its lines allow.

What people change is told by their lines (``difference``). What a step writes is not: there it ends, except where the
record itself remembers how its step found the data (``entry``), or that they are still so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from quire.machine.difference import Known, before, differing
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import Record

#: Older ones are not looked for.
MOST_VERSIONS = 100
#: These change no data, whoever writes them.
_KEEP = frozenset(
    {"claimed", "woken", "lost", "orphaned", "doubted", "retried", "rewound", "voted", "resolved", "adopted", "revived"}
    | {"undone", "prioritised", "signalled", "cancel_asked", "noted", "expired", "reminded", "escalated"}
)
#: These change none either, but a worker writes them, and its code may have migrated the data before.
_KEEP_UNLESS_MIGRATED = frozenset({"failed", "broke", "yielded", "cancelled"})
#: These change data only within what ``entry`` remembers.
_WITHIN = frozenset({"saved", "waited", "asked"})
#: These tell what they change; all that is named nowhere here (``moved``, ``done``) may hide what a step changed.
_PEOPLE = frozenset({"edited", "answered"})


class Version(NamedTuple):
    """The data as they were from this version on, until the next one that is told."""

    version: int
    #: When, by which line and by whom they became so; None and empty where that line is not here.
    at: float | None
    kind: str
    by: str
    data: Known


class Versions(NamedTuple):
    #: Newest first: the first is how the data are.
    found: tuple[Version, ...]
    #: Why older ones are not known; empty: the last is how it was started.
    end: str


def versions(record: Record, log: Iterable[Event]) -> Versions:
    """The versions of the record's data that its log, newest line first, tells."""
    data = parse(record.data)
    if not isinstance(data, dict):
        return Versions((), "The data are no object: the log tells no changes of such.")
    return _Walk(record, Known(data)).back(log)


class _Walk:
    """One way back over a log."""

    def __init__(self, record: Record, now: Known) -> None:
        self.found: list[Version] = []
        #: What is known of the data at ``version``. None: nothing, until the line by which the record entered its step.
        self.data: Known | None = now
        self.version = record.version
        #: A migration is told by no line, and ``entry`` is what came of it.
        self.migrated = record.code_version > 1
        #: How the step found the data; None where the record does not remember it, or no longer.
        self.entry: Known | None = None
        self.wrote = record.entry is not None
        if not self.migrated:
            entry = parse(record.entry) if record.entry is not None else now.fields
            self.entry = Known(entry) if isinstance(entry, dict) else None

    def back(self, log: Iterable[Event]) -> Versions:
        newest = self.version
        last: int | None = None
        for event in log:
            if event.version > newest:
                continue  # it was written after the record was read
            if event.version != last and event.version != (newest if last is None else last - 1):
                break
            last, self.version = event.version, min(self.version, event.version)
            end = self._over(event)
            if end is not None:
                return Versions(tuple(self.found), end)
            if len(self.found) > MOST_VERSIONS:
                return Versions(tuple(self.found[:-1]), too_much(self.found[-2].version))
        if self.data is not None and not (self.found and _alike(self.found[-1].data, self.data)):
            self.found.append(Version(self.version, None, "", "", self.data))
        end = f"What the data were before version {self.version} is not kept: the older lines are not here."
        return Versions(tuple(self.found), end)

    def _over(self, event: Event) -> str | None:
        """Go back over one line. A sentence: it ends here; empty: this is the start."""
        line = parse(event.body) if event.body else {}
        line = line if isinstance(line, dict) else {}
        if _enters(event.kind, line):
            self.data, self.entry = self.data or self.entry, None
        if self.data is None:
            return None
        if event.kind == "started":
            self._keep(event, line)
            return ""
        if "changes" in line or "changed" in line:
            self._keep(event, line)
            self.data, self.version = before(self.data, line), event.version - 1
            return None if self.data or self.entry else _end(event, "its line does not hold the whole change")
        if self._may_write(event.kind, line):
            self._keep(event, line)
            self.data = None
            within = event.kind in _WITHIN and self.entry is not None
            return None if within else _end(event, "a step may have changed them, which the log does not tell")
        return None

    def _may_write(self, kind: str, line: Mapping[str, Any]) -> bool:
        """The line may hide a change of the data."""
        if kind in _KEEP or kind in _PEOPLE or kind.startswith("effect."):
            return False
        if kind in _KEEP_UNLESS_MIGRATED:
            return self.migrated and "by" not in line
        if kind in _WITHIN:
            return self.entry is None or self.wrote
        return not (kind == "moved" and "by" in line)

    def _keep(self, event: Event, line: Mapping[str, Any]) -> None:
        """The data are so since this line, or since before it: then an older line takes its place."""
        assert self.data is not None
        if self.found and _alike(self.found[-1].data, self.data):
            self.found.pop()
        self.found.append(Version(event.version, event.at, event.kind, str(line.get("by") or ""), self.data))


def _alike(one: Known, other: Known) -> bool:
    """Nothing differs; what is not known may."""
    return not one.unknown and not other.unknown and not differing(one.fields, other.fields)


def _enters(kind: str, line: Mapping[str, Any]) -> bool:
    """With this line the record forgets how an earlier step found the data."""
    to_undo = kind in ("broke", "cancelled") and bool(line.get("undo"))
    return to_undo or kind in ("started", "edited", "rewound", "moved", "done")


def too_much(version: int) -> str:
    """Why older versions than this are left out."""
    return f"What the data were before version {version} is not told here: that is too much."


def _end(event: Event, why: str) -> str:
    return f"What the data were before version {event.version} ({event.kind}) is not kept: {why}."
