"""gspread, unchanged but for the address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hectograph import Emulator

gspread = pytest.importorskip("gspread", reason="gspread is not installed")
requests = pytest.importorskip("requests", reason="requests is not installed")

# The library's own use of deprecated names is not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Any]:
    class Session(requests.Session):  # type: ignore[misc,name-defined]  # an untyped library
        def request(self, method: str, url: str, **more: Any) -> Any:
            for host in ("https://sheets.googleapis.com/", "https://www.googleapis.com/"):
                url = url.replace(host, emulator.url)
            return super().request(method, url, **more)

    with Session() as session:
        session.headers["Authorization"] = "Bearer test"
        yield gspread.Client(auth=None, session=session)


def test_values_formats_and_notes(client: Any) -> None:
    sheet = client.create("Book").sheet1

    sheet.update([["name", "n"], ["a", 1], ["b", 2]], "A1")
    sheet.update_acell("C1", "=SUM(B2:B3)")
    sheet.format("A1:B1", {"textFormat": {"bold": True}})
    sheet.insert_note("A1", "hello")

    assert sheet.get_all_records(head=1, expected_headers=["name", "n"])[1]["name"] == "b"
    assert sheet.acell("C1").value == "3"
    assert sheet.acell("C1", value_render_option="FORMULA").value == "=SUM(B2:B3)"
    assert sheet.get_note("A1") == "hello"
    assert [cell.row for cell in sheet.findall("b")] == [3]
    assert sheet.batch_get(["A1:B1", "B2"])[1] == [["1"]]


def test_sheets_rows_and_columns(client: Any) -> None:
    book = client.create("Book")
    first, second = book.sheet1, book.add_worksheet("two", 10, 5)

    first.append_rows([[1, 2], [3, 4]])
    first.insert_row(["x", "y"], 1)
    first.delete_rows(2)
    first.resize(20, 4)
    first.freeze(rows=1)
    first.hide_rows(4, 5)
    first.add_dimension_group_rows(6, 8)
    first.set_basic_filter("A1:B3")
    first.update_tab_color("#ff0000")
    first.sort((1, "des"))
    first.merge_cells("C1:D2")
    copy = first.duplicate(new_sheet_name="copy")
    book.reorder_worksheets([second, copy, first])

    assert [sheet.title for sheet in book.worksheets()] == ["two", "copy", "Sheet1"]
    assert first.get_all_values()[0][:2] == ["x", "y"]
    assert first.frozen_row_count == 1
    assert (book.worksheet("copy").row_count, book.worksheet("copy").col_count) == (20, 4)
    book.del_worksheet(second)
    assert len(book.worksheets()) == 2


def test_names_protection_and_permissions(client: Any) -> None:
    book = client.create("Book")
    sheet = book.sheet1

    sheet.define_named_range("A1:B2", "area")
    sheet.add_protected_range("A1:A2", ["someone@example.com"])
    book.share("someone@example.com", "user", "writer", notify=False)
    sheet.update([["1"]], "area", raw=True)

    assert [item["name"] for item in book.list_named_ranges()] == ["area"]
    assert book.list_protected_ranges(sheet.id)[0]["editors"]["users"][-1] == "someone@example.com"
    assert {item["role"] for item in book.list_permissions()} == {"owner", "writer"}
    assert len(book.remove_permissions("someone@example.com")) == 1
    with pytest.raises(gspread.exceptions.APIError, match="a named range with that name already exists"):
        sheet.define_named_range("A1:B2", "area")


def test_files(client: Any) -> None:
    book = client.create("Book")
    book.sheet1.update([["a", "b,c"]], "A1")

    assert client.open("Book").id == book.id
    assert client.export(book.id, gspread.utils.ExportFormat.CSV) == b'a,"b,c"'
    twin = client.copy(book.id, title="Twin", copy_permissions=True, copy_comments=True)
    assert twin.sheet1.get_all_values() == [["a", "b,c"]]
    client.import_csv(twin.id, "x,y\n1,2")
    assert client.open_by_key(twin.id).sheet1.get_all_values() == [["x", "y"], ["1", "2"]]
    client.del_spreadsheet(book.id)
    with pytest.raises(gspread.exceptions.SpreadsheetNotFound):
        client.open_by_key(book.id)
