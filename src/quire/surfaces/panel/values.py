"""What a cell says, as the type that its field wants. Pure.

Google keeps dates, times, shares and sums of money as numbers, and how they look beside them. A field that wants text
gets the cell as it looks; one that wants a date or a time gets what the number stands for: days since 1899-12-30, in
the time zone of the book.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from quire.errors import InputError

_FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - the day of the number 0, in whatever zone the book is
_DAY = 86_400_000
_OFFSET = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2}):?(\d{2})")


def wants_text(wanted: Mapping[str, Any]) -> bool:
    """Whether the field takes text and no number: for it, how a number looks is what it says."""
    kinds = _all(wanted, "type")
    return "string" in kinds and not kinds & {"integer", "number"}


def typed(value: Any, shown: str, wanted: Mapping[str, Any], zone: str) -> Any:
    """``shown``: how the cell looks; ``wanted``: the field's schema; ``zone``: the name of the book's time zone."""
    kinds = _all(wanted, "type")
    if isinstance(value, bool):
        return shown if wants_text(wanted) and "boolean" not in kinds else value
    if wants_text(wanted) and not isinstance(value, str):
        moment = _moment(value, _all(wanted, "format"), zone)
        return shown if moment is None else moment
    if isinstance(value, float) and value.is_integer() and ("integer" in kinds or "number" not in kinds):
        return int(value)
    if isinstance(value, str) and "string" not in kinds:
        return _parsed(value, kinds)
    return value


def _parsed(value: str, kinds: set[Any]) -> Any:
    text = value.strip()
    if kinds & {"integer", "number"} and re.fullmatch(r"[+-]?\d+(\.\d+)?", text):
        return int(text) if "." not in text else float(text)
    if "boolean" in kinds and text.casefold() in ("true", "false", "yes", "no"):
        return text.casefold() in ("true", "yes")
    return value


def _all(wanted: Mapping[str, Any], word: str) -> set[Any]:
    return {wanted.get(word)} | {option.get(word) for option in wanted.get("anyOf", ())}


def _moment(value: float, formats: set[Any], zone: str) -> str | None:
    """The date or the time that a number stands for, as ISO 8601; None: it stands for none that is wanted."""
    try:
        milliseconds = round(value * _DAY)
        moment = _FIRST_DAY + timedelta(milliseconds=milliseconds)
    except (OverflowError, ValueError):
        return None
    if "date" in formats and milliseconds % _DAY == 0:
        return moment.date().isoformat()
    if "date-time" in formats:
        return moment.replace(tzinfo=zone_of(zone)).isoformat()
    if "time" in formats and 0 <= milliseconds < _DAY:
        return moment.time().isoformat()
    return None


def zone_of(name: str) -> tzinfo:
    """The time zone of a book, by the name that Google gives it, or by a shift such as GMT-07:00."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if found := _OFFSET.fullmatch(name):
        sign, hours, minutes = found.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-shift if sign == "-" else shift)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        text = f"the spreadsheet's time zone {name!r} is not known here; choose another in its settings"
        raise InputError(text) from None
