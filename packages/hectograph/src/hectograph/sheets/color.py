"""Colours and formats as Google keeps them: eight bits a channel, zeros left out, each colour beside its style."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from hectograph.sheets.cell import single

THEME: dict[str, dict[str, Any]] = {
    "TEXT": {},
    "BACKGROUND": {"red": 1, "green": 1, "blue": 1},
    "ACCENT1": {"red": 0.25882354, "green": 0.52156866, "blue": 0.95686275},
    "ACCENT2": {"red": 0.91764706, "green": 0.2627451, "blue": 0.20784314},
    "ACCENT3": {"red": 0.9843137, "green": 0.7372549, "blue": 0.015686275},
    "ACCENT4": {"red": 0.20392157, "green": 0.65882355, "blue": 0.3254902},
    "ACCENT5": {"red": 1, "green": 0.42745098, "blue": 0.003921569},
    "ACCENT6": {"red": 0.27450982, "green": 0.7411765, "blue": 0.7764706},
    "LINK": {"red": 0.06666667, "green": 0.33333334, "blue": 0.8},
}

WHITE = THEME["BACKGROUND"]


def default_format() -> dict[str, Any]:
    return {
        "backgroundColor": dict(WHITE),
        "padding": {"top": 2, "right": 3, "bottom": 2, "left": 3},
        "verticalAlignment": "BOTTOM",
        "wrapStrategy": "OVERFLOW_CELL",
        "textFormat": {
            "foregroundColor": {},
            "fontFamily": "arial,sans,sans-serif",
            "fontSize": 10,
            "bold": False,
            "italic": False,
            "strikethrough": False,
            "underline": False,
            "foregroundColorStyle": {"rgbColor": {}},
        },
        "backgroundColorStyle": {"rgbColor": dict(WHITE)},
    }


def theme() -> dict[str, Any]:
    return {
        "primaryFontFamily": "Arial",
        "themeColors": [{"colorType": name, "color": {"rgbColor": dict(rgb)}} for name, rgb in THEME.items()],
    }


def _rounded(value: float) -> float:
    """The nearest number of single precision."""
    (near,) = struct.unpack("f", struct.pack("f", value))
    return float(near)


def color(value: Mapping[str, Any]) -> dict[str, Any]:
    """A colour as it is given back: without what is zero, and without alpha, which Sheets does not keep.

    Sheets computes in single precision and cuts what is less than one 255th: half of red is 127 of 255.
    """
    out: dict[str, Any] = {}
    for name in ("red", "green", "blue"):
        share = _rounded(min(1.0, max(0.0, float(value.get(name, 0)))))
        channel = math.floor(_rounded(share * 255))
        if channel:
            out[name] = single(channel / 255)
    return out


def paired(given: Mapping[str, Any]) -> dict[str, Any]:
    """Put beside every colour its style and beside every style its colour, all the way down."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        if name.endswith("ColorStyle") or name == "colorStyle":
            plain = name[: -len("Style")]
            if not value:
                continue  # a style without a colour takes the colour away
            if "themeColor" in value:
                out[name] = {"themeColor": value["themeColor"]}
                out[plain] = dict(THEME.get(value["themeColor"], {}))
            elif plain not in given or "rgbColor" in value:
                rgb = color(value.get("rgbColor", {}))
                out[name], out[plain] = {"rgbColor": rgb}, rgb
        elif name.endswith("Color") or name == "color":
            if not isinstance(value, Mapping):
                out[name] = value
            elif name + "Style" not in given:
                rgb = color(value)
                out[name] = rgb
                out[name + "Style"] = {"rgbColor": dict(rgb)}
        elif isinstance(value, Mapping):
            out[name] = paired(value)
        elif isinstance(value, list):
            out[name] = [paired(item) if isinstance(item, Mapping) else item for item in value]
        else:
            out[name] = value
    return out


def twin_fields(mask: dict[str, Any]) -> dict[str, Any]:
    """A mask that names a colour also names its style, and the other way round."""
    out: dict[str, Any] = {}
    for name, branch in mask.items():
        out[name] = twin_fields(branch) if branch else {}
        if name.endswith("ColorStyle") or name == "colorStyle":
            out[name] = {}
            out[name[: -len("Style")]] = {}
        elif name.endswith("Color") or name == "color":
            out[name] = {}
            out[name + "Style"] = {}
    return out
