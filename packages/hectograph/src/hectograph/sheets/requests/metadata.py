"""Requests about developer metadata: numbers with a key and a value, tied to a row, column, sheet or the book."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.sheets.book import Book
from hectograph.sheets.filters import metadata, one_line

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch

MAX_CHARACTERS = 30_000


def _location(book: Book, given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("locationType") not in (None, "DEVELOPER_METADATA_LOCATION_TYPE_UNSPECIFIED"):
        raise Invalid("developerMetadata.location.locationType is read-only.")
    if given.get("spreadsheet"):
        return {"locationType": "SPREADSHEET", "spreadsheet": True}
    if "dimensionRange" in given:
        sheet = one_line(book, given["dimensionRange"])
        rows = given["dimensionRange"]["dimension"] == "ROWS"
        span = {**given["dimensionRange"], "sheetId": sheet.sheet_id}
        return {"locationType": "ROW" if rows else "COLUMN", "dimensionRange": span}
    if "sheetId" in given:
        book.sheet(given["sheetId"])
        return {"locationType": "SHEET", "sheetId": given["sheetId"]}
    raise Invalid("Must specify a location for developer metadata.")


def _room(book: Book) -> None:
    """Keys and values share 30,000 characters per sheet, and as many for the book itself."""
    used: dict[int | None, int] = {}
    for item in book.metadata.values():
        place = item["location"]
        home = place.get("sheetId", place.get("dimensionRange", {}).get("sheetId"))
        used[home] = used.get(home, 0) + len(item.get("metadataKey", "")) + len(item.get("metadataValue", ""))
    if any(count > MAX_CHARACTERS for count in used.values()):
        raise Invalid(f"Developer metadata exceeds the limit of {MAX_CHARACTERS} characters.")


def metadata_json(item: Mapping[str, Any]) -> dict[str, Any]:
    place = dict(item["location"])
    if "dimensionRange" in place:
        place["dimensionRange"] = {k: v for k, v in place["dimensionRange"].items() if not (k == "sheetId" and v == 0)}
    return {**item, "location": place}


def create_developer_metadata(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = request.get("developerMetadata", {})
    if not given.get("metadataKey"):
        raise Invalid("developerMetadata.metadataKey is required.")
    if given.get("visibility", "DEVELOPER_METADATA_VISIBILITY_UNSPECIFIED").endswith("UNSPECIFIED"):
        raise Invalid("developerMetadata.visibility must be specified.")
    number = given.get("metadataId")
    if number is not None and number <= 0:
        raise Invalid("developerMetadata.metadataId must be positive.")
    if number in book.metadata and batch.switches.duplicate_metadata_refused:
        raise Invalid(
            f"Cannot add developer metadata with ID [{number}] because developer metadata with that ID already exists."
        )
    made = {k: given[k] for k in ("metadataKey", "metadataValue", "visibility") if k in given}
    number = book.mint() if number is None else number
    book.metadata[number] = {"metadataId": number, **made, "location": _location(book, given.get("location", {}))}
    _room(book)
    return {"createDeveloperMetadata": {"developerMetadata": metadata_json(book.metadata[number])}}


def _selected(batch: Batch, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for wanted in filters:
        found |= {item["metadataId"]: item for item in metadata(batch.book, wanted)}
    if not found and batch.switches.metadata_no_match_refused:
        raise Invalid("No developer metadata matched the data filters.")
    return list(found.values())


def update_developer_metadata(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = request.get("developerMetadata", {})
    mask = batch.mask(request, "DeveloperMetadata")
    changed = []
    for item in _selected(batch, request.get("dataFilters", [])):
        simple = {k: b for k, b in mask.items() if k not in {"location", "metadataId"}}
        new = fieldmask.merged(item, given, simple) if simple and "*" not in mask else {**item, **given}
        new |= {"metadataId": item["metadataId"], "location": item["location"]}
        if "location" in mask or ("*" in mask and "location" in given):
            new["location"] = _location(book, given.get("location", {}))
        book.metadata[item["metadataId"]] = new
        changed.append(metadata_json(new))
    _room(book)
    return {"updateDeveloperMetadata": {"developerMetadata": changed} if changed else {}}


def delete_developer_metadata(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    wanted = request.get("dataFilter", {})
    gone = _selected(batch, [wanted])
    for item in gone:
        del batch.book.metadata[item["metadataId"]]
    reply = {"deletedDeveloperMetadata": [metadata_json(item) for item in gone]} if gone else {}
    return {"deleteDeveloperMetadata": reply}


HANDLERS = {
    "createDeveloperMetadata": create_developer_metadata,
    "updateDeveloperMetadata": update_developer_metadata,
    "deleteDeveloperMetadata": delete_developer_metadata,
}
