"""The layout of text on a terminal of a known width.

Everything here is pure: it is given a width in cells and returns lines. A wide character, such as a Chinese one, takes
two cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

#: What a table's lines need beside their cells: at their ends, and between two columns.
_EDGES, _GAP = 2, 3
#: The last column is left out if it would have less room than this.
_LEAST = 12
#: A text keeps at least so much room beside its indent.
_ROOM = 20


def cells(text: str) -> int:
    """Return how many cells a terminal needs for this text."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(text: str, width: int, hang: int = 0) -> list[str]:
    """Break a text into lines of at most ``width`` cells, at spaces. Lines after the first begin with ``hang`` spaces.

    An ASCII word is never broken: it may be an id or an address that somebody copies. Some other scripts write without
    spaces, so their words are.
    """
    hang = max(0, min(hang, width - _ROOM))
    if cells(text) <= width:
        return [text]
    lead = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], lead
    for word in _words(text[len(lead) :], max(1, width - max(hang, len(lead)))):
        joined = line + word
        if line.strip() and cells(joined.rstrip(" ")) > width:
            lines.append(line.rstrip(" "))
            joined = " " * hang + word
        line = joined
    return [*lines, line.rstrip(" ")]


def _words(text: str, most: int) -> Iterator[str]:
    """Yield the words of a text, each with the spaces behind it. A wider word that is not ASCII comes in pieces."""
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and text[end] != " ":
            end += 1
        space = end
        while space < len(text) and text[space] == " ":
            space += 1
        word = text[at:end]
        while not word.isascii() and cells(word) > most:
            piece = cut(word, most)
            yield piece
            word = word[len(piece) :]
        yield word + text[end:space]
        at = space


def cut(text: str, most: int) -> str:
    """Return the longest beginning of a text that fits into ``most`` cells, and at least one character of it."""
    if text.isascii():
        return text[: max(1, most)]
    end, used = 0, 0
    for character in text:
        used += cells(character)
        if used > most:
            break
        end += 1
    return text[: max(1, end)]


def shortened(text: str, most: int) -> str:
    """Return the text, or its beginning with an ellipsis if it needs more than ``most`` cells."""
    return text if cells(text) <= most else cut(text, most - 1) + "…"


def padded(text: str, width: int) -> str:
    """Return the text with spaces behind it, up to ``width`` cells."""
    return text + " " * (width - cells(text))


def needed(widths: Collection[int]) -> int:
    """Return how wide a line of such columns is."""
    return sum(widths) + _GAP * (len(widths) - 1) + _EDGES


def fitting(widths: Sequence[int], room: int, whole: int) -> dict[int, int]:
    """Decide which of the columns of these widths fit, each with its width. The first ``whole`` are always chosen.

    The last column may be cut. It is chosen before those between, and takes what they leave.
    """
    last = len(widths) - 1
    whole = min(whole, last)
    chosen = dict(enumerate(widths[:whole]))
    for place in (last, *range(whole, last)):
        width = min(widths[place], _LEAST) if place == last else widths[place]
        if needed([*chosen.values(), width]) <= room:
            chosen[place] = width
    if last in chosen:
        chosen[last] = min(widths[last], chosen[last] + room - needed(chosen.values()))
    return dict(sorted(chosen.items()))


class Fitted(NamedTuple):
    """A table as it fits: its columns, its rows, and the names of the columns that are left out."""

    columns: list[str]
    rows: list[list[str]]
    missing: list[str]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, whole: int) -> Fitted | None:
    """Fit a table into ``width`` cells. Return ``None`` if not even the first ``whole`` columns fit: see `blocks`."""
    widths = [max([cells(name), *(cells(row[place]) for row in rows)]) for place, name in enumerate(columns)]
    chosen = fitting(widths, width, whole)
    if needed(chosen.values()) > width:
        return None
    return Fitted(
        [columns[place] for place in chosen],
        [[shortened(row[place], room) for place, room in chosen.items()] for row in rows],
        [name for place, name in enumerate(columns) if place not in chosen],
    )


def blocks(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lay a table out as one block of lines for each row, every cell beside the name of its column."""
    name_width = max(cells(name) for name in columns) + 2
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for name, cell in zip(columns, row, strict=True):
            if cell:
                lines += wrapped(padded(name, name_width) + cell, width, name_width)
    return lines
