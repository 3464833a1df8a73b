"""The timeline of a record, from its log alone: when a worker held it, when it waited and for what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quire.clock import iso
from quire.model.codec import parse
from quire.model.event import Event
from quire.rules import lines
from quire.rules.lines import LineKind

#: After these no worker holds the record, and it waits in this way.
WAITS = {
    LineKind.WAITED: "waits",
    LineKind.ASKED: "asks",
    LineKind.DOUBTED: "asks",
    LineKind.ADOPTED: "asks",
    LineKind.FAILED: "backs off",
    **dict.fromkeys(lines.RELEASES & lines.WAKES, "due"),
    **dict.fromkeys(lines.ENDS, ""),
}


def spans(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Spans in order: ``runs``, ``waits``, ``asks``, ``backs off``, ``due``; the last may have no end."""
    found: list[dict[str, Any]] = []
    open_: dict[str, Any] | None = None
    step = ""

    def close(at: float, outcome: str) -> None:
        nonlocal open_
        if open_ is not None:
            found.append(open_ | {"to": iso(at), "outcome": outcome})
            open_ = None

    def begin(kind: str, event: Event, **more: Any) -> None:
        nonlocal open_
        open_ = {"kind": kind, "step": step, "from": iso(event.at), "to": None, "outcome": "", "run_id": event.run_id}
        open_ |= more

    for event in events:
        body = parse(event.body) or {}
        if event.kind == LineKind.CLAIMED:
            close(event.at, "claimed")
            step = str(body.get("step") or step)
            begin("runs", event, worker=body.get("worker"))
        elif event.kind in WAITS:
            close(event.at, event.kind)
            kind = WAITS[LineKind(event.kind)]
            if kind:
                begin(kind, event)
        elif event.kind == LineKind.MOVED:
            running = open_ is not None and open_["kind"] == "runs"
            close(event.at, f"moved to {body.get('to')}")
            step = str(body.get("to") or "")
            begin("runs" if running else "due", event)
        elif event.kind in lines.WAKES:
            step = str(body.get("step") or step)
            close(event.at, event.kind)
            begin("due", event)
    if open_ is not None:
        found.append(open_)
    return [span for span in found if span["kind"] != "due" or span["to"] is None or span["to"] != span["from"]]
