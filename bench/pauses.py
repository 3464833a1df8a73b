"""Pauses of the machine itself: moments at which its host gave a processor to another machine.

One process on each processor wakes up every millisecond, before everything else here (``SCHED_FIFO``, which needs
root). When it wakes up late, nothing on that processor ran: no program of this machine can be the cause.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Span = tuple[float, float]

TICK_SECONDS = 0.001
#: So late is a pause.
LATE_SECONDS = 0.004


def watch(processor: int, over: Any, told: Any) -> None:
    """In a process of its own: what is told is the pauses, or None where nobody may look for them."""
    found: list[Span] = []
    try:
        os.sched_setaffinity(0, {processor})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except (AttributeError, OSError):
        told.put(None)
        return
    last = time.monotonic()
    while not over.value:
        time.sleep(TICK_SECONDS)
        now = time.monotonic()
        if now - last > TICK_SECONDS + LATE_SECONDS:
            found.append((last, now))
        last = now
    told.put(found)


@dataclass
class Pauses:
    #: Nobody may look for them here.
    hidden: bool = False
    spans: list[Span] = field(default_factory=list)


@contextmanager
def watched(spawn: Any) -> Iterator[Pauses]:
    """The pauses of this block, once it is over."""
    over, told = spawn.Value("b", 0, lock=False), spawn.Queue()
    running = [spawn.Process(target=watch, args=(one, over, told)) for one in sorted(os.sched_getaffinity(0))]
    for one in running:
        one.start()
    pauses = Pauses()
    try:
        yield pauses
    finally:
        over.value = 1
        for _ in running:
            found = told.get(timeout=30)
            pauses.hidden |= found is None
            pauses.spans += found or []
        for one in running:
            one.join(10)


def untouched(spans: Iterable[Span], pauses: Iterable[Span]) -> list[float]:
    """How long those took that no pause touched, nor its wake: as long again, while what had waited was worked off."""
    merged: list[list[float]] = []
    for begin, end in sorted(pauses):
        end += end - begin
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    ends = [end for _, end in merged]
    quiet = []
    for begin, end in spans:
        place = bisect_right(ends, begin)  # the first that ends after it began
        if place == len(merged) or merged[place][0] >= end:
            quiet.append(end - begin)
    return sorted(quiet)
