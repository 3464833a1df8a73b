"""Array formulas: what they give and what they spread over."""

from __future__ import annotations

from typing import Any

import pytest

from emulator_api import Book
from emulator_direct import Direct

Cells = dict[str, Any]


def shown(cells: Cells, **query: Any) -> list[list[Any]]:
    book = Direct().book()
    for place, given in cells.items():
        book.type(place, given if isinstance(given, list) else [[given]])
    return book.values("A1:H9", **query)


@pytest.mark.parametrize(
    ("cells", "grid"),
    [
        ({"A1": "={1,2;3,4}"}, [["1", "2"], ["3", "4"]]),
        ({"A1": [[1], [2]], "B1": "=ARRAYFORMULA(A1:A2*9)", "C1": "=SUM(B1:B2)"}, [["1", "9", "27"], ["2", "18"]]),
        ({"A1": "=SEQUENCE(2)", "B1": "=TRANSPOSE(A1:A2)"}, [["1", "1", "2"], ["2"]]),
        ({"A1": "={C1:C2;9}", "C1": "=SEQUENCE(2)"}, [["1", "", "1"], ["2", "", "2"], ["9"]]),
        ({"A1": [["b", 2], ["a", 1]], "D1": "=SORT(A1:B2,2,1)"}, [["b", "2", "", "a", "1"], ["a", "1", "", "b", "2"]]),
        ({"A1": [["x"], ["y"], ["x"]], "C1": "=UNIQUE(A1:A3)"}, [["x", "", "x"], ["y", "", "y"], ["x"]]),
        ({"A1": [[1], [5]], "C1": "=FILTER(A1:A2,A1:A2>2)"}, [["1", "", "5"], ["5"]]),
        ({"A1": [["a"], [""]], "B1": '=ARRAYFORMULA(IF(A1:A2="","-",UPPER(A1:A2)))'}, [["a", "A"], ["", "-"]]),
        ({"A1": '=ARRAYFORMULA(VLOOKUP({"b";"a"},{"a",1;"b",2},2,FALSE))'}, [["2"], ["1"]]),
        ({"A1": '=ARRAYFORMULA(1/{1;0})'}, [["1"], ["#DIV/0!"]]),
        ({"A1": '=SPLIT("a-3","-")'}, [["a", "3"]]),
        ({"A1": "=HSTACK({1;2},{3;4})"}, [["1", "3"], ["2", "4"]]),
        ({"A1": "=VSTACK({1,2},{3,4})"}, [["1", "2"], ["3", "4"]]),
        ({"A1": "=INDEX({1,2;3,4},2)"}, [["3", "4"]]),
        ({"A1": "=IF(TRUE,{1,2},0)"}, [["1", "2"]]),
        ({"A1": "=SUMPRODUCT({1,2}*{3,4})"}, [["11"]]),
        ({"A1": [[1], [2]], "B2": "=A1:A2", "B5": "=A1:A2"}, [["1"], ["2", "2"], [], [], ["", "#VALUE!"]]),
        ({"A1": "={1,2}", "B1": "mine"}, [["#REF!", "mine"]]),
        ({"G1": "={1,2,3}"}, [["", "", "", "", "", "", "1", "2"]]),
    ],
)  # fmt: skip
def test_what_array_formulas_spread(cells: Cells, grid: list[list[str]]) -> None:
    assert shown(cells) == grid


def test_what_is_spread_belongs_to_its_formula_alone() -> None:
    book = Direct().book()
    book.type("A1", [["={1,2}"]])

    [cells] = book.meta(ranges="A1:B1", fields="sheets.data.rowData.values(userEnteredValue,effectiveValue)")["sheets"]

    assert cells["data"][0]["rowData"][0]["values"] == [
        {"userEnteredValue": {"formulaValue": "={1,2}"}, "effectiveValue": {"numberValue": 1}},
        {"effectiveValue": {"numberValue": 2}},
    ]
    assert book.values("A1:B1", valueRenderOption="FORMULA") == [["={1,2}", 2]]
    book.put("A1", [[""]])
    assert book.values("A1:B1") == []


