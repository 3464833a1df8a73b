"""A worker is killed at each point of a prepared effect, as ``kill -9`` does. The next process goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quire import Status, aopen
from quire.clock import SYSTEM
from tests.runtime.post_office import FLOWS, POINTS, Office

ROOT = Path(__file__).parents[2]
_WORKER = "import asyncio, sys; from tests.runtime.post_office import main; asyncio.run(main(*sys.argv[1:]))"


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
async def test_killed_at_any_point_one_letter_leaves_and_at_most_a_draft_is_left_behind(
    point: str, tmp_path: Path
) -> None:
    undoes = point.startswith("undo")
    store, office = f"sqlite:///{tmp_path}/ledger.db", Office(tmp_path / "office")
    office.folder.mkdir()
    async with aopen(store, workflows=FLOWS, deps=office) as client:
        await client.start("letter_in_vain" if undoes else "letter", {}, id="l")
    command = [sys.executable, "-c", _WORKER, store, str(office.folder), point]
    died = subprocess.run(command, cwd=ROOT, check=False, timeout=60)  # noqa: ASYNC221 - nothing else runs here
    assert died.returncode == -signal.SIGKILL

    async with aopen(store, workflows=FLOWS, deps=office) as client:
        for _ in range(100):
            await client.work()
            record = await client.get("l")
            if record.ended or record.status is Status.NEEDS_APPROVAL:
                break
            await SYSTEM.sleep(0.1)
        asks = record.status is Status.NEEDS_APPROVAL
        assert asks is undoes, record.question  # an undo has no probe: whether it happened, a person says
        if asks:
            await client.resolve("l", happened=point == "undone")
            await client.work()

    assert len(office.there("sent")) == 1
    assert len(office.there("back")) == (1 if undoes else 0)
    assert len(office.there("draft")) == (1 if point == "reserved" else 0)
