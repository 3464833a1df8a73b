"""The spreadsheet of a panel: one read for a look, one batch for what follows from it.

Tabs are asked for by their ids, so a renamed one is found. A deleted one refuses the whole read: then the panel looks
which tabs there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from quire.errors import InputError
from quire.google.address import sheets_address
from quire.google.budget import Urgency
from quire.google.credentials import StaticToken, default, from_file
from quire.google.sheets import Sheets
from quire.google.transport import Transport
from quire.surfaces.panel.cells import At, Request

Rows = list[list[Any]]

_SETTINGS = frozenset({"endpoint", "credentials", "quota", "user"})


class Tab(NamedTuple):
    sheet_id: int
    title: str
    rows: int
    columns: int


class Book:
    """``sheets://SPREADSHEET_ID``, with the same settings as a ledger in a sheet; they share one quota.

    Or the address that the browser shows.
    """

    def __init__(self, url: str) -> None:
        url = sheets_address(url)
        parts = urlsplit(url)
        self._given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if parts.scheme != "sheets" or not parts.netloc:
            raise InputError(f"{url!r} names no spreadsheet for the panel; write it like 'sheets://SPREADSHEET_ID'")
        if unknown := self._given.keys() - _SETTINGS:
            known = ", ".join(sorted(_SETTINGS))
            raise InputError(f"the panel {url!r} has unknown settings {sorted(unknown)}; known: {known}")
        self.url = url
        self.spreadsheet_id = parts.netloc
        #: In which its dates and times are, as of the last look at its tabs.
        self.time_zone = "Etc/GMT"
        #: The columns that named ranges begin with, by tab and name in small letters, as of that look.
        self.ranges: dict[int, dict[str, int]] = {}
        self._transport: Transport | None = None
        self._sheets: Sheets | None = None

    async def open(self) -> None:
        given = self._given
        endpoint = given.get("endpoint", "")
        if "credentials" in given:
            credentials = from_file(given["credentials"])
        else:
            credentials = StaticToken(given.get("user", "quire")) if endpoint else default()
        quota = float(given["quota"]) if "quota" in given else None if endpoint else 60.0
        transport = Transport(credentials, endpoint=endpoint, per_minute=quota)
        await transport.open()
        self._transport, self._sheets = transport, Sheets(transport)

    async def close(self) -> None:
        transport, self._transport, self._sheets = self._transport, None, None
        if transport is not None:
            await transport.close()

    @property
    def sheets(self) -> Sheets:
        if self._sheets is None:
            raise InputError(f"the panel {self.url} is not open")
        return self._sheets

    async def tabs(self) -> dict[int, Tab]:
        """The tabs by their ids."""
        fields = (
            "properties.timeZone,namedRanges(name,range),"
            "sheets.properties(sheetId,title,gridProperties(rowCount,columnCount))"
        )
        found = await self.sheets.spreadsheets_get(self.spreadsheet_id, fields=fields, urgency=Urgency.VIEW)
        self.time_zone = found.get("properties", {}).get("timeZone", self.time_zone)
        self.ranges = {}
        for named in found.get("namedRanges", []):
            area = named.get("range", {})
            self.ranges.setdefault(area.get("sheetId", 0), {})[named["name"].casefold()] = area.get(
                "startColumnIndex", 0
            )
        tabs = {}
        for sheet in found.get("sheets", []):
            properties = sheet["properties"]
            grid = properties.get("gridProperties", {})
            sheet_id = properties.get("sheetId", 0)
            tabs[sheet_id] = Tab(sheet_id, properties["title"], grid.get("rowCount", 0), grid.get("columnCount", 0))
        return tabs

    async def read(self, sheet_ids: Sequence[int]) -> dict[int, Rows]:
        """Whole tabs as they were typed: formulas as formulas. One request."""
        found = await self._read([{"sheetId": sheet_id} for sheet_id in sheet_ids], "FORMULA")
        return dict(zip(sheet_ids, found, strict=True))

    async def values(self, sheet_id: int) -> Rows:
        """One tab with its formulas worked out."""
        [found] = await self._read([{"sheetId": sheet_id}], "UNFORMATTED_VALUE")
        return found

    async def look(self, sheet_id: int) -> Rows:
        """One tab as it looks."""
        [found] = await self._read([{"sheetId": sheet_id}], "FORMATTED_VALUE")
        return found

    async def shown(self, cells: Sequence[At]) -> dict[At, str]:
        """How these cells look."""
        found = await self._read([at.range for at in cells], "FORMATTED_VALUE") if cells else []
        return {at: str(rows[0][0]) for at, rows in zip(cells, found, strict=True) if rows and rows[0]}

    async def _read(self, ranges: Sequence[Mapping[str, int]], render: str) -> list[Rows]:
        filters = [{"gridRange": dict(area)} for area in ranges]
        return await self.sheets.values_batch_get_by_data_filter(
            self.spreadsheet_id, filters, value_render_option=render, urgency=Urgency.VIEW
        )

    async def write(self, requests: Sequence[Request], *, repeatable: bool = False) -> list[dict[str, Any]]:
        """One batch, whole or not at all; its replies."""
        answer = await self.sheets.spreadsheets_batch_update(
            self.spreadsheet_id, requests, repeatable=repeatable, urgency=Urgency.VIEW
        )
        return list(answer.get("replies", []))
