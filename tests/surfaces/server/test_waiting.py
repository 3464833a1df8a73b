"""The approvals page in a real browser: all that waits for people, and what a halt holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from quire import Run, Workflow
from quire.client.client import Client
from quire.model.record import Status
from tests.surfaces.server.conftest import Site, running
from tests.surfaces.server.watched import Watched

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("wide", [1280, 390])
def test_a_halt_says_what_it_stops_and_holds_and_a_resume_what_goes_on(browser: Browser, site: Site, wide: int) -> None:
    watched = Watched(browser, site, wide)
    page = watched.go("approvals")
    expect(page.get_by_text("Nobody is asked anything.")).to_be_visible()

    async def start(client: Client) -> None:
        for number in range(3):
            await client.start("publish", {"keyword": f"word {number}"}, id=f"art-{number}")

    site.do(start)
    expect(page.locator("article.card")).to_have_count(3)
    page.get_by_role("button", name="Halt").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It stops 3 records: 0 running, 3 asking a person.")
    watched.fits()
    page.get_by_label("Reason, shown on every page").fill("the printer burns")
    dialog.get_by_role("button", name="Halt").click()

    expect(page.get_by_text("A halt holds 3 records that ask a person.")).to_be_visible()
    expect(page.get_by_text("Nobody is asked anything.")).to_have_count(0)
    watched.fits()
    watched.shot("held")
    page.get_by_role("button", name="Resume").click()
    expect(dialog).to_contain_text("The halt holds 3 records, 3 of which asked a person.")
    dialog.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("resumed; 3 records go on")).to_be_visible()
    expect(page.locator("article.card")).to_have_count(3)
    assert site.do(lambda client: client.get("art-0")).status is Status.NEEDS_APPROVAL
    watched.end()


def make_offer() -> Workflow[dict[str, Any], str, None]:
    offer: Workflow[dict[str, Any], str, None] = Workflow("offer", result=str)

    @offer.step
    async def ask(run: Run[dict[str, Any]]) -> str:
        return str(await run.ask("Take it?", expires=run.data["expires"], by=run.data["by"]))

    return offer


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Site]:
    """A site where 61 questions wait; the last one that was asked but one expires next."""
    with running(f"sqlite:///{tmp_path}/ledger.db", more=[make_offer()]) as site:

        async def start(client: Client) -> None:
            for number in range(59):
                await client.start("publish", {"keyword": f"word {number}"}, id=f"art-{number:02}")
            await client.start("offer", {"expires": "1h", "by": ["somebody@else.eu"]}, id="soon")
            await client.start("offer", {"expires": "9h", "by": []}, id="later")

        site.do(start)
        yield site


@pytest.mark.parametrize("wide", [1280, 390])
def test_all_that_waits_is_shown_page_by_page_and_what_expires_next_first(
    browser: Browser, full: Site, wide: int
) -> None:
    watched = Watched(browser, full, wide)
    page = watched.go("approvals")
    cards = page.locator("article.card")
    count = page.locator("main").get_by_role("status")
    expect(count).to_have_text("1 to 50 of 61")
    expect(cards).to_have_count(50)
    expect(cards.nth(0)).to_have_attribute("aria-label", "Question of soon")
    expect(cards.nth(1)).to_have_attribute("aria-label", "Question of later")
    watched.fits()
    watched.shot("waiting")

    # What is typed stays, whatever is shown meanwhile.
    cards.nth(1).get_by_label("Note").fill("cheap enough")
    page.get_by_role("button", name="Next").click()
    expect(count).to_have_text("51 to 61 of 61")
    expect(cards).to_have_count(12)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.reload()
    expect(count).to_have_text("51 to 61 of 61")
    expect(cards).to_have_count(11)
    page.get_by_role("button", name="Previous").click()
    expect(count).to_have_text("1 to 50 of 61")

    # One is answered: the next comes in for it.
    page.get_by_role("article", name="Question of later").get_by_role("button", name="approve").click()
    expect(count).to_have_text("1 to 50 of 60")
    expect(cards).to_have_count(50)

    # What others are asked is not mine; a workflow and another order are chosen, too.
    page.get_by_label("Mine").check()
    expect(count).to_have_text("1 to 50 of 59")
    expect(page.get_by_role("article", name="Question of soon")).to_have_count(0)
    page.get_by_label("Workflow").select_option("publish")
    page.get_by_label("Mine").uncheck()
    expect(count).to_have_text("1 to 50 of 59")
    page.get_by_label("Workflow").select_option("offer")
    expect(cards).to_have_count(1)
    page.get_by_label("Mine").check()
    expect(page.get_by_text("Nothing that fits this choice waits for an answer.")).to_be_visible()
    page.get_by_label("Workflow").select_option("")
    page.get_by_label("Order").select_option("age")
    expect(cards).to_have_count(50)
    assert page.url.endswith("#/approvals?by=age&mine=1")
    watched.fits()
    watched.end()


def test_questions_are_answered_by_keys(browser: Browser, full: Site) -> None:
    def status(name: str) -> Status:
        return full.do(lambda client: client.get(name)).status

    watched = Watched(browser, full, 1280)
    page = watched.go("approvals?by=age&workflow=publish")
    cards = page.locator("article.card")
    expect(cards).to_have_count(50)
    names = [str(card.get_attribute("aria-label")).removeprefix("Question of ") for card in cards.all()]
    page.keyboard.press("a")  # none is chosen yet
    page.keyboard.press("j")
    expect(page.get_by_role("article", name=f"Question of {names[0]}")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.get_by_role("article", name=f"Question of {names[1]}")).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_text(f"{names[1]}: approve")).to_be_visible()
    expect(page.get_by_role("article", name=f"Question of {names[2]}")).to_be_focused()
    page.keyboard.press("r")
    expect(page.get_by_text(f"{names[2]}: reject")).to_be_visible()

    # What is typed is text, and after g a letter goes to a page.
    cards.nth(0).get_by_label("Note").fill("")
    page.keyboard.type("jar")
    expect(cards.nth(0).get_by_label("Note")).to_have_value("jar")
    page.keyboard.press("Escape")
    cards.nth(1).focus()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("button", name="Start a record")).to_be_visible()
    assert {status(name) for name in (names[0], names[3])} == {Status.NEEDS_APPROVAL}
    assert Status.NEEDS_APPROVAL not in {status(name) for name in names[1:3]}
    watched.end()