def test_an_append_goes_below_what_is_spread() -> None:
    book = Direct().book()
    book.type("A1", [["=SEQUENCE(3)"]])

    answer = book.append("A1", [["next"]])

    assert (answer["tableRange"], answer["updates"]["updatedRange"]) == ("Sheet1!A1:A3", "Sheet1!A4")


def test_a_blocked_array_says_what_is_in_its_way() -> None:
    book = Direct().book()
    book.type("A1", [["=SEQUENCE(3)"], [""], ["here"]])

    def error() -> dict[str, Any]:
        [sheet] = book.meta(ranges="A1", fields="sheets.data.rowData.values.effectiveValue")["sheets"]
        found: dict[str, Any] = sheet["data"][0]["rowData"][0]["values"][0]["effectiveValue"]
        return found

    text = "Array result was not expanded because it would overwrite data in A3."
    assert error() == {"errorValue": {"type": "REF", "message": text}}
    _clear(book, "A3")
    assert error() == {"numberValue": 1}
    assert book.values("A1:A3") == [["1"], ["2"], ["3"]]


def _clear(book: Book, place: str) -> None:
    book.api("POST", f"{book.path}/values/{place}:clear", {})


SALES: list[list[Any]] = [["who", "what", "n"], ["ann", "pen", 3], ["bob", "ink", 1], ["ann", "ink", 2]]


@pytest.mark.parametrize(
    ("query", "grid"),
    [
        ("select A, C where B = 'ink' order by C desc", [["who", "n"], ["ann", "2"], ["bob", "1"]]),
        ("select A, sum(C) group by A label sum(C) 'all'", [["who", "all"], ["ann", "5"], ["bob", "1"]]),
        ("select A where C > 1 and not B contains 'in'", [["who"], ["ann"]]),
        ("where A starts with 'b'", [["who", "what", "n"], ["bob", "ink", "1"]]),
        ("select C order by C limit 1 offset 1", [["n"], ["2"]]),
        ("select max(C)", [["max n"], ["3"]]),
        ("choose A", [["#VALUE!"]]),
    ],
)
def test_queries(query: str, grid: list[list[str]]) -> None:
    book = Direct().book()
    book.put("A1", SALES)
    book.type("E1", [[f'=QUERY(A1:C4,"{query}",1)']])

    assert book.values("E1:G9") == grid


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("=LARGE({3,1,2},2)", 2), ("=SMALL({3,1,2},1)", 1), ("=RANK(2,{3,1,2})", 2), ("=STDEV({1,2,3})", 1),
        ("=PERCENTILE({1,2,3,4,5},0.5)", 3), ("=MODE({1,2,2})", 2), ("=SUBTOTAL(9,{1,2})", 3), ("=GCD(12,18)", 6),
        ("=DOLLAR(2850)", "$2,850.00"), ("=FIXED(1234.567,1)", "1,234.6"), ("=DEC2HEX(255)", "FF"),
        ('=HEX2DEC("FF")', 255),
        ('=DATEDIF("2020-01-31","2021-03-01","M")', 13), ('=NETWORKDAYS("2026-03-02","2026-03-08")', 5),
        ('=WEEKNUM("2026-03-04")', 10), ("=TYPE(1)&TYPE(\"a\")&TYPE({1,2})", "1264"), ("=ERROR.TYPE(1/0)", 2),
        ("=MAXIFS({1,2,3},{1,1,0},1)", 2), ("=LOOKUP(2,{1,2,3},{\"a\",\"b\",\"c\"})", "b"), ("=EQ(1,1)", True),
        ("=ROUND(PMT(0.01,12,1000),2)", -88.85), ('=ISEMAIL("a@b.co")', True), ("=FACT(5)", 120),
    ],
)  # fmt: skip
def test_more_functions(formula: str, value: object) -> None:
    book = Direct().book()
    book.type("A1", [[formula]])

    assert book.values("A1", valueRenderOption="UNFORMATTED_VALUE") == [[value]]
