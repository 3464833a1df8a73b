from __future__ import annotations

import pytest

from hectograph.core.error import Invalid
from hectograph.sheets import a1
from hectograph.sheets.book import Book, Sheet


@pytest.fixture
def names() -> Book:
    book = Book.fresh("id", "Book")
    book.add(Sheet(7, "D3", 10, 10))
    book.add(Sheet(8, "My sheet", 10, 10))
    book.add(Sheet(9, "it's", 10, 10))
    book.named["n"] = {
        "namedRangeId": "n",
        "name": "Head",
        "range": {"sheetId": 7, "startRowIndex": 1, "endRowIndex": 2},
    }
    return book


@pytest.mark.parametrize(
    ("text", "sheet", "sides"),
    [
        ("A1", 0, (0, 1, 0, 1)),
        ("B2:A1", 0, (0, 2, 0, 2)),
        ("$A$1:$B$2", 0, (0, 2, 0, 2)),
        ("Sheet1!A1:B2", 0, (0, 2, 0, 2)),
        ("sheet1!a1", 0, (0, 1, 0, 1)),
        ("Sheet1", 0, (None, None, None, None)),
        ("'Sheet1'", 0, (None, None, None, None)),
        ("A:C", 0, (None, None, 0, 3)),
        ("2:3", 0, (1, 3, None, None)),
        ("A5:A", 0, (4, None, 0, 1)),
        ("A:A5", 0, (4, None, 0, 1)),
        ("A2:2", 0, (1, 2, 0, None)),
        ("D3", 0, (2, 3, 3, 4)),
        ("'D3'", 7, (None, None, None, None)),
        ("'D3'!A1", 7, (0, 1, 0, 1)),
        ("'My sheet'!B2", 8, (1, 2, 1, 2)),
        ("My sheet!B2", 8, (1, 2, 1, 2)),
        ("My sheet", 8, (None, None, None, None)),
        ("'it''s'!A1", 9, (0, 1, 0, 1)),
        ("Head", 7, (1, 2, None, None)),
        ("Sheet1!Head", 7, (1, 2, None, None)),
        ("R2C3", 0, (1, 2, 2, 3)),
        ("Sheet1!R1C1:R2C2", 0, (0, 2, 0, 2)),
        ("ZZZ1", 0, (0, 1, 18277, 18278)),
        ("R[1]C[1]", 0, (1, 2, 1, 2)),
        ("R1C1:R[2]C[2]", 0, (0, 3, 0, 3)),
        ("RC", 0, (0, 1, 0, 1)),
        ("R1", 0, (0, 1, 17, 18)),
        ("R[1]", 0, (1, 2, None, None)),
        ("R1C1:R2", 0, (0, 2, 0, None)),
        ("R1C1:C2", 0, (0, None, 0, 2)),
        ("R3C3:R1C1", 0, (0, 3, 0, 3)),
        ("!A1", 0, (0, 1, 0, 1)),
    ],
)
def test_what_a_range_means(names: Book, text: str, sheet: int, sides: tuple[int | None, ...]) -> None:
    rect = a1.parse(text, names).rect

    assert rect.sheet_id == sheet
    assert (rect.top, rect.bottom, rect.left, rect.right) == sides


@pytest.mark.parametrize(
    "text",
    [
        "Nope!A1",
        "Sheet1!",
        "Sheet1!A1:B2:C3",
        "",
        "A0",
        "1A",
        "'Sheet1",
        "Sheet1!Nope",
        "R0C1",
        "R2C2:R1C1",
        "A1:R2C2",
        " A1",
        "Sheet1!B",
    ],
)
def test_what_is_no_range_is_refused_with_its_text(names: Book, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        a1.parse(text, names)

    assert str(refused.value) == f"Unable to parse range: {text}"


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Sheet1", "Sheet1"),
        ("test_sheet", "test_sheet"),
        ("D3", "'D3'"),
        ("R1C1", "'R1C1'"),
        ("My sheet", "'My sheet'"),
        ("it's", "'it''s'"),
        ("2020", "'2020'"),
        ("a-b", "'a-b'"),
        ("Лист1", "'Лист1'"),
    ],
)
def test_titles_are_quoted_where_they_could_be_misread(title: str, shown: str) -> None:
    assert a1.quoted(title) == shown


def test_letters_and_numbers_of_columns_are_inverse() -> None:
    for column in (0, 25, 26, 51, 701, 702, 18277):
        assert a1.column_index(a1.letters(column)) == column
    assert a1.letters(26) == "AA"
