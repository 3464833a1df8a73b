"""What commands print: colour and tables on a terminal, plain text when piped, one JSON object a line with ``--json``.

Text that comes from records is made harmless first: a control character in an id or a note is shown, not obeyed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

#: Control characters, and those that turn the direction of writing around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

COLOURS = {
    "PENDING": "cyan",
    "RUNNING": "blue",
    "WAITING": "magenta",
    "NEEDS_APPROVAL": "yellow",
    "DONE": "green",
    "ERROR": "red",
    "CANCELLED": "bright_black",
}


def harmless(text: object) -> str:
    """The text with its control characters written out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(text))


def on_one_line(text: object, most: int = 0) -> str:
    """The text without line breaks, and not longer than ``most``."""
    flat = " ".join(harmless(text).split())
    return flat[: most - 1] + "…" if most and len(flat) > most else flat


#: What a table's lines need beside their cells: at their ends, and between two columns.
_EDGES, _GAP = 2, 3
#: Less of the last column says nothing.
_LEAST = 12


def needed(widths: Collection[int]) -> int:
    """How wide a line of such columns is."""
    return sum(widths) + _GAP * (len(widths) - 1) + _EDGES


def fitting(widths: Sequence[int], room: int, whole: int) -> dict[int, int]:
    """Which of the columns of these widths fit, each with its width: the first ``whole`` in any case.

    The last one, which may be cut, goes before those between, and takes what they leave.
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


class Output:
    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        #: Somebody looks: colour, tables, things that move.
        self.terminal = sys.stdout.isatty() and not json
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        if self._console is None:
            from rich.console import Console

            self._console = Console(highlight=False, soft_wrap=True)
        return self._console

    def emit(self, value: Any) -> None:
        """One JSON object on one line."""
        click.echo(json.dumps(value, ensure_ascii=True, default=str))

    def say(self, text: str = "", *, colour: str | None = None, bold: bool = False, dim: bool = False) -> None:
        """A line for people; with ``--json`` there is none."""
        if not self.json:
            click.echo(click.style(harmless(text), fg=colour, bold=bold or None, dim=dim or None))

    def note(self, text: str) -> None:
        """A remark that is not the answer: on stderr."""
        if not self.json:
            click.echo(click.style(harmless(text), dim=True), err=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, whole: int = 0) -> None:
        """Rows under columns. Piped, cells are never cut.

        ``whole``: on a terminal the first so many columns are never broken; others are left out where they do not fit.
        """
        cells = [[on_one_line(cell) if cell is not None else "" for cell in row] for row in rows]
        drawn = self.terminal
        if self.terminal and whole:
            columns, cells, drawn = self._fitted(columns, cells, whole)
        if drawn:
            self._rich_table(columns, cells)
            return
        widths = [max([len(name), *(len(row[place]) for row in cells)]) for place, name in enumerate(columns)]
        for row in [list(columns), *cells]:
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def _fitted(
        self, columns: Sequence[str], cells: list[list[str]], whole: int
    ) -> tuple[Sequence[str], list[list[str]], bool]:
        """The columns that fit on this terminal, their cells, and whether it is wide enough for those that must."""
        from rich.cells import cell_len
        from rich.text import Text

        lines = [list(columns), *cells]
        widths = [max(cell_len(row[place]) for row in lines) for place in range(len(columns))]
        chosen = fitting(widths, self.console.width, whole)

        def cut(place: int, cell: str) -> str:
            text = Text(cell)
            text.truncate(chosen[place], overflow="ellipsis")
            return text.plain

        header, *fitted = [[cut(place, row[place]) for place in chosen] for row in lines]
        return header, fitted, needed(chosen.values()) <= self.console.width

    def _rich_table(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for place, name in enumerate(columns):
            last = place == len(columns) - 1
            table.add_column(name, overflow="ellipsis" if last else "fold", no_wrap=last)
        for row in cells:
            table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
        self.console.print(table)

    def acted(self, sentence: str, undo: str, **more: Any) -> None:
        """What an acting verb changed, and the verb that takes it back."""
        if self.json:
            self.emit({"did": sentence, "undo": undo or None, **more})
            return
        self.say(sentence)
        if undo:
            self.say(f"  back: {undo}", dim=True)
