"""The peer's side of the harness: calls come in as JSON lines on stdin, answers go out as JSON lines on stdout.

This module runs inside every peer's own virtualenv, so it uses the standard library only. A peer subclasses
``Adapter`` and defines the calls that it can do; a call that is not defined is reported as "not offered", with the
reason from ``missing``. What a workload means, and what it returns, is said once, in ``Adapter``.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import inspect
import json
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TextIO

Answer = dict[str, Any]


class Adapter:
    """One peer on one store. Every call may be a plain function or a coroutine function.

    setup(url, directory)            open the store; return the settings that matter, for the record
    w1(n)                            n, enqueue_seconds, drain_seconds: start n records with no worker, then drain
    w2(records, steps)               steps, seconds: from the first start to the last completion
    w3(n, pause)                     latencies_ms: start one record, wait for its result, n times, with pauses
    w4(children)                     children, seconds: one parent, that many children, one reduce
    w5(n, seconds, cap)              seconds: n records that sleep, never more than ``cap`` at once
    fill(n)                          filled: the store holds n finished records (W6 then calls w1)
    idle() / poke() / woken()        start a worker / start one record, ``at`` / ``at`` of each run so far (W7)
    crash(...) / resume(...)         begin work and be killed / finish it in a new process (W8)
    enqueue(n) / work() / drained(n) W9: one client, several worker processes
    labour(seconds)                  from now on every body uses the processor for so long
    w10(turns, turn_bytes)           bytes: growth of the store by one transcript of that many turns
    w11(transitions)                 samples: [transitions so far, resident kB, objects], by default through w2
    profiling() / profile(...)       before ``setup`` / seconds, loop_cpu, threads: the call under a profiler
    """

    #: Workload -> why this peer cannot do it.
    missing: ClassVar[dict[str, str]] = {}
    #: A faster event loop, for a peer that is meant to run on one.
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    #: Records and steps of one round of W11.
    round: tuple[int, int] = (50, 10)

    def close(self) -> Any:
        """Stop what runs in the background. The harness kills the process group afterwards anyway."""

    def labour(self, seconds: float) -> Answer:
        Tally.labour = seconds
        return {}

    def w11(self, transitions: int) -> Any:
        if inspect.iscoroutinefunction(getattr(self, "w2", None)):
            return self._w11_async(transitions)
        samples = [sample(0)]
        while samples[-1][0] < transitions:
            answer = self.w2(*self.round)  # type: ignore[attr-defined]
            samples.append(sample(samples[-1][0] + answer["steps"]))
        return {"samples": thin(samples)}

    async def _w11_async(self, transitions: int) -> Answer:
        samples = [sample(0)]
        while samples[-1][0] < transitions:
            answer = await self.w2(*self.round)  # type: ignore[attr-defined]
            samples.append(sample(samples[-1][0] + answer["steps"]))
        return {"samples": thin(samples)}


def rests(n: int, pause: float) -> list[float]:
    """The pauses before n records of W3: by lot, up to half as long again, and the same ones for every peer.

    Pauses of one length keep step with a peer that looks every 10 ms: a record then always comes just before a look.
    """
    lot = random.Random(n)
    return [pause * (1 + lot.random() / 2) for _ in range(n)]


class Tally:
    """Counts the runs of a step body, so that a workload can prove that all of its work was done, and no more."""

    #: So long a body uses the processor, in seconds; of all that this process counts.
    labour: ClassVar[float] = 0.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._full = threading.Event()
        self._tell: Callable[[], object] | None = None
        self.target = 0
        self.count = 0
        self.times: list[float] = []

    def expect(self, target: int) -> None:
        with self._lock:
            self.target, self.count = target, 0
            self.times.clear()
            self._full.clear()
            self._tell = None

    def hit(self) -> None:
        if self.labour:
            end = time.thread_time() + self.labour
            while time.thread_time() < end:
                pass
        with self._lock:
            self.count += 1
            if len(self.times) < 1000:
                self.times.append(time.monotonic())
            if self.count == self.target:
                self._full.set()
                if self._tell is not None:
                    self._tell()

    def wait(self, timeout: float = 3600.0) -> None:
        if not self._full.wait(timeout):
            raise TimeoutError(f"{self.count} of {self.target} bodies ran in {timeout:g} s")

    async def wait_async(self, timeout: float = 3600.0) -> None:
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            if self._full.is_set():
                return
            self._tell = lambda: loop.call_soon_threadsafe(told.set)
        try:
            await asyncio.wait_for(told.wait(), timeout)
        except TimeoutError:
            raise TimeoutError(f"{self.count} of {self.target} bodies ran in {timeout:g} s") from None

    def check(self) -> None:
        if self.count != self.target:
            raise AssertionError(f"{self.count} bodies ran, {self.target} expected")


class Filler:
    """Keeps count of the copies for W6: later calls copy the same rows as the first one."""

    def __init__(self) -> None:
        self.originals = 0
        self.copies = 0

    def span(self, n: int, present: int) -> tuple[int, int]:
        """First and last number of the copies that bring the store to n finished records."""
        if not self.originals:
            self.originals = present
        first, self.copies = self.copies + 1, n // self.originals - 1
        return first, self.copies


class Journal:
    """Where the steps of W8 write that they ran; it outlives the process that is killed."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def act(self, record: object, step: object) -> None:
        os.write(self._file, f"{record} {step}\n".encode())


