"""Placeholders and the values that take their places: what documents, decks and sheets have in common.

A placeholder is ``{{name}}``. Before anything is written, each placeholder is held against the values and the other way
round, and a near miss is named, for a template is made by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from quire.errors import did_you_mean
from quire.workflows.retry import Fail
from quire.workspace.locales import LOCALES, in_locale

PLACE = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}")
#: Braces that look like ours and are others, as a keyboard of another language types them.
_ODD = re.compile(r"[｛❴⦃﹛{]{2}\s*[\w.-]+\s*[｝❵⦄﹜}]{2}")
_CONTROL = re.compile(r"[\x00-\x08\x0c-\x1f\ue000-\uf8ff]")


def name_of(place: str) -> str:
    """The name within a placeholder."""
    match = PLACE.fullmatch(place)
    assert match is not None
    return match[1]


def shown(name: str, value: Any, locale: str = "") -> str:
    """The text that stands for a value. What Google would strip in silence is left out here already."""
    if locale and locale not in LOCALES:
        raise Fail(f"{locale!r} is no locale{did_you_mean(locale, LOCALES)}; it may be {', '.join(LOCALES)}")
    if value is None:
        raise Fail(f"the value of {name!r} is None; give an empty text if nothing is to stand there")
    if isinstance(value, date | int | float | Decimal) and not isinstance(value, bool):
        return in_locale(value, locale)
    return _CONTROL.sub("", str(value))


def compare(
    places: Iterable[str], names: Iterable[str], title: str, *, missing: str = "fail", extra: str = "fail"
) -> None:
    """Refuse placeholders without a value and values without a placeholder, unless they may stay and be left out."""
    for option, said, words in (("missing", missing, ("fail", "keep")), ("extra", extra, ("fail", "ignore"))):
        if said not in words:
            raise Fail(f"{option} is {said!r}; it may be {' or '.join(map(repr, words))}")
    wanted, given = {name_of(place) for place in places}, set(names)
    for name in sorted(given - wanted) if extra == "fail" else ():
        known = did_you_mean(name, wanted) if wanted else "; it has none"
        raise Fail(f"the document {title!r} has no placeholder {{{{{name}}}}}{known}")
    for name in sorted(wanted - given) if missing == "fail" else ():
        raise Fail(f"there is no value for {{{{{name}}}}} of the document {title!r}{did_you_mean(name, given)}")


def check_braces(texts: Iterable[str], title: str) -> None:
    """Refuse what looks like a placeholder to people, and is none to anybody else."""
    for text in texts:
        for found in _ODD.finditer(text):
            if not PLACE.search(found[0]):
                raise Fail(f"the document {title!r} has {found[0]}, whose braces are other characters; type {{{{…}}}}")


def check_plain(texts: Mapping[str, str]) -> None:
    """Refuse values that would be taken for placeholders, where each value replaces a text."""
    for name, text in texts.items():
        if "{{" in text:
            raise Fail(f"the value of {name!r} holds '{{{{': it would be taken for a placeholder")


def replacing(kind: str, wanted: Mapping[str, str], of: Mapping[str, str]) -> list[dict[str, Any]]:
    """The requests of Docs and Slides that replace each placeholder as it is written. ``wanted``: place to name."""
    return [
        {kind: {"containsText": {"text": place, "matchCase": True}, "replaceText": of[name]}}
        for place, name in wanted.items()
    ]
