"""The text in a shape or a cell: letters in UTF-16 units from 0, and a line end at its end that nobody wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.core.fieldmask import Mask
from hectograph.core.utf16 import code_units, size, splits_letter, text_of


@dataclass(frozen=True)
class Letter:
    unit: str
    style: Mapping[str, Any] = field(default_factory=dict)
    #: Of a line end: the style and the bullet of its paragraph.
    paragraph: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Text:
    #: Empty, or ending in a line end.
    letters: list[Letter] = field(default_factory=list)

    @property
    def plain(self) -> str:
        return text_of(letter.unit for letter in self.letters)

    @property
    def length(self) -> int:
        """Return how many units were written, without the last line end."""
        return max(0, len(self.letters) - 1)

    def insert(self, at: int, text: str, like: Letter | None = None) -> None:
        """Put a text in; it takes the look of the letter before it, or else of the next one."""
        if at > self.length:
            raise Invalid(
                f"The insertion index ({at}) should not be greater than the existing text length ({self.length})."
            )
        if not self.letters:
            self.letters = [Letter("\n")]
        before = self.letters[at - 1] if at else None
        if before is not None and splits_letter(before.unit, self.letters[at].unit):
            raise Invalid("The insertion index cannot be within a grapheme cluster.")
        model = like or (before if before is not None and before.unit != "\n" else self.letters[at])
        line_end = next(letter for letter in self.letters[at:] if letter.unit == "\n")
        new = [Letter(unit, model.style, line_end.paragraph if unit == "\n" else {}) for unit in code_units(text)]
        self.letters[at:at] = new

    def delete(self, start: int, end: int) -> None:
        del self.letters[start:end]
        if len(self.letters) == 1:
            self.letters = []

    def range(self, given: Mapping[str, Any] | None) -> tuple[int, int]:
        """Return the places of a text range."""
        kind = (given or {}).get("type", "ALL")
        length = self.length
        start = 0 if kind == "ALL" else (given or {}).get("startIndex", 0)
        end = (given or {}).get("endIndex", 0) if kind == "FIXED_RANGE" else length
        for name, index in (("start", start), ("end", end)):
            if index > length:
                text = f"should not be greater than the existing text length ({length})."
                raise Invalid(f"The {name} index ({index}) {text}")
        if start >= end and (kind != "ALL" or not length):
            raise Invalid(f"The startIndex {start} must be less than the endIndex {end}.")
        for at in (start, end):
            if 0 < at < len(self.letters) and splits_letter(self.letters[at - 1].unit, self.letters[at].unit):
                raise Invalid("The range cannot partially cover a grapheme cluster.")
        return start, end

    def replace_all(self, pattern: Any, new: str) -> int:
        """Replace every match; it takes the look of its first letter. Return how many there were."""
        text = self.plain.removesuffix("\n")
        found = [match.span() for match in pattern.finditer(text) if match.end() > match.start()]
        for first, last in reversed(found):
            start, end = size(text[:first]), size(text[:last])
            model = self.letters[start]
            del self.letters[start:end]
            if new:
                self.insert(start, new, like=model)
        if len(self.letters) == 1:
            self.letters = []
        return len(found)

    def styled(self, start: int, end: int, style: Mapping[str, Any], mask: Mask) -> None:
        for at in range(start, end):
            letter = self.letters[at]
            self.letters[at] = replace(letter, style=fieldmask.merged(letter.style, style, mask))

    def paragraphs(self, start: int, end: int) -> Iterator[int]:
        """Yield the place of the line end of every paragraph that a range touches."""
        for at in range(start, len(self.letters)):
            if self.letters[at].unit == "\n":
                yield at
                if at >= end - 1:
                    return

    def json(self) -> dict[str, Any]:
        """Return the text as the API shows it: a mark for each paragraph, and its runs after it."""
        out: list[dict[str, Any]] = []
        lists: dict[str, Any] = {}
        at = 0
        while at < len(self.letters):
            end = next(stop for stop in range(at, len(self.letters)) if self.letters[stop].unit == "\n") + 1
            held = self.letters[end - 1].paragraph
            marker: dict[str, Any] = {"style": {"direction": "LEFT_TO_RIGHT", **held.get("style", {})}}
            if "bullet" in held:
                marker["bullet"] = held["bullet"]
                lists[held["bullet"]["listId"]] = {"listId": held["bullet"]["listId"], "nestingLevel": {"0": {}}}
            out.append({**_placed(at, end), "paragraphMarker": marker})
            for style, run in groupby(self.letters[at:end], lambda letter: letter.style):
                units = [letter.unit for letter in run]
                stop = at + len(units)
                out.append({**_placed(at, stop), "textRun": {"content": text_of(units), "style": dict(style)}})
                at = stop
        return {"textElements": out} | ({"lists": lists} if lists else {})

    def dump(self) -> list[Any]:
        """Return the letters with those that differ by their unit alone in one."""
        groups = groupby(self.letters, lambda letter: (letter.style, letter.paragraph))
        return [[text_of(letter.unit for letter in run), style, paragraph] for (style, paragraph), run in groups]


def read_text(held: list[Any]) -> Text:
    return Text([Letter(unit, style, paragraph) for text, style, paragraph in held for unit in code_units(text)])


def _placed(start: int, end: int) -> dict[str, Any]:
    return {"startIndex": start, "endIndex": end} if start else {"endIndex": end}
