"""Books in other locales: numbers, dates, booleans and formulas as they are written there."""

from __future__ import annotations

import pytest

from emulator_api import Book, Refused
from emulator_direct import Direct


def book_in(locale: str) -> Book:
    api = Direct()
    made = api("POST", "/v4/spreadsheets", {"properties": {"title": "t", "locale": locale}})
    return Book(api, made["spreadsheetId"])


@pytest.mark.parametrize(
    ("locale", "typed", "shown", "value"),
    [
        ("de_DE", "1,5", "1,5", 1.5),
        ("de_DE", "1.234,56", "1.234,56", 1234.56),
        ("de_DE", "1.5", "1.5", 46143),  # the first of May of this year
        ("de_DE", "31.12.2020", "31.12.2020", 44196),
        ("de_DE", "12,5%", "12,50%", 0.125),
        ("de_DE", "WAHR", "WAHR", True),
        ("fr_FR", "3,14", "3,14", 3.14),
        ("fr_FR", "31/12/2020", "31/12/2020", 44196),
        ("fr_FR", "1\u202f234", "1\u202f234", 1234),
        ("en_GB", "31/12/2020", "31/12/2020", 44196),
        ("en_GB", "1,234.5", "1,234.50", 1234.5),
        ("en_US", "31/12/2020", "31/12/2020", "31/12/2020"),
        ("pt_BR", "12/31/2020", "12/31/2020", "12/31/2020"),
        ("sv_SE", "2020-12-31", "2020-12-31", 44196),
    ],
)
def test_what_is_typed_in_a_locale(locale: str, typed: str, shown: str, value: object) -> None:
    book = book_in(locale)
    book.type("A1", [[typed]])

    assert book.values("A1") == [[shown]]
    assert book.values("A1", valueRenderOption="UNFORMATTED_VALUE") == [[value]]


def test_formulas_are_punctuated_as_the_locale_does() -> None:
    book = book_in("de_DE")
    formulas = ["=SUM(1,5;2)", "={1\\2;3\\4}", '=IF(TRUE;"a,b;c";0,5)', "=SUM(1;A1)"]
    book.type("A1", [[text] for text in formulas[:1]])
    book.type("D1", [[formulas[1]]])
    book.type("G1", [[formulas[2]], [formulas[3]], ["=SUM(1,2,3)"]])

    assert book.values("A1:H3") == [["3,5", "", "", "1", "2", "", "a,b;c"], ["", "", "", "3", "4", "", "4,5"],
                                    ["", "", "", "", "", "", "#ERROR!"]]  # fmt: skip
    shown = book.values("A1:H3", valueRenderOption="FORMULA")
    assert [shown[0][0], shown[0][3], shown[0][6], shown[1][6], shown[2][6]] == [*formulas, "=SUM(1,2,3)"]


def test_a_change_of_locale_shows_the_same_numbers_in_another_way() -> None:
    book = book_in("en_US")
    book.type("A1", [["1,234.50", "=ROUND(1.25,1)"]])
    change = {"updateSpreadsheetProperties": {"properties": {"locale": "de_DE"}, "fields": "locale"}}

    book.batch(change)

    assert book.values("A1:B1") == [["1.234,50", "1,3"]]
    assert book.values("B1", valueRenderOption="FORMULA") == [["=ROUND(1,25;1)"]]


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("locale", "qq_QQ", "Unsupported locale: qq_QQ"),
        ("timeZone", "Europe/Nowhere", "Invalid time zone: Europe/Nowhere"),
    ],
)
def test_unknown_locales_and_zones_are_refused(field: str, value: str, text: str) -> None:
    book = book_in("en_US")

    with pytest.raises(Refused) as refused:
        book.batch({"updateSpreadsheetProperties": {"properties": {field: value}, "fields": field}})
    assert refused.value.message == f"Invalid requests[0].updateSpreadsheetProperties: {text}"
