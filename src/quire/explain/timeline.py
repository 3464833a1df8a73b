"""The timeline of a record, from its log alone: when a worker held it, when it waited and for what. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quire.clock import iso
from quire.model.codec import parse
from quire.model.event import Event

#: After these no worker holds the record, and it waits in this way.
_RELEASES = {
    "waited": "waits",
    "asked": "asks",
    "failed": "backs off",
    "yielded": "due",
    "lost": "due",
    "orphaned": "due",
    "doubted": "asks",
    "adopted": "asks",
    "broke": "",
    "cancelled": "",
    "done": "",
    "undone": "",
}
_WAKES = frozenset({"woken", "answered", "resolved", "retried", "rewound", "revived", "started"})


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

    def begin(kind: str, event: Event, **told: Any) -> None:
        nonlocal open_
        open_ = {"kind": kind, "step": step, "from": iso(event.at), "to": None, "outcome": "", "run_id": event.run_id}
        open_ |= told

    for event in events:
        told = parse(event.body) or {}
        if event.kind == "claimed":
            close(event.at, "claimed")
            step = str(told.get("step") or step)
            begin("runs", event, worker=told.get("worker"))
        elif event.kind in _RELEASES:
            close(event.at, event.kind)
            kind = _RELEASES[event.kind]
            if kind:
                begin(kind, event)
        elif event.kind == "moved":
            running = open_ is not None and open_["kind"] == "runs"
            close(event.at, f"moved to {told.get('to')}")
            step = str(told.get("to") or "")
            begin("runs" if running else "due", event)
        elif event.kind in _WAKES:
            step = str(told.get("step") or step)
            close(event.at, event.kind)
            begin("due", event)
    if open_ is not None:
        found.append(open_)
    return [span for span in found if span["kind"] != "due" or span["to"] is None or span["to"] != span["from"]]
