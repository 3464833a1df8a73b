"""Names as parts of an address, so that every name of a record can stand in a URL.

An example: the record ``a/b`` is shown at ``/api/records/a%2Fb``, and the record ``..`` at ``/api/records/%1E..``.
"""

from __future__ import annotations

from urllib.parse import quote

#: Stands for a slash inside a name while an address is taken apart. No name holds it.
SLASH = "\x1f"
#: Stands before ``.`` and ``..``, which browsers and HTTP libraries take out of an address. No name begins with it.
DOTS = "\x1e"


def part_of(name: str) -> str:
    """Return the part of an address that stands for this name."""
    return quote(DOTS + name if name in (".", "..") else name, safe="")


def name_of(part: str) -> str:
    """Return the name that a decoded part of an address stands for."""
    return part.removeprefix(DOTS).replace(SLASH, "/")
