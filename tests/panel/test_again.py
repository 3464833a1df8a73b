"""A finished row runs again, as a new record: by a word in the cell, by the script's menu, by the command line."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from quire import AGENT, Fail, Run, Table, workflow
from quire.errors import QuireError
from quire.model.codec import parse
from quire.surfaces.cli import cli
from tests.panel.conftest import Sheet
from tests.panel.test_bound import BROKEN, Order, asking, by_id, fill, opened, orders, records, say, settled, table
from tests.panel.test_script import served


@pytest.mark.parametrize("own_id", [False, True], ids=["their ids", "our ids"])
async def test_run_again_over_a_finished_row_starts_a_new_record(sheet: Sheet, own_id: bool) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "Ready"]])
    async with opened(sheet, orders(**({"id": None} if own_id else {}))) as panel:
        await settled(panel)
        first = {row["Client"]: row.get("Quire_ID", "") for row in table(sheet)}
        say(sheet, "A-1", "1000", "Amount")
        say(sheet, "A-1", "run again")
        await settled(panel, 3)
        row = by_id(sheet)["A-1"]
        assert (row["Task_Status"], row["confirmation"], row["Quire_Note"]) == ("Finalized", "C-Acme-1000", "")
        made = await records(panel)
        ids = sorted(name for name, record in made.items() if parse(record.data)["client"] == "Acme")
        assert len(made) == 3 and ids[1] == f"{ids[0]}_run2"
        assert parse(made[ids[0]].data)["amount"] in (1, "1") and first["Acme"] in (ids[0], "")
        assert row.get("Quire_ID", ids[1]) == ids[1]
        assert by_id(sheet)["A-2"]["Task_Status"] == "Finalized"

        say(sheet, "A-1", "Run again")
        sheet.person("delete_sheet", "quire_tables")
        await settled(panel, 5)
        assert sorted(await records(panel)) in (sorted(made), sorted([*made, f"{ids[0]}_run3"]))
        say(sheet, "A-1", "Run again")
        await settled(panel, 4)
        assert f"{ids[0]}_run3" in await records(panel)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized"


async def test_a_row_whose_record_is_open_does_not_run_again(sheet: Sheet, tmp_path: Path) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Acme", "1", "", ""]])
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    async with opened(sheet, asking(), ledger=ledger) as panel:
        await settled(panel)
        say(sheet, "A-1", "Run again")
        await settled(panel)
        row = by_id(sheet)["A-1"]
        assert row["Task_Status"] == "Needs approval" and len(await records(panel)) == 1
        assert row["Quire_Note"].startswith("Invalid state transition: Cannot move from Needs approval to Run again.")
    refused = await again(ledger, sheet, "4")
    assert refused.exit_code == 2 and "has not ended, it is NEEDS_APPROVAL" in refused.output
    refused = await again(ledger, sheet, "5")
    assert refused.exit_code == 2 and "row 5 of 'Orders' has not run yet: type 'Ready'" in refused.output


async def again(ledger: str, sheet: Sheet, row: str) -> Any:
    words = ["table", "again", row, "--panel", sheet.url, "--ledger", ledger]
    return await asyncio.to_thread(CliRunner().invoke, cli, words)


async def test_the_command_line_runs_a_row_again_once_whoever_dies(sheet: Sheet, tmp_path: Path) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    async with opened(sheet, orders(), ledger=ledger) as panel:
        BROKEN.add("Acme")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Failed"
        await panel.lease.release()
    for _ in range(2):  # asked twice before anybody looks: one more run
        done = await again(ledger, sheet, "4")
        assert (done.exit_code, done.output) == (0, "orders-A-1_run2: starts at the next look\n")
    async with opened(sheet, orders(), ledger=ledger) as panel:
        for nth in range(4):
            sheet.fault("lost_answer" if nth % 2 else "reset", kind="batchUpdate", write=True, count=1)
            with suppress(QuireError):
                await panel.look()
            await panel.client.work()
        sheet.calm()
        await settled(panel, 3)
        assert sorted(await records(panel)) == ["orders-A-1", "orders-A-1_run2"]
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized" and by_id(sheet)["A-1"]["confirmation"] == "C-Acme-1"


async def test_the_menu_types_it_into_the_status_column_of_a_table(tmp_path: Path) -> None:
    header = ["Order No", "Task  Status", "Remarks"]
    grid = [["Orders", "", ""], header, ["A-1", "Finalized", "x"], ["A-2", "Finalized", "y"]]
    async with served(tmp_path, ["Task_Status"]) as script:
        done = await script.run("quireAgain", sheets=[{"id": 7, "values": grid, "selected": [[1, 3]]}])
        assert [row[1] for row in done["sheets"][0]["values"]] == ["", "Task  Status", "Run again", "Finalized"]
        assert len(done["calls"]) == 1
        none = await script.run("quireAgain", sheets=[{"id": 7, "values": [["a", "b"]], "selected": [[1, 1]]}])
        assert none["calls"] == [] and "Select rows of a table" in none["alerts"][0]


class RefusedError(Exception):
    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status_code = status


async def test_the_error_log_says_type_message_place_and_http_status_and_links_what_is_long(sheet: Sheet) -> None:
    @workflow(name="calls", on=[Table("Orders", status="Current_State", words=AGENT)])
    async def calls(run: Run[Order]) -> None:
        if run.data.client == "Long":
            raise ValueError("x" * 3000)
        if run.data.client == "Fails":
            raise Fail("the bank says no")
        raise RefusedError("the bank is closed", 503)

    header = ["Execution_ID", "Current_State", "Client", "Amount", "Error_Log"]
    rows = [[f"e{n}", "INIT", name, "1"] for n, name in enumerate(["Http", "Long", "Fails"])]
    fill(sheet, rows, top=1, header=header)
    async with opened(sheet, calls) as panel:
        await settled(panel)
        said = {row["Client"]: row["Error_Log"] for row in table(sheet, top=1)}
    assert said["Http"].startswith("RefusedError: the bank is closed, HTTP 503 (in calls, test_again.py:")
    assert said["Fails"].startswith("Fail: the bank says no (in calls, test_again.py:")
    assert len(said["Long"]) == 2000 and said["Long"].startswith("ValueError: xxx")
    assert said["Long"].endswith("x… (all of it: quire show e1)")


async def test_a_context_that_is_longer_than_a_cell_is_linked_in_the_folder(sheet: Sheet, tmp_path: Path) -> None:
    from urllib.parse import unquote, urlsplit

    from quire.folder.local import LocalFolder
    from quire.surfaces.panel import Panel
    from quire.upkeep.projecting import projector_of

    fill(sheet, [["A-1", "Acme", "1", "", "Ready", "", ""]], header=[*_HEADER, "Context"])
    async with opened(sheet, long_data()) as panel:
        folder = LocalFolder(tmp_path)
        await folder.open()
        async with Panel(panel.client, sheet.url, folder=folder) as drawing:
            await settled(drawing)
        await projector_of(panel.client.ledger, folder).catch_up()
        context = parse(by_id(sheet)["A-1"]["Context"])
        assert context["longer_than_a_cell"] > 60_000 and context["see"] == "quire show orders-A-1"
        [content] = await folder.read("Workflows" + unquote(urlsplit(context["file"]).path).partition("Workflows")[2])
        kept = parse((content or b"").decode())
        assert kept["data"]["confirmation"] == "y" * 60_000
        await folder.close()


_HEADER = ["Order No", "Client", "Amount", "Due", "Task_Status"]


def long_data() -> Any:
    @workflow(name="long", on=[Table("Orders", status="Task_Status", id="Order No", context="Context")])
    async def long(run: Run[Order]) -> None:
        run.data.confirmation = "y" * 60_000

    return long


async def test_a_hidden_tab_that_somebody_deletes_is_named_made_anew_and_answered(sheet: Sheet) -> None:
    from quire.surfaces.panel.doctor import examine

    fill(sheet, [["A-1", "Acme", "1", "", "Ready"]])
    async with opened(sheet, orders()) as panel:
        await settled(panel)
        sheet.person("delete_sheet", "quire_tables")
        assert by_id(sheet)["A-1"]["Task_Status"] == "#REF!"
        found = [each.what for each in await examine(panel.client.ledger, sheet.url) if each.state != "well"]
        assert "the tab quire_tables of the panel was deleted; the panel makes it anew" in found
        await settled(panel, 3)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Finalized"
        assert any(
            "the hidden tab quire_tables was deleted: it is made anew" in str(row) for row in sheet.grid("panel")
        )
