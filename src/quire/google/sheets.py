"""Calls of Sheets v4 under Google's own names. Thin: a call, its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from quire.google.budget import Urgency
from quire.google.transport import Transport


class Sheets:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def _url(self, spreadsheet_id: str, rest: str = "") -> str:
        return f"{self.transport.sheets}v4/spreadsheets/{quote(spreadsheet_id, safe='')}{rest}"

    async def spreadsheets_get(
        self, spreadsheet_id: str, *, fields: str = "", urgency: Urgency = Urgency.VIEW
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"fields": fields} if fields else {}
        what = f"reading the spreadsheet {spreadsheet_id}"
        answer = await self.transport.call(
            "GET", self._url(spreadsheet_id), what=what, urgency=urgency, write=False, repeatable=True, params=params
        )
        return answer.json

    async def spreadsheets_batch_update(
        self,
        spreadsheet_id: str,
        requests: Sequence[Mapping[str, Any]],
        *,
        repeatable: bool,
        urgency: Urgency = Urgency.SETTLE,
        response_ranges: Sequence[str] = (),
        fields: str = "",
        deadline: float = 60.0,
        paid: bool = False,
    ) -> dict[str, Any]:
        """All of it, in order, or nothing. With ``response_ranges`` the answer shows these cells after it.

        ``paid``: the caller has taken the quota of the first try.
        """
        body: dict[str, Any] = {"requests": list(requests)}
        if response_ranges:
            body["includeSpreadsheetInResponse"] = True
            body["responseIncludeGridData"] = True
            body["responseRanges"] = list(response_ranges)
        answer = await self.transport.call(
            "POST",
            self._url(spreadsheet_id, ":batchUpdate"),
            what=f"writing to the spreadsheet {spreadsheet_id}",
            urgency=urgency,
            write=True,
            repeatable=repeatable,
            params={"fields": fields} if fields else {},
            body=body,
            deadline=deadline,
            paid=paid,
        )
        return answer.json

    async def values_get(self, spreadsheet_id: str, area: str) -> list[list[Any]]:
        """The values of an area in A1 notation."""
        answer = await self.transport.call(
            "GET",
            self._url(spreadsheet_id, f"/values/{quote(area, safe='')}"),
            what=f"reading {area} of the spreadsheet {spreadsheet_id}",
            urgency=Urgency.VIEW,
            write=False,
            repeatable=True,
            params={"valueRenderOption": "UNFORMATTED_VALUE", "dateTimeRenderOption": "FORMATTED_STRING"},
        )
        found: list[list[Any]] = answer.json.get("values", [])
        return found

    async def developer_metadata_search(self, spreadsheet_id: str, *, key: str, value: str) -> list[dict[str, Any]]:
        """What has this mark, each with its place as it is now."""
        lookup = {"metadataKey": key, "metadataValue": value}
        answer = await self.transport.call(
            "POST",
            self._url(spreadsheet_id, "/developerMetadata:search"),
            what=f"looking for a mark in the spreadsheet {spreadsheet_id}",
            urgency=Urgency.SETTLE,
            write=False,
            repeatable=True,
            body={"dataFilters": [{"developerMetadataLookup": lookup}]},
        )
        return [one["developerMetadata"] for one in answer.json.get("matchedDeveloperMetadata", ())]

    async def values_batch_get_by_data_filter(
        self,
        spreadsheet_id: str,
        data_filters: Sequence[Mapping[str, Any]],
        *,
        urgency: Urgency = Urgency.VIEW,
        value_render_option: str = "UNFORMATTED_VALUE",
    ) -> list[list[list[Any]]]:
        """The rows of each filter's range, in the order asked for. By ``gridRange`` a renamed tab is found, too."""
        answer = await self.transport.call(
            "POST",
            self._url(spreadsheet_id, "/values:batchGetByDataFilter"),
            what=f"reading the spreadsheet {spreadsheet_id}",
            urgency=urgency,
            write=False,
            repeatable=True,
            body={
                "dataFilters": list(data_filters),
                "valueRenderOption": value_render_option,
                "majorDimension": "ROWS",
            },
        )
        # Google answers in the order in which the ranges lie, and once for filters that mean the same range.
        found = {
            _filter_key(wanted): matched.get("valueRange", {}).get("values", [])
            for matched in answer.json.get("valueRanges", [])
            for wanted in matched.get("dataFilters", [])
        }
        return [found.get(_filter_key(wanted), []) for wanted in data_filters]


def _filter_key(wanted: Mapping[str, Any]) -> str:
    """A data filter as Google repeats it beside its answer: a sheet id of 0 is left out."""
    area = wanted.get("gridRange")
    if area is not None:
        wanted = {**wanted, "gridRange": {k: v for k, v in area.items() if not (k == "sheetId" and v == 0)}}
    return json.dumps(wanted, sort_keys=True)
