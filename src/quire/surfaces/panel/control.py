"""The tab ``panel``: the STOP box and how the ledger stands, found by their labels wherever people moved them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quire.surfaces.panel.cells import At, Request, fill, reference, replace
from quire.surfaces.panel.layout import LEDGER_LABEL, MOMENT_LABEL, PANEL_ID, PANEL_ROW, STATE, STOP_LABEL

Grid = Sequence[Sequence[Any]]

#: Beside each label: the column after it, and what that shows.
_SHOWN = (
    (STOP_LABEL, 2, "reply"),
    (LEDGER_LABEL, 1, "status"),
    (LEDGER_LABEL, 2, "why"),
    (MOMENT_LABEL, 1, "updated_at"),
)


def _labelled(grid: Grid, label: str) -> tuple[int, int] | None:
    for row, cells in enumerate(grid):
        for column, text in enumerate(cells):
            if text == label:
                return row, column
    return None


def stop(grid: Grid) -> At | None:
    """The STOP box, if it is ticked."""
    found = _labelled(grid, STOP_LABEL)
    if found is None:
        return None
    row, column = found
    box = grid[row][column + 1] if column + 1 < len(grid[row]) else False
    return At(PANEL_ID, row, column + 1) if box is True or str(box).strip().upper() == "TRUE" else None


def repair(grid: Grid, title: str, *, blanks: bool) -> list[Request]:
    """Put back what the tab shows where it was typed over, or where it refers to nothing any more."""
    requests: list[Request] = []
    for label, after, name in _SHOWN:
        found = _labelled(grid, label)
        if found is None:
            continue
        row, column = found[0], found[1] + after
        text = grid[row][column] if column < len(grid[row]) else ""
        wanted = reference(title, STATE.index(name), PANEL_ROW)
        if text == "":
            requests += fill(At(PANEL_ID, row, column), wanted, blanks=blanks)
        elif text != wanted and isinstance(text, str):
            requests.append(replace(At(PANEL_ID, row, column), text, wanted))
    return requests
