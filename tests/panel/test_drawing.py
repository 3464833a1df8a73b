"""Which rows are drawn, and which are left for later: pure."""

from __future__ import annotations

import pytest

from quire.surfaces.panel import drawing, reading
from quire.surfaces.panel.cells import reference, refers
from quire.surfaces.panel.layout import STATE, TABLE
from quire.surfaces.panel.table import Row

BLANK = Row(*[""] * len(STATE))


def row(record_id: str, status: str = "PENDING") -> Row:
    return BLANK._replace(record_id=record_id, status=status)


def test_new_rows_come_in_batches_and_a_full_table_says_how_many_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "BATCH", 2)
    monkeypatch.setattr(drawing, "MOST_ROWS", 3)
    table = reading.read([list(TABLE)], {}, "quire_state")
    rows = {f"r{n}": row(f"r{n}") for n in range(5)}

    first = drawing.draw(table, rows, {}, 2, "quire_state", bare=False)
    assert list(first.after) == [2, 3] and list(first.left) == ["r2", "r3", "r4"] and first.more
    [insert, ids, *_] = first.births
    assert insert["insertDimension"]["range"]["endIndex"] == 3
    newest = [cells["values"][0]["userEnteredValue"]["stringValue"] for cells in ids["updateCells"]["rows"]]
    assert newest == ["r1", "r0"]

    shown = [
        [drawn.record_id, *(reference("quire_state", STATE.index(name), at) for name in TABLE[1:9])]
        for at, drawn in first.after.items()
    ]
    table = reading.read([list(TABLE), *shown], first.after, "quire_state")
    second = drawing.draw(table, first.left, first.after, 4, "quire_state", bare=False)
    assert list(second.after) == [2, 3, 4] and list(second.left) == ["r3", "r4"]
    assert second.hidden == 2 and not second.more


@pytest.mark.parametrize("text", ["=quire_state!$B$17", "='quire_state'!$B$17", "='do not ''touch'' it'!$AB$3"])
def test_a_reference_is_recognised_in_each_spelling(text: str) -> None:
    found = refers(text)
    assert found is not None and refers(reference(*found)) == found


@pytest.mark.parametrize("text", ["", "=1+1", "=quire_state!B17", "=SUM(quire_state!$B$17)", 17, None, "=#REF!"])
def test_what_is_no_reference_of_ours_is_none(text: object) -> None:
    assert refers(text) is None
