"""A person at the sheet: edits, sorts, inserts, deletes, moves and pastes, and the menu items that hurt.

``POST /emulator/person`` with ``{"book": id, "sheet": title, "do": …}``; rows and columns count from 1, as for people.

| do | takes |
|---|---|
| ``edit`` | ``cell`` and ``text``, or ``range`` and ``values`` (rows of texts); typed, so dates and formulas are read |
| ``append`` | ``values``: rows of texts, below all that is there; answers the first ``row`` |
| ``clear`` | ``range`` |
| ``sort`` | ``range``, ``column`` (letter or number), ``descending`` |
| ``insert_rows``, ``insert_columns`` | ``at``, ``count`` |
| ``delete_rows``, ``delete_columns`` | ``at``, ``count`` |
| ``move_rows``, ``move_columns`` | ``at``, ``count``, ``to`` (the row or column before which they go) |
| ``paste_rows``, ``paste_columns`` | ``at``, ``count``, ``to``: copies, inserted |
| ``paste`` | ``cell``, ``text`` (tabs and line ends between cells) |
| ``add_sheet``, ``rename_sheet``, ``hide_sheet``, ``show_sheet``, ``delete_sheet`` | ``title`` where it needs one |
| ``copy_book`` | ``title``; answers the new id |
| ``restore`` | ``versions`` back, a ``version``, or ``seconds`` ago |
| ``random`` | ``rounds``, ``seed``, ``keep_rows`` (header rows left alone), ``only`` (a list of the above) |

With ``as`` the person is somebody who may not edit protected cells; without it, the owner, who may do anything.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hectograph.core.error import ApiError, Invalid, invalid
from hectograph.sheets import a1
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.batch import Batch
from hectograph.sheets.book import Book, Sheet
from hectograph.sheets.cell import Cell
from hectograph.sheets.condition import holds
from hectograph.sheets.render import Reader
from hectograph.sheets.values import Values
from hectograph.world import World


class Person:
    def __init__(self, world: World) -> None:
        self.world = world

    def act(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Do one thing; a refusal is the text a person would see."""
        world = self.world
        book_id = str(given.get("book", ""))
        verb = str(given.get("do", "edit"))
        with world.lock:
            shelf = world.library.shelf(book_id)
            if verb == "copy_book":
                made = world.drive.copy(world.drive.get(book_id), {"name": given.get("title")})
                world.dirty()
                return {"id": made.file_id}
            if verb == "restore":
                old = shelf.current
                if "version" in given:
                    old = shelf.version(int(given["version"]))
                elif "seconds" in given:
                    old = shelf.as_of(world.now() - timedelta(seconds=float(given["seconds"])))
                else:
                    old = shelf.version(shelf.current.version - int(given.get("versions", 1)))
                book = world.library.restore(book_id, old)
                world.touched(book_id)
                return {"version": book.version, "restored": old.version}
            if verb == "random":
                return self._random(book_id, given)
            return self._one(book_id, verb, given)

    def _one(self, book_id: str, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        world = self.world

        def work(book: Book) -> dict[str, Any]:
            try:
                sheet = self._sheet(book, given)
                return self._do(book, sheet, verb, given)
            except Invalid as error:
                raise invalid(str(error)) from error

        answer = world.library.change(book_id, work)
        world.touched(book_id)
        return {"version": world.library.shelf(book_id).current.version, **answer}

    def _sheet(self, book: Book, given: Mapping[str, Any]) -> Sheet:
        wanted = given.get("sheet")
        if wanted is None:
            return book.sheets[book.first_sheet()]
        sheet_id = wanted if isinstance(wanted, int) else book.sheet_named(str(wanted))
        if sheet_id is None or sheet_id not in book.sheets:
            raise Invalid(f"no sheet {wanted!r}; there are: {', '.join(s.title for s in book.all_sheets())}")
        return book.sheets[sheet_id]

    def _do(self, book: Book, sheet: Sheet, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        batch = Batch(book, self.world.now, self.world.account, self.world.switches)
        if verb == "append":
            row = 1 + max((at for at, held in enumerate(sheet.rows) if _filled(held)), default=-1) + 1
            return {"row": row, **self._type(book, sheet, "edit", {**given, "range": f"A{row}"})}
        if verb in {"edit", "clear", "paste"}:
            return self._type(book, sheet, verb, given)
        requests = _requests(book, sheet, verb, given)
        self._allowed(sheet, None, given)
        return {"replies": batch.run(requests)}

    def _type(self, book: Book, sheet: Sheet, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        where = str(given.get("cell") or given.get("range") or "A1")
        rect = a1.cells(where, sheet.sheet_id) or a1.parse(where, book).rect
        if verb == "clear":
            self._allowed(sheet, sheet.box(rect), given)
            return Values(book, self.world.now).clear(a1.written(rect, book))
        if verb == "paste":
            rows: list[list[Any]] = [line.split("\t") for line in str(given.get("text", "")).split("\n")]
        else:
            rows = given.get("values") or [[given.get("text", "")]]
        top, left = rect.top or 0, rect.left or 0
        box = Box(top, top + len(rows), left, left + max(map(len, rows)))
        self._allowed(sheet, box, given)
        writable = book.write(sheet.sheet_id)
        values = Values(book, self.world.now)
        done = values.place(writable, top, left, rows, "USER_ENTERED", {})
        self._valid(book, writable, box, given)
        return done

    def _allowed(self, sheet: Sheet, box: Box | None, given: Mapping[str, Any]) -> None:
        who = given.get("as")
        if not who:
            return
        for held in sheet.extras.get("protectedRanges", []):
            if held.get("warningOnly") or who in held.get("editors", {}).get("users", []):
                continue
            protected = sheet.box(Rect.of(held["range"]))
            if box is None or protected.meets(box):
                free = [sheet.box(Rect.of(grid)) for grid in held.get("unprotectedRanges", [])]
                if box is not None and any(area.holds(box) for area in free):
                    continue
                raise Invalid(
                    "You are trying to edit a protected cell or object. Please contact the spreadsheet owner to "
                    "remove protection if you need to edit."
                )

    def _valid(self, book: Book, sheet: Sheet, box: Box, given: Mapping[str, Any]) -> None:
        """A strict validation rule refuses what a person types, though not what the API writes."""
        reader = Reader(book, self.world.now)
        for row, column, cell in sheet.cells(box):
            rule = (cell.extra or {}).get("dataValidation")
            if cell.value is None or not rule or not rule.get("strict"):
                continue
            value = reader.effective(sheet, row, column, cell)
            if not holds(reader, sheet, (row, column), value, rule["condition"]):
                name = f"{a1.letters(column)}{row + 1}"
                raise Invalid(
                    f"The data you entered in cell {name} violates the data validation rules set on this cell."
                )

    def _random(self, book_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        chance = random.Random(given.get("seed", 0))
        keep = int(given.get("keep_rows", 1))
        verbs = list(given.get("only") or ("edit", "sort", "insert_rows", "delete_rows", "move_rows", "paste_rows"))
        done: list[dict[str, Any]] = []
        for _ in range(int(given.get("rounds", 1))):
            sheet = self._sheet(self.world.library.shelf(book_id).current, given)
            last = max((row for row, held in enumerate(sheet.rows) if held), default=keep) + 1
            wide = max((c for held in sheet.rows for c in held), default=0) + 1
            at = chance.randint(keep + 1, max(keep + 1, last))
            step: dict[str, Any] = {
                "book": book_id,
                "sheet": sheet.sheet_id,
                "do": chance.choice(verbs),
                "at": at,
                "count": 1,
            }
            if step["do"] == "edit":
                step["cell"] = f"{a1.letters(chance.randrange(wide + 1))}{at}"
                step["text"] = f"note {chance.randint(0, 999)}"
            elif step["do"] == "sort":
                step["range"] = f"A{keep + 1}:{a1.letters(wide - 1)}{max(last, keep + 1)}"
                step["column"] = chance.randint(1, wide)
                step["descending"] = chance.random() < 0.5
            elif step["do"] in {"move_rows", "paste_rows"}:
                step["to"] = chance.randint(keep + 1, max(keep + 1, last + 1))
            try:
                self._one(book_id, step["do"], step)
            except ApiError:
                continue
            done.append(step)
        return {"done": done, "version": self.world.library.shelf(book_id).current.version}


def _filled(row: Mapping[int, Cell]) -> bool:
    return any(cell.value not in (None, "") for cell in row.values())


def _requests(book: Book, sheet: Sheet, verb: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a menu item is as requests of the API."""
    sheet_id = sheet.sheet_id
    at, count = int(given.get("at", 1)) - 1, int(given.get("count", 1))
    action, _, noun = verb.partition("_")
    dimension = "COLUMNS" if noun == "columns" else "ROWS"
    span = {"sheetId": sheet_id, "dimension": dimension, "startIndex": at, "endIndex": at + count}
    to = int(given.get("to", 1)) - 1
    match verb:
        case "insert_rows" | "insert_columns":
            size = sheet.row_count if dimension == "ROWS" else sheet.column_count
            return [{"insertDimension": {"range": span, "inheritFromBefore": at >= size}}]
        case "delete_rows" | "delete_columns":
            return [{"deleteDimension": {"range": span}}]
        case "move_rows" | "move_columns":
            return [{"moveDimension": {"source": span, "destinationIndex": to}}]
        case "paste_columns":
            source = at if at < to else at + count
            return [
                {
                    "insertDimension": {
                        "range": {**span, "startIndex": to, "endIndex": to + count},
                        "inheritFromBefore": to >= sheet.column_count,
                    }
                },
                {
                    "copyPaste": {
                        "source": {"sheetId": sheet_id, "startColumnIndex": source, "endColumnIndex": source + count},
                        "destination": {"sheetId": sheet_id, "startColumnIndex": to, "endColumnIndex": to + count},
                    }
                },
            ]
        case "paste_rows":
            source = at if at < to else at + count
            return [
                {"insertDimension": {"range": {**span, "startIndex": to, "endIndex": to + count},
                                     "inheritFromBefore": to >= sheet.row_count}},
                {"copyPaste": {
                    "source": {"sheetId": sheet_id, "startRowIndex": source, "endRowIndex": source + count},
                    "destination": {"sheetId": sheet_id, "startRowIndex": to, "endRowIndex": to + count},
                    "pasteType": "PASTE_NORMAL"}},
            ]  # fmt: skip
        case "sort":
            rect = a1.cells(str(given.get("range", "")), sheet_id) or Rect(sheet_id, 1)
            column = given.get("column", 1)
            index = int(column) - 1 if str(column).isdigit() else a1.column_index(str(column))
            order = "DESCENDING" if given.get("descending") else "ASCENDING"
            return [
                {
                    "sortRange": {
                        "range": {**rect.json(), "sheetId": sheet_id},
                        "sortSpecs": [{"dimensionIndex": index, "sortOrder": order}],
                    }
                }
            ]
        case "add_sheet":
            return [{"addSheet": {"properties": {"title": given["title"]} if "title" in given else {}}}]
        case "rename_sheet":
            return [
                {
                    "updateSheetProperties": {
                        "properties": {"sheetId": sheet_id, "title": given.get("title", "")},
                        "fields": "title",
                    }
                }
            ]
        case "hide_sheet" | "show_sheet":
            return [
                {
                    "updateSheetProperties": {
                        "properties": {"sheetId": sheet_id, "hidden": action == "hide"},
                        "fields": "hidden",
                    }
                }
            ]
        case "delete_sheet":
            return [{"deleteSheet": {"sheetId": sheet_id}}]
        case _:
            raise Invalid(f"a person cannot do {verb!r}; see the table in person.py")
