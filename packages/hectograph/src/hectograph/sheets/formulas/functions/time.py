"""Functions on dates and times; now is the emulator's clock."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from datetime import datetime
from typing import Any

from hectograph.sheets.formulas.formula import Calculation, Node, Result, fail
from hectograph.sheets.parse import entered
from hectograph.sheets.serial import from_serial, to_serial

Nodes = tuple[Node, ...]


def _moment(calc: Calculation, nodes: Nodes, at: int = 0) -> datetime:
    return from_serial(calc.number(calc.run(nodes[at])))


def _int(calc: Calculation, nodes: Nodes, at: int, default: int = 0) -> int:
    return int(calc.number(calc.run(nodes[at]))) if at < len(nodes) else default


def _date(calc: Calculation, nodes: Nodes) -> Result:
    year, month, day = (_int(calc, nodes, at) for at in range(3))
    if year < 1900:
        year += 1900
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return to_serial(datetime(year, month, 1)) + day - 1  # noqa: DTZ001 - a sheet's dates have no zone


def _time(calc: Calculation, nodes: Nodes) -> Result:
    hours, minutes, seconds = (_int(calc, nodes, at) for at in range(3))
    return ((hours * 3600 + minutes * 60 + seconds) % 86400) / 86400


def _months(moment: datetime, months: int) -> datetime:
    index = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(index, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _eomonth(calc: Calculation, nodes: Nodes) -> Result:
    moved = _months(_moment(calc, nodes).replace(day=1), _int(calc, nodes, 1))
    return float(int(to_serial(moved.replace(day=calendar.monthrange(moved.year, moved.month)[1]))))


def _weekday(calc: Calculation, nodes: Nodes) -> Result:
    day = _moment(calc, nodes).isoweekday()
    kind = _int(calc, nodes, 1, 1)
    return float({1: day % 7 + 1, 2: day, 3: day - 1}.get(kind, day))


def _read(calc: Calculation, nodes: Nodes, *, whole: bool) -> Result:
    text = calc.text(calc.run(nodes[0]))
    value = entered(text, year=calc.now().year).value
    if not isinstance(value, float):
        raise fail("#VALUE!", f"DATEVALUE parameter '{text}' cannot be parsed to date/time.")
    return float(int(value)) if whole else value % 1


def _datedif(calc: Calculation, nodes: Nodes) -> Result:
    start, end = _moment(calc, nodes, 0), _moment(calc, nodes, 1)
    unit = calc.text(calc.run(nodes[2])).upper()
    if end < start:
        raise fail("#NUM!", "Function DATEDIF parameter 1 should be on or before parameter 2.")
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    match unit:
        case "D":
            return float((end - start).days)
        case "M":
            return float(months)
        case "Y":
            return float(months // 12)
        case "YM":
            return float(months % 12)
        case "MD":
            return float((end - _months(start, months)).days)
        case "YD":
            return float((end - _months(start, months // 12 * 12)).days)
    raise fail("#NUM!", f"Function DATEDIF parameter 3 value is {unit}. It is not a unit.")


#: More days than any calendar here counts.
_FAR = 1_000_000


def _free_days(calc: Calculation, nodes: Nodes, at: int) -> set[float]:
    if at >= len(nodes):
        return set()
    return {float(int(v)) for row in calc.rows(calc.run(nodes[at])) for v in row if isinstance(v, float)}


def _networkdays(calc: Calculation, nodes: Nodes) -> Result:
    start, end = int(calc.number(calc.run(nodes[0]))), int(calc.number(calc.run(nodes[1])))
    free = _free_days(calc, nodes, 2)
    sign = 1 if start <= end else -1
    low, high = min(start, end), max(start, end)
    if high - low > _FAR:
        raise fail("#NUM!", "Function NETWORKDAYS has a date that is out of range.")
    return float(
        sign * sum(1 for day in range(low, high + 1) if from_serial(day).weekday() < 5 and float(day) not in free)
    )


def _workday(calc: Calculation, nodes: Nodes) -> Result:
    day, left = int(calc.number(calc.run(nodes[0]))), int(calc.number(calc.run(nodes[1])))
    free, step = _free_days(calc, nodes, 2), 1 if left > 0 else -1
    if abs(left) > _FAR or abs(day) > _FAR:
        raise fail("#NUM!", "Function WORKDAY has a date that is out of range.")
    while left:
        day += step
        if from_serial(day).weekday() < 5 and float(day) not in free:
            left -= step
    return float(day)


def _weeknum(calc: Calculation, nodes: Nodes) -> Result:
    moment, kind = _moment(calc, nodes), _int(calc, nodes, 1, 1)
    first = moment.replace(month=1, day=1)
    lead = first.isoweekday() % 7 if kind == 1 else first.weekday()
    return float(((moment - first).days + lead) // 7 + 1)


FUNCTIONS: dict[str, Callable[[Calculation, Nodes], Any]] = {
    "TODAY": lambda calc, nodes: float(int(to_serial(calc.now()))),
    "NOW": lambda calc, nodes: to_serial(calc.now()),
    "DATE": _date,
    "TIME": _time,
    "YEAR": lambda calc, nodes: float(_moment(calc, nodes).year),
    "MONTH": lambda calc, nodes: float(_moment(calc, nodes).month),
    "DAY": lambda calc, nodes: float(_moment(calc, nodes).day),
    "HOUR": lambda calc, nodes: float(_moment(calc, nodes).hour),
    "MINUTE": lambda calc, nodes: float(_moment(calc, nodes).minute),
    "SECOND": lambda calc, nodes: float(_moment(calc, nodes).second),
    "WEEKDAY": _weekday,
    "EDATE": lambda calc, nodes: float(int(to_serial(_months(_moment(calc, nodes), _int(calc, nodes, 1))))),
    "EOMONTH": _eomonth,
    "DATEVALUE": lambda calc, nodes: _read(calc, nodes, whole=True),
    "TIMEVALUE": lambda calc, nodes: _read(calc, nodes, whole=False),
    "DAYS": lambda calc, nodes: float(int(calc.number(calc.run(nodes[0])) - calc.number(calc.run(nodes[1])))),
    "TO_DATE": lambda calc, nodes: calc.number(calc.run(nodes[0])),
    "TO_PERCENT": lambda calc, nodes: calc.number(calc.run(nodes[0])),
    "TO_DOLLARS": lambda calc, nodes: calc.number(calc.run(nodes[0])),
    "TO_PURE_NUMBER": lambda calc, nodes: calc.number(calc.run(nodes[0])),
    "DATEDIF": _datedif,
    "NETWORKDAYS": _networkdays,
    "WORKDAY": _workday,
    "WEEKNUM": _weeknum,
    "ISOWEEKNUM": lambda calc, nodes: float(_moment(calc, nodes).isocalendar().week),
}

#: Functions whose result is shown as a date where the cell has no format of its own.
SHOWN_AS = {
    "TODAY": "DATE",
    "DATE": "DATE",
    "EDATE": "DATE",
    "EOMONTH": "DATE",
    "TO_DATE": "DATE",
    "NOW": "DATE_TIME",
    "TIME": "TIME",
    "WORKDAY": "DATE",
    "TO_PERCENT": "PERCENT",
    "TO_DOLLARS": "CURRENCY",
}
