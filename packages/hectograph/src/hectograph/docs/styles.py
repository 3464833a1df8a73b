"""How a new document looks: what Google answers for one that nobody has styled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def points(magnitude: float) -> dict[str, Any]:
    """Return a length; a length of nothing has no magnitude."""
    return {"magnitude": magnitude, "unit": "PT"} if magnitude else {"unit": "PT"}


SECTION: Mapping[str, Any] = {
    "columnSeparatorStyle": "NONE",
    "contentDirection": "LEFT_TO_RIGHT",
    "sectionType": "CONTINUOUS",
}

DOCUMENT: dict[str, Any] = {
    "background": {"color": {}},
    "pageNumberStart": 1,
    "marginTop": points(72),
    "marginBottom": points(72),
    "marginRight": points(72),
    "marginLeft": points(72),
    "pageSize": {"height": points(792), "width": points(612)},
    "marginHeader": points(36),
    "marginFooter": points(36),
    "useCustomHeaderFooterMargins": True,
    "documentFormat": {"documentMode": "PAGES"},
}

_BORDER = {"color": {}, "width": points(0), "padding": points(0), "dashStyle": "SOLID"}
_BLACK: dict[str, Any] = {"color": {"rgbColor": {}}}


def _grey(share: float) -> dict[str, Any]:
    return {"color": {"rgbColor": {"red": share, "green": share, "blue": share}}}


_NORMAL_TEXT: dict[str, Any] = {
    "bold": False,
    "italic": False,
    "underline": False,
    "strikethrough": False,
    "smallCaps": False,
    "backgroundColor": {},
    "foregroundColor": _BLACK,
    "fontSize": points(11),
    "weightedFontFamily": {"fontFamily": "Arial", "weight": 400},
    "baselineOffset": "NONE",
}
_NORMAL_PARAGRAPH: dict[str, Any] = {
    "namedStyleType": "NORMAL_TEXT",
    "alignment": "START",
    "lineSpacing": 115,
    "direction": "LEFT_TO_RIGHT",
    "spacingMode": "COLLAPSE_LISTS",
    "spaceAbove": points(0),
    "spaceBelow": points(0),
    **{f"border{side}": _BORDER for side in ("Between", "Top", "Bottom", "Left", "Right")},
    "indentFirstLine": points(0),
    "indentStart": points(0),
    "indentEnd": points(0),
    "keepLinesTogether": False,
    "keepWithNext": False,
    "avoidWidowAndOrphan": True,
    "shading": {"backgroundColor": {}},
    "pageBreakBefore": False,
}


def _heading(kind: str, above: float, below: float, text: dict[str, Any]) -> dict[str, Any]:
    return {
        "namedStyleType": kind,
        "textStyle": text,
        "paragraphStyle": {
            "namedStyleType": "NORMAL_TEXT",
            "direction": "LEFT_TO_RIGHT",
            "spaceAbove": points(above),
            "spaceBelow": points(below),
            "keepLinesTogether": True,
            "keepWithNext": True,
            "pageBreakBefore": False,
        },
    }


NAMED: list[dict[str, Any]] = [
    {"namedStyleType": "NORMAL_TEXT", "textStyle": _NORMAL_TEXT, "paragraphStyle": _NORMAL_PARAGRAPH},
    _heading("HEADING_1", 20, 6, {"fontSize": points(20)}),
    _heading("HEADING_2", 18, 6, {"bold": False, "fontSize": points(16)}),
    _heading("HEADING_3", 16, 4, {"bold": False, "foregroundColor": _grey(0.2627451), "fontSize": points(14)}),
    _heading("HEADING_4", 14, 4, {"foregroundColor": _grey(0.4), "fontSize": points(12)}),
    _heading("HEADING_5", 12, 4, {"foregroundColor": _grey(0.4), "fontSize": points(11)}),
    _heading("HEADING_6", 12, 4, {"italic": True, "foregroundColor": _grey(0.4), "fontSize": points(11)}),
    _heading("TITLE", 0, 3, {"fontSize": points(26)}),
    _heading(
        "SUBTITLE",
        0,
        16,
        {
            "italic": False,
            "foregroundColor": _grey(0.4),
            "fontSize": points(15),
            "weightedFontFamily": {"fontFamily": "Arial", "weight": 400},
        },
    ),
]

CELL: Mapping[str, Any] = {
    "rowSpan": 1,
    "columnSpan": 1,
    "backgroundColor": {},
    **{f"padding{side}": points(5) for side in ("Left", "Right", "Top", "Bottom")},
    "contentAlignment": "TOP",
}
ROW: Mapping[str, Any] = {"minRowHeight": points(0)}

#: The signs of each preset's levels, which repeat after the third.
_SIGNS = {
    "DISC": "●", "CIRCLE": "○", "SQUARE": "■", "DIAMONDX": "❖", "ARROW3D": "➢", "STAR": "★", "ARROW": "➔",
    "DIAMOND": "◆", "LEFTTRIANGLE": "◄", "HOLLOWDIAMOND": "◇",
}  # fmt: skip
_NUMBERS = {"DECIMAL": "DECIMAL", "ALPHA": "ALPHA", "ROMAN": "ROMAN", "UPPERALPHA": "UPPER_ALPHA"} | {
    "UPPERROMAN": "UPPER_ROMAN",
    "ZERODECIMAL": "ZERO_DECIMAL",
}


def nesting_levels(preset: str) -> list[dict[str, Any]]:
    """Return the nine levels of a list that was made from a preset."""
    kind, *words = [word for word in preset.split("_") if word not in {"NESTED", "PARENS"}]
    if words == ["CHECKBOX"]:
        words = ["CHECKBOX"] * 3
    elif words == ["DECIMAL"]:
        words = ["DECIMAL"] * 3
    end = ")" if "PARENS" in preset else "."
    out: list[dict[str, Any]] = []
    for level in range(9):
        word = words[level % len(words)]
        one: dict[str, Any] = {"bulletAlignment": "START"}
        if kind == "BULLET":
            # A checkbox has no sign that the API shows.
            one |= {"glyphSymbol": _SIGNS[word]} if word in _SIGNS else {"glyphType": "GLYPH_TYPE_UNSPECIFIED"}
        else:
            one["glyphType"] = _NUMBERS.get(word, "DECIMAL")
        before = "".join(f"%{above}." for above in range(level)) if "NESTED" in preset else ""
        one["glyphFormat"] = f"{before}%{level}" + ("" if kind == "BULLET" else end)
        one |= {"indentFirstLine": points(18 + 36 * level), "indentStart": points(36 + 36 * level)}
        one |= {"textStyle": {"underline": False}, "startNumber": 1}
        if kind == "BULLET":
            one.pop("startNumber")
        out.append(one)
    return out
