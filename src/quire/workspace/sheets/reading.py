"""What steps read of spreadsheets: plain functions for ``run.call``."""

from __future__ import annotations

from typing import Any

from quire.workspace.connection import google, refusing
from quire.workspace.values import FileLike, id_of


async def values(book: FileLike, area: str, *, using: str = "") -> list[list[Any]]:
    """Return the values of an area in A1 notation, as ``Clients!A2:C``; rows end at their last cell with a value."""
    sheets = (await google(using)).sheets
    with refusing():
        return await sheets.values_get(id_of(book), area)
