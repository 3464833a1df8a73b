"""A presentation: its slides with their notes, and the layouts and masters that they are made from."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hectograph.core.error import Invalid
from hectograph.slides.text import Text, read_text

#: The size of a page, in EMU: 16 to 9.
WIDTH, HEIGHT = 9144000, 5143500

_OBJECT_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_:-]*")


def emu(width: float, height: float) -> dict[str, Any]:
    return {"width": {"magnitude": width, "unit": "EMU"}, "height": {"magnitude": height, "unit": "EMU"}}


def placed(x: float, y: float) -> dict[str, Any]:
    return {"scaleX": 1, "scaleY": 1, "translateX": x, "translateY": y, "unit": "EMU"}


@dataclass
class Element:
    object_id: str
    #: "shape", "table" or "image".
    kind: str
    size: dict[str, Any]
    transform: dict[str, Any]
    text: Text = field(default_factory=Text)
    #: The cells of a table, row by row.
    cells: list[list[Text]] = field(default_factory=list)
    #: Everything else: shapeType, placeholder, url, title, description, shapeProperties.
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> Iterator[Text]:
        yield self.text
        for row in self.cells:
            yield from row


@dataclass
class Page:
    object_id: str
    #: SLIDE, LAYOUT, MASTER, NOTES or NOTES_MASTER.
    kind: str
    elements: list[Element] = field(default_factory=list)
    layout: str = ""
    #: Of a layout its name, of a master how it is shown.
    name: str = ""
    notes: Page | None = None

    @property
    def speaker_notes(self) -> str:
        """Return the id of the shape that holds what the speaker says."""
        return self.elements[0].object_id if self.kind == "NOTES" else ""


@dataclass
class Deck:
    presentation_id: str
    revision_id: str = ""
    slides: list[Page] = field(default_factory=list)
    layouts: list[Page] = field(default_factory=list)
    masters: list[Page] = field(default_factory=list)
    notes_master: Page = field(default_factory=lambda: Page("n", "NOTES_MASTER"))
    version: int = 1

    def __post_init__(self) -> None:
        self.revision_id = self.revision_id or minted_revision()

    @property
    def pages(self) -> Iterator[Page]:
        for slide in self.slides:
            yield slide
            if slide.notes is not None:
                yield slide.notes
        yield from self.layouts
        yield from self.masters
        yield self.notes_master

    def fork(self) -> Deck:
        return copy.deepcopy(self)

    def twin(self, presentation_id: str) -> Deck:
        """Return a copy that is a presentation of its own; the ids of its objects stay."""
        made = self.fork()
        made.presentation_id, made.revision_id, made.version = presentation_id, minted_revision(), 1
        return made

    def page(self, object_id: str) -> Page:
        for page in self.pages:
            if page.object_id == object_id:
                return page
        raise Invalid(f"The page ({object_id}) could not be found.")

    def find(self, object_id: str) -> tuple[Page, Element | None] | None:
        """Return the page with this id, or the element with its page."""
        for page in self.pages:
            if page.object_id == object_id:
                return page, None
            for element in page.elements:
                if element.object_id == object_id:
                    return page, element
        return None

    def element(self, object_id: str) -> tuple[Page, Element]:
        found = self.find(object_id)
        if found is None or found[1] is None:
            raise Invalid(f"The object ({object_id}) could not be found.")
        return found[0], found[1]

    def new_id(self, given: str | None, prefix: str = "g") -> str:
        """Return the id that a caller gives, if it may, or a new one."""
        if not given:
            return f"{prefix}{secrets.token_hex(6)}_{secrets.randbelow(1000)}_{secrets.randbelow(10)}"
        if not 5 <= len(given) <= 50:
            raise Invalid(f"The object ID ({given}) should have a length of 5 to 50 characters.")
        if not _OBJECT_ID.fullmatch(given):
            raise Invalid(f"The object ID ({given}) contains characters that are not allowed.")
        if self.find(given) is not None:
            text = "should be unique among all pages and page elements in the presentation."
            raise Invalid(f"The object ID ({given}) {text}")
        return given


def minted_revision() -> str:
    return secrets.token_urlsafe(10)


def dumped(deck: Deck) -> dict[str, Any]:
    return {
        "id": deck.presentation_id,
        "revision": deck.revision_id,
        "version": deck.version,
        "slides": [_page(page) for page in deck.slides],
    }


def _page(page: Page) -> dict[str, Any]:
    return {
        "id": page.object_id,
        "kind": page.kind,
        "layout": page.layout,
        "notes": None if page.notes is None else _page(page.notes),
        "elements": [
            {
                "id": one.object_id,
                "kind": one.kind,
                "size": one.size,
                "transform": one.transform,
                "text": one.text.dump(),
                "cells": [[cell.dump() for cell in row] for row in one.cells],
                "more": one.more,
            }
            for one in page.elements
        ],
    }


def read_page(held: dict[str, Any]) -> Page:
    elements = [
        Element(
            one["id"],
            one["kind"],
            one["size"],
            one["transform"],
            read_text(one["text"]),
            [[read_text(cell) for cell in row] for row in one["cells"]],
            one["more"],
        )
        for one in held["elements"]
    ]
    notes = None if held["notes"] is None else read_page(held["notes"])
    return Page(held["id"], held["kind"], elements, held["layout"], notes=notes)
