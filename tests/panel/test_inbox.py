"""Rows of an inbox start records, once each, whatever people do with the rows."""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from quire import Cron, Inbox, Run, workflow
from quire.client.client import Client
from quire.errors import QuireError
from quire.model.change import Query
from quire.model.codec import parse
from quire.model.record import Record
from quire.surfaces.panel import Panel
from quire.surfaces.panel import inbox as pure
from quire.testing import ToldClock
from tests.panel.conftest import Lead, Sheet, opened


async def records(panel: Panel) -> list[Record]:
    return await panel.client.ledger.find(Query(workflow="score_lead", limit=1000))


async def companies(panel: Panel) -> list[str]:
    return sorted(parse(record.data)["company"] for record in await records(panel))


async def settled(panel: Panel) -> None:
    """Look until rows have their ids, their records have run, and the sheet says so."""
    await panel.look()
    await panel.look()
    await panel.client.work()
    await panel.look()


def add(sheet: Sheet, row: int, *cells: str) -> None:
    sheet.person("edit", "Leads", range=f"A{row}:C{row}", values=[list(cells)])


async def test_a_row_starts_a_record_once_and_its_result_stands_beside_it(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        assert sheet.grid("Leads")[0] == ["company", "employees", "score", "record_id", "record_status", "record_why"]
        add(sheet, 2, "Acme", "5")
        add(sheet, 3, "Initech", "10")
        await panel.look()
        assert await records(panel) == []  # somebody may still be typing
        await settled(panel)
        await settled(panel)

        assert await companies(panel) == ["Acme", "Initech"]
        rows = {row["company"]: row for row in sheet.rows("Leads")}
        assert rows["Acme"]["record_status"] == "DONE" and rows["Acme"]["score"] == "9"
        assert rows["Initech"]["score"] == "17" and rows["Acme"]["record_id"] != rows["Initech"]["record_id"]
        assert sheet.row(rows["Acme"]["record_id"])["status"] == "DONE"

        sheet.person("edit", "quire_inbox", cell="B2", text="ERROR")
        await panel.look()
        assert {row["record_status"] for row in sheet.rows("Leads")} == {"DONE"}  # what is hidden is put back, too


async def test_a_row_that_lacks_something_says_what_and_starts_when_it_is_there(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        add(sheet, 2, "", "5")
        add(sheet, 3, "Acme", "many")
        await settled(panel)
        why = {row["employees"]: (row["record_status"], row["record_why"]) for row in sheet.rows("Leads")}
        assert why["5"] == ("INCOMPLETE", "needed, but blank: company")
        assert why["many"][0] == "REFUSED" and "employees" in why["many"][1]
        assert await records(panel) == []

        add(sheet, 2, "Initech", "5")
        add(sheet, 3, "Acme", "7")
        await settled(panel)
        assert await companies(panel) == ["Acme", "Initech"]
        assert [row["record_status"] for row in sheet.rows("Leads")] == ["DONE", "DONE"]


async def test_an_edited_row_stays_the_same_record(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        add(sheet, 2, "Acme", "5")
        await settled(panel)
        add(sheet, 2, "Acme Ltd", "5")
        await settled(panel)

        assert await companies(panel) == ["Acme"]
        [row] = sheet.rows("Leads")
        assert row["record_status"] == "DONE" and row["record_why"].startswith("edited after it was started")
        add(sheet, 2, "Acme", "5")
        await settled(panel)
        assert sheet.rows("Leads")[0]["record_why"] == ""


async def test_two_honest_equal_rows_are_two_records_and_a_pasted_copy_is_none(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        add(sheet, 2, "Acme", "5")
        add(sheet, 3, "Acme", "5")
        await settled(panel)
        assert await companies(panel) == ["Acme", "Acme"]

        sheet.person("paste_rows", "Leads", at=2, count=1, to=4)
        await settled(panel)
        assert len(await records(panel)) == 2
        [copy] = [row for row in sheet.rows("Leads") if row["record_status"].startswith("a copy of another row")]
        sheet.person("clear", "Leads", range=f"C{copy['#']}:F{copy['#']}")
        await settled(panel)
        assert len(await records(panel)) == 3


async def test_a_row_that_was_cut_and_pasted_back_is_not_started_again(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        add(sheet, 2, "Acme", "5")
        await settled(panel)
        [before] = sheet.rows("Leads")
        sheet.person("delete_rows", "Leads", at=2, count=1)
        await panel.look()
        add(sheet, 7, "Acme", "5")
        await settled(panel)

        [after] = sheet.rows("Leads")
        assert after["record_id"] == before["record_id"] and len(await records(panel)) == 1


async def test_the_answers_of_a_form_start_at_once_and_formulas_give_their_values(sheet: Sheet) -> None:
    sheet.person("add_sheet", None, title="Leads")  # type: ignore[arg-type]
    sheet.person("edit", "Leads", range="A1:C1", values=[["Timestamp", "Company", "Employees"]])
    sheet.person("edit", "Leads", range="A2:C2", values=[["2026-01-02 10:00:00", "Acme", "=2+3"]])
    async with opened(sheet) as panel:
        await panel.look()
        await panel.client.work()
        await panel.look()

        [record] = await records(panel)
        assert parse(record.data) == {"company": "Acme", "employees": 5, "score": 9}
        assert sheet.rows("Leads")[0]["record_status"] == "DONE" and sheet.rows("Leads")[0]["Company"] == "Acme"


async def test_the_same_answer_of_a_form_is_another_one_and_a_pasted_one_the_same(sheet: Sheet) -> None:
    def answer(when: str) -> None:
        sheet.person("edit", "Leads", range="A2:C2", values=[[when, "Acme", "5"]])

    sheet.person("add_sheet", None, title="Leads")  # type: ignore[arg-type]
    sheet.person("edit", "Leads", range="A1:C1", values=[["Timestamp", "company", "employees"]])
    answer("1/2/2026 10:00:00")
    async with opened(sheet) as panel:
        await settled(panel)
        for when, there in (("1/2/2026 10:00:00", 1), ("3/9/2026 17:00:00", 2)):
            sheet.person("delete_rows", "Leads", at=2, count=1)
            await settled(panel)
            answer(when)
            await settled(panel)
            assert len(await records(panel)) == there


async def test_a_forms_rows_of_before_their_time_counted_are_not_taken_for_edited(sheet: Sheet) -> None:
    sheet.person("add_sheet", None, title="Leads")  # type: ignore[arg-type]
    sheet.person("edit", "Leads", range="A1:B1", values=[["Timestamp", "company"]])
    sheet.person("edit", "Leads", range="A2:B2", values=[["1/2/2026 10:00:00", "Acme"]])
    async with opened(sheet) as panel:
        await settled(panel)
        place = pure.fingerprint({"company": "Acme"})
        new = sheet.grid("quire_inbox")[1][4]
        assert new != place
        panel._inboxes.forget()
        sheet.person("edit", "quire_inbox", cell="E2", text=place)
        await settled(panel)

        assert sheet.rows("Leads")[0]["record_why"] == ""
        assert sheet.grid("quire_inbox")[1][4] == new


class Visit(BaseModel):
    timestamp: dt.datetime
    name: str
    due: dt.date | None = None
    at: dt.time | None = None
    note: str = ""


async def test_dates_and_times_are_those_of_the_book_and_texts_are_as_they_look(sheet: Sheet) -> None:
    @workflow(name="visit", on=[Inbox("Visits")])
    async def visit(run: Run[Visit]) -> None: ...

    change = {"properties": {"timeZone": "America/New_York"}, "fields": "timeZone"}
    sheet(
        "POST", f"/v4/spreadsheets/{sheet.book_id}:batchUpdate", {"requests": [{"updateSpreadsheetProperties": change}]}
    )
    sheet.person("add_sheet", None, title="Visits")  # type: ignore[arg-type]
    sheet.person("edit", "Visits", range="A1:E1", values=[["Timestamp", "name", "due", "at", "note"]])
    rows = [
        ["3/9/2026 17:00:00", "Ann", "", "", "12/24/2026"],
        ["1/9/2026 8:30:15", "Bob", "12/24/2026", "12:30", "50%"],
        ["1/9/2026 8:30:15", "3/4/2026", "12/24/2026 9:00", "", "=1/4"],
    ]
    sheet.person("edit", "Visits", range="A2:E4", values=rows)
    async with Client("memory:", workflows=[visit]) as client, Panel(client, sheet.url) as panel:
        await panel.look()
        await panel.look()
        ann, bob = sorted((parse(record.data) for record in await client.find()), key=lambda data: data["name"])

        assert ann["timestamp"] == "2026-03-09T17:00:00-04:00" and ann["note"] == "12/24/2026"
        assert bob["timestamp"] == "2026-01-09T08:30:15-05:00"
        assert (bob["due"], bob["at"], bob["note"]) == ("2026-12-24", "12:30:00", "50%")
        assert [row["record_status"] for row in sheet.rows("Visits")][2] == "REFUSED"  # a moment is no date


async def test_an_id_that_somebody_types_as_a_value_is_theirs(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        sheet.person("edit", "Leads", range="A2:D2", values=[["Acme", "5", "", "Acme"]])
        await settled(panel)
        add(sheet, 3, "Initech", "5")
        await settled(panel)
        add(sheet, 4, sheet.rows("Leads")[1]["record_id"], "7")
        await settled(panel)

        assert [row["record_status"] for row in sheet.rows("Leads")] == ["DONE", "DONE", "DONE"]
        assert await companies(panel) == sorted(["Acme", "Initech", sheet.rows("Leads")[1]["record_id"]])


async def test_with_a_schedule_rows_wait_for_its_moment(sheet: Sheet, clock: ToldClock) -> None:
    @workflow(name="nightly", on=[Inbox("Night", at=Cron("0 2 * * *"))])
    async def nightly(run: Run[Lead]) -> None: ...

    async with Client("memory:", workflows=[nightly], clock=clock) as client, Panel(client, sheet.url) as panel:
        await panel.look()
        sheet.person("edit", "Night", cell="A2", text="Acme")
        await panel.look(at_once=True)
        assert await client.find() == [] and sheet.rows("Night")[0]["record_status"] == "SCHEDULED"
        clock.advance("3h")
        await panel.look()
        assert len(await client.find()) == 1


async def test_a_lost_hidden_tab_starts_nothing_again(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        add(sheet, 2, "Acme", "5")
        await settled(panel)
        sheet.person("delete_sheet", "quire_inbox")
        await settled(panel)
        await settled(panel)

        assert len(await records(panel)) == 1
        assert [(row["company"], row["record_status"], row["score"]) for row in sheet.rows("Leads")] == [
            ("Acme", "DONE", "9")
        ]


@pytest.mark.parametrize("fault", ["reset", "lost_answer"])
@pytest.mark.parametrize("nth", range(4))
async def test_losing_any_one_write_starts_every_row_once(sheet: Sheet, fault: str, nth: int) -> None:
    async with opened(sheet) as panel:
        await panel.look()
        add(sheet, 2, "Acme", "5")
        add(sheet, 3, "Initech", "6")
        sheet.fault(fault, kind="batchUpdate", write=True, count=1, skip=nth)
        for _ in range(8):
            try:
                await panel.look()
            except QuireError:
                continue
            await panel.client.work()
        sheet.calm()
        await settled(panel)

        assert await companies(panel) == ["Acme", "Initech"]
        assert [row["record_status"] for row in sheet.rows("Leads")] == ["DONE", "DONE"]


@pytest.mark.parametrize("seed", [1, 127])
async def test_random_rounds_of_people_lose_nothing_and_start_nothing_twice(sheet: Sheet, seed: int) -> None:
    """Sorting, inserting, moving, pasting and typing between our reads and our writes, in both kinds of tabs."""
    chance = random.Random(seed)
    async with opened(sheet) as panel:
        for n in range(4):
            await panel.client.start("publish", {"keyword": f"k{n}"}, id=f"p{n}")
        await panel.client.work()
        await panel.look()
        sheet.person("edit", cell="L1", text="mine")
        for n in range(4):
            sheet.type(f"p{n}", "mine", f"note p{n}")
        sheet.person("edit", "Leads", cell="G1", text="own")
        for n in range(5):
            sheet.person("edit", "Leads", cell=f"A{n + 2}", text=f"firm{n}")
            sheet.person("edit", "Leads", cell=f"G{n + 2}", text=f"own firm{n}")
        write = panel.book.write
        gone: set[str] = set()

        def disturb() -> None:
            nonlocal gone
            for tab in ("state_table", "Leads"):
                grid = sheet.grid(tab)
                high, wide = len(grid), "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(grid[0]) - 1]
                match chance.choice(["sort", "insert", "move", "column", "paste", "delete", "nothing"]):
                    case "sort":
                        column, down = chance.randint(1, 7), chance.random() < 0.5
                        sheet.person("sort", tab, range=f"A2:{wide}{high}", column=column, descending=down)
                    case "insert":
                        sheet.person("insert_rows", tab, at=chance.randint(2, high), count=1)
                    case "move":
                        at, to = chance.randint(2, high), chance.randint(2, high)
                        if at != to:
                            sheet.person("move_rows", tab, at=at, count=1, to=to)
                    case "paste" if tab == "state_table":
                        sheet.person("paste_rows", tab, at=chance.randint(2, high), count=1, to=high + 1)
                    case "delete" if chance.random() < 0.3 and high > 1:
                        at = chance.randint(2, high)
                        gone |= {str(value).removeprefix("own ").removeprefix("note ") for value in grid[at - 1]}
                        sheet.person("delete_rows", tab, at=at, count=1)
                    case "column" if chance.random() < 0.3:
                        sheet.person("insert_columns", tab, at=1, count=1)

        async def meanwhile(*args: Any, **kwargs: Any) -> Any:
            disturb()
            return await write(*args, **kwargs)

        panel.book.write = meanwhile  # type: ignore[method-assign]
        for n in range(12):
            disturb()
            if n in (3, 5, 7):
                rows = [row for row in sheet.rows() if row["record_id"] == f"p{n // 2}"]
                for row in rows[:1]:
                    sheet.person("edit", cell=f"{sheet.column('command')}{row['#']}", text="APPROVE")
            await panel.look()
            await panel.client.work()
        panel.book.write = write  # type: ignore[method-assign]
        for _ in range(4):
            await settled(panel)

        firms, started = {f"firm{n}" for n in range(5)}, await companies(panel)
        assert len(started) == len(set(started)) and firms - gone <= set(started) <= firms
        leads = {row["company"]: row for row in sheet.rows("Leads")}
        assert firms - gone <= leads.keys() and all(row["own"] == f"own {name}" for name, row in leads.items())
        assert {row["record_status"] for row in leads.values()} <= {"DONE"}
        ids = {record.record_id: parse(record.data)["company"] for record in await records(panel)}
        assert all(ids[row["record_id"]] == name for name, row in leads.items())
        table = [row for row in sheet.rows() if row["record_id"].startswith("p")]
        assert all(row["mine"] in ("", f"note {row['record_id']}") for row in table)
        assert {row["mine"] for row in table} >= {f"note p{n}" for n in range(4) if f"p{n}" not in gone}
        for row in table:
            record = await panel.client.get(row["record_id"])
            assert row["status"] == record.status
        answered = [e.record_id for e in await panel.client.events() if e.kind == "answered"]
        assert len(answered) == len(set(answered))


FLOWS = """
from pydantic import BaseModel
from quire import Inbox, Run, workflow


class Lead(BaseModel):
    company: str
    employees: int = 0
    score: int | None = None


@workflow(name="score_lead", on=[Inbox("Leads", write_back=["score"])])
async def score_lead(run: Run[Lead]) -> None:
    run.data.score = len(run.data.company)
"""


def start_panel(sheet: Sheet, ledger: str, folder: Path) -> subprocess.Popen[bytes]:
    words = ["panel", "run", "flows.py", "--panel", sheet.url, "--at-once", "--ledger", ledger]
    return subprocess.Popen([sys.executable, "-m", "quire.surfaces.cli", *words], cwd=folder)


@pytest.mark.parametrize(
    ("held", "ids", "started"),
    [
        ({"kind": "batchUpdate", "contains": "insertDimension"}, 0, 0),
        ({"kind": "batchGetByDataFilter", "skip": 1}, 1, 0),
        ({"kind": "batchUpdate", "contains": "updateCells", "skip": 2}, 1, 1),
    ],
    ids=["before-its-id-is-there", "between-id-and-start", "after-the-start"],
)
async def test_a_panel_that_is_killed_while_it_starts_a_row_leaves_it_to_the_next(
    sheet: Sheet, tmp_path: Path, held: dict[str, Any], ids: int, started: int
) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    (tmp_path / "flows.py").write_text(FLOWS, encoding="utf-8")
    async with opened(sheet, ledger) as panel:
        await panel.look()
        await panel.lease.release()
    add(sheet, 2, "Acme", "5")
    sheet.fault("barrier", parties=2, timeout_seconds=60, id="held", **held)
    process = start_panel(sheet, ledger, tmp_path)
    try:
        await until_held(sheet)
        there = len([row for row in sheet.rows("Leads") if row["record_id"]])
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        sheet.calm()  # what it had sent arrives now, late
    async with opened(sheet, ledger) as panel:
        assert (there, len(await records(panel))) == (ids, started)
        for _ in range(3):
            await settled(panel)

        assert await companies(panel) == ["Acme"]
        assert [row["record_status"] for row in sheet.rows("Leads")] == ["DONE"]


async def until_held(sheet: Sheet) -> None:
    """Until somebody waits at the barrier."""
    for _ in range(1200):
        rules = sheet("GET", "/emulator/faults")["faults"]
        if rules[0]["hits"]:
            return
        threading.Event().wait(0.02)
    pytest.fail("nobody came")


async def test_a_column_of_an_inbox_that_stands_there_twice_is_refused_by_name(
    sheet: Sheet, caplog: pytest.LogCaptureFixture
) -> None:
    from quire.explain import stuck
    from quire.surfaces.panel.doctor import examine

    sheet.person("add_sheet", None, title="Leads")  # type: ignore[arg-type]
    sheet.person("edit", "Leads", range="A1:C2", values=[["Company", "Employees", "employees"], ["Acme", "6", ""]])
    before = sheet.grid("Leads")
    async with opened(sheet) as panel:
        for _ in range(3):
            await panel.look()
            await panel.client.work()
        text = "'Leads' has two columns 'employees', B and C: rename one of them"
        assert sheet.grid("Leads") == before and await panel.client.find() == []
        assert text in caplog.text
        assert [each.sentence for each in await stuck.look(panel.client.ledger)] == [text]
        assert text in [each.what for each in await examine(panel.client.ledger, sheet.url) if each.state == "warning"]

        sheet.person("edit", "Leads", cell="C1", text="former staff")
        for _ in range(3):
            await panel.look()
            await panel.client.work()
        [record] = await panel.client.find()
        assert parse(record.data)["employees"] == 6
        assert await stuck.look(panel.client.ledger) == []
