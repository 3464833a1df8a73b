"""The ``spreadsheets.values`` calls: get, update, append, clear, their batch forms and their data-filter forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from hectograph.core.error import ApiError, Invalid, invalid
from hectograph.core.schema import WORDS
from hectograph.sheets import a1
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import MAX_CHARACTERS, Entered
from hectograph.sheets.dimension import insert
from hectograph.sheets.filters import echoed, is_empty, matches
from hectograph.sheets.locales import EN, Locale
from hectograph.sheets.parse import Typed, entered
from hectograph.sheets.render import Reader
from hectograph.sheets.table import last_table

TOO_LONG = f"Your input contains more than the maximum of {MAX_CHARACTERS} characters in a single cell."

_ENUMS = {
    "majorDimension": ("Dimension", {"DIMENSION_UNSPECIFIED", "ROWS", "COLUMNS"}),
    "valueRenderOption": ("ValueRenderOption", {"FORMATTED_VALUE", "UNFORMATTED_VALUE", "FORMULA"}),
    "dateTimeRenderOption": ("DateTimeRenderOption", {"SERIAL_NUMBER", "FORMATTED_STRING"}),
    "valueInputOption": ("ValueInputOption", {"INPUT_VALUE_OPTION_UNSPECIFIED", "RAW", "USER_ENTERED"}),
    "insertDataOption": ("AppendValuesRequest.InsertDataOption", {"OVERWRITE", "INSERT_ROWS"}),
}


def option(given: Mapping[str, Any], name: str, default: str) -> str:
    """An enumeration parameter, refused as Google's reader refuses it."""
    value = given.get(name)
    if value is None:
        return default
    base = name[8].lower() + name[9:] if name.startswith("response") else name
    kind, words = _ENUMS[base]
    if value not in words:
        field = re.sub(r"(?<=[a-z])([A-Z])", lambda m: "_" + m.group(1).lower(), name)
        text = f"Invalid value at '{field}' (type.googleapis.com/google.apps.sheets.v4.{kind}), \"{value}\""
        raise ApiError.bad_request([(field, text)])
    return str(value)


