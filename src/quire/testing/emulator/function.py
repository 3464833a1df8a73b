"""The functions that formulas may call, by name. What fetches from outside is never fetched: it is ``#N/A``."""

from __future__ import annotations

from collections.abc import Callable

from quire.testing.emulator import function_lookup, function_math, function_text, function_time
from quire.testing.emulator.cell import CellError, Formula, Value
from quire.testing.emulator.formula import Area, Calculation, Failed, Node, Result, fail

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
        return function(calc, nodes)
    except (IndexError, TypeError) as error:
        raise fail("#N/A", f"Wrong number of arguments to {name}.") from error


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
    from quire.testing.emulator.formula import compare

    wanted = calc.scalar(calc.run(nodes[0]))
    at = 1
    while at + 1 < len(nodes):
        if compare(wanted, calc.scalar(calc.run(nodes[at]))) == 0:
            return calc.run(nodes[at + 1])
        at += 2
    if at < len(nodes):
        return calc.run(nodes[at])
    raise fail("#N/A", "No match")


def _attempt(calc: Calculation, node: Node) -> Result:
    try:
        result = calc.run(node)
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
    "ARRAYFORMULA": lambda calc, nodes: calc.run(nodes[0]),
    **function_math.FUNCTIONS,
    **function_text.FUNCTIONS,
    **function_time.FUNCTIONS,
    **function_lookup.FUNCTIONS,
}
