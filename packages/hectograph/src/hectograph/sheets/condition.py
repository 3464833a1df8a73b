"""Conditions: tests of a cell's value, as conditional formats, data validation and filters use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hectograph.sheets import reference
from hectograph.sheets.a1 import Rect
from hectograph.sheets.book import Sheet
from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.formulas.formula import compare, rank, text_of
from hectograph.sheets.parse import entered

if TYPE_CHECKING:
    from hectograph.sheets.render import Reader


def conditional(reader: Reader, sheet: Sheet, row: int, column: int, value: Value) -> dict[str, Any]:
    """What the conditional formats of a sheet change about one cell; the first rule that holds wins."""
    for rule in sheet.extras.get("conditionalFormats", ()):
        boolean = rule.get("booleanRule")
        if not boolean:
            continue
        for grid in rule.get("ranges", ()):
            box = sheet.box(Rect.of(grid))
            if box.top <= row < box.bottom and box.left <= column < box.right:
                origin = (row - box.top, column - box.left)
                if holds(reader, sheet, (row, column), value, boolean.get("condition", {}), origin):
                    form: dict[str, Any] = boolean.get("format", {})
                    return form
    return {}


def holds(
    reader: Reader,
    sheet: Sheet,
    place: tuple[int, int],
    value: Value,
    condition: Mapping[str, Any],
    shift: tuple[int, int] = (0, 0),
) -> bool:
    """Whether a cell's value meets a condition; formulas are written for the top left cell and shifted."""
    kind = condition.get("type", "")
    wanted = [_operand(reader, sheet, place, given, shift) for given in condition.get("values", ())]
    text = text_of(value).casefold()
    first = text_of(wanted[0]).casefold() if wanted else ""
    match kind:
        case "BLANK":
            return value is None or value == ""
        case "NOT_BLANK":
            return not (value is None or value == "")
        case "TEXT_CONTAINS":
            return first in text
        case "TEXT_NOT_CONTAINS":
            return first not in text
        case "TEXT_STARTS_WITH":
            return text.startswith(first)
        case "TEXT_ENDS_WITH":
            return text.endswith(first)
        case "TEXT_EQ":
            return text == first
        case "TEXT_NOT_EQ":
            return text != first
        case "TEXT_IS_EMAIL":
            return re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", text) is not None
        case "TEXT_IS_URL":
            return re.match(r"(https?://|www\.)\S+", text) is not None
        case "ONE_OF_LIST":
            return any(text_of(w) == text_of(value) for w in wanted)
        case "BOOLEAN":
            return isinstance(value, bool) or any(compare(w, value) == 0 for w in wanted)
        case "CUSTOM_FORMULA":
            return bool(wanted) and wanted[0] not in (None, False, 0.0, "") and not isinstance(wanted[0], CellError)
        case "ONE_OF_RANGE":
            return True
        case _:
            return _ordered(kind, value, wanted)


def _ordered(kind: str, value: Value, wanted: list[Value]) -> bool:
    name = kind.removeprefix("NUMBER_").removeprefix("DATE_")
    if value is None or isinstance(value, (str, bool, CellError)) or not wanted:
        return name in {"NOT_EQ", "NOT_BETWEEN"} and value is not None
    if any(rank(w) != 0 for w in wanted):
        return False
    low = compare(value, wanted[0])
    match name:
        case "GREATER" | "AFTER":
            return low > 0
        case "GREATER_THAN_EQ" | "ON_OR_AFTER":
            return low >= 0
        case "LESS" | "BEFORE":
            return low < 0
        case "LESS_THAN_EQ" | "ON_OR_BEFORE":
            return low <= 0
        case "EQ":
            return low == 0
        case "NOT_EQ":
            return low != 0
        case "BETWEEN" | "NOT_BETWEEN":
            inside = low >= 0 and compare(value, wanted[-1]) <= 0
            return inside == (name == "BETWEEN")
        case "IS_VALID":
            return True
        case _:
            return False


def _operand(
    reader: Reader, sheet: Sheet, place: tuple[int, int], given: Mapping[str, Any], shift: tuple[int, int]
) -> Value:
    text = str(given.get("userEnteredValue", ""))
    if not text.startswith("="):
        read = entered(text, locale=reader.locale).value
        return read if isinstance(read, (bool, float, str)) else text
    return reader.calculation.formula(reference.copied(text, *shift), (sheet.sheet_id, *place))
