"""Tables: made, and their rows, columns and cells."""

from __future__ import annotations

from typing import Any

from hectograph.core import fieldmask
from hectograph.core.error import Invalid
from hectograph.docs.batch import Batch
from hectograph.docs.document import Tab
from hectograph.docs.segment import Block, Segment, empty_cell, empty_row, empty_table, table_at
from hectograph.docs.unit import TABLE, TEXT, Unit, with_more


def insert_table(batch: Batch, request: dict[str, Any]) -> None:
    """Put a line end and a table in; what stood after the place follows the table."""
    batch.direct("insertTable")
    tab, segment, at = batch.place(request)
    rows, columns = request.get("rows", 0), request.get("columns", 0)
    if rows < 1 or columns < 1:
        raise Invalid("A table must have at least one row and one column.")
    if segment.segment_id in tab.footnotes:
        raise Invalid("Tables cannot be inserted inside a footnote.")
    segment.check_place(at)
    line_end = segment.units[segment.paragraph(at)[1] - 1]
    segment.put(at, [Unit(TEXT, "\n", {}, line_end.more), *empty_table(rows, columns)])


def _table(batch: Batch, location: dict[str, Any] | None) -> tuple[Tab, Segment, Block]:
    if location is None:
        raise Invalid("The table start location must be specified.")
    tab = batch.document.tab(location.get("tabId", ""))
    segment = tab.segment(location.get("segmentId", ""))
    at = location.get("index", 0)
    segment.check_index(at)
    if segment.units[at].kind != TABLE:
        raise Invalid("The provided table start location is invalid.")
    return tab, segment, table_at(segment.units, at)


def _cell(batch: Batch, request: dict[str, Any]) -> tuple[Segment, Block, int, int]:
    batch.direct("changes of tables")
    where = request.get("tableCellLocation") or {}
    _, segment, table = _table(batch, where.get("tableStartLocation"))
    row, column = where.get("rowIndex", 0), where.get("columnIndex", 0)
    if not 0 <= row < len(table.rows):
        raise Invalid(f"The provided row index {row} is out of bounds.")
    if not 0 <= column < len(_columns(segment, table)):
        raise Invalid(f"The provided column index {column} is out of bounds.")
    return segment, table, row, column


def _columns(segment: Segment, table: Block) -> list[dict[str, Any]]:
    return list(segment.units[table.start].more["columns"])


def insert_table_row(batch: Batch, request: dict[str, Any]) -> None:
    segment, table, row, _ = _cell(batch, request)
    held = table.rows[row]
    at = held.end if request.get("insertBelow") else held.start
    segment.put(at, empty_row(len(held.cells)))


def delete_table_row(batch: Batch, request: dict[str, Any]) -> None:
    segment, table, row, _ = _cell(batch, request)
    whole = len(table.rows) == 1
    start, end = (table.start, table.end) if whole else (table.rows[row].start, table.rows[row].end)
    del segment.units[start:end]


def insert_table_column(batch: Batch, request: dict[str, Any]) -> None:
    segment, table, _, column = _cell(batch, request)
    right = bool(request.get("insertRight"))
    for row in reversed(table.rows):
        cell = row.cells[column]
        segment.put(cell.end if right else cell.start, empty_cell())
    columns = _columns(segment, table)
    columns.insert(column + right, {"widthType": "EVENLY_DISTRIBUTED"})
    segment.units[table.start] = with_more(segment.units[table.start], columns=columns)


def delete_table_column(batch: Batch, request: dict[str, Any]) -> None:
    segment, table, _, column = _cell(batch, request)
    columns = _columns(segment, table)
    if len(columns) == 1:
        del segment.units[table.start : table.end]
        return
    for row in reversed(table.rows):
        del segment.units[row.cells[column].start : row.cells[column].end]
    segment.units[table.start] = with_more(segment.units[table.start], columns=columns[:column] + columns[column + 1 :])


def _styled(segment: Segment, at: int, given: dict[str, Any], mask: fieldmask.Mask) -> None:
    held = dict(segment.units[at].more.get("style", {}))
    segment.units[at] = with_more(segment.units[at], style=fieldmask.merged(held, given, mask))


def update_table_cell_style(batch: Batch, request: dict[str, Any]) -> None:
    given, mask = dict(request.get("tableCellStyle") or {}), batch.mask(request, "TableCellStyle")
    if {"rowSpan", "columnSpan"} & mask.keys():
        raise Invalid("The row span and the column span are read-only.")
    span = request.get("tableRange")
    if span:
        segment, table, row, column = _cell(batch, span)
        rows = range(row, row + span.get("rowSpan", 1))
        columns = range(column, column + span.get("columnSpan", 1))
        if rows.stop > len(table.rows) or columns.stop > len(_columns(segment, table)):
            raise Invalid("The provided table range is out of bounds.")
    else:
        _, segment, table = _table(batch, request.get("tableStartLocation"))
        rows, columns = range(len(table.rows)), range(len(_columns(segment, table)))
    for row in rows:
        for column in columns:
            _styled(segment, table.rows[row].cells[column].start, given, mask)


def update_table_row_style(batch: Batch, request: dict[str, Any]) -> None:
    _, segment, table = _table(batch, request.get("tableStartLocation"))
    mask = batch.mask(request, "TableRowStyle")
    for row in request.get("rowIndices") or range(len(table.rows)):
        if not 0 <= row < len(table.rows):
            raise Invalid(f"The provided row index {row} is out of bounds.")
        _styled(segment, table.rows[row].start, dict(request.get("tableRowStyle") or {}), mask)


def update_table_column_properties(batch: Batch, request: dict[str, Any]) -> None:
    _, segment, table = _table(batch, request.get("tableStartLocation"))
    mask = batch.mask(request, "TableColumnProperties")
    columns = _columns(segment, table)
    for column in request.get("columnIndices") or range(len(columns)):
        if not 0 <= column < len(columns):
            raise Invalid(f"The provided column index {column} is out of bounds.")
        columns[column] = fieldmask.merged(columns[column], request.get("tableColumnProperties") or {}, mask)
    segment.units[table.start] = with_more(segment.units[table.start], columns=columns)


HANDLERS = {
    "insertTable": insert_table,
    "insertTableRow": insert_table_row,
    "insertTableColumn": insert_table_column,
    "deleteTableRow": delete_table_row,
    "deleteTableColumn": delete_table_column,
    "updateTableCellStyle": update_table_cell_style,
    "updateTableRowStyle": update_table_row_style,
    "updateTableColumnProperties": update_table_column_properties,
}
