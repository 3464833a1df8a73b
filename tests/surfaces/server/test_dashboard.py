"""The dashboard in a real Chromium, at the width of a desk and of a telephone."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from quire.model.record import Status
from quire.surfaces.client import Client
from quire.surfaces.server.doors import Setup
from quire.surfaces.server.links import make_link
from quire.surfaces.server.tokens import Role, make_token
from tests.surfaces.server.conftest import BROKEN, Site, running

pytestmark = pytest.mark.browser

#: What must be shown and never run.
HTML = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


class Watched:
    """A page that tells what it fetched and what went wrong in it."""

    def __init__(self, browser: Browser, site: Site, wide: int, shots: Path) -> None:
        height = 844 if wide < 500 else 860
        self.context = browser.new_context(viewport={"width": wide, "height": height}, reduced_motion="reduce")
        self.page: Page = self.context.new_page()
        self.site = site
        self.wide = wide
        self.shots = shots
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

    def shot(self, name: str) -> None:
        # Not by path: the library writes files in threads that it keeps.
        (self.shots / f"{name}-{self.wide}.png").write_bytes(self.page.screenshot())

    def fits(self) -> None:
        """Nothing sticks out to the right."""
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= self.wide, f"the page is {wide} px wide"

    def end(self) -> None:
        self.context.close()
        assert self.elsewhere == []
        assert self.problems == []


@pytest.mark.slow
@pytest.mark.parametrize("wide", [1280, 390])
def test_start_watch_approve_retry_and_halt(browser: Browser, site: Site, tmp_path: Path, wide: int) -> None:
    BROKEN.add("broken")
    watched = Watched(browser, site, wide, tmp_path)
    page = watched.go()

    # Start one from the dashboard and watch it come to its question.
    page.get_by_role("button", name="Start a record").click()
    page.get_by_role("dialog").get_by_label("Workflow").select_option("publish")
    page.get_by_role("button", name="Next", exact=True).click()
    page.get_by_label("Data (JSON)").fill('{"keyword": "tea"}')
    page.get_by_label("Id (left empty: a new one)").fill("tea-1")
    watched.shot("start")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", name="tea-1")).to_be_visible()
    expect(page.get_by_text("Publish 'tea'?").first).to_be_visible()
    watched.fits()
    watched.shot("asks")

    # Others come meanwhile; the grid shows them without being asked.
    async def more(client: Client) -> None:
        for number in range(40):
            keyword = HTML if number == 7 else "broken" if number % 5 == 0 else f"word {number}"
            await client.start("publish", {"keyword": keyword}, id=f"art-{number:02}")

    page.get_by_role("link", name="Records").first.click()
    site.do(more)
    expect(page.get_by_role("button", name="NEEDS APPROVAL")).to_contain_text("41")
    expect(page.get_by_role("link", name="art-39")).to_be_visible()
    watched.fits()
    watched.shot("grid")

    # Approve the one in the inbox, the others together.
    page.get_by_role("link", name="Approvals").click()
    card = page.get_by_role("article", name="Question of tea-1")
    expect(card.get_by_text("About tea.").first).to_be_visible()
    expect(page.get_by_text(HTML).first).to_be_visible()
    watched.fits()
    watched.shot("approvals")
    card.get_by_role("button", name="approve").click()
    expect(card).to_have_count(0)
    page.get_by_role("link", name="Records").first.click()
    page.get_by_label("Filter by id or text").fill("art-")
    page.get_by_label("Select all that are listed").check()
    page.get_by_role("button", name="Approve", exact=True).click()
    page.get_by_role("button", name="Approve them").click()
    expect(page.get_by_role("button", name="ERROR")).to_contain_text("8")
    expect(page.get_by_role("button", name="DONE")).to_contain_text("33")

    # What failed is one group; mended, it is retried at once.
    page.get_by_role("link", name="Errors").click()
    expect(page.get_by_role("heading", name="is gone")).to_be_visible()
    watched.shot("errors")
    BROKEN.clear()
    page.get_by_role("button", name="Retry all 8").click()
    expect(page.get_by_text("No record is in ERROR.")).to_be_visible()

    # The record's page tells the whole story; the machine shows the counts.
    page.goto(f"{site.url}/#/record/art-05")
    expect(page.locator(".pill").first).to_have_text("DONE")
    expect(page.locator("svg.gantt rect").first).to_be_visible()
    watched.fits()
    watched.shot("record")
    page.goto(f"{site.url}/#/machine/publish")
    expect(page.get_by_alt_text("The steps of publish and the records at each")).to_be_visible()
    watched.fits()
    watched.shot("machine")

    # Halt: seen on every page, with its reason, until it is resumed.
    page.get_by_role("button", name="Halt").click()
    page.get_by_label("Reason, shown on every page").fill("the printer burns")
    page.get_by_role("dialog").get_by_role("button", name="Halt").click()
    for place in ("", "approvals", "errors", "record/tea-1", "workers"):
        page.goto(f"{site.url}/#/{place}")
        expect(page.get_by_text("HALTED: the printer burns")).to_be_visible()
    watched.shot("halted")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.get_by_text("HALTED")).to_have_count(0)
    page.get_by_role("button", name="Dark or light").click()
    page.goto(f"{site.url}/#/record/art-05")
    expect(page.locator("svg.gantt")).to_be_visible()
    watched.shot("dark")

    assert page.title() == "art-05 · Quire"
    assert site.do(lambda client: client.get("art-07")).status is Status.DONE
    watched.end()


@pytest.mark.slow
def test_ten_thousand_rows_that_change_stay_smooth_and_cost_little(
    browser: Browser, site: Site, tmp_path: Path
) -> None:
    async def many(client: Client) -> None:
        await client.pause(reason="only the grid is looked at")
        await client.start_many("order", [{}] * 10_000, ids=[f"row-{n:05}" for n in range(10_000)])

    site.do(many)
    watched = Watched(browser, site, 1280, tmp_path)
    page = watched.go()
    expect(page.get_by_text("10,000 records")).to_be_visible(timeout=20_000)
    in_page = page.locator(".grid-row").count()

    async def changing(client: Client) -> float:
        """Fifty changes a second for four seconds; how much of a core the server, worker and these took."""
        loop, used = asyncio.get_running_loop(), time.process_time()
        begun = loop.time()
        for number in range(200):
            await client.prioritise(f"row-{number * 37 % 10_000:05}", number)
            await client.clock.sleep(max(0.0, begun + number / 50 - loop.time()))
        return (time.process_time() - used) / (loop.time() - begun)

    changed = asyncio.run_coroutine_threadsafe(changing(site.client), site.loop)
    longest = page.evaluate(
        """async () => {
            const body = document.querySelector(".grid-body");
            let last = performance.now(), longest = 0;
            const end = last + 3500;
            while (performance.now() < end) {
                await new Promise(requestAnimationFrame);
                const now = performance.now();
                longest = Math.max(longest, now - last);
                last = now;
                body.scrollTop += 40;
            }
            return longest;
        }"""
    )
    share = changed.result(60)
    watched.shot("many")

    assert in_page < 60
    assert longest < 500, f"a frame took {longest:.0f} ms"
    assert share < 1.0, f"{share:.0%} of a core"
    watched.end()


def test_eight_tabs_share_one_stream(browser: Browser, site: Site, tmp_path: Path) -> None:
    watched = Watched(browser, site, 1280, tmp_path)
    pages = [watched.context.new_page() for _ in range(8)]
    for page in pages:
        page.goto(f"{site.url}/")
        expect(page.get_by_role("heading", name="Records")).to_be_attached()

    async def start(client: Client) -> None:
        await client.start("order", {}, id="seen-everywhere")

    site.do(start)

    for page in pages:
        expect(page.get_by_role("link", name="seen-everywhere")).to_be_visible()
    watched.end()


@pytest.mark.parametrize("wide", [1280, 390])
def test_a_person_answers_by_link_and_the_link_is_used_up(
    browser: Browser, site: Site, tmp_path: Path, wide: int
) -> None:
    async def asked(client: Client) -> str:
        await client.start("publish", {"keyword": HTML}, id="a1")
        while (await client.get("a1")).status is not Status.NEEDS_APPROVAL:
            await client.clock.sleep(0.02)
        url, _ = await make_link(Setup(client), "a1", "ann@x.eu")
        return url

    url = site.do(asked)
    watched = Watched(browser, site, wide, tmp_path)
    watched.page.goto(site.url + url)
    expect(watched.page.get_by_text(f"About {HTML}.").first).to_be_visible()
    watched.fits()
    watched.shot("link")
    watched.page.get_by_role("button", name="approve").click()
    expect(watched.page.get_by_role("heading", name="Thank you")).to_be_visible()
    watched.end()

    again = Watched(browser, site, wide, tmp_path)
    again.page.goto(site.url + url)
    expect(again.page.get_by_role("heading", name="This link does not work")).to_be_visible()
    again.problems.clear()  # the console tells of the refusal
    again.end()


def test_from_elsewhere_a_viewer_signs_in_and_has_nothing_to_act_with(browser: Browser, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"

    async def token() -> str:
        async with Client(url) as client:
            return (await make_token(client.ledger, "vera", Role.VIEWER))[0]

    with ThreadPoolExecutor(1) as other:
        text = other.submit(lambda: asyncio.run(token())).result()
    with running(url, host="0.0.0.0") as site:
        site.host = "127.0.0.1"
        watched = Watched(browser, site, 1280, tmp_path)
        page = watched.go()
        page.wait_for_url("**/login")
        watched.shot("login")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("not known")
        watched.problems.clear()  # the console tells of the refusal
        page.get_by_label("Token").fill(text)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("button", name="Who acts: vera, viewer")).to_be_visible()
        expect(page.get_by_role("button", name="Halt")).to_have_count(0)
        watched.end()
