"""Runs seeds on one store, one after the other, in a process that ends with all that it has started."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.simulation.check import Violation, check
from tests.simulation.history import History
from tests.simulation.outcome import Outcome
from tests.simulation.plan import Fault, Plan
from tests.simulation.real import restored
from tests.simulation.real.broken import broken_as_asked
from tests.simulation.real.keeping import keep, kept
from tests.simulation.real.machine import CONTEXT
from tests.simulation.real.plans import plan_of
from tests.simulation.real.postgres import Postgres
from tests.simulation.real.seeds import FOLDER, MEMORY
from tests.simulation.real.sheets import Sheets
from tests.simulation.real.stores import Store
from tests.simulation.real.system import System
from tests.simulation.story import story


class RestoredSheets(Sheets):
    """A book that somebody restores to an earlier version."""

    def faults(self, dice: random.Random, plan: Plan) -> list[Fault]:
        return []


STORES: dict[str, Callable[[], Store]] = {"postgres": Postgres, "sheets": Sheets, "restored": RestoredSheets}


async def history_of(seed: int, store: Store, folder: Path) -> History:
    if isinstance(store, RestoredSheets):
        return await restored.history_of(plan_of(seed, store), store, folder)
    await store.begin(seed)
    try:
        return await System(plan_of(seed, store), store, folder).run()
    finally:
        await store.end()


def checked(plan: Plan, store: Store, history: History) -> list[Violation]:
    return restored.check(plan, history) if isinstance(store, RestoredSheets) else check(plan, history)


def outcome_of(seed: int, store: Store, folder_kept: Path, *, keeps_all: bool) -> Outcome:
    """Run one seed. What it leaves behind is kept if it shows a violation."""
    folder = Path(tempfile.mkdtemp(prefix=f"{seed}-", dir=os.environ.get(FOLDER)))
    try:
        history = asyncio.run(history_of(seed, store, folder))
        outcome = Outcome.of(seed, history, checked(plan_of(seed, store), store, history))
        if outcome.violations or keeps_all:
            keep(history, folder_kept / f"{seed}.json")
            for log in folder.glob("*.log"):
                shutil.copy(log, folder_kept / f"{seed}-{log.name}")
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def told(seed: int, name: str, folder: Path) -> str:
    """Tell the history of a seed that was kept."""
    history, plan = kept(folder / f"{seed}.json"), plan_of(seed, STORES[name]())
    return story(plan, history, checked(plan, STORES[name](), history))


def _end_with_whoever_started_this() -> None:
    """Wait for the end of the pipe; then end the whole group, which is this process and all that it has started."""
    sys.stdin.read()
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)


def main(name: str, seeds: Iterable[int], folder: Path, *, keeps_all: bool = False) -> None:
    """Write the outcome of each seed as a line of JSON. Which cells of the table it reached is not counted here."""
    threading.Thread(target=_end_with_whoever_started_this, daemon=True).start()
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK):
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None
    CONTEXT.set_forkserver_preload(["tests.simulation.real.worker", "hectograph"])
    first = CONTEXT.Process(target=int)  # from here on a process begins within moments
    first.start()
    first.join()
    with STORES[name]() as store, broken_as_asked():
        for seed in seeds:
            sys.stdout.write(json.dumps(outcome_of(seed, store, folder, keeps_all=keeps_all)[:-1]) + "\n")
            sys.stdout.flush()
