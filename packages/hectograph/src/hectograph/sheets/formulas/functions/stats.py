"""Functions on many numbers at once: rank, spread, conditional extremes; and money over time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

from hectograph.sheets.formulas.area import Result
from hectograph.sheets.formulas.formula import Calculation, Node
from hectograph.sheets.formulas.functions.math import numbers, picked
from hectograph.sheets.formulas.scalar import fail

Nodes = tuple[Node, ...]


def _number(calc: Calculation, nodes: Nodes, at: int, default: float = 0.0) -> float:
    return calc.number(calc.run(nodes[at])) if at < len(nodes) else default


def _nth(calc: Calculation, nodes: Nodes, *, largest: bool) -> Result:
    found = sorted(numbers(calc, nodes[:1]), reverse=largest)
    n = int(_number(calc, nodes, 1))
    if not 1 <= n <= len(found):
        name = "LARGE" if largest else "SMALL"
        raise fail("#NUM!", f"Function {name} parameter 2 value {n} is out of range.")
    return found[n - 1]


def _rank(calc: Calculation, nodes: Nodes) -> Result:
    value, found = _number(calc, nodes, 0), list(numbers(calc, nodes[1:2]))
    if value not in found:
        raise fail("#N/A", f"Did not find value '{value:g}' in RANK evaluation.")
    ascending = len(nodes) > 2 and calc.truth(calc.run(nodes[2]))
    return float(1 + sum(1 for other in found if (other < value if ascending else other > value)))


def _spread(work: Callable[[list[float]], float], least: int, name: str) -> Callable[[Calculation, Nodes], Result]:
    def called(calc: Calculation, nodes: Nodes) -> Result:
        found = list(numbers(calc, nodes))
        if len(found) < least:
            raise fail("#DIV/0!", f"Evaluation of function {name} caused a divide by zero error.")
        return float(work(found))

    return called


def _percentile(calc: Calculation, nodes: Nodes, share: float) -> Result:
    found = sorted(numbers(calc, nodes[:1]))
    if not found or not 0 <= share <= 1:
        raise fail("#NUM!", "Function PERCENTILE parameter 2 value is out of range.")
    place = share * (len(found) - 1)
    low = math.floor(place)
    high = min(low + 1, len(found) - 1)
    return found[low] + (found[high] - found[low]) * (place - low)


def _mode(calc: Calculation, nodes: Nodes) -> Result:
    found = list(numbers(calc, nodes))
    best = max(found, key=found.count, default=None)
    if best is None or found.count(best) < 2:
        raise fail("#N/A", "No mode value.")
    return best


def _extreme(calc: Calculation, nodes: Nodes, work: Callable[..., float]) -> Result:
    return work(picked(calc, nodes, many=True), default=0.0)


def _pmt(calc: Calculation, nodes: Nodes) -> Result:
    rate, periods, present = (_number(calc, nodes, at) for at in range(3))
    future, first = _number(calc, nodes, 3), _number(calc, nodes, 4)
    if rate == 0:
        return -(present + future) / periods
    grown = (1 + rate) ** periods
    return float(-(present * grown + future) * rate / ((grown - 1) * (1 + rate * first)))


def _future(calc: Calculation, nodes: Nodes) -> Result:
    rate, periods, payment = (_number(calc, nodes, at) for at in range(3))
    present, first = _number(calc, nodes, 3), _number(calc, nodes, 4)
    if rate == 0:
        return -(present + payment * periods)
    grown = (1 + rate) ** periods
    return float(-(present * grown + payment * (1 + rate * first) * (grown - 1) / rate))


def _net(calc: Calculation, nodes: Nodes) -> Result:
    rate = _number(calc, nodes, 0)
    return float(sum(value / (1 + rate) ** at for at, value in enumerate(numbers(calc, nodes[1:]), 1)))


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {
    "LARGE": lambda calc, nodes: _nth(calc, nodes, largest=True),
    "SMALL": lambda calc, nodes: _nth(calc, nodes, largest=False),
    "RANK": _rank,
    "RANK.EQ": _rank,
    "STDEV": _spread(statistics.stdev, 2, "STDEV"),
    "STDEV.S": _spread(statistics.stdev, 2, "STDEV.S"),
    "STDEVP": _spread(statistics.pstdev, 1, "STDEVP"),
    "STDEV.P": _spread(statistics.pstdev, 1, "STDEV.P"),
    "VAR": _spread(statistics.variance, 2, "VAR"),
    "VAR.S": _spread(statistics.variance, 2, "VAR.S"),
    "VARP": _spread(statistics.pvariance, 1, "VARP"),
    "VAR.P": _spread(statistics.pvariance, 1, "VAR.P"),
    "GEOMEAN": _spread(statistics.geometric_mean, 1, "GEOMEAN"),
    "SUMSQ": lambda calc, nodes: float(sum(x * x for x in numbers(calc, nodes))),
    "MODE": _mode,
    "PERCENTILE": lambda calc, nodes: _percentile(calc, nodes, _number(calc, nodes, 1)),
    "PERCENTILE.INC": lambda calc, nodes: _percentile(calc, nodes, _number(calc, nodes, 1)),
    "QUARTILE": lambda calc, nodes: _percentile(calc, nodes, _number(calc, nodes, 1) / 4),
    "MAXIFS": lambda calc, nodes: _extreme(calc, nodes, max),
    "MINIFS": lambda calc, nodes: _extreme(calc, nodes, min),
    "PMT": _pmt,
    "FV": _future,
    "NPV": _net,
}
