"""A workbook: the state table, the log and the receipts for whoever opens spreadsheets. Only here is xlsxwriter."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from quire.errors import InputError
from quire.installing import install

#: What a cell and a sheet of a workbook hold at the most.
CELL_CHARACTERS = 32_767
SHEET_ROWS = 1_048_576


class Workbook:
    """Sheets of rows, written one after the other. Text stays text: nothing is computed, nothing becomes a link."""

    def __init__(self, path: Path) -> None:
        try:
            import xlsxwriter
        except ImportError as error:
            raise InputError(f"a workbook needs the extra 'export': {install('export')}") from error
        options = {
            "constant_memory": True,
            "strings_to_formulas": False,
            "strings_to_urls": False,
            "strings_to_numbers": False,
        }
        self._book: Any = xlsxwriter.Workbook(str(path), options)
        self._bold = self._book.add_format({"bold": True})

    async def sheet(self, name: str, header: Sequence[str], rows: AsyncIterator[Sequence[Any]]) -> int:
        """A sheet with these rows; more than a sheet holds go on in another one. Answers how many rows there were."""
        count, number, sheet, place = 0, 1, self._begin(name, header), 1
        async for row in rows:
            if place == SHEET_ROWS:
                number += 1
                sheet, place = self._begin(f"{name} {number}", header), 1
            for column, value in enumerate(row):
                if value is not None and value != "":
                    self._cell(sheet, place, column, value)
            place, count = place + 1, count + 1
        return count

    def _begin(self, name: str, header: Sequence[str]) -> Any:
        sheet = self._book.add_worksheet(name)
        sheet.freeze_panes(1, 1)
        for column, title in enumerate(header):
            sheet.write_string(0, column, title, self._bold)
        return sheet

    @staticmethod
    def _cell(sheet: Any, row: int, column: int, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            text = str(value)
            if len(text) > CELL_CHARACTERS:
                cut = f"… ({len(text)} characters; whole in the JSONL)"
                text = text[: CELL_CHARACTERS - len(cut)] + cut
            sheet.write_string(row, column, text)
        elif isinstance(value, int) and abs(value) > 2**53:
            sheet.write_string(row, column, str(value))
        else:
            sheet.write_number(row, column, value)

    def close(self) -> None:
        from xlsxwriter.exceptions import FileCreateError

        try:
            self._book.close()
        except FileCreateError as error:
            reason = error.args[0] if error.args else error
            _let_go(error)
            raise (reason if isinstance(reason, OSError) else OSError(str(reason))) from None


def _let_go(error: Exception) -> None:
    """End what the library has left open. It would otherwise say on standard error, later, that this fails, too."""
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        while error.__traceback__ is not None or error.__context__ is not None:
            traceback.clear_frames(error.__traceback__)
            error.__traceback__, following = None, error.__context__
            error.__context__ = None
            if not isinstance(following, Exception):
                break
            error = following
        gc.collect()
    finally:
        sys.unraisablehook = before
