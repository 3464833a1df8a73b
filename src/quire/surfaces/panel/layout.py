"""The tabs of a panel: their columns, colours, checkboxes, dropdowns and protection, as requests. Pure.

| tab | whose | what |
|---|---|---|
| ``state_table`` | people's | one row per record: the engine's columns, ``command``, then whatever people add |
| ``panel`` | people's | the STOP box, and how the ledger stands |
| an inbox | people's | rows that start records; three columns of the engine's stand beside them |
| ``quire_state`` | the engine's, hidden | one row per record: what the visible rows refer to |
| ``quire_inbox`` | the engine's, hidden | one row per row of an inbox |
| ``quire_tables`` | the engine's, hidden | one row per bound row of a table of people's |

Tabs are known by their ids, so people may rename and move them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quire.model.record import Status
from quire.surfaces.panel.cells import At, Request, cell, formula, reference, texts, write

TABLE_ID = 1903000011
STATE_ID = 1903000012
PANEL_ID = 1903000013
INBOX_ID = 1903000014
TABLES_ID = 1903000015

#: What people see, in this order: the seven first, then the engine's others, around the one cell for people.
TABLE = (
    "record_id",
    "status",
    "next_step",
    "dedupe_key",
    "last_run_id",
    "last_error",
    "updated_at",
    "why",
    "asks",
    "command",
    "reply",
)
COMMAND = "command"
#: The engine's columns of the table; the hidden tab has the same, and what nobody needs to see.
ENGINE = tuple(name for name in TABLE if name != COMMAND)
STATE = (*ENGINE, "version", "words")
#: The hidden row of the panel itself; records come after it.
PANEL_ROW = 1
FIRST_ROW = 2

#: Beside each row of an inbox.
INBOX = ("record_id", "record_status", "record_why")
#: The hidden tab of inboxes: these, then what is written back.
INBOX_STATE = ("record_id", "status", "why", "tab", "fingerprint", "at")
WRITE_BACK = 12
INBOX_WIDTH = len(INBOX_STATE) + WRITE_BACK

#: The hidden tab of tables of people's: these, then what their columns show and what is written back.
TABLE_STATE = (
    "record_id",
    "word",
    "note",
    "tab",
    "key",
    "mark",
    "fingerprint",
    "was",
    "version",
    "code",
    "started",
)
TABLE_WIDTH = len(TABLE_STATE) + 24

STOP_LABEL, LEDGER_LABEL, MOMENT_LABEL = "STOP", "ledger", "updated_at"
#: A cell of the hidden tab on which the panel proves what ``findReplace`` does with blank cells.
PROOF = At(STATE_ID, 0, len(STATE))

_TITLES = {
    TABLE_ID: "state_table",
    STATE_ID: "quire_state",
    PANEL_ID: "panel",
    INBOX_ID: "quire_inbox",
    TABLES_ID: "quire_tables",
}

_COLOURS = {
    Status.DONE: "d9ead3",
    Status.RUNNING: "cfe2f3",
    Status.NEEDS_APPROVAL: "fff2cc",
    Status.ERROR: "f4cccc",
    Status.CANCELLED: "e0e0e0",
    Status.WAITING: "eeeeee",
}
_WIDTHS = {
    "record_id": 180,
    "status": 130,
    "dedupe_key": 200,
    "last_error": 220,
    "updated_at": 180,
    "why": 380,
    "asks": 300,
    "command": 110,
    "reply": 320,
}


def free_title(wanted: str, titles: Iterable[str]) -> str:
    """A title that no other tab has: Sheets compares titles without regard to case."""
    taken = {title.casefold() for title in titles}
    names = [wanted, f"quire {wanted}", *(f"{wanted} {n}" for n in range(2, 300))]
    return next(name for name in names if name.casefold() not in taken)


def title_of(sheet_id: int) -> str:
    """What a tab of the engine's is called if nobody renames it."""
    return _TITLES[sheet_id]


def colour(code: str) -> dict[str, float]:
    return {name: int(code[at : at + 2], 16) / 255 for name, at in (("red", 0), ("green", 2), ("blue", 4))}


def _add(
    sheet_id: int, title: str, rows: int, columns: int, *, hidden: bool, index: int | None = None, top: int = 0
) -> Request:
    grid = {"rowCount": rows, "columnCount": columns, "frozenRowCount": top + 1}
    properties: dict[str, Any] = {"sheetId": sheet_id, "title": title, "hidden": hidden, "gridProperties": grid}
    if index is not None:
        properties["index"] = index
    return {"addSheet": {"properties": properties}}


def _protect(sheet_id: int, what: str, columns: tuple[int, int] | None = None) -> Request:
    """Hidden tabs are closed. Visible columns only warn: who may not edit a cell may not sort it either."""
    area = {"sheetId": sheet_id}
    if columns is not None:
        area |= {"startColumnIndex": columns[0], "endColumnIndex": columns[1]}
    held: dict[str, Any] = {"range": area, "description": what}
    return {"addProtectedRange": {"protectedRange": held | ({"warningOnly": True} if columns is not None else {})}}


def _bold(sheet_id: int, columns: int, top: int = 0) -> Request:
    area = {"sheetId": sheet_id, "startRowIndex": top, "endRowIndex": top + 1, "endColumnIndex": columns}
    form = {"textFormat": {"bold": True}, "backgroundColor": colour("f3f3f3")}
    fields = "userEnteredFormat(textFormat.bold,backgroundColor)"
    return {"repeatCell": {"range": area, "cell": {"userEnteredFormat": form}, "fields": fields}}


