"""The page in a real browser: a person sees the sheet and types in it."""

from __future__ import annotations

from typing import Any

import pytest

from emulator_api import Book

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.browser


def test_a_person_sees_the_sheet_types_in_it_and_sees_others_type(book: Book, page: Any) -> None:
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    book.put("A1", [["name", "n"], ["a", 1]])
    # A small grid: the page draws all of its cells anew whenever something changes.
    small = {"rowCount": 12, "columnCount": 6}
    first = {"sheetId": 0, "gridProperties": small}
    book.batch({"updateSheetProperties": {"properties": first, "fields": "gridProperties(rowCount,columnCount)"}})
    book.batch({"addSheet": {"properties": {"sheetId": 5, "title": "other", "gridProperties": small}}})
    rule = {"condition": {"type": "BOOLEAN"}}
    stop = {"sheetId": 5, "startRowIndex": 0, "endRowIndex": 1, "startColumnIndex": 0, "endColumnIndex": 1}
    book.batch({"setDataValidation": {"range": stop, "rule": rule}})

    page.goto(f"{book.api.emulator.url}book/{book.book_id}")
    cell = page.locator('td[data-at="1,1"]')
    cell.wait_for()
    assert cell.inner_text() == "1"

    cell.click()
    page.keyboard.type("=A1&A2")
    page.keyboard.press("Enter")
    page.locator('td[data-at="1,1"]:has-text("namea")').wait_for()
    assert book.values("B2", valueRenderOption="FORMULA") == [["=A1&A2"]]

    book.put("C2", [["from the API"]])
    page.locator('td[data-at="1,2"]:has-text("from the API")').wait_for()

    page.locator('td[data-at="0,0"]').click()
    page.get_by_role("button", name="insert row").click()
    page.locator('td[data-at="2,0"]:has-text("a")').wait_for()
    assert book.values("A2") == [["name"]]

    page.get_by_role("button", name="other").click()
    box = page.locator('td[data-at="0,0"] input[type=checkbox]')
    box.wait_for()
    # The browser ticks the box at once; the sheet knows when the page has been answered.
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        box.click()
    page.locator('td[data-at="0,0"] input:checked').wait_for()
    assert book.values("other!A1", valueRenderOption="UNFORMATTED_VALUE") == [[True]]
    assert problems == []
