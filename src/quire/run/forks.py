"""A step that forks: the copy of the process may do work of its own, but it never goes on as a second worker.

The copy has the worker's event loop, its connections and its records. When the step's code would hand control back to
them, the copy ends at once.
"""

from __future__ import annotations

import inspect
import os
import sys
import threading
from concurrent.futures import thread
from contextlib import suppress
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

#: How many forks lie between this process and the one that imported this module.
_generation = 0
#: The threads in which a worker runs plain ``def`` steps have names that begin so.
STEP_THREAD = "quire-step"
_MESSAGE = (
    b"quire: a step forked, and the copy came back to the worker: the copy ends here. "
    b"Start another program with subprocess, or end the copy with os._exit.\n"
)


@lru_cache(maxsize=1)
def heed() -> None:
    """From now on copies of this process are watched."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_copied)


def generation() -> int:
    """A number that is another one in a copy of this process."""
    return _generation


def end_if_copied(before: int) -> None:
    """End this process if it is a copy that was made since ``generation`` gave this number."""
    if before != _generation:
        _end()


def _end(*_: Any) -> None:
    with suppress(OSError):
        os.write(2, _MESSAGE)
    os._exit(1)


def _copied() -> None:
    global _generation
    _generation += 1
    entry = _entry(sys._getframe())
    if entry is not None:
        _watch(entry)


def _entry(frame: FrameType | None) -> FrameType | None:
    """Return the outermost frame before the worker's own loop: when it is left, the worker goes on."""
    in_pool = threading.current_thread().name.startswith(STEP_THREAD)
    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_flags & inspect.CO_COROUTINE or (in_pool and code is thread._WorkItem.run.__code__):
            found = frame
        frame = frame.f_back
    return found


def _watch(entry: FrameType) -> None:
    """End the process when this frame returns or yields, or an exception leaves it."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:  # Python 3.11
        sys.setprofile(lambda frame, event, _: _end() if frame is entry and event == "return" else None)
        return
    left: CodeType = entry.f_code
    tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
    monitoring.use_tool_id(tool, "quire.forks")
    events = monitoring.events
    for event in (events.PY_RETURN, events.PY_YIELD, events.PY_UNWIND):
        monitoring.register_callback(tool, event, lambda code, *_: _end() if code is left else None)
    monitoring.set_local_events(tool, left, events.PY_RETURN | events.PY_YIELD)
    monitoring.set_events(tool, events.PY_UNWIND)
