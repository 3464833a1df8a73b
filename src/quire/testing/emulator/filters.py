"""Data filters: which cells, and which developer metadata, a filter means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quire.testing.emulator import a1
from quire.testing.emulator.a1 import Rect
from quire.testing.emulator.book import Book
from quire.testing.emulator.error import Invalid


def matches(book: Book, wanted: Mapping[str, Any]) -> list[Rect]:
    """The ranges that a data filter selects."""
    if "a1Range" in wanted:
        return [a1.parse(wanted["a1Range"], book).rect]
    if "gridRange" in wanted:
        rect = Rect.of(wanted["gridRange"])
        book.grid(rect.sheet_id)
        return [rect]
    if "developerMetadataLookup" in wanted:
        out: list[Rect] = []
        for found in metadata(book, wanted):
            rect_found = location_rect(found["location"])
            if rect_found is not None:
                out.append(rect_found)
        return out
    raise Invalid("Must specify a filter.")


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
        return [item for item in book.metadata.values() if _looked_up(item, lookup)]
    rects = matches(book, wanted)
    out: list[dict[str, Any]] = []
    for item in book.metadata.values():
        place = location_rect(item["location"])
        if place is not None and any(_within(book, place, rect) for rect in rects):
            out.append(item)
    return out


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
