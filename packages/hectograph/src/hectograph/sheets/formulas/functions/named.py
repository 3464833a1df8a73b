"""The functions that formulas may call, by name. What fetches from outside is never fetched: it is ``#N/A``."""

from __future__ import annotations

import re
from collections.abc import Callable

from hectograph.sheets.cell import CellError, Formula, Value
from hectograph.sheets.formulas import array
from hectograph.sheets.formulas.formula import Area, Calculation, Failed, Node, Result, fail
from hectograph.sheets.formulas.functions import array as function_array
from hectograph.sheets.formulas.functions import lookup as function_lookup
from hectograph.sheets.formulas.functions import math as function_math
from hectograph.sheets.formulas.functions import query as function_query
from hectograph.sheets.formulas.functions import stats as function_stats
from hectograph.sheets.formulas.functions import text as function_text
from hectograph.sheets.formulas.functions import time as function_time

Function = Callable[[Calculation, tuple[Node, ...]], Result]

_OUTSIDE = {
    "IMPORTXML",
    "IMPORTHTML",
    "IMPORTDATA",
    "IMPORTFEED",
    "IMPORTRANGE",
    "GOOGLEFINANCE",
    "GOOGLETRANSLATE",
    "DETECTLANGUAGE",
    "WEBSERVICE",
    "AI",
}


def call(calc: Calculation, name: str, nodes: tuple[Node, ...], typed: str) -> Result:
    function = FUNCTIONS.get(name)
    if function is None:
        if name in _OUTSIDE:
            raise fail("#N/A", f"{name} is not evaluated here.")
        raise fail("#NAME?", f"Unknown function: '{typed}'.")
    try:
        return _each(calc, name, nodes, function) if calc.arrays else function(calc, nodes)
    except (IndexError, TypeError) as error:
        raise fail("#N/A", f"Wrong number of arguments to {name}.") from error


#: Functions that take ranges as they are; all others are called once for each value where arrays are wanted.
_WHOLE = frozenset(
    re.findall(
        r"[\w.]+",
        """SUM PRODUCT MIN MAX AVERAGE MEDIAN COUNT COUNTA COUNTBLANK COUNTUNIQUE SUMPRODUCT SUMSQ AND OR XOR
        CONCATENATE JOIN TEXTJOIN ROWS COLUMNS ROW COLUMN INDEX OFFSET INDIRECT ISFORMULA QUERY SUBTOTAL STDEV STDEV.S
        STDEVP STDEV.P VAR VAR.S VARP VAR.P GEOMEAN MODE PERCENTILE PERCENTILE.INC QUARTILE NPV GCD LCM MAXIFS MINIFS
        ISREF SPARKLINE NOW TODAY NA PI RAND TRUE FALSE""",
    )
) | frozenset(function_array.FUNCTIONS)
#: Functions that are called once for each value of some of their arguments only.
_SOME = {
    "VLOOKUP": (0, 2), "HLOOKUP": (0, 2), "MATCH": (0,), "XMATCH": (0,), "XLOOKUP": (0,), "LOOKUP": (0,),
    "COUNTIF": (1,), "SUMIF": (1,), "AVERAGEIF": (1,), "COUNTIFS": (1, 3, 5), "SUMIFS": (2, 4, 6),
    "AVERAGEIFS": (2, 4, 6), "RANK": (0,), "LARGE": (1,), "SMALL": (1,),
}  # fmt: skip


def _each(calc: Calculation, name: str, nodes: tuple[Node, ...], function: Function) -> Result:
    """Call a function for each value of the arrays among its arguments."""
    if name in _WHOLE:
        return function(calc, nodes)
    places = [at for at in _SOME.get(name, range(len(nodes))) if at < len(nodes)]
    results = [_attempt(calc, nodes[at], whole=True) for at in places]
    if not any(array.many(result) for result in results):
        return function(calc, nodes)

    def work(values: list[Result]) -> Value:
        given = list(nodes)
        for at, value in zip(places, values, strict=True):
            if not isinstance(value, (Area, list)):
                given[at] = ("value", value)
        return calc.scalar(function(calc, tuple(given)))

    return array.lifted(calc, results, work)


