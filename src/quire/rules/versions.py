"""What a record's data were, version by version: from what they are now, back over its log.

Every line tells what it changed of the data (``difference``), so the way back ends at the start; or at a line that
could not hold its whole change; or where older lines are no longer here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import Record
from quire.rules.difference import Known, before, differing, informed
from quire.rules.lines import LineKind

#: Older ones are not looked for.
MOST_VERSIONS = 100


class Version(NamedTuple):
    """The data as they were from this version on, until the next one that the log tells of."""

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

    def at(self, version: int) -> Version | None:
        """What held at this version; None: it is not known."""
        return next((one for one in self.found if one.version <= version), None)


def versions(record: Record, log: Iterable[Event]) -> Versions:
    """Return the versions of the record's data that its log, newest line first, tells."""
    data = parse(record.data)
    if not isinstance(data, dict):
        return Versions((), "The data are no object: the log tells no changes of such.")
    found: list[Version] = []
    known, since = Known(data), record.version
    for event in _unbroken(record, log):
        line = parse(event.body) if event.body else {}
        line = line if isinstance(line, dict) else {}
        if event.kind == LineKind.STARTED:
            _keep(found, event, line, known)
            return Versions(tuple(found), "")
        since = min(since, event.version)
        if "changes" not in line and "changed" not in line:
            continue
        known = informed(known, line)
        _keep(found, event, line, known)
        older = before(known, line)
        if older is None:
            return Versions(tuple(found), _end(event))
        if len(found) == MOST_VERSIONS:
            return Versions(tuple(found), too_much(event.version))
        known, since = older, event.version - 1
    if not (found and _alike(found[-1].data, known)):
        found.append(Version(since, None, "", "", known))
    return Versions(
        tuple(found), f"What the data were before version {since} is not kept: the older lines are not here."
    )


def _unbroken(record: Record, log: Iterable[Event]) -> Iterable[Event]:
    """Yield the lines up to the record's version, as long as no version is missing among them."""
    last: int | None = None
    for event in log:
        if event.version > record.version:
            continue  # it was written after the record was read
        if event.version != last and event.version != (record.version if last is None else last - 1):
            return
        last = event.version
        yield event


def _keep(found: list[Version], event: Event, line: Mapping[str, Any], data: Known) -> None:
    """The data are so since this line, or since before it: then an older line takes its place."""
    if found and _alike(found[-1].data, data):
        found.pop()
    found.append(Version(event.version, event.at, event.kind, str(line.get("by") or ""), data))


def _alike(one: Known, other: Known) -> bool:
    """Nothing differs; what is not known may."""
    return not one.unknown and not other.unknown and not differing(one.fields, other.fields)


def too_much(version: int) -> str:
    """Return why older versions than this are left out."""
    return f"What the data were before version {version} is not shown: that is too much."


def _end(event: Event) -> str:
    return (
        f"What the data were before version {event.version} ({event.kind}) is not kept: "
        "its line does not hold the whole change."
    )
