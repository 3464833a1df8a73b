"""``documents.batchUpdate``: the requests of a batch, one after another on a fork; all of them land, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hectograph.core import fieldmask, schema
from hectograph.core.discovery import api
from hectograph.core.error import EDITORS, ApiError, Invalid
from hectograph.core.fieldmask import Mask
from hectograph.docs.document import Document, Tab, minted
from hectograph.docs.segment import Segment

#: A request's behaviour: it changes the batch's document and returns the reply, where there is one.
Handler = Callable[["Batch", dict[str, Any]], dict[str, Any] | None]


@dataclass
class Batch:
    document: Document
    #: Whether edits become suggestions.
    suggest: bool = False
    #: The suggestions that the request under way makes.
    made: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    #: What each request did to suggestions.
    responses: list[dict[str, Any]] = field(default_factory=list)
    #: Comments to be kept once the batch has landed.
    comments: list[dict[str, Any]] = field(default_factory=list)
    account: str = ""

    def place(self, given: Mapping[str, Any]) -> tuple[Tab, Segment, int]:
        """Return where a request puts something in: at an index, or before the last line end of a segment."""
        location = given.get("location")
        if location is None and "endOfSegmentLocation" not in given:
            raise Invalid("The insertion location must be specified.")
        where = location if location is not None else given["endOfSegmentLocation"]
        tab = self.document.tab(where.get("tabId", ""))
        segment = tab.segment(where.get("segmentId", ""))
        at = where.get("index", 0) if location is not None else segment.end - 1
        segment.check_index(at)
        return tab, segment, at

    def range(self, given: Mapping[str, Any], name: str = "range") -> tuple[Tab, Segment, int, int]:
        held = given.get(name)
        if not held:
            raise Invalid("The range must be specified.")
        tab = self.document.tab(held.get("tabId", ""))
        segment = tab.segment(held.get("segmentId", ""))
        start, end = held.get("startIndex", 0), held.get("endIndex", 0)
        segment.check_range(start, end)
        return tab, segment, start, end

    def mask(self, given: Mapping[str, Any], message: str) -> Mask:
        text = str(given.get("fields", ""))
        if not text.strip():
            raise Invalid("At least one field must be listed in 'fields'. (Use '*' to indicate all fields.)")
        try:
            mask = fieldmask.parse(text)
        except fieldmask.BadMask as error:
            raise Invalid(f"Invalid field mask: {text}") from error
        for path in fieldmask.paths(mask):
            if path[0] != "*" and not api("docs.v1").schema.has_path(message, path):
                raise Invalid(f"Invalid field: {'.'.join(schema.snake(part) for part in path)}")
        return mask

    def suggestion(self, summary: str) -> frozenset[str]:
        """Return the suggestion to which the request's edits belong: none where they are made at once."""
        if not self.suggest:
            return frozenset()
        key = minted("suggest.")
        self.document.suggestions[key] = summary
        self.made.append(key)
        return frozenset({key})

    def direct(self, kind: str) -> None:
        """Refuse a request that cannot be made as a suggestion here."""
        if self.suggest:
            raise Invalid(f"The emulator plays {kind} only as an edit, not as a suggestion.")

    def run(self, requests: list[dict[str, Any]], handlers: Mapping[str, Handler]) -> list[dict[str, Any]]:
        """Apply the requests in order and return the replies; ``responses`` holds what each did to suggestions."""
        replies: list[dict[str, Any]] = []
        for index, request in enumerate(requests):
            if not request:
                raise EDITORS.refusal(400, f"Invalid requests[{index}]: No request set.")
            ((kind, body),) = request.items()
            handler = handlers.get(kind)
            if handler is None:
                text = f"Invalid requests[{index}].{kind}: This request is not supported by the emulator."
                raise EDITORS.refusal(400, text)
            self.made, self.accepted, self.rejected, self.deleted = [], [], [], []
            try:
                reply = handler(self, body)
            except Invalid as error:
                raise EDITORS.refusal(400, f"Invalid requests[{index}].{kind}: {error}") from error
            for tab in self.document.tabs.values():
                tab.sweep()
            replies.append({} if reply is None else {kind: reply})
            listed = {
                "createdSuggestionIds": self.made,
                "acceptedSuggestionIds": self.accepted,
                "rejectedSuggestionIds": self.rejected,
                "deletedSuggestionIds": self.deleted,
            }
            self.responses.append({name: ids for name, ids in listed.items() if ids})
        return replies


def internal() -> ApiError:
    return EDITORS.refusal(500, "Internal error encountered.")
