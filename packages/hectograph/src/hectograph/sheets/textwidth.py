"""How wide a text is on the screen, so that a column can be fitted to it.

Widths are those of a plain sans-serif face in thousandths of its size. The scale and the margin are fitted to one
recorded answer (1,024 capital A's are 8,691 pixels), so other widths are near, not exact.
"""

from __future__ import annotations

_WIDTHS: dict[str, int] = {}
for _width, _chars in (
    (222, "ijl'|"),
    (278, " !,./:;[]\\`ftI"),
    (333, "()-r"),
    (389, "*"),
    (500, "cksvxyzJ"),
    (556, "0123456789#$?_abdeghnopquL"),
    (584, "+<=>~^"),
    (611, "FTZ"),
    (652, "A"),
    (667, "&BEKPSVXY"),
    (722, "wCDHNRU"),
    (778, "GOQ"),
    (833, "mM"),
    (889, "%"),
    (944, "W"),
    (1015, "@"),
):
    _WIDTHS.update(dict.fromkeys(_chars, _width))
_WIDTHS["A"] = 652

_PIXELS = 13.0 * 1336 / 2048 / 0.652
_MARGIN = 7


def column_width(text: str, font_size: float = 10) -> int:
    """The width of a column that holds a text, its longest line counting."""
    widest = max((sum(_WIDTHS.get(char, 600) for char in line) for line in text.split("\n")), default=0)
    return round(widest / 1000 * _PIXELS * font_size / 10) + _MARGIN
