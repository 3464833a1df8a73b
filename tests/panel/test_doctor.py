"""What the doctor says of a panel, and how to mend it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quire.errors import InputError
from quire.surfaces.cli import cli
from quire.surfaces.panel.book import Book
from quire.surfaces.panel.layout import STATE_ID
from quire.surfaces.waking import leave_hint
from tests.panel.conftest import Sheet, opened

Doctor = Callable[[], Result]


@pytest.fixture
def doctor(sheet: Sheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUIRE_PANEL", sheet.url)
    monkeypatch.setenv("QUIRE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    return lambda: CliRunner().invoke(cli, ["doctor"])


async def test_a_sound_panel_is_told_and_who_keeps_it_up(sheet: Sheet, doctor: Doctor, tmp_path: Path) -> None:
    async with opened(sheet, f"sqlite:///{tmp_path}/ledger.db") as panel:
        before = await asyncio.to_thread(doctor)
        assert "is reached" in before.output and "has no tabs yet" in before.output
        assert "nobody keeps the panel up; start quire up --panel" in before.output
        await panel.look()
        await leave_hint(panel.client.ledger)

        told = (await asyncio.to_thread(doctor)).output

    assert "the table 'state_table' has its 11 columns" in told
    assert "the panel is kept up by process" in told and "woke the panel" in told
    assert "of the panel is not" not in told and "cannot fill" not in told


async def test_what_people_did_to_it_is_named_with_its_remedy(sheet: Sheet, doctor: Doctor, tmp_path: Path) -> None:
    async with opened(sheet, f"sqlite:///{tmp_path}/ledger.db") as panel:
        await panel.look()
    sheet.person("edit", cell="B1", text="Zustand")
    sheet.person("show_sheet", "quire_state")
    sheet.person("delete_sheet", "panel")
    ranges = sheet.meta("sheets(properties.sheetId,protectedRanges.protectedRangeId)")["sheets"]
    [hidden] = [tab["protectedRanges"] for tab in ranges if tab["properties"].get("sheetId") == STATE_ID]
    requests = [{"deleteProtectedRange": {"protectedRangeId": each["protectedRangeId"]}} for each in hidden]
    sheet("POST", f"/v4/spreadsheets/{sheet.book_id}:batchUpdate", {"requests": requests})

    told = (await asyncio.to_thread(doctor)).output

    assert "the header of 'state_table' has drifted: status is not there" in told
    assert "the tab panel of the panel was deleted; the panel makes it anew" in told
    assert "the tab 'quire_state' of the panel is not hidden" in told
    assert "the tab 'quire_state' of the panel is not protected" in told
    assert "no script wakes the panel" in told


async def test_a_sheet_that_is_not_shared_is_ill_and_the_remedy_is_named(
    sheet: Sheet, doctor: Doctor, tmp_path: Path
) -> None:
    async with opened(sheet, f"sqlite:///{tmp_path}/ledger.db"):
        sheet.fault("error", status=403, message="The caller does not have permission", count=None, kind="sheets")

        told = await asyncio.to_thread(doctor)

    assert told.exit_code == 3
    assert "cannot be reached" in told.output and "Share the file with quire as an editor" in told.output


def test_a_sheet_may_be_named_as_the_browser_shows_it() -> None:
    assert Book("https://docs.google.com/spreadsheets/d/1A-b_C/edit#gid=0").spreadsheet_id == "1A-b_C"
    with pytest.raises(InputError, match="names no spreadsheet for the panel"):
        Book("https://example.org/d/1A-b_C")
