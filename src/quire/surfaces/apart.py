"""A process in which suspects run alone: see ``quire.worker.apart``; ``quire.client.spawning`` says how it starts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quire.client.client import Client

#: The kernel ends a process with this much on its account before others, when memory runs out.
_OOM_SCORE = 500


@asynccontextmanager
async def _client(setup: Mapping[str, Any]) -> AsyncIterator[Client]:
    if "files" in setup:
        from quire.surfaces.cli.command import Session
        from quire.surfaces.cli.run.up import start_logging, working_client

        session = Session(flags=dict(setup["flags"]), file=setup["file"])
        start_logging(session)
        async with working_client(session, setup["files"]) as client:
            yield client
    else:
        from quire.client.client import Client

        found = [getattr(import_module(module), name) for module, name in setup["places"]]
        async with Client(setup["ledger"], workflows=found, who=setup["who"], public_url=setup["public_url"]) as client:
            yield client


async def _work(setup: Mapping[str, Any], lines: Any, tell: Callable[[str], None]) -> None:
    from quire.worker.lone import Lone

    async with _client(setup) as client:
        worker = client.made_worker(Lone, tell=tell, lease=setup["lease"], label=setup["label"])
        worker.grace = setup["grace"]
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, worker.end_now)
        threading.Thread(target=_listen, args=(lines, loop, worker), daemon=True).start()
        await worker.run()


def _listen(lines: Any, loop: asyncio.AbstractEventLoop, worker: Any) -> None:
    """Hand on what the parent says. When it says nothing more, this process ends, whatever its event loop does."""
    with suppress(RuntimeError):  # the loop has ended
        for line in lines:
            loop.call_soon_threadsafe(worker.hand, json.loads(line))
        loop.call_soon_threadsafe(worker.no_more)
    threading.Event().wait(worker.grace + 5.0)
    os._exit(1)


def main(reads: int, writes: int) -> None:
    """Read the setup from one pipe, say how it goes on the other one."""
    from quire.ledger import process

    for descriptor in (reads, writes):
        os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(_OOM_SCORE))
    lines = os.fdopen(reads, encoding="utf-8")
    setup = json.loads(lines.readline())
    sys.path[:] = setup["path"]

    def tell(word: str) -> None:
        with suppress(OSError):  # the parent has ended
            os.write(writes, f"{word}\n".encode())

    code = 1
    try:
        process.run(_work(setup, lines, tell))
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if code == 0:
            os._exit(0)  # whatever a step left running in a thread


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
