"""``quire demo onboarding``: a browser plays the team and the client, from the book to the accepted date."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from quire.clock import SYSTEM
from quire.surfaces.google import demo

ROOT = Path(__file__).parents[3]


def test_the_demo_runs_the_example() -> None:
    assert (ROOT / "examples" / "onboarding" / "flows.py").read_text(encoding="utf-8") == demo.flows()


class Running:
    """The demo as a process, with what it says about itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        said = ""
        while "the workflow:" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        found = re.search(r"the book: +(http://\S+?/)book/(\S+)", said)
        assert found is not None
        self.url, self.book = found[1], found[2]
        self.client = httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {demo.ME}"})

    def get(self, path: str) -> Any:
        return json.loads(self.client.get(path).text)

    @property
    def row(self) -> dict[str, str]:
        grid = self.get(f"/v4/spreadsheets/{self.book}/values/Clients")["values"]
        return dict(zip(grid[0], [*grid[1], *[""] * 9], strict=False))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    command = [sys.executable, "-m", "quire.surfaces.cli", "demo", "onboarding", "--port", "0"]
    process = subprocess.Popen([*command, "--dir", str(tmp_path / "demo")], stdout=subprocess.PIPE, text=True)
    made = None
    try:
        made = Running(process)
        yield made
    finally:
        if made is not None:
            made.client.close()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def until(holds: Callable[[], bool]) -> None:
    ends = SYSTEM.boottime() + 150
    while not holds():
        assert SYSTEM.boottime() < ends, "it does not come to that"
        threading.Event().wait(0.2)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_stranger_plays_the_team_and_the_client_in_a_browser(running: Running, page: Any) -> None:
    page.set_default_timeout(150_000)  # the machine may be busy
    page.goto(f"{running.url}book/{running.book}")
    page.get_by_role("button", name="Clients", exact=True).click()
    page.locator("td:has-text('Needs approval')").wait_for()
    assert running.get("/emulator/outbox")["left"] == []

    page.locator("td:has-text('Needs approval')").click()
    page.keyboard.type("send")
    page.keyboard.press("Enter")
    until(lambda: len(running.get("/emulator/outbox")["left"]) == 2)  # the mail and the invitation

    page.goto(f"{running.url}mail/{demo.CLIENT}")
    page.get_by_role("link", name="Contract for Acme").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Contract Acme.pdf").click()
    assert b"%PDF" in Path(download.value.path()).read_bytes()[:8]
    page.get_by_label("Your answer").fill("Signed.")
    page.get_by_role("button", name="Reply").click()
    page.locator("pre", has_text="Signed.").wait_for()

    page.goto(f"{running.url}calendar/{demo.CLIENT}")
    page.get_by_role("button", name="yes").click()
    page.locator("button.on", has_text="yes").wait_for()

    page.goto(f"{running.url}book/{running.book}")
    page.get_by_role("button", name="Clients", exact=True).click()
    page.locator("td:has-text('Finalized')").wait_for()
    row = running.row
    assert "/folders/" in row["folder"] and row["contract"].startswith("https://drive.google.com/file/")
    [event] = running.get("/calendar/v3/calendars/primary/events")["items"]
    assert event["attendees"][0]["responseStatus"] == "accepted"