@contextmanager
def stopwatch() -> Iterator[Callable[[], float]]:
    begin = time.perf_counter()
    yield lambda: time.perf_counter() - begin


async def poll_until_async(condition: Callable[[], Any], *, every: float = 0.005, timeout: float = 3600.0) -> None:
    deadline = time.monotonic() + timeout
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the store does not show the work as finished")
        await asyncio.sleep(every)


def poll_until(condition: Callable[[], bool], *, every: float = 0.005, timeout: float = 3600.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the store does not show the work as finished")
        time.sleep(every)


def expect_equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def text_of(size: int, seed: int) -> str:
    """Text that hardly compresses, the same for every peer."""
    return base64.b64encode(random.Random(seed).randbytes(size * 3 // 4 + 3)).decode()[:size]


def clone_rows(
    table: str, new: dict[str, str], copied: list[str], where: str, first: int, last: int, source: str = ""
) -> str:
    """SQL that copies the chosen rows of ``table``, or of ``source``, once for each number i from first to last.

    ``new`` gives the expressions of the columns that must differ (``copy.i`` is the number); a column that is in
    neither ``new`` nor ``copied`` takes its default.
    """
    columns = ", ".join(f'"{name}"' for name in [*new, *copied])
    cells = ", ".join([*new.values(), *(f'"{name}"' for name in copied)])
    return (
        f"WITH RECURSIVE copy(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM copy WHERE i < {last}) "
        f"INSERT INTO {table} ({columns}) SELECT {cells} FROM {source or table} CROSS JOIN copy WHERE {where}"
    )


def resident_kb() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def sample(transitions: int) -> list[int]:
    """Resident kilobytes, and the objects that Python's collector knows: what grows in the one may be a cache in C."""
    gc.collect()
    return [transitions, resident_kb(), len(gc.get_objects())]


def thin(samples: list[list[int]], most: int = 200) -> list[list[int]]:
    stride = max(1, len(samples) // most)
    kept = samples[::stride]
    return kept if kept[-1] == samples[-1] else [*kept, samples[-1]]


def sqlite_bytes(path: str) -> int:
    return sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))


def versions(*names: str) -> dict[str, str]:
    import sqlite3
    from importlib.metadata import version

    found = {name: version(name) for name in names}
    return {**found, "python": sys.version.split()[0], "sqlite": sqlite3.sqlite_version}


def serve(adapter: Adapter) -> None:
    """Answer calls until stdin closes. Whatever a library prints goes to stderr, never between the answers."""
    out = _claim_stdout()
    uses_asyncio = any(
        inspect.iscoroutinefunction(getattr(adapter, name, None)) for name in ("setup", "w1", "w2", "w3", "idle")
    )
    if uses_asyncio:
        with asyncio.Runner(loop_factory=adapter.loop_factory) as runner:
            runner.run(_answer_all(adapter, out))
        return
    for line in sys.stdin:
        _say(out, _guard(lambda line=line: _dispatch(adapter, line)))  # type: ignore[misc]
    adapter.close()


def _claim_stdout() -> TextIO:
    private = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return private


def _say(out: TextIO, answer: Answer) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


def _dispatch(adapter: Adapter, line: str) -> Any:
    request = json.loads(line)
    name = request.pop("call")
    method = getattr(adapter, name, None)
    if method is None:
        raise NotImplementedError(adapter.missing.get(name, "the peer has no equal of this"))
    return method(**request)


def _guard(work: Callable[[], Any]) -> Answer:
    try:
        return {"ok": True, **(work() or {})}
    except NotImplementedError as error:
        return {"ok": False, "offered": False, "error": str(error)}
    except Exception as error:  # noqa: BLE001 - a peer may raise anything; it becomes the answer
        traceback.print_exc()
        return {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}


async def _answer_all(adapter: Adapter, out: TextIO) -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            result = _dispatch(adapter, line)
            if inspect.isawaitable(result):
                result = await result
            answer = {"ok": True, **(result or {})}
        except NotImplementedError as error:
            answer = {"ok": False, "offered": False, "error": str(error)}
        except Exception as error:  # noqa: BLE001 - a peer may raise anything; it becomes the answer
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"[:2000]}
        _say(out, answer)
    closing = adapter.close()
    if inspect.isawaitable(closing):
        await closing
