"""The grammar of formulas: a text becomes a tree of tuples, read once and kept.

A node's first item says what it is: ``value``, ``ref``, ``name``, ``binary``, ``unary``, ``percent``, ``array``
or ``call``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from hectograph.sheets import reference
from hectograph.sheets.cell import CellError

Node = tuple[Any, ...]

COMPARISONS = {"=", "<>", "<", ">", "<=", ">="}

#: Functions whose result may be wider or higher than one cell.
SPREADING = frozenset(
    re.findall(
        r"\w+",
        """ARRAYFORMULA ARRAY_CONSTRAIN UNIQUE TRANSPOSE FILTER SORT SORTN SEQUENCE SPLIT FLATTEN TOCOL TOROW HSTACK
        VSTACK CHOOSECOLS CHOOSEROWS QUERY INDEX INDIRECT OFFSET XLOOKUP MMULT REGEXEXTRACT RANDARRAY""",
    )
)
#: Functions that pass on what one of their arguments gives.
_PASSING = frozenset({"IF", "IFS", "IFERROR", "IFNA", "SWITCH", "CHOOSE"})


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
        return self._left(COMPARISONS, self.concatenation)

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


@lru_cache(maxsize=65536)
def spreads(text: str) -> bool:
    """Whether a formula may fill more than its own cell."""
    node = parsed(text)
    return node is not None and _spreads(node)


def _spreads(node: Node) -> bool:
    if node[0] == "array":
        return True
    if node[0] != "call":
        return False
    return node[1] in SPREADING or (node[1] in _PASSING and any(_spreads(inner) for inner in node[2]))
