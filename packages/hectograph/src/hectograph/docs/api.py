"""The Docs v1 API: documents are made, read and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core.batch import Handler
from hectograph.core.clock import stamp
from hectograph.core.error import ApiError, not_found
from hectograph.core.http import Request, Response
from hectograph.core.quota import Limit
from hectograph.core.service import MethodCall, Play, Service
from hectograph.docs import pages
from hectograph.docs.batch import Batch
from hectograph.docs.document import Document, merged, minted_revision
from hectograph.docs.editor import DocsEditor
from hectograph.docs.library import DocsLibrary, Shelf
from hectograph.docs.render import INLINE, document_json
from hectograph.docs.requests import parts, tables, text
from hectograph.drive.file import APPS, DOCUMENT, FOLDER, SHORTCUT, File, user

if TYPE_CHECKING:
    from hectograph.world import World

_HANDLERS: Mapping[str, Handler[Batch]] = {**text.HANDLERS, **tables.HANDLERS, **parts.HANDLERS}


class DocsApi(Service):
    version = "docs.v1"
    pages = ("/doc", "/docs")
    limits: ClassVar = {"read": Limit(per_user=300, per_project=3000), "write": Limit(per_user=60, per_project=600)}
    switches: ClassVar = {
        # Whether an answer tells of suggestions and comments, as projects in the Developer Preview get it.
        "docs_preview": (True, False),
        # For how many seconds after an edit an export still shows the old text.
        "export_lag": (0.0,),
    }

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.library = DocsLibrary(world.now)
        world.drive.editors[DOCUMENT] = DocsEditor(self.library, world.switches)

    def methods(self) -> Mapping[str, Play]:
        return {
            "documents.create": self.create,
            "documents.get": self.get,
            "documents.batchUpdate": self.batch_update,
        }

    def show(self, request: Request) -> Response:
        return pages.show(self, request)

    def dump(self) -> Any:
        return self.library.dump()

    def load(self, held: Any) -> None:
        self.library.load(held)

    def clear(self) -> None:
        self.library.shelves.clear()

    def create(self, call: MethodCall) -> Any:
        """Make an empty document; of what is given only the title is kept."""
        title = call.body().get("title") or "Untitled document"
        file = self.world.drive.create({"name": title, "mimeType": DOCUMENT})
        made = self.library.shelves[file.file_id].current
        # This answer alone shows the first tab and the list of tabs, as recorded.
        return {**document_json(made, title), "tabs": document_json(made, title, tabs=True)["tabs"]}

    def get(self, call: MethodCall) -> Any:
        file, shelf = self._found(call.parts["documentId"])
        mode = call.text("suggestionsViewMode", INLINE)
        included = call.text("commentsViewMode") == "COMMENTS_VIEW_MODE_INCLUDED"
        if included and call.text("suggestionsViewMode") != INLINE:
            raise self.refuse(
                400, "Comments may only be explicitly included if inline suggestions are also explicitly requested."
            )
        tabs = call.flag("includeTabsContent") or "tabs" in call.mask
        return document_json(shelf.current, file.name, mode=INLINE if mode.startswith("DEFAULT") else mode, tabs=tabs)

    def _found(self, document_id: str) -> tuple[File, Shelf]:
        file = self.world.drive.files.get(document_id)
        if file is None:
            raise not_found()
        if file.mime_type != DOCUMENT:
            raise self._other_kind(file.mime_type)
        return file, self.library.shelves[document_id]

    def _other_kind(self, mime_type: str) -> ApiError:
        """Return what Docs says about a file that is no document of its own."""
        if "wordprocessingml" in mime_type or mime_type == "application/msword":
            message = "This operation is not supported for this document. The document must not be an Office file."
            return self.refuse(400, message, status="FAILED_PRECONDITION")
        if mime_type.startswith(APPS) and mime_type not in {FOLDER, SHORTCUT}:
            return not_found()
        return self.refuse(400, "Request contains an invalid argument.")

    def batch_update(self, call: MethodCall) -> Any:
        given = call.body()
        file, shelf = self._found(call.parts["documentId"])
        control = given.get("writeControl", {})
        base = self._base(shelf, control)
        batch = Batch(base.fork(), control.get("writeMode") == "SUGGEST", account=call.caller.email)
        batch.document.suggested = shelf.current.suggested
        replies = batch.run(given.get("requests", []), _HANDLERS)
        changed = batch.document.changed(base)
        if changed or batch.comments:
            self._publish(file, shelf, base, batch, call.caller.email)
        out: dict[str, Any] = {
            "replies": replies,
            "writeControl": {"requiredRevisionId": shelf.current.revision_id},
            "documentId": file.file_id,
        }
        if self.world.switches["docs_preview"]:
            noted = batch.comments or any(batch.responses)
            out["suggestionResponses"] = batch.responses
            out["commentUpdateState"] = "ALL_SAVED" if noted else "NO_UPDATES_REQUESTED"
        return out

    def _base(self, shelf: Shelf, control: Mapping[str, Any]) -> Document:
        """Return the version for which the batch is meant."""
        required, target = control.get("requiredRevisionId"), control.get("targetRevisionId")
        if required and required != shelf.current.revision_id:
            raise self.refuse(400, f"The required revision ID '{required}' does not match the latest revision.")
        if not target:
            return shelf.current
        found = shelf.revision(str(target))
        if found is None:
            raise self.refuse(400, f"The target revision ID '{target}' is not known or too far behind.")
        return found

    def _publish(self, file: File, shelf: Shelf, base: Document, batch: Batch, author: str) -> None:
        """Let a batch land: on the newest version, also where it was meant for an older one."""
        new = batch.document if base is shelf.current else merged(base, batch.document, shelf.current)
        new.revision_id, new.version = minted_revision(), shelf.current.version + 1
        shelf.publish(new, self.world.now())
        for comment in batch.comments:
            file.comments[comment["id"]] = self._comment(comment, author)
        self.world.drive.touched(file)

    def _comment(self, given: Mapping[str, Any], author: str) -> dict[str, Any]:
        now = stamp(self.world.now())
        who = {key: value for key, value in user(author).items() if key in {"kind", "displayName", "me"}}
        return {
            "kind": "drive#comment",
            "id": given["id"],
            "createdTime": now,
            "modifiedTime": now,
            "author": who,
            "htmlContent": given["content"],
            "content": given["content"],
            "deleted": False,
            "quotedFileContent": {"mimeType": "text/html", "value": given["quote"]},
            "replies": [],
        }
