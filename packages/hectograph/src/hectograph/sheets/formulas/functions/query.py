"""QUERY, as far as people use it most: select, where, group by, order by, limit, offset, label.

Columns are called by their letters, or ``Col1``, ``Col2`` where the data is an array. What is not understood is
``#VALUE!``, as Sheets answers a query that it cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hectograph.sheets.a1 import column_index
from hectograph.sheets.cell import Value
from hectograph.sheets.formulas.area import Area, Array, Result
from hectograph.sheets.formulas.formula import Calculation, Node
from hectograph.sheets.formulas.functions.array import ordered
from hectograph.sheets.formulas.scalar import Failed, compare, fail, rank, text_of

Nodes = tuple[Node, ...]

_CLAUSES = ("select", "where", "group by", "order by", "limit", "offset", "label")
_TOKEN = re.compile(r"""\s*('[^']*'|"[^"]*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|<=|>=|!=|<>|[=<>(),*])""")
_SUMS: dict[str, Callable[[list[float]], float]] = {
    "sum": sum, "avg": lambda found: sum(found) / len(found), "max": max, "min": min, "count": len,
}  # fmt: skip

Column = tuple[str, int]


def _bad(text: str) -> Failed:
    return fail("#VALUE!", f"Unable to parse query string for Function QUERY parameter 2: {text}")


class _Query:
    """A query's clauses over rows."""

    def __init__(self, text: str, left: int) -> None:
        self.left = left
        marks = "|".join(name.replace(" ", r"\s+") for name in _CLAUSES)
        pieces = re.split(rf"(?i)\b({marks})\b(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)", text.strip())
        if pieces[0].strip():
            raise _bad(pieces[0].strip())
        names = [re.sub(r"\s+", " ", name.lower()) for name in pieces[1::2]]
        self.clauses = dict(zip(names, (piece.strip() for piece in pieces[2::2]), strict=True))

    def column(self, name: str) -> int:
        numbered = re.fullmatch(r"(?i)col(\d+)", name)
        at = int(numbered.group(1)) - 1 if numbered else column_index(name) - self.left if name.isalpha() else -1
        if at < 0:
            raise _bad(f"NO_COLUMN: {name}")
        return at

    def selected(self, width: int) -> list[Column]:
        """What is wanted: (function, column), the function being empty for the column itself."""
        text = self.clauses.get("select", "*")
        if text == "*":
            return [("", at) for at in range(width)]
        out: list[Column] = []
        for part in text.split(","):
            called = re.fullmatch(r"\s*(\w+)\s*\(\s*(\w+)\s*\)\s*", part)
            name, inner = (called.group(1).lower(), called.group(2)) if called else ("", part.strip())
            if name and name not in _SUMS:
                raise _bad(name)
            out.append((name, self.column(inner)))
        if any(at >= width for _, at in out):
            raise _bad("NO_COLUMN")
        return out

    def kept(self, rows: Array) -> Array:
        if "where" not in self.clauses:
            return rows
        test = _Where(self.clauses["where"], self.column).whole()
        return [row for row in rows if test(row)]

    def order(self, rows: Array, chosen: list[Column] | None) -> Array:
        """Rows by the wanted columns; after grouping those are looked up among what was chosen."""
        keys: list[tuple[list[Value], bool]] = []
        for part in filter(None, self.clauses.get("order by", "").split(",")):
            name, _, way = part.strip().partition(" ")
            called = re.fullmatch(r"(\w+)\((\w+)\)", name)
            wanted = (called.group(1).lower(), self.column(called.group(2))) if called else ("", self.column(name))
            if chosen is not None and wanted not in chosen:
                raise _bad(name)
            at = wanted[1] if chosen is None else chosen.index(wanted)
            keys.append(([row[at] for row in rows], way.strip().lower() != "desc"))
        return ordered(rows, keys) if keys else rows

    def part(self, rows: Array) -> Array:
        start = int(self.clauses.get("offset", "0"))
        return rows[start : start + int(self.clauses["limit"]) if "limit" in self.clauses else None]


