"""Runs seeds of real processes from outside: in a process of their own, bounded in time, with nothing left behind."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

from tests.simulation.check import Violation
from tests.simulation.outcome import Outcome
from tests.simulation.real.broken import BREAKAGE

#: The stores, and the pace of a plan on each: on PostgreSQL all is shorter, the clock of Sheets runs faster.
PACES = {"postgres": "0.1", "sheets": "1", "restored": "1"}
#: A seed that takes longer hangs.
MOST_SECONDS = 300.0
#: What real processes write lies in memory, where there is such a place. The variable names their folder.
MEMORY = Path("/dev/shm")
FOLDER = "QUIRE_SIMULATION_FOLDER"
#: Histories that show a violation are kept here, with what the workers wrote.
KEPT = Path(__file__).parents[3] / "build" / "simulation"


def kept_at(store: str) -> Path:
    return KEPT / store


def outcomes(
    seeds: range, store: str, folder: Path | None = None, breakage: str = ""
) -> Generator[Outcome, None, None]:
    """What these seeds come to, in their order; on an engine that is broken so."""
    following = seeds.start
    while following < seeds.stop:
        for outcome in _lot(range(following, seeds.stop), store, folder or kept_at(store), breakage):
            yield outcome
            following = outcome.seed + 1


def _lot(seeds: range, store: str, folder: Path, breakage: str) -> Iterator[Outcome]:
    """The outcomes of one process, which may hang or die; then that is what the seed came to."""
    following = seeds.start
    for line in _said(_command("run", store, seeds.start, seeds.stop, folder), store, breakage):
        if line is None:
            break
        yield _outcome(line)
        following += 1
    if following < seeds.stop:
        problem = f"the seed did not end within {MOST_SECONDS:g} s, or its driver failed"
        yield Outcome(following, [Violation("hangs", problem)], 0, 0, 0, 0)


def story(seed: int, store: str) -> str:
    """The story of the history that was kept of a seed; if there is none, the seed is run now."""
    path = kept_at(store) / f"{seed}.json"
    if not path.exists():
        for _ in _said(_command("keep", store, seed, seed + 1, path.parent), store):
            pass
    text = "".join(line or "" for line in _said(_command("tell", store, seed, seed + 1, path.parent), store))
    return f"{text}\nAnother run of this seed is another story. The history of this one is in {path}.\n"


def _command(do: str, store: str, first: int, end: int, folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.simulation.real", do, store, str(first), str(end), str(folder)]


def _outcome(line: str) -> Outcome:
    seed, violations, *counts = json.loads(line)
    return Outcome(seed, [Violation(*violation) for violation in violations], *counts)


def _said(command: list[str], store: str, breakage: str = "") -> Iterator[str | None]:
    """The lines that a process says; None: it says nothing for too long. It ends with all that it has started."""
    folder = tempfile.mkdtemp(prefix="seeds-", dir=MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None)
    env = {**os.environ, "QUIRE_SIMULATION_PACE": PACES[store], BREAKAGE: breakage, FOLDER: folder}
    pipe = subprocess.PIPE  # when its input closes, the process ends
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, start_new_session=True)
    assert process.stdin is not None and process.stdout is not None
    rest = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while selector.select(MOST_SECONDS):
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                yield from (line.decode() + "\n" for line in lines)
        yield None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()
        process.stdout.close()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
