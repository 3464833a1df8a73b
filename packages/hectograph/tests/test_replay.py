"""The recorded traffic, replayed: every answer must be Google's."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from hectograph import Emulator

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
TOOL = SHARED / "tools" / "replay-google-traffic"
TRAFFIC = SHARED / "data" / "google-traffic"
WORKSPACE = SHARED / "data" / "google-workspace"

#: Where an answer differs from the recorded one: the scenario, the exchange, and why.
DIFFERENCES = {
    ("Docs.batch_is_atomic", 0): "the document that was probed held 351 letters; the setup of the scenario inserts 73",
    ("Docs.batch_is_atomic", 1): "as before: only the end index of the document differs",
}


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


def replayed(tool: dict[str, Any], file: Path) -> dict[tuple[str, int], str]:
    """Replay one scenario against an emulator of its own; return where its answers differ."""
    scenario, ids = json.loads(file.read_text(encoding="utf-8")), dict[str, str]()
    wrong: dict[tuple[str, int], str] = {}
    then = datetime(2025, 8, 13, 10, 25, tzinfo=UTC)
    account, zone = scenario.get("account", "person@example.com"), scenario.get("timeZone", "UTC")
    with Emulator(clock=lambda: then, account=account, time_zone=zone) as running:
        base = urlsplit(running.url)
        for exchange in scenario.get("setup", ()):
            tool["learn"](exchange.get("response"), tool["sent"](base, exchange, ids)[1], ids)
        ids |= {quote(old): quote(new) for old, new in ids.items()}  # paths have the ids encoded
        for index, exchange in enumerate(scenario["exchanges"]):
            status, got = tool["sent"](base, exchange, ids)
            want = json.loads(tool["translated"](json.dumps(exchange["response"]), ids))
            hidden = tool["hidden_in"](exchange)
            found = tool["difference"](tool["blurred"](want or {}, hidden), tool["blurred"](got or {}, hidden))
            if status != exchange["status"] or found:
                wrong[scenario["name"], index] = found or f"status {status}: {got}"
            tool["learn"](exchange["response"], got, ids)
    return wrong


@pytest.mark.skipif(not TOOL.exists() or not WORKSPACE.exists(), reason=f"no recorded traffic at {WORKSPACE}")
def test_calendar_docs_and_slides_answer_as_recorded_but_for_the_named_differences() -> None:
    tool: dict[str, Any] = {"__name__": "tool", "__file__": str(TOOL)}
    source = TOOL.read_text(encoding="utf-8")
    exec(compile(source[: source.rindex("\nmain()")], str(TOOL), "exec"), tool)
    files = sorted(WORKSPACE.glob("*.json"))

    wrong = {place: text for file in files for place, text in replayed(tool, file).items()}

    assert len(files) >= 60
    assert wrong.keys() == DIFFERENCES.keys(), wrong
