"""Presentations as files in Drive."""

from __future__ import annotations

from hectograph.core.pdf import Line, pdf
from hectograph.drive.editor import Editor
from hectograph.drive.file import File
from hectograph.slides.deck import Deck, Page
from hectograph.slides.layouts import new_deck


class SlidesEditor(Editor):
    exports = frozenset({"application/pdf", "text/plain"})

    def __init__(self) -> None:
        self.decks: dict[str, Deck] = {}

    def make(self, file: File, content: bytes | None, content_type: str) -> None:
        self.decks[file.file_id] = new_deck(file.file_id)

    def copy(self, source: File, made: File) -> None:
        self.decks[made.file_id] = self.decks[source.file_id].twin(made.file_id)

    def drop(self, file: File) -> None:
        self.decks.pop(file.file_id, None)

    def export(self, file: File, content_type: str) -> bytes:
        deck = self.decks[file.file_id]
        if content_type == "text/plain":
            return "\n".join(line for slide in deck.slides for line in lines(slide)).encode()
        pages = (Line(text, 18, breaks=not at) for slide in deck.slides for at, text in enumerate(lines(slide) or [""]))
        return pdf(pages, file.name, width=720, height=405)

    def text(self, file: File) -> str:
        return "\n".join(line for slide in self.decks[file.file_id].slides for line in lines(slide))

    def revision(self, file: File) -> str:
        return str(self.decks[file.file_id].version)


def lines(page: Page) -> list[str]:
    """Return the texts of a page in the order of its elements, tables row by row."""
    return [line for element in page.elements for text in element.texts for line in text.plain.splitlines()]
