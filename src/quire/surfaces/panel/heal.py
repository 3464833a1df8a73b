"""What was typed over, blanked or pasted is put right, each cell only if it still is as it was read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quire.surfaces.panel.cells import At, Request, fill, reference, replace
from quire.surfaces.panel.layout import STATE, TABLE_ID
from quire.surfaces.panel.reading import Damage, Line, Table
from quire.surfaces.panel.table import Row

COPY = "a copy of another row of this record: it is not looked at; delete it when you like"


class Healed(NamedTuple):
    requests: list[Request]
    #: What to say in the row of each record that was mended.
    notes: dict[str, str]


def heal(table: Table, title: str, shown: Mapping[At, str], *, blanks: bool) -> Healed:
    """``shown``: how cells that hold no text look (numbers, dates): that is what can be searched for."""
    requests: list[Request] = []
    notes: dict[str, str] = {}
    for line in table.lines:
        mended = []
        for damage in line.damages:
            made = _mend(damage, shown, blanks=blanks)
            requests += made
            if made and damage.found != "" and not str(damage.found).startswith((COPY[:20], "=")):
                mended.append(f"{damage.column} ({str(shown.get(damage.at, damage.found))[:40]!r})")
        if mended:
            notes[line.record_id] = f"put back what was typed over: {', '.join(mended)}; use the command column"
    for line in table.copies:
        requests += _name(line, table, title)
    return Healed(requests, notes)


def hidden(state: dict[int, Row], drawn: Mapping[int, Row], odd: dict[int, Row]) -> dict[int, str]:
    """Hidden rows that say something else than what was ``drawn`` count as drawn. Answers what to say in each.

    ``odd``: those that were put back before, as they were found: what reads like that all the same is let be.
    """
    notes: dict[int, str] = {}
    for place, row in state.items():
        wrote = drawn.get(place)
        if wrote is None or wrote == row or wrote.record_id != row.record_id:
            odd.pop(place, None)
        elif odd.get(place) != row:
            odd[place] = row
            names = [name for name, ours, found in zip(STATE, wrote, row, strict=True) if ours != found]
            notes[place] = f"put back what was changed in the hidden tab: {', '.join(names)}"
    for place in notes:
        state[place] = drawn[place]
    return notes


def unreadable(table: Table) -> list[At]:
    """Cells of which it must be asked how they look before they can be replaced."""
    damages = [damage for line in table.lines for damage in line.damages]
    return [damage.at for damage in damages if not isinstance(damage.found, str)]


def _mend(damage: Damage, shown: Mapping[At, str], *, blanks: bool) -> list[Request]:
    if damage.found == "":
        return fill(damage.at, damage.wanted, blanks=blanks)
    text = damage.found if isinstance(damage.found, str) else shown.get(damage.at, "")
    return [replace(damage.at, text, damage.wanted)] if text else []


def _name(line: Line, table: Table, title: str) -> list[Request]:
    """Say of a pasted row that it is a copy, once."""
    column = table.columns.get("reply")
    if column is None or any(damage.column == "reply" for damage in line.damages):
        return []
    was = reference(title, STATE.index("reply"), line.place)
    return [replace(At(TABLE_ID, line.row, column), was, COPY)]
