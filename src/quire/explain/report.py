"""Where the time of a record went, computed from its log and its children's alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from quire.clock import iso
from quire.explain.words import moment_json, value_json
from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import UNDO
from quire.rules import lines
from quire.rules.lines import LineKind

#: Lines after which the record is at another step.
_LEAVES = (LineKind.MOVED, LineKind.DONE, LineKind.REWOUND)


class StepTime(NamedTuple):
    """One visit of a step."""

    step: str
    entered_at: float
    left_at: float | None
    #: How long a worker held the record there.
    running: float
    tries: int


class Report(NamedTuple):
    """Where the time went, computed from the log alone."""

    record_id: str
    started_at: float | None
    ended_at: float | None
    #: From the first claim of the record or a child to the last end of any.
    wall: float | None
    running: float
    steps: tuple[StepTime, ...]
    #: How long each claim came after the record was due.
    hops: tuple[float, ...]
    children: int = 0
    children_running: float = 0.0
    #: The most children that ran at one moment.
    overlap: int = 0


class _Held(NamedTuple):
    """When a worker held a record; and how long it had been due before."""

    spans: tuple[tuple[float, float], ...]
    hops: tuple[float, ...]
    ended_at: float | None


def _held(events: Sequence[Event], now: float) -> _Held:
    spans: list[tuple[float, float]] = []
    hops: list[float] = []
    since: float | None = None
    due: float | None = None
    ended = None
    for place, event in enumerate(events):
        following = events[place + 1].kind if place + 1 < len(events) else ""
        if event.kind == LineKind.CLAIMED:
            since = event.at
            if due is not None:
                hops.append(max(0.0, event.at - due))
            due = None
            ended = None
            continue
        released = event.kind in lines.RELEASES or (event.kind == LineKind.MOVED and following == LineKind.CLAIMED)
        if released and since is not None:
            spans.append((since, event.at))
            since = None
        if event.kind in lines.WAKES or (event.kind == LineKind.MOVED and following == LineKind.CLAIMED):
            due = event.at
        elif event.kind == LineKind.FAILED:
            due = event.at + float(parse(event.body).get("again_in", 0.0))
        if event.kind in lines.ENDS:
            ended = event.at
    if since is not None:
        spans.append((since, now))
    return _Held(tuple(spans), tuple(hops), ended)


def report_of(events: Sequence[Event], children: Sequence[Sequence[Event]], now: float) -> Report:
    """Compute from the log of a record and the logs of its children."""
    own = _held(events, now)
    others = [_held(log, now) for log in children]
    spans = [*own.spans, *(span for other in others for span in other.spans)]
    starts = [start for start, _ in spans]
    ends = [end for end in (own.ended_at, *(other.ended_at for other in others)) if end is not None]
    first = min(starts, default=None)
    last = max(ends, default=None) if own.ended_at is not None else None
    return Report(
        record_id=events[0].record_id if events else "",
        started_at=first,
        ended_at=last,
        wall=(last if last is not None else now) - first if first is not None else None,
        running=sum(end - start for start, end in own.spans),
        steps=tuple(_steps(events, own)),
        hops=(*own.hops, *(hop for other in others for hop in other.hops)),
        children=len(children),
        children_running=sum(end - start for other in others for start, end in other.spans),
        overlap=_overlap(span for other in others for span in other.spans),
    )


def _overlap(spans: Iterable[tuple[float, float]]) -> int:
    """The most spans that hold one moment in common. An end and a start at the same moment do not overlap."""
    edges = sorted((moment, step) for start, end in spans for moment, step in ((start, 1), (end, -1)))
    most = current = 0
    for _, step in edges:
        current += step
        most = max(most, current)
    return most


def _steps(events: Sequence[Event], held: _Held) -> Iterable[StepTime]:
    step, entered, tries = "", 0.0, 0
    for event in events:
        body = value_json(event.body) or {}
        if event.kind == LineKind.STARTED:
            step, entered, tries = str(body.get("step", "")), event.at, 0
        elif event.kind == LineKind.CLAIMED:
            tries += 1
        elif event.kind in _LEAVES or (event.kind in lines.ENDS and body.get("undo")):
            yield StepTime(step, entered, event.at, _within(held.spans, entered, event.at), tries)
            step, entered, tries = str(body.get("to") or body.get("step") or ""), event.at, 0
            if event.kind == LineKind.DONE:
                step = ""
            elif body.get("undo"):
                step = UNDO
    if step:
        ended = held.ended_at
        until = ended if ended is not None else (held.spans[-1][1] if held.spans else entered)
        yield StepTime(step, entered, ended, _within(held.spans, entered, max(until, entered)), tries)


def _within(spans: Iterable[tuple[float, float]], start: float, end: float) -> float:
    return sum(max(0.0, min(b, end) - max(a, start)) for a, b in spans)


def report_json(made: Report) -> dict[str, Any]:
    hops = sorted(made.hops)
    return {
        "record_id": made.record_id,
        "started_at": moment_json(made.started_at),
        "ended_at": moment_json(made.ended_at),
        "wall_seconds": _rounded(made.wall),
        "running_seconds": _rounded(made.running),
        "steps": [
            {
                "step": row.step,
                "entered_at": iso(row.entered_at),
                "left_at": moment_json(row.left_at),
                "running_seconds": _rounded(row.running),
                "claims": row.tries,
            }
            for row in made.steps
        ],
        "hops": len(hops),
        "hop_seconds_median": _rounded(hops[len(hops) // 2]) if hops else None,
        "hop_seconds_most": _rounded(hops[-1]) if hops else None,
        "children": made.children,
        "children_running_seconds": _rounded(made.children_running),
        "children_overlap": made.overlap,
    }


def _rounded(length: float | None) -> float | None:
    return None if length is None else round(length, 4)
