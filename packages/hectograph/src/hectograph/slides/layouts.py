"""The layouts of a new presentation, and the slides that are made from them."""

from __future__ import annotations

from typing import Any

from hectograph.core.error import Invalid
from hectograph.slides.deck import HEIGHT, WIDTH, Deck, Element, Page, emu, placed

#: Placeholders by layout: type, index, and place and size in hundredths of the page.
_LAYOUTS: dict[str, tuple[str, list[tuple[str, int, int, int, int, int]]]] = {
    "TITLE": ("Title slide", [("CENTERED_TITLE", 0, 3, 14, 93, 40), ("SUBTITLE", 0, 3, 55, 93, 15)]),
    "SECTION_HEADER": ("Section header", [("TITLE", 0, 3, 42, 93, 16)]),
    "TITLE_AND_BODY": ("Title and body", [("TITLE", 0, 3, 9, 93, 11), ("BODY", 0, 3, 22, 93, 66)]),
    "TITLE_AND_TWO_COLUMNS": (
        "Title and two columns",
        [("TITLE", 0, 3, 9, 93, 11), ("BODY", 0, 3, 22, 44, 66), ("BODY", 1, 53, 22, 44, 66)],
    ),
    "TITLE_ONLY": ("Title only", [("TITLE", 0, 3, 9, 93, 11)]),
    "ONE_COLUMN_TEXT": ("One column text", [("TITLE", 0, 3, 11, 31, 15), ("BODY", 0, 3, 27, 31, 62)]),
    "MAIN_POINT": ("Main point", [("TITLE", 0, 5, 9, 70, 80)]),
    "SECTION_TITLE_AND_DESCRIPTION": (
        "Section title and description",
        [("TITLE", 0, 3, 24, 44, 29), ("SUBTITLE", 0, 3, 55, 44, 24), ("BODY", 0, 54, 14, 42, 72)],
    ),
    "CAPTION_ONLY": ("Caption", [("BODY", 0, 3, 82, 66, 12)]),
    "BIG_NUMBER": ("Big number", [("TITLE", 0, 3, 22, 93, 38), ("BODY", 0, 3, 61, 93, 25)]),
    "BLANK": ("Blank", []),
}


def furnished(deck: Deck) -> Deck:
    """Give a presentation its master and its layouts."""
    deck.masters = [Page("p1", "MASTER", name="Simple Light")]
    for number, (name, (_, places)) in enumerate(_LAYOUTS.items(), 2):
        page = Page(f"p{number}", "LAYOUT", layout=deck.masters[0].object_id, name=name)
        for at, (kind, index, *box) in enumerate(places):
            page.elements.append(_placeholder(f"p{number}_i{at}", kind, index, box))
        deck.layouts.append(page)
    return deck


def display_name(name: str) -> str:
    return _LAYOUTS[name][0]


def _placeholder(object_id: str, kind: str, index: int, box: list[int]) -> Element:
    left, top, width, height = (share / 100 for share in box)
    more: dict[str, Any] = {"shapeType": "TEXT_BOX"}
    more["placeholder"] = {"type": kind, "index": index} if index else {"type": kind}
    where = emu(width * WIDTH, height * HEIGHT), placed(left * WIDTH, top * HEIGHT)
    return Element(object_id, "shape", *where, more=more)


def new_deck(presentation_id: str) -> Deck:
    """Return a presentation with a title slide whose two placeholders are empty."""
    deck = furnished(Deck(presentation_id))
    slide(deck, "p", {"predefinedLayout": "TITLE"}, ids=["i0", "i1"], notes="i3")
    return deck


def slide(
    deck: Deck,
    object_id: str,
    reference: dict[str, Any] | None = None,
    *,
    at: int | None = None,
    ids: list[str] | None = None,
    mappings: list[dict[str, Any]] | None = None,
    notes: str = "",
) -> Page:
    """Put a new slide in, with the placeholders of its layout."""
    layout = _layout(deck, reference or {})
    made = Page(object_id, "SLIDE", layout=layout.object_id)
    wanted = list(mappings or [])
    for number, model in enumerate(layout.elements):
        held = model.more["placeholder"]
        mapped = next((one for one in wanted if _means(one, model)), None)
        if mapped is not None:
            wanted.remove(mapped)
        given = ids[number] if ids else deck.new_id((mapped or {}).get("objectId"))
        more = {**model.more, "placeholder": {**held, "parentObjectId": model.object_id}}
        made.elements.append(Element(given, "shape", dict(model.size), dict(model.transform), more=more))
    if wanted:
        raise Invalid("The placeholder mapping does not match any placeholder on the layout.")
    body = Element(notes or deck.new_id(None), "shape", emu(5486400, 4114800), placed(685800, 4343400))
    body.more = {"shapeType": "TEXT_BOX", "placeholder": {"type": "BODY", "index": 1, "parentObjectId": "n:body"}}
    made.notes = Page(f"{object_id}:notes", "NOTES", [body])
    deck.slides.insert(len(deck.slides) if at is None else at, made)
    return made


def _layout(deck: Deck, reference: dict[str, Any]) -> Page:
    if reference.get("layoutId"):
        for page in deck.layouts:
            if page.object_id == reference["layoutId"]:
                return page
        raise Invalid(f"The layout ({reference['layoutId']}) could not be found.")
    name = reference.get("predefinedLayout", "BLANK")
    for page in deck.layouts:
        if page.name == name:
            return page
    raise Invalid(f"The predefined layout ({name}) is not present in the current master.")


def _means(mapping: dict[str, Any], model: Element) -> bool:
    if mapping.get("layoutPlaceholderObjectId"):
        return bool(mapping["layoutPlaceholderObjectId"] == model.object_id)
    held, given = model.more["placeholder"], mapping.get("layoutPlaceholder") or {}
    return bool(given.get("type") == held["type"] and given.get("index", 0) == held.get("index", 0))
