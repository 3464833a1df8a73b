"""Data filters: which cells, and which developer metadata, a filter means, and how a bad one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hectograph.core.error import Invalid
from hectograph.sheets import a1
from hectograph.sheets.a1 import Rect
from hectograph.sheets.book import Book, Sheet


def matches(book: Book, wanted: Mapping[str, Any], *, noun: str = "grid") -> list[Rect]:
    """The ranges that a data filter selects."""
    if "a1Range" in wanted:
        return [a1.parse(wanted["a1Range"], book).rect]
    if "gridRange" in wanted:
        return [_grid(book, wanted["gridRange"], noun)]
    if "developerMetadataLookup" in wanted:
        out: list[Rect] = []
        for found in metadata(book, wanted):
            rect_found = location_rect(found["location"])
            if rect_found is not None:
                out.append(rect_found)
        return out
    raise Invalid("dataFilter.filter must be specified.")


def _grid(book: Book, given: Mapping[str, Any], noun: str) -> Rect:
    rect = Rect.of(given)
    if rect.sheet_id not in book.sheets:
        raise Invalid(f"No {noun} with id: {rect.sheet_id}")
    check_indexes(given)
    return rect


def check_indexes(given: Mapping[str, Any]) -> None:
    """Refuse a GridRange that begins before the grid or ends before it begins."""
    sides = ("startRowIndex", "endRowIndex", "startColumnIndex", "endColumnIndex")
    if any(given.get(name, 0) < 0 for name in sides):
        raise Invalid("GridRange indexes must be >= 0")
    for start, end in (sides[:2], sides[2:]):
        if start in given and end in given and given[end] < given[start]:
            raise Invalid(f"{end}[{given[end]}] cannot be before {start}[{given[start]}]")


def is_empty(sheet: Sheet, rect: Rect) -> bool:
    """Whether a range of cells has no cells at all."""
    box = sheet.box(rect)
    return not box.height or not box.width


def echoed(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A filter as an answer repeats it: a sheet id of 0 is left out."""
    out = dict(wanted)
    if "gridRange" in out:
        out["gridRange"] = {k: v for k, v in out["gridRange"].items() if not (k == "sheetId" and v == 0)}
    return out


def location_rect(location: Mapping[str, Any]) -> Rect | None:
    if "dimensionRange" in location:
        span = location["dimensionRange"]
        sheet_id, start, end = span.get("sheetId", 0), span.get("startIndex"), span.get("endIndex")
        if span.get("dimension") == "COLUMNS":
            return Rect(sheet_id, None, None, start, end)
        return Rect(sheet_id, start, end)
    if "sheetId" in location:
        return Rect(location["sheetId"])
    return None


def metadata(book: Book, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The developer metadata that a data filter selects."""
    if "developerMetadataLookup" in wanted:
        lookup = wanted["developerMetadataLookup"]
        _check_lookup(book, lookup)
        return [item for item in book.metadata.values() if _looked_up(item, lookup)]
    rects = matches(book, wanted)
    out: list[dict[str, Any]] = []
    for item in book.metadata.values():
        place = location_rect(item["location"])
        if place is not None and any(_within(book, place, rect) for rect in rects):
            out.append(item)
    return out


def _check_lookup(book: Book, lookup: Mapping[str, Any]) -> None:
    kind, strategy = lookup.get("locationType"), lookup.get("locationMatchingStrategy")
    place = lookup.get("metadataLocation", {})
    member = next((name for name in ("spreadsheet", "sheetId", "dimensionRange") if name in place), None)
    if kind == "SPREADSHEET" and member is not None and not place.get("spreadsheet"):
        raise Invalid(f"Cannot limit by location type of SPREADSHEET for the location {member}")
    if strategy == "EXACT_LOCATION" and kind:
        raise Invalid(
            "The locationMatchingStrategy was specified as EXACT_LOCATION, but a locationType was also specified: "
            "lookups cannot limit by a location type when matching an exact location."
        )
    if strategy and member is None:
        raise Invalid(
            "A locationMatchingStrategy was specified, but no metadataLocation was specified: lookups must always "
            "specify a metadataLocation when specifying a locationMatchingStrategy."
        )
    if strategy == "INTERSECTING_LOCATION" and place.get("spreadsheet"):
        raise Invalid(
            "DeveloperMetadataLookup.spreadsheet is true, but locationMatchingStrategy was specified as INTERSECTING."
        )
    if member == "sheetId":
        book.grid(place["sheetId"])
    if member == "dimensionRange":
        one_line(book, place["dimensionRange"])


def one_line(book: Book, span: Mapping[str, Any]) -> Sheet:
    """The sheet of a DimensionRange that must be a single row or column, refused if it is anything else."""
    if "startIndex" not in span or "endIndex" not in span:
        raise Invalid("DimensionRange must specify both a startIndex and an endIndex.")
    start, end = span["startIndex"], span["endIndex"]
    if end - start != 1:
        raise Invalid("DimensionRange must represent a single row or column.")
    if start < 0:
        raise Invalid("DimensionRange indexes must be >= 0")
    sheet = book.grid(span.get("sheetId", 0))
    dimension = span.get("dimension")
    if not dimension:
        raise Invalid("No dimension specified")
    size = sheet.row_count if dimension == "ROWS" else sheet.column_count
    if start >= size:
        raise Invalid(
            f"DimensionRange startIndex [{start}] is after the last {dimension} index [{size - 1}] of the sheet "
            f"[{sheet.sheet_id}]."
        )
    return sheet


def _within(book: Book, place: Rect, rect: Rect) -> bool:
    if place.sheet_id != rect.sheet_id:
        return False
    sheet = book.sheets[rect.sheet_id]
    return sheet.box(rect).meets(sheet.box(place))


def _looked_up(item: Mapping[str, Any], lookup: Mapping[str, Any]) -> bool:
    for name in ("metadataId", "metadataKey", "metadataValue", "visibility"):
        if name in lookup and item.get(name) != lookup[name]:
            return False
    kind = lookup.get("locationType")
    if kind and item["location"]["locationType"] != kind:
        return False
    place = lookup.get("metadataLocation")
    if not place:
        return True
    held = item["location"]
    exact = _same_place(held, place)
    if lookup.get("locationMatchingStrategy", "EXACT_LOCATION") == "EXACT_LOCATION":
        return exact
    if place.get("spreadsheet"):
        return True
    if "sheetId" in place:
        span = held.get("dimensionRange", {})
        return exact or span.get("sheetId", 0 if span else None) == place["sheetId"]
    return exact


def _same_place(held: Mapping[str, Any], place: Mapping[str, Any]) -> bool:
    if place.get("spreadsheet"):
        return bool(held.get("spreadsheet"))
    if "dimensionRange" in place and "dimensionRange" in held:
        a, b = held["dimensionRange"], place["dimensionRange"]
        return bool(
            a.get("sheetId", 0) == b.get("sheetId", 0)
            and a.get("dimension", "ROWS") == b.get("dimension", "ROWS")
            and a.get("startIndex", 0) == b.get("startIndex", 0)
            and a.get("endIndex") == b.get("endIndex")
        )
    return bool("sheetId" in place and held.get("sheetId") == place["sheetId"] and "dimensionRange" not in held)
