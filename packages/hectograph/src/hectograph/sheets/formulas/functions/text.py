"""Functions on texts."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from typing import Any

from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.formulas.formula import Calculation, Failed, Node, Result, fail, text_of, to_number
from hectograph.sheets.numberformat import shown
from hectograph.sheets.parse import entered

Nodes = tuple[Node, ...]


def _text(calc: Calculation, nodes: Nodes, at: int) -> str:
    return calc.text(calc.run(nodes[at]))


def _int(calc: Calculation, nodes: Nodes, at: int, default: int) -> int:
    return int(calc.number(calc.run(nodes[at]))) if at < len(nodes) else default


def _all(calc: Calculation, nodes: Nodes) -> list[str]:
    out: list[str] = []
    for node in nodes:
        for row in calc.rows(calc.run(node)):
            for value in row:
                if isinstance(value, CellError):
                    raise Failed(value)
                out.append(text_of(value))
    return out


def _join(calc: Calculation, nodes: Nodes) -> Result:
    return _text(calc, nodes, 0).join(_all(calc, nodes[1:]))


def _textjoin(calc: Calculation, nodes: Nodes) -> Result:
    skip = calc.truth(calc.run(nodes[1]))
    parts = _all(calc, nodes[2:])
    return _text(calc, nodes, 0).join(part for part in parts if part or not skip)


def _find(calc: Calculation, nodes: Nodes, *, fold: bool) -> Result:
    needle, text = _text(calc, nodes, 0), _text(calc, nodes, 1)
    start = _int(calc, nodes, 2, 1) - 1
    at = text.casefold().find(needle.casefold(), start) if fold else text.find(needle, start)
    if at < 0:
        name = "SEARCH" if fold else "FIND"
        raise fail("#VALUE!", f"In {name} evaluation, cannot find '{needle}' within '{text}'.")
    return float(at + 1)


def _substitute(calc: Calculation, nodes: Nodes) -> Result:
    text, old, new = (_text(calc, nodes, at) for at in range(3))
    if not old:
        return text
    if len(nodes) < 4:
        return text.replace(old, new)
    wanted, at = _int(calc, nodes, 3, 1), -1
    for _ in range(wanted):
        at = text.find(old, at + 1)
        if at < 0:
            return text
    return text[:at] + new + text[at + len(old) :]


def _replace(calc: Calculation, nodes: Nodes) -> Result:
    text, at, length = _text(calc, nodes, 0), _int(calc, nodes, 1, 1) - 1, _int(calc, nodes, 2, 0)
    return text[:at] + _text(calc, nodes, 3) + text[at + length :]


def _mid(calc: Calculation, nodes: Nodes) -> Result:
    at = _int(calc, nodes, 1, 1) - 1
    return _text(calc, nodes, 0)[at : at + _int(calc, nodes, 2, 1)]


def _right(calc: Calculation, nodes: Nodes) -> Result:
    count = _int(calc, nodes, 1, 1)
    return _text(calc, nodes, 0)[-count:] if count else ""


def _value(calc: Calculation, nodes: Nodes) -> Result:
    return to_number(calc.scalar(calc.run(nodes[0])), "VALUE", 1)


def _format(calc: Calculation, nodes: Nodes) -> Result:
    value: Value = calc.scalar(calc.run(nodes[0]))
    if isinstance(value, CellError):
        raise Failed(value)
    if isinstance(value, str):
        read = entered(value).value
        value = read if isinstance(read, float) else value
    return shown(value, {"pattern": _text(calc, nodes, 1)})


def _split(calc: Calculation, nodes: Nodes) -> Result:
    text, marks = _text(calc, nodes, 0), _text(calc, nodes, 1)
    each = calc.truth(calc.run(nodes[2])) if len(nodes) > 2 else True
    parts = re.split("|".join(map(re.escape, marks)) if each else re.escape(marks), text)
    row: list[Value] = []
    for part in parts:
        if part:
            read = entered(part).value
            row.append(read if isinstance(read, (bool, float)) else part)
    return [row]


def _regex(calc: Calculation, nodes: Nodes) -> re.Pattern[str]:
    try:
        return re.compile(_text(calc, nodes, 1))
    except re.error as error:
        raise fail(
            "#REF!", f"Function REGEXMATCH parameter 2 value is not a valid regular expression: {error}."
        ) from error


def _extract(calc: Calculation, nodes: Nodes) -> Result:
    text = _text(calc, nodes, 0)
    found = _regex(calc, nodes).search(text)
    if found is None:
        raise fail(
            "#N/A",
            f"Function REGEXEXTRACT parameter 2 value does not match text of Function REGEXEXTRACT "
            f'parameter 1 value "{text}".',
        )
    return [list(found.groups())] if found.groups() else found.group()


def _regexreplace(calc: Calculation, nodes: Nodes) -> Result:
    return _regex(calc, nodes).sub(re.sub(r"\$(\d)", r"\\\1", _text(calc, nodes, 2)), _text(calc, nodes, 0))


def _repeated(calc: Calculation, nodes: Nodes) -> Result:
    text, times = _text(calc, nodes, 0), _int(calc, nodes, 1, 0)
    if len(text) * times > 50_000:
        raise fail("#VALUE!", "Text result of REPT is longer than the limit of 32000 characters.")
    return text * times


def _money(calc: Calculation, nodes: Nodes) -> Result:
    value, places = calc.number(calc.run(nodes[0])), min(30, max(0, _int(calc, nodes, 1, 2)))
    return shown(value, {"pattern": '"$"#,##0' + ("." + "0" * places if places else "")})


def _fixed(calc: Calculation, nodes: Nodes) -> Result:
    value, places = calc.number(calc.run(nodes[0])), min(30, max(0, _int(calc, nodes, 1, 2)))
    plain = len(nodes) > 2 and calc.truth(calc.run(nodes[2]))
    return shown(value, {"pattern": ("0" if plain else "#,##0") + ("." + "0" * places if places else "")})


def _based(digits: int) -> Callable[[Calculation, Nodes], Result]:
    def called(calc: Calculation, nodes: Nodes) -> Result:
        value = int(calc.number(calc.run(nodes[0])))
        text = format(value, {2: "b", 8: "o", 16: "X"}[digits])
        return text.rjust(min(10, _int(calc, nodes, 1, 0)), "0")

    return called


def _unbased(digits: int) -> Callable[[Calculation, Nodes], Result]:
    def called(calc: Calculation, nodes: Nodes) -> Result:
        text = _text(calc, nodes, 0)
        try:
            return float(int(text, digits))
        except ValueError as error:
            raise fail("#NUM!", f"'{text}' is not a number in base {digits}.") from error

    return called


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {
    "CONCATENATE": lambda calc, nodes: "".join(_all(calc, nodes)),
    "CONCAT": lambda calc, nodes: "".join(_all(calc, nodes)),
    "JOIN": _join,
    "TEXTJOIN": _textjoin,
    "LEN": lambda calc, nodes: float(len(_text(calc, nodes, 0))),
    "UPPER": lambda calc, nodes: _text(calc, nodes, 0).upper(),
    "LOWER": lambda calc, nodes: _text(calc, nodes, 0).lower(),
    "PROPER": lambda calc, nodes: _text(calc, nodes, 0).title(),
    "TRIM": lambda calc, nodes: re.sub(" +", " ", _text(calc, nodes, 0)).strip(" "),
    "LEFT": lambda calc, nodes: _text(calc, nodes, 0)[: _int(calc, nodes, 1, 1)],
    "RIGHT": _right,
    "MID": _mid,
    "FIND": lambda calc, nodes: _find(calc, nodes, fold=False),
    "SEARCH": lambda calc, nodes: _find(calc, nodes, fold=True),
    "SUBSTITUTE": _substitute,
    "REPLACE": _replace,
    "REPT": _repeated,
    "EXACT": lambda calc, nodes: _text(calc, nodes, 0) == _text(calc, nodes, 1),
    "VALUE": _value,
    "TEXT": _format,
    "TO_TEXT": lambda calc, nodes: _text(calc, nodes, 0),
    "T": lambda calc, nodes: v if isinstance(v := calc.scalar(calc.run(nodes[0])), str) else "",
    "N": lambda calc, nodes: float(v) if isinstance(v := calc.scalar(calc.run(nodes[0])), (bool, float)) else 0.0,
    "CHAR": lambda calc, nodes: chr(_int(calc, nodes, 0, 0)),
    "UNICHAR": lambda calc, nodes: chr(_int(calc, nodes, 0, 0)),
    "CODE": lambda calc, nodes: float(ord(_text(calc, nodes, 0)[0])),
    "UNICODE": lambda calc, nodes: float(ord(_text(calc, nodes, 0)[0])),
    "DOLLAR": _money,
    "FIXED": _fixed,
    "DEC2BIN": _based(2),
    "DEC2OCT": _based(8),
    "DEC2HEX": _based(16),
    "BIN2DEC": _unbased(2),
    "OCT2DEC": _unbased(8),
    "HEX2DEC": _unbased(16),
    "SPLIT": _split,
    "REGEXMATCH": lambda calc, nodes: _regex(calc, nodes).search(_text(calc, nodes, 0)) is not None,
    "REGEXEXTRACT": _extract,
    "REGEXREPLACE": _regexreplace,
    "CLEAN": lambda calc, nodes: "".join(c for c in _text(calc, nodes, 0) if c.isprintable()),
    "ENCODEURL": lambda calc, nodes: urllib.parse.quote(_text(calc, nodes, 0), safe=""),
}
