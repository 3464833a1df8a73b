"""Dates as numbers: days since 30 December 1899, the time of day as the fraction."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

_ZERO = datetime(1899, 12, 30)  # noqa: DTZ001 - a sheet's dates have no zone


def to_serial(moment: datetime) -> float:
    since = moment.replace(tzinfo=None) - _ZERO
    return since.days + (since.seconds + since.microseconds / 1e6) / 86400


def from_serial(value: float) -> datetime:
    """The moment of a serial number, to the millisecond; numbers outside the calendar give its nearest end."""
    days = math.floor(value)
    try:
        return _ZERO + timedelta(days=days, milliseconds=round((value - days) * 86_400_000))
    except OverflowError:
        return datetime.max if value > 0 else datetime.min  # noqa: DTZ901 - as above
