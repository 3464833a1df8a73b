"""Filling a spreadsheet: every ``{{name}}`` of its cells takes its value, in one batch that is done or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from quire.workflows.effect import Act, NotDone, PrepareAgain
from quire.workspace.connection import google, refusing, sure
from quire.workspace.declaring import Given, google_effect
from quire.workspace.filling import PLACE, check_braces, check_plain, compare, name_of, shown
from quire.workspace.values import FileLike, Filled, id_of

_FIELDS = "properties.title,sheets(properties(sheetId,title),data.rowData.values.userEnteredValue.stringValue)"


def _texts(book: Mapping[str, Any]) -> Iterator[str]:
    for sheet in book.get("sheets", ()):
        for area in sheet.get("data", ()):
            for row in area.get("rowData", ()):
                for cell in row.get("values", ()):
                    if text := (cell.get("userEnteredValue") or {}).get("stringValue"):
                        yield text


async def _places(act: Act[Any], book: FileLike) -> tuple[str, list[str], Counter[str]]:
    read = await (await google(act.connection)).sheets.spreadsheets_get(id_of(book), fields=_FIELDS)
    texts = list(_texts(read))
    found = Counter(match[0] for text in texts for match in PLACE.finditer(text))
    return str(read.get("properties", {}).get("title", "")), texts, found


async def _check(act: Act[Any], given: Given) -> dict[str, Any]:
    check_plain({name: shown(name, value, given.locale) for name, value in given.values.items()})
    with refusing():
        title, texts, found = await _places(act, given.book)
    check_braces(texts, title)
    compare(found, given.values, title, missing=given.missing, extra=given.extra)
    return {"places": {place: count for place, count in found.items() if name_of(place) in given.values}}


async def _find(act: Act[Any], given: Given) -> Filled | NotDone:
    _, _, left = await _places(act, given.book)
    if waiting := sorted(left.keys() & act.prepared["places"].keys()):
        return PrepareAgain(f"{', '.join(waiting)} of the spreadsheet still wait for their values")
    return Filled(id_of(given.book), sum(act.prepared["places"].values()))


@google_effect(check=_check, find=_find)
async def fill(
    act: Act[Any],
    book: FileLike,
    values: Mapping[str, Any],
    *,
    locale: str = "",
    missing: str = "fail",
    extra: str = "fail",
) -> Filled:
    """Replace each ``{{name}}`` in the cells of a spreadsheet by the value of that name, in all tabs."""
    places = act.prepared["places"]
    texts = {name: shown(name, value, locale) for name, value in values.items()}
    requests = [
        {"findReplace": {"find": place, "replacement": texts[name_of(place)], "matchCase": True, "allSheets": True}}
        for place in places
    ]
    if requests:
        sheets = (await google(act.connection)).sheets
        with sure():
            await sheets.spreadsheets_batch_update(id_of(book), requests, repeatable=False)
    return Filled(id_of(book), sum(places.values()))
