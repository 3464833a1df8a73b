"""The approvals page in a real browser: all that waits for people, and what a halt holds."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from quire.client.client import Client
from quire.model.record import Status
from tests.surfaces.server.conftest import Site
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
