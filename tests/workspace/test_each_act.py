"""Each act alone: done once whatever write is lost, and taken back once whatever write is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from quire.model.record import Status
from quire.testing import ToldClock
from quire.workspace import drive
from tests.workspace.worlds import CLIENT, Losing, World, only, opened, played_out


@dataclass(frozen=True)
class Case:
    """One act, and what people see of it."""

    name: str
    #: The act with its arguments.
    call: Callable[[World], tuple[Any, ...]]
    seen: Callable[[World], Any]
    after: Any
    undone: Any
    options: Mapping[str, Any] = field(default_factory=dict)


def names(world: World) -> list[str]:
    return sorted(file["name"] for file in world.files(world.clients))


def roles(world: World) -> dict[str, str]:
    listed = world("GET", f"/drive/v3/files/{world.template}/permissions?fields=permissions(emailAddress,role)")
    return {one["emailAddress"]: one["role"] for one in listed["permissions"] if one["role"] != "owner"}


CASES = [
    Case("drive.folder", lambda w: (drive.folder, "Acme", w.clients), names, ["Acme"], []),
    Case("drive.file", lambda w: (drive.file, "Hello", "a.txt", w.clients), names, ["a.txt"], []),
    Case("drive.file of bytes", lambda w: (drive.file, b"\xff\x00", "a.bin", w.clients), names, ["a.bin"], []),
    Case("drive.copy", lambda w: (drive.copy, w.template, "Copy", w.clients), names, ["Copy"], []),
    Case("drive.pdf", lambda w: (drive.pdf, w.template, w.clients), names, ["Contract.pdf"], []),
    Case("drive.move", lambda w: (drive.move, w.template, w.clients), names, ["Contract"], []),
    Case("drive.share", lambda w: (drive.share, w.template, CLIENT, "editor"), roles, {CLIENT: "writer"}, {}),
    Case(
        "drive.share with a notice",
        lambda w: (drive.share, w.template, CLIENT),
        lambda w: (roles(w), len(w.left("share"))),
        ({CLIENT: "reader"}, 1),
        ({}, 1),
        {"notify": True, "message": "Have a look."},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("lost", ["the request", "the answer"])
async def test_it_is_done_once(monkeypatch: pytest.MonkeyPatch, case: Case, lost: str) -> None:
    async def run(world: World, clock: ToldClock) -> None:
        act, *args = case.call(world)
        async with opened(world, [only(act, *args, **case.options)], clock) as client:
            await client.start("only", {}, id="r")
            record = await played_out(client, clock)
        assert record.status is Status.DONE, (record.last_error, record.question)
        assert case.seen(world) == case.after

    assert await Losing(monkeypatch, lost).each(run) >= 1, "the act writes"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("lost", ["the request", "the answer"])
async def test_it_is_taken_back_once(monkeypatch: pytest.MonkeyPatch, case: Case, lost: str) -> None:
    async def run(world: World, clock: ToldClock) -> None:
        act, *args = case.call(world)
        async with opened(world, [only(act, *args, fails=True, **case.options)], clock) as client:
            await client.start("only", {}, id="r")
            record = await played_out(client, clock)
        assert record.status is Status.CANCELLED, (record.last_error, record.question)
        assert case.seen(world) == case.undone

    await Losing(monkeypatch, lost).each(run)
