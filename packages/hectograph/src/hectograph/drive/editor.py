"""What Drive asks of an API whose files lie in Drive: one ``Editor`` for each type of Docs Editors file.

The API registers it: ``world.drive.editors[DOCUMENT] = DocsEditor(...)``. Drive keeps the file's name, folder, sharing
and history of changes. The editor keeps what is in the file, under the file's id.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from hectograph.core.error import ApiError
from hectograph.drive.file import File


class Editor:
    #: The types into which a file of this kind can be exported.
    exports: ClassVar[Collection[str]] = ()
    #: The types of uploads that are converted.
    imports: ClassVar[Collection[str]] = ()

    def make(self, file: File, content: bytes | None, content_type: str) -> None:
        """Make what is in a new file: nothing, or what was uploaded with it."""
        raise NotImplementedError

    def copy(self, source: File, made: File) -> None:
        """Make what is in a new file from another one of the same kind."""
        raise NotImplementedError

    def drop(self, file: File) -> None:
        """Forget what was in a file that is deleted for good."""

    def rename(self, file: File) -> None:
        """The file has another name now."""

    def write(self, file: File, content: bytes, content_type: str) -> None:
        """Replace what is in a file by an upload."""
        raise ApiError.drive(400, "badRequest", "Bad Request")

    def export(self, file: File, content_type: str) -> bytes:
        """Return the file as one of ``exports``."""
        raise NotImplementedError

    def text(self, file: File) -> str:
        """Return what a search over the full text finds."""
        return ""

    def revision(self, file: File) -> str:
        """Return the number of the newest revision, as the list of revisions shows it."""
        return str(file.version)
