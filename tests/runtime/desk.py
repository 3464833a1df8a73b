"""A workflow with effects on a file, and a worker process for it: what the crash tests run and kill.

``python -m tests.runtime.desk LEDGER SINK [--stop-at N [--after]] [--concurrency N] [--lease S] [--forever]``
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from quire import Act, NotDone, Retry, Run, Workflow, aopen, effect, workflow
from quire.clock import SYSTEM
from quire.ledger.base import Ledger
from quire.ledger.finding import open_ledger
from quire.testing.faults import PassingLedger

STEPS = 5


class Sink:
    """A target that keeps what was done to it: one line per act, appended in one write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, key: str, text: str) -> None:
        with open(self.path, "ab", buffering=0) as file:
            file.write(f"{key} {text}\n".encode())

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


async def find(act: Act[Sink], text: str) -> str | NotDone:
    return text if any(line.startswith(f"{act.key} ") for line in act.deps.lines()) else NotDone()


@effect(probe=find, timeout="2s", settle="0s")
async def put(act: Act[Sink], text: str) -> str:
    act.deps.put(act.key, text)
    return text


@effect(timeout="1s", settle="0s")
async def put_blindly(act: Act[Sink], text: str) -> str:
    act.deps.put(act.key, text)
    return text


desk = Workflow("desk", deps=Sink, retry=Retry(20, first="50ms", most="200ms"))


def _declare(number: int) -> None:
    async def step(run: Run[dict[str, Any], Sink]) -> Any:
        run.data["done"] = [*run.data.get("done", []), await run.once(put, f"{run.record_id}/{number}")]
        return run.data["done"] if number == STEPS - 1 else None

    step.__name__ = f"step{number}"
    if number < STEPS - 1:
        desk.step(then=f"step{number + 1}")(step)
    else:
        desk.step(step)


for _number in range(STEPS):
    _declare(_number)


@workflow
async def one_act(run: Run[dict[str, Any], Sink]) -> str:
    return await run.once(put, run.record_id)


@workflow
async def one_blind_act(run: Run[dict[str, Any], Sink]) -> str:
    return await run.once(put_blindly, run.record_id)


async def work_a_little(seconds: float) -> float:
    await asyncio.sleep(seconds)  # noqa: TID251 - the work itself
    return seconds


@workflow(cap=10)
async def labour(run: Run[dict[str, Any], Sink]) -> float:
    """Two seconds of work in twenty pieces."""
    return sum([await run.call(work_a_little, 0.1) for _ in range(20)])


async def until_there(path: str) -> str:
    while not Path(path).exists():  # noqa: ASYNC240 - a look, and the others go on
        await SYSTEM.sleep(0.02)
    return path


@workflow
async def patience(run: Run[dict[str, Any], Sink]) -> str:
    """Works until a file is there."""
    return await run.call(until_there, run.data["path"])


WORKFLOWS = [desk, one_act, one_blind_act, labour, patience]


class StoppingLedger(PassingLedger):
    """Stops its own process (SIGSTOP) around the nth commit: before it is sent, or when its answer is there."""

    def __init__(self, ledger: Ledger, nth: int, after: bool) -> None:
        super().__init__(ledger)
        self.nth = nth
        self.after = after
        self.count = 0

    async def _pass(self, verb: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if verb != "commit":
            return await call()
        self.count += 1
        if self.count == self.nth and not self.after:
            self._stop()
        answer = await call()
        if self.count == self.nth and self.after:
            self._stop()
        return answer

    def _stop(self) -> None:
        """Not within a transaction: a process that is frozen in one keeps everybody from writing to a SQLite file."""
        for thread in getattr(self.ledger, "_threads", {}).values():
            thread.submit(lambda: None).result()
        os.kill(os.getpid(), signal.SIGSTOP)


async def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger")
    parser.add_argument("sink", type=Path)
    parser.add_argument("--stop-at", type=int, default=0)
    parser.add_argument("--after", action="store_true")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--lease", default="2s")
    parser.add_argument("--forever", action="store_true")
    options = parser.parse_args(arguments)
    ledger = open_ledger(options.ledger)
    if options.stop_at:
        ledger = StoppingLedger(ledger, options.stop_at, options.after)
    async with aopen(ledger, workflows=WORKFLOWS, deps=Sink(options.sink)) as client:
        print("ready", flush=True)  # noqa: T201 - the test waits for it
        await client.work(forever=options.forever, concurrency=options.concurrency, lease=options.lease)


if __name__ == "__main__":
    from tests.runtime.desk import main as by_name  # its functions have the names that they have elsewhere

    asyncio.run(by_name(sys.argv[1:]))
