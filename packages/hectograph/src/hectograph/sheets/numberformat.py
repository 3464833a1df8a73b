"""Number formats: how a value is shown, from patterns such as ``#,##0.00``, ``0%``, ``yyyy-mm-dd`` and ``[h]:mm``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hectograph.sheets.cell import CellError, Value
from hectograph.sheets.locales import EN, Locale
from hectograph.sheets.serial import from_serial

#: The pattern of a type that has none of its own and none of its locale's.
DEFAULTS = {
    "NUMBER": "#,##0.00",
    "PERCENT": "0.00%",
    "SCIENTIFIC": "0.00E+00",
    "TEXT": "@",
}

DATE_TYPES = {"DATE", "TIME", "DATE_TIME"}

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

#: Room for the largest number that a cell can hold.
_WIDE = Context(prec=700)

_PIECE = re.compile(
    r"""(?P<quoted>"[^"]*")|(?P<escaped>\\.)|(?P<bracket>\[[^\]]*\])|(?P<ampm>am/pm|a/p)
    |(?P<date>y+|m+|d+|h+|s+(?:\.0+)?)|(?P<skip>_.|\*.)|(?P<digits>[0#?][0#?,]*(?:\.[0#?]*,*)?|\.[0#?]+)
    |(?P<exponent>e[+-]?0+)|(?P<percent>%)|(?P<text>@)|(?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def general(value: float) -> str:
    """A number without a format: ten significant digits, whole numbers in full up to fifteen."""
    if math.isnan(value) or math.isinf(value):
        return "#NUM!"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    size = abs(value)
    if size >= 1e15 or size < 1e-9:
        mantissa, exponent = f"{value:.5E}".split("E")
        return f"{mantissa.rstrip('0').rstrip('.')}E{exponent[0]}{int(exponent[1:]):02d}"
    places = max(0, 9 - math.floor(math.log10(size)))
    text = format(Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown(value: Value, form: Mapping[str, Any] | None, locale: Locale = EN) -> str:
    """What the cell displays."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return locale.true if value else locale.false
    if isinstance(value, CellError):
        return value.code
    pattern = pattern_of(form, locale)
    if isinstance(value, str):
        return _text(value, pattern)
    if pattern is None or pattern == "@" or pattern.lower() == "general":
        return general(value).replace(".", locale.decimal)
    return number(value, pattern, locale)


def pattern_of(form: Mapping[str, Any] | None, locale: Locale = EN) -> str | None:
    if not form:
        return None
    kind = form.get("type", "")
    own = {
        "DATE": locale.date,
        "TIME": locale.time,
        "DATE_TIME": f"{locale.date} {locale.moment}",
        "CURRENCY": locale.currency,
    }
    return form.get("pattern") or own.get(kind) or DEFAULTS.get(kind)


def is_date(form: Mapping[str, Any] | None) -> bool:
    return form is not None and form.get("type") in DATE_TYPES


def _text(value: str, pattern: str | None) -> str:
    if pattern is None or "@" not in pattern:
        return value
    section = pattern.split(";")[-1]
    out = ""
    for kind, piece in _pieces(section):
        out += value if kind == "text" else _literal(kind, piece)
    return out


@lru_cache(maxsize=1024)
def _pieces(section: str) -> tuple[tuple[str, str], ...]:
    return tuple((str(match.lastgroup), match.group()) for match in _PIECE.finditer(section))


@lru_cache(maxsize=1024)
def _sections(pattern: str) -> tuple[str, ...]:
    out, current, quoted = [], "", False
    for char in pattern:
        if char == '"':
            quoted = not quoted
        if char == ";" and not quoted:
            out.append(current)
            current = ""
        else:
            current += char
    return (*out, current)


def _literal(kind: str, piece: str) -> str:
    if kind == "quoted":
        return piece[1:-1]
    if kind == "escaped":
        return piece[1:]
    if kind == "bracket":
        inner = piece[1:-1]
        return inner[1:].split("-")[0] if inner.startswith("$") else ""
    if kind == "skip":
        return " " if piece[0] == "_" else ""
    return piece


def number(value: float, pattern: str, locale: Locale = EN) -> str:
    sections = _sections(pattern)
    section, sign = sections[0], "-" if value < 0 else ""
    if len(sections) > 1 and value < 0:
        section, sign = sections[1], ""
    elif len(sections) > 2 and value == 0:
        section = sections[2]
    pieces = _pieces(section)
    kinds = {kind for kind, _ in pieces}
    elapsed = any(kind == "bracket" and re.fullmatch(r"\[[hms]+\]", text, re.IGNORECASE) for kind, text in pieces)
    if "date" in kinds or elapsed:
        return _date(value, pieces)
    fraction = _FRACTION.search(section)
    if fraction is not None:
        return sign + _fraction(abs(value), section, fraction)
    return sign + _plain(abs(value), pieces, locale)


#: A whole part, if wanted, and a fraction whose signs say how many digits it may have.
_FRACTION = re.compile(r"(?:([#0?]+) +)?[#?0]+ */ *([#?]+|\d+)")


def _fraction(value: float, section: str, match: re.Match[str]) -> str:
    below = match.group(2)
    whole = math.floor(value) if match.group(1) else 0
    if below.isdigit():
        top, bottom = round((value - whole) * int(below)), int(below)
    else:
        near = Fraction(value - whole).limit_denominator(10 ** len(below) - 1)
        top, bottom = near.numerator, near.denominator
    if match.group(1) and top == bottom:
        whole, top = whole + 1, 0
    parts = [str(whole)] if whole or not top else []
    text = " ".join(parts + ([f"{top}/{bottom}"] if top or not match.group(1) else []))
    return section[: match.start()] + text + section[match.end() :]


def _plain(value: float, pieces: tuple[tuple[str, str], ...], locale: Locale) -> str:
    percents = sum(1 for kind, _ in pieces if kind == "percent")
    amount = Decimal(repr(value)) * (100**percents)
    exponent = next((text for kind, text in pieces if kind == "exponent"), None)
    out, done = "", False
    for kind, text in pieces:
        if kind == "digits":
            if done:
                continue
            done = True
            out += _marked(_scientific(value, text, exponent) if exponent else _digits(amount, text), locale)
        elif kind == "exponent":
            continue
        elif kind == "text":
            out += general(value)
        else:
            out += _literal(kind, text)
    return out


def _marked(text: str, locale: Locale) -> str:
    """The marks of en_US turned into the locale's."""
    if locale.decimal == "." and locale.group == ",":
        return text
    return "".join(locale.decimal if char == "." else locale.group if char == "," else char for char in text)


def _digits(amount: Decimal, pattern: str) -> str:
    while pattern.endswith(","):
        pattern, amount = pattern[:-1], amount / 1000
    whole, _, fraction = pattern.partition(".")
    rounded = amount.quantize(Decimal(1).scaleb(-len(fraction)), ROUND_HALF_UP, _WIDE)
    left, _, right = format(rounded, "f").partition(".")
    least = whole.replace(",", "").count("0")
    left = left.lstrip("0").rjust(least, "0")
    if "," in whole:
        left = re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", left)
    needed = len(fraction.rstrip("#?"))
    while len(right) > needed and right.endswith("0"):
        right = right[:-1]
    return left + ("." + right if right or ("." in pattern and needed) else "")


def _scientific(value: float, pattern: str, exponent: str) -> str:
    places = len(pattern.partition(".")[2])
    power = 0 if value == 0 else math.floor(math.log10(value))
    mantissa = f"{value / 10**power:.{places}f}"
    if float(mantissa) >= 10:
        power += 1
        mantissa = f"{value / 10**power:.{places}f}"
    sign = "-" if power < 0 else "+" if "+" in exponent else ""
    return f"{mantissa}E{sign}{abs(power):0{exponent.count('0')}d}"


def _date(value: float, pieces: tuple[tuple[str, str], ...]) -> str:
    has_fraction = any(kind == "date" and "." in text for kind, text in pieces)
    moment = from_serial(value if has_fraction else round(value * 86400) / 86400)
    seconds_total = round(value * 86400)
    half = any(kind == "ampm" for kind, _ in pieces)
    out, last = "", ""
    for index, (kind, text) in enumerate(pieces):
        if kind == "date":
            low = text.lower()
            if low[0] == "m" and len(low) <= 2 and (last.startswith("h") or _before_seconds(pieces, index)):
                out += f"{moment.minute:02d}" if len(low) == 2 else str(moment.minute)
            else:
                out += _date_piece(moment, low, half)
            last = low
        elif kind == "bracket" and re.fullmatch(r"\[[hms]+\]", text, re.IGNORECASE):
            unit = text[1].lower()
            amount = seconds_total // {"h": 3600, "m": 60, "s": 1}[unit]
            out += str(amount).rjust(len(text) - 2, "0")
            last = unit
        elif kind == "ampm":
            out += ("AM" if moment.hour < 12 else "PM") if "m" in text.lower() else ("A" if moment.hour < 12 else "P")
        else:
            out += _literal(kind, text)
    return out


def _before_seconds(pieces: tuple[tuple[str, str], ...], index: int) -> bool:
    for kind, text in pieces[index + 1 :]:
        if kind == "date":
            return text.lower().startswith("s")
    return False


def _date_piece(moment: datetime, low: str, half: bool) -> str:
    size = len(low)
    match low[0]:
        case "y":
            return f"{moment.year % 100:02d}" if size <= 2 else f"{moment.year:04d}"
        case "m":
            name = _MONTHS[moment.month - 1]
            return [str(moment.month), f"{moment.month:02d}", name[:3], name, name[0]][min(size, 5) - 1]
        case "d":
            name = _DAYS[moment.weekday()]
            return [str(moment.day), f"{moment.day:02d}", name[:3], name][min(size, 4) - 1]
        case "h":
            hour = (moment.hour % 12 or 12) if half else moment.hour
            return f"{hour:02d}" if size >= 2 else str(hour)
        case _:
            whole, _, fraction = low.partition(".")
            text = f"{moment.second:02d}" if len(whole) >= 2 else str(moment.second)
            if fraction:
                text += "." + f"{moment.microsecond:06d}"[: len(fraction)].ljust(len(fraction), "0")
            return text
