"""From what the hidden rows should say to requests: they are written, and records without a visible row get one. Pure.

A row whose record has ended and which somebody deleted stays deleted; one whose record is open comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from quire.surfaces.panel.binding import hidden_rows
from quire.surfaces.panel.cells import Request, cell, formula, insert_rows, reference, texts, write
from quire.surfaces.panel.layout import COMMAND, ENGINE, FIRST_ROW, STATE, STATE_ID, TABLE_ID, dropdown
from quire.surfaces.panel.reading import Table
from quire.surfaces.panel.table import Row

#: More rows than this are not drawn.
MOST_ROWS = 10_000
#: New rows in one batch.
BATCH = 500


class Drawn(NamedTuple):
    #: Requests for the hidden tab.
    state: list[Request]
    #: Requests that give records their visible rows.
    births: list[Request]
    #: The hidden rows afterwards.
    after: dict[int, Row]
    #: New rows that did not fit this batch.
    left: dict[str, Row]
    #: There is more to do at once.
    more: bool
    #: How many records are not shown since the table is full.
    hidden: int


def draw(
    table: Table, rows: Mapping[str, Row], state: Mapping[int, Row], size: int, title: str, *, bare: bool
) -> Drawn:
    """``size``: rows of the hidden tab; ``title``: its title; ``bare``: the table has no row below its header."""
    places = {row.record_id: place for place, row in state.items()}
    after = dict(state)
    new = [record_id for record_id in rows if record_id not in places]
    room = max(0, MOST_ROWS - len(table.lines))
    top = max([size - 1, FIRST_ROW - 1, *state])
    for place, record_id in enumerate(new[: min(BATCH, room)], top + 1):
        places[record_id] = place
        after[place] = rows[record_id]
    for record_id, row in rows.items():
        if record_id in places:
            after[places[record_id]] = row
    visible = {line.record_id for line in table.lines}
    gone = [row.record_id for row in state.values() if row.record_id not in visible and not row.over]
    fresh = new[: min(BATCH, room)]
    # A row that lost its hidden row keeps its id, and whatever people wrote beside it: the next look repairs its cells.
    loose = [record_id for record_id in fresh if record_id in table.loose]
    born = [*gone, *(record_id for record_id in fresh if record_id not in table.loose)][:BATCH]
    requests = hidden_rows(STATE_ID, state, after, max(size, FIRST_ROW), _cells)
    left = {record_id: rows[record_id] for record_id in new[len(fresh) :]}
    more = len(gone) > BATCH or len(left) > max(0, len(new) - room) or bool(loose)
    births = _births(table, born, places, title, bare=bare)
    return Drawn(requests, births, after, left, more, max(0, len(new) - room))


def _cells(row: Row) -> list[dict[str, Any]]:
    return [cell(text) for text in row]


def hidden_row(place: int, row: Row) -> Request:
    return texts(STATE_ID, place, [row])


def _births(table: Table, born: Sequence[str], places: Mapping[str, int], title: str, *, bare: bool) -> list[Request]:
    """Rows under the header, the newest on top: inserted, so blank, so nobody's."""
    if not born:
        return []
    first = table.header + 1
    requests = [insert_rows(TABLE_ID, first, len(born), last=bare)]
    newest = list(reversed(born))
    for name in ENGINE:
        column, hidden = table.columns[name], STATE.index(name)
        cells: list[dict[str, Any]]
        if name == "record_id":
            cells = [cell(record_id) for record_id in newest]
        else:
            cells = [formula(reference(title, hidden, places[record_id])) for record_id in newest]
        requests.append(write(TABLE_ID, first, column, [[made] for made in cells]))
    return requests


def dropdowns(table: Table, state: Mapping[int, Row]) -> list[Request]:
    """What may be typed in each row; neighbours with the same words share one request."""
    column = table.columns[COMMAND]
    runs: list[tuple[int, int, str]] = []
    for line in table.lines:
        words = state[line.place].words if line.place in state else ""
        if runs and runs[-1][1] == line.row and runs[-1][2] == words:
            runs[-1] = (runs[-1][0], line.row + 1, words)
        else:
            runs.append((line.row, line.row + 1, words))
    return [dropdown(TABLE_ID, column, start, end, words.split("|") if words else []) for start, end, words in runs]