class Values:
    """The calls on one book; a writer gives a fork of it."""

    def __init__(self, book: Book, now: Callable[[], datetime]) -> None:
        self.book = book
        self.now = now
        self.reader = Reader(book, now)
        self.locale = self.reader.locale

    def get(self, text: str, given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            rect = a1.parse(text, self.book).rect
            return self.read(rect, given)
        except Invalid as error:
            raise invalid(str(error)) from error

    def read(self, rect: Rect, given: Mapping[str, Any], *, prefix: str = "", columns: bool = False) -> dict[str, Any]:
        sheet = self.book.sheets[rect.sheet_id]
        self.inside(sheet, rect)
        box = sheet.box(rect)
        by_column = columns if prefix else option(given, "majorDimension", "ROWS") == "COLUMNS"
        render = option(given, "responseValueRenderOption" if prefix else "valueRenderOption", "FORMATTED_VALUE")
        dates = option(given, "responseDateTimeRenderOption" if prefix else "dateTimeRenderOption", "SERIAL_NUMBER")
        out: dict[str, Any] = {
            "range": self._name(sheet, box),
            "majorDimension": "COLUMNS" if by_column else "ROWS",
        }
        found = self.reader.values(sheet, box, render, dates, by_column)
        if found:
            out["values"] = found
        return out

    def batch_get(self, texts: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {"spreadsheetId": self.book.book_id}
        found = [self.get(text, given) for text in texts]
        if found:
            out["valueRanges"] = found
        return out

    def batch_get_by_filter(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The ranges in the order in which they lie; filters that mean the same range share an answer."""
        found: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}
        by_column = option(body, "majorDimension", "ROWS") == "COLUMNS"
        for index, wanted in enumerate(self._some(body)):
            for rect in self._filtered(wanted, index):
                sheet = self.book.sheets[rect.sheet_id]
                box = sheet.box(rect)
                answer: dict[str, Any] = {"range": "#REF!", "majorDimension": "COLUMNS" if by_column else "ROWS"}
                if not is_empty(sheet, rect):
                    answer = self.read(rect, body)
                place = (self.book.order.index(rect.sheet_id), box.left, box.top, box.right, box.bottom)
                held = found.setdefault(answer["range"], (place, {"valueRange": answer, "dataFilters": []}))
                held[1]["dataFilters"].append(echoed(wanted))
        out: dict[str, Any] = {"spreadsheetId": self.book.book_id}
        if found:
            out["valueRanges"] = [answer for _, answer in sorted(found.values(), key=lambda item: item[0])]
        return out

    def _some(self, body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        filters: list[Mapping[str, Any]] = body.get("dataFilters", [])
        if not filters:
            raise invalid("Must specify at least one dataFilter.")
        return filters

    def _filtered(self, wanted: Mapping[str, Any], index: int) -> list[Rect]:
        try:
            found = matches(self.book, wanted)
            for rect in found:
                self.inside(self.book.sheets[rect.sheet_id], rect)
            return found
        except Invalid as error:
            raise invalid(f"Invalid dataFilter[{index}]: {error}") from error

    def inside(self, sheet: Sheet, rect: Rect, *, whole: bool = False) -> None:
        """Refuse what begins outside the grid, and for ``whole`` what ends outside it."""
        beyond = (rect.top or 0) >= sheet.row_count or (rect.left or 0) >= sheet.column_count
        if whole:
            beyond |= (rect.bottom or 0) > sheet.row_count or (rect.right or 0) > sheet.column_count
        if beyond:
            raise Invalid(
                f"Range ({a1.written(rect, self.book)}) exceeds grid limits. "
                f"Max rows: {sheet.row_count}, max columns: {sheet.column_count}"
            )

    def _name(self, sheet: Sheet, box: Box) -> str:
        return f"{a1.quoted(sheet.title)}!{box.text()}"

    def update(self, text: str, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            parsed = a1.parse(text, self.book)
            self._same_range(text, body)
            return self.write(parsed, body, given)
        except Invalid as error:
            raise invalid(str(error)) from error

    def _same_range(self, text: str, body: Mapping[str, Any]) -> None:
        other = body.get("range")
        if other and a1.parse(other, self.book) != a1.parse(text, self.book):
            raise Invalid(f"Requested writing within range [{text}], but tried writing to range [{other}]")

    def write(self, parsed: a1.Parsed, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        rect = parsed.rect
        sheet = self.book.write(rect.sheet_id)
        self.inside(sheet, rect, whole=True)
        mode = self._input_option(given)
        rows = by_rows(body)
        top, left = rect.top or 0, rect.left or 0
        height, width = len(rows), max(map(len, rows), default=0)
        if not parsed.single:
            shown = a1.written(rect, self.book)
            if rect.bottom is not None and top + height > rect.bottom:
                raise Invalid(f"Requested writing within range [{shown}], but tried writing to row [{rect.bottom + 1}]")
            if rect.right is not None and left + width > rect.right:
                column = a1.letters(rect.right)
                raise Invalid(f"Requested writing within range [{shown}], but tried writing to column [{column}]")
        shown_box = None if parsed.single else sheet.box(rect)
        return self.place(sheet, top, left, rows, mode, given, shown=shown_box, columns=_by_columns(body))

    def _input_option(self, given: Mapping[str, Any]) -> str:
        mode = option(given, "valueInputOption", "INPUT_VALUE_OPTION_UNSPECIFIED")
        if mode == "INPUT_VALUE_OPTION_UNSPECIFIED":
            raise Invalid("'valueInputOption' is required but not specified")
        return mode

    def place(
        self,
        sheet: Sheet,
        top: int,
        left: int,
        rows: list[list[Any]],
        mode: str,
        given: Mapping[str, Any],
        *,
        shown: Box | None = None,
        columns: bool = False,
    ) -> dict[str, Any]:
        """Write values at a corner; the grid grows where they reach past it.

        Where the values are wanted back, they are those of the whole requested range, ``shown``.
        """
        height, width = max(1, len(rows)), max(1, max(map(len, rows), default=0))
        if top + height > sheet.row_count or left + width > sheet.column_count:
            sheet.grow(top + height, left + width)
            self.book.check_size()
        year = self.now().year
        touched_rows: set[int] = set()
        touched_columns: set[int] = set()
        count = 0
        for down, row in enumerate(rows):
            for right, item in enumerate(row):
                if item is None:
                    continue
                put(
                    sheet,
                    top + down,
                    left + right,
                    read_item(item, mode, year, f"values[{down}][{right}]", self.locale),
                )
                touched_rows.add(top + down)
                touched_columns.add(left + right)
                count += 1
        box = Box(top, top + height, left, left + width)
        out: dict[str, Any] = {"spreadsheetId": self.book.book_id, "updatedRange": self._name(sheet, box)}
        if count:
            out |= {
                "updatedRows": len(touched_rows),
                "updatedColumns": len(touched_columns),
                "updatedCells": count,
            }
        if truth(given.get("includeValuesInResponse")):
            self.book.memo.clear()
            wanted = shown or box
            out["updatedData"] = self.read(wanted.rect(sheet.sheet_id), given, prefix="response", columns=columns)
        return out

    def batch_update(self, body: Mapping[str, Any]) -> dict[str, Any]:
        def place(item: Mapping[str, Any]) -> list[a1.Parsed]:
            return [a1.parse(item.get("range", ""), self.book)]

        return self._batch(place, body)

    def batch_update_by_filter(self, body: Mapping[str, Any]) -> dict[str, Any]:
        def places(item: Mapping[str, Any]) -> list[a1.Parsed]:
            return [a1.Parsed(rect) for rect in matches(self.book, item.get("dataFilter", {}))]

        return self._batch(places, body)

    def _batch(self, places: Callable[[Mapping[str, Any]], list[a1.Parsed]], body: Mapping[str, Any]) -> dict[str, Any]:
        rows: set[tuple[int, int]] = set()
        columns: set[tuple[int, int]] = set()
        sheets: set[int] = set()
        cells = 0
        responses: list[dict[str, Any]] = []
        try:
            self._input_option(body)
        except Invalid as error:
            raise invalid(str(error)) from error
        for index, item in enumerate(body.get("data", ())):
            try:
                for parsed in places(item):
                    done = self.write(parsed, item, body)
                    top, left = parsed.rect.top or 0, parsed.rect.left or 0
                    for down, line in enumerate(by_rows(item)):
                        for right, value in enumerate(line):
                            if value is not None:
                                rows.add((parsed.rect.sheet_id, top + down))
                                columns.add((parsed.rect.sheet_id, left + right))
                                sheets.add(parsed.rect.sheet_id)
                                cells += 1
                    if "dataFilter" in item:
                        done = {**done, "dataFilter": item["dataFilter"]}
                        done.pop("spreadsheetId", None)
                    responses.append(done)
            except Invalid as error:
                raise invalid(f"Invalid data[{index}]: {error}") from error
        out: dict[str, Any] = {"spreadsheetId": self.book.book_id}
        totals = {
            "totalUpdatedRows": len(rows),
            "totalUpdatedColumns": len(columns),
            "totalUpdatedCells": cells,
            "totalUpdatedSheets": len(sheets),
        }
        out |= {key: value for key, value in totals.items() if value}
        if responses:
            out["responses"] = responses
        return out

    def append(self, text: str, body: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            rect = a1.parse(text, self.book).rect
            mode = self._input_option(given)
            inserted = option(given, "insertDataOption", "OVERWRITE") == "INSERT_ROWS"
            sheet = self.book.write(rect.sheet_id)
            self.inside(sheet, rect)
            rows = by_rows(body)
            table = last_table(sheet, sheet.box(rect), self.reader.calculation.spread(sheet.sheet_id))
            top, left = (table.bottom, table.left) if table else (rect.top or 0, rect.left or 0)
            out: dict[str, Any] = {"spreadsheetId": self.book.book_id}
            if table:
                out["tableRange"] = self._name(sheet, table)
            if inserted and top < sheet.row_count and rows:
                insert(self.book, sheet.sheet_id, "ROWS", top, len(rows), from_before=top > 0)
            out["updates"] = self.place(sheet, top, left, rows, mode, given, columns=_by_columns(body))
            return out
        except Invalid as error:
            raise invalid(str(error)) from error

    def clear(self, text: str) -> dict[str, Any]:
        return {"spreadsheetId": self.book.book_id, "clearedRange": self._clear_text(text)}

    def batch_clear(self, texts: list[str]) -> dict[str, Any]:
        cleared = [self._clear_text(text) for text in texts]
        return {"spreadsheetId": self.book.book_id, **({"clearedRanges": cleared} if cleared else {})}

    def batch_clear_by_filter(self, body: Mapping[str, Any]) -> dict[str, Any]:
        cleared = [
            self._clear(rect) for at, wanted in enumerate(self._some(body)) for rect in self._filtered(wanted, at)
        ]
        return {"spreadsheetId": self.book.book_id, **({"clearedRanges": cleared} if cleared else {})}

    def _clear_text(self, text: str) -> str:
        try:
            return self._clear(a1.parse(text, self.book).rect)
        except Invalid as error:
            raise invalid(str(error)) from error

    def _clear(self, rect: Rect) -> str:
        sheet = self.book.write(rect.sheet_id)
        self.inside(sheet, rect)
        box = sheet.box(rect)
        for row, column, cell in list(sheet.cells(box)):
            if cell.value is not None:
                sheet.put(row, column, cell.with_value(None))
        return self._name(sheet, box)


def truth(value: Any) -> bool:
    return value is True or (isinstance(value, str) and WORDS.get(value.lower(), False))


def _by_columns(body: Mapping[str, Any]) -> bool:
    return body.get("majorDimension") == "COLUMNS"


def by_rows(body: Mapping[str, Any]) -> list[list[Any]]:
    values: list[list[Any]] = body.get("values") or []
    if body.get("majorDimension") != "COLUMNS":
        return values
    height = max(map(len, values), default=0)
    return [[line[at] if at < len(line) else None for line in values] for at in range(height)]


def read_item(item: Any, mode: str, year: int, where: str, locale: Locale = EN) -> Typed:
    """One JSON item as a cell's content."""
    if isinstance(item, bool):
        return Typed(item)
    if isinstance(item, (int, float)):
        return Typed(float(item))
    if isinstance(item, str):
        if len(item) > MAX_CHARACTERS:
            raise Invalid(TOO_LONG)
        return Typed(item or None) if mode == "RAW" else entered(item, year=year, locale=locale)
    raise Invalid(f"Invalid {where}: {_proto(item)}")


def _proto(item: Any, indent: int = 0) -> str:
    """A JSON value in the text form that Google prints when it refuses one."""
    pad = "  " * indent
    if isinstance(item, list):
        inner = "".join(f"{pad}  values {{\n{_proto(i, indent + 2)}{pad}  }}\n" for i in item)
        return f"{pad}list_value {{\n{inner}{pad}}}\n"
    if isinstance(item, Mapping):
        inner = "".join(
            f'{pad}  fields {{\n{pad}    key: "{k}"\n{pad}    value {{\n{_proto(v, indent + 3)}{pad}    }}\n{pad}  }}\n'
            for k, v in item.items()
        )
        return f"{pad}struct_value {{\n{inner}{pad}}}\n"
    if isinstance(item, str):
        return f'{pad}string_value: "{item}"\n'
    if isinstance(item, bool):
        return f"{pad}bool_value: {str(item).lower()}\n"
    return f"{pad}null_value: NULL_VALUE\n" if item is None else f"{pad}number_value: {float(item)}\n"


def put(sheet: Sheet, row: int, column: int, typed: Typed) -> None:
    """Put content into a cell; a format that the typing shows is taken where the cell has none."""
    cell = sheet.get(row, column)
    value: Entered = typed.value
    form = cell.format.get("numberFormat") if cell.format else None
    if form is not None and form.get("type") == "TEXT" and isinstance(value, (bool, float)):
        # A cell formatted as text keeps what is typed as text.
        from hectograph.sheets.numberformat import shown

        sheet.put(row, column, cell.with_value(shown(value, typed.number_format)))
        return
    new = cell.with_value(value)
    if typed.number_format is not None and form is None:
        new = new.with_format({**(cell.format or {}), "numberFormat": typed.number_format})
    sheet.put(row, column, new)
