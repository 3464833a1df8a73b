"""Requests about what lies on a sheet: filters, conditional formats, banding, charts, slicers, tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.sheets.a1 import Rect
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.color import paired, twin_fields
from hectograph.sheets.requests.dimension import without_zero_sheet

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch


def _bounded(book: Book, grid: dict[str, Any]) -> dict[str, Any]:
    """A range whose open sides are the edges of the grid, as Google gives filters back."""
    rect = Rect.of(grid)
    return {**book.grid(rect.sheet_id).box(rect).rect(rect.sheet_id).json(), "sheetId": rect.sheet_id}


def _kept(sheet: Sheet, name: str, items: list[Any]) -> None:
    sheet.extras = {k: v for k, v in sheet.extras.items() if k != name}
    if items:
        sheet.extras[name] = items


def _find(book: Book, name: str, key: str, wanted: Any, noun: str) -> tuple[Sheet, dict[str, Any]]:
    for sheet in book.all_sheets():
        for held in sheet.extras.get(name, []):
            if held[key] == wanted:
                return book.write(sheet.sheet_id), held
    raise Invalid(f"No {noun} with id: {wanted}")


def _criteria(given: dict[str, Any]) -> dict[str, Any]:
    """A filter with its criteria in both spellings, by column and as a list; the list counts where both are given."""
    specs = given.get("filterSpecs")
    if not specs and given.get("criteria"):
        columns = sorted(given["criteria"].items(), key=lambda item: int(item[0]))
        specs = [{"columnIndex": int(column), "filterCriteria": wanted} for column, wanted in columns]
    if not specs:
        return given
    by_column = {str(s["columnIndex"]): s.get("filterCriteria", {}) for s in specs if "columnIndex" in s}
    out = {**given, "filterSpecs": specs}
    return {**out, "criteria": by_column} if by_column else out


def set_basic_filter(batch: Batch, request: dict[str, Any]) -> None:
    given = _criteria(dict(request.get("filter", {})))
    given["range"] = _bounded(batch.book, given.get("range", {}))
    sheet = batch.book.write(given["range"]["sheetId"])
    sheet.extras["basicFilter"] = paired(given)
    _sort(batch, given)


def _sort(batch: Batch, given: dict[str, Any]) -> None:
    from hectograph.sheets.requests.range import sort_range

    if given.get("sortSpecs"):
        box = dict(given["range"])
        box["startRowIndex"] = box.get("startRowIndex", 0) + 1
        if box["startRowIndex"] < box["endRowIndex"]:
            sort_range(batch, {"range": box, "sortSpecs": given["sortSpecs"]})


def clear_basic_filter(batch: Batch, request: dict[str, Any]) -> None:
    sheet = batch.book.sheet(request.get("sheetId", 0))
    if "basicFilter" in sheet.extras:
        _kept(batch.book.write(sheet.sheet_id), "basicFilter", [])


def add_filter_view(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = _criteria(dict(request.get("filter", {})))
    given["range"] = _bounded(book, given.get("range", {}))
    sheet = book.write(given["range"]["sheetId"])
    held = sheet.extras.get("filterViews", [])
    made = {"filterViewId": given.pop("filterViewId", None) or book.mint(), "title": f"Filter {len(held) + 1}", **given}
    if any(
        h["filterViewId"] == made["filterViewId"] for s in book.all_sheets() for h in s.extras.get("filterViews", [])
    ):
        raise Invalid(
            f"Cannot add filter view with ID: {made['filterViewId']}, a filter view with that ID already exists."
        )
    _kept(sheet, "filterViews", [*held, paired(made)])
    return {"addFilterView": {"filter": without_zero_sheet(paired(made))}}


def update_filter_view(batch: Batch, request: dict[str, Any]) -> None:
    given = dict(request.get("filter", {}))
    sheet, held = _find(batch.book, "filterViews", "filterViewId", given.get("filterViewId"), "filter view")
    mask = batch.mask(request, "FilterView")
    if "range" in given:
        given["range"] = _bounded(batch.book, given["range"])
    new = fieldmask.merged(held, paired(given), mask)
    new = {**new, "filterViewId": held["filterViewId"]}
    new.setdefault("range", held["range"])
    _kept(sheet, "filterViews", [new if h is held else h for h in sheet.extras["filterViews"]])


def duplicate_filter_view(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    sheet, held = _find(batch.book, "filterViews", "filterViewId", request.get("filterId"), "filter view")
    made = {**held, "filterViewId": batch.book.mint(), "title": f"Copy of {held.get('title', '')}"}
    _kept(sheet, "filterViews", [*sheet.extras["filterViews"], made])
    return {"duplicateFilterView": {"filter": without_zero_sheet(made)}}


def delete_filter_view(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held = _find(batch.book, "filterViews", "filterViewId", request.get("filterId"), "filter view")
    _kept(sheet, "filterViews", [h for h in sheet.extras["filterViews"] if h is not held])


def _rule(book: Book, given: dict[str, Any]) -> dict[str, Any]:
    ranges = [{**grid, "sheetId": grid.get("sheetId", 0)} for grid in given.get("ranges", [])]
    if not ranges:
        raise Invalid("Must specify at least one range.")
    for grid in ranges:
        book.grid(grid["sheetId"])
    if len({grid["sheetId"] for grid in ranges}) > 1:
        raise Invalid("All ranges must be on the same sheet.")
    if "booleanRule" not in given and "gradientRule" not in given:
        raise Invalid("Must specify a rule.")
    return paired({**given, "ranges": ranges})


def add_conditional_format_rule(batch: Batch, request: dict[str, Any]) -> None:
    rule = _rule(batch.book, request.get("rule", {}))
    sheet = batch.book.write(rule["ranges"][0]["sheetId"])
    rules = list(sheet.extras.get("conditionalFormats", []))
    index = request.get("index", 0)
    if not 0 <= index <= len(rules):
        raise Invalid(f"Cannot add a rule at index {index}; there are only {len(rules)} rules.")
    rules.insert(index, rule)
    _kept(sheet, "conditionalFormats", rules)


def _rules(batch: Batch, request: dict[str, Any]) -> tuple[Sheet, list[dict[str, Any]], int]:
    sheet = batch.book.sheet(request.get("sheetId", 0))
    rules = list(sheet.extras.get("conditionalFormats", []))
    index = request.get("index", 0)
    if not 0 <= index < len(rules):
        raise Invalid(f"No conditional format on sheet: {sheet.sheet_id} at index: {index}")
    return batch.book.write(sheet.sheet_id), rules, index


def update_conditional_format_rule(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    if "rule" in request and "sheetId" not in request and request["rule"].get("ranges"):
        request = {**request, "sheetId": request["rule"]["ranges"][0].get("sheetId", 0)}
    sheet, rules, index = _rules(batch, request)
    old = rules[index]
    reply: dict[str, Any] = {}
    if "rule" in request:
        rules[index] = _rule(batch.book, request["rule"])
        reply = {"newRule": without_zero_sheet(rules[index]), "oldRule": without_zero_sheet(old)}
        if index:
            reply["newIndex"] = index
    else:
        new_index = request.get("newIndex", 0)
        rules.insert(new_index, rules.pop(index))
        reply = {"newRule": without_zero_sheet(old)}
        reply |= {k: v for k, v in (("oldIndex", index), ("newIndex", new_index)) if v}
    _kept(sheet, "conditionalFormats", rules)
    return {"updateConditionalFormatRule": reply}


def delete_conditional_format_rule(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    sheet, rules, index = _rules(batch, request)
    gone = rules.pop(index)
    _kept(sheet, "conditionalFormats", rules)
    return {"deleteConditionalFormatRule": {"rule": without_zero_sheet(gone)}}


def add_banding(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = dict(request.get("bandedRange", {}))
    given["range"] = _bounded(book, given.get("range", {}))
    sheet = book.write(given["range"]["sheetId"])
    box = sheet.box(Rect.of(given["range"]))
    held = sheet.extras.get("bandedRanges", [])
    if any(sheet.box(Rect.of(h["range"])).meets(box) for h in held):
        raise Invalid(
            "You cannot add alternating background colors to a range that already has alternating background colors."
        )
    made = paired({"bandedRangeId": given.pop("bandedRangeId", None) or book.mint(), **given})
    _kept(sheet, "bandedRanges", [*held, made])
    return {"addBanding": {"bandedRange": without_zero_sheet(made)}}


def update_banding(batch: Batch, request: dict[str, Any]) -> None:
    given = dict(request.get("bandedRange", {}))
    sheet, held = _find(batch.book, "bandedRanges", "bandedRangeId", given.get("bandedRangeId"), "banded range")
    mask = batch.mask(request, "BandedRange")
    if "range" in given:
        given["range"] = _bounded(batch.book, given["range"])
    new = fieldmask.merged(held, paired(given), twin_fields(mask)) | {"bandedRangeId": held["bandedRangeId"]}
    new.setdefault("range", held["range"])
    _kept(sheet, "bandedRanges", [new if h is held else h for h in sheet.extras["bandedRanges"]])


def delete_banding(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held = _find(batch.book, "bandedRanges", "bandedRangeId", request.get("bandedRangeId"), "banded range")
    _kept(sheet, "bandedRanges", [h for h in sheet.extras["bandedRanges"] if h is not held])


def _anchor_sheet(batch: Batch, given: dict[str, Any]) -> int:
    """The sheet on which an object lies; one that is to have a sheet for itself gets it here."""
    place = given.get("position", {})
    if place.get("newSheet") or "sheetId" in place:
        from hectograph.sheets.requests.sheet import make_sheet

        wanted = place.get("sheetId")
        if wanted in batch.book.sheets:
            raise Invalid(f"Cannot add chart to new sheet with ID: {wanted}, a sheet with that ID already exists.")
        title = f"Chart{sum(1 for s in batch.book.all_sheets() if s.properties.get('sheetType') == 'OBJECT') + 1}"
        sheet = make_sheet(batch.book, {"title": title, **({"sheetId": wanted} if wanted is not None else {})})
        sheet.properties = {**sheet.properties, "sheetType": "OBJECT"}
        batch.book.add(sheet)
        given["position"] = {"sheetId": sheet.sheet_id}
        return sheet.sheet_id
    overlay = place.get("overlayPosition", {})
    sheet_id = int(overlay.get("anchorCell", {}).get("sheetId", 0))
    batch.book.grid(sheet_id)
    given["position"] = {"overlayPosition": {"widthPixels": 600, "heightPixels": 371, **overlay}}
    return sheet_id


def _add_object(noun: str, extras: str, key: str) -> Callable[[Batch, dict[str, Any]], dict[str, Any]]:
    def handler(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
        given = dict(request.get(noun, {}))
        sheet = batch.book.write(_anchor_sheet(batch, given))
        made = paired({key: given.pop(key, None) or batch.book.mint(), **given})
        _kept(sheet, extras, [*sheet.extras.get(extras, []), made])
        return {f"add{noun.title()}": {noun: without_zero_sheet(made)}}

    return handler


def update_chart_spec(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held = _find(batch.book, "charts", "chartId", request.get("chartId"), "chart")
    new = {**held, "spec": paired(request.get("spec", {}))}
    _kept(sheet, "charts", [new if h is held else h for h in sheet.extras["charts"]])


def update_slicer_spec(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held = _find(batch.book, "slicers", "slicerId", request.get("slicerId"), "slicer")
    mask = batch.mask(request, "SlicerSpec")
    new = {**held, "spec": fieldmask.merged(held.get("spec", {}), paired(request.get("spec", {})), mask)}
    _kept(sheet, "slicers", [new if h is held else h for h in sheet.extras["slicers"]])


def _embedded(book: Book, key: Any) -> tuple[Sheet, dict[str, Any], str]:
    for name, field in (("charts", "chartId"), ("slicers", "slicerId")):
        try:
            sheet, held = _find(book, name, field, key, "object")
        except Invalid:
            continue
        return sheet, held, name
    raise Invalid(f"No embedded object with id: {key}")


def delete_embedded_object(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held, name = _embedded(batch.book, request.get("objectId"))
    _kept(sheet, name, [h for h in sheet.extras[name] if h is not held])


def update_embedded_object_position(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    sheet, held, name = _embedded(batch.book, request.get("objectId"))
    place = request.get("newPosition", {})
    _kept(sheet, name, [{**h, "position": place} if h is held else h for h in sheet.extras[name]])
    return {"updateEmbeddedObjectPosition": {"position": without_zero_sheet(place)}}


def update_embedded_object_border(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held, name = _embedded(batch.book, request.get("objectId"))
    mask = batch.mask(request, "EmbeddedObjectBorder")
    border = fieldmask.merged(held.get("border", {}), paired(request.get("border", {})), twin_fields(mask))
    _kept(sheet, name, [{**h, "border": border} if h is held else h for h in sheet.extras[name]])


def add_table(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = dict(request.get("table", {}))
    given["range"] = _bounded(book, given.get("range", {}))
    sheet = book.write(given["range"]["sheetId"])
    held = sheet.extras.get("tables", [])
    made = paired({"tableId": given.pop("tableId", None) or str(book.mint()), "name": f"Table{len(held) + 1}", **given})
    box = sheet.box(Rect.of(made["range"]))
    if any(sheet.box(Rect.of(h["range"])).meets(box) for h in held):
        raise Invalid("A table cannot overlap with another table.")
    if "columnProperties" not in made:
        reader = batch.reader()
        made["columnProperties"] = [
            {
                "columnIndex": at,
                "columnName": reader.formatted(sheet, box.top, c, sheet.get(box.top, c)) or f"Column {at + 1}",
            }
            for at, c in enumerate(range(box.left, box.right))
        ]
    _kept(sheet, "tables", [*held, made])
    return {"addTable": {"table": without_zero_sheet(made)}}


def update_table(batch: Batch, request: dict[str, Any]) -> None:
    given = dict(request.get("table", {}))
    sheet, held = _find(batch.book, "tables", "tableId", given.get("tableId"), "table")
    mask = batch.mask(request, "Table")
    if "range" in given:
        given["range"] = _bounded(batch.book, given["range"])
    new = fieldmask.merged(held, paired(given), twin_fields(mask)) | {"tableId": held["tableId"]}
    _kept(sheet, "tables", [new if h is held else h for h in sheet.extras["tables"]])


def delete_table(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held = _find(batch.book, "tables", "tableId", request.get("tableId"), "table")
    _kept(sheet, "tables", [h for h in sheet.extras["tables"] if h is not held])


HANDLERS = {
    "setBasicFilter": set_basic_filter,
    "clearBasicFilter": clear_basic_filter,
    "addFilterView": add_filter_view,
    "updateFilterView": update_filter_view,
    "duplicateFilterView": duplicate_filter_view,
    "deleteFilterView": delete_filter_view,
    "addConditionalFormatRule": add_conditional_format_rule,
    "updateConditionalFormatRule": update_conditional_format_rule,
    "deleteConditionalFormatRule": delete_conditional_format_rule,
    "addBanding": add_banding,
    "updateBanding": update_banding,
    "deleteBanding": delete_banding,
    "addChart": _add_object("chart", "charts", "chartId"),
    "updateChartSpec": update_chart_spec,
    "addSlicer": _add_object("slicer", "slicers", "slicerId"),
    "updateSlicerSpec": update_slicer_spec,
    "deleteEmbeddedObject": delete_embedded_object,
    "updateEmbeddedObjectPosition": update_embedded_object_position,
    "updateEmbeddedObjectBorder": update_embedded_object_border,
    "addTable": add_table,
    "updateTable": update_table,
    "deleteTable": delete_table,
}
