"""What was typed over, blanked or pasted is put right, each cell only if it still is as it was read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quire.surfaces.panel.binding import Written
from quire.surfaces.panel.cells import At, Request
from quire.surfaces.panel.layout import STATE
from quire.surfaces.panel.reading import Table
from quire.surfaces.panel.table import Row

COPY = "a copy of another row of this record: it is not looked at; delete it when you like"


class Healed(NamedTuple):
    requests: list[Request]
    #: What to say in the row of each record that was repaired.
    notes: dict[str, str]


def heal(table: Table, shown: Mapping[At, str], *, blanks: bool) -> Healed:
    """``shown``: how cells that hold no text look (numbers, dates): that is what can be searched for."""
    requests: list[Request] = []
    notes: dict[str, str] = {}
    for line in table.lines:
        repaired = []
        for gap in line.damages:
            made = table.bound.repair(gap, kept=True, blanks=blanks, shown=shown)
            requests += made
            if made and gap.found != "" and not str(gap.found).startswith((COPY[:20], "=")):
                repaired.append(f"{gap.name} ({str(shown.get(gap.at, gap.found))[:40]!r})")
        if repaired:
            notes[line.record_id] = f"put back what was typed over: {', '.join(repaired)}; use the command column"
    for line in table.copies:
        if not any(gap.name == "reply" for gap in line.damages):
            requests += table.bound.name_copy("reply", line.row, line.place, COPY)
    return Healed(requests, notes)


def hidden(state: dict[int, Row], written: Written[Row]) -> dict[int, str]:
    """Hidden rows that somebody changed count as they were written. Answers what to say in each."""
    notes: dict[int, str] = {}
    for place, row in written.restore(state).items():
        names = [name for name, ours, found in zip(STATE, state[place], row, strict=True) if ours != found]
        notes[place] = f"put back what was changed in the hidden tab: {', '.join(names)}"
    return notes


def unreadable(table: Table) -> list[At]:
    """Cells of which it must be asked how they look before they can be replaced."""
    gaps = [gap for line in table.lines for gap in line.damages]
    return [gap.at for gap in gaps if not isinstance(gap.found, str)]
