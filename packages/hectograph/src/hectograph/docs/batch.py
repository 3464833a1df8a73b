"""``documents.batchUpdate``: the requests of a batch, one after another on a fork; all of them land, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hectograph.core.batch import Handler, field_mask, replies
from hectograph.core.error import EDITORS, ApiError, Invalid
from hectograph.core.fieldmask import Mask
from hectograph.docs.document import Document, Tab
from hectograph.docs.segment import Segment


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
        return field_mask("docs.v1", given, message)

    def suggestion(self, summary: str) -> frozenset[str]:
        """Return the suggestion to which the request's edits belong: none where they are made at once."""
        if not self.suggest:
            return frozenset()
        key = f"suggest.{self.document.suggested:012}"
        self.document.suggested += 1
        self.document.suggestions[key] = summary
        self.made.append(key)
        return frozenset({key})

    def direct(self, kind: str) -> None:
        """Refuse a request that cannot be made as a suggestion here."""
        if self.suggest:
            raise Invalid(f"The emulator plays {kind} only as an edit, not as a suggestion.")

    def run(self, requests: list[dict[str, Any]], handlers: Mapping[str, Handler[Batch]]) -> list[dict[str, Any]]:
        """Apply the requests in order and return the replies; ``responses`` holds what each did to suggestions."""
        out: list[dict[str, Any]] = []
        for reply in replies(self, requests, handlers):
            for tab in self.document.tabs.values():
                tab.sweep()
            out.append(reply)
            listed = {
                "createdSuggestionIds": self.made,
                "acceptedSuggestionIds": self.accepted,
                "rejectedSuggestionIds": self.rejected,
                "deletedSuggestionIds": self.deleted,
            }
            self.responses.append({name: ids for name, ids in listed.items() if ids})
            self.made, self.accepted, self.rejected, self.deleted = [], [], [], []
        return out


def internal() -> ApiError:
    return EDITORS.refusal(500, "Internal error encountered.")
