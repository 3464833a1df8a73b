"""Texts as Google's editors count them: in UTF-16 code units. A letter outside the basic plane takes two."""

from __future__ import annotations

from collections.abc import Iterable


def code_units(text: str) -> list[str]:
    """Return the code units of a text, each as one character."""
    out: list[str] = []
    for letter in text:
        code = ord(letter)
        if code < 0x10000:
            out.append(letter)
        else:
            code -= 0x10000
            out += [chr(0xD800 + (code >> 10)), chr(0xDC00 + (code & 0x3FF))]
    return out


def size(text: str) -> int:
    """Return how many code units a text has."""
    return len(text) + sum(ord(letter) > 0xFFFF for letter in text)


def text_of(units: Iterable[str]) -> str:
    """Return the text of code units."""
    return "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def splits_letter(before: str, after: str) -> bool:
    """Whether two units are the halves of one letter."""
    return "\ud800" <= before < "\udc00" <= after < "\ue000"
