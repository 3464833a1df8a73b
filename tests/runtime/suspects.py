"""Steps that end their worker, each in its own way, and others beside them: the flow file of ``test_suspects``."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from quire import Retry, Run, SyncRun, Workflow, workflow
from quire.clock import SYSTEM

Data = dict[str, Any]


@workflow
async def innocent(run: Run[Data]) -> int:
    await SYSTEM.sleep(run.data.get("seconds", 0.0))
    return os.getpid()


@workflow
async def exits(run: Run[Data]) -> None:
    os._exit(1)


@workflow
async def blocks(run: Run[Data]) -> None:
    time.sleep(3600)  # noqa: ASYNC251, TID251 - that is its fault


@workflow(timeout="1s", retry=Retry(2, first="10ms"))
def never_ends(run: SyncRun[Data]) -> None:
    time.sleep(3600)  # noqa: TID251 - that is its fault


@workflow(retry=Retry(2, first="10ms"))
async def eats(run: Run[Data]) -> None:
    eaten = []
    while True:
        eaten.append(bytes(256 << 20))  # zeros that nobody looks at take no memory, but they count


@workflow
async def waits(run: Run[Data]) -> str:
    """Tells its process, and works until a file is there."""
    place = Path(run.data["place"])
    (place / f"{run.record_id}.{os.getpid()}").touch()
    while not (place / "word").exists():
        await SYSTEM.sleep(0.02)
    return "heard"


long: Workflow[Data, int] = Workflow("long", result=int)


@long.step(then="second")
async def first(run: Run[Data]) -> None:
    await SYSTEM.sleep(0.05)


@long.step
async def second(run: Run[Data]) -> int:
    await asyncio.sleep(0.05)  # noqa: TID251 - the work itself
    return 1
