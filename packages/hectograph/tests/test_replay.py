"""The recorded traffic, replayed: every answer must be Google's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hectograph import Emulator

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
TOOL = SHARED / "tools" / "replay-google-traffic"
TRAFFIC = SHARED / "data" / "google-traffic"


def recorded_account() -> str:
    """The account that the traffic was recorded with: Google names it among the editors of a protected range."""
    found: set[str] = {
        name for path in TRAFFIC.glob("*.json") for name in re.findall(r"[\w.-]+@[\w.-]+", path.read_text())
    }
    [account] = found
    return account


@pytest.mark.skipif(not TOOL.exists() or not TRAFFIC.exists(), reason=f"no recorded traffic at {TRAFFIC}")
def test_every_recorded_exchange_is_answered_as_google_answered() -> None:
    with Emulator(account=recorded_account()) as emulator:
        run = subprocess.run(
            [sys.executable, str(TOOL), emulator.url.rstrip("/"), str(TRAFFIC), "-v"],
            capture_output=True,
            text=True,
            check=False,
        )

    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
