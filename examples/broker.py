"""Twenty heavy tasks, five at a time over all workers, and one sorted manifest.

quire up examples/broker.py
quire start manifest tasks=20 --follow
"""

from __future__ import annotations

import asyncio
from typing import Any

from quire import Run, workflow


async def heavy(number: int, seconds: float) -> str:
    """Stands for a call that takes its time."""
    await asyncio.sleep(seconds)
    return f"token-{number:02}"


@workflow(cap=5)
async def task(run: Run[dict[str, Any]]) -> dict[str, Any]:
    token = await run.call(heavy, run.data["number"], run.data["seconds"])
    return {"number": run.data["number"], "token": token}


@workflow
async def manifest(run: Run[dict[str, Any]]) -> list[dict[str, Any]]:
    seconds = float(run.data.get("seconds", 1.2))
    items = [{"number": number, "seconds": seconds} for number in range(int(run.data["tasks"]))]
    return await run.map(task, items)  # in the order of the items, whatever the order of their ends
