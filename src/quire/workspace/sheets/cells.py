"""Values as cells take them. A text is a text, also one that begins with an equals sign."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from quire.workflows.retry import Fail

_EPOCH = date(1899, 12, 30)


def value_of(value: Any, name: str) -> Any:
    """The value as an intent keeps it: a date by its number of days, as Sheets counts them."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        whole = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        seconds = whole.hour * 3600 + whole.minute * 60 + whole.second
        return {"days": (whole.date() - _EPOCH).days + seconds / 86400, "type": "DATE_TIME"}
    if isinstance(value, date):
        return {"days": (value - _EPOCH).days, "type": "DATE"}
    raise Fail(f"the value of {name!r} is {type(value).__name__}; a cell takes texts, numbers, dates, true and false")


def plain(value: Any) -> Any:
    """The value as a read of the cell returns it."""
    if isinstance(value, dict):
        return value["days"]
    return "" if value is None else value


def cell_of(value: Any) -> dict[str, Any]:
    """The cell that holds a kept value."""
    if value is None:
        return {}
    if isinstance(value, dict):
        form = {"numberFormat": {"type": value["type"]}}
        return {"userEnteredValue": {"numberValue": value["days"]}, "userEnteredFormat": form}
    kind = "boolValue" if isinstance(value, bool) else "stringValue" if isinstance(value, str) else "numberValue"
    return {"userEnteredValue": {kind: value}}
