"""A profile of every thread of this process, by module: where the time of a workload goes.

Only the standard library. Time in a function written in C belongs to the module that calls it, but for a few that
wait or that are the store: those keep their own names, with a tilde before.
"""

from __future__ import annotations

import cProfile
import os
import sysconfig
import threading
import time
from collections import defaultdict
from typing import Any

#: Beginnings of the names of functions in C that are told apart.
APART = {
    "<method 'poll' of 'select.": "~waiting",
    "<built-in method select.": "~waiting",
    "<method 'acquire' of '_thread.": "~waiting",
    "<method 'get' of '_queue.": "~waiting",
    "<method 'execute' of 'sqlite3.": "~sqlite",
    "<method 'executemany' of 'sqlite3.": "~sqlite",
    "<method 'fetch": "~sqlite",
    "<method 'commit' of 'sqlite3.": "~sqlite",
    "<method 'send' of '_socket.": "~socket",
    "<method 'recv' of '_socket.": "~socket",
    "<method 'recv_into' of '_socket.": "~socket",
}
_LIBRARY = sysconfig.get_paths()["stdlib"]


class Profiler:
    """Made before the store is opened, so that the threads of the store are seen as well."""

    def __init__(self) -> None:
        self._profiles: list[tuple[str, cProfile.Profile]] = []
        threading.setprofile(self._in_new_thread)
        self._enable()
        self._before = self._reading()

    def _in_new_thread(self, frame: Any, event: str, argument: Any) -> None:
        self._enable()  # takes this hook's place in the thread

    def _enable(self) -> None:
        profile = cProfile.Profile()
        self._profiles.append((threading.current_thread().name, profile))
        profile.enable()

    def close(self) -> None:
        """No thread that begins later is profiled, nor is this one any more."""
        threading.setprofile(None)
        for _, profile in self._profiles[:1]:
            profile.disable()

    def start(self) -> None:
        self._before = self._reading()

    def modules(self) -> dict[str, dict[str, float]]:
        """Thread -> module -> seconds since ``start``, without the calls that it makes."""
        found: dict[str, dict[str, float]] = {}
        for thread, modules in self._reading().items():
            before = self._before.get(thread, {})
            spent = {name: seconds - before.get(name, 0.0) for name, seconds in modules.items()}
            found[thread] = {name: round(seconds, 5) for name, seconds in spent.items() if seconds > 1e-4}
        return {thread: modules for thread, modules in found.items() if modules}

    def _reading(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for thread, profile in list(self._profiles):
            spent = found.setdefault(thread, defaultdict(float))
            for entry in profile.getstats():
                if isinstance(entry.code, str) or entry.code.co_filename == __file__:
                    continue  # the profiler's own work is none of the workload's
                here = module_of(entry.code.co_filename)
                spent[here] += entry.inlinetime
                for call in entry.calls or ():
                    if isinstance(call.code, str):
                        spent[apart(call.code) or here] += call.inlinetime
        return found


class Profiled:
    """Calls of an adapter whose workloads can be profiled."""

    def profiling(self) -> dict[str, Any]:
        """From now on, every thread that begins is profiled; called before ``setup``."""
        self.profiler = Profiler()
        return {}

    async def profile(self, workload: str, **sizes: Any) -> dict[str, Any]:
        """The same call under the profiler."""
        self.profiler.start()
        begin, cpu = time.perf_counter(), time.thread_time()
        await getattr(self, workload)(**sizes)
        seconds, cpu = time.perf_counter() - begin, time.thread_time() - cpu
        return {"seconds": seconds, "loop_cpu": cpu, "threads": self.profiler.modules()}


def apart(name: str) -> str:
    return next((group for start, group in APART.items() if name.startswith(start)), "")


def module_of(path: str) -> str:
    """quire/worker/worker.py, asyncio, the name of a package or of a module of the standard library."""
    if path.startswith("<"):
        return "generated"  # of named tuples and dataclasses
    if os.path.dirname(path) == os.path.dirname(__file__):
        return "bench"
    for root in ("/site-packages/", "/src/"):
        _, found, inside = path.rpartition(root)
        if found:
            return inside if inside.startswith("quire/") else inside.partition("/")[0].removesuffix(".py")
    if path.startswith(_LIBRARY):
        return os.path.relpath(path, _LIBRARY).partition("/")[0].removesuffix(".py")
    return "other"
