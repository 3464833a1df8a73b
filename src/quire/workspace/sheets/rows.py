"""A row in a spreadsheet of one's own.

One batch inserts an empty row, writes its cells and marks it with metadata: the number of the metadata was drawn before
and stands in the intent, so Google refuses the whole batch the second time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from quire.errors import did_you_mean
from quire.google.error import Invalid
from quire.workflows.effect import Act, Kept, NotDone, PrepareAgain
from quire.workflows.retry import Fail
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.sheets.cells import cell_of, plain, value_of
from quire.workspace.values import FileLike, RowIn, id_of, outside_key

_KEY = "quire"
_CELLS = "data.rowData.values(effectiveValue,formattedValue)"
_FIELDS = f"sheets(properties(sheetId,title,gridProperties.rowCount),{_CELLS})"


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    with refusing():
        read = await (await google(act.connection)).sheets.spreadsheets_get(id_of(given.book), fields=_FIELDS)
    tabs = {str(one["properties"]["title"]): one for one in read.get("sheets", ())}
    if given.tab not in tabs:
        raise Fail(f"the spreadsheet has no tab {given.tab!r}{did_you_mean(given.tab, tabs)}; it has {', '.join(tabs)}")
    rows = [row.get("values", []) for area in tabs[given.tab].get("data", ()) for row in area.get("rowData", ())]
    filled = [n for n, row in enumerate(rows) if any("effectiveValue" in cell for cell in row)]
    header = [str(cell.get("formattedValue", "")) for cell in rows[filled[0]]] if filled else []
    about = tabs[given.tab]["properties"]
    at = filled[-1] + 1 if filled else 0
    return {
        "sheet": int(about.get("sheetId", 0)),
        "at": at,
        "grows": at >= int(about.get("gridProperties", {}).get("rowCount", 0)),
        "cells": _cells(given.row, header, given.tab),
    }


def _cells(row: Any, header: Sequence[str], tab: str) -> list[Any]:
    """The values of the new row, in the order of the columns."""
    if not isinstance(row, Mapping):
        return [value_of(value, f"column {number}") for number, value in enumerate(row, 1)]
    for name in row:
        if name not in header:
            raise Fail(f"the tab {tab!r} has no column {name!r}{did_you_mean(name, header)}")
    return [value_of(row[name], name) if name in row else None for name in header]


async def _reserve(act: Act[Any], given: Given) -> dict[str, Any]:
    return {**act.prepared, "id": random.randrange(1, 2**31 - 1)}


async def _find(act: Act[Any], given: Given) -> RowIn | NotDone:
    sheets = (await google(act.connection)).sheets
    found = await sheets.developer_metadata_search(id_of(given.book), key=_KEY, value=outside_key(act.key))
    if found:
        return RowIn(id_of(given.book), given.tab, outside_key(act.key))
    return PrepareAgain("the tab has no row with the mark of this act")


async def _undo(act: Act[Any], made: RowIn) -> Kept | None:
    """Delete the row that has the mark, unless somebody has changed it."""
    sheets = (await google(act.connection)).sheets
    found = await sheets.developer_metadata_search(made.book, key=_KEY, value=made.mark)
    spans = [one["location"]["dimensionRange"] for one in found if one.get("location", {}).get("dimensionRange")]
    if not spans:
        return None  # it is gone already
    span = spans[0]
    area = {name: span[name] for name in ("sheetId",) if name in span}
    area |= {"startRowIndex": span.get("startIndex", 0), "endRowIndex": span.get("startIndex", 0) + 1}
    [rows] = await sheets.values_batch_get_by_data_filter(made.book, [{"gridRange": area}])
    there = list(rows[0]) if rows else []
    wanted = [plain(value) for value in act.prepared["cells"]]
    while wanted and wanted[-1] == "":
        wanted.pop()
    if wanted != there:
        return Kept("somebody has changed the row; it stays")
    await sheets.spreadsheets_batch_update(made.book, [{"deleteDimension": {"range": span}}], repeatable=False)
    return None


@google_effect(check=_check, reserve=_reserve, find=_find, undo=_undo)
async def row(act: Act[Any], book: FileLike, tab: str, row: Mapping[str, Any] | Sequence[Any]) -> RowIn:
    """Put a row below the last one of a tab: values in order, or by the names in the tab's first row."""
    ready, mark = act.prepared, outside_key(act.key)
    span = {"sheetId": ready["sheet"], "dimension": "ROWS", "startIndex": ready["at"], "endIndex": ready["at"] + 1}
    data = {
        "metadataId": ready["id"],
        "metadataKey": _KEY,
        "metadataValue": mark,
        "location": {"dimensionRange": span},
        "visibility": "DOCUMENT",
    }
    start = {"sheetId": ready["sheet"], "rowIndex": ready["at"], "columnIndex": 0}
    cells = [cell_of(value) for value in ready["cells"]]
    room: dict[str, Any] = {"insertDimension": {"range": span, "inheritFromBefore": ready["at"] > 0}}
    if ready["grows"]:
        room = {"appendDimension": {"sheetId": ready["sheet"], "dimension": "ROWS", "length": 1}}
    written = "userEnteredValue,userEnteredFormat.numberFormat"
    requests = [
        room,
        {"updateCells": {"start": start, "rows": [{"values": cells}], "fields": written}},
        {"createDeveloperMetadata": {"developerMetadata": data}},
    ]
    sheets = (await google(act.connection)).sheets
    try:
        with sure():
            await sheets.spreadsheets_batch_update(id_of(book), requests, repeatable=False)
    except NotDone as error:
        if isinstance(error.__cause__, Invalid) and error.__cause__.request == "createDeveloperMetadata":
            found = await sheets.developer_metadata_search(id_of(book), key=_KEY, value=mark)
            if found:
                return RowIn(id_of(book), tab, mark)
            raise PrepareAgain(str(error)) from error
        raise
    return RowIn(id_of(book), tab, mark)