def _if(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    if len(nodes) < 2:
        raise IndexError
    if calc.truth(calc.run(nodes[0])):
        return calc.run(nodes[1])
    return calc.run(nodes[2]) if len(nodes) > 2 else False


def _ifs(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    for at in range(0, len(nodes) - 1, 2):
        if calc.truth(calc.run(nodes[at])):
            return calc.run(nodes[at + 1])
    raise fail("#N/A", "No match")


def _switch(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    from hectograph.sheets.formulas.formula import compare

    wanted = calc.scalar(calc.run(nodes[0]))
    at = 1
    while at + 1 < len(nodes):
        if compare(wanted, calc.scalar(calc.run(nodes[at]))) == 0:
            return calc.run(nodes[at + 1])
        at += 2
    if at < len(nodes):
        return calc.run(nodes[at])
    raise fail("#N/A", "No match")


def _attempt(calc: Calculation, node: Node, *, whole: bool = False) -> Result:
    try:
        result = calc.run(node)
        if whole and array.many(result):
            return result
        single = calc.scalar(result)
    except Failed as failed:
        return failed.error
    return single if isinstance(single, CellError) else result


def _iferror(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    result = _attempt(calc, nodes[0])
    if isinstance(result, CellError):
        return calc.run(nodes[1]) if len(nodes) > 1 else None
    return result


def _ifna(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    result = _attempt(calc, nodes[0])
    if isinstance(result, CellError):
        if result.code != "#N/A":
            raise Failed(result)
        return calc.run(nodes[1]) if len(nodes) > 1 else None
    return result


def _truths(calc: Calculation, nodes: tuple[Node, ...]) -> list[bool]:
    out: list[bool] = []
    for node in nodes:
        result = calc.run(node)
        for value in calc.each(result):
            if isinstance(value, str) and isinstance(result, Area):
                continue
            out.append(calc.truth(value))
    return out


def _is(test: Callable[[Value], bool]) -> Function:
    def function(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
        result = _attempt(calc, nodes[0])
        return test(calc.scalar(result))

    return function


def _isformula(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    area = calc.run(nodes[0])
    if not isinstance(area, Area):
        return False
    return isinstance(calc.book.sheets[area.sheet_id].get(area.box.top, area.box.left).value, Formula)


def _na(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    raise fail("#N/A", "")


def _choose(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    index = int(calc.number(calc.run(nodes[0])))
    if not 1 <= index < len(nodes):
        raise fail(
            "#NUM!", f"Function CHOOSE parameter 1 value is {index}. Valid values are between 1 and {len(nodes) - 1}."
        )
    return calc.run(nodes[index])


def _hyperlink(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    return calc.scalar(calc.run(nodes[-1]))


def _type(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    result = _attempt(calc, nodes[0], whole=True)
    if array.many(result):
        return 64.0
    value = calc.scalar(result)
    if isinstance(value, CellError):
        return 16.0
    return 4.0 if isinstance(value, bool) else 2.0 if isinstance(value, str) else 1.0


def _error_type(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    value = calc.scalar(_attempt(calc, nodes[0]))
    order = ["#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#ERROR!"]
    if not isinstance(value, CellError) or value.code not in order:
        raise fail("#N/A", "")
    return float(order.index(value.code) + 1)


def _is_date(calc: Calculation, nodes: tuple[Node, ...]) -> Result:
    from hectograph.sheets.numberformat import is_date
    from hectograph.sheets.parse import entered

    result = _attempt(calc, nodes[0])
    if isinstance(result, Area):
        form = calc.book.sheets[result.sheet_id].get(result.box.top, result.box.left).format or {}
        if is_date(form.get("numberFormat")):
            return True
    value = calc.scalar(result)
    return isinstance(value, str) and is_date(entered(value).number_format)


FUNCTIONS: dict[str, Function] = {
    "IF": _if,
    "IFS": _ifs,
    "SWITCH": _switch,
    "IFERROR": _iferror,
    "IFNA": _ifna,
    "AND": lambda calc, nodes: all(_truths(calc, nodes)),
    "OR": lambda calc, nodes: any(_truths(calc, nodes)),
    "XOR": lambda calc, nodes: sum(_truths(calc, nodes)) % 2 == 1,
    "NOT": lambda calc, nodes: not calc.truth(calc.run(nodes[0])),
    "TRUE": lambda calc, nodes: True,
    "FALSE": lambda calc, nodes: False,
    "ISBLANK": _is(lambda v: v is None),
    "ISNUMBER": _is(lambda v: isinstance(v, float) and not isinstance(v, bool)),
    "ISTEXT": _is(lambda v: isinstance(v, str)),
    "ISNONTEXT": _is(lambda v: not isinstance(v, str)),
    "ISLOGICAL": _is(lambda v: isinstance(v, bool)),
    "ISERROR": _is(lambda v: isinstance(v, CellError)),
    "ISERR": _is(lambda v: isinstance(v, CellError) and v.code != "#N/A"),
    "ISNA": _is(lambda v: isinstance(v, CellError) and v.code == "#N/A"),
    "ISFORMULA": _isformula,
    "NA": _na,
    "CHOOSE": _choose,
    "HYPERLINK": _hyperlink,
    "IMAGE": lambda calc, nodes: None,
    "SPARKLINE": lambda calc, nodes: None,
    "TYPE": _type,
    "ERROR.TYPE": _error_type,
    "ISREF": lambda calc, nodes: isinstance(calc.run(nodes[0]), Area),
    "ISDATE": _is_date,
    "ISEMAIL": _is(lambda v: isinstance(v, str) and re.fullmatch(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}", v) is not None),
    "ISURL": _is(lambda v: isinstance(v, str) and re.match(r"(https?://|ftp://|www\.)\S+\.\S+", v) is not None),
    **function_math.FUNCTIONS,
    **function_stats.FUNCTIONS,
    **function_array.FUNCTIONS,
    **function_query.FUNCTIONS,
    **function_text.FUNCTIONS,
    **function_time.FUNCTIONS,
    **function_lookup.FUNCTIONS,
}
