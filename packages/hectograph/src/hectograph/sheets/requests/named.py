"""Requests about named ranges and protected ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.sheets.a1 import Rect
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.requests.dimension import without_zero_sheet

if TYPE_CHECKING:
    from hectograph.sheets.batch import Batch

_NAME = re.compile(r"[A-Za-z_\u0080-\uffff][\w.]*")
_CELL = re.compile(r"[A-Za-z]{1,3}\d+|[Rr]\d*[Cc]\d*|true|false", re.IGNORECASE)


def check_name(name: str) -> None:
    if not name or len(name) > 250 or not _NAME.fullmatch(name) or _CELL.fullmatch(name):
        raise Invalid(f"Invalid name: {name}")


def named_json(named: Mapping[str, Any]) -> dict[str, Any]:
    out = {"namedRangeId": named["namedRangeId"], "name": named["name"]}
    if named.get("range") is not None:
        out["range"] = without_zero_sheet(named["range"])
    return out


def _range(book: Book, given: Mapping[str, Any]) -> dict[str, Any]:
    rect = Rect.of(given)
    sheet = book.grid(rect.sheet_id)
    if (rect.bottom or 0) > sheet.row_count or (rect.right or 0) > sheet.column_count:
        raise Invalid("The range exceeds the grid of its sheet.")
    if (rect.bottom is not None and rect.bottom <= (rect.top or 0)) or (
        rect.right is not None and rect.right <= (rect.left or 0)
    ):
        raise Invalid("The range is empty.")
    return {**given, "sheetId": rect.sheet_id}


def add_named_range(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = request.get("namedRange", {})
    name = given.get("name", "")
    check_name(name)
    taken = any(held["name"].casefold() == name.casefold() for held in book.named.values())
    if taken or (name.casefold() in batch.ghosts and name.casefold() not in batch.released):
        if not batch.let_through():
            raise Invalid(f"Cannot add named range with name: {name}, a named range with that name already exists.")
        book.named = {k: held for k, held in book.named.items() if held["name"].casefold() != name.casefold()}
    key = given.get("namedRangeId") or str(book.mint())
    if key in book.named and batch.switches.duplicate_range_id_refused:
        raise Invalid(f"Cannot add named range with ID: {key}, a named range with that ID already exists.")
    if "range" not in given:
        raise Invalid("Must specify a range.")
    book.named[key] = {"namedRangeId": key, "name": name, "range": _range(book, given["range"])}
    book.memo.clear()
    return {"addNamedRange": {"namedRange": named_json(book.named[key])}}


def update_named_range(batch: Batch, request: dict[str, Any]) -> None:
    book = batch.book
    given = request.get("namedRange", {})
    key = given.get("namedRangeId", "")
    if key not in book.named:
        if batch.let_through():
            return
        raise Invalid(f"No NamedRange with id: {key}")
    mask = batch.mask(request, "NamedRange")
    held = dict(book.named[key])
    if "*" in mask or "name" in mask:
        name = given.get("name", "")
        check_name(name)
        if any(k != key and v["name"].casefold() == name.casefold() for k, v in book.named.items()):
            raise Invalid(f"Cannot update named range with name: {name}, a named range with that name already exists.")
        held["name"] = name
    if "*" in mask or "range" in mask:
        held["range"] = _range(book, given.get("range", {}))
    book.named[key] = held
    book.memo.clear()


def delete_named_range(batch: Batch, request: dict[str, Any]) -> None:
    key = request.get("namedRangeId", "")
    if key not in batch.book.named:
        if batch.switches.delete_missing_name_refused and not batch.let_through():
            raise Invalid(f"No NamedRange with id: {key}")
        return
    batch.released.add(batch.book.named[key]["name"].casefold())
    del batch.book.named[key]
    batch.book.memo.clear()


def protected_json(held: Mapping[str, Any], account: str = "") -> dict[str, Any]:
    """A protected range in an answer; with an account, the editors that Google adds when it is read."""
    out = without_zero_sheet({k: v for k, v in held.items() if v is not False})
    editors = {k: v for k, v in held.get("editors", {}).items() if v}
    if account:
        editors["users"] = [account, *(u for u in editors.get("users", []) if u != account)]
    out["editors"] = editors
    out["requestingUserCanEdit"] = True
    return dict(out)


def _find(book: Book, key: Any) -> tuple[Sheet, dict[str, Any]]:
    for sheet in book.all_sheets():
        for held in sheet.extras.get("protectedRanges", []):
            if held["protectedRangeId"] == key:
                return book.write(sheet.sheet_id), held
    raise Invalid(f"No protected range with id: {key}")


def _checked(book: Book, given: dict[str, Any]) -> dict[str, Any]:
    editors = given.get("editors", {})
    if given.get("warningOnly") and any(editors.get(k) for k in ("users", "groups", "domainUsersCanEdit")):
        raise Invalid("ProtectedRange is warningOnly. Editors cannot be set on it.")
    if given.get("namedRangeId") and "range" not in given:
        named = book.named.get(given["namedRangeId"])
        if named is None:
            raise Invalid(f"No NamedRange with id: {given['namedRangeId']}")
        given["range"] = named["range"]
    rect = Rect.of(given.get("range", {}))
    book.grid(rect.sheet_id)
    given["range"] = {**given.get("range", {}), "sheetId": rect.sheet_id}
    return given


def add_protected_range(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    book = batch.book
    given = _checked(book, dict(request.get("protectedRange", {})))
    key = given.get("protectedRangeId") or book.mint()
    ids = {h["protectedRangeId"] for s in book.all_sheets() for h in s.extras.get("protectedRanges", [])}
    if key in ids:
        raise Invalid(f"Cannot add protected range with ID: {key}, a protected range with that ID already exists.")
    whole = Rect(given["range"]["sheetId"])
    home = book.sheets[whole.sheet_id]
    if Rect.of(given["range"]) == whole and any(
        Rect.of(h["range"]) == whole for h in home.extras.get("protectedRanges", [])
    ):
        raise Invalid(f'Sheet "{home.title}" already has sheet protection.')
    held = {"protectedRangeId": key, **given}
    held["protectedRangeId"] = key
    sheet = book.write(given["range"]["sheetId"])
    sheet.extras["protectedRanges"] = [*sheet.extras.get("protectedRanges", []), held]
    return {"addProtectedRange": {"protectedRange": protected_json(held)}}


def update_protected_range(batch: Batch, request: dict[str, Any]) -> None:
    given = request.get("protectedRange", {})
    sheet, held = _find(batch.book, given.get("protectedRangeId"))
    mask = batch.mask(request, "ProtectedRange")
    new = fieldmask.merged(held, given, mask)
    new["protectedRangeId"] = held["protectedRangeId"]
    if new.get("range") is None:
        new["range"] = held["range"]
    new = _checked(batch.book, new)
    sheet.extras["protectedRanges"] = [h for h in sheet.extras["protectedRanges"] if h is not held]
    home = batch.book.write(new["range"]["sheetId"])
    home.extras["protectedRanges"] = [*home.extras.get("protectedRanges", []), new]


def delete_protected_range(batch: Batch, request: dict[str, Any]) -> None:
    sheet, held = _find(batch.book, request.get("protectedRangeId"))
    rest = [h for h in sheet.extras["protectedRanges"] if h is not held]
    sheet.extras = {k: v for k, v in sheet.extras.items() if k != "protectedRanges"}
    if rest:
        sheet.extras["protectedRanges"] = rest


HANDLERS = {
    "addNamedRange": add_named_range,
    "updateNamedRange": update_named_range,
    "deleteNamedRange": delete_named_range,
    "addProtectedRange": add_protected_range,
    "updateProtectedRange": update_protected_range,
    "deleteProtectedRange": delete_protected_range,
}
