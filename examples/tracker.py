"""A submission is entered into a tracker that has only a web page; what the page answers is written back.

The page is driven in a real browser. When its layout breaks, the record errs and says why; mend it, then retry that
record alone.

    pip install playwright        # and a Chromium
    quire up examples/tracker.py
    quire start submission name=Acme url=http://127.0.0.1:8000/
"""

from __future__ import annotations

import shutil
from typing import Any

from quire import Act, Fail, NotDone, Retry, Run, Workflow, effect


class Browser:
    """One page of a real Chromium, opened when it is needed."""

    #: How long a field may take to appear, in seconds.
    patience = 5.0

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


def make_deps() -> Browser:
    return Browser()


@effect(timeout="60s")
async def enter(act: Act[Browser], url: str, name: str) -> str:
    return await act.deps.enter(url, name, act.key)


submission = Workflow("submission", result=str, deps=Browser, retry=Retry(1))


@submission.step(then="WRITE_BACK")
async def ENTER(run: Run[dict[str, Any], Browser]) -> None:  # noqa: N802 - steps are words that people see
    try:
        run.data["reference"] = await run.once(enter, run.data["url"], run.data["name"])
    except NotDone as error:
        raise Fail(str(error)) from error


@submission.step
async def WRITE_BACK(run: Run[dict[str, Any], Browser]) -> str:  # noqa: N802
    run.note(f"tracked as {run.data['reference']}")
    return str(run.data["reference"])
