"""Real processes: a projector that is killed at any instant, and another that goes on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quire.clock import SYSTEM
from quire.folder.projector import Projector
from quire.upkeep.verify import verify
from tests.folder.flows import files, opened, steps

PROJECT = """
import asyncio, signal, sys
from pathlib import Path
from quire.clock import SYSTEM
from quire.folder.projector import Projector
from tests.folder.flows import opened

async def main():
    async with opened(Path(sys.argv[1]), SYSTEM) as (client, folder):
        print("open", flush=True)
        projector = Projector(client.ledger, folder, SYSTEM, batch=int(sys.argv[2]))
        # Not SIGINT: a process that was started in the background may have it ignored for good.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, projector.stop)
        await projector.run()

asyncio.run(main())
"""


def started(where: Path, batch: int) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROJECT, str(where), str(batch)]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


@pytest.mark.slow
async def test_killed_at_random_instants_the_folder_is_completed_by_the_next_one(tmp_path: Path) -> None:
    chance = random.Random(7)
    async with opened(tmp_path, SYSTEM) as (client, folder):
        for round_ in range(6):
            await client.start_many(steps, [{} for _ in range(60)], ids=[f"r{round_}_{n}" for n in range(60)])
            await client.work()
            process = started(tmp_path, batch=chance.choice([5, 50, 1000]))
            await SYSTEM.sleep(chance.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
            assert all(text.endswith(b"}\n") for path, text in files(tmp_path).items() if path.endswith(".json"))
        # The killed one's lease has not run out; its process is known to be dead.
        count = await Projector(client.ledger, folder, SYSTEM).catch_up(wait=False)
        found = await verify(client, folder)

    assert found.ok, found.differences[:3]
    assert (found.records, found.behind) == (360, 0)
    assert count > 0
    assert len([path for path in files(tmp_path) if "/logs/" in path]) == 360


async def test_a_projector_that_is_told_to_end_leaves_the_lease_to_others(tmp_path: Path) -> None:
    async with opened(tmp_path, SYSTEM) as (client, folder):
        await client.start(steps, id="a")
        await client.work()
        process = started(tmp_path, batch=100)
        watcher = Projector(client.ledger, folder, SYSTEM)
        while await watcher.lag():
            await SYSTEM.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()

        _, holder = await watcher.cursor.look()
        assert holder is not None and holder.owner == ""
        assert (await verify(client, folder)).ok
