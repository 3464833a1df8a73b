"""``quire up --panel``: one process with a worker, the API and the panel; and a person at the sheet in a browser."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quire import open as open_client
from quire.surfaces.cli import cli
from tests.panel.conftest import Sheet

FLOWS = """
from quire import Run, Workflow

ask = Workflow("ask", result=str)


@ask.step
async def review(run: Run[dict]) -> str:
    return (await run.ask("Go on?", show=run.data)).choice
"""


@contextmanager
def up(tmp_path: Path, sheet: Sheet, *words: str) -> Iterator[str]:
    """The address of a running ``quire up``."""
    (tmp_path / "panel_flows.py").write_text(FLOWS, encoding="utf-8")
    (tmp_path / "quire.toml").write_text(f'flows = ["panel_flows.py"]\npanel = "{sheet.url}"\n', encoding="utf-8")
    command = [sys.executable, "-m", "quire.surfaces.cli", "up", "--port", "0", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[2].startswith("panel: sheets://"), lines
        found = re.search(r"http://\S+?:\d+", lines[0])
        assert found is not None, lines
        yield found[0].rstrip(";")
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


def quire(tmp_path: Path, *words: str) -> str:
    command = [sys.executable, "-m", "quire.surfaces.cli", *words]
    return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout


@pytest.mark.browser
def test_a_person_types_approve_in_the_browser_and_the_record_ends(tmp_path: Path, sheet: Sheet, page: Any) -> None:
    with up(tmp_path, sheet):
        quire(tmp_path, "start", "ask", "--id", "a1")
        page.goto(f"{sheet.emulator.url}book/{sheet.book_id}")
        page.locator('td[data-at="1,0"]:has-text("a1")').wait_for(timeout=30_000)
        page.locator('td[data-at="1,1"]:has-text("NEEDS_APPROVAL")').wait_for(timeout=30_000)
        page.locator('td[data-at="1,9"]').click()
        page.keyboard.type("approve")
        page.keyboard.press("Enter")
        page.locator('td[data-at="1,1"]:has-text("DONE")').wait_for(timeout=30_000)
        page.locator('td[data-at="1,10"]:has-text("APPROVE: done")').wait_for(timeout=30_000)

    assert sheet.row("a1")["command"] == ""


def test_bad_addresses_are_refused_with_one_sentence(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "panel_flows.py").write_text(FLOWS, encoding="utf-8")
    (tmp_path / "quire.toml").write_text('flows = ["panel_flows.py"]\n', encoding="utf-8")
    # Nothing listens before the address is checked: the port may be another's.
    held = socket.create_server(("127.0.0.1", 0))
    request.addfinalizer(held.close)
    taken = held.getsockname()[1]
    for words, said in (
        (["panel", "run"], "no sheet is named"),
        (["panel", "run", "--panel", "sheets://"], "names no spreadsheet for the panel"),
        (["panel", "run", "--panel", "sheets://ID?colour=red"], "unknown settings ['colour']"),
        (["panel", "script"], "name its address with --url"),
        (["up", "--port", str(taken), "--panel", "https://docs.google.com/x"], "names no spreadsheet for the panel"),
    ):
        result = CliRunner().invoke(cli, [*words, "--config", str(tmp_path / "quire.toml")])
        assert result.exit_code == 2 and said in result.output, (words, result.output)
        assert "Traceback" not in result.output


def test_the_script_is_printed_with_the_address_and_a_secret(tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    with open_client(ledger):
        pass
    words = ["panel", "script", "--url", "https://q.example.org/", "--ledger", ledger]
    text = CliRunner().invoke(cli, words).output

    assert '"url": "https://q.example.org/wake"' in text and re.search(r'"secret": "[0-9a-f]{20,}"', text)
