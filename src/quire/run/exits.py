"""What a step's code may do to its process: `sys.exit`, Ctrl-C, a closed coroutine.

The code of a step runs in a task or a thread of the worker. If it calls ``sys.exit`` there, Python would end the whole
worker. These functions turn that into an error of the step, like any other. They let through what comes from outside:
a Ctrl-C, and the end of the process.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from quire.errors import in_words

T = TypeVar("T")


class Suspended(BaseException):
    """Unwinds a plain ``def`` step that waits for something. Not an Exception: user code shall not catch it."""


class Exited(Exception):
    """The step's code called ``sys.exit``, or raised what Python itself raises to end a process or a coroutine."""


async def contained(work: Awaitable[T]) -> T:
    """Await this, but turn ``sys.exit`` into an error: in a task of its own it would end the whole process."""
    task = asyncio.current_task()
    try:
        return await work
    except SystemExit as error:
        raise Exited(f"sys.exit({error.code!r}) was called").with_traceback(error.__traceback__) from error
    except (KeyboardInterrupt, GeneratorExit) as error:
        if from_outside(error, task):
            raise
        raise Exited(f"{in_words(error)} was raised").with_traceback(error.__traceback__) from error


def contained_in_thread(fn: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call this in a thread. A GeneratorExit becomes an error: it would close the coroutine that waits there."""
    try:
        return fn(*args, **kwargs)
    except GeneratorExit as error:
        raise Exited(f"{in_words(error)} was raised").with_traceback(error.__traceback__) from error


def from_outside(error: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """Return whether Ctrl-C raised this, or Python did as it closed the coroutine; and not the code of a step.

    ``task``: the task in which the step runs. A coroutine that is closed is not resumed by its task.
    """
    if isinstance(error, GeneratorExit):
        return task is None or _current_task() is not task
    if threading.current_thread() is not threading.main_thread():
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    by_runner = last is not None and last.tb_frame.f_code.co_name == "_on_sigint"  # a second Ctrl-C under asyncio.run
    return by_runner or signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs any more
        return None
