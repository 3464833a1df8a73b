"""Single values in formulas: errors on their way out, numbers and texts made from one another, order."""

from __future__ import annotations

import math

from hectograph.sheets.cell import CellError, Value


class Failed(Exception):
    """Carries an error value out of a calculation."""

    def __init__(self, error: CellError) -> None:
        super().__init__(error)
        self.error = error


def fail(code: str, text: str = "") -> Failed:
    return Failed(CellError(code, text))


def power(base: float, exponent: float) -> float:
    try:
        raised = base**exponent
    except ZeroDivisionError as error:
        raise fail("#DIV/0!", "Function POW evaluates to an out of bounds number.") from error
    except OverflowError as error:
        raise fail("#NUM!", "Function POW evaluates to an out of bounds number.") from error
    if isinstance(raised, complex):
        raise fail("#NUM!", "Function POW evaluates to an imaginary number.")
    return float(raised)


def to_number(value: Value, name: str = "ADD", position: int = 1) -> float:
    if value is None:
        return 0.0
    if isinstance(value, CellError):
        raise Failed(value)
    if isinstance(value, (bool, int, float)):
        return float(value)
    from hectograph.sheets.parse import entered

    read = entered(value).value
    if isinstance(read, float):
        return read
    raise fail(
        "#VALUE!",
        f"Function {name} parameter {position} expects number values. But '{value}' is a text and cannot be coerced "
        "to a number.",
    )


def text_of(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        from hectograph.sheets.numberformat import general

        return general(value)
    if isinstance(value, CellError):
        return value.code
    return value


def rank(value: Value) -> int:
    """Numbers come before texts, texts before booleans, as when sorting."""
    if value is None:
        return 4
    if isinstance(value, bool):
        return 2
    if isinstance(value, (int, float)):
        return 0
    return 1 if isinstance(value, str) else 3


def compare(a: Value, b: Value) -> int:
    if a is None:
        a = "" if isinstance(b, str) else False if isinstance(b, bool) else 0.0
    if b is None:
        b = "" if isinstance(a, str) else False if isinstance(a, bool) else 0.0
    ra, rb = rank(a), rank(b)
    if ra != rb:
        return -1 if ra < rb else 1
    if isinstance(a, str) and isinstance(b, str):
        x, y = a.casefold(), b.casefold()
        return (x > y) - (x < y)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if math.isclose(a, b, rel_tol=1e-15, abs_tol=0.0):
            return 0
        return (a > b) - (a < b)
    return 0
