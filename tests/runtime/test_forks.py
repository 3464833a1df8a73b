"""What a step forks never comes back to the worker: there is no second one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from quire import aopen
from tests.runtime.conftest import ROOT
from tests.runtime.forking import STEPS


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_that_forks_makes_no_second_worker(step: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    command = [sys.executable, "-m", "tests.runtime.forking", url, step]

    worker = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )

    by = {line.split()[1]: line.split()[0] for line in worker.stdout.splitlines()}
    assert (sorted(by), len(set(by.values())), len(worker.stdout.splitlines())) == (["a", "b", "c"], 1, 3)
    async with aopen(url) as client:
        record = await client.get("forks")
    own = step == "does_its_own_work"
    assert (record.status, json.loads(record.result or "null")) == ("DONE", 6 if own else 1)
    assert ("a step forked, and the copy came back to the worker" in worker.stderr) is not own
