"""Takes the pictures of the pages from the running product: ``python docs/tools/pictures.py``.

A worker with the dashboard runs the examples, on a ledger in a temporary directory, with a sheet of the emulator in
front of it. Chromium takes the dashboard and the sheet; the terminal is what ``quire`` writes to a terminal.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from hectograph import Emulator
from quire.surfaces.cli.run.emulator import book

ROOT = Path(__file__).parents[2]
QUIRE = Path(sys.executable).with_name("quire")
FLOWS = ("examples/publishing.py", "examples/status_table.py", "examples/contacts.py")
TOML = """flows = ["examples/publishing.py", "examples/status_table.py", "examples/contacts.py"]
ledger = "sqlite:///ledger.db"
who = "ann@example.org"
"""
KEYWORDS = ("analytics dashboard", "event tracking", "privacy", "data export", "webhooks", "alerts", "onboarding")
#: What people do before the pictures are taken.
STORY = (
    *(f'quire start article keyword="{word}" --id {word.replace(" ", "-")}' for word in KEYWORDS),
    'quire start tasks what="water the plants" --id task-1',
    'quire start tasks what="call the printer" --id task-2',
    "quire start contacts count=1000 --id acme",
    "quire worker --until-idle",
    'quire approve analytics-dashboard --edit draft="All about dashboards, and why."',
    "quire approve event-tracking",
    "quire approve privacy",
    'quire reject data-export --note "off topic"',
    "quire move task-1 IN_PROGRESS",
    "quire worker --until-idle",
)
SHOWN = (
    "quire",
    "quire list --needs-me",
    "quire why webhooks",
    "quire approve webhooks",
    "quire show privacy | head -21",
)
WIDTH = 124
_HTML = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #1e1f26; }}
pre {{ display: inline-block; margin: 0; padding: 18px 22px; color: #e6e6e6; }}
pre {{ font: 14px/1.4 "DejaVu Sans Mono", monospace; }}
{stylesheet}
</style><pre>{code}</pre>"""


def typed(line: str, home: Path, environ: dict[str, str]) -> None:
    subprocess.run(["bash", "-c", line], cwd=home, env=environ, check=True, stdout=subprocess.DEVNULL)


def at_a_terminal(line: str, home: Path, environ: dict[str, str]) -> str:
    """Type a command at a terminal, and return what it writes there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", f"stty cols {WIDTH}; {line}"], cwd=home, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    while process.poll() is None or select.select([ours], [], [], 0)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                said += os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
    os.close(ours)
    process.wait()
    return said.decode().replace("\r\n", "\n")


def terminal(lines: Sequence[str], home: Path, environ: dict[str, str], browser: Browser, to: Path) -> None:
    console = Console(record=True, width=WIDTH, force_terminal=True, file=open(os.devnull, "w"))  # noqa: SIM115
    for line in lines:
        console.print(Text("$ ", style="bold green") + Text(line, style="bold"))
        console.print(Text.from_ansi(at_a_terminal(line, home, environ).rstrip("\n")))
        console.print()
    html = console.export_html(theme=MONOKAI, code_format=_HTML)
    page = browser.new_page(viewport={"width": 1200, "height": 100}, device_scale_factor=1.25)
    page.set_content(html)
    page.locator("pre").screenshot(path=to)
    page.close()


def table(to: Path, browser: Browser) -> None:
    """The book of ``quire demo sheet`` before its rows run, while they do, and afterwards."""
    desk = Path(tempfile.mkdtemp(prefix="pictures-"))
    words = [QUIRE, "demo", "sheet", "--dir", str(desk / "demo")]
    process = subprocess.Popen(list(map(str, words)), cwd=desk, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = next(filter(None, (re.search(r"http://\S+?/book/[^,\s]+", line) for line in process.stdout)))
        page = browser.new_page(viewport={"width": 1500, "height": 420}, device_scale_factor=1.25)
        page.goto(found[0])
        page.get_by_role("button", name="Orders").click()
        page.get_by_text("A-1041").first.wait_for()
        page.screenshot(path=to / "table-before.png")
        page.locator('td:has-text("Needs approval")').first.wait_for(timeout=60_000)
        page.screenshot(path=to / "table-during.png")
        page.locator('td:has-text("Needs approval")').first.click()
        page.keyboard.type("Approved")
        page.keyboard.press("Enter")
        page.locator('td:has-text("HOO-2400")').first.wait_for(timeout=60_000)
        page.screenshot(path=to / "table-after.png")
    finally:
        process.terminate()
        process.communicate()
    shutil.rmtree(desk)


def pictures(to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="pictures-"))
    home = folder / "desk"
    shutil.copytree(ROOT / "examples", home / "examples")
    (home / "quire.toml").write_text(TOML)
    environ = {
        **os.environ,
        "PATH": f"{QUIRE.parent}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "COLUMNS": str(WIDTH),
    }
    for line in STORY:
        typed(line, home, environ)
    chromium = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))))
    with Emulator() as google, sync_playwright() as playwright:
        sheet = book(google)
        up = subprocess.Popen(
            ["quire", "up", "--port", "0", "--panel", sheet], cwd=home, env=environ, stdout=subprocess.PIPE, text=True
        )
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            assert up.stdout is not None
            found = next(filter(None, (re.search(r"http://[\d.:]+", line) for line in up.stdout)))
            page = browser.new_page(viewport={"width": 1280, "height": 560}, device_scale_factor=1.5)
            page.goto(found[0])
            page.get_by_text("event-tracking").first.wait_for()
            page.screenshot(path=to / "dashboard.png")
            page.set_viewport_size({"width": 2150, "height": 420})
            page.goto(urljoin(google.url, f"/book/{urlsplit(sheet).netloc}"))
            page.get_by_text("webhooks").first.wait_for(timeout=60_000)
            page.screenshot(path=to / "sheet.png")
            terminal(SHOWN, home, environ, browser, to / "terminal.png")
            table(to, browser)
        finally:
            browser.close()
            up.terminate()
            up.communicate()
    shutil.rmtree(folder)


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("to", nargs="?", type=Path, default=ROOT / "docs" / "pictures")
    pictures(words.parse_args().to)
