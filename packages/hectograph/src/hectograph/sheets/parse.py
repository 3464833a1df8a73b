"""Reads what a person types, as Sheets does in the book's locale: numbers, percents, money, dates, times, booleans.

A leading apostrophe keeps the rest as text; an equals sign begins a formula. What is none of these is text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hectograph.sheets import locales
from hectograph.sheets.cell import Entered, Formula
from hectograph.sheets.locales import EN, Locale
from hectograph.sheets.serial import to_serial

_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)?(\.\d*)?(?:[eE]([+-]?\d+))?")
_CURRENCIES = {"$": '"$"', "€": "[$€]", "£": "[$£]", "¥": "[$¥]", "₹": "[$₹]", "₽": "[$₽]", "₩": "[$₩]"}

_MONTH_NAMES = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTHS = {
    **{name: index for index, name in enumerate(_MONTH_NAMES, 1)},
    **{name[:3]: index for index, name in enumerate(_MONTH_NAMES, 1)},
    "sept": 9,
}

_DATE = (
    (re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})"), "ymd"),
    (re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})"), "mdy"),
    (re.compile(r"(\d{1,2})([/-])(\d{1,2})"), "md"),
    (re.compile(r"([A-Za-z]+)\.? +(\d{1,2}),? +(\d{4})"), "Mdy"),
    (re.compile(r"(\d{1,2})([- ]+)([A-Za-z]+)\.?[- ,]+(\d{4}|\d{2})"), "dMy"),
    (re.compile(r"([A-Za-z]+)\.? +(\d{1,2})"), "Md"),
    (re.compile(r"(\d{1,2})([- ])([A-Za-z]+)"), "dM"),
    (re.compile(r"([A-Za-z]+) +(\d{4})"), "My"),
)
_TIME = re.compile(r"(\d{1,3}):(\d{2})(?::(\d{2})(\.\d+)?)?(?: *([AaPp])\.?[Mm]\.?)?|(\d{1,2}) *([AaPp])[Mm]")


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed: the value and, where the typing shows one, a number format."""

    value: Entered
    number_format: dict[str, Any] | None = None


def entered(text: str, *, year: int | None = None, locale: Locale = EN) -> Typed:
    """Read a typed text."""
    if not text:
        return Typed(None)
    if text[0] == "'":
        return Typed(text[1:])
    if text[0] == "=" and len(text) > 1:
        return Typed(Formula(locales.kept(text, locale)))
    trimmed = text.strip()
    if trimmed.upper() in {"TRUE", "FALSE", locale.true, locale.false}:
        return Typed(trimmed.upper() in {"TRUE", locale.true})
    found = _number(trimmed, locale) or _moment(trimmed, year, locale)
    if found is not None:
        return found
    if text[0] == "+" and len(text) > 1:
        from hectograph.sheets.formulas.formula import parsed

        if parsed("=" + text) is not None:
            return Typed(Formula("=" + text))
    return Typed(text)


def _plain(text: str, locale: Locale) -> str:
    """A number with the marks of en_US, or something that is none."""
    if locale.decimal == "." and locale.group == ",":
        return text
    groups = {locale.group, " "} if locale.group in "\u00a0\u202f" else {locale.group}
    out = ""
    for at, char in enumerate(text):
        if char == locale.decimal:
            out += "."
        elif char in groups and out[-1:].isdigit() and text[at + 1 : at + 2].isdigit():
            out += ","
        else:
            out += "?" if char in ".," else char
    return out


def _number(text: str, locale: Locale) -> Typed | None:
    negative = False
    text = _plain(text, locale)
    if text.startswith("(") and text.endswith(")") and len(text) > 2:
        negative, text = True, text[1:-1]
    currency = ""
    for _ in range(2):
        if text[:1] in "+-" and text:
            if text[0] == "-":
                negative = not negative
            text = text[1:].lstrip()
        if text[:1] in _CURRENCIES and not currency:
            currency, text = text[0], text[1:].lstrip()
    if text[-1:] in _CURRENCIES and not currency:
        currency, text = text[-1], text[:-1].rstrip()
    percent = text.endswith("%")
    if percent:
        text = text[:-1].rstrip()
    elif text.startswith("%"):
        percent, text = True, text[1:]
    match = _NUMBER.fullmatch(text)
    if match is None or (match.group(1) is None and (match.group(2) or ".") == "."):
        return None
    whole, fraction, exponent = match.groups()
    value = float(text.replace(",", ""))
    if negative:
        value = -value
    if value in (float("inf"), float("-inf")):
        return None
    decimals = bool(fraction) and len(fraction) > 1
    if percent:
        return Typed(value / 100, {"type": "PERCENT", "pattern": "0.00%" if decimals else "0%"})
    if currency:
        pattern = _CURRENCIES[currency] + ("#,##0.00" if decimals else "#,##0")
        return Typed(value, {"type": "CURRENCY", "pattern": pattern})
    if exponent is not None:
        return Typed(value, {"type": "SCIENTIFIC", "pattern": "0.00E+00"})
    if whole and "," in whole:
        return Typed(value, {"type": "NUMBER", "pattern": "#,##0.00" if decimals else "#,##0"})
    return Typed(value)