def _coloured(sheet_id: int, column: int) -> list[Request]:
    """The status column in the colour of its word; with the header, or rows inserted under it would be left out."""
    area = {"sheetId": sheet_id, "startColumnIndex": column, "endColumnIndex": column + 1}
    return [
        {
            "addConditionalFormatRule": {
                "index": 0,
                "rule": {
                    "ranges": [area],
                    "booleanRule": {
                        "condition": {"type": "TEXT_EQ", "values": [{"userEnteredValue": status.value}]},
                        "format": {"backgroundColor": colour(code)},
                    },
                },
            }
        }
        for status, code in _COLOURS.items()
    ]


def _widths(sheet_id: int, order: Sequence[str]) -> list[Request]:
    return [
        {
            "updateDimensionProperties": {
                "range": {
                    "sheetId": sheet_id,
                    "dimension": "COLUMNS",
                    "startIndex": order.index(name),
                    "endIndex": order.index(name) + 1,
                },
                "properties": {"pixelSize": wide},
                "fields": "pixelSize",
            }
        }
        for name, wide in _WIDTHS.items()
    ]


def make_state(titles: Iterable[str]) -> list[Request]:
    title = free_title(_TITLES[STATE_ID], titles)
    return [
        _add(STATE_ID, title, FIRST_ROW, len(STATE) + 1, hidden=True),
        texts(STATE_ID, 0, [STATE]),
        _protect(STATE_ID, "Quire's state of the panel"),
    ]


def make_inbox_state(titles: Iterable[str]) -> list[Request]:
    title = free_title(_TITLES[INBOX_ID], titles)
    return [
        _add(INBOX_ID, title, 1, INBOX_WIDTH, hidden=True),
        texts(INBOX_ID, 0, [INBOX_STATE]),
        _protect(INBOX_ID, "Quire's state of the inboxes"),
    ]


def make_table_state(titles: Iterable[str]) -> list[Request]:
    title = free_title(_TITLES[TABLES_ID], titles)
    return [
        _add(TABLES_ID, title, 1, TABLE_WIDTH, hidden=True),
        texts(TABLES_ID, 0, [TABLE_STATE]),
        _protect(TABLES_ID, "Quire's state of the tables"),
    ]


def make_table(titles: Iterable[str], order: Sequence[str], header: Sequence[str], top: int) -> list[Request]:
    """``order``: the columns as the engine calls them; ``header``: as people do; ``top``: the row of the header."""
    title = free_title(_TITLES[TABLE_ID], titles)
    before, after = order.index(COMMAND), order.index(COMMAND) + 1
    return [
        _add(TABLE_ID, title, top + 2, len(order) + 5, hidden=False, index=0, top=top),
        texts(TABLE_ID, top, [header]),
        _bold(TABLE_ID, len(order), top),
        *_coloured(TABLE_ID, order.index("status")),
        *_widths(TABLE_ID, order),
        *(
            _protect(TABLE_ID, "Quire's columns: what is typed here is put back", (first, last))
            for first, last in ((0, before), (after, len(order)))
            if first < last
        ),
    ]


def make_panel(titles: Iterable[str], state_title: str) -> list[Request]:
    title = free_title(_TITLES[PANEL_ID], titles)

    def shown(name: str) -> dict[str, Any]:
        return formula(reference(state_title, STATE.index(name), PANEL_ROW))

    rows = [
        [cell(STOP_LABEL), {"userEnteredValue": {"boolValue": False}}, shown("reply")],
        [cell(LEDGER_LABEL), shown("status"), shown("why")],
        [cell(MOMENT_LABEL), shown("updated_at")],
    ]
    box = {"condition": {"type": "BOOLEAN"}, "strict": True}
    return [
        _add(PANEL_ID, title, 20, 6, hidden=False, index=1),
        write(PANEL_ID, 0, 0, rows),
        {"setDataValidation": {"range": At(PANEL_ID, 0, 1).range, "rule": box}},
        _bold(PANEL_ID, 1),
        *_red(At(PANEL_ID, 1, 1), "HALTED"),
    ]


def _red(at: At, word: str) -> list[Request]:
    condition = {"type": "TEXT_EQ", "values": [{"userEnteredValue": word}]}
    form = {"backgroundColor": colour("f4cccc"), "textFormat": {"bold": True}}
    rule = {"ranges": [at.range], "booleanRule": {"condition": condition, "format": form}}
    return [{"addConditionalFormatRule": {"index": 0, "rule": rule}}]


def make_inbox(sheet_id: int, title: str, columns: Sequence[str]) -> list[Request]:
    """A tab for an inbox that is not there yet, with a column for each field."""
    header = (*columns, *INBOX)
    return [
        _add(sheet_id, title, 50, len(header) + 3, hidden=False),
        texts(sheet_id, 0, [header]),
        _bold(sheet_id, len(header)),
        *_coloured(sheet_id, header.index("record_status")),
    ]


def dropdown(sheet_id: int, column: int, first: int, last: int, words: Sequence[str]) -> Request:
    """Offer these words in the rows from ``first`` up to ``last``. Other words may be typed: they get an answer."""
    area = {"sheetId": sheet_id, "startRowIndex": first, "endRowIndex": last}
    area |= {"startColumnIndex": column, "endColumnIndex": column + 1}
    if not words:
        return {"setDataValidation": {"range": area}}
    condition = {"type": "ONE_OF_LIST", "values": [{"userEnteredValue": word} for word in words]}
    rule = {"condition": condition, "strict": False, "showCustomUi": True}
    return {"setDataValidation": {"range": area, "rule": rule}}
