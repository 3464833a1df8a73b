"""Every page, in both themes and at both widths: names, landmarks, headings, contrast, focus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from quire.agents import demo, mission
from quire.client.client import Client
from quire.model.record import Status
from tests.surfaces.server.conftest import BROKEN, Site, running
from tests.surfaces.server.watched import Watched

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHECKS = (Path(__file__).parent / "accessible.js").read_text(encoding="utf-8")
#: Pages, and something that is there once they are drawn.
PAGES = {
    "": "art-3",
    "record/art-2": "Last error",
    "record/art-3": "What will be approved",
    "approvals": "What will be approved",
    "errors": "Retry all 2",
    "machine/publish": "Records of publish",
    "missions": "mars-1",
    "missions/mars-1": "makes one of it",
    "workers": "Effects under way",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A ledger in which something of everything is there."""
    BROKEN.add("broken")
    url = f"sqlite:///{tmp_path_factory.mktemp('accessible')}/ledger.db"

    async def fill(client: Client) -> None:
        await client.start("mars-colony", {}, id="mars-1")
        await client.start("order", {"amount": 3}, id="order-1")
        for number in range(5):
            await client.start("publish", {"keyword": "broken" if number % 2 == 0 else "tea"}, id=f"art-{number}")
        for name in ("art-0", "art-2"):
            while (await client.get(name)).status is not Status.NEEDS_APPROVAL:
                await client.clock.sleep(0.02)
            await client.answer(name, "approve")
        await client.pause("order", reason="the till is counted")
        while (await client.get("art-2")).status is not Status.ERROR:
            await client.clock.sleep(0.02)
        await client.until_ended("mars-1", timeout=60)

    with running(url, more=[mission(demo.blueprint(delay=0.0))]) as found:
        found.do(fill)
        yield found
    BROKEN.clear()


def focus_is_seen(page: Page, times: int) -> None:
    """Whatever the tab key comes to shows that it is there."""
    page.evaluate("document.activeElement?.blur()")
    for _ in range(times):
        page.keyboard.press("Tab")
        told = page.evaluate(
            """() => {
                const here = document.activeElement;
                const style = getComputedStyle(here);
                const inner = here.querySelector("rect") ? getComputedStyle(here.querySelector("rect")) : null;
                const row = document.querySelector(".grid-row.focus");
                const outlined = style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) >= 2;
                return { what: here.outerHTML.slice(0, 120), seen: here === document.body || outlined || Boolean(row)
                    || (inner && Number.parseFloat(inner.strokeWidth) >= 3) };
            }"""
        )
        assert told["seen"], f"the focus is not seen on {told['what']}"


@pytest.mark.parametrize("wide", [1280, 390])
def test_every_page_is_accessible(browser: Browser, site: Site, wide: int) -> None:
    watched = Watched(browser, site, wide)
    page = watched.page
    wrong: dict[str, list[str]] = {}
    texts = 0

    def looked_at(name: str) -> None:
        """In both themes: a page that stands open follows the system from one to the other."""
        nonlocal texts
        grounds = set()
        for theme in ("light", "dark"):
            watched.turn(theme)
            told = page.evaluate(CHECKS)
            texts += told["texts"]
            if told["wrong"]:
                wrong[f"{name}, {theme}"] = told["wrong"]
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            watched.shot(f"page-{name}")
        assert len(grounds) == 2, "the page does not follow the theme"

    for place, there in PAGES.items():
        watched.go(place)
        expect(page.get_by_text(there).first).to_be_visible(timeout=15_000)
        looked_at(place.replace("/", "-") or "records")
        watched.fits()
        focus_is_seen(page, 8 if wide > 500 else 3)
    page.get_by_role("button", name="Halt").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    looked_at("halt")

    assert wrong == {}
    assert texts > 500, "the checks looked at next to nothing"
    watched.end()


def test_the_checks_find_what_is_wrong(browser: Browser, site: Site) -> None:
    watched = Watched(browser, site, 1280)
    page = watched.go("workers")
    expect(page.get_by_text("Effects under way")).to_be_visible()
    page.evaluate(
        """() => document.querySelector("main").insertAdjacentHTML("beforeend",
            '<h1>Two</h1><button></button><p class="pale">pale</p><table><tr><td>x</td></tr></table>')"""
    )
    page.evaluate("() => { document.querySelector('.pale').style.color = 'rgb(200, 200, 200)'; }")
    told = page.evaluate(CHECKS)["wrong"]

    assert any("no name" in text for text in told)
    assert any("contrast" in text for text in told)
    assert any("2 <h1>" in text for text in told)
    assert any("without headers" in text for text in told)
    watched.end()
