"""Text: put in, taken out, replaced, and styled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hectograph.core import fieldmask
from hectograph.core.batch import text_pattern
from hectograph.core.error import Invalid
from hectograph.core.utf16 import size
from hectograph.docs.batch import Batch, internal
from hectograph.docs.document import minted
from hectograph.docs.segment import Segment
from hectograph.docs.unit import NONE, TEXT, Unit, joined, named, suggested, with_more, with_style


def insert_text(batch: Batch, request: dict[str, Any]) -> None:
    _, segment, at = batch.place(request)
    text = str(request.get("text", ""))
    if not text:
        raise Invalid("The text to insert must not be empty.")
    segment.check_place(at)
    segment.insert_text(at, text, batch.suggestion(f"Add: {text}"))


def remove(batch: Batch, segment: Segment, start: int, end: int, suggestion: frozenset[str]) -> int:
    """Take a range out, or mark it as to be taken out; what was only suggested goes at once. Return what is gone."""
    if not suggestion:
        del segment.units[start:end]
        return end - start
    kept = [
        suggested(unit, unit.added, unit.removed | suggestion) for unit in segment.units[start:end] if not unit.added
    ]
    segment.units[start:end] = kept
    return end - start - len(kept)


def delete_content_range(batch: Batch, request: dict[str, Any]) -> None:
    _, segment, start, end = batch.range(request)
    segment.check_deletion(start, end)
    if not batch.suggest and any(unit.added or unit.removed for unit in segment.units[start:end]):
        raise internal()
    remove(batch, segment, start, end, batch.suggestion(f"Delete: {joined(segment.units[start:end])}"))


def replace_all_text(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    pattern = text_pattern(request.get("containsText"))
    new = str(request.get("replaceText", ""))
    count = 0
    suggestion: frozenset[str] | None = None
    for tab in batch.document.wanted(request.get("tabsCriteria")):
        for segment in tab.segments:
            for start, end in reversed(list(found(segment, pattern))):
                if suggestion is None:
                    suggestion = batch.suggestion(f"Replace with: {new}")
                overwrite(batch, segment, start, end, new, suggestion)
                count += 1
    return {"occurrencesChanged": count} if count else {}


def found(segment: Segment, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Return every place of a pattern, from the front. A match lies within one paragraph and holds text only."""
    run: list[tuple[int, Unit]] = []
    for at, unit in enumerate(segment.units):
        if unit.kind == TEXT and not unit.line_end:
            if not unit.removed:
                run.append((at, unit))
            continue
        yield from _found_in(run, pattern)
        run = []


