from __future__ import annotations

from datetime import UTC, datetime

import pytest

from emulator_api import Book
from hectograph.sheets.book import Book as Data
from hectograph.sheets.formulas.formula import Calculation
from hectograph.sheets.numberformat import shown
from hectograph.sheets.parse import entered
from hectograph.sheets.values import put

GRID = [
    ["id", "amount", "when", "flag"],
    ["a", "1", "2020-01-01", "TRUE"],
    ["b", "2.5", "2020-02-01", "FALSE"],
    ["c", "4", "", "TRUE"],
    ["=B2+B3", "", "", ""],
]


@pytest.fixture(scope="module")
def calculation() -> Calculation:
    data = Data.fresh("id", "t")
    sheet = data.write(0)
    for row, line in enumerate(GRID):
        for column, text in enumerate(line):
            put(sheet, row, column, entered(text))
    return Calculation(data, lambda: datetime(2026, 3, 4, 12, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("=1+2*3", 7),
        ("=(1+2)*3", 9),
        ("=-2^2", 4),
        ("=2^3^2", 64),
        ("=10%", 0.1),
        ('="a"&1&TRUE', "a1TRUE"),
        ('="say ""hi"""', 'say "hi"'),
        ("=1=1", True),
        ('="A"="a"', True),
        ("=1<>2", True),
        ("=A2", "a"),
        ("=Sheet1!B3", 2.5),
        ("='Sheet1'!B3*2", 5),
        ("=A5", 3.5),
        ("=SUM(B2:B4)", 7.5),
        ("=SUM(B:B)", 7.5),
        ("=SUM(B2:B4,1)", 8.5),
        ("=COUNT(A1:D4)", 5),
        ("=COUNTA(A1:A9)", 5),
        ("=AVERAGE(B2:B4)", 2.5),
        ("=MIN(B2:B4)", 1),
        ("=MAX(B2:B4)", 4),
        ("=ROUND(2.345,2)", 2.35),
        ("=ROUND(-2.5,0)", -3),
        ('=IF(B2>0,"y","n")', "y"),
        ('=IF(B2<0,"y")', False),
        ('=IFERROR(1/0,"e")', "e"),
        ('=IFNA(VLOOKUP("z",A:B,2,FALSE),"none")', "none"),
        ('=CONCATENATE("a",A2:A3,1)', "aab1"),
        ('=VLOOKUP("b",A2:D4,2,FALSE)', 2.5),
        ('=VLOOKUP("B",A:B,2,0)', 2.5),
        ("=VLOOKUP(3,B2:B4,1)", 2.5),
        ('=XLOOKUP("c",A:A,B:B)', 4),
        ('=XLOOKUP("z",A:A,B:B,"no")', "no"),
        ('=INDEX(A1:D4,MATCH("c",A1:A4,0),2)', 4),
        ("=MATCH(3,B2:B4)", 2),
        ("=ROW(A3)", 3),
        ("=COLUMN(C1)", 3),
        ('=LEN("héllo")', 5),
        ('=UPPER("a")&LOWER("B")&TRIM("  a   b ")', "Aba b"),
        ("=AND(TRUE,1)", True),
        ("=OR(FALSE,0)", False),
        ("=NOT(D2)", False),
        ('=HYPERLINK("https://example.com","label")', "label"),
        ("=TODAY()", 46085),
        ("=NOW()", 46085.5),
        ("=DATE(2020,1,1)", 43831),
        ("=C2", 43831),
        ('=COUNTIF(B2:B4,">1")', 2),
        ('=SUMIF(A2:A4,"b",B2:B4)', 2.5),
        ('=TEXT(0.256,"0.0%")', "25.6%"),
        ('=TEXT(43831,"yyyy-mm-dd")', "2020-01-01"),
        ('=SUBSTITUTE("a-b","-","+")', "a+b"),
        ('=LEFT("abc",2)&RIGHT("abc",1)&MID("abc",2,1)', "abcb"),
        ('=TEXTJOIN(",",TRUE,A2:A4)', "a,b,c"),
        ('=REGEXMATCH("abc","b.")', True),
        ('=SWITCH(2,1,"a",2,"b")', "b"),
        ("=ISBLANK(C4)", True),
        ("=SUM({1,2;3,4})", 10),
        ("=MOD(-1,3)", 2),
        ('=INDIRECT("B3")', 2.5),
        ("=C4", None),
    ],
)
def test_what_a_formula_gives(calculation: Calculation, formula: str, value: object) -> None:
    assert calculation.formula(formula, (0, 8, 8)) == value


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("=1/0", "#DIV/0!"),
        ("=NOPE(1)", "#NAME?"),
        ("=nope", "#NAME?"),
        ("=1+", "#ERROR!"),
        ("=(1", "#ERROR!"),
        ('="a"+1', "#VALUE!"),
        ("=Gone!A1", "#REF!"),
        ("=#REF!+1", "#REF!"),
        ('=VLOOKUP("z",A:B,2,FALSE)', "#N/A"),
        ("=VLOOKUP(1,A1:B2,9,FALSE)", "#REF!"),
        ("=SQRT(-1)", "#NUM!"),
        ("=NA()", "#N/A"),
        ('=IMPORTXML("https://example.com","//a")', "#N/A"),
        ("=AVERAGE(C4)", "#DIV/0!"),
    ],
)
def test_what_fails_is_an_error_value(calculation: Calculation, formula: str, code: str) -> None:
    assert getattr(calculation.formula(formula, (0, 8, 8)), "code", None) == code


def test_a_circle_is_an_error_and_not_a_hang(book: Book) -> None:
    book.type("A1", [["=B1", "=A1"]])

    assert book.values("A1:B1") == [["#REF!", "#REF!"]]