def _moment(text: str, year: int | None, locale: Locale) -> Typed | None:
    time = _time(text)
    if time is not None:
        kind = "TIME"
        return Typed(time[0], {"type": kind, "pattern": time[1]})
    date = _date(text, year, locale)
    if date is not None:
        return Typed(date[0], {"type": "DATE", "pattern": date[1]})
    head, space, tail = text.partition(" ")
    while space:
        date = _date(head.rstrip(","), year, locale)
        time = _time(tail.strip())
        if date is not None and time is not None and time[0] < 1:
            return Typed(date[0] + time[0], {"type": "DATE_TIME", "pattern": f"{date[1]} {time[1]}"})
        more, space, tail = tail.partition(" ")
        head = f"{head} {more}"
    return None


def _time(text: str) -> tuple[float, str] | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second, fraction, half, bare, bare_half = match.groups()
    if bare is not None:
        hour, minute, half = bare, "0", bare_half
    h, m, s = int(hour), int(minute), int(second or 0)
    if m > 59 or s > 59:
        return None
    pattern = "hh" if len(hour) == 2 and hour[0] == "0" else "h"
    pattern += ":mm" + (":ss" if second else "") + (".000" if fraction else "")
    if half:
        if not 1 <= h <= 12:
            return None
        h = h % 12 + (12 if half.lower() == "p" else 0)
        pattern += " AM/PM"
    elif h > 23:
        pattern = "[h]" + pattern.lstrip("h")
    return (h * 3600 + m * 60 + s + float(fraction or 0)) / 86400, pattern


def _date(text: str, year: int | None, locale: Locale) -> tuple[float, str] | None:
    if "." in locale.date and re.fullmatch(r"\d{1,2}\.\d{1,2}\.?", text):
        day, month = text.rstrip(".").split(".")
        return _read_date((day, ".", month), "md", year, day_first=locale.order == "dmy")
    for expression, order in _DATE:
        match = expression.fullmatch(text)
        if match is None:
            continue
        found = _read_date(match.groups(), order, year, day_first=locale.order == "dmy")
        if found is not None:
            return found
    return None


def _read_date(
    groups: tuple[str, ...], order: str, this_year: int | None, *, day_first: bool
) -> tuple[float, str] | None:
    year_now = this_year or datetime.now().year  # noqa: DTZ005 - only where no clock is told
    match order:
        case "ymd":
            y, mark, m, d = groups
            pattern = f"yyyy{mark}{_unit('m', m)}{mark}{_unit('d', d)}"
            return _serial(int(y), int(m), int(d), pattern)
        case "mdy":
            m, mark, d, y = groups
            years = "yyyy" if len(y) == 4 else "yy"
            if day_first:
                d, m = m, d
                return _serial(_year(y), int(m), int(d), f"{_unit('d', d)}{mark}{_unit('m', m)}{mark}{years}")
            return _serial(_year(y), int(m), int(d), f"{_unit('m', m)}{mark}{_unit('d', d)}{mark}{years}")
        case "md":
            m, mark, d = groups
            if day_first:
                d, m = m, d
                return _serial(year_now, int(m), int(d), f"{_unit('d', d)}{mark}{_unit('m', m)}")
            return _serial(year_now, int(m), int(d), f"{_unit('m', m)}{mark}{_unit('d', d)}")
        case "Mdy":
            name, d, y = groups
            return _serial(int(y), _month(name), int(d), f"{_name(name)} d, yyyy")
        case "dMy":
            d, mark, name, y = groups
            mark = mark[0]
            years = "yyyy" if len(y) == 4 else "yy"
            return _serial(_year(y), _month(name), int(d), f"{_unit('d', d)}{mark}{_name(name)}{mark}{years}")
        case "Md":
            name, d = groups
            return _serial(year_now, _month(name), int(d), f"{_name(name)} d")
        case "dM":
            d, mark, name = groups
            return _serial(year_now, _month(name), int(d), f"d{mark}{_name(name)}")
        case _:
            name, y = groups
            return _serial(int(y), _month(name), 1, f"{_name(name)} yyyy")


def _unit(letter: str, text: str) -> str:
    return letter * 2 if len(text) == 2 and text[0] == "0" else letter


def _month(name: str) -> int:
    return _MONTHS.get(name.lower(), 0)


def _name(name: str) -> str:
    return "mmm" if len(name) <= 4 and name.lower() != "june" and name.lower() != "july" else "mmmm"


def _year(text: str) -> int:
    value = int(text)
    if len(text) == 4:
        return value
    return 2000 + value if value < 30 else 1900 + value


def _serial(year: int, month: int, day: int, pattern: str) -> tuple[float, str] | None:
    try:
        return to_serial(datetime(year, month, day)), pattern  # noqa: DTZ001 - a sheet's dates have no zone
    except ValueError:
        return None
