"""Texts in shapes and cells: put in, taken out, replaced, styled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hectograph.core import fieldmask
from hectograph.core.batch import field_mask, text_pattern
from hectograph.core.error import Invalid
from hectograph.slides.deck import Deck, Element, Page
from hectograph.slides.text import Text


def text_at(deck: Deck, request: dict[str, Any]) -> Text:
    """Return the text that a request is about: that of a shape, or of a cell of a table."""
    object_id = str(request.get("objectId", ""))
    _, element = deck.element(object_id)
    cell = request.get("cellLocation")
    if element.kind == "table":
        if cell is None:
            raise Invalid(f"The object ({object_id}) is a table: a cell location must be specified.")
        row, column = int(cell.get("rowIndex", 0)), int(cell.get("columnIndex", 0))
        if not 0 <= row < len(element.cells) or not 0 <= column < len(element.cells[0]):
            raise Invalid(f"The cell location ({row}, {column}) is out of bounds.")
        return element.cells[row][column]
    if element.kind != "shape":
        raise Invalid(f"The object ({object_id}) does not allow text editing.")
    return element.text


def insert_text(deck: Deck, request: dict[str, Any]) -> None:
    text_at(deck, request).insert(request.get("insertionIndex", 0), str(request.get("text", "")))


def delete_text(deck: Deck, request: dict[str, Any]) -> None:
    text = text_at(deck, request)
    text.delete(*text.range(request.get("textRange")))


def _searched(deck: Deck, request: dict[str, Any]) -> list[Page]:
    """Return the pages in which a request searches: those that it names, or all slides with their notes."""
    ids = request.get("pageObjectIds")
    if not ids:
        return [page for page in deck.pages if page.kind in {"SLIDE", "NOTES"}]
    pages = [deck.page(object_id) for object_id in ids]
    for page in pages:
        if page.kind == "NOTES_MASTER":
            raise Invalid(f"The page ({page.object_id}) is a notes master, which cannot be searched.")
    return pages


def replace_all_text(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    pattern, new = text_pattern(request.get("containsText")), str(request.get("replaceText", ""))
    texts = [text for page in _searched(deck, request) for element in page.elements for text in element.texts]
    count = sum(text.replace_all(pattern, new) for text in texts)
    return {"occurrencesChanged": count} if count else {}


def replace_all_shapes_with_image(deck: Deck, request: dict[str, Any]) -> dict[str, Any]:
    """Put a picture in the place of every shape whose text holds a match; it takes the shape's id and box."""
    pattern, url = text_pattern(request.get("containsText")), picture(request.get("imageUrl"))
    count = 0
    for page in _searched(deck, request):
        for at, element in enumerate(page.elements):
            if element.kind == "shape" and pattern.search(element.text.plain):
                size, transform = dict(element.size), dict(element.transform)
                page.elements[at] = Element(element.object_id, "image", size, transform, more={"url": url})
                count += 1
    return {"occurrencesChanged": count} if count else {}


def picture(url: Any) -> str:
    """Return the address of a picture, if it may be one."""
    text = str(url or "")
    if not text.startswith(("http://", "https://")) or len(text.encode()) > 2048:
        raise Invalid(
            "There was a problem retrieving the image. The provided image should be publicly accessible, within size "
            "limit, and in supported formats."
        )
    return text


def update_text_style(deck: Deck, request: dict[str, Any]) -> None:
    text = text_at(deck, request)
    start, end = text.range(request.get("textRange"))
    text.styled(start, end, request.get("style") or {}, field_mask("slides.v1", request, "TextStyle"))


def _paragraphs(deck: Deck, request: dict[str, Any]) -> tuple[Text, list[int]]:
    text = text_at(deck, request)
    return text, list(text.paragraphs(*text.range(request.get("textRange"))))


def update_paragraph_style(deck: Deck, request: dict[str, Any]) -> None:
    text, ends = _paragraphs(deck, request)
    mask = field_mask("slides.v1", request, "ParagraphStyle")
    for at in ends:
        held = text.letters[at].paragraph
        style = fieldmask.merged(held.get("style", {}), request.get("style") or {}, mask)
        text.letters[at] = replace(text.letters[at], paragraph={**held, "style": style})


def create_paragraph_bullets(deck: Deck, request: dict[str, Any]) -> None:
    text, ends = _paragraphs(deck, request)
    list_id = deck.new_id(None, "list.")
    glyph = "1." if str(request.get("bulletPreset", "")).startswith("NUMBERED") else "●"
    for at in ends:
        bullet = {"listId": list_id, "glyph": glyph, "bulletStyle": {}}
        text.letters[at] = replace(text.letters[at], paragraph={**text.letters[at].paragraph, "bullet": bullet})


def delete_paragraph_bullets(deck: Deck, request: dict[str, Any]) -> None:
    text, ends = _paragraphs(deck, request)
    for at in ends:
        held = {name: value for name, value in text.letters[at].paragraph.items() if name != "bullet"}
        text.letters[at] = replace(text.letters[at], paragraph=held)


HANDLERS = {
    "insertText": insert_text,
    "deleteText": delete_text,
    "replaceAllText": replace_all_text,
    "replaceAllShapesWithImage": replace_all_shapes_with_image,
    "updateTextStyle": update_text_style,
    "updateParagraphStyle": update_paragraph_style,
    "createParagraphBullets": create_paragraph_bullets,
    "deleteParagraphBullets": delete_paragraph_bullets,
}
