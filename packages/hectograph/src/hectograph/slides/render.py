"""A presentation as the JSON that ``presentations.get`` answers."""

from __future__ import annotations

from typing import Any

from hectograph.slides.deck import HEIGHT, WIDTH, Deck, Element, Page, emu
from hectograph.slides.layouts import display_name

_INHERIT = {"pageBackgroundFill": {"propertyState": "INHERIT"}}


def deck_json(deck: Deck, title: str) -> dict[str, Any]:
    return {
        "presentationId": deck.presentation_id,
        "pageSize": emu(WIDTH, HEIGHT),
        "slides": [page_json(deck, page) for page in deck.slides],
        "title": title,
        "masters": [page_json(deck, page) for page in deck.masters],
        "layouts": [page_json(deck, page) for page in deck.layouts],
        "locale": "en",
        "revisionId": deck.revision_id,
        "notesMaster": page_json(deck, deck.notes_master),
    }


def page_json(deck: Deck, page: Page) -> dict[str, Any]:
    out: dict[str, Any] = {"objectId": page.object_id}
    if page.kind != "SLIDE":
        out["pageType"] = page.kind
    if page.elements:
        out["pageElements"] = [element_json(element) for element in page.elements]
    master = deck.masters[0].object_id
    if page.kind == "SLIDE":
        out["slideProperties"] = {"layoutObjectId": page.layout, "masterObjectId": master}
        if page.notes is not None:
            out["slideProperties"]["notesPage"] = page_json(deck, page.notes)
    elif page.kind == "LAYOUT":
        names = {"name": page.name, "displayName": display_name(page.name)}
        out["layoutProperties"] = {"masterObjectId": master, **names}
    elif page.kind == "MASTER":
        out["masterProperties"] = {"displayName": page.name}
    elif page.kind == "NOTES":
        out["notesProperties"] = {"speakerNotesObjectId": page.speaker_notes}
    return out | {"pageProperties": _INHERIT}


def element_json(one: Element) -> dict[str, Any]:
    out: dict[str, Any] = {"objectId": one.object_id, "size": one.size, "transform": one.transform}
    out |= {name: one.more[name] for name in ("title", "description") if one.more.get(name)}
    if one.kind == "shape":
        shape: dict[str, Any] = {name: one.more[name] for name in ("shapeType", "placeholder") if name in one.more}
        if one.text.letters:
            shape["text"] = one.text.json()
        return out | {"shape": {**shape, "shapeProperties": one.more.get("shapeProperties", {})}}
    if one.kind == "image":
        url = one.more["url"]
        return out | {"image": {"contentUrl": url, "sourceUrl": url, "imageProperties": {}}}
    return out | {"table": _table(one)}


def _table(one: Element) -> dict[str, Any]:
    rows, columns = len(one.cells), len(one.cells[0])
    height = one.size["height"]["magnitude"] / rows
    width = one.size["width"]["magnitude"] / columns
    return {
        "rows": rows,
        "columns": columns,
        "tableRows": [
            {
                "rowHeight": {"magnitude": height, "unit": "EMU"},
                "tableCells": [
                    {
                        # A place of 0 is left out.
                        "location": {k: v for k, v in (("rowIndex", at), ("columnIndex", column)) if v},
                        "rowSpan": 1,
                        "columnSpan": 1,
                        **({"text": text.json()} if text.letters else {}),
                        "tableCellProperties": {},
                    }
                    for column, text in enumerate(row)
                ],
            }
            for at, row in enumerate(one.cells)
        ],
        "tableColumns": [{"columnWidth": {"magnitude": width, "unit": "EMU"}} for _ in range(columns)],
    }