def _found_in(run: list[tuple[int, Unit]], pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    if not run:
        return
    text = joined(unit for _, unit in run)
    for match in pattern.finditer(text):
        if match.end() > match.start():
            first, last = size(text[: match.start()]), size(text[: match.end()]) - 1
            yield run[first][0], run[last][0] + 1


def overwrite(batch: Batch, segment: Segment, start: int, end: int, text: str, suggestion: frozenset[str]) -> None:
    """Put a text in the place of another one; it takes the look of the first letter there."""
    model = segment.units[start]
    remove(batch, segment, start, end, suggestion)
    if text:
        segment.insert_text(start, text, suggestion, like=model)


_LINK_LOOK = {
    "underline": True,
    "foregroundColor": {"color": {"rgbColor": {"red": 0.06666667, "green": 0.33333334, "blue": 0.8}}},
}


def update_text_style(batch: Batch, request: dict[str, Any]) -> None:
    batch.direct("updateTextStyle")
    _, segment, start, end = batch.range(request)
    mask = batch.mask(request, "TextStyle")
    given = dict(request.get("textStyle") or {})
    if "link" in mask:
        # A link is shown as one, and loses that look with the link, unless the request says how it shall look.
        look = _LINK_LOOK if given.get("link") else {}
        given = {**look, **given}
        mask = {**{name: {} for name in _LINK_LOOK}, **mask}
    for at in range(start, end):
        unit = segment.units[at]
        if unit.inline:
            segment.units[at] = with_style(unit, fieldmask.merged(unit.style, given, mask))


def update_paragraph_style(batch: Batch, request: dict[str, Any]) -> None:
    batch.direct("updateParagraphStyle")
    _, segment, start, end = batch.range(request)
    mask = batch.mask(request, "ParagraphStyle")
    given = dict(request.get("paragraphStyle") or {})
    if "headingId" in mask:
        raise Invalid("Heading ID is read-only and cannot be updated.")
    for _, stop in segment.paragraphs(start, end):
        unit = segment.units[stop - 1]
        held = unit.more["style"]
        if "*" in mask:
            style = {"namedStyleType": "NORMAL_TEXT", "direction": "LEFT_TO_RIGHT", **given}
        else:
            style = fieldmask.merged(held, given, mask)
        style.setdefault("namedStyleType", "NORMAL_TEXT")
        style.setdefault("direction", "LEFT_TO_RIGHT")
        heading = style["namedStyleType"].startswith("HEADING")
        if heading:
            style["headingId"] = held.get("headingId") or minted("h.")
        else:
            style.pop("headingId", None)
        segment.units[stop - 1] = with_more(unit, style=style)


def create_named_range(batch: Batch, request: dict[str, Any]) -> dict[str, Any]:
    tab, segment, start, end = batch.range(request)
    name = str(request.get("name", ""))
    if not 1 <= size(name) <= 256:
        raise Invalid("The name must be at least 1 character and no more than 256 characters.")
    key = minted()
    tab.names[key] = name
    for at in range(start, end):
        segment.units[at] = named(segment.units[at], segment.units[at].names | {key})
    return {"namedRangeId": key}


def _chosen_ranges(batch: Batch, request: dict[str, Any], by_id: str, by_name: str) -> list[tuple[Any, str]]:
    """Return the named ranges that a request means, each with its tab."""
    key, name = request.get(by_id), request.get(by_name)
    tabs = batch.document.wanted(request.get("tabsCriteria"))
    if key:
        chosen = [(tab, key) for tab in batch.document.tabs.values() if key in tab.names]
        if not chosen:
            raise Invalid(f"The named range with ID {key} was not found.")
        return chosen
    if not name:
        raise Invalid("ID or name for named range must be set")
    return [(tab, held) for tab in tabs for held, called in list(tab.names.items()) if called == name]


def delete_named_range(batch: Batch, request: dict[str, Any]) -> None:
    for tab, key in _chosen_ranges(batch, request, "namedRangeId", "name"):
        for segment in tab.segments:
            segment.units = [named(unit, unit.names - {key}) if key in unit.names else unit for unit in segment.units]


def replace_named_range_content(batch: Batch, request: dict[str, Any]) -> None:
    """Put a text in the place of the first piece of a range, and take out the other pieces."""
    batch.direct("replaceNamedRangeContent")
    text = str(request.get("text", ""))
    for tab, key in _chosen_ranges(batch, request, "namedRangeId", "namedRangeName"):
        placed = False
        for segment in tab.segments:
            pieces = _pieces(segment, key)
            for start, end in reversed(pieces):
                model = segment.units[start]
                stop = min(end, segment.end - 1)  # the last line end of a segment stays
                if stop > start:
                    segment.delete(start, stop)
                if text and not placed and start == pieces[0][0]:
                    segment.insert_text(start, text, like=model)
            placed = placed or bool(pieces)


def _pieces(segment: Segment, key: str) -> list[tuple[int, int]]:
    """Return the pieces of a named range in a segment."""
    out: list[tuple[int, int]] = []
    for at, unit in enumerate(segment.units):
        if key in unit.names:
            if out and out[-1][1] == at:
                out[-1] = (out[-1][0], at + 1)
            else:
                out.append((at, at + 1))
    return out


def accept_suggestion(batch: Batch, request: dict[str, Any]) -> None:
    settle(batch, str(request.get("suggestionId", "")), accept=True)


def delete_suggestion(batch: Batch, request: dict[str, Any]) -> None:
    """Take one's own suggestion back."""
    settle(batch, str(request.get("suggestionId", "")), accept=False)
    batch.deleted.append(batch.rejected.pop())


def reject_suggestion(batch: Batch, request: dict[str, Any]) -> None:
    settle(batch, str(request.get("suggestionId", "")), accept=False)


def settle(batch: Batch, key: str, *, accept: bool) -> None:
    """Take a suggestion over, or take it back."""
    if key not in batch.document.suggestions:
        raise Invalid(f"The suggestion with ID {key} was not found.")
    for tab in batch.document.tabs.values():
        for segment in tab.segments:
            segment.units = [unit for unit in (_settled(unit, key, accept) for unit in segment.units) if unit]
    del batch.document.suggestions[key]
    (batch.accepted if accept else batch.rejected).append(key)


def _settled(unit: Unit, key: str, accept: bool) -> Unit | None:
    if key in unit.removed:
        return None if accept else suggested(unit, unit.added, unit.removed - {key})
    if key in unit.added:
        return suggested(unit, NONE, unit.removed) if accept else None
    return unit


HANDLERS = {
    "insertText": insert_text,
    "deleteContentRange": delete_content_range,
    "replaceAllText": replace_all_text,
    "updateTextStyle": update_text_style,
    "updateParagraphStyle": update_paragraph_style,
    "createNamedRange": create_named_range,
    "deleteNamedRange": delete_named_range,
    "replaceNamedRangeContent": replace_named_range_content,
    "acceptSuggestion": accept_suggestion,
    "deleteSuggestion": delete_suggestion,
    "rejectSuggestion": reject_suggestion,
}
