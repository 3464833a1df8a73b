"""Dates and numbers as people of a language write them. A document at Google does not say its language to programs."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple


class Locale(NamedTuple):
    """How a language writes dates and numbers."""

    months: str
    #: Where day, month and year stand.
    pattern: str
    decimal: str
    group: str

    def date(self, day: date) -> str:
        return self.pattern.format(d=day.day, m=self.months.split()[day.month - 1], y=day.year)


_NBSP = "\u00a0"
LOCALES = {
    "en": Locale(
        "January February March April May June July August September October November December", "{d} {m} {y}", ".", ","
    ),
    "en-US": Locale(
        "January February March April May June July August September October November December",
        "{m} {d}, {y}",
        ".",
        ",",
    ),
    "de": Locale(
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember", "{d}. {m} {y}", ",", "."
    ),
    "fr": Locale(
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "{d} {m} {y}",
        ",",
        _NBSP,
    ),
    "es": Locale(
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "{d} de {m} de {y}",
        ",",
        ".",
    ),
    "it": Locale(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "{d} {m} {y}",
        ",",
        ".",
    ),
    "nl": Locale(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "{d} {m} {y}",
        ",",
        ".",
    ),
    "pt": Locale(
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "{d} de {m} de {y}",
        ",",
        ".",
    ),
}


def in_locale(value: date | float | Decimal, locale: str) -> str:
    """Return the value as it is written there. Without a locale numbers stay as they are, and dates are English."""
    known = LOCALES[locale or "en"]
    if isinstance(value, datetime):
        time = f"{value:%H:%M}"
        return known.date(value) + (f", {time}" if time != "00:00" else "")
    if isinstance(value, date):
        return known.date(value)
    if not locale:
        return str(value)
    swapped = {",": known.group, ".": known.decimal}
    return "".join(swapped.get(letter, letter) for letter in f"{value:,}")
