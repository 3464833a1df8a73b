"""Locales of a spreadsheet: how numbers and dates are written, and how formulas are punctuated.

Inside the emulator formulas are kept as en_US writes them; they are turned round when they come in and go out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_NBSP, _NARROW = "\u00a0", "\u202f"
#: Stands in a kept formula for a comma that its locale does not know there, so that it cannot be read.
_STRAY = "\ue000"


@dataclass(frozen=True)
class Locale:
    name: str = "en_US"
    decimal: str = "."
    group: str = ","
    #: In which order a date of three numbers is read.
    order: str = "mdy"
    date: str = "m/d/yyyy"
    time: str = "h:mm:ss AM/PM"
    moment: str = "h:mm:ss"
    currency: str = '"$"#,##0.00'
    true: str = "TRUE"
    false: str = "FALSE"

    @property
    def comma(self) -> bool:
        """Whether the comma divides a number, so that formulas divide their arguments by semicolons."""
        return self.decimal == ","


EN = Locale()

_DAY_FIRST = {"order": "dmy", "date": "dd/mm/yyyy", "time": "hh:mm:ss", "moment": "hh:mm:ss"}
_YEAR_FIRST = {"order": "ymd", "date": "yyyy-mm-dd", "time": "h:mm:ss", "moment": "h:mm:ss"}
_COMMA = {"decimal": ",", "group": "."}
_SPACED = {"decimal": ",", "group": _NBSP}
_EURO = {"currency": "#,##0.00[$ €]"}


def _dotted(day: str = "dd.mm.yyyy") -> dict[str, str]:
    return {**_DAY_FIRST, "date": day}


def _words(true: str, false: str) -> dict[str, str]:
    return {"true": true, "false": false}


_GERMAN = {**_dotted(), **_COMMA, **_words("WAHR", "FALSCH")}
_SPANISH = {**_DAY_FIRST, **_COMMA, **_words("VERDADERO", "FALSO"), "date": "d/m/yyyy", "time": "h:mm:ss",
            "moment": "h:mm:ss"}  # fmt: skip

_KNOWN: dict[str, dict[str, str]] = {
    "en_US": {},
    "en_GB": {**_DAY_FIRST, "currency": "[$£]#,##0.00"},
    "en_IE": {**_DAY_FIRST, "currency": "[$€]#,##0.00"},
    "en_AU": {**_DAY_FIRST, "date": "d/mm/yyyy"},
    "en_NZ": {**_DAY_FIRST, "date": "d/mm/yyyy"},
    "en_CA": {**_YEAR_FIRST, "time": "h:mm:ss AM/PM"},
    "en_IN": {**_DAY_FIRST, "date": "dd/mm/yyyy", "currency": "[$₹]#,##0.00"},
    "en_ZA": {**_SPACED, **_YEAR_FIRST, "date": "yyyy/mm/dd"},
    "en_PH": {},
    "fr_FR": {**_DAY_FIRST, **_EURO, "decimal": ",", "group": _NARROW, **_words("VRAI", "FAUX")},
    "fr_CA": {**_YEAR_FIRST, **_SPACED, **_words("VRAI", "FAUX")},
    "fr_BE": {**_DAY_FIRST, **_EURO, "decimal": ",", "group": _NARROW, **_words("VRAI", "FAUX")},
    "de_DE": {**_GERMAN, **_EURO},
    "de_AT": {**_GERMAN, **_EURO, "group": _NBSP},
    "de_CH": {**_dotted(), "group": "’", **_words("WAHR", "FALSCH")},
    "es_ES": {**_SPANISH, **_EURO},
    "es_AR": _SPANISH,
    "es_CL": _SPANISH,
    "es_CO": _SPANISH,
    "es_MX": {**_SPANISH, "decimal": ".", "group": ",", "date": "dd/mm/yyyy"},
    "it_IT": {**_DAY_FIRST, **_COMMA, **_EURO, **_words("VERO", "FALSO")},
    "pt_BR": {**_DAY_FIRST, **_COMMA, **_words("VERDADEIRO", "FALSO"), "currency": '"R$ "#,##0.00'},
    "pt_PT": {**_DAY_FIRST, **_SPACED, **_EURO, **_words("VERDADEIRO", "FALSO")},
    "nl_NL": {**_DAY_FIRST, **_COMMA, "date": "d-m-yyyy", "currency": "[$€ ]#,##0.00", **_words("WAAR", "ONWAAR")},
    "pl_PL": {**_dotted("d.mm.yyyy"), **_SPACED, **_words("PRAWDA", "FAŁSZ")},
    "ru_RU": {**_dotted(), **_SPACED, **_words("ИСТИНА", "ЛОЖЬ")},
    "uk_UA": {**_dotted(), **_SPACED, **_words("ІСТИНА", "ХИБНІСТЬ")},
    "cs_CZ": {**_dotted("d.m.yyyy"), **_SPACED, **_words("PRAVDA", "NEPRAVDA")},
    "sk_SK": {**_dotted("d.m.yyyy"), **_SPACED},
    "sl_SI": {**_dotted("d.m.yyyy"), **_COMMA},
    "hr_HR": {**_dotted("dd.mm.yyyy."), **_COMMA},
    "sr_RS": {**_dotted("d.m.yyyy."), **_COMMA},
    "ro_RO": {**_dotted(), **_COMMA},
    "bg_BG": {**_dotted("d.mm.yyyy"), **_SPACED},
    "hu_HU": {**_SPACED, "order": "ymd", "date": "yyyy.mm.dd", "time": "h:mm:ss", "moment": "h:mm:ss"},
    "el_GR": {**_DAY_FIRST, **_COMMA, **_EURO, "date": "d/m/yyyy"},
    "tr_TR": {**_dotted("dd.mm.yyyy"), **_COMMA, **_words("DOĞRU", "YANLIŞ")},
    "sv_SE": {**_YEAR_FIRST, **_SPACED, "time": "hh:mm:ss", "moment": "hh:mm:ss", **_words("SANT", "FALSKT")},
    "da_DK": {**_dotted("dd.mm.yyyy"), **_COMMA, **_words("SAND", "FALSK")},
    "nb_NO": {**_dotted(), **_SPACED, **_words("SANN", "USANN")},
    "no_NO": {**_dotted(), **_SPACED, **_words("SANN", "USANN")},
    "nn_NO": {**_dotted(), **_SPACED},
    "fi_FI": {**_dotted("d.m.yyyy"), **_SPACED, **_words("TOSI", "EPÄTOSI")},
    "et_EE": {**_dotted(), **_SPACED},
    "lv_LV": {**_dotted(), **_SPACED},
    "lt_LT": {**_YEAR_FIRST, **_SPACED},
    "id_ID": {**_DAY_FIRST, **_COMMA},
    "vi_VN": {**_DAY_FIRST, **_COMMA},
    "th_TH": {**_DAY_FIRST},
    "ja_JP": {**_YEAR_FIRST, "date": "yyyy/mm/dd", "currency": "[$¥]#,##0"},
    "ko_KR": {**_YEAR_FIRST, "date": "yyyy. m. d", "currency": "[$₩]#,##0"},
    "zh_CN": {**_YEAR_FIRST, "date": "yyyy/m/d", "currency": "[$¥]#,##0.00"},
    "zh_TW": {**_YEAR_FIRST, "date": "yyyy/m/d"},
    "zh_HK": {**_DAY_FIRST, "date": "d/m/yyyy"},
    "iw_IL": {**_DAY_FIRST, "date": "dd/mm/yyyy"},
    "he_IL": {**_DAY_FIRST, "date": "dd/mm/yyyy"},
    "ar_EG": {**_DAY_FIRST},
    "ca_ES": {**_SPANISH, **_EURO},
    "hi_IN": {**_DAY_FIRST},
}  # fmt: skip

#: The countries of languages that may be named without one.
_ALONE = {name.partition("_")[0]: name for name in reversed(_KNOWN)} | {
    "en": "en_US", "fr": "fr_FR", "de": "de_DE", "es": "es_ES", "pt": "pt_BR", "zh": "zh_CN", "fil": "en_PH",
}  # fmt: skip


def known(name: str) -> bool:
    return name in _KNOWN or name in _ALONE or (name.partition("_")[0] in _ALONE and _country(name))


_COUNTRIES = frozenset(re.findall(r"\w+", "AE BE BO CH CR DO EC GT HK HN KZ LU MA MY NI PA PE PR PY SA SG SV UY VE"))


def _country(name: str) -> bool:
    """Whether a known language stands with another country that Sheets lists."""
    return name.partition("_")[2] in _COUNTRIES


@lru_cache(maxsize=256)
def of(name: str) -> Locale:
    found = _KNOWN.get(name) or _KNOWN.get(_ALONE.get(name.partition("_")[0], ""), {})
    return Locale(name, **found)


_QUOTED = r"""(?P<string>"(?:[^"]|"")*"|'(?:[^']|'')*')"""
_MARKS = r"(?P<mark>[,;\\{}])"
_TYPED = re.compile(_QUOTED + r"|(?P<number>(?<![\w.])\d+,\d+)|" + _MARKS)
_KEPT = re.compile(_QUOTED + r"|(?P<number>(?<![\w.])\d*\.\d+)|" + _MARKS)


def kept(formula: str, locale: Locale) -> str:
    """A formula as en_US writes it, from what was typed in a locale."""
    if not locale.comma:
        return formula
    depth = 0

    def turned(match: re.Match[str]) -> str:
        nonlocal depth
        text = match.group()
        if match.lastgroup == "number":
            return text.replace(",", ".")
        if match.lastgroup == "mark":
            depth += (text == "{") - (text == "}")
            if text == ",":
                return _STRAY
            if text == "\\":
                return "," if depth else text
            if text == ";":
                return ";" if depth else ","
        return text

    return _TYPED.sub(turned, formula)


def written(formula: str, locale: Locale) -> str:
    """A kept formula as its locale writes it."""
    if not locale.comma:
        return formula
    depth = 0

    def turned(match: re.Match[str]) -> str:
        nonlocal depth
        text = match.group()
        if match.lastgroup == "number":
            return text.replace(".", ",")
        if match.lastgroup == "mark":
            depth += (text == "{") - (text == "}")
            if text == ",":
                return "\\" if depth else ";"
        return text

    return _KEPT.sub(turned, formula).replace(_STRAY, ",")
