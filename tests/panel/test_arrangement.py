"""The state table as a team wants it: names and order of its columns, the row of its header; and moves by next_step."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from quire.client.client import Client
from quire.errors import InputError
from quire.explain import stuck
from quire.model.codec import parse
from quire.surfaces.panel import Panel
from quire.surfaces.panel.columns import arranged
from quire.surfaces.panel.doctor import examine
from quire.surfaces.server import app
from tests.panel.conftest import Sheet, make_board, make_publish, opened

COLUMNS = {"header": "3", "command": "Please", "record_id": "Execution_ID", "status": "Current_State"}


async def test_names_order_and_header_row_of_the_state_table_are_configured(sheet: Sheet) -> None:
    async with (
        Client("memory:", workflows=[make_publish(), make_board()], who="tester") as client,
        Panel(client, sheet.url, columns=COLUMNS) as panel,
    ):
        await client.start("publish", {"keyword": "tea"}, id="a1")
        await client.work()
        await panel.look()
        grid = sheet.grid()
        assert grid[2][:5] == ["Please", "Execution_ID", "Current_State", "next_step", "dedupe_key"] and len(grid) == 4
        assert grid[3][1:4] == ["a1", "NEEDS_APPROVAL", "review"]
        frozen = sheet.meta("sheets.properties")["sheets"][0]["properties"]["gridProperties"]["frozenRowCount"]
        assert frozen == 3

        sheet.person("edit", cell="A4", text="approve")
        sheet.person("move_columns", "state_table", at=2, count=1, to=6)
        await panel.look()
        await client.work()
        await panel.look()
        row = dict(zip(sheet.grid()[2], sheet.grid()[3], strict=False))
        assert row["Current_State"] == "DONE" and row["Please"] == ""

        column = "ABCDEFGH"[sheet.grid()[2].index("Current_State")]
        sheet.person("edit", cell=f"{column}3", text="zustand")
        await panel.look()
        await panel.look()
        assert sheet.grid()[2][-1] == "Current_State" and sheet.grid()[3][-1] == "DONE"
        found = [each.what for each in await examine(client.ledger, sheet.url, COLUMNS) if "columns" in each.what]
        assert found == ["the table 'state_table' has its 11 columns"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stats": "x"}, "has 'stats'; did you mean 'status'"),
        ({"status": "why"}, "calls two columns 'why'"),
        ({"status": " "}, "a column needs a name"),
        ({"header": "0"}, "give a row from 1 to 50"),
    ],
)
def test_an_arrangement_that_cannot_be_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as refused:
        arranged(given)
    assert said in str(refused.value)


def test_the_configuration_says_it_too(tmp_path: Path) -> None:
    from quire.surfaces.config import load

    (tmp_path / "quire.toml").write_text('[state_table]\nheader = "3"\nstatus = "Current_State"\n', encoding="utf-8")
    arrangement = arranged(load(start=tmp_path, environ={}).state_table)
    assert arrangement.order[:2] == ("status", "record_id") and arrangement.header == 2


async def test_a_column_of_the_state_table_that_stands_there_twice_is_refused_by_name(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.client.start("board", {}, id="b1")
        await panel.client.work()
        await panel.look()
        sheet.person("edit", cell="M1", text="command")
        before = sheet.grid()
        sheet.type("b1", "command", "DOING")
        await panel.look()
        text = "the state table has two columns 'command', J and M: rename one of them"
        assert (await panel.client.get("b1")).step == "TODO" and sheet.grid()[0] == before[0]
        assert [each.sentence for each in await stuck.look(panel.client.ledger)] == [text]
        assert text in [each.what for each in await examine(panel.client.ledger, sheet.url)]
        assert [each["text"] for each in await on_the_dashboard(panel.client)] == [text]
        sheet.person("edit", cell="M1", text="mine")
        await panel.look()
        assert (await panel.client.get("b1")).step == "DOING" and await stuck.look(panel.client.ledger) == []


async def on_the_dashboard(client: Client) -> list[dict[str, str]]:
    transport = httpx2.ASGITransport(app(client), client=("127.0.0.1", 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        found: list[dict[str, str]] = (await http.get("/api/tables")).json()
    return found


async def test_typing_a_successor_over_next_step_moves_the_record_and_anything_else_is_put_back(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.client.start("board", {}, id="b1")
        await panel.client.start("publish", {"keyword": "tea"}, id="a1")
        await panel.client.work()
        await panel.look()
        sheet.type("b1", "next_step", "doing ")
        sheet.type("a1", "next_step", "archive")
        await panel.look()
        assert sheet.row("b1")["next_step"] == "DOING" and sheet.row("b1")["reply"].startswith("DOING: moved")
        await panel.client.work()
        await panel.look()
        assert sheet.row("a1")["status"] == "DONE"

        sheet.type("b1", "next_step", "ARCHIVED")
        await panel.look()
        row = sheet.row("b1")
        assert row["next_step"] == "DOING"
        assert "Invalid state transition: Cannot move from DOING to ARCHIVED." in row["reply"]
        last = (await panel.client.events("b1"))[-1]
        assert last.kind == "refused" and parse(last.body)["to"] == "ARCHIVED" and parse(last.body)["by"] == "sheet"


async def test_a_move_by_next_step_is_made_once_whichever_write_is_lost(sheet: Sheet) -> None:
    from contextlib import suppress

    from quire.errors import QuireError

    async with opened(sheet) as panel:
        for nth, fault in enumerate(["reset", "lost_answer"]):
            await panel.client.start("board", {}, id=f"b{nth}")
            await panel.client.work()
            await panel.look()
            sheet.type(f"b{nth}", "next_step", "DOING")
            sheet.fault(fault, kind="batchUpdate", write=True, count=1)
            with suppress(QuireError):
                await panel.look()
            sheet.calm()
            await panel.look()
            moved = [each.kind for each in await panel.client.events(f"b{nth}") if each.kind in ("moved", "refused")]
            assert moved == ["moved"] and sheet.row(f"b{nth}")["next_step"] == "DOING"
