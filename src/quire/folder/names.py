"""File names from ids, and ids from file names: no two ids share a name.

What a file system keeps as it is stays readable; every other character becomes ``%`` and the hex of its UTF-8 bytes. A
name that would be too long is cut and closed with ``~`` and a hash of the whole id: such a name is still the id's own,
but the id is read from within the file, or from the table, not from the name.

On a file system that tells upper from lower case, which is asked of it, ids keep their letters. Elsewhere (*portable*
names) the names are different even for those who do not see the case: the pattern of capitals follows as ``~c`` and a
hex number, and what Windows forbids is escaped.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

#: Bytes of an encoded id. Together with what stands around it a file name stays under 255 bytes.
LIMIT: Final = 180

#: Never as it is: what separates, what escapes, what shells and other systems take for something else, what is unseen.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f/\\\\%~*?<>\"'`"
    "\u0080-\u00a0\u00ad\u061c\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufe00-\ufe0f\ufeff\ufff0-\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_UNSAFE_ANYWHERE = re.compile(f"{_UNSAFE.pattern}|[:|]|[^\x00-\x7f]")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_ESCAPED = re.compile(r"(?:%[0-9A-F]{2})+")
_CASE = re.compile(r"~c([0-9a-f]+)$")
_HASH = re.compile(r"~[0-9a-f]{32}$")


class Names:
    """How ids are spelt in file names. ``portable``: safe on every file system, also one that ignores case."""

    def __init__(self, *, portable: bool = False) -> None:
        self.portable = portable
        self._unsafe = _UNSAFE_ANYWHERE if portable else _UNSAFE

    def encode(self, text: str, limit: int = LIMIT) -> str:
        """The part of a file name that stands for ``text``, of at most ``limit`` bytes."""
        name = self._unsafe.sub(_escape, text) or "%"
        if name[0] == "." or (self.portable and _DEVICES.match(name)):
            name = _escape(name[0]) + name[1:]
        if self.portable and name[-1] in ". ":
            name = name[:-1] + _escape(name[-1])
        tail = _capitals(text) if self.portable else ""
        if len(name.encode()) + len(tail) <= limit:
            return name + tail
        return _cut(name, limit - 33) + "~" + hashlib.sha256(_bytes(text)).hexdigest()[:32]


def decode(name: str) -> str | None:
    """The id that this name stands for; None if the name holds only its beginning."""
    if _HASH.search(name):
        return None
    capitals = _CASE.search(name)
    if capitals is not None:
        name = name[: capitals.start()]
    if name == "%":
        return ""
    text = _ESCAPED.sub(_unescape, name)
    return text if capitals is None else _capitalised(text, int(capitals[1], 16))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _escape(found: re.Match[str] | str) -> str:
    text = found if isinstance(found, str) else found[0]
    return "".join(f"%{byte:02X}" for byte in _bytes(text))


def _unescape(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogatepass")


def _letters(text: str) -> list[int]:
    return [place for place, letter in enumerate(text) if letter.isascii() and letter.isalpha()]


def _capitals(text: str) -> str:
    """Which of the letters A to Z are capitals, as the bits of a number; nothing if none is."""
    pattern = sum(text[place].isupper() << bit for bit, place in enumerate(_letters(text)))
    return f"~c{pattern:x}" if pattern else ""


def _capitalised(text: str, pattern: int) -> str:
    letters = list(text)
    for bit, place in enumerate(_letters(text)):
        letters[place] = letters[place].upper() if pattern >> bit & 1 else letters[place].lower()
    return "".join(letters)


def _cut(name: str, limit: int) -> str:
    """Return the beginning of a name, not within a character or an escape."""
    text = name.encode()[:limit].decode(errors="ignore")
    return re.sub(r"%.?$", "", text)
