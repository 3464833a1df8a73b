"""The pages: a list of the books, and a book as a live grid in which a person can type."""

from __future__ import annotations

import re
from typing import Any

from hectograph.core import html
from hectograph.core.error import ApiError
from hectograph.core.http import Request, Response
from hectograph.page_html import BOOK
from hectograph.person import Person
from hectograph.sheets.a1 import Box, letters
from hectograph.sheets.cell import Formula, number
from hectograph.sheets.reference import placed
from hectograph.sheets.render import Reader
from hectograph.sheets.spreadsheet import hidden_by_filter
from hectograph.world import World

#: The most rows that one look at a sheet brings.
WINDOW = 400


class Page:
    def __init__(self, world: World) -> None:
        self.world = world
        self.person = Person(world)

    def handle(self, request: Request) -> Response:
        if request.path == "/":
            return self._list()
        found = re.fullmatch(r"/book/([^/]+)(/data|/edit)?", request.path)
        if found is None:
            return Response(404, b"not found", {"Content-Type": "text/plain"})
        book_id, what = found.groups()
        if book_id not in self.world.library.shelves:
            return Response(404, b"There is no such book.", {"Content-Type": "text/plain"})
        if what == "/data":
            return Response.of(self._data(book_id, request), headers={"Cache-Control": "no-store"})
        if what == "/edit":
            return self._edit(book_id, request)
        return Response(200, BOOK.encode(), dict(html.HEADERS))

    def _list(self) -> Response:
        rows = [
            [
                html.link(f"/book/{book['id']}", book["title"]),
                html.escape(", ".join(book["sheets"])),
                str(book["version"]),
                f"<code>{html.escape(book['id'])}</code>",
            ]
            for book in self.world.books()
        ]
        empty = "No books yet. Create one through the Sheets or Drive API."
        return html.page("Sheets", html.table(("title", "sheets", "version", "id"), rows, empty), "/")

    def _edit(self, book_id: str, request: Request) -> Response:
        if request.method != "POST":
            return Response(405)
        try:
            return Response.of(self.person.act({**request.json(), "book": book_id}))
        except ApiError as error:
            return Response.refused(error)

    def _data(self, book_id: str, request: Request) -> dict[str, Any]:
        """A window of one sheet; nothing but the version if that has not changed."""
        book = self.world.library.shelf(book_id).current
        wanted = request.one("sheet")
        sheet_id = int(wanted) if wanted.lstrip("-").isdigit() else book.first_sheet()
        if sheet_id not in book.sheets:
            sheet_id = book.first_sheet()
        if request.one("after") == f"{book.version}/{request.one('top', '0')}/{sheet_id}":
            return {"same": True}
        sheet = book.sheets[sheet_id]
        top = max(0, min(int(request.one("top", "0") or 0), sheet.row_count - 1))
        box = Box(top, min(top + WINDOW, sheet.row_count), 0, sheet.column_count)
        reader = Reader(book, self.world.now)
        cells: list[list[Any]] = []
        for row, column, cell in sheet.cells(box):
            cells.append(
                [row, column, reader.formatted(sheet, row, column, cell), _look(reader, sheet, row, column, cell)]
            )
        hidden = hidden_by_filter(reader, sheet)
        hidden |= {at for at, held in sheet.row_properties.items() if held.get("hiddenByUser")}
        return {
            "version": book.version,
            "key": f"{book.version}/{request.one('top', '0')}/{sheet_id}",
            "title": book.properties["title"],
            "sheet": sheet_id,
            "sheets": [
                {"id": s.sheet_id, "title": s.title, "hidden": bool(s.properties.get("hidden"))}
                for s in book.all_sheets()
            ],
            "rows": sheet.row_count,
            "columns": [letters(at) for at in range(sheet.column_count)],
            "widths": [sheet.column_properties.get(at, {}).get("pixelSize", 100) for at in range(sheet.column_count)],
            "frozen": sheet.properties["gridProperties"].get("frozenRowCount", 0),
            "top": top,
            "hidden": sorted(at for at in hidden if box.top <= at < box.bottom),
            "cells": cells,
        }


def _look(reader: Reader, sheet: Any, row: int, column: int, cell: Any) -> dict[str, Any]:
    """What the page needs to show and edit a cell besides its text."""
    out: dict[str, Any] = {}
    value = reader.effective(sheet, row, column, cell)
    if isinstance(cell.value, Formula):
        out["f"] = placed(cell.value, row)
    elif isinstance(value, float) and not isinstance(value, bool):
        out["r"] = str(number(value))
    form = reader.effective_format(sheet, row, column, cell, value)
    background = form.get("backgroundColor", {})
    if background != {"red": 1, "green": 1, "blue": 1}:
        out["b"] = _css(background)
    text = form.get("textFormat", {})
    if text.get("foregroundColor"):
        out["c"] = _css(text["foregroundColor"])
    for key, name in (("w", "bold"), ("i", "italic"), ("s", "strikethrough")):
        if text.get(name):
            out[key] = 1
    if form.get("horizontalAlignment") in {"RIGHT", "CENTER"}:
        out["a"] = form["horizontalAlignment"].lower()
    if cell.note:
        out["n"] = cell.note
    rule = (cell.extra or {}).get("dataValidation", {}).get("condition", {})
    if rule.get("type") == "ONE_OF_LIST":
        out["o"] = [item.get("userEnteredValue", "") for item in rule.get("values", [])]
    if rule.get("type") == "BOOLEAN":
        out["k"] = value is True
    return out


def _css(color: Any) -> str:
    return "#" + "".join(f"{round(float(color.get(name, 0)) * 255):02x}" for name in ("red", "green", "blue"))
