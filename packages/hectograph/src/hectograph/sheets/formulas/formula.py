"""Formulas, evaluated when somebody reads the cell.

Values are kept per version of the book. A formula that refers to itself, however far round, is ``#REF!``. A result of
several cells spreads over its neighbours (``spill``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeVar

from hectograph.sheets import reference
from hectograph.sheets.a1 import Box, Rect
from hectograph.sheets.book import Book
from hectograph.sheets.cell import Cell, CellError, Formula, Value
from hectograph.sheets.formulas import array, spill
from hectograph.sheets.formulas.area import Area, Array, Result
from hectograph.sheets.formulas.scalar import Failed, compare, fail, power, rank, text_of, to_number
from hectograph.sheets.formulas.syntax import COMPARISONS, Node, parsed

_UNREADABLE = CellError("#ERROR!", "Formula parse error.")
_CIRCULAR = CellError(
    "#REF!", "Circular dependency detected. To resolve with iterative calculation, see File > Settings."
)
_NO_REFERENCE = CellError("#REF!", "Reference does not exist")

_NAMES = {"+": "ADD", "-": "MINUS", "*": "MULTIPLY", "/": "DIVIDE", "^": "POW"}


T = TypeVar("T")


#: How many cells may wait for one another before the deepest is evaluated on its own.
_DEEP = 40


class _First(Exception):
    """Unwinds a calculation to evaluate a cell that lies too deep for it."""

    def __init__(self, key: tuple[int, int, int]) -> None:
        super().__init__(key)
        self.key = key


class Calculation:
    """Evaluates the formulas of one version of a book."""

    def __init__(self, book: Book, now: Callable[[], datetime]) -> None:
        self.book = book
        self.now = now
        self.row = 0
        self.column = 0
        self.sheet_id = 0
        #: How far the formula stands below the row for which it was written.
        self.offset = 0
        self.running: set[tuple[int, int, int]] = set()
        #: Whether ranges are taken whole where one value is meant, as ARRAYFORMULA wants it.
        self.arrays = False
        self.spilling = any(sheet.spills for sheet in book.sheets.values())

    def value(self, sheet_id: int, row: int, column: int) -> Value:
        """What a cell shows, before its number format."""
        entered = self.book.sheets[sheet_id].get(row, column).value
        key = (sheet_id, row, column)
        if self.spilling and "spills" not in self.book.memo:
            spill.spread(self)
        if not isinstance(entered, Formula):
            if entered is None and self.spilling:
                spilled: Value = self.book.memo["spills"].get(key)
                return spilled
            return entered
        memo = self.book.memo
        if key in memo:
            found: Value = memo[key]
            return found
        if key in self.running:
            return _CIRCULAR
        if len(self.running) >= _DEEP:
            raise _First(key)
        if self.running:
            return self._evaluated(key, entered)
        return self._from_the_bottom(key)

    def _evaluated(self, key: tuple[int, int, int], entered: Formula) -> Value:
        self.running.add(key)
        try:
            result = self.at(key, entered, lambda: self._formula(entered.text))
        finally:
            self.running.discard(key)
        if isinstance(result, list):
            self.book.memo["array", key] = result
            result = self.scalar(result)
        self.book.memo[key] = result
        return result

    def _from_the_bottom(self, key: tuple[int, int, int]) -> Value:
        """Evaluate a cell whose chain of references may be longer than the stack: what lies deep comes first."""
        waiting = [key]
        while True:
            sheet_id, row, column = waiting[-1]
            entered = self.book.sheets[sheet_id].get(row, column).value
            try:
                assert isinstance(entered, Formula)  # only formulas wait
                result = self._evaluated(waiting[-1], entered)
            except _First as first:
                if first.key in waiting:
                    self.book.memo[first.key] = _CIRCULAR
                else:
                    waiting.append(first.key)
                continue
            waiting.pop()
            if not waiting:
                return result

    def at(self, place: tuple[int, int, int], formula: Formula, work: Callable[[], T]) -> T:
        """Do some work as if standing in a cell."""
        saved = self.sheet_id, self.row, self.column, self.offset
        self.sheet_id, self.row, self.column = place
        self.offset = 0 if formula.home is None else self.row - formula.home
        try:
            return work()
        finally:
            self.sheet_id, self.row, self.column, self.offset = saved

    def formula(self, text: str, place: tuple[int, int, int] = (0, 0, 0)) -> Value:
        """The value of a formula that is in no cell."""
        return self.scalar(self.at(place, Formula(text), lambda: self._formula(text)))

    def _formula(self, text: str) -> Value | Array:
        node = parsed(text)
        if node is None:
            return _UNREADABLE
        saved, self.arrays = self.arrays, False
        try:
            result = self.run(node)
            if array.many(result) and node[0] not in {"ref", "name"}:
                return self.rows(result)
            return self.scalar(result)
        except Failed as failed:
            return failed.error
        except (ArithmeticError, ValueError) as error:
            return CellError("#NUM!", str(error))
        finally:
            self.arrays = saved

    def whole(self, node: Node) -> Result:
        """The result of a node with ranges taken whole."""
        saved, self.arrays = self.arrays, True
        try:
            return self.run(node)
        finally:
            self.arrays = saved

    def run(self, node: Node) -> Result:
        match node[0]:
            case "value":
                result: Result = node[1]
                return result
            case "ref":
                return self.area(node[1])
            case "name":
                return self.named(node[1])
            case "binary":
                return self.binary(node[1], node[2], node[3])
            case "unary":
                sign = -1.0 if node[1] == "-" else 1.0
                return array.lifted(self, [self.run(node[2])], lambda values: sign * self.number(values[0], "UMINUS"))
            case "percent":
                return array.lifted(self, [self.run(node[1])], lambda values: self.number(values[0]) / 100)
            case "array":
                return array.stacked(self, [[self.run(item) for item in row] for row in node[1]])
            case _:
                from hectograph.sheets.formulas.functions.named import call

                return call(self, node[1], node[2], node[3])

    def area(self, ref: reference.Ref) -> Area:
        sheet_id: int | None = self.sheet_id
        if ref.title is not None:
            sheet_id = self.book.sheet_named(ref.title)
        if sheet_id is None:
            raise fail("#REF!", f"Unresolved sheet name '{ref.title}'.")
        rect = ref.rect(sheet_id)
        if self.offset and ref.title is None and rect.top is not None:
            bottom = None if rect.bottom is None else rect.bottom + self.offset
            rect = Rect(sheet_id, rect.top + self.offset, bottom, rect.left, rect.right)
        return self.bounded(rect)

    def bounded(self, rect: Rect) -> Area:
        sheet = self.book.sheets.get(rect.sheet_id)
        if sheet is None:
            raise Failed(_NO_REFERENCE)
        box = sheet.box(rect)
        if not box.height or not box.width:
            raise Failed(_NO_REFERENCE)
        return Area(rect.sheet_id, box)

    def named(self, name: str) -> Area:
        for held in self.book.named.values():
            if held["name"].casefold() == name.casefold():
                if held.get("range") is None:
                    raise Failed(_NO_REFERENCE)
                return self.bounded(Rect.of(held["range"]))
        raise fail("#NAME?", f"Unknown range name: '{name.upper()}'.")

    def binary(self, operator: str, left: Node, right: Node) -> Result:
        results = [self.run(left), self.run(right)]
        return array.lifted(self, results, lambda values: self._binary(operator, values[0], values[1]))

    def _binary(self, operator: str, left: Result, right: Result) -> Value:
        a, b = self.scalar(left), self.scalar(right)
        for value in (a, b):
            if isinstance(value, CellError):
                raise Failed(value)
        if operator == "&":
            return text_of(a) + text_of(b)
        if operator in COMPARISONS:
            order = compare(a, b)
            return {
                "=": order == 0,
                "<>": order != 0,
                "<": order < 0,
                ">": order > 0,
                "<=": order <= 0,
                ">=": order >= 0,
            }[operator]
        name = _NAMES[operator]
        x, y = to_number(a, name, 1), to_number(b, name, 2)
        if operator == "+":
            return x + y
        if operator == "-":
            return x - y
        if operator == "*":
            return x * y
        if operator == "/":
            if y == 0:
                raise fail("#DIV/0!", "Function DIVIDE parameter 2 cannot be zero.")
            return x / y
        return power(x, y)

    def scalar(self, result: Result) -> Value:
        """One value: an area is read where it crosses the formula's row or column, else at its corner."""
        if isinstance(result, Area):
            box = result.box
            row, column = box.top, box.left
            if not result.single:
                if box.width == 1 and box.top <= self.row < box.bottom:
                    row = self.row
                elif box.height == 1 and box.left <= self.column < box.right:
                    column = self.column
                elif not self.arrays:
                    raise fail("#VALUE!", "An array value could not be found.")
            return self.value(result.sheet_id, row, column)
        if isinstance(result, list):
            return result[0][0] if result and result[0] else None
        return result

    def number(self, result: Result, name: str = "ADD", position: int = 1) -> float:
        value = self.scalar(result)
        if isinstance(value, CellError):
            raise Failed(value)
        return to_number(value, name, position)

    def text(self, result: Result) -> str:
        value = self.scalar(result)
        if isinstance(value, CellError):
            raise Failed(value)
        return text_of(value)

    def truth(self, result: Result) -> bool:
        value = self.scalar(result)
        if isinstance(value, CellError):
            raise Failed(value)
        if isinstance(value, str):
            if value.upper() in {"TRUE", "FALSE"}:
                return value.upper() == "TRUE"
            raise fail(
                "#VALUE!",
                f"Function IF parameter 1 expects boolean values. But '{value}' is a text and cannot be coerced to a "
                "boolean.",
            )
        return bool(value)

    def rows(self, result: Result) -> Array:
        """All values of a result, row by row."""
        if isinstance(result, Area):
            box = result.box
            return [
                [self.value(result.sheet_id, row, column) for column in range(box.left, box.right)]
                for row in range(box.top, box.bottom)
            ]
        if isinstance(result, list):
            return result
        return [[result]]

    def each(self, result: Result) -> Iterator[Value]:
        """The values of a result that exist; empty cells of an area are passed over."""
        if isinstance(result, Area):
            for row, column, _ in self.cells(result.sheet_id, result.box):
                yield self.value(result.sheet_id, row, column)
        elif isinstance(result, list):
            for line in result:
                yield from line
        else:
            yield result

    def spread(self, sheet_id: int) -> list[tuple[int, int]]:
        """The places of a sheet that are filled from formulas elsewhere."""
        if not self.spilling:
            return []
        if "spills" not in self.book.memo:
            spill.spread(self)
        found: dict[tuple[int, int, int], Value] = self.book.memo["spills"]
        return [(row, column) for (home, row, column), value in found.items() if home == sheet_id and value is not None]

    def cells(self, sheet_id: int, box: Box) -> Iterator[tuple[int, int, Cell]]:
        """The cells of a box that exist or that a formula elsewhere spreads into, row by row."""
        sheet = self.book.sheets[sheet_id]
        if not self.spilling:
            return sheet.cells(box)
        if "spills" not in self.book.memo:
            spill.spread(self)
        return spill.joined(sheet, box, self.book.memo["spills"])


__all__ = [
    "Area",
    "Array",
    "Calculation",
    "Failed",
    "Node",
    "Result",
    "compare",
    "fail",
    "parsed",
    "power",
    "rank",
    "text_of",
    "to_number",
]
