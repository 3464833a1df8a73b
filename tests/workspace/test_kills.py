"""Real processes that act on Google and are killed: at each write, and at random."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from hectograph import Emulator
from quire.client.client import Client
from quire.model.record import Status
from tests.workspace.crowd import _crowd, begun, counted, killed, onboard
from tests.workspace.worlds import ME, World

#: The writes of one onboarding, in order.
WRITES = (
    "drive.files.create",
    "drive.files.copy",
    "docs.documents.batchUpdate",
    "gmail.users.drafts.create",
    "gmail.users.drafts.send",
    "calendar.events.insert",
)
ONCE = {"folders": 1, "contracts": 1, "mails": 1, "events": 1, "invitations": 1, "twice": {}}


async def _hit(world: World) -> None:
    """Wait until the request that is held up has come."""
    for _ in range(600):
        rules = world("GET", "/emulator/faults")
        if sum(one.get("hits", 0) for one in (rules["faults"] if isinstance(rules, dict) else rules)):
            return
        await asyncio.sleep(0.1)  # noqa: TID251 - another process is waited for
    raise AssertionError("the write never came")


async def _calm() -> None:
    """Wait until the emulator has done with the request whose caller is gone."""
    for _ in range(200):
        if not any(thread.name == "emulator-call" for thread in threading.enumerate()):
            return
        await asyncio.sleep(0.1)  # noqa: TID251 - a thread of the emulator is waited for


async def killed_at(world: World, ledger: str, write: str, fault: str) -> dict[str, Any]:
    """Kill a worker while this write is on its way, or after it was done, and let another one go on."""
    rule = {
        "fault": fault,
        "seconds": 4,
        "kind": f"^{write}$".replace(".", "[.]"),
        "count": 1,
    }
    async with Client(ledger, workflows=[onboard], who="ann") as client:
        await client.start("onboard", world.data, id="acme")
        world("POST", "/emulator/faults", rule)
        first = begun(ledger, world.emulator.url, until="acme")
        try:
            await _hit(world)
        finally:
            killed(first)
        second = begun(ledger, world.emulator.url, until="acme")
        try:
            await asyncio.wait_for(asyncio.to_thread(second.wait), 150)
        finally:
            killed(second)
        record = await client.get("acme")
        await _calm()
    assert record.status is Status.DONE, (record.status, record.last_error, record.question)
    result: dict[str, Any] = json.loads(record.result or "")
    return result


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("fault", ["late_answer", "latency"])
async def test_killed_at_each_write_there_is_one_of_each_thing(tmp_path: Path, write: str, fault: str) -> None:
    """``late_answer``: it was done and nobody heard of it. ``latency``: it arrives after its process is gone."""
    with Emulator(account=ME) as emulator:
        world = World(emulator)
        await killed_at(world, f"sqlite:///{tmp_path}/ledger.db", write, fault)
        assert counted(world) == ONCE


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("write", ["drive.files.copy", "gmail.users.drafts.send"])
async def test_killed_with_a_ledger_in_postgresql(postgres_url: str, write: str) -> None:
    with Emulator(account=ME) as emulator:
        world = World(emulator)
        await killed_at(world, postgres_url, write, "late_answer")
        assert counted(world) == ONCE


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("write", ["drive.files.copy", "gmail.users.drafts.send"])
async def test_killed_with_a_ledger_in_a_sheet(write: str) -> None:
    with Emulator(account="books@example.org") as books, Emulator(account=ME) as emulator:
        world = World(emulator)
        book = json.loads(books.call("POST", "/v4/spreadsheets", {}).body)["spreadsheetId"]
        await killed_at(world, f"sheets://{book}?endpoint={books.url}", write, "late_answer")
        assert counted(world) == ONCE


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_workers_that_are_killed_at_random(tmp_path: Path) -> None:
    found = await _crowd(12, 3, f"sqlite:///{tmp_path}/ledger.db", 4.0, 1, 0.05)
    assert {name: found[name] for name in ONCE} == {name: 12 for name in ONCE if name != "twice"} | {"twice": {}}
    assert found["kills"] and not found["questions"] and not found["failed"]
