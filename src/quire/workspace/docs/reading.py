"""A document as its paragraphs, each with the place of every character, in UTF-16 units as Google counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quire.workspace.connection import google, refusing
from quire.workspace.filling import PLACE
from quire.workspace.values import FileLike, id_of


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, as far as repeating it needs."""

    #: Where the table starts, and which row of it this is.
    table: int
    number: int
    #: Where the row ends, and the text of each of its cells.
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph with the index of each of its characters."""

    tab: str
    #: The header, footer or footnote; empty: the body.
    segment: str
    text: str
    indexes: tuple[int, ...]
    row: Row | None = None

    def at(self, index: int) -> dict[str, Any]:
        """A place in this paragraph, as requests name it."""
        return _named(self.tab, self.segment) | {"index": index}

    def span(self, start: int, end: int) -> dict[str, Any]:
        """A range in this paragraph, as requests name it."""
        return _named(self.tab, self.segment) | {"startIndex": start, "endIndex": end}


@dataclass(frozen=True, slots=True)
class Place:
    """A placeholder where it stands."""

    text: str
    name: str
    start: int
    end: int
    paragraph: Paragraph


def _named(tab: str, segment: str) -> dict[str, Any]:
    return ({"tabId": tab} if tab else {}) | ({"segmentId": segment} if segment else {})


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def paragraphs(document: Mapping[str, Any]) -> Iterator[Paragraph]:
    """All paragraphs: of all tabs, in bodies, headers, footers, footnotes and the cells of tables."""
    for tab in _tabs(document.get("tabs") or ()):
        tab_id, inside = str(tab["tabProperties"]["tabId"]), tab.get("documentTab") or {}
        yield from _content(inside.get("body", {}).get("content", ()), tab_id, "", None)
        for kind in ("headers", "footers", "footnotes"):
            for segment, held in (inside.get(kind) or {}).items():
                yield from _content(held.get("content", ()), tab_id, segment, None)


def _tabs(tabs: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for tab in tabs:
        yield tab
        yield from _tabs(tab.get("childTabs") or ())


def _content(content: Sequence[Mapping[str, Any]], tab: str, segment: str, row: Row | None) -> Iterator[Paragraph]:
    for element in content:
        if "paragraph" in element:
            text, indexes = _characters(element["paragraph"].get("elements", ()))
            yield Paragraph(tab, segment, text, indexes, row)
        elif "table" in element:
            for number, held in enumerate(element["table"].get("tableRows", ())):
                cells = held.get("tableCells", ())
                inside = [list(_content(cell.get("content", ()), tab, segment, None)) for cell in cells]
                texts = tuple("".join(one.text for one in cell).rstrip("\n") for cell in inside)
                here = Row(int(element.get("startIndex", 0)), number, int(held.get("endIndex", 0)), texts)
                for cell in cells:
                    yield from _content(cell.get("content", ()), tab, segment, here)


def _characters(elements: Sequence[Mapping[str, Any]]) -> tuple[str, tuple[int, ...]]:
    text, indexes = "", []
    for element in elements:
        index = int(element.get("startIndex", 0))
        for letter in (element.get("textRun") or {}).get("content", "\ufffc"):
            text += letter
            indexes.append(index)
            index += 2 if ord(letter) > 0xFFFF else 1
    return text, tuple(indexes)


def places(document: Mapping[str, Any]) -> list[Place]:
    """All placeholders, in the order of the document."""
    found = []
    for paragraph in paragraphs(document):
        for match in PLACE.finditer(paragraph.text):
            start, last = paragraph.indexes[match.start()], paragraph.indexes[match.end() - 1]
            found.append(Place(match[0], match[1], start, last + 1, paragraph))
    return found


def named_ranges(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The parts of the document that bear this name, each with its tab."""
    found = []
    for tab in _tabs(document.get("tabs") or ()):
        held = (tab.get("documentTab", {}).get("namedRanges") or {}).get(name, {}).get("namedRanges", ())
        for one in held:
            for part in one.get("ranges", ()):
                tab_id = tab["tabProperties"]["tabId"]
                found.append({"tabId": tab_id, **part, "namedRangeId": one.get("namedRangeId", "")})
    return found


def text_of(document: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """The text within a named part."""
    start, end = int(part.get("startIndex", 0)), int(part.get("endIndex", 0))
    return "".join(
        letter
        for one in paragraphs(document)
        if one.tab == part.get("tabId", "") and one.segment == part.get("segmentId", "")
        for letter, index in zip(one.text, one.indexes, strict=True)
        if start <= index < end
    )


async def read(document: FileLike, *, using: str = "") -> str:
    """Return the text of a document, all tabs, headers and footers; cells of a table are paragraphs."""
    with refusing():
        found = await (await google(using)).documents.get(id_of(document))
    return "".join(one.text for one in paragraphs(found))
