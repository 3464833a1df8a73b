"""Workflows for the tests of the folder, importable by the processes that the tests start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from quire import Act, Run, Workflow, effect
from quire.client.client import Client
from quire.clock import Clock
from quire.folder.local import LocalFolder
from quire.ledger.sqlite.ledger import SqliteLedger
from quire.testing import ToldClock

publish = Workflow("seo_publish", result=str)


@effect
async def put_online(act: Act[Any], keyword: str) -> dict[str, str]:
    return {"published_url": f"https://example.org/{keyword}", "place": "front"}


@effect
async def tell(act: Act[Any], whom: str) -> str:
    return f"told {whom}"


@effect
async def never_ends(act: Act[Any]) -> None:
    act.deps.set()
    await asyncio.get_running_loop().create_future()


def drafted(keyword: str) -> str:
    return f"About {keyword}"


@publish.step(then="review")
async def draft(run: Run[dict[str, Any]]) -> None:
    run.data["draft"] = await run.call(drafted, run.data["keyword"])


@publish.step(then=["PUBLISH", "archive"])
async def review(run: Run[dict[str, Any]]) -> str:
    answer = await run.ask(f"Publish {run.data['keyword']}?")
    return "PUBLISH" if answer else "archive"


@publish.step(then="archive")
async def PUBLISH(run: Run[dict[str, Any]]) -> None:  # noqa: N802 - a step's name as the state table knows it
    run.data["url"] = (await run.once(put_online, run.data["keyword"]))["published_url"]


@publish.step
async def archive(run: Run[dict[str, Any]]) -> str:
    return str(run.data.get("url", ""))


steps = Workflow("steps", result=int)


@steps.step(then="second")
async def first(run: Run[dict[str, Any]]) -> None:
    await run.once(tell, "ann")
    await run.once(tell.named("tell_bob"), "bob")


@steps.step
async def second(run: Run[dict[str, Any]]) -> int:
    return 2


stuck = Workflow("stuck")


@stuck.step
async def hang(run: Run[dict[str, Any]]) -> None:
    await run.once(never_ends)


broken = Workflow("broken")


@broken.step
async def fall(run: Run[dict[str, Any]]) -> None:
    raise RuntimeError("it fell; the key was sk-abcdefghijklmnopqrstuvwxyz012345")


ALL: Sequence[Workflow[Any, Any, Any]] = (publish, steps, stuck, broken)


@asynccontextmanager
async def opened(
    where: Path, clock: Clock | None = None, folder: LocalFolder | None = None
) -> AsyncIterator[tuple[Client, LocalFolder]]:
    """A client on a SQLite ledger and a folder beside it, both told the time."""
    clock = clock or ToldClock()
    folder = folder or LocalFolder(where / "folder")
    async with Client(SqliteLedger(where / "ledger.db", clock), workflows=ALL, clock=clock, who="ann") as client:
        await folder.open()
        try:
            yield client, folder
        finally:
            await folder.close()


def files(where: Path) -> dict[str, bytes]:
    """Everything in the folder that people see."""
    root = where / "folder"
    found = (path for path in root.rglob("*") if path.is_file())
    visible = (path for path in found if not any(part.startswith(".") for part in path.relative_to(root).parts))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in visible}
