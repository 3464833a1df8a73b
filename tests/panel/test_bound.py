"""A table that people have: its rows go through a workflow where they stand, and nothing of theirs is touched."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from quire import AGENT, DRIVE, QUEUE, Cron, Fail, Retry, Run, Table, Workflow, workflow
from quire.client.client import Client
from quire.errors import DefinitionError
from quire.model.codec import parse
from quire.model.record import Record
from quire.surfaces.panel import Panel
from quire.testing import ToldClock
from tests.panel.conftest import Sheet

HEADER = ["Order No", "Client", "Amount", "Due", "Task_Status", "confirmation", "Remarks"]


class Order(BaseModel):
    client: str
    amount: Decimal
    due: dt.date | None = None
    confirmation: str | None = None


#: What each run saw in the sheet while it ran, by client.
SEEN: dict[str, Any] = {}
BROKEN: set[str] = set()


def orders(sheet: Sheet | None = None, **options: Any) -> Workflow[Order, None, None]:
    given = {"status": "Task_Status", "id": "Order No", "write_back": ["confirmation"]} | options

    @workflow(name="process", retry=Retry(1), on=[Table("Orders", **given)])
    async def process(run: Run[Order]) -> None:
        if sheet is not None:
            SEEN[run.data.client] = [row.get("Task_Status") for row in table(sheet) if row["Client"] == run.data.client]
        if run.data.client in BROKEN:
            raise Fail(f"{run.data.client} owes us money")
        run.data.confirmation = f"C-{run.data.client}-{run.data.amount}"

    return process


def fill(sheet: Sheet, rows: list[list[Any]], *, top: int = 3, header: list[str] | None = None) -> None:
    """A tab with a merged title, a header in row ``top`` and these rows below it."""
    header = HEADER if header is None else header
    sheet.person("add_sheet", None, title="Orders")  # type: ignore[arg-type]
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[len(header) - 1]
    if top > 1:
        sheet.person("edit", "Orders", cell="A1", text="Orders of this year")
    sheet.person("edit", "Orders", range=f"A{top}:{last}{top}", values=[header])
    if rows:
        sheet.person("edit", "Orders", range=f"A{top + 1}:{last}{top + len(rows)}", values=rows)


def table(sheet: Sheet, tab: str = "Orders", top: int = 3, render: str = "FORMATTED_VALUE") -> list[dict[str, Any]]:
    grid = sheet.grid(tab, render)
    header = grid[top - 1]
    found = []
    for number, cells in enumerate(grid[top:], top + 1):
        if any(value != "" for value in cells):
            found.append({"#": number, **dict(zip(header, [*cells, *[""] * len(header)], strict=False))})
    return found


def by_id(sheet: Sheet, **options: Any) -> dict[str, dict[str, Any]]:
    return {row["Order No"]: row for row in table(sheet, **options)}


def say(sheet: Sheet, order: str, text: str, column: str = "Task_Status", tab: str = "Orders", top: int = 3) -> None:
    grid = sheet.grid(tab)
    letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[grid[top - 1].index(column)]
    row = next(number for number, cells in enumerate(grid, 1) if order in cells)
    sheet.person("edit", tab, cell=f"{letter}{row}", text=text)


@asynccontextmanager
async def opened(
    sheet: Sheet, *flows: Workflow[Any, Any, Any], ledger: str = "memory:", clock: ToldClock | None = None
) -> AsyncIterator[Panel]:
    BROKEN.clear()
    SEEN.clear()
    options: dict[str, Any] = {"clock": clock} if clock is not None else {}
    async with Client(ledger, workflows=flows, who="tester", **options) as client, Panel(client, sheet.url) as panel:
        yield panel


async def settled(panel: Panel, times: int = 2) -> None:
    for _ in range(times):
        await panel.look()
        await panel.client.work()
    await panel.look()


async def records(panel: Panel) -> dict[str, Record]:
    return {record.record_id: record for record in await panel.client.find(limit=10_000)}


ROWS = [
    ["A-1", "Acme", "12.50", "12/24/2026", "Ready", "", "call first"],
    ["A-2", "Initech", "7", "", "Processing", "", "since May"],
    ["A-3", "Hooli", "1", "", "Finalized", "C-old", ""],
    ["A-4", "Umbra", "2", "", "", "", "a draft"],
    ["A-5", "Pied", "3", "", "ready ", "", ""],
]


async def test_rows_that_are_ready_are_finalized_and_nothing_else_is_touched(sheet: Sheet) -> None:
    fill(sheet, ROWS)
    async with opened(sheet, orders(sheet)) as panel:
        await settled(panel)
        rows = by_id(sheet)

        assert {name: row["Task_Status"] for name, row in rows.items()} == {
            "A-1": "Finalized",
            "A-2": "Processing",
            "A-3": "Finalized",
            "A-4": "",
            "A-5": "Finalized",
        }
        assert rows["A-1"]["confirmation"] == "C-Acme-12.5" and rows["A-3"]["confirmation"] == "C-old"
        assert SEEN == {"Acme": ["Processing"], "Pied": ["Processing"]}
        assert sorted(await records(panel)) == ["orders-A-1", "orders-A-5"]
        assert parse((await records(panel))["orders-A-1"].data)["due"] == "2026-12-24"
        assert sheet.grid("Orders")[0] == ["Orders of this year"]
        untouched = by_id(sheet, render="FORMULA")
        assert untouched["A-2"]["Task_Status"] == "Processing" and untouched["A-3"]["Task_Status"] == "Finalized"
        assert [row["Remarks"] for row in rows.values()] == ["call first", "since May", "", "a draft", ""]


async def test_a_row_that_lacks_something_says_what_and_starts_when_it_is_there(sheet: Sheet) -> None:
    fill(sheet, [["A-1", "", "1", "", "Ready"], ["A-2", "Acme", "lots", "", "Ready"], ["", "Umbra", "2", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        rows = {row["Client"]: row for row in table(sheet)}
        assert {row["Task_Status"] for row in rows.values()} == {"Ready"}
        assert rows[""]["Quire_Note"] == "needed, but blank: client"
        assert "amount" in rows["Acme"]["Quire_Note"] and rows["Umbra"]["Quire_Note"] == "not started: its id is blank"
        assert await records(panel) == {}

        say(sheet, "A-1", "Hooli", "Client")
        say(sheet, "A-2", "12", "Amount")
        sheet.person("edit", "Orders", cell="A6", text="A-3")
        await settled(panel, 3)
        assert {row["Task_Status"] for row in table(sheet)} == {"Finalized"}
        assert {row["Quire_Note"] for row in table(sheet)} == {""}

        say(sheet, "A-1", "Hooli Ltd", "Client")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Quire_Note"].startswith("edited after it was started")


async def test_a_row_that_is_taken_back_before_it_starts_is_its_persons_again(sheet: Sheet) -> None:
    fill(sheet, [["A-1", "", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        say(sheet, "A-1", "Later")
        say(sheet, "A-1", "Acme", "Client")
        await settled(panel)
        assert await records(panel) == {}
        [row] = table(sheet, render="FORMULA")
        assert row["Task_Status"] == "Later" and row["Quire_Note"] == "" and row["confirmation"] == ""

        say(sheet, "A-1", "READY")
        await settled(panel, 3)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized"


async def test_words_that_are_typed_are_requests(sheet: Sheet) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        BROKEN.add("Acme")
        await settled(panel)
        failed = by_id(sheet)["A-1"]
        assert failed["Task_Status"] == "Failed" and "owes us money" in failed["Quire_Note"]

        BROKEN.clear()
        say(sheet, "A-1", "ready")
        say(sheet, "A-2", "Ready")
        await settled(panel)
        rows = by_id(sheet)
        assert rows["A-1"]["Task_Status"] == "Finalized" and rows["A-1"]["confirmation"] == "C-Acme-1"
        assert rows["A-2"]["Task_Status"] == "Finalized"
        assert rows["A-2"]["Quire_Note"].startswith("Invalid state transition: Cannot move from Finalized to Ready.")
        log = [(event.kind, parse(event.body)) for event in await panel.client.events("orders-A-2")]
        [refused] = [body for kind, body in log if kind == "refused"]
        assert (refused["by"], refused["from"], refused["to"]) == ("sheet", "Finalized", "Ready")
        retried = [parse(event.body) for event in await panel.client.events("orders-A-1") if event.kind == "retried"]
        assert [body["by"] for body in retried] == ["sheet"]

        for text in ("Nonsense", "17", "=1+1"):
            say(sheet, "A-1", text)
            await settled(panel)
            assert by_id(sheet)["A-1"]["Task_Status"] == ("Finalized" if text != "=1+1" else "2")
        sheet.person("clear", "Orders", range="E4")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized"


def asking(**options: Any) -> Workflow[Order, None, None]:
    @workflow(name="approve", on=[Table("Orders", status="Task_Status", id="Order No", **options)])
    async def approve(run: Run[Order]) -> None:
        answer = await run.ask("Send it?", choices=["approve", "reject"])
        await run.wait("paid")
        run.data.confirmation = answer.choice

    return approve


async def test_a_question_is_answered_in_the_cell_and_what_is_open_is_cancelled(sheet: Sheet) -> None:
    header = [*HEADER, "question"]
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "Ready"]], header=header)
    async with opened(sheet, asking(show={"asks": "question"})) as panel:
        await settled(panel)
        rows = by_id(sheet)
        assert {row["Task_Status"] for row in rows.values()} == {"Needs approval"}
        assert rows["A-1"]["question"].startswith("Send it?")

        say(sheet, "A-1", "Approved")
        say(sheet, "A-2", "Cancelled")
        await settled(panel)
        assert {name: row["Task_Status"] for name, row in by_id(sheet).items()} == {
            "A-1": "Waiting",
            "A-2": "Cancelled",
        }
        [answered] = [event for event in await panel.client.events("orders-A-1") if event.kind == "answered"]
        assert parse(answered.body)["choice"] == "approve" and parse(answered.body)["via"] == "sheet"

        say(sheet, "A-1", "Approved")
        await settled(panel)
        assert "Cannot move from Waiting to Approved." in by_id(sheet)["A-1"]["Quire_Note"]
        await panel.client.signal("orders-A-1", "paid")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized" and by_id(sheet)["A-1"]["Quire_Note"] == ""


STATES = ("PENDING", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED")
LEGAL = {
    "PENDING": ["IN_PROGRESS", "CANCELLED"],
    "IN_PROGRESS": ["COMPLETED", "FAILED"],
    "FAILED": ["PENDING"],
    "COMPLETED": [],
    "CANCELLED": [],
}
PATHS = {
    "PENDING": [],
    "IN_PROGRESS": ["IN_PROGRESS"],
    "COMPLETED": ["IN_PROGRESS", "COMPLETED"],
    "FAILED": ["IN_PROGRESS", "FAILED"],
    "CANCELLED": ["CANCELLED"],
}


def tasks() -> Workflow[dict[str, Any], Any, None]:
    flow: Workflow[dict[str, Any], Any, None] = Workflow(
        "tasks", on=[Table("Orders", status="Task_Status", id="Order No", words=DRIVE)]
    )
    for name in STATES:
        flow.state(name, then=LEGAL[name])
    return flow


async def test_the_25_pairs_of_states_through_cells(sheet: Sheet) -> None:
    fill(sheet, [[f"{a}>{b}", "x", "1", "", "PENDING"] for a in STATES for b in STATES])
    async with opened(sheet, tasks()) as panel:
        await settled(panel)
        for a in STATES:
            for step in PATHS[a]:
                for b in STATES:
                    await panel.client.move(f"orders-{a}>{b}", step)
        await settled(panel)
        assert {name: row["Task_Status"] for name, row in by_id(sheet).items()} == {
            f"{a}>{b}": a for a in STATES for b in STATES
        }
        for a in STATES:
            for b in STATES:
                say(sheet, f"{a}>{b}", b)
        await settled(panel)
        for name, row in by_id(sheet).items():
            a, _, b = name.partition(">")
            if a == b or b in LEGAL[a]:
                assert (row["Task_Status"], row["Quire_Note"]) == (b, ""), name
            else:
                assert row["Task_Status"] == a, name
                assert row["Quire_Note"].startswith(f"Invalid state transition: Cannot move from {a} to {b}."), row


async def test_each_vocabulary_says_its_own_words(sheet: Sheet) -> None:
    flow: Workflow[Order, None, None]
    mine = {"ready": "Neu", "runs": "In Arbeit", "done": "Fertig", "error": "Kaputt"}
    for number, (words, ready, runs, done, failed) in enumerate(
        [
            (AGENT, "INIT", "PROCESS", "COMPLETED", "FAILED"),
            (QUEUE, "PENDING", "RUNNING", "COMPLETED", "ERROR"),
            (DRIVE, "PENDING", "IN_PROGRESS", "DONE", "ERROR"),
            (mine, "Neu", "In Arbeit", "Fertig", "Kaputt"),
        ]
    ):
        if number:
            sheet.person("delete_sheet", "Orders")
        fill(sheet, [["A-1", "Acme", "1", "", ready], ["A-2", "Umbra", "1", "", ready]])
        flow = orders(sheet, words=words)
        async with opened(sheet, flow) as panel:
            BROKEN.add("Umbra")
            await settled(panel)
            assert {name: row["Task_Status"] for name, row in by_id(sheet).items()} == {"A-1": done, "A-2": failed}
            assert SEEN["Acme"] == [runs]


async def test_the_six_columns_of_an_agent_are_bound_by_their_names(sheet: Sheet) -> None:
    header = ["Execution_ID", "Current_State", "Context_Payload", "Retry_Count", "Last_Updated", "Error_Log"]
    rows = [["exec-1", "INIT", '{"client": "Acme", "amount": 3}'], ["", "INIT", '{"client": "Umbra", "amount": 3}']]
    fill(sheet, [*rows, ["exec-3", "COMPLETED", "{}"]], top=1, header=header)
    flow = orders(status="Current_State", id=None, words=AGENT, write_back=[])
    async with opened(sheet, flow) as panel:
        BROKEN.add("Umbra")
        await settled(panel)
        found = {row["Execution_ID"]: row for row in table(sheet, top=1)}
        first = found.pop("exec-1")
        assert first["Current_State"] == "COMPLETED" and parse(first["Context_Payload"])["confirmation"] == "C-Acme-3"
        assert first["Last_Updated"].endswith("Z") and first["Retry_Count"] == "0" and first["Error_Log"] == ""
        assert found.pop("exec-3")["Context_Payload"] == "{}"
        [(name, second)] = found.items()
        assert name.startswith("process_") and second["Current_State"] == "FAILED"
        assert "owes us money" in second["Error_Log"] and list(await records(panel)) == ["exec-1", name]
        assert sheet.grid("Orders")[0] == header


async def test_without_an_id_a_column_is_added_and_filled(sheet: Sheet) -> None:
    fill(sheet, ROWS)
    async with opened(sheet, orders(id=None)) as panel:
        await settled(panel)
        rows = {row["Client"]: row for row in table(sheet)}
        assert rows["Acme"]["Task_Status"] == "Finalized" and rows["Acme"]["Quire_ID"].startswith("process_")
        assert rows["Umbra"]["Quire_ID"] == rows["Initech"]["Quire_ID"] == ""
        assert sheet.grid("Orders")[2] == [*HEADER, "Quire_ID", "Quire_Note"]


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (["Order No", "Client", "Amount", "Status"], "no row names the column 'Task_Status'"),
        (["Order No", "Client", "Amount", "Task_Status", "task status"], "has two columns 'Task_Status', D and E"),
        (["Order No", "Amount", "Task_Status"], "has no column for 'client' in row 3"),
        (["Nr", "Client", "Amount", "Task_Status"], "has no column 'Order No' in row 3"),
    ],
)
async def test_a_header_that_is_not_as_declared_is_named_and_nothing_is_written(
    sheet: Sheet, header: list[str], said: str
) -> None:
    from quire.surfaces.panel.doctor import examine

    fill(sheet, [["A-1", "Acme", "1", "Ready"]], header=header)
    before = sheet.grid("Orders")
    async with opened(sheet, orders(write_back=[])) as panel:
        await settled(panel)
        assert sheet.grid("Orders") == before and await records(panel) == {}
        found = [each.what for each in await examine(panel.client.ledger, sheet.url) if each.state != "well"]
        assert any(said in text for text in found), found


async def test_two_rows_with_one_id_are_named_and_neither_starts(sheet: Sheet) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-1", "Umbra", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        assert await records(panel) == {}
        assert {row["Quire_Note"] for row in table(sheet)} == {"not started: another row has the same id"}

        sheet.person("edit", "Orders", cell="A5", text="A-2")
        await settled(panel, 3)
        assert {row["Task_Status"] for row in table(sheet)} == {"Finalized"}
        assert {row["Quire_Note"] for row in table(sheet)} == {""}


async def test_a_pasted_copy_is_named_and_a_deleted_row_that_comes_back_is_the_same(sheet: Sheet) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    async with opened(sheet, asking()) as panel:
        await settled(panel)
        sheet.person("paste_rows", "Orders", at=4, count=1, to=5)
        await settled(panel)
        assert len(await records(panel)) == 1
        assert [row["Quire_Note"].startswith("a copy of another row") for row in table(sheet)] == [False, True]

        sheet.person("delete_rows", "Orders", at=4, count=2)
        await settled(panel)
        assert sheet.row("orders-A-1")["reply"] == "its row in 'Orders' is gone; the record goes on"
        sheet.person("edit", "Orders", range="A6:E6", values=[["A-1", "Acme", "1", "", ""]])
        await settled(panel)
        assert [row["Task_Status"] for row in table(sheet)] == ["Needs approval"]
        assert len(await records(panel)) == 1 and sheet.row("orders-A-1")["reply"] == ""


async def test_a_first_look_with_many_rows_to_start_asks_once(sheet: Sheet) -> None:
    from quire.explain import stuck
    from quire.surfaces.panel.tables import kept

    fill(sheet, [[f"A-{n}", "Acme", "1", "", "Ready"] for n in range(27)])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        assert await records(panel) == {} and sheet.grid("Orders")[2] == HEADER
        [asked] = await kept.of_book(panel.client.ledger, sheet.book_id)
        [finding] = await stuck.look(panel.client.ledger)
        assert finding.kind == "table" and finding.remedy == "quire table go" and finding.sentence == asked.problem
        assert asked.problem.startswith("27 rows of 'Orders' say 'Ready'.") and "quire table go" in asked.problem
        await kept.go(panel.client.ledger, sheet.book_id, "Orders")
        await settled(panel)
        assert len(await records(panel)) == 27 and {row["Task_Status"] for row in table(sheet)} == {"Finalized"}


async def test_a_row_that_says_it_runs_is_named_and_taken_when_somebody_says_so(sheet: Sheet) -> None:
    from quire.surfaces.panel.tables import kept

    fill(sheet, [["A-1", "Acme", "1", "", "Processing"], ["A-2", "Umbra", "1", "", "Processing"]])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        [known] = await kept.of_book(panel.client.ledger, sheet.book_id)
        assert known.named[0].startswith("rows 4, 5 say that they run, but not by Quire: left as found")
        await kept.take(panel.client.ledger, sheet.book_id, "Orders", ["A-1"])
        await settled(panel)
        assert {name: row["Task_Status"] for name, row in by_id(sheet).items()} == {
            "A-1": "Finalized",
            "A-2": "Processing",
        }


async def test_the_status_column_is_a_named_range_or_a_letter_and_columns_and_tabs_move(sheet: Sheet) -> None:
    rows = [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "later"]]
    for number, status in enumerate(("the_state", "E:E")):
        fill(sheet, rows, header=["Order No", "Client", "Amount", "Due", "Wie es steht", "confirmation"])
        tab = next(
            each["properties"]["sheetId"]
            for each in sheet.meta("sheets.properties")["sheets"]
            if each["properties"]["title"] == "Orders"
        )
        area = {"sheetId": tab, "startRowIndex": 3, "startColumnIndex": 4, "endColumnIndex": 5}
        named = {"addNamedRange": {"namedRange": {"name": "the_state", "range": area}}}
        if not number:
            sheet("POST", f"/v4/spreadsheets/{sheet.book_id}:batchUpdate", {"requests": [named]})
        async with opened(sheet, orders(status=status)) as panel:
            await settled(panel)
            assert by_id(sheet)["A-1"]["Wie es steht"] == "Finalized"
            sheet.person("rename_sheet", "Orders", title="Bestellungen")
            sheet.person("insert_columns", "Bestellungen", at=1, count=1)
            sheet.person("move_columns", "Bestellungen", at=6, count=1, to=2)
            say(sheet, "A-2", "Ready", "Wie es steht", tab="Bestellungen")
            await settled(panel)
            assert by_id(sheet, tab="Bestellungen")["A-2"]["Wie es steht"] == "Finalized"
            assert by_id(sheet, tab="Bestellungen")["A-2"]["confirmation"] == "C-Umbra-1"
        sheet.person("delete_sheet", "Bestellungen")


async def test_formulas_dates_money_and_boxes_are_read_as_what_they_stand_for_and_never_written_over(
    sheet: Sheet,
) -> None:
    header = ["Order No", "Client", "Amount", "Due", "Task_Status", "confirmation", "Net"]
    fill(sheet, [["A-1", '="Ac"&"me"', "=2*3", "=DATE(2026,12,24)", "Ready", "", "=C4/2"]], header=header)
    sheet.person("edit", "Orders", range="A5:G5", values=[["A-2", "Umbra", "€5.00", "50%", '="Rea"&"dy"', "", ""]])
    sheet.person("edit", "Orders", range="A6:G6", values=[["A-3", "Pied", "1", "", "Ready", '="mine"', ""]])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        rows, kept = by_id(sheet), by_id(sheet, render="FORMULA")
        data = parse((await records(panel))["orders-A-1"].data)
        assert data["client"] == "Acme" and Decimal(data["amount"]) == 6 and data["due"] == "2026-12-24"
        assert kept["A-1"]["Client"] == '="Ac"&"me"' and kept["A-1"]["Net"] == "=C4/2" and rows["A-1"]["Net"] == "3"
        assert kept["A-2"]["Task_Status"] == '="Rea"&"dy"' and "orders-A-2" not in await records(panel)
        assert rows["A-3"]["Task_Status"] == "Finalized" and kept["A-3"]["confirmation"] == '="mine"'


async def test_blank_rows_of_a_form_start_when_they_are_complete(sheet: Sheet) -> None:
    header = ["Timestamp", "Client", "Amount", "Task_Status"]
    fill(sheet, [["1/2/2026 10:00:00", "Acme", "3", ""], ["1/2/2026 10:01:00", "", "3", ""]], top=1, header=header)
    async with opened(sheet, orders(id=None, write_back=[], blank="start")) as panel:
        await settled(panel)
        assert [row["Task_Status"] for row in table(sheet, top=1)] == ["Finalized", ""]


async def test_the_table_works_with_its_ledger_in_the_same_book(sheet: Sheet, clock: ToldClock) -> None:
    fill(sheet, ROWS)
    async with opened(sheet, orders(), ledger=sheet.url, clock=clock) as panel:
        await settled(panel)
        assert [row["Task_Status"] for row in table(sheet)] == ["Finalized", "Processing", "Finalized", "", "Finalized"]


async def test_a_word_that_was_typed_for_another_question_is_no_answer(sheet: Sheet) -> None:
    @workflow(name="twice", on=[Table("Orders", status="Task_Status", id="Order No")])
    async def twice(run: Run[Order]) -> None:
        await run.ask("Draft it?", choices=["approve", "reject"])
        await run.wait("drafted")
        await run.ask("Send it?", choices=["approve", "reject"])

    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    async with opened(sheet, twice) as panel:
        await settled(panel)
        say(sheet, "A-1", "Approved")
        await settled(panel)
        await panel.client.signal("orders-A-1", "drafted")
        await panel.client.work()
        write = panel.book.write

        async def meanwhile(*args: Any, **kwargs: Any) -> Any:
            panel.book.write = write  # type: ignore[method-assign]
            say(sheet, "A-1", "Approved")
            return await write(*args, **kwargs)

        panel.book.write = meanwhile  # type: ignore[method-assign]
        await settled(panel)
        assert (await panel.client.get("orders-A-1")).status == "NEEDS_APPROVAL"
        assert by_id(sheet)["A-1"]["Quire_Note"].startswith("what is asked has changed since it was shown")
        say(sheet, "A-1", "Approved")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized"


async def test_rows_that_end_together_cost_three_requests_and_an_idle_table_one_read_a_look(sheet: Sheet) -> None:
    @workflow(name="slow", on=[Table("Orders", status="Task_Status", id="Order No", yes=True)])
    async def slow(run: Run[Order]) -> None:
        await run.wait("go")

    fill(sheet, [[f"A-{n}", f"c{n}", "1", "", "Ready"] for n in range(100)])
    async with opened(sheet, slow) as panel:
        await settled(panel, 3)
        assert {row["Task_Status"] for row in table(sheet)} == {"Waiting"}
        for n in range(100):
            await panel.client.signal(f"orders-A-{n}", "go")
        await panel.client.work()
        sheet.forget_counters()
        await panel.look()
        assert sum(sheet.counters().values()) <= 3, sheet.counters()
        assert {row["Task_Status"] for row in table(sheet)} == {"Finalized"}

        await settled(panel)
        sheet.forget_counters()
        for _ in range(3):
            assert await panel.look() is False
        assert sheet.counters() == {"sheets.spreadsheets.values.batchGetByDataFilter": 3}


async def test_a_protected_tab_is_let_be_and_named(sheet: Sheet, caplog: pytest.LogCaptureFixture) -> None:
    from quire.google.error import NotShared

    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        write = panel.book.write

        async def guarded(requests: Any, **kwargs: Any) -> Any:
            if any(each.get("findReplace", {}).get("find") == "Ready" for each in requests):
                raise NotShared("you are trying to edit a protected cell")
            return await write(requests, **kwargs)

        panel.book.write = guarded  # type: ignore[method-assign]
        await settled(panel)
        assert await records(panel) == {} and by_id(sheet)["A-1"]["Task_Status"] == "Ready"
        assert "is let be for 600 s" in caplog.text
        assert sheet.grid("state_table")[0][0] == "record_id"  # the panel goes on


async def test_a_lost_hidden_tab_starts_nothing_again(sheet: Sheet) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        BROKEN.add("Umbra")
        await settled(panel)
        sheet.person("delete_sheet", "quire_tables")
        await settled(panel, 4)
        assert {name: row["Task_Status"] for name, row in by_id(sheet).items()} == {"A-1": "Finalized", "A-2": "Failed"}
        assert by_id(sheet)["A-1"]["confirmation"] == "C-Acme-1" and len(await records(panel)) == 2


@pytest.mark.parametrize("fault", ["reset", "lost_answer"])
@pytest.mark.parametrize("nth", range(5))
async def test_losing_any_one_write_starts_every_row_once(sheet: Sheet, fault: str, nth: int) -> None:
    from quire.errors import QuireError

    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        sheet.fault(fault, kind="batchUpdate", write=True, count=1, skip=nth)
        for _ in range(8):
            try:
                await panel.look()
            except QuireError:
                continue
            await panel.client.work()
        sheet.calm()
        await settled(panel)
        assert {row["Task_Status"] for row in table(sheet)} == {"Finalized"} and len(await records(panel)) == 2
        assert [row["confirmation"] for row in table(sheet)] == ["C-Acme-1", "C-Umbra-1"]


@pytest.mark.parametrize("said", ["Ready", "ready"])
async def test_a_reference_that_meets_another_row_is_put_right_and_what_that_row_said_is_kept(
    sheet: Sheet, said: str
) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        await panel.look()
        write = panel.book.write
        met: list[Any] = []

        async def meanwhile(requests: Any, **kwargs: Any) -> Any:
            binds = any(each.get("findReplace", {}).get("find") == "Ready" for each in requests)
            if binds and not met:
                sheet.person("insert_rows", "Orders", at=4, count=1)
                sheet.person("edit", "Orders", range="A4:E4", values=[["A-0", "Umbra", "2", "", said]])
            answer = await write(requests, **kwargs)
            if binds and not met:
                met.append(by_id(sheet, render="FORMULA")["A-0"]["Task_Status"])
            return answer

        panel.book.write = meanwhile  # type: ignore[method-assign]
        await settled(panel, 4)
        assert met[0].startswith("=quire_tables!") == (said == "Ready"), met
        rows = by_id(sheet)
        assert {name: row["Task_Status"] for name, row in rows.items()} == {"A-0": "Finalized", "A-1": "Finalized"}
        assert (rows["A-0"]["confirmation"], rows["A-1"]["confirmation"]) == ("C-Umbra-2", "C-Acme-1")
        assert sorted(await records(panel)) == ["orders-A-0", "orders-A-1"]


async def test_rows_that_are_ready_wait_for_the_schedule_of_their_table(sheet: Sheet, clock: ToldClock) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    async with opened(sheet, orders(at=Cron("0 2 * * *")), clock=clock) as panel:
        await settled(panel, 3)
        assert by_id(sheet, render="FORMULA")["A-1"]["Task_Status"] == "Ready" and await records(panel) == {}
        clock.advance(25 * 3600)
        await settled(panel, 2)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized"
        sheet.person("edit", "Orders", range="A5:E5", values=[["A-2", "Umbra", "1", "", "Ready"]])
        await settled(panel, 3)
        assert by_id(sheet)["A-2"]["Task_Status"] == "Ready"
        clock.advance(25 * 3600)
        await settled(panel, 2)
        assert {row["Task_Status"] for row in table(sheet)} == {"Finalized"} and len(await records(panel)) == 2


def test_a_schedule_that_is_none_is_refused() -> None:
    with pytest.raises(DefinitionError, match="write it as at=Cron"):
        Table("Orders", status="Task_Status", at="0 2 * * *")  # type: ignore[arg-type]
