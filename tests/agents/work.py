"""Worker processes for the tests: ``python -m tests.agents.work LEDGER BLUEPRINT``.

It loads the libraries once and forks, so that a worker costs next to nothing. A number on a line starts as many
workers, each of which takes one record at a time and works until it is killed; ``kill`` kills all of them, and is
answered when they are gone. At the end of the input nothing is left.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

# Before the fork: this takes longer than all else together.
import pydantic_ai.models.openai  # noqa: F401

import quire
import quire.agents.cast
import quire.agents.receipts
import quire.ledger.sqlite.ledger
from quire.agents import mission


async def work(url: str, path: str) -> None:
    flow = mission(path)
    async with quire.aopen(url, workflows=[flow]) as client:
        await client.work(forever=True, concurrency=1)


def forked(url: str, path: str) -> int:
    if child := os.fork():
        return child
    try:
        asyncio.run(work(url, path))
    finally:
        os._exit(1)


def kill(workers: list[int]) -> None:
    """A worker that nobody has taken leave of still counts as alive, so each is waited for."""
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    for worker in workers:
        os.waitpid(worker, 0)
    workers.clear()


def main(url: str, path: str) -> None:
    workers: list[int] = []
    try:
        for line in sys.stdin:
            if line.strip() == "kill":
                kill(workers)
            else:
                workers += [forked(url, path) for _ in range(int(line))]
            sys.stdout.write(" ".join(map(str, workers)) + "\n")
            sys.stdout.flush()
    finally:
        kill(workers)


if __name__ == "__main__":
    main(*sys.argv[1:3])
