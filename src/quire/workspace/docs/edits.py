"""Edits at indexes, from the end of each text backwards, so that none of them moves the place of another.

A value is put in behind the first brace of its placeholder, so that it takes the placeholder's style; then the braces
and the name around it are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from quire.workspace.docs.reading import Place, Row, units
from quire.workspace.docs.values import Image, Rows
from quire.workspace.filling import PLACE, shown

Request = dict[str, Any]


def edits(places: Sequence[Place], values: Mapping[str, Any], locale: str, mark: str) -> list[Request]:
    """The requests that give each placeholder its value. The last one names a part of it ``mark``."""
    found: list[Request] = []
    repeated: set[tuple[str, str, Row]] = set()
    ordered = sorted(places, key=lambda one: (one.paragraph.tab, one.paragraph.segment, one.start), reverse=True)
    for place in ordered:
        name, _, field = place.name.partition(".")
        rows = values.get(name)
        if not isinstance(rows, Rows):
            found += _one(place, values[place.name], locale)
            continue
        row = place.paragraph.row
        assert row is not None
        key = (place.paragraph.tab, place.paragraph.segment, row)
        if key not in repeated:
            repeated.add(key)
            found += _new_rows(place, row, name, rows, locale)
        if rows.rows:
            found += _one(place, rows.rows[0][field], locale)
    stays = [one for one in ordered if one.paragraph.row is None or not _is_empty(values, one)]
    return [*found, *(_marked(one, mark) for one in stays[-1:])]


def _is_empty(values: Mapping[str, Any], place: Place) -> bool:
    """Whether the row of this placeholder goes, because there are no rows."""
    rows = values.get(place.name.partition(".")[0])
    return isinstance(rows, Rows) and not rows.rows


def _one(place: Place, value: Any, locale: str) -> list[Request]:
    start, end, where = place.start, place.end, place.paragraph
    if isinstance(value, Image):
        picture = {"insertInlineImage": {"uri": value.uri, "location": where.at(start)}}
        return [picture, _gone(place, start + 1, end + 1)]
    text = shown(place.name, value, locale)
    if not text:
        return [_gone(place, start, end)]
    long = units(text)
    return [
        {"insertText": {"location": where.at(start + 1), "text": text}},
        _gone(place, start + 1 + long, end + long),
        _gone(place, start, start + 1),
    ]


def _gone(place: Place, start: int, end: int) -> Request:
    return {"deleteContentRange": {"range": place.paragraph.span(start, end)}}


def _new_rows(place: Place, row: Row, name: str, rows: Rows, locale: str) -> list[Request]:
    """The rows after the first one: empty rows below it, and their texts from the last cell backwards."""
    cell = {
        "tableStartLocation": place.paragraph.at(row.table),
        "rowIndex": row.number,
        "columnIndex": 0,
    }
    if not rows.rows:
        return [{"deleteTableRow": {"tableCellLocation": cell}}]
    more = rows.rows[1:]
    found: list[Request] = [{"insertTableRow": {"tableCellLocation": cell, "insertBelow": True}} for _ in more]
    length = 1 + 2 * len(row.cells)
    for number in range(len(more) - 1, -1, -1):
        for column in range(len(row.cells) - 1, -1, -1):
            if text := _cell(row.cells[column], name, more[number], locale):
                index = row.end + number * length + 2 + 2 * column
                found.append({"insertText": {"location": place.paragraph.at(index), "text": text}})
    return found


def _cell(template: str, name: str, row: Mapping[str, Any], locale: str) -> str:
    """The text of a repeated cell: its template with the values of its row."""

    def value(match: Any) -> str:
        first, _, field = match[1].partition(".")
        return shown(match[1], row[field], locale) if first == name and field in row else str(match[0])

    return PLACE.sub(value, template)


def _marked(first: Place, mark: str) -> Request:
    """Names the character at which the first placeholder began. It is there still: at the least a line's end."""
    span = first.paragraph.span(first.start, first.start + 1)
    return {"createNamedRange": {"name": mark, "range": span}}
