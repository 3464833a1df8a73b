"""The grid in a real Chromium: it feels like a sheet, and it stays one when a hundred thousand records are in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from quire.client.client import Client
from quire.model.record import Status
from tests.surfaces.server.conftest import Site, running
from tests.surfaces.server.watched import Watched

pytestmark = pytest.mark.browser


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(f"sqlite:///{tmp_path}/ledger.db") as found:
        yield found


def seeded(site: Site, count: int) -> None:
    async def many(client: Client) -> None:
        await client.pause(reason="only the grid is looked at")
        await client.start_many("order", [{"n": n} for n in range(count)], ids=[f"row-{n:05}" for n in range(count)])

    site.do(many)


def ids(page: Page) -> list[str]:
    """The records in sight, from top to bottom."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll(".grid-row:not([hidden])")]
            .sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex"))
            .map((row) => row.querySelector("a").textContent)"""
    )
    return found


@pytest.mark.slow
def test_ten_thousand_rows_that_change_stay_smooth_and_cost_little(browser: Browser, site: Site) -> None:
    seeded(site, 10_000)
    watched = Watched(browser, site, 1280)
    page = watched.go()
    expect(page.get_by_text("10,000 records")).to_be_visible(timeout=30_000)

    async def changing(client: Client) -> float:
        """Fifty changes a second for four seconds; how much of a core the server, the worker and these took."""
        loop, used = asyncio.get_running_loop(), time.process_time()
        begun = loop.time()
        for number in range(200):
            await client.edit(f"row-{number * 37 % 10_000:05}", {"n": -number})
            await client.clock.sleep(max(0.0, begun + number / 50 - loop.time()))
        return (time.process_time() - used) / (loop.time() - begun)

    changed = asyncio.run_coroutine_threadsafe(changing(site.client), site.loop)
    seen = page.evaluate(
        """async () => {
            const body = document.querySelector(".grid-body");
            let added = 0, frames = 0, longest = 0, last = performance.now();
            const watcher = new MutationObserver((told) => {
                for (const one of told) for (const node of one.addedNodes) added += node.nodeType === 1 ? 1 : 0;
            });
            watcher.observe(body, { childList: true, subtree: true });
            const end = last + 3500;
            while (performance.now() < end) {
                await new Promise(requestAnimationFrame);
                const now = performance.now();
                longest = Math.max(longest, now - last);
                last = now;
                frames += 1;
            }
            watcher.disconnect();
            return { added, frames, longest, nodes: document.querySelectorAll("*").length };
        }"""
    )
    share = changed.result(60)
    expect(page.locator(".grid-row").filter(has_text="row-07363")).to_contain_text("n: -199", timeout=10_000)
    watched.shot("many")

    # The page is as small as if there were thirty records, and a change makes no row anew.
    assert seen["nodes"] < 800
    assert seen["added"] < 200, "rows were made anew"
    assert seen["longest"] < 500, f"a frame took {seen['longest']:.0f} ms"
    assert share < 1.0, f"{share:.0%} of a core"
    watched.end()


def test_a_hundred_thousand_rows_are_filtered_sorted_and_scrolled(browser: Browser, site: Site) -> None:
    watched = Watched(browser, site, 1280)
    page = watched.go()
    expect(page.get_by_text("There is no record yet.")).to_be_visible()

    told = page.evaluate(
        """async () => {
            const { store, COL } = await import("/static/store.js");
            const { arranged, rearranged } = await import("/static/order.js");
            const statuses = ["PENDING", "RUNNING", "DONE"];
            const row = (n, version) => [`r-${String(n).padStart(6, "0")}`, "order", statuses[n % 3], "wait", 0, 0,
                1e9 + ((n * 7919 + version * 31) % 100003), 1e9, null, version, `{"n":${n}}`, ""];
            for (let n = 0; n < 100000; n += 1) store.rows.set(row(n, 1)[0], row(n, 1));
            const statuses_ = new Set(["DONE"]);
            const state = { text: "", statuses: statuses_, workflow: "", step: "", sort: "updated", down: true };
            const before = arranged(store.rows, state);
            const changed = new Set();
            for (let n = 0; n < 500; n += 1) {
                const fresh = row((n * 197) % 100000, 2);
                fresh[COL.status] = statuses[n % 3];
                store.rows.set(fresh[0], fresh);
                changed.add(fresh[0]);
            }
            const after = rearranged(before, store.rows, state, changed);
            const whole = arranged(store.rows, state);
            let reads = 0;  // of the column that the order goes by
            const seen = { get: (row_, place) => { reads += place === String(COL.updated); return row_[place]; } };
            const read = new Map([...store.rows].slice(0, 3000).map(([id, row_]) => [id, new Proxy(row_, seen)]));
            const start = arranged(read, state);
            const counted = (work) => { reads = 0; work(); return reads; };
            const few = new Set([...read.keys()].slice(0, 30));
            const quick = counted(() => rearranged(start, read, state, few));
            const slow = counted(() => arranged(read, state));
            const same = after.length === whole.length && after.every((id, n) => id === whole[n]);
            return { same, quick, slow };
        }"""
    )
    page.get_by_label("Filter by id or text").fill("r-0")
    expect(page.get_by_text("100,000 records")).to_be_visible()
    page.get_by_role("columnheader", name="Record").get_by_role("button").click()
    page.locator(".grid-body").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="r-099999")).to_be_visible()
    page.get_by_label("Filter by id or text").fill("r-04242")

    expect(page.get_by_text("10 of 100,000 records")).to_be_visible()
    assert ids(page) == [f"r-04242{n}" for n in range(10)]
    assert told["same"]
    assert 0 < told["quick"] < told["slow"] / 3, "a few changes cost as much as sorting everything"
    assert page.locator("*").count() < 800
    watched.end()


def test_the_grid_is_driven_by_the_keyboard_alone(browser: Browser, site: Site) -> None:
    seeded(site, 60)
    watched = Watched(browser, site, 1280)
    page = watched.go("?sort=id")
    expect(page.get_by_text("60 records")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("row-0001")
    expect(page.get_by_text("10 of 60 records")).to_be_visible()
    page.keyboard.press("ArrowDown")  # from the filter into the rows
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(page.get_by_text("3 selected")).to_be_visible()
    watched.shot("selected")
    page.keyboard.press("c")
    page.get_by_label("Reason").fill("not needed")
    page.keyboard.press("Enter")
    expect(page.get_by_text("3 records cancelled")).to_be_visible()

    expect(page.get_by_role("button", name="CANCELLED")).to_contain_text("3")
    for name in ("row-00011", "row-00012", "row-00013"):
        assert site.do(lambda client, name=name: client.get(name)).status is Status.CANCELLED  # type: ignore[misc]
    page.keyboard.press("Control+a")
    expect(page.get_by_text("10 selected")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("selected", exact=False)).to_have_count(0)
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="row-00010")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page.get_by_role("heading", name="Machines")).to_be_visible()
    watched.end()


def test_the_address_keeps_filter_and_order(browser: Browser, site: Site) -> None:
    seeded(site, 30)
    watched = Watched(browser, site, 1280)
    page = watched.go()
    page.get_by_label("Filter by id or text").fill("row-0002")
    page.get_by_role("button", name="PENDING").click()
    page.get_by_role("columnheader", name="Record").get_by_role("button").click()
    expect(page.get_by_text("10 of 30 records")).to_be_visible()
    page.reload()

    expect(page.get_by_text("10 of 30 records")).to_be_visible()
    assert ids(page) == [f"row-{n:05}" for n in range(20, 30)]
    expect(page.get_by_role("button", name="PENDING")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="row-00025").click()
    expect(page.get_by_role("heading", name="row-00025")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("10 of 30 records")).to_be_visible()
    watched.end()


def test_shift_selects_all_rows_between_two(browser: Browser, site: Site) -> None:
    seeded(site, 20)
    watched = Watched(browser, site, 1280)
    page = watched.go("?sort=id")
    page.get_by_label("Select row-00003").click()
    page.get_by_label("Select row-00009").click(modifiers=["Shift"])
    expect(page.get_by_text("7 selected")).to_be_visible()
    page.get_by_label("Select row-00005").click()

    expect(page.get_by_text("6 selected")).to_be_visible()
    expect(page.get_by_label("Select row-00009")).to_be_checked()
    expect(page.get_by_label("Select row-00005")).not_to_be_checked()
    watched.end()
