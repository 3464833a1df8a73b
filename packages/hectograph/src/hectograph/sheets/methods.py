"""The calls of the Sheets v4 API: their paths, their answers, the parameters they know."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hectograph.core.http import Request


@dataclass(frozen=True)
class Method:
    """A call of the API: its name, its answer's message, and the parameters it knows."""

    name: str
    verb: str
    pattern: str
    write: bool
    answer: str
    parameters: str = ""


_RENDER = "majorDimension valueRenderOption dateTimeRenderOption"
_WRITTEN = "valueInputOption includeValuesInResponse responseValueRenderOption responseDateTimeRenderOption"
_ID = r"/v4/spreadsheets/(?P<book>[^/:]+)"

METHODS = (
    Method("create", "POST", r"/v4/spreadsheets", True, "Spreadsheet"),
    Method(
        "get", "GET", _ID, False, "Spreadsheet", "ranges includeGridData excludeTablesInBandedRanges commentsViewMode"
    ),
    Method("batchUpdate", "POST", _ID + ":batchUpdate", True, "BatchUpdateSpreadsheetResponse"),
    Method("getByDataFilter", "POST", _ID + ":getByDataFilter", False, "Spreadsheet"),
    Method(
        "developerMetadata.search", "POST", _ID + "/developerMetadata:search", False, "SearchDeveloperMetadataResponse"
    ),
    Method("developerMetadata.get", "GET", _ID + r"/developerMetadata/(?P<metadata>[^/]+)", False, "DeveloperMetadata"),
    Method("sheets.copyTo", "POST", _ID + r"/sheets/(?P<sheet>[^/:]+):copyTo", True, "SheetProperties"),
    Method("values.batchGet", "GET", _ID + "/values:batchGet", False, "BatchGetValuesResponse", "ranges " + _RENDER),
    Method("values.batchUpdate", "POST", _ID + "/values:batchUpdate", True, "BatchUpdateValuesResponse"),
    Method("values.batchClear", "POST", _ID + "/values:batchClear", True, "BatchClearValuesResponse"),
    Method(
        "values.batchGetByDataFilter",
        "POST",
        _ID + "/values:batchGetByDataFilter",
        False,
        "BatchGetValuesByDataFilterResponse",
    ),
    Method(
        "values.batchUpdateByDataFilter",
        "POST",
        _ID + "/values:batchUpdateByDataFilter",
        True,
        "BatchUpdateValuesByDataFilterResponse",
    ),
    Method(
        "values.batchClearByDataFilter",
        "POST",
        _ID + "/values:batchClearByDataFilter",
        True,
        "BatchClearValuesByDataFilterResponse",
    ),
    Method(
        "values.append",
        "POST",
        _ID + r"/values/(?P<range>.+):append",
        True,
        "AppendValuesResponse",
        _WRITTEN + " insertDataOption",
    ),
    Method("values.clear", "POST", _ID + r"/values/(?P<range>.+):clear", True, "ClearValuesResponse"),
    Method("values.get", "GET", _ID + r"/values/(?P<range>.+)", False, "ValueRange", _RENDER),
    Method("values.update", "PUT", _ID + r"/values/(?P<range>.+)", True, "UpdateValuesResponse", _WRITTEN),
)


def find(request: Request) -> tuple[Method, dict[str, str]] | None:
    for method in METHODS:
        if method.verb == request.method:
            match = re.fullmatch(method.pattern, request.path, re.DOTALL)
            if match:
                return method, match.groupdict()
    return None
