"""What Google does on bad days, what it costs on quiet ones, and that the records never notice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from quire import Workflow
from quire.client.client import Client
from quire.clock import SYSTEM
from quire.errors import QuireError
from quire.model.change import Query
from quire.model.record import Status
from quire.surfaces.panel import Panel
from quire.surfaces.waking import leave_hint
from quire.testing import ToldClock
from tests.panel.conftest import POSTED, Sheet, asking, make_leads, make_publish, opened
from tests.panel.test_inbox import add, companies, settled


async def test_a_storm_of_refusals_and_lost_answers_loses_nothing(sheet: Sheet) -> None:
    chance = random.Random(7)
    async with opened(sheet) as panel:
        for n in range(5):
            await panel.client.start("publish", {"keyword": f"k{n}"}, id=f"p{n}")
        await panel.client.work()
        await settled(panel)
        for n in range(5):
            sheet.type(f"p{n}", "command", "APPROVE")
            add(sheet, n + 2, f"firm{n}", "1")
        for _ in range(12):
            sheet.calm()
            fault = chance.choice(["rate_limit", "error", "reset", "lost_answer", "error_after", "stale_read"])
            more = {"versions": 1} if fault == "stale_read" else {}
            sheet.fault(fault, count=1, skip=chance.randint(0, 2), kind="sheets", **more)
            try:
                await panel.look()
            except QuireError:
                continue
            finally:
                await panel.client.work()
        sheet.calm()
        for _ in range(3):
            await settled(panel)

        assert sorted(POSTED) == [f"k{n}" for n in range(5)]
        assert await companies(panel) == [f"firm{n}" for n in range(5)]
        assert {row["status"] for row in sheet.rows()} == {"DONE"} and len(sheet.rows()) == 10
        assert all(row["reply"].startswith("APPROVE: done") for row in sheet.rows() if row["record_id"][0] == "p")


class Watched(Panel):
    """A panel that tells when it has looked."""

    looked: asyncio.Queue[bool]

    async def look(self, *, at_once: bool = False) -> bool:
        went_well = False
        try:
            found = await super().look(at_once=at_once)
            went_well = True
            return found
        finally:
            self.looked.put_nowait(went_well)


async def test_a_panel_that_cannot_be_reached_is_in_nobodys_way(sheet: Sheet) -> None:
    async with Client("memory:", workflows=[make_publish()]) as client, Watched(client, sheet.url) as panel:
        panel.looked = asyncio.Queue()
        sheet.fault("error", status=403, message="no", count=None, kind="sheets")
        running = asyncio.ensure_future(panel.run())
        assert await panel.looked.get() is False
        await client.start("publish", {"keyword": "tea"}, id="a1")
        await client.work()
        assert (await client.get("a1")).status is Status.NEEDS_APPROVAL

        sheet.calm()
        panel.wake()
        while not await panel.looked.get():
            panel.wake()
        panel.stop()
        await running
        assert sheet.row("a1")["status"] == "NEEDS_APPROVAL" and client.wakers == []


async def test_a_call_to_a_process_without_the_panel_wakes_it_through_the_ledger(
    sheet: Sheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.surfaces.panel.panel.HINT_SECONDS", 0.01)
    monkeypatch.setattr("quire.surfaces.panel.panel.SHORTEST_PAUSE", 0.0)
    monkeypatch.setattr(Watched, "pause", (600.0, 600.0))
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    async with Client(ledger) as client, Client(ledger) as elsewhere, Watched(client, sheet.url) as panel:
        panel.looked = asyncio.Queue()
        running = asyncio.ensure_future(panel.run())
        await panel.looked.get()
        while panel._hint < 0:
            await SYSTEM.sleep(0.01)
        assert panel.looked.empty()

        await leave_hint(elsewhere.ledger)

        await asyncio.wait_for(panel.looked.get(), 20)
        panel.stop()
        await running


async def test_an_idle_panel_reads_once_a_look_and_writes_nothing(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        await settled(panel)
        sheet.forget_counters()
        for _ in range(5):
            assert await panel.look() is False

        assert sheet.counters() == {"sheets.spreadsheets.values.batchGetByDataFilter": 5}
        assert panel.pause == (5.0, 5.0)  # 12 reads a minute


async def test_before_a_ledger_in_the_same_sheet_an_idle_minute_stays_within_its_bar(
    sheet: Sheet, clock: ToldClock
) -> None:
    """Worker and panel together: at most 12 reads and 1 write a minute."""
    async with Client(sheet.url, workflows=[make_publish()], clock=clock) as client, Panel(client, sheet.url) as panel:
        await asking(panel)
        await panel.look()
        await panel.look()
        busy, idle = panel.pause
        assert (busy, idle) == (10.0, 25.0)
        sheet.forget_counters()
        minutes = 10
        for _ in range(int(minutes * 60 / idle)):
            clock.advance(idle)
            await panel.look()
        counted = sheet.counters()
        reads = sum(n for name, n in counted.items() if "atchUpdate" not in name)
        writes = sum(n for name, n in counted.items() if "atchUpdate" in name)

        # The worker's own 6 reads, and its beats, come on top.
        assert 4 < reads / minutes <= 6 and writes / minutes <= 0.7, counted


async def test_the_panel_stands_in_front_of_a_ledger_in_the_same_sheet(sheet: Sheet, clock: ToldClock) -> None:
    flows: list[Workflow[Any, Any, Any]] = [make_publish(), make_leads()]
    POSTED.clear()
    async with Client(sheet.url, workflows=flows, clock=clock) as client, Panel(client, sheet.url) as panel:
        await asking(panel)
        sheet.type("a1", "command", "APPROVE")
        add(sheet, 2, "Acme", "5")
        await settled(panel)
        await settled(panel)

        assert sheet.row("a1")["status"] == "DONE" and POSTED == ["tea"]
        assert sheet.rows("Leads")[0]["record_status"] == "DONE"
        assert len(await client.ledger.find(Query())) == 2


async def test_the_panel_stands_in_front_of_postgresql(sheet: Sheet, postgres_url: str) -> None:
    async with opened(sheet, postgres_url) as panel:
        await asking(panel)
        sheet.type("a1", "command", "APPROVE")
        await panel.look()
        await panel.client.work()
        await panel.look()

        assert sheet.row("a1")["status"] == "DONE" and POSTED == ["tea"]
