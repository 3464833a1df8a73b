"""The only reader of time, the only sleeper, the only maker of ids.

Moments are seconds since 1970 in UTC, as floats; people see ISO-8601 with a Z (``iso``). A lease is counted on
``boottime``, which goes on while the machine is suspended and which nobody can set back.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

from quire.errors import InputError

Span = str | timedelta | int | float

#: A span is shorter than this: so the moment at which it ends can be written as a date, for centuries to come.
LONGEST_SECONDS = 300 * 365.25 * 86400.0

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)")


class Clock(Protocol):
    """What time it is, and how to wait. Tests tell the time instead (``quire.testing.ToldClock``)."""

    def now(self) -> float: ...

    def boottime(self) -> float: ...

    async def sleep(self, span: float) -> None: ...


#: Goes on in suspension where the system has such a clock.
_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def boottime(self) -> float:
        return time.clock_gettime(_BOOT)

    async def sleep(self, span: float) -> None:
        await asyncio.sleep(span)


SYSTEM = SystemClock()


@lru_cache(maxsize=1024)
def _parsed(text: str) -> float:
    place, total = 0, 0.0
    while place < len(text):
        found = _SPAN.match(text, place)
        if found is None:
            raise InputError(f"{text!r} is not a span of time; write it like '90s', '5m', '1h30m', '3d'")
        total += float(found[1]) * _UNITS[found[2]]
        place = found.end()
    if not text.strip():
        raise InputError("an empty text is not a span of time; write it like '90s', '5m', '1h30m', '3d'")
    return total


def seconds(span: Span) -> float:
    """A span in seconds: ``'1h30m'``, a timedelta, or a number of seconds. It is shorter than ``LONGEST_SECONDS``."""
    length = _length(span)
    if not 0 <= length < LONGEST_SECONDS:
        raise InputError(
            f"{span!r:.80} is not a span of time: it must be zero or more seconds, and shorter than 300 years"
        )
    return length


def _length(span: Span) -> float:
    if isinstance(span, str):
        return _parsed(span)
    if not isinstance(span, timedelta | int | float):
        raise InputError(f"{span!r} is not a span of time; write it like '90s', '5m', '1h30m', '3d'")
    try:
        return span.total_seconds() if isinstance(span, timedelta) else float(span)
    except OverflowError:
        return math.inf


def iso(moment: float | None) -> str:
    """The moment as people and files see it: ISO-8601 in UTC with milliseconds and a Z.

    One beyond the calendar, as a ledger may hold it, is shown as the calendar's end.
    """
    if moment is None:
        return ""
    try:
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    except (ValueError, OverflowError, OSError):
        return "9999-12-31T23:59:59.999Z" if moment > 0 else "0001-01-01T00:00:00.000Z"


def boot_id() -> str:
    """Which boot of which machine this is: a pid means something only within it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return f"unknown-{os.getppid()}"


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str = "", *, length: int = 16) -> str:
    """Return a fresh random id: lower-case letters and digits without look-alikes, 5 bits a character."""
    return prefix + _letters(_random(5 * length), length)


def _random(bits: int) -> int:
    return int.from_bytes(os.urandom((bits + 7) // 8), "big") & (1 << bits) - 1


def _letters(number: int, length: int) -> str:
    return "".join([_ALPHABET[number >> shift & 31] for shift in range(5 * (length - 1), -1, -5)])


class _Counter:
    """Ids of one process: a random beginning, then a count. Unique like random ones, and much cheaper to make."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.start = new_id(length=14) + "-"
        self.next = itertools.count(1).__next__
        #: Of records: the millisecond, its letters, and what counts on from a random number within it.
        self.record: tuple[int, str, Callable[[], int]] = (-1, "", self.next)


_counter = _Counter()


def next_id() -> str:
    """An id that nobody else makes: for changes, claims and tries, of which there are many."""
    return f"{_counter.start}{_counter.next():x}"


def new_record_id(prefix: str, now: float) -> str:
    """A fresh id that sorts by the moment of its making, and within a millisecond of one process by its order.

    So new rows lie side by side, in tables, indexes and sheets, and records that were started together are claimed in
    the order in which they were given.
    """
    moment = int(now * 1000)
    known, letters, following = _counter.record
    if known != moment:
        letters, following = _letters(moment, 9), itertools.count(_random(54)).__next__
        _counter.record = moment, letters, following
    return f"{prefix}{letters}{_letters(following(), 11)}"


def made_after(later: str, earlier: str) -> bool:
    """Return whether ``next_id`` made one after the other. Of ids of two processes nobody can tell."""
    process, mark, number = later.rpartition("-")
    other, _, before = earlier.rpartition("-")
    return bool(mark) and process == other and int(number, 16) > int(before, 16)
