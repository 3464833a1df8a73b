"""The Slides v1 API: presentations are made, read and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from hectograph.core.batch import Handler, replies
from hectograph.core.error import Invalid, not_found
from hectograph.core.http import Request, Response
from hectograph.core.quota import Limit
from hectograph.core.service import MethodCall, Play, Service
from hectograph.drive.file import APPS, FOLDER, PRESENTATION, SHORTCUT, File
from hectograph.slides import pages
from hectograph.slides.deck import Deck, dumped, minted_revision, read_page
from hectograph.slides.editor import SlidesEditor
from hectograph.slides.layouts import furnished
from hectograph.slides.render import deck_json, page_json
from hectograph.slides.requests import objects, text

if TYPE_CHECKING:
    from hectograph.world import World

_HANDLERS: Mapping[str, Handler[Deck]] = {**text.HANDLERS, **objects.HANDLERS}


class SlidesApi(Service):
    version = "slides.v1"
    pages = ("/slides",)
    limits: ClassVar = {"read": Limit(per_user=600, per_project=3000), "write": Limit(per_user=60, per_project=600)}

    def __init__(self, world: World, base: Callable[[], str]) -> None:
        super().__init__(world, base)
        self.editor = SlidesEditor()
        world.drive.editors[PRESENTATION] = self.editor

    def methods(self) -> Mapping[str, Play]:
        return {
            "presentations.create": self.create,
            "presentations.get": self.get,
            "presentations.batchUpdate": self.batch_update,
            "presentations.pages.get": self.get_page,
        }

    def show(self, request: Request) -> Response:
        return pages.show(self, request)

    def dump(self) -> Any:
        return [dumped(deck) for deck in self.editor.decks.values()]

    def load(self, held: Any) -> None:
        for one in held:
            deck = furnished(Deck(one["id"], one["revision"], version=one["version"]))
            deck.slides = [read_page(page) for page in one["slides"]]
            self.editor.decks[one["id"]] = deck

    def clear(self) -> None:
        self.editor.decks.clear()

    def create(self, call: MethodCall) -> Any:
        """Make a presentation with an empty title slide; of what is given only the title is kept."""
        title = call.body().get("title") or "Untitled presentation"
        file = self.world.drive.create({"name": title, "mimeType": PRESENTATION})
        return deck_json(self.editor.decks[file.file_id], title)

    def get(self, call: MethodCall) -> Any:
        file, deck = self._found(call)
        return deck_json(deck, file.name)

    def get_page(self, call: MethodCall) -> Any:
        _, deck = self._found(call)
        try:
            page = deck.page(call.parts["pageObjectId"])
        except Invalid as error:
            raise self.refuse(404, "Requested entity was not found.") from error
        return page_json(deck, page) | {"revisionId": deck.revision_id}

    def _found(self, call: MethodCall) -> tuple[File, Deck]:
        file = self.world.drive.files.get(call.parts["presentationId"])
        if file is None or (file.mime_type.startswith(APPS) and file.mime_type not in {PRESENTATION, FOLDER, SHORTCUT}):
            raise not_found()
        if "presentationml" in file.mime_type or file.mime_type == "application/vnd.ms-powerpoint":
            message = "This operation is not supported for this document. The document must not be an Office file."
            raise self.refuse(400, message, status="FAILED_PRECONDITION")
        if file.mime_type != PRESENTATION:
            raise self.refuse(400, "Request contains an invalid argument.")
        return file, self.editor.decks[file.file_id]

    def batch_update(self, call: MethodCall) -> Any:
        given = call.body()
        file, deck = self._found(call)
        required = given.get("writeControl", {}).get("requiredRevisionId")
        if required and required != deck.revision_id:
            raise self.refuse(400, f"The required revision ID '{required}' does not match the latest revision.")
        new = deck.fork()
        made = list(replies(new, given.get("requests", []), _HANDLERS))
        if new != deck:
            new.revision_id, new.version = minted_revision(), deck.version + 1
            self.editor.decks[file.file_id] = deck = new
            self.world.drive.touched(file)
        return {
            "presentationId": file.file_id,
            "replies": made,
            "writeControl": {"requiredRevisionId": deck.revision_id},
        }
