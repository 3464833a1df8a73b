"""One process of a race or of a kill: it keeps the panel of a book and works, until it is killed or a file says stop.

``python -m tests.panel.racer '{"url": …, "ledger": …, "folder": …}'``. ``die_at`` kills it (SIGKILL) before or after
one of its writes into the sheet. Without ``lease`` it believes that it alone keeps the panel, whoever else does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from quire import Fail, Run, Table, workflow
from quire.client.client import Client
from quire.errors import QuireError
from quire.surfaces.panel import Panel


class Order(BaseModel):
    client: str
    amount: int
    confirmation: str | None = None


def flow(runs: Path) -> Any:
    """The workflow; each execution of its step adds a line to the file ``runs``."""

    @workflow(name="process", on=[Table("Orders", status="Task_Status", id="Order No", write_back=["confirmation"])])
    async def process(run: Run[Order]) -> None:
        if run.data.client.startswith("asks"):
            await run.ask("Go on?", choices=["approve", "reject"])
        with open(runs, "a", encoding="utf-8") as file:  # noqa: ASYNC230 - a line
            file.write(f"{run.data.client} {run.record_id} {os.getpid()}\n")
        if run.data.client.startswith("broken"):
            raise Fail("it is broken")
        run.data.confirmation = f"C-{run.data.client}-{run.data.amount}"

    return process


def _mortal(panel: Panel, nth: int, when: str) -> None:
    """Let the process be killed before or after its nth write."""
    write, count = panel.book.write, 0

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == nth and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await write(*args, **kwargs)
        if count == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    panel.book.write = guarded  # type: ignore[method-assign]


async def _always() -> bool:
    return True


async def main(
    url: str, ledger: str, folder: str, *, lease: bool = True, die_at: tuple[int, str] | None = None
) -> None:
    place = Path(folder)
    async with Client(ledger, workflows=[flow(place / "runs")], who="racer") as client, Panel(client, url) as panel:
        if not lease:
            panel.lease.held = _always  # type: ignore[method-assign]
        if die_at is not None:
            _mortal(panel, *die_at)
        (place / f"ready-{os.getpid()}").touch()
        while not (place / "stop").exists():
            with suppress(QuireError):
                drew = await panel.look(at_once=True)
                await client.work()
                await asyncio.sleep(0.0 if drew else 0.5)  # noqa: TID251 - a process of its own
        await panel.lease.release()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))
