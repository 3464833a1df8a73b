"""Formulas: parse them once, evaluate them when somebody reads the cell.

Values are kept per version of the book. A formula that refers to itself, however far round, is ``#REF!``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from quire.testing.emulator import reference
from quire.testing.emulator.a1 import Box, Rect
from quire.testing.emulator.book import Book
from quire.testing.emulator.cell import CellError, Formula, Value

_UNREADABLE = CellError("#ERROR!", "Formula parse error.")
_CIRCULAR = CellError(
    "#REF!", "Circular dependency detected. To resolve with iterative calculation, see File > Settings."
)
_NO_REFERENCE = CellError("#REF!", "Reference does not exist")

_COMPARISONS = {"=", "<>", "<", ">", "<=", ">="}
_NAMES = {"+": "ADD", "-": "MINUS", "*": "MULTIPLY", "/": "DIVIDE", "^": "POW"}


@dataclass(frozen=True, slots=True)
class Area:
    """A range of cells, read cell by cell as needed."""

    sheet_id: int
    box: Box

    @property
    def single(self) -> bool:
        return self.box.height == 1 and self.box.width == 1


#: Rows of values.
Array = list[list[Value]]
Result = Value | Area | Array
Node = tuple[Any, ...]
T = TypeVar("T")


#: How many cells may wait for one another before the deepest is evaluated on its own.
_DEEP = 40


class _First(Exception):
    """Unwinds a calculation to evaluate a cell that lies too deep for it."""

    def __init__(self, key: tuple[int, int, int]) -> None:
        super().__init__(key)
        self.key = key


class Failed(Exception):
    """Carries an error value out of a calculation."""

    def __init__(self, error: CellError) -> None:
        super().__init__(error)
        self.error = error


def fail(code: str, text: str = "") -> Failed:
    return Failed(CellError(code, text))


class Parser:
    """Precedence climbing over the tokens; a node is a tuple whose first item says what it is."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        self.tokens = [(kind, text) for kind, text in found if kind != "space"]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) and self.tokens[self.at][0] == "op" else ""

    def take(self, text: str) -> None:
        if self.peek() != text:
            raise SyntaxError(text)
        self.at += 1

    def whole(self) -> Node:
        node = self.comparison()
        if self.at != len(self.tokens):
            raise SyntaxError("rest")
        return node

    def _left(self, operators: set[str], inner: Callable[[], Node]) -> Node:
        node = inner()
        while (operator := self.peek()) in operators:
            self.at += 1
            node = ("binary", operator, node, inner())
        return node

    def comparison(self) -> Node:
        return self._left(_COMPARISONS, self.concatenation)

    def concatenation(self) -> Node:
        return self._left({"&"}, self.sum)

    def sum(self) -> Node:
        return self._left({"+", "-"}, self.product)

    def product(self) -> Node:
        return self._left({"*", "/"}, self.power)

    def power(self) -> Node:
        return self._left({"^"}, self.unary)

    def unary(self) -> Node:
        if (operator := self.peek()) in {"+", "-"}:
            self.at += 1
            return ("unary", operator, self.unary())
        node = self.primary()
        while self.peek() == "%":
            self.at += 1
            node = ("percent", node)
        return node

    def primary(self) -> Node:
        if self.at >= len(self.tokens):
            raise SyntaxError("end")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return ("value", float(text))
        if kind == "string":
            return ("value", text[1:-1].replace('""', '"'))
        if kind in {"error", "deadref"}:
            return ("value", CellError(text[text.find("#") :], "Reference does not exist" if "REF" in text else ""))
        if kind == "ref":
            return ("ref", reference.read(text))
        if kind == "call":
            return ("call", text.upper(), self.arguments(), text)
        if kind == "name":
            upper = text.upper()
            return ("value", upper == "TRUE") if upper in {"TRUE", "FALSE"} else ("name", text)
        if text == "(":
            node = self.comparison()
            self.take(")")
            return node
        if text == "{":
            return self.literal()
        raise SyntaxError(text)

    def arguments(self) -> tuple[Node, ...]:
        self.take("(")
        if self.peek() == ")":
            self.at += 1
            return ()
        out: list[Node] = []
        while True:
            out.append(("value", None) if self.peek() in {",", ";", ")"} else self.comparison())
            if self.peek() in {",", ";"}:
                self.at += 1
                continue
            self.take(")")
            return tuple(out)

    def literal(self) -> Node:
        rows: list[list[Node]] = [[]]
        while self.peek() != "}":
            rows[-1].append(self.comparison())
            if self.peek() in {",", "\\"}:
                self.at += 1
            elif self.peek() == ";":
                self.at += 1
                rows.append([])
        self.take("}")
        return ("array", rows)


@lru_cache(maxsize=262144)
def parsed(text: str) -> Node | None:
    """The tree of a formula, or nothing if it cannot be read."""
    found = reference.tokens(text)
    if not found:
        return None
    try:
        return Parser(found).whole()
    except SyntaxError:
        return None


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

    def value(self, sheet_id: int, row: int, column: int) -> Value:
        """What a cell shows, before its number format."""
        entered = self.book.sheets[sheet_id].get(row, column).value
        if not isinstance(entered, Formula):
            return entered
        key = (sheet_id, row, column)
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
        return self.at(place, Formula(text), lambda: self._formula(text))

    def _formula(self, text: str) -> Value:
        node = parsed(text)
        if node is None:
            return _UNREADABLE
        try:
            return self.scalar(self.run(node))
        except Failed as failed:
            return failed.error
        except (OverflowError, ZeroDivisionError, ValueError) as error:
            return CellError("#NUM!", str(error))

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
                value = self.number(self.run(node[2]))
                return -value if node[1] == "-" else value
            case "percent":
                return self.number(self.run(node[1])) / 100
            case "array":
                return [[self.scalar(self.run(item)) for item in row] for row in node[1]]
            case _:
                from quire.testing.emulator.function import call

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

    def binary(self, operator: str, left: Node, right: Node) -> Value:
        a, b = self.scalar(self.run(left)), self.scalar(self.run(right))
        for value in (a, b):
            if isinstance(value, CellError):
                raise Failed(value)
        if operator == "&":
            return text_of(a) + text_of(b)
        if operator in _COMPARISONS:
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
            for row, column, _ in self.book.sheets[result.sheet_id].cells(result.box):
                yield self.value(result.sheet_id, row, column)
        elif isinstance(result, list):
            for line in result:
                yield from line
        else:
            yield result


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
    from quire.testing.emulator.parse import entered

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
        from quire.testing.emulator.numberformat import general

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


__all__ = ["Area", "Array", "Calculation", "Failed", "Node", "Result", "compare", "fail", "parsed", "rank"]
