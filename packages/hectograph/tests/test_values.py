from __future__ import annotations

import pytest

from emulator_api import Api, Book, Refused


def test_empty_ends_are_left_out_and_empty_rows_between_are_kept(book: Book) -> None:
    book.put("A1:D4", [["1", "", "", ""], ["", "", "", ""], ["", "", "", ""], ["", "", "", "2"]])

    assert book.values("A1:D4") == [["1"], [], [], ["", "", "", "2"]]
    assert book.get("E1:F2") == {"range": "Sheet1!E1:F2", "majorDimension": "ROWS"}


def test_raw_values_are_kept_as_they_are(book: Book) -> None:
    texts = ["=1+1", "00123", "1e5", "2020-01-01", "🎉", "TRUE", "'quoted", "9007199254740993"]
    book.put("A1", [texts, [1, 2.5, True, False, 9007199254740992]])

    assert book.values("A1:H1") == [texts]
    assert book.values("A2:E2", valueRenderOption="UNFORMATTED_VALUE") == [[1, 2.5, True, False, 9007199254740992]]
    assert book.values("A2:E2")[0][:4] == ["1", "2.5", "TRUE", "FALSE"]


def test_null_leaves_a_cell_alone_and_an_empty_text_clears_it(book: Book) -> None:
    book.put("A1", [["a", "b", "c"]])
    done = book.put("A1", [[None, "", "x"]])

    assert book.values("A1:C1") == [["a", "", "x"]]
    assert (done["updatedRange"], done["updatedCells"], done["updatedColumns"]) == ("Sheet1!A1:C1", 2, 2)


def test_columns_first(book: Book) -> None:
    path = f"{book.path}/values/A1"
    book.api("PUT", path, {"majorDimension": "COLUMNS", "values": [["a", "b"], ["c"]]}, valueInputOption="RAW")

    assert book.values("A1:B2") == [["a", "c"], ["b"]]
    assert book.get("A1:B2", majorDimension="COLUMNS")["values"] == [["a", "b"], ["c"]]


def test_values_can_be_had_in_the_answer_to_a_write(book: Book) -> None:
    done = book.put(
        "A1",
        [["=1+1", 3]],
        "USER_ENTERED",
        includeValuesInResponse="true",
        responseValueRenderOption="UNFORMATTED_VALUE",
    )

    assert done["updatedData"] == {"range": "Sheet1!A1:B1", "majorDimension": "ROWS", "values": [[2, 3]]}


@pytest.mark.parametrize(
    ("range_", "values", "text"),
    [
        ("A1:B1", [[1, 2, 3]], "Requested writing within range [Sheet1!A1:B1], but tried writing to column [C]"),
        ("A1:B1", [[1], [2]], "Requested writing within range [Sheet1!A1:B1], but tried writing to row [2]"),
        ("B3:C", [[1, 2, 3]], "Requested writing within range [Sheet1!B3:C], but tried writing to column [D]"),
        ("A1001", [[1]], "Range (Sheet1!A1001) exceeds grid limits. Max rows: 1000, max columns: 26"),
        ("A1:A2000", [[1]], "Range (Sheet1!A1:A2000) exceeds grid limits. Max rows: 1000, max columns: 26"),
        ("Nope!A1", [[1]], "Unable to parse range: Nope!A1"),
        ("A1", [["x" * 50_001]], "Your input contains more than the maximum of 50000 characters in a single cell."),
    ],
)
def test_writes_that_google_refuses(book: Book, range_: str, values: list[list[object]], text: str) -> None:
    with pytest.raises(Refused) as refused:
        book.put(range_, values)

    assert (refused.value.status, refused.value.message) == (400, text)
    assert book.values("A1:C3") == []


def test_reads_are_cut_to_the_grid_and_refused_beyond_it(book: Book) -> None:
    assert book.get("A1:AZ2000")["range"] == "Sheet1!A1:Z1000"
    with pytest.raises(Refused) as refused:
        book.get("1001:1002")

    assert refused.value.message == "Range (Sheet1!1001:1002) exceeds grid limits. Max rows: 1000, max columns: 26"


