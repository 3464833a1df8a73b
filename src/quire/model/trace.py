"""The trace that a line of the log keeps of a failed try: as text, and where the last one is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quire.model.codec import parse
from quire.model.event import Event
from quire.model.record import Record


def trace_lines(event: Event) -> list[str]:
    """Return the trace that a line of the log keeps of a failed try, as Python prints one. Empty: it keeps none.

    What caused an error stands above it.
    """
    body = parse(event.body)
    links = body.get("trace", ()) if isinstance(body, dict) else ()
    return [text for link in reversed(links) for text in _link_lines(link)]


_LED_TO = {
    "cause": "which was the direct cause of this error:",
    "context": "and while that was handled, this error came:",
    "member": "which is one of the errors of this group:",
}


def _link_lines(link: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for frame in link.get("frames", ()):
        if "folded" in frame:
            count = frame["folded"]
            lines.append(f"  … {count} frame{'s' if count > 1 else ''} of the engine or of libraries")
            continue
        lines.append(f'  File "{frame["file"]}", line {frame["line"]}, in {frame["function"]}')
        lines += [f"    {frame['code']}"] if frame.get("code") else []
    message = str(link.get("message", ""))
    lines += f"{link.get('type')}: {message}".removesuffix(": ").splitlines()
    return lines + ([_LED_TO[link["as"]]] if link.get("as") in _LED_TO else [])


def last_trace(record: Record, events: Sequence[Event]) -> Event | None:
    """Return the line of the failed try that the record's last error is of, if it keeps a trace."""
    if record.last_error is None:
        return None
    failed = (event for event in reversed(events) if event.kind in ("failed", "broke"))
    last = next(failed, None)
    return last if last is not None and trace_lines(last) else None
