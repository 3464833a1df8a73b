"""A text as Google Docs counts it: a row of units, one for each UTF-16 code unit and one for each mark of structure.

A document's index is a place in this row. A letter is one unit, an emoji two. A table is a row of marks around its
cells: one where the table begins, one for each row, one for each cell, and one where the table ends. A paragraph is
what lies between two marks or line ends, with the line end that closes it: the line end carries the paragraph's style.

A unit never changes; a request puts another one with the same ``uid`` in its place. So it is known what became of a
unit, whatever was written before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hectograph.core import utf16
from hectograph.core.utf16 import text_of

_NUMBERS = itertools.count(1)

NOTHING: Mapping[str, Any] = {}
NONE: frozenset[str] = frozenset()

#: The kinds of units. ``TEXT`` and the elements stand in paragraphs, the others between them.
TEXT, SECTION, TABLE, ROW, CELL, END = "text", "section", "table", "row", "cell", "end"

#: Elements of a paragraph by the name under which the API shows them.
ELEMENTS = frozenset(
    {
        *("pageBreak", "columnBreak", "horizontalRule", "inlineObjectElement", "footnoteReference", "person"),
        *("richLink", "dateElement", "autoText"),
    }
)


@dataclass(frozen=True, slots=True)
class Unit:
    kind: str
    #: One UTF-16 code unit, for ``TEXT``.
    text: str = ""
    style: Mapping[str, Any] = field(default_factory=dict)
    #: Of a line end the paragraph's ``style`` and ``bullet``, of an element or a mark what belongs to it.
    more: Mapping[str, Any] = field(default_factory=dict)
    #: The named ranges that cover this unit.
    names: frozenset[str] = NONE
    #: The suggestions that put it in, and those that take it out.
    added: frozenset[str] = NONE
    removed: frozenset[str] = NONE
    uid: int = field(default_factory=lambda: next(_NUMBERS), compare=False)

    @property
    def inline(self) -> bool:
        """Whether it stands in a paragraph."""
        return self.kind == TEXT or self.kind in ELEMENTS

    @property
    def line_end(self) -> bool:
        return self.kind == TEXT and self.text == "\n"

    def like(self, other: Unit) -> bool:
        """Whether both may stand in one text run."""
        return (
            self.kind == other.kind == TEXT
            and self.style == other.style
            and self.added == other.added
            and self.removed == other.removed
        )


def with_style(unit: Unit, style: Mapping[str, Any]) -> Unit:
    return replace(unit, style=style, uid=unit.uid)


def with_more(unit: Unit, **more: Any) -> Unit:
    """Return the unit with some of what belongs to it replaced; None takes it away."""
    held = {key: value for key, value in {**unit.more, **more}.items() if value is not None}
    return replace(unit, more=held, uid=unit.uid)


def named(unit: Unit, names: frozenset[str]) -> Unit:
    return replace(unit, names=names, uid=unit.uid)


def suggested(unit: Unit, added: frozenset[str], removed: frozenset[str]) -> Unit:
    return replace(unit, added=added, removed=removed, uid=unit.uid)


def joined(units: Iterable[Unit]) -> str:
    """Return the text of units; those that are no text add nothing."""
    return text_of(unit.text for unit in units)


def splits_letter(units: Sequence[Unit], at: int) -> bool:
    """Whether a place lies inside a letter that takes two units."""
    return 0 < at < len(units) and utf16.splits_letter(units[at - 1].text, units[at].text)


def fresh(units: Iterable[Unit]) -> list[Unit]:
    """Return the same units as new ones, for a copy."""
    return [replace(unit, uid=next(_NUMBERS)) for unit in units]
