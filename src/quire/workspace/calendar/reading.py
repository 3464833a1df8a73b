"""Who is busy when: a plain function for ``run.call``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from quire.workflows.retry import Fail
from quire.workspace.calendar.times import PRIMARY
from quire.workspace.connection import google, refusing


async def busy(
    start: datetime, end: datetime, calendars: Sequence[str] = (PRIMARY,), *, using: str = ""
) -> list[tuple[datetime, datetime]]:
    """Return when one of these calendars, or people, is busy in this time; spans that touch are one."""
    if start.tzinfo is None or end.tzinfo is None:
        raise Fail("busy takes moments with a time zone")
    with refusing():
        found = await (await google(using)).calendar.freebusy(start.isoformat(), end.isoformat(), calendars)
    spans = []
    for name, held in found.get("calendars", {}).items():
        if held.get("errors"):
            raise Fail(f"nobody here may see when {name} is busy: {held['errors'][0].get('reason', '')}")
        spans += [
            (datetime.fromisoformat(one["start"]), datetime.fromisoformat(one["end"])) for one in held.get("busy", ())
        ]
    merged: list[tuple[datetime, datetime]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
