from __future__ import annotations

from collections import Counter

import pytest

from emulator_api import Book, Refused, named


def test_typing_is_read_as_a_person_means_it(book: Book) -> None:
    book.person("edit", cell="A1", text="12%")
    book.person("edit", range="A2:B3", values=[["=A1+1%", "x"], ["2020-01-01"]])
    book.person("paste", cell="D1", text="a\tb\n1\t2")

    assert book.values("A1:E3") == [["12%", "", "", "a", "b"], ["13%", "x", "", "1", "2"], ["2020-01-01"]]
    book.person("clear", range="A1:B3")
    assert book.values("A1:B3") == []


def test_rows_and_columns_are_inserted_deleted_moved_and_pasted(book: Book) -> None:
    book.put("A1", [[f"r{n}", n] for n in range(1, 6)])

    book.person("insert_rows", at=2, count=2)
    book.person("delete_rows", at=1)
    book.person("move_rows", at=3, to=7)
    book.person("paste_rows", at=4, to=1)
    book.person("insert_columns", at=1)
    book.person("move_columns", at=2, to=4)

    assert [row[1:] for row in book.values("A1:C8")] == [
        ["4", "r4"],
        [],
        [],
        ["3", "r3"],
        ["4", "r4"],
        ["5", "r5"],
        ["2", "r2"],
    ]


def test_sorting_takes_notes_and_formats_along(book: Book) -> None:
    book.put("A1", [["head"], ["b"], ["a"], [""], ["c"]])
    book.batch(
        {
            "updateCells": {
                "start": {"sheetId": 0, "rowIndex": 1},
                "fields": "note",
                "rows": [{"values": [{"note": "on b"}]}],
            }
        }
    )

    book.person("sort", range="A2:A5", column="A", descending=True)

    assert book.values("A1:A5") == [["head"], ["c"], ["b"], ["a"]]
    found = book.meta(fields="sheets.data.rowData.values.note", ranges="A3")
    assert found["sheets"][0]["data"][0]["rowData"] == [{"values": [{"note": "on b"}]}]


def test_somebody_else_may_not_edit_what_is_protected_and_the_owner_may(book: Book) -> None:
    book.batch({"addProtectedRange": {"protectedRange": {"range": {"sheetId": 0, "endRowIndex": 1}}}})

    with pytest.raises(Refused, match="protected cell"):
        book.person("edit", cell="A1", text="x", **{"as": "guest@example.com"})
    book.person("edit", cell="A2", text="x", **{"as": "guest@example.com"})
    book.person("edit", cell="A1", text="owner")
    assert book.values("A1:A2") == [["owner"], ["x"]]


def test_a_strict_rule_refuses_what_is_typed(book: Book) -> None:
    rule = {"condition": {"type": "ONE_OF_LIST", "values": [{"userEnteredValue": "APPROVE"}]}, "strict": True}
    book.batch({"setDataValidation": {"range": {"sheetId": 0, "endRowIndex": 1, "endColumnIndex": 1}, "rule": rule}})

    with pytest.raises(Refused, match="violates the data validation rules"):
        book.person("edit", cell="A1", text="MAYBE")
    book.person("edit", cell="A1", text="APPROVE")
    assert book.values("A1") == [["APPROVE"]]


def test_a_book_is_restored_to_an_older_version(book: Book) -> None:
    book.batch(named("h0"))
    for n in range(5):
        book.put("A1", [[n]])

    assert book.person("restore", versions=2)["restored"] > 0
    assert book.values("A1") == [["2"]]
    versions = book.api("GET", f"/emulator/books/{book.book_id}/versions")["versions"]
    book.person("restore", version=versions[2]["version"])
    assert book.values("A1") == [["0"]]
    assert [v["version"] for v in versions] == sorted({v["version"] for v in versions})


def test_a_copied_book_has_the_same_names_and_goes_its_own_way(book: Book) -> None:
    book.batch(named("h0"))
    book.put("A1", [["x"]])

    twin = Book(book.api, book.person("copy_book", title="Twin")["id"])

    assert [item["namedRangeId"] for item in twin.meta()["namedRanges"]] == ["h0"]
    twin.put("A1", [["y"]])
    assert book.values("A1") == [["x"]]


def test_a_name_whose_cell_is_deleted_stays_as_a_ghost(book: Book) -> None:
    book.batch(named("h0", row=3))
    book.person("delete_rows", at=4)

    assert book.meta()["namedRanges"] == [{"namedRangeId": "h0", "name": "HEAD"}]
    with pytest.raises(Refused, match="already exists"):
        book.batch(named("h1"))


def test_random_people_lose_no_row_of_a_sheet_they_only_shuffle(book: Book) -> None:
    rows = [[f"rec{n}", n] for n in range(30)]
    book.put("A1", [["id", "n"], *rows])

    done = book.person("random", rounds=60, seed=4, only=["sort", "insert_rows", "move_rows"])["done"]

    assert len({step["do"] for step in done}) == 3
    found = [row for row in book.values("A1:B200") if row]
    assert found[0] == ["id", "n"]
    assert Counter(map(tuple, found[1:])) == Counter((a, str(b)) for a, b in rows)


@pytest.mark.parametrize("given", [{"do": "fly"}, {"do": "edit", "sheet": "nope"}, {"do": "delete_rows", "at": 5000}])
def test_what_a_person_cannot_do(book: Book, given: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        book.api("POST", "/emulator/person", {"book": book.book_id, **given})

    assert refused.value.status == 400