def test_a_missing_input_option_is_refused(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.api("PUT", f"{book.path}/values/A1", {"values": [[1]]})

    assert refused.value.message == "'valueInputOption' is required but not specified"


def test_an_unknown_option_is_refused_as_the_reader_refuses_it(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.get("A1", valueRenderOption="NICE")

    text = (
        "Invalid value at 'value_render_option' (type.googleapis.com/google.apps.sheets.v4.ValueRenderOption), \"NICE\""
    )
    assert refused.value.message == text
    [violation] = refused.value.body["error"]["details"][0]["fieldViolations"]
    assert violation == {"field": "value_render_option", "description": text}


def test_batch_update_counts_and_refuses_by_index(book: Book) -> None:
    done = book.api(
        "POST",
        f"{book.path}/values:batchUpdate",
        {
            "valueInputOption": "RAW",
            "data": [{"range": "A1:B1", "values": [[1, 2]]}, {"range": "A1", "values": [[3], [4]]}],
        },
    )

    assert done["totalUpdatedRows"] == 2
    assert done["totalUpdatedColumns"] == 2
    assert done["totalUpdatedCells"] == 4
    assert [item["updatedRange"] for item in done["responses"]] == ["Sheet1!A1:B1", "Sheet1!A1:A2"]
    with pytest.raises(Refused) as refused:
        book.api(
            "POST",
            f"{book.path}/values:batchUpdate",
            {
                "valueInputOption": "RAW",
                "data": [{"range": "A9", "values": [[1]]}, {"range": "No!A1", "values": [[1]]}],
            },
        )
    assert refused.value.message == "Invalid data[1]: Unable to parse range: No!A1"
    assert book.values("A9") == []


def test_append_slides_right_after_a_blank_cell(book: Book) -> None:
    """The recorded trap: a blank cell splits the only row into two tables, and the second one counts."""
    book.append("Sheet1", [["a", "", "c"]])
    done = book.append("Sheet1", [["a", "", "c"]])

    assert (done["tableRange"], done["updates"]["updatedRange"]) == ("Sheet1!C1", "Sheet1!C2:E2")


@pytest.mark.parametrize(
    ("range_", "where"),
    [
        ("Sheet1", "Sheet1!B7"),
        ("B4", "Sheet1!B7"),
        ("C5:D5", "Sheet1!B7"),
        ("B2:D4", "Sheet1!B7"),
        ("A3:G10", "Sheet1!B7"),
        ("A1", "Sheet1!A3"),
        ("E4", "Sheet1!E4"),
        ("A4", "Sheet1!A4"),
    ],
)
def test_append_finds_the_table_as_the_guide_says(book: Book, range_: str, where: str) -> None:
    """Google's own example: one table in A1:C2, another in B4:D6."""
    book.put("A1", [["x", "y", "z"], ["x", "y", "z"]])
    book.put("B4", [["x", "y", "z"]] * 3)

    assert book.append(range_, [["v"]])["updates"]["updatedRange"] == where


def test_append_writes_over_what_follows_or_inserts_rows(book: Book) -> None:
    book.put("A1", [["h"], ["a"], [""], ["below"]])
    book.append("A1", [["b"], ["c"]])
    assert book.values("A1:A5") == [["h"], ["a"], ["b"], ["c"]]

    book.put("A6", [["foot"]])
    book.append("A1", [["d"], ["e"]], insertDataOption="INSERT_ROWS")
    assert book.values("A1:A9") == [["h"], ["a"], ["b"], ["c"], ["d"], ["e"], [], ["foot"]]


def test_append_at_the_end_of_the_grid_makes_rows(book: Book) -> None:
    book.put("A1000", [["last"]])
    book.append("A1000", [["more"]])

    assert book.meta()["sheets"][0]["properties"]["gridProperties"]["rowCount"] == 1001


def test_data_filters_read_write_and_clear(book: Book) -> None:
    book.put("A1", [["a", "b"], ["c", "d"]])
    book.batch(
        {
            "createDeveloperMetadata": {
                "developerMetadata": {
                    "metadataId": 7,
                    "metadataKey": "k",
                    "visibility": "DOCUMENT",
                    "location": {"dimensionRange": {"sheetId": 0, "dimension": "ROWS", "startIndex": 1, "endIndex": 2}},
                }
            }
        }
    )
    row = {"developerMetadataLookup": {"metadataId": 7}}

    found = book.api("POST", f"{book.path}/values:batchGetByDataFilter", {"dataFilters": [row, {"a1Range": "A1"}]})
    assert [item["valueRange"]["range"] for item in found["valueRanges"]] == ["Sheet1!A1", "Sheet1!A2:Z2"]
    assert found["valueRanges"][1]["valueRange"]["values"] == [["c", "d"]]

    book.person("insert_rows", at=1)
    done = book.api(
        "POST",
        f"{book.path}/values:batchUpdateByDataFilter",
        {"valueInputOption": "RAW", "data": [{"dataFilter": row, "values": [["new"]]}]},
    )
    assert done["responses"][0]["updatedRange"] == "Sheet1!A3"
    assert book.values("A3:B3") == [["new", "d"]]
    cleared = book.api("POST", f"{book.path}/values:batchClearByDataFilter", {"dataFilters": [row]})
    assert cleared["clearedRanges"] == ["Sheet1!A3:Z3"]


def test_what_is_unknown_in_a_body_is_refused_by_name(book: Book) -> None:
    with pytest.raises(Refused) as refused:
        book.api("POST", f"{book.path}/values:batchUpdate", {"requests": []})

    assert refused.value.message == 'Invalid JSON payload received. Unknown name "requests": Cannot find field.'


def test_a_missing_book_is_not_found(api: Api) -> None:
    with pytest.raises(Refused) as refused:
        api("GET", "/v4/spreadsheets/nope/values/A1")

    assert refused.value.status == 404
    assert refused.value.body == {
        "error": {"code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND"}
    }
