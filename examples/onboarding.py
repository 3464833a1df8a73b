"""A client is onboarded: a folder, a welcome mail, and a thousand contacts imported in one loop.

Kill it in the middle of the loop: the next process goes on where the last save was.

quire up examples/onboarding.py
quire start onboarding client=Acme contacts=1000 --follow
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quire import Act, Run, effect, workflow


@dataclass
class World:
    """Stands for the services: what was made, sent and imported."""

    folders: dict[str, str] = field(default_factory=dict)
    mails: list[str] = field(default_factory=list)
    imported: list[int] = field(default_factory=list)


def make_deps() -> World:
    return World()


@effect(repeat=True)  # the folder's id is ours, so making it again makes no second one
async def make_folder(act: Act[World], client: str) -> str:
    return act.deps.folders.setdefault(act.key, f"folder of {client}")


@effect
async def welcome(act: Act[World], client: str) -> None:
    act.deps.mails.append(client)


async def import_contact(world: World, number: int) -> int:
    world.imported.append(number)
    return number


@workflow(deps=make_deps)
async def onboarding(run: Run[dict[str, Any], World]) -> dict[str, Any]:
    folder = await run.once(make_folder, run.data["client"])
    await run.once(welcome, run.data["client"])
    run.data["imported"] = 0
    async for number in run.each(range(int(run.data["contacts"])), every=100):
        await import_contact(run.deps, number)
        run.data["imported"] += 1
    return {"folder": folder, "imported": run.data["imported"]}
