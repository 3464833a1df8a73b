"""Shows cells: as formatted text, as plain values, as formulas, and as CellData with their effective format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hectograph.sheets import locales
from hectograph.sheets.a1 import Box
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import Cell, CellError, Formula, Value, number, value_json
from hectograph.sheets.color import THEME
from hectograph.sheets.formulas.formula import Area, Calculation, Failed, Node, parsed
from hectograph.sheets.formulas.functions import time as function_time
from hectograph.sheets.numberformat import is_date, shown
from hectograph.sheets.reference import placed


class Reader:
    """Reads one version of a book."""

    def __init__(self, book: Book, now: Callable[[], datetime]) -> None:
        self.book = book
        self.locale = locales.of(book.properties.get("locale", "en_US"))
        self.calculation = Calculation(book, now)

    def effective(self, sheet: Sheet, row: int, column: int, cell: Cell) -> Value:
        if isinstance(cell.value, Formula) or (cell.value is None and self.calculation.spilling):
            return self.calculation.value(sheet.sheet_id, row, column)
        return cell.value

    def number_format(
        self, sheet: Sheet, row: int, column: int, cell: Cell, depth: int = 0
    ) -> Mapping[str, Any] | None:
        """The number format that shows the value: the cell's own, or the one its formula brings along."""
        form = cell.format.get("numberFormat") if cell.format else None
        if form is None and isinstance(cell.value, Formula):
            node, formula = parsed(cell.value.text), cell.value
            if node is not None:
                return self.calculation.at(
                    (sheet.sheet_id, row, column), formula, lambda: self._brought(sheet, node, depth + 1)
                )
        return form

    def _brought(self, sheet: Sheet, node: Node, depth: int) -> Mapping[str, Any] | None:
        if depth > 8:
            return None
        match node[0]:
            case "ref" | "name":
                try:
                    area = self.calculation.run(node)
                except Failed:
                    return None
                if isinstance(area, Area):
                    held = self.book.sheets[area.sheet_id]
                    at = area.box.top, area.box.left
                    return self.number_format(held, *at, held.get(*at), depth)
                return None
            case "call":
                if node[1] in function_time.SHOWN_AS:
                    return {"type": function_time.SHOWN_AS[node[1]]}
                if node[1] in {"SUM", "MIN", "MAX", "AVERAGE", "IFERROR", "IFNA", "ROUND", "ABS"} and node[2]:
                    return self._brought(sheet, node[2][0], depth + 1)
                if node[1] == "IF" and len(node[2]) > 1:
                    return self._brought(sheet, node[2][1], depth + 1)
                return None
            case "binary":
                if node[1] in {"+", "-"}:
                    left = self._brought(sheet, node[2], depth + 1)
                    right = self._brought(sheet, node[3], depth + 1)
                    if node[1] == "-" and is_date(left) and is_date(right):
                        return None
                    return left or right
                return None
            case "percent":
                return {"type": "PERCENT", "pattern": "0.00%"}
            case _:
                return None

    def formatted(self, sheet: Sheet, row: int, column: int, cell: Cell) -> str:
        value = self.effective(sheet, row, column, cell)
        if not isinstance(value, float) and not cell.format:
            return shown(value, None, self.locale)
        return shown(value, self.number_format(sheet, row, column, cell), self.locale)

    def rendered(self, sheet: Sheet, row: int, column: int, cell: Cell, option: str, dates: str) -> Any:
        """One item of a ValueRange."""
        if option == "FORMULA" and isinstance(cell.value, Formula):
            return locales.written(placed(cell.value, row), self.locale)
        if option == "FORMATTED_VALUE":
            return self.formatted(sheet, row, column, cell)
        value = self.effective(sheet, row, column, cell)
        if value is None:
            return ""
        if isinstance(value, CellError):
            return f"{value.code} ({value.text})"
        if isinstance(value, (bool, str)):
            return value
        form = self.number_format(sheet, row, column, cell)
        if dates == "FORMATTED_STRING" and is_date(form):
            return shown(value, form, self.locale)
        return number(value)

    def values(self, sheet: Sheet, box: Box, option: str, dates: str, by_column: bool) -> list[list[Any]]:
        """The values of a box without what is empty at the end of each line and at the end of all."""
        lines: list[list[Any]] = []
        for row, column, cell in self.calculation.cells(sheet.sheet_id, box):
            if cell.value is None and self.effective(sheet, row, column, cell) is None:
                continue
            line, place = (column - box.left, row - box.top) if by_column else (row - box.top, column - box.left)
            while len(lines) <= line:
                lines.append([])
            held = lines[line]
            while len(held) < place:
                held.append("")
            item = self.rendered(sheet, row, column, cell, option, dates)
            if len(held) == place:
                held.append(item)
            else:
                held[place] = item
        return lines

    def cell_data(self, sheet: Sheet, row: int, column: int, cell: Cell) -> dict[str, Any]:
        """A CellData; a cell that was never touched is an empty one."""
        if cell.blank and not self.calculation.spilling:
            return {}
        out: dict[str, Any] = {}
        value: Value = None
        if cell.value is not None:
            entered = cell.value
            if isinstance(entered, Formula):
                entered = Formula(locales.written(placed(entered, row), self.locale))
            out["userEnteredValue"] = value_json(entered)
        value = self.effective(sheet, row, column, cell)
        if value is not None or cell.value is not None:
            if value is not None and value != "":
                out["effectiveValue"] = value_json(value)
            text = self.formatted(sheet, row, column, cell)
            if text:
                out["formattedValue"] = text
        if cell.format:
            out["userEnteredFormat"] = cell.format
        if cell.value is not None or value is not None or cell.format:
            out["effectiveFormat"] = self.effective_format(sheet, row, column, cell, value)
        link = _hyperlink(self, sheet, row, column, cell)
        if link:
            out["hyperlink"] = link
        if cell.note:
            out["note"] = cell.note
        return out | dict(cell.extra or {})

    def effective_format(self, sheet: Sheet, row: int, column: int, cell: Cell, value: Value) -> dict[str, Any]:
        """The format that shows: the book's, the cell's, what the value brings, and what conditions change."""
        out = overlaid(self.book.properties["defaultFormat"], {})
        if out["textFormat"].get("fontFamily") == "arial,sans,sans-serif":
            # The default is spelt out for the book and by its first name for a cell.
            out["textFormat"]["fontFamily"] = "Arial"
        link = _hyperlink(self, sheet, row, column, cell)
        if link:
            blue = THEME["LINK"]
            style = {"foregroundColor": blue, "foregroundColorStyle": {"rgbColor": blue}, "underline": True}
            out["textFormat"] |= {**style, "link": {"uri": link}}
        out = overlaid(out, cell.format or {})
        form = self.number_format(sheet, row, column, cell)
        if form is not None:
            out["numberFormat"] = dict(form)
        if value is not None:
            if "horizontalAlignment" not in out:
                centred = isinstance(value, (bool, CellError))
                out["horizontalAlignment"] = "CENTER" if centred else "RIGHT" if isinstance(value, float) else "LEFT"
            out.setdefault("hyperlinkDisplayType", "LINKED" if link else "PLAIN_TEXT")
        from hectograph.sheets.condition import conditional

        return overlaid(out, conditional(self, sheet, row, column, value))


def _hyperlink(reader: Reader, sheet: Sheet, row: int, column: int, cell: Cell) -> str | None:
    if isinstance(cell.value, Formula):
        node = parsed(cell.value.text)
        if node is not None and node[0] == "call" and node[1] == "HYPERLINK" and node[2]:
            calc, first = reader.calculation, node[2][0]
            try:
                return calc.at((sheet.sheet_id, row, column), cell.value, lambda: calc.text(calc.run(first)))
            except Failed:
                return None
        return None
    linked = (cell.format or {}).get("textFormat", {}).get("link", {}).get("uri")
    if linked:
        return str(linked)
    if isinstance(cell.value, str) and cell.value.startswith(("http://", "https://")) and " " not in cell.value:
        return cell.value
    return None


def overlaid(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """One format laid over another, text format and padding piece by piece."""
    out = {name: dict(value) if isinstance(value, Mapping) else value for name, value in under.items()}
    for name, value in over.items():
        if name in {"textFormat", "padding"} and isinstance(value, Mapping):
            out[name] = {**out.get(name, {}), **value}
        else:
            out[name] = value
    return out
