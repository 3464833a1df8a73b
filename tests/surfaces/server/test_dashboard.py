"""The dashboard in a real Chromium, at the width of a desk and of a telephone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from quire.agents import demo, mission
from quire.client.client import Client
from quire.model.record import Status
from quire.surfaces.server.auth.gate import Setup
from quire.surfaces.server.auth.links import make_link
from quire.surfaces.server.auth.tokens import Role, make_token
from tests.surfaces.server.conftest import BROKEN, Site, running
from tests.surfaces.server.watched import Watched

pytestmark = pytest.mark.browser

#: What must be shown and never run.
HTML = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


@pytest.fixture
def colony(tmp_path: Path) -> Iterator[Site]:
    """A site that also knows a mission; its model answers from a script."""
    BROKEN.clear()
    with running(f"sqlite:///{tmp_path}/ledger.db", more=[mission(demo.blueprint(delay=0.05))]) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("wide", [1280, 390])
def test_start_watch_approve_retry_and_halt(browser: Browser, site: Site, wide: int) -> None:
    BROKEN.add("broken")
    watched = Watched(browser, site, wide)
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
    page.goto(f"{site.url}/#/record/art-00")
    expect(page.get_by_label("Trace of the last failed try")).to_contain_text('raise Fail(f"the site')
    watched.fits()
    page.goto(f"{site.url}/#/errors")
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
    expect(page.get_by_role("group", name="The steps of publish and the records at each")).to_be_visible()
    expect(page.get_by_role("link", name="review: no record")).to_be_visible()
    watched.fits()
    watched.shot("machine")

    # Halt: seen on every page, with its reason, until it is resumed.
    page.get_by_role("button", name="Halt").click()
    page.get_by_label("Reason, shown on every page").fill("the printer burns")
    page.get_by_role("dialog").get_by_role("button", name="Halt").click()
    for place in ("", "approvals", "errors", "record/tea-1", "machine", "missions", "workers"):
        page.goto(f"{site.url}/#/{place}")
        expect(page.get_by_text("HALTED: the printer burns")).to_be_visible()
    watched.shot("halted")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#banner")).not_to_contain_text("HALTED")
    page.get_by_role("button", name="Dark or light").click()
    page.goto(f"{site.url}/#/record/art-05")
    expect(page.locator("svg.gantt")).to_be_visible()
    watched.shot("dark")

    assert page.title() == "art-05 · Quire"
    assert site.do(lambda client: client.get("art-07")).status is Status.DONE
    watched.end()


@pytest.mark.slow
@pytest.mark.parametrize("wide", [1280, 390])
def test_a_mission_is_read_as_it_goes_on(browser: Browser, colony: Site, wide: int) -> None:
    watched = Watched(browser, colony, wide)
    page = watched.go("missions")
    expect(page.get_by_text("There is no mission yet.")).to_be_visible()

    async def start(client: Client) -> None:
        await client.start("mars-colony", {}, id="mars-1")

    colony.do(start)
    page.get_by_role("link", name="mars-1").click()

    # Its agents stand side by side, and their turns come without being asked for.
    engineer = page.get_by_role("region", name="CHAIN-MARS-ENGINEER")
    expect(engineer.get_by_role("article", name="CHAIN-MARS-ENGINEER, turn 3")).to_contain_text("islands by default")
    expect(page.get_by_role("article", name="CHAIN-MARS-GOVERNOR, turn 1")).to_contain_text("A council of seven")
    tops = [region.bounding_box() for region in page.locator(".agent").all()]
    assert len({round(box["y"]) for box in tops if box}) == 1
    expect(page.get_by_role("heading", name="CHAIN-MARS-MANIFESTO makes one of it")).to_be_visible()
    expect(page.locator(".result .said")).to_contain_text("Manifesto")
    expect(page.get_by_text("9 of 9", exact=False).first).to_be_visible()
    expect(page.get_by_text("10 calls").first).to_be_visible()
    watched.fits()
    watched.shot("mission")
    page.get_by_role("link", name="Missions").first.click()
    expect(page.get_by_role("cell", name="DONE")).to_be_visible()
    watched.end()


def test_what_a_person_edits_is_shown_as_a_difference_before_they_approve(browser: Browser, site: Site) -> None:
    async def start(client: Client) -> None:
        await client.start("publish", {"keyword": HTML}, id="a1")

    site.do(start)
    watched = Watched(browser, site, 1280)
    page = watched.go("approvals")
    page.get_by_label("draft (may be edited)").fill(f"Better words about {HTML}.")

    expect(page.locator(".change del")).to_have_text(f"- About {HTML}.")
    expect(page.locator(".change ins")).to_have_text(f"+ Better words about {HTML}.")
    watched.shot("edited")
    page.get_by_role("button", name="approve").click()
    expect(page.get_by_text("Nobody is asked anything.")).to_be_visible()
    page.goto(f"{site.url}/#/record/a1")
    expect(page.get_by_text(f"Better words about {HTML}.").first).to_be_visible()
    assert page.title() == "a1 · Quire"
    watched.end()


def test_the_record_page_compares_versions_that_it_has_seen(browser: Browser, site: Site) -> None:
    async def start(client: Client) -> None:
        await client.start("order", {"amount": 1}, id="o1")

    async def edit(client: Client) -> None:
        await client.edit("o1", {"amount": 2, "note": "more"})

    site.do(start)
    watched = Watched(browser, site, 1280)
    page = watched.go("record/o1")
    expect(page.locator(".pill").first).to_have_text("WAITING")
    site.do(edit)
    page.get_by_label("compared with").select_option(index=1)

    expect(page.get_by_role("row", name="amount")).to_contain_text("1 → 2")
    expect(page.get_by_role("row", name="note")).to_contain_text("more")
    watched.end()


def test_a_record_that_was_edited_twice_is_compared_with_its_first_version(browser: Browser, site: Site) -> None:
    ann = "ann@a-department-with-a-long-name.example.com"

    async def prepare(client: Client) -> None:
        await client.pause("order")  # nothing runs: every version is a person's
        await client.start("order", {"amount": 1, "label": "plain", "text": "short"}, id="o1")
        await client.edit("o1", {"amount": 2, "label": "plain", "text": "long " * 1000, "note": HTML}, by=ann)

    site.do(prepare)
    watched = Watched(browser, site, 1280)
    page = watched.go("record/o1")

    # The second edit is made on the page; the first version this tab has never seen.
    page.get_by_role("button", name="Edit data…").click()
    page.get_by_label("Data (JSON)").fill(json.dumps({"amount": 3, "label": HTML, "text": "end"}))
    page.get_by_role("button", name="Save").click()
    choice = page.get_by_label("Version 3, compared with")
    options = choice.locator("option")
    expect(options).to_have_count(3)
    assert re.fullmatch(rf"version 2 · edited by {re.escape(ann)} · 20\d\d-.*Z", options.nth(1).inner_text())
    assert re.fullmatch(r"version 1 · started by tester · 20\d\d-.*Z", options.nth(2).inner_text())

    choice.select_option("1")
    data = page.locator("section.card").filter(has=choice)
    expect(data.get_by_role("caption")).to_have_text("Changed since version 1")
    expect(data.get_by_role("row", name="amount")).to_contain_text("1 → 3")
    expect(data.get_by_role("row", name="label").locator("del")).to_have_text("- plain")
    expect(data.get_by_role("row", name="label").locator("ins")).to_have_text(f"+ {HTML}")
    expect(data.get_by_role("row", name="text")).to_contain_text("What it was is not known")
    expect(data.get_by_role("row", name="note")).to_have_count(0)  # it came with the second and went with the third
    watched.fits()
    watched.shot("versions")

    choice.select_option("2")
    expect(data.get_by_role("row", name="note").locator("del")).to_have_text(HTML)
    line = page.locator(".log details").filter(has_text="edited by ann")
    line.locator("summary").click()
    expect(line.get_by_role("row", name="amount")).to_contain_text("1 → 2")
    expect(line.get_by_role("row", name="text")).to_contain_text("What it was is not known")
    watched.fits()
    watched.shot("line")
    watched.wide = 390
    page.set_viewport_size({"width": 390, "height": 844})
    expect(choice).to_be_visible()
    watched.fits()
    assert page.title() == "o1 · Quire"
    watched.end()


def test_records_named_by_dots_are_opened_and_acted_on(browser: Browser, site: Site) -> None:
    async def started(client: Client) -> None:
        for name in (".", ".."):
            await client.start("order", {}, id=name)

    site.do(started)
    watched = Watched(browser, site, 1280)
    page = watched.go()
    for name in (".", ".."):
        page.get_by_role("link", name="Records").first.click()
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.get_by_text("CANCELLED").first).to_be_visible()
    watched.end()


def test_eight_tabs_share_one_stream(browser: Browser, site: Site) -> None:
    watched = Watched(browser, site, 1280)
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
def test_a_person_answers_by_link_and_the_link_is_used_up(browser: Browser, site: Site, wide: int) -> None:
    async def asked(client: Client) -> str:
        await client.start("publish", {"keyword": HTML}, id="a1")
        while (await client.get("a1")).status is not Status.NEEDS_APPROVAL:
            await client.clock.sleep(0.02)
        url, _ = await make_link(Setup(client), "a1", "ann@x.eu")
        return url

    url = site.do(asked)
    watched = Watched(browser, site, wide)
    watched.page.goto(site.url + url)
    expect(watched.page.get_by_text(f"About {HTML}.").first).to_be_visible()
    watched.fits()
    watched.shot("link")
    watched.page.get_by_role("button", name="approve").click()
    expect(watched.page.get_by_role("heading", name="Thank you")).to_be_visible()
    watched.end()

    again = Watched(browser, site, wide)
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
        watched = Watched(browser, site, 1280)
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


def test_a_problem_of_a_table_of_the_sheet_is_named_beside_the_errors(browser: Browser, site: Site) -> None:
    from quire.surfaces.panel.tables.kept import Kept, save

    async def broken(client: Client) -> None:
        problem = "'Orders' has two columns 'Task_Status', D and E: rename one of them"
        kept = Kept("Orders", "process", begun=True, problem=problem, since=1.8e9)
        assert await save(client.ledger, "book", 7, kept, 0)

    site.do(broken)
    watched = Watched(browser, site, 1280)
    page = watched.go()
    page.goto(f"{site.url}/#/errors")
    expect(page.get_by_text("'Orders' has two columns 'Task_Status', D and E: rename one of them")).to_be_visible()
    expect(page.get_by_text("quire doctor")).to_be_visible()
