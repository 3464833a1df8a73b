"""Workflows whose effect is prepared, and a worker process for them that kills itself at a point of the effect."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from quire import Act, Fail, NotDone, Prepare, Run, Workflow, aopen, effect, workflow

#: Where the worker may die.
POINTS = ("check", "reserve", "reserved", "act", "sent", "undo", "undone")


class Office:
    def __init__(self, folder: Path, die_at: str = "") -> None:
        self.folder = folder
        self.die_at = die_at

    def at(self, point: str) -> None:
        if point == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def there(self, kind: str) -> list[str]:
        return sorted(path.stem for path in self.folder.glob(f"*.{kind}"))


def check(act: Act[Office]) -> None:
    act.deps.at("check")


def reserve(act: Act[Office]) -> str:
    office = act.deps
    office.at("reserve")
    name = f"{len(office.there('draft')) + len(office.there('sent'))}"
    (office.folder / f"{name}.draft").touch()
    office.at("reserved")
    return name


def was_sent(act: Act[Office]) -> str | NotDone:
    return act.prepared if act.prepared in act.deps.there("sent") else NotDone()


def take_back(act: Act[Office], value: str) -> None:
    act.deps.at("undo")
    (act.deps.folder / f"{act.prepared}.back").touch()
    act.deps.at("undone")


@effect(prepare=Prepare(check, reserve), probe=was_sent, undo=take_back, timeout="1s", settle="0s")
def send(act: Act[Office]) -> str:
    act.deps.at("act")
    path = act.deps.folder / f"{act.prepared}.draft"
    path.rename(path.with_suffix(".sent"))
    act.deps.at("sent")
    return str(act.prepared)


@workflow
async def letter(run: Run[dict[str, Any], Office]) -> str:
    return await run.once(send)


@workflow(on_failure="undo")
async def letter_in_vain(run: Run[dict[str, Any], Office]) -> None:
    await run.once(send)
    raise Fail("after all")


FLOWS: list[Workflow[Any, Any, Any]] = [letter, letter_in_vain]


async def main(ledger: str, folder: str, die_at: str) -> None:
    async with aopen(ledger, workflows=FLOWS, deps=Office(Path(folder), die_at)) as client:
        await client.work()
