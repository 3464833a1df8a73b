"""Books as files in Drive."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from hectograph.drive.editor import Editor
from hectograph.drive.file import File
from hectograph.sheets.book import Book
from hectograph.sheets.export import FORMATS, exported, imported
from hectograph.sheets.library import Library


class SheetsEditor(Editor):
    exports = FORMATS
    imports = frozenset({"text/csv"})

    def __init__(self, library: Library, now: Callable[[], datetime]) -> None:
        self.library = library
        self.now = now

    def make(self, file: File, content: bytes | None, content_type: str) -> None:
        book = Book.fresh(file.file_id, file.name)
        if content is not None:
            imported(book, content, self.now())
        self.library.add(book)

    def copy(self, source: File, made: File) -> None:
        twin = self.library.shelf(source.file_id).current.fork(made.file_id)
        twin.properties = {**twin.properties, "title": made.name}
        self.library.add(twin)

    def drop(self, file: File) -> None:
        self.library.remove(file.file_id)

    def rename(self, file: File) -> None:
        self.library.change(file.file_id, lambda book: book.properties.update(title=file.name))

    def write(self, file: File, content: bytes, content_type: str) -> None:
        self.library.change(file.file_id, lambda book: imported(book, content, self.now()))

    def export(self, file: File, content_type: str) -> bytes:
        return exported(self.library.shelf(file.file_id).current, content_type, self.now)

    def revision(self, file: File) -> str:
        return str(self.library.shelf(file.file_id).current.version + 1)
