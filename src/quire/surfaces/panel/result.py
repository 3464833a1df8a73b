"""The result of a mission as a tab of its own: the text line by line, then who said what and what it cost. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from quire.model.codec import parse
from quire.model.record import Record, Status
from quire.surfaces.panel.cells import Request, texts
from quire.surfaces.panel.layout import free_title

#: What Google takes in one cell, with room to spare.
_MOST = 45_000


class ResultTab(NamedTuple):
    #: Made from the record's id, so that the same result is never put twice.
    sheet_id: int
    title: str
    rows: list[list[str]]

    def requests(self, titles: Iterable[str] = ()) -> list[Request]:
        """What makes the tab. Refused by the book if it is there already."""
        wide = max(len(row) for row in self.rows)
        grid = {"rowCount": len(self.rows) + 20, "columnCount": max(4, wide)}
        title = free_title(self.title, titles)
        properties = {"sheetId": self.sheet_id, "title": title, "gridProperties": grid}
        width = {"sheetId": self.sheet_id, "dimension": "COLUMNS", "startIndex": 0, "endIndex": 1}
        return [
            {"addSheet": {"properties": properties}},
            texts(self.sheet_id, 0, self.rows),
            {"updateDimensionProperties": {"range": width, "properties": {"pixelSize": 800}, "fields": "pixelSize"}},
        ]


def sheet_id_of(name: str) -> int:
    """A tab's id from what it is for: positive, and away from the small ids that Google gives."""
    return 1_000_000_000 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % 900_000_000


def result_tab(record: Record) -> ResultTab | None:
    """The tab of a finished mission; None: the record is none, or has not ended."""
    if record.status is not Status.DONE or record.result is None or record.parent_id is not None:
        return None
    report: Any = parse(record.result)
    if not isinstance(report, dict) or not isinstance(report.get("text"), str) or "agents" not in report:
        return None
    name = str(report.get("mission") or record.workflow)
    rows = [[name], [f"record {record.record_id}, {report.get('status') or 'done'}"], [""]]
    rows += [[part] for line in report["text"].strip().splitlines() for part in _pieces(line)]
    agents = [agent for agent in report.get("agents") or () if isinstance(agent, dict)]
    if agents:
        rows += [[""], ["report", "agent", "status", "turns"]]
        for agent in agents:
            text, *rest = _pieces(str(agent.get("text") or agent.get("error") or ""))
            rows.append([text, str(agent.get("id", "")), str(agent.get("status", "")), str(agent.get("turns", ""))])
            rows += [[part] for part in rest]
    return ResultTab(sheet_id_of(f"result {record.record_id}"), f"result {record.record_id}"[:90], rows)


def _pieces(text: str) -> Sequence[str]:
    return [text[at : at + _MOST] for at in range(0, len(text), _MOST)] or [""]
