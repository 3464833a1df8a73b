"""A submission is entered into a tracker that has only a web page; what the page answers is written back.

The page is driven in a real browser. When its layout breaks, the record errs and says why; correct it, then retry that
record alone. Without ``url=`` it is the little page below, which this file serves itself.

pip install playwright        # and a Chromium
quire up examples/tracker.py
quire start submission name=Acme --follow
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from quire import Act, Fail, NotDone, Retry, Run, Workflow, effect


class Page(ThreadingHTTPServer):
    """Stands for the tracker: one form, and what was entered by its key. ``broken`` renames a field."""

    broken = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.entries: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Answer(BaseHTTPRequestHandler):
    server: Page

    def do_GET(self) -> None:
        self._page("")

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        entries = self.server.entries
        reference = entries.setdefault(form["key"][0], f"TR-{len(entries) + 1} {form['name'][0]}")
        self._page(f'<p role="status">{reference}</p>')

    def _page(self, status: str) -> None:
        label = "Company" if self.server.broken else "Name"
        body = (
            f"<html><title>Tracker</title><form method=post><label>{label}<input name=name></label>"
            f"<label>Key<input name=key></label><button>Save</button></form>{status}</html>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None: ...


class Browser:
    """One page of a real Chromium, opened when it is needed."""

    #: How long a field may take to appear, in seconds.
    patience = 5.0

    def __init__(self, page: Page) -> None:
        self.page = page

    async def enter(self, url: str, name: str, key: str) -> str:
        from playwright.async_api import TimeoutError as NotThere
        from playwright.async_api import async_playwright

        async with async_playwright() as started:
            chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
            browser = await started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            try:
                page = await browser.new_page()
                await page.goto(url)
                try:
                    await page.get_by_label("Name").fill(name, timeout=1000 * self.patience)
                except NotThere as error:
                    raise NotDone(f"the page has no field 'Name' any more: {await page.title()!r}") from error
                await page.get_by_label("Key").fill(key)
                await page.get_by_role("button", name="Save").click()
                return await page.get_by_role("status").inner_text()
            finally:
                await browser.close()


def make_deps() -> Iterator[Browser]:
    """What the steps work with. What stands behind ``yield`` is done when the worker ends."""
    with Page() as page:
        thread = threading.Thread(target=page.serve_forever)
        thread.start()
        yield Browser(page)
        page.shutdown()
        thread.join()


@effect(timeout="60s")
async def enter(act: Act[Browser], url: str, name: str) -> str:
    return await act.deps.enter(url, name, act.key)


submission = Workflow("submission", result=str, deps=make_deps, retry=Retry(1))


@submission.step(then="WRITE_BACK")
async def ENTER(run: Run[dict[str, Any], Browser]) -> None:  # noqa: N802 - steps are words that people see
    url = run.data.get("url") or run.deps.page.url
    try:
        run.data["reference"] = await run.once(enter, url, run.data["name"])
    except NotDone as error:
        raise Fail(str(error)) from error


@submission.step
async def WRITE_BACK(run: Run[dict[str, Any], Browser]) -> str:  # noqa: N802
    run.note(f"tracked as {run.data['reference']}")
    return str(run.data["reference"])
