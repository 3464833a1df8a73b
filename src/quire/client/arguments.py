"""Checks of what the client's verbs are called with: what can be no such thing is refused before anything is done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from quire.errors import InputError, NotFound, did_you_mean
from quire.model.record import MOST_PRIORITY, Status

T = TypeVar("T")

#: What no id holds, nor any name that stands in an address: one rule for whoever starts a record or asks for one.
CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

#: What no store keeps.
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")


def checked_id(record_id: object) -> str:
    """Return the id of a new record, refused unless it can be one."""
    if not isinstance(record_id, str):
        raise InputError(f"{record_id!r} is not a record id: an id is text")
    if not record_id or len(record_id) > 500 or record_id != record_id.strip():
        raise InputError(f"{record_id!r} is not a record id: 1 to 500 characters, no space at either end")
    if CONTROL.search(record_id):
        raise InputError(f"{record_id!r} is not a record id: it holds a control character")
    return record_id


def asked_id(record_id: object) -> str:
    """The id of a record that may be there."""
    if not isinstance(record_id, str):
        raise InputError(f"{record_id!r} is not a record id: an id is text")
    if _NO_TEXT.search(record_id):
        raise NotFound(f"Record with ID {record_id!r} not found.")
    return record_id


def name(value: object, what: str) -> str:
    """Return a name; it may be empty."""
    if not isinstance(value, str) or _NO_TEXT.search(value):
        raise InputError(f"{what} is {value!r}; it must be a name, as text")
    return value


def fields(value: object, what: str) -> dict[str, Any]:
    """Named fields, as a dict of their own."""
    if not isinstance(value, Mapping):
        raise InputError(f"{what} must be a dict of named fields, not {type(value).__name__}")
    return dict(value)


def checked_priority(priority: object) -> int:
    """Return the priority, if every store takes it."""
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise InputError(f"a priority is a whole number, not {priority!r:.80}")
    if not -MOST_PRIORITY <= priority <= MOST_PRIORITY:
        raise InputError(f"a priority lies between -{MOST_PRIORITY:,} and {MOST_PRIORITY:,}")
    return priority


def count(value: object, what: str, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InputError(f"{what} is {value!r}; it must be a whole number, {least} or more")


def several(values: Iterable[T], what: str) -> Iterator[T]:
    """Yield the values of a list or the like, never the letters of a text nor the keys of a dict."""
    given: object = values
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{what} must be a list, not {type(given).__name__}; write {what}=[…]")
    return iter(values)


def statuses(given: object) -> tuple[Status, ...]:
    """Return the statuses that were given, one or several; a misspelt one is refused."""
    words = (given,) if isinstance(given, str) else tuple(several(given, "status"))  # type: ignore[arg-type]  # looked at
    for word in words:
        if word not in Status.__members__.values():
            raise InputError(f"{word!r} is not a status{did_you_mean(str(word).upper(), Status.__members__)}")
    return tuple(Status(word) for word in words)


def order(word: str) -> None:
    known = ("id", "updated", "place")
    if word not in known:
        raise InputError(f"{word!r} is not an order{did_you_mean(str(word), known)}")