class _Where:
    """The condition: comparisons joined by and, or, not and parentheses."""

    def __init__(self, text: str, column: Callable[[str], int]) -> None:
        self.column = column
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise _bad(text[at:])
            self.tokens.append(match.group(1))
            at = match.end()
        self.at = 0

    def take(self, *words: str) -> bool:
        found = [token.lower() for token in self.tokens[self.at : self.at + len(words)]] == list(words)
        self.at += len(words) * found
        return found

    def next(self) -> str:
        if self.at >= len(self.tokens):
            raise _bad("END")
        self.at += 1
        return self.tokens[self.at - 1]

    def whole(self) -> Callable[[list[Value]], bool]:
        test = self.either()
        if self.at != len(self.tokens):
            raise _bad(self.tokens[self.at])
        return test

    def either(self) -> Callable[[list[Value]], bool]:
        tests = [self.both()]
        while self.take("or"):
            tests.append(self.both())
        return lambda row: any(test(row) for test in tests)

    def both(self) -> Callable[[list[Value]], bool]:
        tests = [self.one()]
        while self.take("and"):
            tests.append(self.one())
        return lambda row: all(test(row) for test in tests)

    def one(self) -> Callable[[list[Value]], bool]:
        if self.take("not"):
            inner = self.one()
            return lambda row: not inner(row)
        if self.take("("):
            inner = self.either()
            if not self.take(")"):
                raise _bad("(")
            return inner
        at = self.column(self.next())
        if self.take("is", "not", "null"):
            return lambda row: row[at] is not None
        if self.take("is", "null"):
            return lambda row: row[at] is None
        word = "starts with" if self.take("starts", "with") else "ends with" if self.take("ends", "with") else ""
        word = word or self.next().lower()
        wanted = self.literal(self.next())
        if word not in _TESTS:
            raise _bad(word)
        return lambda row: _TESTS[word](row[at], wanted)

    def literal(self, token: str) -> Value:
        if token[0] in "'\"":
            return token[1:-1]
        if token.lower() in {"true", "false"}:
            return token.lower() == "true"
        try:
            return float(token)
        except ValueError as error:
            raise _bad(token) from error


def _ordered(check: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    return lambda value, wanted: value is not None and rank(value) == rank(wanted) and check(compare(value, wanted))


def _like(value: Value, wanted: Value) -> bool:
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in text_of(wanted)]
    return re.fullmatch("".join(parts), text_of(value), re.DOTALL) is not None


_TESTS: dict[str, Callable[[Value, Value], bool]] = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "<>": lambda value, wanted: value != wanted,
    "<": _ordered(lambda order: order < 0),
    "<=": _ordered(lambda order: order <= 0),
    ">": _ordered(lambda order: order > 0),
    ">=": _ordered(lambda order: order >= 0),
    "contains": lambda value, wanted: text_of(wanted) in text_of(value),
    "starts with": lambda value, wanted: text_of(value).startswith(text_of(wanted)),
    "ends with": lambda value, wanted: text_of(value).endswith(text_of(wanted)),
    "matches": lambda value, wanted: re.fullmatch(text_of(wanted), text_of(value)) is not None,
    "like": _like,
}


def _summed(name: str, at: int, rows: Array) -> Value:
    if name == "count":
        return float(sum(1 for row in rows if row[at] is not None))
    found = [float(v) for row in rows if isinstance(v := row[at], float) and not isinstance(v, bool)]
    return float(_SUMS[name](found)) if found else None


def _headers(calc: Calculation, nodes: Nodes, rows: Array) -> int:
    given = int(calc.number(calc.run(nodes[2]))) if len(nodes) > 2 else -1
    if given >= 0 or not rows:
        return max(0, given)
    texts = all(isinstance(value, str) for value in rows[0])
    return int(texts and any(isinstance(v, float) for row in rows[1:] for v in row))


def _query(calc: Calculation, nodes: Nodes) -> Result:
    source = calc.whole(nodes[0])
    rows = calc.rows(source)
    query = _Query(
        calc.text(calc.run(nodes[1])) if len(nodes) > 1 else "", source.box.left if isinstance(source, Area) else 0
    )
    top = _headers(calc, nodes, rows)
    head = [" ".join(text_of(row[at]) for row in rows[:top]) for at in range(len(rows[0]) if rows else 0)]
    chosen = query.selected(len(head))
    kept = query.kept([row for row in rows[top:] if any(value is not None for value in row)])
    if "group by" in query.clauses or any(name for name, _ in chosen):
        by = [query.column(name.strip()) for name in filter(None, query.clauses.get("group by", "").split(","))]
        groups: dict[tuple[Any, ...], Array] = {}
        for row in sorted(kept, key=lambda r: [(rank(r[at]), text_of(r[at])) for at in by]):
            groups.setdefault(tuple(row[at] for at in by), []).append(row)
        made = [[_summed(n, at, group) if n else group[0][at] for n, at in chosen] for group in groups.values()]
        body = query.order(made, chosen)
    else:
        body = [[row[at] for _, at in chosen] for row in query.order(kept, None)]
    titles: list[Value] = [f"{name} {head[at]}".strip() for name, at in chosen]
    for label in re.findall(r"(\w+(?:\(\w+\))?)\s+'([^']*)'", query.clauses.get("label", "")):
        called = re.fullmatch(r"(\w+)\((\w+)\)", label[0])
        wanted = (called.group(1).lower(), query.column(called.group(2))) if called else ("", query.column(label[0]))
        if wanted in chosen:
            titles[chosen.index(wanted)] = label[1]
    shown = [titles] if any(titles) else []
    out = [*shown, *query.part(body)]
    if not out:
        raise fail("#N/A", "Query completed with an empty output.")
    return out


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {"QUERY": _query}
