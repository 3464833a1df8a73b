"""The examples do what they show."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from examples import broker, onboarding, publishing, saga, status_table, tracker
from quire import Status, aopen
from quire.errors import IllegalMove
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
            most = max(most, len([hold for hold in worker.holds.values() if hold.workflow.name == "task"]))

        worker.watchers.append(watch)
        await worker.run(until_idle=True)

        result = await handle.result(timeout="1s")
        assert [row["token"] for row in result] == [f"token-{number:02}" for number in range(20)]
        assert 0 < most <= 5


@every_kill
async def test_onboarding_goes_on_in_the_middle_of_its_loop() -> None:
    world = onboarding.make_deps()
    async with Trial(onboarding.onboarding, deps=world) as trial:
        record = await trial.start({"client": "Acme", "contacts": 1000})
        await trial.settle()

        assert record.result == {"folder": "folder of Acme", "imported": 1000}
        assert set(world.imported) == set(range(1000))
        assert len(world.imported) <= 1200  # at most the items since the last save are repeated
        assert world.mails == ["Acme"]


@every_kill
async def test_a_trip_that_cannot_be_booked_is_taken_back_newest_first() -> None:
    agency = saga.make_deps()
    agency.full.add("car")
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


class Tracker(BaseHTTPRequestHandler):
    """The tracker's page; ``broken`` renames its field."""

    broken = False
    entries: dict[str, str] = {}  # noqa: RUF012 - one tracker per test

    def do_GET(self) -> None:
        self._page("")

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        reference = self.entries.setdefault(form["key"][0], f"TR-{len(self.entries) + 1} {form['name'][0]}")
        self._page(f'<p role="status">{reference}</p>')

    def _page(self, status: str) -> None:
        label = "Company" if self.broken else "Name"
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


@pytest.fixture
def tracker_url() -> Iterator[str]:
    Tracker.broken, Tracker.entries = False, {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Tracker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.browser
async def test_a_page_whose_layout_broke_is_mended_and_one_record_is_retried(
    tracker_url: str, tmp_path: Path, browser_type_launch_args: dict[str, Any]
) -> None:
    browser = tracker.make_deps()
    browser.patience = 0.5
    async with aopen(f"{tmp_path}/ledger.db", workflows=[tracker.submission], deps=browser) as client:
        await client.start("submission", {"name": "Acme", "url": tracker_url}, id="s1")
        await client.work()
        first = await client.get("s1")
        assert first.status is Status.DONE, first.last_error
        Tracker.broken = True
        await client.start("submission", {"name": "Bolt", "url": tracker_url}, id="s2")
        await client.work()
        broken = await client.get("s2")
        assert broken.status is Status.ERROR
        assert "the page has no field 'Name' any more" in (broken.last_error or "")

        Tracker.broken = False
        await client.retry("s2", by="ann@x.eu")
        await client.work()

        assert [(await client.get(record)).status for record in ("s1", "s2")] == [Status.DONE] * 2
        assert sorted(Tracker.entries.values()) == ["TR-1 Acme", "TR-2 Bolt"]
        assert (await client.get("s2")).note == "tracked as TR-2 Bolt"
