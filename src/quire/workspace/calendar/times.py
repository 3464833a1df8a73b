"""Moments as Calendar takes them, and what is refused about them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from quire.clock import Span, seconds
from quire.errors import did_you_mean
from quire.workflows.retry import Fail

PRIMARY = "primary"
_DAY = 86400.0


def checked_zone(zone: str) -> str:
    """Refuse a name that is no time zone."""
    if zone and zone not in available_timezones():
        raise Fail(
            f"{zone!r} is no time zone{did_you_mean(zone, available_timezones())}; write it like 'Europe/Berlin'"
        )
    return zone


def from_to(title: str, start: datetime | date, lasts: Span, zone: str) -> dict[str, Any]:
    """The start and the end of an event. A ``date`` is a whole day; a moment needs a zone of its own, or ``zone``."""
    checked_zone(zone)
    long = seconds(lasts)
    if long <= 0:
        raise Fail(f"{title!r} would end when it starts; say how long it lasts, like '1h'")
    if not isinstance(start, datetime):
        if long % _DAY:
            raise Fail(
                f"{title!r} is on whole days, and lasts {lasts!r}; give whole days, like '1d', or a moment to start"
            )
        return {"start": {"date": start.isoformat()}, "end": {"date": (start + timedelta(seconds=long)).isoformat()}}
    if start.tzinfo is None:
        if not zone:
            raise Fail(
                f"the start of {title!r} has no time zone: {start.isoformat()}; give a datetime with tzinfo, or zone="
            )
        start = start.replace(tzinfo=ZoneInfo(zone))
    named = {"timeZone": zone} if zone else {}
    end = start + timedelta(seconds=long)
    return {"start": {"dateTime": start.isoformat(), **named}, "end": {"dateTime": end.isoformat(), **named}}


def start_of(event: Mapping[str, Any]) -> datetime | date:
    """When an event starts."""
    start = event.get("start") or {}
    if "dateTime" in start:
        return datetime.fromisoformat(str(start["dateTime"]))
    return date.fromisoformat(str(start.get("date", "1970-01-01")))


def end_of(event: Mapping[str, Any]) -> datetime | date:
    """When an event ends."""
    return start_of({"start": event.get("end")})


def same_time(one: Any, other: Any) -> bool:
    """Whether two moments of Calendar are one, however they are written."""
    return start_of({"start": one}) == start_of({"start": other})
