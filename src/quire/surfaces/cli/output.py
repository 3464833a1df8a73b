"""What commands print: colour and tables on a terminal, plain text when piped, one JSON object a line with ``--json``.

Text that comes from records is made harmless first: a control character in an id or a note is shown, not obeyed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from quire.surfaces.cli import layout

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
    """Return the text with its control characters written out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", str(text))


def on_one_line(text: object, most: int = 0) -> str:
    """Return the text without line breaks, and not longer than ``most``."""
    flat = " ".join(harmless(text).split())
    return flat[: most - 1] + "…" if most and len(flat) > most else flat


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

    @property
    def width(self) -> int | None:
        """The cells in a line of the terminal. Without a terminal there is no limit."""
        return self.console.width if self.terminal else None

    def emit(self, value: Any) -> None:
        """Print one JSON object on one line."""
        click.echo(json.dumps(value, ensure_ascii=True, default=str))

    def say(
        self,
        text: str = "",
        *,
        colour: str | None = None,
        bold: bool = False,
        dim: bool = False,
        hang: int = 0,
        whole: bool = False,
    ) -> None:
        """Print a line for people; with ``--json`` nothing. On a terminal a long line is broken between words.

        ``hang`` indents what follows the first line. ``whole`` leaves the line as it is: a command that is copied.
        """
        if self.json:
            return
        for line in [text] if whole else self._lines(text, hang):
            click.echo(click.style(harmless(line), fg=colour, bold=bold or None, dim=dim or None))

    def _lines(self, text: str, hang: int = 0) -> list[str]:
        parts = harmless(text).split("\n")
        return (
            parts if self.width is None else [line for part in parts for line in layout.wrapped(part, self.width, hang)]
        )

    def fact(self, word: str, value: str) -> None:
        """Print a word and what it stands for, with the value in a column of its own."""
        self.say(f"{word:<9} {value}", hang=10)

    def note(self, text: str) -> None:
        """Print a remark that is not the answer: on stderr."""
        if not self.json:
            for line in self._lines(text):
                click.echo(click.style(line, dim=True), err=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], *, whole: int = 1) -> None:
        """Print rows under columns. Piped, cells are never cut.

        On a terminal the first ``whole`` columns are never broken. Columns that do not fit are left out and named. If
        not even the first ones fit, each row is a block of lines.
        """
        cells = [[on_one_line(cell) if cell is not None else "" for cell in row] for row in rows]
        if self.width is None:
            widths = [max([len(name), *(len(row[place]) for row in cells)]) for place, name in enumerate(columns)]
            for row in [list(columns), *cells]:
                click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
            return
        fitted = layout.table(columns, cells, self.width, whole)
        if fitted is None:
            for line in layout.blocks(columns, cells, self.width):
                click.echo(line)
            return
        self._rich_table(fitted.columns, fitted.rows)
        if fitted.missing:
            self.note(f"no room here for {', '.join(fitted.missing)}: widen the terminal, or ask with --json")

    def _rich_table(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(name, no_wrap=True)
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
            self.say(f"  back: {undo}", dim=True, whole=True)
