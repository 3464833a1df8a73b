"""This process as others see it: who it is, whether another one is known to be dead, who goes first; and its loop."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from quire.clock import boot_id
from quire.model.side import Worker

T = TypeVar("T")


@lru_cache(maxsize=1)
def host() -> str:
    """The machine, and the space in it in which process ids mean something."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def started(pid: int) -> int | None:
    """Return when the process started, in ticks since boot; None: there is no such process, or nobody can tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] == "Z" else int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def identity() -> str:
    """Return a boot of this machine, and this process in it: a reused process id is another identity."""
    return f"{boot_id()} {started(os.getpid())}"


def known_dead(worker: Worker) -> bool:
    """The worker's process has surely ended: it was on this very machine and boot, and is not there any more."""
    boot, _, start = worker.boot_id.rpartition(" ")
    if worker.host != host() or boot != boot_id() or start == "None" or not os.path.isdir("/proc/self"):
        return False
    return str(started(worker.pid)) != start


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like ``asyncio.run``, for what runs long: on the faster event loop, where it is installed."""
    make: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        from uvloop import new_event_loop as make
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(work)


#: A process that gives way is so nice: of a processor that two want, it has a quarter.
NICENESS = 5


@contextmanager
def giving_way() -> Iterator[None]:
    """This process only works: whoever answers people on the same machine has the processor first.

    One that was started with a niceness of its own keeps it. Batch processes are known to Linux only.
    """
    usual = hasattr(os, "getpriority") and os.getpriority(os.PRIO_PROCESS, 0) == 0
    batch = usual and hasattr(os, "SCHED_BATCH") and os.sched_getscheduler(0) == os.SCHED_OTHER
    try:
        if usual:
            _go(NICENESS, os.SCHED_BATCH if batch else None)
        yield
    finally:
        if usual:
            _go(0, os.SCHED_OTHER if batch else None)


def _go(niceness: int, policy: int | None) -> None:
    """Where one of them is forbidden (to be less nice needs a right), it stays as it was."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    if policy is not None:
        with suppress(OSError):
            os.sched_setscheduler(0, policy, os.sched_param(0))


#: Python's own setting looks for cycles after every 700 new objects: after every few records.
_USUAL = (700, 10, 10)
_RARE = (50_000, 10, 10)


@contextmanager
def tidying_rarely() -> Iterator[None]:
    """Look for reference cycles less often, which is a tenth of a busy worker's time. Settings of one's own stay.

    What is there already, all imported modules above all, is left out: passing over it takes a server 70 ms, in which
    nobody gets an answer.
    """
    usual = gc.get_threshold() == _USUAL
    if usual:
        gc.set_threshold(*_RARE)
    leaves_out = usual and not gc.get_freeze_count()
    if leaves_out:
        gc.freeze()
    try:
        yield
    finally:
        if usual:
            gc.set_threshold(*_USUAL)
        if leaves_out:
            gc.unfreeze()
