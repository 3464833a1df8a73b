"""A page of the dashboard in a real browser, watched: what it fetches, what goes wrong in it, how it looks."""

from __future__ import annotations

import base64
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

from tests.surfaces.server.conftest import Site

#: Counts are up to five seconds old, and more on a machine that has other things to do.
expect.set_options(timeout=20_000)

#: Screenshots are kept here, to be looked at.
SHOTS = Path(__file__).parents[3] / "test-results" / "dashboard"


class Watched:
    """A page that tells what it fetched and what went wrong in it."""

    def __init__(self, browser: Browser, site: Site, wide: int, theme: str = "light", **options: Any) -> None:
        height = 844 if wide < 500 else 860
        options = {"reduced_motion": "reduce", "color_scheme": theme, **options}
        self.context = browser.new_context(viewport={"width": wide, "height": height}, **options)
        self.page: Page = self.context.new_page()
        self.site = site
        self.wide = wide
        self.theme = theme
        self.elsewhere: list[str] = []
        self.problems: list[str] = []
        self.context.on("request", self._requested)
        self.page.on("console", lambda told: self.problems.append(told.text) if told.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

    def _requested(self, request: object) -> None:
        url = str(getattr(request, "url", ""))
        if urlsplit(url).netloc != urlsplit(self.site.url).netloc and not url.startswith(("data:", "blob:")):
            self.elsewhere.append(url)

    def go(self, place: str = "") -> Page:
        self.page.goto(f"{self.site.url}/#/{place}")
        return self.page

    def turn(self, theme: Literal["light", "dark"]) -> None:
        """The person's system turns to another theme."""
        self.theme = theme
        self.page.emulate_media(color_scheme=theme)

    def shot(self, name: str) -> None:
        # Not by the library's own call: it packs a picture tightly, which takes twice as long.
        asked = {"format": "png", "optimizeForSpeed": True}
        picture = base64.b64decode(
            self.context.new_cdp_session(self.page).send("Page.captureScreenshot", asked)["data"]
        )
        for _ in range(3):
            # Another run that begins meanwhile empties the folder.
            SHOTS.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                (SHOTS / f"{name}-{self.wide}-{self.theme}.png").write_bytes(picture)
                return

    def fits(self) -> None:
        """Nothing sticks out to the right, of the window or of the part of it that scrolls."""
        parts = "[...document.querySelectorAll('html, main')]"
        wide = self.page.evaluate(f"Math.max(...{parts}.map((one) => one.scrollWidth))")
        assert wide <= self.wide, f"the page is {wide} px wide"

    def end(self) -> None:
        self.context.close()
        assert self.elsewhere == []
        assert self.problems == []