def test_a_long_chain_of_formulas_is_evaluated(book: Book) -> None:
    book.type("A1", [[1], *([f"=A{n}+1"] for n in range(1, 500))])

    assert book.values("A500") == [["500"]]


@pytest.mark.parametrize(
    ("typed", "value", "text"),
    [
        ("42", 42, "42"),
        ("0042", 42, "42"),
        ("-1.50", -1.5, "-1.5"),
        ("1,234", 1234, "1,234"),
        ("1,234.5", 1234.5, "1,234.50"),
        ("12,34", "12,34", "12,34"),
        ("12%", 0.12, "12%"),
        ("12.5%", 0.125, "12.50%"),
        ("$5", 5, "$5"),
        ("-$1,234.50", -1234.5, "-$1,234.50"),
        ("(5)", -5, "-5"),
        ("1e5", 100000, "1.00E+05"),
        ("TRUE", True, "TRUE"),
        ("false", False, "FALSE"),
        ("'00123", "00123", "00123"),
        ("'=1+1", "=1+1", "=1+1"),
        ("2020-01-01", 43831, "2020-01-01"),
        ("1/2/2020", 43832, "1/2/2020"),
        ("01/02/2020", 43832, "01/02/2020"),
        ("Jan 2, 2020", 43832, "Jan 2, 2020"),
        ("2-Jan-2020", 43832, "2-Jan-2020"),
        ("10:30", 0.4375, "10:30"),
        ("10:30 PM", 0.9375, "10:30 PM"),
        ("2020-01-01 10:30:00", 43831.4375, "2020-01-01 10:30:00"),
        ("13/13/2020", "13/13/2020", "13/13/2020"),
        ("hello", "hello", "hello"),
        (" 7 ", 7, "7"),
        ("1.2.3", "1.2.3", "1.2.3"),
        ("emoji 🎉", "emoji 🎉", "emoji 🎉"),
    ],
)
def test_what_typing_means(typed: str, value: object, text: str) -> None:
    read = entered(typed, year=2026)

    assert read.value == value
    assert shown(read.value, read.number_format) == text  # type: ignore[arg-type]  # none of these is a formula


@pytest.mark.parametrize(
    ("value", "pattern", "text"),
    [
        (1234.567, "#,##0.00", "1,234.57"),
        (1.5, "# ?/?", "1 1/2"),
        (-0.3125, "# ??/16", "-5/16"),
        (0.5, "0.00%", "50.00%"),
        (5, "000", "005"),
        (-5, '0;(0);"zero"', "(5)"),
        (0, '0;(0);"zero"', "zero"),
        (1234567, "0.0,,", "1.2"),
        (43831.75, "dddd, mmmm d, yyyy h:mm am/pm", "Wednesday, January 1, 2020 6:00 PM"),
        (1.5, "[h]:mm:ss", "36:00:00"),
        (12345, "0.00E+00", "1.23E+04"),
        (1 / 3, None, "0.3333333333"),
        (1e20, None, "1E+20"),
        (123456789012345.0, None, "123456789012345"),
        (0.1 + 0.2, None, "0.3"),
    ],
)
def test_how_a_number_is_shown(value: float, pattern: str | None, text: str) -> None:
    assert shown(value, {"pattern": pattern} if pattern else None) == text


def test_references_follow_inserted_deleted_and_moved_rows_and_columns(book: Book) -> None:
    book.type("A1", [[1, 2], [3, 4], ["=A1+$B$2", "=SUM(A1:B2)"]])

    book.person("insert_rows", at=2)
    assert book.values("A4:B4", valueRenderOption="FORMULA") == [["=A1+$B$3", "=SUM(A1:B3)"]]
    book.person("insert_columns", at=1)
    assert book.values("B4:C4", valueRenderOption="FORMULA") == [["=B1+$C$3", "=SUM(B1:C3)"]]
    book.person("delete_rows", at=2)
    book.person("delete_columns", at=1)
    assert book.values("A3:B3", valueRenderOption="FORMULA") == [["=A1+$B$2", "=SUM(A1:B2)"]]
    book.person("move_rows", at=1, to=3)
    assert book.values("A3", valueRenderOption="FORMULA") == [["=A2+$B$1"]]
    book.person("delete_rows", at=2)
    assert book.values("A2", valueRenderOption="FORMULA") == [["=#REF!+$B$1"]]


def test_same_row_look_ups_keep_their_row_through_sort_insert_delete_and_copy(book: Book) -> None:
    book.batch({"addSheet": {"properties": {"sheetId": 5, "title": "state"}}})
    book.put("state!A1", [[f"rec{n}", f"status {n}"] for n in range(5)])
    book.type("A2", [[f"rec{n}", f'=IFERROR(VLOOKUP(A{n + 2},state!$A:$B,2,FALSE),"")'] for n in range(5)])

    book.person("sort", range="A2:B6", column=1, descending=True)
    book.person("insert_rows", at=2)
    book.person("delete_rows", at=4)
    book.person("paste_rows", at=3, to=7)

    rows = [row for row in book.values("A1:B10") if row]
    assert len(rows) == 5
    for record, status in rows:
        assert status == f"status {record.removeprefix('rec')}"


def test_a_renamed_sheet_is_renamed_in_formulas_and_a_deleted_one_is_lost(book: Book) -> None:
    book.batch({"addSheet": {"properties": {"sheetId": 5, "title": "other"}}})
    book.put("other!A1", [[7]])
    book.type("A1", [["=other!A1"]])

    book.person("rename_sheet", sheet="other", title="new name")
    assert book.values("A1", valueRenderOption="FORMULA") == [["='new name'!A1"]]
    assert book.values("A1") == [["7"]]
    book.person("delete_sheet", sheet="new name")
    assert book.values("A1") == [["#REF!"]]
