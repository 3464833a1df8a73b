"""Documents as files in Drive."""

from __future__ import annotations

from hectograph.core.switch import Switches
from hectograph.docs.document import Document
from hectograph.docs.export import EXPORTS, IMPORTS, exported, imported, plain
from hectograph.docs.library import DocsLibrary
from hectograph.drive.editor import Editor
from hectograph.drive.file import File


class DocsEditor(Editor):
    exports = EXPORTS
    imports = IMPORTS

    def __init__(self, library: DocsLibrary, switches: Switches) -> None:
        self.library = library
        self.switches = switches

    def make(self, file: File, content: bytes | None, content_type: str) -> None:
        document = Document(file.file_id)
        if content:
            imported(document.first, content, content_type)
        self.library.add(document)

    def copy(self, source: File, made: File) -> None:
        self.library.add(self.library.shelves[source.file_id].current.twin(made.file_id))

    def drop(self, file: File) -> None:
        self.library.shelves.pop(file.file_id, None)

    def write(self, file: File, content: bytes, content_type: str) -> None:
        """Replace the first tab by what was uploaded; the document stays the same one."""
        shelf = self.library.shelves[file.file_id]
        new = Document(file.file_id, version=shelf.current.version + 1)
        imported(new.first, content, content_type)
        shelf.publish(new, self.library.now())

    def export(self, file: File, content_type: str) -> bytes:
        return exported(self.library.shown(file.file_id, float(self.switches["export_lag"])), file.name, content_type)

    def text(self, file: File) -> str:
        return plain(self.library.shelves[file.file_id].current)

    def revision(self, file: File) -> str:
        return str(self.library.shelves[file.file_id].current.version)
