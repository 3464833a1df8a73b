"""What people do and what Quire does, line by line: in each vocabulary, on SQLite and with the ledger in the book."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from quire import AGENT, DRIVE, QUEUE, READY, Fail, Run, Table, Workflow, workflow
from quire.model.codec import parse
from quire.testing import ToldClock
from tests.panel.conftest import Sheet
from tests.panel.test_bound import BROKEN, by_id, fill, opened, records, say, settled, table

WORDS = {"READY": READY, "AGENT": AGENT, "QUEUE": QUEUE, "DRIVE": DRIVE}
HEADER = ["Order No", "Client", "Amount", "Task_Status", "confirmation", "Paid"]


class Bill(BaseModel):
    client: str
    amount: int
    paid: bool = False
    confirmation: str | None = None


def bills(**options: Any) -> Workflow[Bill, None, None]:
    given: dict[str, Any] = {"status": "Task_Status", "id": "Order No", "write_back": ["confirmation"]}

    @workflow(name="bills", on=[Table("Orders", **(given | options))])
    async def bills(run: Run[Bill]) -> None:
        if run.data.client in BROKEN:
            raise Fail("it is broken")
        if run.data.client.startswith("asks"):
            await run.ask("Pay it?", choices=["approve", "reject"])
        run.data.confirmation = f"C-{run.data.client}-{run.data.amount}-{run.data.paid}"

    return bills


@pytest.mark.parametrize("where", ["sqlite", "the same book"])
@pytest.mark.parametrize("name", WORDS)
async def test_each_line_of_the_table_of_requests(
    sheet: Sheet, tmp_path: Path, clock: ToldClock, name: str, where: str
) -> None:
    words = {key: word.replace("{STEP}", "BILLS") for key, word in WORDS[name].items()}
    ready, done, failed, cancelled = words["ready"], words["done"], words["error"], words["cancelled"]
    fill(
        sheet,
        [
            ["new", "", "1", ready],
            ["spaces", "b", "1", f"{ready.lower()} "],
            ["fails", "c", "1", ready],
            ["asks", "asks1", "1", ready],
            ["open", "asks2", "1", ready],
            ["ours", "d", "1", words["runs"] if words["runs"] != ready else "by Bob"],
            ["ended", "e", "1", done],
            ["blank", "f", "1", ""],
        ],
        header=HEADER,
    )
    same_book = where == "the same book"
    ledger = sheet.url if same_book else f"sqlite:///{tmp_path}/ledger.db"
    async with opened(sheet, bills(words=name), ledger=ledger, clock=clock if same_book else None) as panel:
        BROKEN.add("c")

        async def said() -> dict[str, tuple[str, str]]:
            await settled(panel, 3)
            return {order: (row["Task_Status"], row["Quire_Note"]) for order, row in by_id(sheet).items()}

        rows = await said()
        assert rows["new"] == (ready, "needed, but blank: client") and rows["spaces"] == (done, "")
        assert rows["fails"][0] == failed and rows["fails"][1].startswith("Fail: it is broken (in bills")
        assert rows["asks"][0] == rows["open"][0] == words["asks"]
        assert rows["ended"] == (done, "") and rows["blank"] == ("", "")
        assert rows["ours"][1] == "" and len(await records(panel)) == 4

        BROKEN.clear()
        say(sheet, "new", "a", "Client")
        say(sheet, "fails", ready.upper())
        say(sheet, "asks", "Approved")
        say(sheet, "open", cancelled)
        say(sheet, "spaces", ready)
        rows = await said()
        assert rows["new"] == rows["fails"] == rows["asks"] == (done, "") and rows["open"] == (
            cancelled,
            rows["open"][1],
        )
        assert rows["spaces"][0] == done
        assert rows["spaces"][1].startswith(
            f"Invalid state transition: Cannot move from {done} to {ready}. (a finished"
        )
        kinds = {
            order: [(line.kind, parse(line.body).get("by")) for line in await panel.client.events(f"orders-{order}")]
            for order in ("fails", "open", "spaces")
        }
        assert ("retried", "sheet") in kinds["fails"] and ("refused", "sheet") in kinds["spaces"]
        assert any(kind.startswith("cancel") and by == "sheet" for kind, by in kinds["open"]), kinds["open"]

        say(sheet, "asks", "Whatever")
        say(sheet, "new", "edited", "Client")
        say(sheet, "fails", "Run again")
        rows = await said()
        assert rows["asks"][0] == done
        assert rows["asks"][1].startswith(f"Invalid state transition: Cannot move from {done} to Whatever.")
        assert rows["new"] == (done, "edited after it was started; the record keeps what it was started with")
        assert rows["fails"] == (done, "") and "orders-fails_run2" in await records(panel)

        sheet.person("paste_rows", "Orders", at=7, count=1, to=12)
        await settled(panel)
        assert len(await records(panel)) == 6


@pytest.mark.parametrize("top", [1, 3])
@pytest.mark.parametrize("at", [0, 2], ids=["column A", "in the middle"])
async def test_the_header_and_the_status_column_stand_where_they_stand(sheet: Sheet, top: int, at: int) -> None:
    header, row = ["Order No", "Client", "Amount", "confirmation"], ["A-1", "a", "1", ""]
    header.insert(at, "Task_Status")
    row.insert(at, "Ready")
    fill(sheet, [row], top=top, header=header)
    if top > 1:
        tab = next(
            each["properties"]["sheetId"]
            for each in sheet.meta("sheets.properties")["sheets"]
            if each["properties"]["title"] == "Orders"
        )
        area = {"sheetId": tab, "startRowIndex": 0, "endRowIndex": 1, "startColumnIndex": 0, "endColumnIndex": 4}
        merge = {"mergeCells": {"range": area, "mergeType": "MERGE_ALL"}}
        sheet("POST", f"/v4/spreadsheets/{sheet.book_id}:batchUpdate", {"requests": [merge]})
    async with opened(sheet, bills()) as panel:
        await settled(panel)
        [found] = table(sheet, top=top)
        assert (found["Task_Status"], found["confirmation"]) == ("Finalized", "C-a-1-False")
        assert top == 1 or sheet.grid("Orders")[0] == ["Orders of this year"]


async def test_boxes_dropdowns_and_imported_columns_are_read_and_stay(sheet: Sheet) -> None:
    header = [*HEADER, "Rate", "Imported"]
    imported = '=IMPORTRANGE("https://docs.google.com/spreadsheets/d/x","A1")'
    fill(sheet, [["A-1", "a", "1", "Ready", "", "", "12.5%", imported]], header=header)
    tab = next(
        each["properties"]["sheetId"]
        for each in sheet.meta("sheets.properties")["sheets"]
        if each["properties"]["title"] == "Orders"
    )

    def area(column: int) -> dict[str, int]:
        cell = {"startRowIndex": 3, "endRowIndex": 4, "startColumnIndex": column, "endColumnIndex": column + 1}
        return {"sheetId": tab, **cell}

    listed = [{"userEnteredValue": word} for word in ("Ready", "Processing", "Finalized", "Failed")]
    words = {"condition": {"type": "ONE_OF_LIST", "values": listed}, "strict": True}
    box = {"condition": {"type": "BOOLEAN"}, "strict": True}
    value = {"rows": [{"values": [{"userEnteredValue": {"boolValue": True}}]}], "fields": "userEnteredValue"}
    requests = [
        {"setDataValidation": {"range": area(3), "rule": words}},
        {"setDataValidation": {"range": area(5), "rule": box}},
        {"updateCells": {**value, "start": {"sheetId": tab, "rowIndex": 3, "columnIndex": 5}}},
    ]
    sheet("POST", f"/v4/spreadsheets/{sheet.book_id}:batchUpdate", {"requests": requests})
    before = table(sheet, render="FORMULA")[0]
    async with opened(sheet, bills()) as panel:
        await settled(panel)
        row, kept = by_id(sheet)["A-1"], table(sheet, render="FORMULA")[0]
        assert (row["Task_Status"], row["confirmation"]) == ("Finalized", "C-a-1-True")
        assert {name: kept[name] for name in ("Paid", "Rate", "Imported")} == {
            name: before[name] for name in ("Paid", "Rate", "Imported")
        }
        validation = sheet.meta("sheets(properties.title,data.rowData.values.dataValidation)")
        rules = str(next(each for each in validation["sheets"] if each["properties"]["title"] == "Orders"))
        assert "BOOLEAN" in rules and "ONE_OF_LIST" in rules
