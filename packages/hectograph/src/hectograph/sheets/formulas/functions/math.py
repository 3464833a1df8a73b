"""Functions on numbers, and counting and summing by criterion."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, ROUND_UP, Context, Decimal
from statistics import median
from typing import Any

from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.formulas.formula import (
    Area,
    Calculation,
    Failed,
    Node,
    Result,
    compare,
    fail,
    power,
    rank,
    to_number,
)
from hectograph.sheets.parse import entered

Nodes = tuple[Node, ...]

#: Room for the largest number that a cell can hold.
_WIDE = Context(prec=700)


def numbers(calc: Calculation, nodes: Nodes) -> Iterator[float]:
    """The numbers of all arguments; texts and booleans count only where they are written into the formula."""
    for node in nodes:
        result = calc.run(node)
        inside = isinstance(result, (Area, list))
        for value in calc.each(result):
            if isinstance(value, CellError):
                raise Failed(value)
            if inside and (isinstance(value, (bool, str)) or value is None):
                continue
            yield to_number(value, "SUM", 1)


def _one(function: Callable[[float], float]) -> Callable[[Calculation, Nodes], Result]:
    def called(calc: Calculation, nodes: Nodes) -> Result:
        (node,) = nodes
        try:
            return float(function(calc.number(calc.run(node))))
        except ValueError as error:
            raise fail("#NUM!", str(error)) from error

    return called


def _rounded(mode: str) -> Callable[[Calculation, Nodes], Result]:
    def called(calc: Calculation, nodes: Nodes) -> Result:
        value = calc.number(calc.run(nodes[0]))
        places = int(calc.number(calc.run(nodes[1]))) if len(nodes) > 1 else 0
        if not -400 < places < 400:
            return value if places > 0 else 0.0
        return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), mode, _WIDE))

    return called


def _multiple(mode: str) -> Callable[[Calculation, Nodes], Result]:
    def called(calc: Calculation, nodes: Nodes) -> Result:
        value = calc.number(calc.run(nodes[0]))
        step = calc.number(calc.run(nodes[1])) if len(nodes) > 1 else 1.0
        if step == 0:
            return 0.0
        times = (Decimal(repr(value)) / Decimal(repr(step))).quantize(Decimal(1), mode, _WIDE)
        return float(times * Decimal(repr(step)))

    return called


def _mod(calc: Calculation, nodes: Nodes) -> Result:
    value, by = calc.number(calc.run(nodes[0])), calc.number(calc.run(nodes[1]))
    if by == 0:
        raise fail("#DIV/0!", "Function MOD parameter 2 cannot be zero.")
    return value - by * math.floor(value / by)


def _sqrt(calc: Calculation, nodes: Nodes) -> Result:
    value = calc.number(calc.run(nodes[0]))
    if value < 0:
        raise fail("#NUM!", "Function SQRT parameter 1 value is negative. It should be positive or zero.")
    return math.sqrt(value)


def _divide(calc: Calculation, nodes: Nodes) -> Result:
    value, by = calc.number(calc.run(nodes[0])), calc.number(calc.run(nodes[1]))
    if by == 0:
        raise fail("#DIV/0!", "Function DIVIDE parameter 2 cannot be zero.")
    return value / by


def _average(calc: Calculation, nodes: Nodes) -> Result:
    found = list(numbers(calc, nodes))
    if not found:
        raise fail("#DIV/0!", "Evaluation of function AVERAGE caused a divide by zero error.")
    return sum(found) / len(found)


def _median(calc: Calculation, nodes: Nodes) -> Result:
    found = list(numbers(calc, nodes))
    if not found:
        raise fail("#NUM!", "MEDIAN has no valid input data.")
    return float(median(found))


def _count(calc: Calculation, nodes: Nodes) -> Result:
    total = 0
    for node in nodes:
        for value in calc.each(calc.run(node)):
            total += isinstance(value, float) and not isinstance(value, bool)
    return float(total)


def _counta(calc: Calculation, nodes: Nodes) -> Result:
    return float(sum(1 for node in nodes for value in calc.each(calc.run(node)) if value is not None))


def _countblank(calc: Calculation, nodes: Nodes) -> Result:
    return float(sum(1 for row in calc.rows(calc.run(nodes[0])) for value in row if value is None or value == ""))


def matcher(criterion: Value) -> Callable[[Value], bool]:
    """The test that a criterion such as ``">5"``, ``"a*"`` or ``3`` stands for."""
    operator, wanted = "=", criterion
    if isinstance(criterion, str):
        match = re.match(r"(<=|>=|<>|=|<|>)(.*)", criterion, re.DOTALL)
        if match:
            operator, text = match.groups()
            wanted = _plain(text)
        else:
            wanted = _plain(criterion)
    if isinstance(wanted, str) and operator in {"=", "<>"} and re.search(r"[*?]", wanted):
        parts = [".*" if c == "*" else "." if c == "?" else re.escape(c) for c in wanted]
        pattern = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)

        def like(value: Value) -> bool:
            return (isinstance(value, str) and pattern.fullmatch(value) is not None) == (operator == "=")

        return like

    def test(value: Value) -> bool:
        if operator == "=":
            return _same(value, wanted)
        if operator == "<>":
            return not _same(value, wanted)
        if value is None or rank(value) != rank(wanted):
            return False
        order = compare(value, wanted)
        return {"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[operator]

    return test


def _plain(text: str) -> Value:
    if text == "":
        return None
    read = entered(text).value
    return read if isinstance(read, (bool, float, str)) else text


def _same(value: Value, wanted: Value) -> bool:
    if wanted is None:
        return value is None or value == ""
    if value is None or isinstance(value, str) != isinstance(wanted, str):
        return False
    return compare(value, wanted) == 0


def _flat(calc: Calculation, node: Node, *, whole: bool = False) -> list[Value]:
    return [value for row in calc.rows(calc.whole(node) if whole else calc.run(node)) for value in row]


def _chosen(calc: Calculation, pairs: Nodes) -> list[bool]:
    chosen: list[bool] | None = None
    for at in range(0, len(pairs) - 1, 2):
        test = matcher(calc.scalar(calc.run(pairs[at + 1])))
        found = [test(value) for value in _flat(calc, pairs[at])]
        chosen = found if chosen is None else [a and b for a, b in zip(chosen, found, strict=True)]
    return chosen or []


def picked(calc: Calculation, nodes: Nodes, *, many: bool) -> list[float]:
    if many:
        chosen, values = _chosen(calc, nodes[1:]), _flat(calc, nodes[0])
    else:
        chosen = _chosen(calc, nodes[:2])
        values = _flat(calc, nodes[2] if len(nodes) > 2 else nodes[0])
    return [v for v, ok in zip(values, chosen, strict=False) if ok and isinstance(v, float) and not isinstance(v, bool)]


def _mean(found: list[float]) -> float:
    if not found:
        raise fail("#DIV/0!", "Evaluation of function AVERAGEIF caused a divide by zero error.")
    return sum(found) / len(found)


def _sumproduct(calc: Calculation, nodes: Nodes) -> Result:
    columns = [
        [to_number(v) if isinstance(v, (bool, float)) else 0.0 for v in _flat(calc, node, whole=True)] for node in nodes
    ]
    return float(sum(math.prod(items) for items in zip(*columns, strict=True)))


def _combinations(calc: Calculation, nodes: Nodes) -> Result:
    of, chosen = int(calc.number(calc.run(nodes[0]))), int(calc.number(calc.run(nodes[1])))
    if not 0 <= chosen <= of <= 1_000:
        raise fail("#NUM!", f"Function COMBIN cannot choose {chosen} of {of}.")
    return float(math.comb(of, chosen))


def _compared(calc: Calculation, nodes: Nodes) -> int:
    a, b = calc.scalar(calc.run(nodes[0])), calc.scalar(calc.run(nodes[1]))
    for value in (a, b):
        if isinstance(value, CellError):
            raise Failed(value)
    return compare(a, b)


def _subtotal(calc: Calculation, nodes: Nodes) -> Result:
    kind = int(calc.number(calc.run(nodes[0]))) % 100
    names = {1: "AVERAGE", 2: "COUNT", 3: "COUNTA", 4: "MAX", 5: "MIN", 6: "PRODUCT", 9: "SUM"}
    if kind not in names:
        raise fail("#VALUE!", f"Function SUBTOTAL parameter 1 value is {kind}. It is not a valid function code.")
    result: Result = FUNCTIONS[names[kind]](calc, nodes[1:])
    return result


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {
    "SUM": lambda calc, nodes: float(math.fsum(numbers(calc, nodes))),
    "PRODUCT": lambda calc, nodes: float(math.prod(numbers(calc, nodes))),
    "MIN": lambda calc, nodes: min(numbers(calc, nodes), default=0.0),
    "MAX": lambda calc, nodes: max(numbers(calc, nodes), default=0.0),
    "AVERAGE": _average,
    "MEDIAN": _median,
    "COUNT": _count,
    "COUNTA": _counta,
    "COUNTBLANK": _countblank,
    "COUNTIF": lambda calc, nodes: float(sum(_chosen(calc, nodes))),
    "COUNTIFS": lambda calc, nodes: float(sum(_chosen(calc, nodes))),
    "COUNTUNIQUE": lambda calc, nodes: float(len({v for n in nodes for v in calc.each(calc.run(n)) if v is not None})),
    "SUMIF": lambda calc, nodes: float(sum(picked(calc, nodes, many=False))),
    "SUMIFS": lambda calc, nodes: float(sum(picked(calc, nodes, many=True))),
    "AVERAGEIF": lambda calc, nodes: _mean(picked(calc, nodes, many=False)),
    "AVERAGEIFS": lambda calc, nodes: _mean(picked(calc, nodes, many=True)),
    "SUMPRODUCT": _sumproduct,
    "ROUND": _rounded(ROUND_HALF_UP),
    "ROUNDUP": _rounded(ROUND_UP),
    "ROUNDDOWN": _rounded(ROUND_DOWN),
    "TRUNC": _rounded(ROUND_DOWN),
    "FLOOR": _multiple(ROUND_FLOOR),
    "CEILING": _multiple(ROUND_CEILING),
    "MROUND": _multiple(ROUND_HALF_UP),
    "INT": _one(math.floor),
    "ABS": _one(abs),
    "SIGN": _one(lambda x: (x > 0) - (x < 0)),
    "SQRT": _sqrt,
    "EXP": _one(math.exp),
    "LN": _one(math.log),
    "LOG10": _one(math.log10),
    "LOG": lambda calc, nodes: math.log(
        calc.number(calc.run(nodes[0])), calc.number(calc.run(nodes[1])) if len(nodes) > 1 else 10
    ),
    "SIN": _one(math.sin),
    "COS": _one(math.cos),
    "TAN": _one(math.tan),
    "PI": lambda calc, nodes: math.pi,
    "MOD": _mod,
    "QUOTIENT": lambda calc, nodes: float(math.trunc(_divide(calc, nodes))),  # type: ignore[arg-type]  # a number
    "DIVIDE": _divide,
    "ADD": lambda calc, nodes: calc.number(calc.run(nodes[0])) + calc.number(calc.run(nodes[1])),
    "MINUS": lambda calc, nodes: calc.number(calc.run(nodes[0])) - calc.number(calc.run(nodes[1])),
    "MULTIPLY": lambda calc, nodes: calc.number(calc.run(nodes[0])) * calc.number(calc.run(nodes[1])),
    "POWER": lambda calc, nodes: power(calc.number(calc.run(nodes[0])), calc.number(calc.run(nodes[1]))),
    "POW": lambda calc, nodes: power(calc.number(calc.run(nodes[0])), calc.number(calc.run(nodes[1]))),
    "SUBTOTAL": _subtotal,
    "RADIANS": _one(math.radians),
    "DEGREES": _one(math.degrees),
    "ASIN": _one(math.asin),
    "ACOS": _one(math.acos),
    "ATAN": _one(math.atan),
    "SINH": _one(math.sinh),
    "COSH": _one(math.cosh),
    "TANH": _one(math.tanh),
    "ATAN2": lambda calc, nodes: math.atan2(calc.number(calc.run(nodes[1])), calc.number(calc.run(nodes[0]))),
    "FACT": _one(lambda x: math.gamma(math.floor(x) + 1)),
    "COMBIN": _combinations,
    "GCD": lambda calc, nodes: float(math.gcd(*(int(x) for x in numbers(calc, nodes)))),
    "LCM": lambda calc, nodes: float(math.lcm(*(int(x) for x in numbers(calc, nodes)))),
    "EVEN": _one(lambda x: math.copysign(math.ceil(abs(x) / 2) * 2, x)),
    "ODD": _one(lambda x: math.copysign(max(0, math.ceil((abs(x) - 1) / 2)) * 2 + 1, x)),
    "UMINUS": _one(lambda x: -x),
    "UPLUS": _one(lambda x: x),
    "UNARY_PERCENT": _one(lambda x: x / 100),
    "EQ": lambda calc, nodes: _compared(calc, nodes) == 0,
    "NE": lambda calc, nodes: _compared(calc, nodes) != 0,
    "LT": lambda calc, nodes: _compared(calc, nodes) < 0,
    "LTE": lambda calc, nodes: _compared(calc, nodes) <= 0,
    "GT": lambda calc, nodes: _compared(calc, nodes) > 0,
    "GTE": lambda calc, nodes: _compared(calc, nodes) >= 0,
    "RAND": lambda calc, nodes: random.random(),
    "RANDBETWEEN": lambda calc, nodes: float(
        random.randint(int(calc.number(calc.run(nodes[0]))), int(calc.number(calc.run(nodes[1]))))
    ),
    "ISEVEN": lambda calc, nodes: int(calc.number(calc.run(nodes[0]))) % 2 == 0,
    "ISODD": lambda calc, nodes: int(calc.number(calc.run(nodes[0]))) % 2 == 1,
}
