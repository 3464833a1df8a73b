"""A worker process with effects on a file: what ``test_survive`` runs and kills.

``python -m tests.sheets.clerk LEDGER FILE``
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from quire import Act, NotDone, Retry, Run, Workflow, aopen, effect

STEPS = 3

clerk = Workflow("clerk", deps=Path, retry=Retry(20, first="50ms", most="200ms"))


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def found(act: Act[Path], text: str) -> str | NotDone:
    return text if any(line.startswith(f"{act.key} ") for line in lines(act.deps)) else NotDone()


@effect(probe=found, timeout="2s", settle="0s")
async def write(act: Act[Path], text: str) -> str:
    _append(act.deps, f"{act.key} {text}\n".encode())
    return text


def _append(file: Path, line: bytes) -> None:
    """In one write, so that whoever is killed has written it or not."""
    with open(file, "ab", buffering=0) as opened:
        opened.write(line)


def _declare(number: int) -> None:
    async def step(run: Run[dict[str, Any], Path]) -> Any:
        run.data["done"] = [*run.data.get("done", []), await run.once(write, f"{run.record_id}/{number}")]

    step.__name__ = f"step{number}"
    if number < STEPS - 1:
        clerk.step(then=f"step{number + 1}")(step)
    else:
        clerk.step(step)


for _number in range(STEPS):
    _declare(_number)


async def main(ledger: str, file: str) -> None:
    async with aopen(ledger, workflows=[clerk], deps=Path(file)) as client:
        print("ready", flush=True)  # noqa: T201 - the test waits for it
        await client.work(forever=True, lease="600s")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
