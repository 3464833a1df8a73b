"""A cell: what was entered, its format, its note. Cells are never changed in place, so that versions can share them."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 50_000

_ERROR_TYPES = {
    "#NULL!": "NULL_VALUE",
    "#DIV/0!": "DIVIDE_BY_ZERO",
    "#VALUE!": "VALUE",
    "#REF!": "REF",
    "#NAME?": "NAME",
    "#NUM!": "NUM",
    "#N/A": "N_A",
    "#ERROR!": "ERROR",
    "Loading...": "LOADING",
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as text, with its equals sign.

    Most formulas refer, in their own sheet, to their own row only. Such a formula keeps the row for which its text was
    written (``home``) and means the same wherever its row goes, so that inserting, deleting and sorting rows need not
    rewrite it. ``reference.placed`` gives the text for the row where it stands.
    """

    text: str
    home: int | None = None


@dataclass(frozen=True, slots=True)
class CellError:
    """An error value such as ``#N/A``."""

    code: str
    text: str = ""

    @property
    def kind(self) -> str:
        return _ERROR_TYPES.get(self.code, "ERROR")


#: What a formula can give, and what a cell without one holds.
Value = None | bool | float | str | CellError
Entered = None | bool | float | str | CellError | Formula


@dataclass(frozen=True, slots=True)
class Cell:
    value: Entered = None
    format: Mapping[str, Any] | None = None
    note: str | None = None
    #: dataValidation, textFormatRuns, pivotTable, chipRuns, hyperlink: kept and given back.
    extra: Mapping[str, Any] | None = None

    @property
    def blank(self) -> bool:
        return self.value is None and not self.format and not self.note and not self.extra

    def with_value(self, value: Entered) -> Cell:
        extra = self.extra
        if extra:
            # New content takes away what belonged to the old text.
            extra = {k: v for k, v in extra.items() if k == "dataValidation"} or None
        return Cell(value, self.format, self.note, extra)

    def with_format(self, form: Mapping[str, Any] | None) -> Cell:
        return Cell(self.value, form or None, self.note, self.extra)

    def with_note(self, note: str | None) -> Cell:
        return Cell(self.value, self.format, note or None, self.extra)

    def with_extra(self, name: str, value: Any) -> Cell:
        extra = {k: v for k, v in (self.extra or {}).items() if k != name}
        if value is not None:
            extra[name] = value
        return Cell(self.value, self.format, self.note, extra or None)


EMPTY = Cell()


def number(value: float) -> int | float | str:
    """A number as JSON has it: whole numbers without a point, what JSON cannot hold as text."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "Infinity"
    if value == int(value) and abs(value) < 1e21:
        return int(value)
    return value


def single(value: float) -> float | int:
    """The shortest text of a number kept in single precision, as Google keeps colours."""
    packed = struct.pack("f", value)
    (value,) = struct.unpack("f", packed)
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == packed:
            return int(short) if short == int(short) else short
    return value


def value_json(value: Entered) -> dict[str, Any] | None:
    """An ExtendedValue."""
    if value is None:
        return None
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, (int, float)):
        return {"numberValue": number(value)}
    if isinstance(value, Formula):
        return {"formulaValue": value.text}
    if isinstance(value, CellError):
        return {"errorValue": {"type": value.kind, "message": value.text} if value.text else {"type": value.kind}}
    return {"stringValue": value}
