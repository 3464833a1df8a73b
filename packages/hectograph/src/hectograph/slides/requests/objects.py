"""Slides, shapes, tables and pictures: made, copied, moved and taken away."""

from __future__ import annotations

import copy
from typing import Any

from hectograph.core import fieldmask
from hectograph.core.batch import field_mask
from hectograph.core.error import Invalid
from hectograph.slides import layouts
from hectograph.slides.deck import Deck, Element, Page, emu, placed
from hectograph.slides.requests.text import picture
from hectograph.slides.text import Text

#: How large something is that nobody gave a size, in EMU.
_SIDE = 3000000


def create_slide(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    at = request.get("insertionIndex")
    if at is not None:
        _check_place(deck, at)
    key = deck.new_id(request.get("objectId"), "SLIDES_API")
    mappings = request.get("placeholderIdMappings")
    layouts.slide(deck, key, request.get("slideLayoutReference"), at=at, mappings=mappings)
    return {"objectId": key}


def _check_place(deck: Deck, at: int) -> None:
    count = len(deck.slides)
    if not 0 <= at <= count:
        raise Invalid(f"The insertion index ({at}) should not be greater than the number of slides ({count}).")


def _put(deck: Deck, request: dict[str, Any], kind: str, more: dict[str, Any]) -> Element:
    """Put a new element on the page that the request names."""
    given = request.get("elementProperties") or {}
    page = deck.page(str(given.get("pageObjectId", "")))
    key = deck.new_id(request.get("objectId"))
    made = Element(key, kind, given.get("size") or emu(_SIDE, _SIDE), given.get("transform") or placed(0, 0), more=more)
    page.elements.append(made)
    return made


def create_shape(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    kind = request.get("shapeType")
    if not kind:
        raise Invalid("The shape type must be specified.")
    return {"objectId": _put(deck, request, "shape", {"shapeType": kind}).object_id}


def create_image(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    return {"objectId": _put(deck, request, "image", {"url": picture(request.get("url"))}).object_id}


def create_table(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    rows, columns = request.get("rows", 0), request.get("columns", 0)
    if rows < 1 or columns < 1:
        raise Invalid("A table must have at least one row and one column.")
    made = _put(deck, request, "table", {})
    made.cells = [[Text() for _ in range(columns)] for _ in range(rows)]
    return {"objectId": made.object_id}


def replace_image(deck: Deck, request: dict[str, Any]) -> None:
    _, element = deck.element(str(request.get("imageObjectId", "")))
    if element.kind != "image":
        raise Invalid(f"The object ({element.object_id}) is not an image.")
    element.more["url"] = picture(request.get("url"))


def delete_object(deck: Deck, request: dict[str, Any]) -> None:
    object_id = str(request.get("objectId", ""))
    found = deck.find(object_id)
    if found is None:
        raise Invalid(f"The object ({object_id}) could not be found.")
    page, element = found
    if element is not None:
        page.elements.remove(element)
    elif page in deck.slides:
        deck.slides.remove(page)
    else:
        raise Invalid(f"The page ({object_id}) cannot be deleted.")


def duplicate_object(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    """Copy a slide, which then stands after it, or an element; ``objectIds`` says what the copies are called."""
    object_id, ids = str(request.get("objectId", "")), request.get("objectIds") or {}
    found = deck.find(object_id)
    if found is None:
        raise Invalid(f"The object ({object_id}) could not be found.")
    page, element = found
    if element is not None:
        twin = copy.deepcopy(element)
        twin.object_id = deck.new_id(ids.get(object_id))
        page.elements.append(twin)
        return {"objectId": twin.object_id}
    if page not in deck.slides:
        raise Invalid(f"The page ({object_id}) cannot be duplicated.")
    made = copy.deepcopy(page)
    made.object_id = deck.new_id(ids.get(object_id), "SLIDES_API")
    deck.slides.insert(deck.slides.index(page) + 1, Page(made.object_id, "SLIDE"))
    for one in made.elements:
        one.object_id = deck.new_id(ids.get(one.object_id))
    if made.notes is not None:
        made.notes.object_id = f"{made.object_id}:notes"
        for one in made.notes.elements:
            one.object_id = deck.new_id(None)
    deck.slides[deck.slides.index(page) + 1] = made
    return {"objectId": made.object_id}


def update_slides_position(deck: Deck, request: dict[str, Any]) -> None:
    ids, at = request.get("slideObjectIds") or [], request.get("insertionIndex", 0)
    moved = [page for page in deck.slides if page.object_id in ids]
    if len(moved) != len(ids) or not moved:
        raise Invalid("The slide object IDs must name existing slides, in their order and without duplicates.")
    _check_place(deck, at)
    before = [page for page in deck.slides[:at] if page not in moved]
    after = [page for page in deck.slides[at:] if page not in moved]
    deck.slides = [*before, *moved, *after]


def update_transform(deck: Deck, request: dict[str, Any]) -> None:
    _, element = deck.element(str(request.get("objectId", "")))
    given = request.get("transform") or {}
    if request.get("applyMode") == "RELATIVE":
        held = element.transform
        moved = {name: held.get(name, 0) + given.get(name, 0) for name in ("translateX", "translateY")}
        element.transform = {**held, **moved}
    else:
        element.transform = dict(given)


def update_alt_text(deck: Deck, request: dict[str, Any]) -> None:
    _, element = deck.element(str(request.get("objectId", "")))
    element.more |= {name: request[name] for name in ("title", "description") if name in request}


def update_shape_properties(deck: Deck, request: dict[str, Any]) -> None:
    _, element = deck.element(str(request.get("objectId", "")))
    if element.kind != "shape":
        raise Invalid(f"The object ({element.object_id}) is not a shape.")
    mask = field_mask("slides.v1", request, "ShapeProperties")
    held = element.more.get("shapeProperties", {})
    element.more["shapeProperties"] = fieldmask.merged(held, request.get("shapeProperties") or {}, mask)


def _cell(deck: Deck, request: dict[str, Any]) -> tuple[Element, int, int]:
    _, table = deck.element(str(request.get("tableObjectId", "")))
    if table.kind != "table":
        raise Invalid(f"The object ({table.object_id}) is not a table.")
    where = request.get("cellLocation") or {}
    row, column = where.get("rowIndex", 0), where.get("columnIndex", 0)
    if not 0 <= row < len(table.cells) or not 0 <= column < len(table.cells[0]):
        raise Invalid(f"The cell location ({row}, {column}) is out of bounds.")
    return table, row, column


def insert_table_rows(deck: Deck, request: dict[str, Any]) -> None:
    table, row, _ = _cell(deck, request)
    at = row + bool(request.get("insertBelow"))
    table.cells[at:at] = [[Text() for _ in table.cells[0]] for _ in range(request.get("number", 1))]


def insert_table_columns(deck: Deck, request: dict[str, Any]) -> None:
    table, _, column = _cell(deck, request)
    at = column + bool(request.get("insertRight"))
    for row in table.cells:
        row[at:at] = [Text() for _ in range(request.get("number", 1))]


def delete_table_row(deck: Deck, request: dict[str, Any]) -> None:
    table, row, _ = _cell(deck, request)
    del table.cells[row]
    if not table.cells:
        delete_object(deck, {"objectId": table.object_id})


def delete_table_column(deck: Deck, request: dict[str, Any]) -> None:
    table, _, column = _cell(deck, request)
    if len(table.cells[0]) == 1:
        return delete_object(deck, {"objectId": table.object_id})
    for row in table.cells:
        del row[column]
    return None


def insert_comment(deck: Deck, request: dict[str, Any]) -> None:
    """Refuse a comment on nothing; comments of Slides are not kept."""
    object_id = str(request.get("objectId", ""))
    if object_id and deck.find(object_id) is None:
        raise Invalid(f"The object ({object_id}) could not be found.")
    raise Invalid("This request is not supported by the emulator.")


HANDLERS = {
    "createSlide": create_slide,
    "createShape": create_shape,
    "createImage": create_image,
    "createTable": create_table,
    "replaceImage": replace_image,
    "deleteObject": delete_object,
    "duplicateObject": duplicate_object,
    "updateSlidesPosition": update_slides_position,
    "updatePageElementTransform": update_transform,
    "updatePageElementAltText": update_alt_text,
    "updateShapeProperties": update_shape_properties,
    "insertTableRows": insert_table_rows,
    "insertTableColumns": insert_table_columns,
    "deleteTableRow": delete_table_row,
    "deleteTableColumn": delete_table_column,
    "insertComment": insert_comment,
}
