"""Forms as files in Drive."""

from __future__ import annotations

from hectograph.drive.editor import Editor
from hectograph.drive.file import File
from hectograph.forms.form import Form


class FormsEditor(Editor):
    def __init__(self) -> None:
        self.forms: dict[str, Form] = {}

    def make(self, file: File, content: bytes | None, content_type: str) -> None:
        self.forms[file.file_id] = Form(file.file_id, file.name)

    def copy(self, source: File, made: File) -> None:
        """A copy has the questions and none of the answers; nobody may answer it yet."""
        new = self.forms[source.file_id].fork()
        new.form_id, new.responses, new.watches, new.sheet = made.file_id, {}, {}, ""
        new.published = new.accepting = False
        self.forms[made.file_id] = new

    def drop(self, file: File) -> None:
        self.forms.pop(file.file_id, None)

    def text(self, file: File) -> str:
        form = self.forms[file.file_id]
        return "\n".join([form.title, form.description, *(one.get("title", "") for one in form.items)])

    def revision(self, file: File) -> str:
        return str(self.forms[file.file_id].revision)
