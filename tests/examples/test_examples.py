"""The examples do what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples import broker, contacts, publishing, saga, status_table, tracker
from quire import Status, aopen
from quire.errors import IllegalMove
from quire.run.dependencies import made
from quire.testing import Trial, every_kill


async def test_the_status_table_names_both_states_in_its_refusal() -> None:
    async with aopen("memory:", workflows=[status_table.tasks]) as client:
        await client.start("tasks", {"what": "water the plants"}, id="t1")
        await client.move("t1", "IN_PROGRESS")

        with pytest.raises(IllegalMove, match=r"Cannot move from IN_PROGRESS to PENDING\. .*'COMPLETED', 'FAILED'"):
            await client.move("t1", "PENDING")

        await client.move("t1", "COMPLETED")
        record = await client.get("t1")
        assert (record.status, record.step) == (Status.DONE, "COMPLETED")


async def test_twenty_tasks_at_a_cap_of_five_give_a_sorted_manifest() -> None:
    async with aopen("memory:", workflows=[broker.manifest, broker.task]) as client:
        handle = await client.start(broker.manifest, {"tasks": 20, "seconds": 0.02}, id="m")
        most = 0
        worker = client.worker()

        def watch(_record: object) -> None:
            nonlocal most
            most = max(most, len([one for one in worker.holds.passes.values() if one.workflow.name == "task"]))

        worker.watchers.append(watch)
        await worker.run(until_idle=True)

        result = await handle.result(timeout="1s")
        assert [row["token"] for row in result] == [f"token-{number:02}" for number in range(20)]
        assert 0 < most <= 5


@every_kill
async def test_an_import_goes_on_in_the_middle_of_its_loop() -> None:
    book = contacts.make_deps()
    async with Trial(contacts.contacts, deps=book) as trial:
        record = await trial.start({"count": 1000})
        await trial.settle()

        assert record.result == 1000
        assert set(book.imported) == set(range(1000))
        assert len(book.imported) <= 1200  # at most the items since the last save are repeated


@every_kill
async def test_a_trip_that_cannot_be_booked_is_taken_back_newest_first() -> None:
    agency = saga.make_deps()
    agency.full.add("car to Lisbon")
    async with Trial(saga.trip, deps=agency) as trial:
        record = await trial.start({"to": "Lisbon"})
        await trial.settle()

        assert record.status == "CANCELLED" and "no car to Lisbon left" in record.error
        assert agency.booked == []
        if not trial.struck:
            assert agency.log == ["+ flight to Lisbon", "+ hotel to Lisbon", "- hotel to Lisbon", "- flight to Lisbon"]


async def test_an_article_is_drafted_approved_published_and_archived() -> None:
    site = publishing.make_deps()
    async with Trial(publishing.article, deps=site) as trial:
        record = await trial.start(publishing.Article(keyword="dashboards"), id="kw_dashboards")
        await trial.settle()
        assert record.step == "APPROVE"
        await record.answer("approve", edits={"draft": "Better."})
        await trial.settle()

        assert record.status == "DONE" and record.result.startswith("https://example.org/")
        assert list(site.posts.values()) == ["Better."]
        assert record.data.metrics == "metrics/kw_dashboards.json"


@pytest.mark.browser
async def test_a_page_whose_layout_broke_is_mended_and_one_record_is_retried(
    tmp_path: Path, browser_type_launch_args: dict[str, Any]
) -> None:
    async with (
        made(tracker.make_deps) as browser,
        aopen(f"{tmp_path}/ledger.db", workflows=[tracker.submission], deps=browser) as client,
    ):
        browser.patience = 0.5
        await client.start("submission", {"name": "Acme"}, id="s1")
        await client.work()
        first = await client.get("s1")
        assert first.status is Status.DONE, first.last_error
        browser.page.broken = True
        await client.start("submission", {"name": "Bolt"}, id="s2")
        await client.work()
        broken = await client.get("s2")
        assert broken.status is Status.ERROR
        assert "the page has no field 'Name' any more" in (broken.last_error or "")

        browser.page.broken = False
        await client.retry("s2", by="ann@x.eu")
        await client.work()

        assert [(await client.get(record)).status for record in ("s1", "s2")] == [Status.DONE] * 2
        assert sorted(browser.page.entries.values()) == ["TR-1 Acme", "TR-2 Bolt"]
        assert (await client.get("s2")).note == "tracked as TR-2 Bolt"
