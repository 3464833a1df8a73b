"""A worker process for the tests: ``python -m tests.agents.work LEDGER BLUEPRINT``. It works until it is killed."""

from __future__ import annotations

import asyncio
import sys

import quire
from quire.agents import mission


async def main(url: str, path: str) -> None:
    flow = mission(path)
    async with quire.aopen(url, workflows=[flow]) as client:
        await client.work(forever=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
