"""The address of a spreadsheet, as people have it."""

from __future__ import annotations

import re

_SHOWN = re.compile(r"https://docs\.google\.com/spreadsheets/(?:u/\d+/)?d/([\w-]+)(?:[/?#].*)?")


def sheets_address(url: str) -> str:
    """``sheets://ID`` for what the browser shows of a spreadsheet; any other address as it is."""
    shown = _SHOWN.fullmatch(url)
    return f"sheets://{shown[1]}" if shown else url
