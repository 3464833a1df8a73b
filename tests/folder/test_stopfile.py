"""A file named STOP halts, is kept up while it is there, and resumes nothing when it goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quire.errors import Halted
from quire.model.record import Status
from quire.testing import ToldClock
from quire.worker import stop_file as stopfile
from tests.folder.flows import opened, steps


@pytest.mark.parametrize("name", ["STOP", "STOP.txt", "Workflows/STOP"])
async def test_a_file_at_the_top_halts_everything(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as (client, folder):
        await client.start(steps, id="a")
        assert await stopfile.look(client.ledger, folder) == []
        (tmp_path / "folder" / name).touch()

        halted = await stopfile.look(client.ledger, folder)

        [control] = (await client.standing()).controls
        assert halted == ["*"]
        assert (control.scope, control.halted, control.reason) == ("*", True, "file STOP in the folder")
        assert control.by == f"the folder ({name})"
        assert (await client.get("a")).status is Status.CANCELLED
        with pytest.raises(Halted):
            await client.start(steps, id="b")


async def test_a_file_in_a_workflows_directory_halts_that_workflow(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        await folder.prepare("steps")
        (tmp_path / "folder/Workflows/steps/STOP").write_text("prices are wrong")

        assert await stopfile.look(client.ledger, folder) == ["steps"]

        with pytest.raises(Halted):
            await client.start(steps, id="a")
        await client.start("broken", {}, id="b")


async def test_it_is_said_once_and_again_after_a_resume_while_the_file_is_there(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        file = tmp_path / "folder/STOP"
        file.touch()

        assert await stopfile.look(client.ledger, folder) == ["*"]
        epoch = (await client.standing()).epoch
        assert await stopfile.look(client.ledger, folder) == []
        assert (await client.standing()).epoch == epoch
        await client.resume()
        assert await stopfile.look(client.ledger, folder) == ["*"]


async def test_taking_it_away_resumes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (client, folder):
        file = tmp_path / "folder/STOP"
        file.touch()
        await stopfile.look(client.ledger, folder)
        file.unlink()

        assert await stopfile.look(client.ledger, folder) == []

        assert (await client.standing()).controls[0].halted
        await client.resume()
        assert await stopfile.look(client.ledger, folder) == []
        await client.start(steps, id="a")


async def test_whoever_watches_sees_it_within_a_few_seconds(tmp_path: Path) -> None:
    clock = ToldClock()
    async with opened(tmp_path, clock) as (client, folder):
        watching = asyncio.ensure_future(stopfile.watch(client.ledger, folder, clock))
        while clock.wakes_at is None:
            await client.standing()
        (tmp_path / "folder/STOP").touch()
        assert not (await client.standing()).controls

        clock.advance(folder.look_seconds)
        while not (await client.standing()).controls:
            pass

        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
