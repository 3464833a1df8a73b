"""A person and a script at a sheet, through Google's own client library."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hectograph import Emulator


@contextmanager
def sheets_api(emulator: Emulator) -> Iterator[Any]:
    """Google's client for Sheets, unchanged but for the address in its discovery document."""
    from google.auth.credentials import AnonymousCredentials
    from googleapiclient import discovery
    from googleapiclient.discovery_cache import get_static_doc

    document = json.loads(get_static_doc("sheets", "v4"))
    document["rootUrl"] = emulator.url
    document.pop("mtlsRootUrl", None)
    who: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]  # untyped
    made = discovery.build_from_document(document, credentials=who)
    try:
        yield made.spreadsheets()
    finally:
        made.close()


class Person:
    """Sorts, inserts, deletes, moves, appends and types in one tab; remembers what every row of theirs must say."""

    def __init__(self, api: Any, book: str, tab: str, *, top: int, seed: int) -> None:
        self.api = api
        self.book = book
        self.tab = tab
        self.top = top
        self.chance = random.Random(seed)
        self.sheet_id: int = self._sheet_id()
        #: What people wrote, by order: their own columns as they last left them.
        self.rows: dict[str, dict[str, str]] = {}
        #: Orders that were ready at some time, and those whose row was deleted.
        self.ready: set[str] = set()
        self.deleted: set[str] = set()
        self._next = 0

    def _sheet_id(self) -> int:
        found = self.api.get(spreadsheetId=self.book, fields="sheets.properties").execute()
        tabs = {each["properties"]["title"]: each["properties"].get("sheetId", 0) for each in found["sheets"]}
        return int(tabs[self.tab])

    def values(self, render: str = "FORMATTED_VALUE") -> list[list[Any]]:
        answer = self.api.values().get(spreadsheetId=self.book, range=self.tab, valueRenderOption=render).execute()
        found: list[list[Any]] = answer.get("values", [])
        return found

    def batch(self, *requests: dict[str, Any]) -> None:
        self.api.batchUpdate(spreadsheetId=self.book, body={"requests": list(requests)}).execute()

    def put(self, cell: str, text: str) -> None:
        body = {"values": [[text]]}
        self.api.values().update(
            spreadsheetId=self.book, range=f"{self.tab}!{cell}", valueInputOption="USER_ENTERED", body=body
        ).execute()

    def append(self, status: str) -> str:
        """A form, or a program, appends a row; as Apps Script's ``appendRow`` does."""
        self._next += 1
        order = f"O-{self._next}"
        mine = {"Client": f"client{self._next}", "Amount": str(self._next), "Remarks": f"remark {order}"}
        header = self.header()
        row = [{"Order No": order, "Task_Status": status, **mine}.get(name, "") for name in header]
        self.api.values().append(
            spreadsheetId=self.book,
            range=f"{self.tab}!A{self.top}",
            valueInputOption="USER_ENTERED",
            insertDataOption="INSERT_ROWS",
            body={"values": [row]},
        ).execute()
        self.rows[order] = mine | {"said": status}
        if status == "Ready":
            self.ready.add(order)
        return order

    def header(self) -> list[str]:
        return [str(text) for text in self.values()[self.top - 1]]

    def act(self) -> str:
        """Do one thing that people do."""
        grid = self.values()
        high, wide = len(grid), max(map(len, grid))
        header = grid[self.top - 1]
        area = {"sheetId": self.sheet_id, "startRowIndex": self.top, "endRowIndex": high}
        what = self.chance.choice(
            ["sort", "sort", "insert", "delete", "move", "append", "type", "type", "ready", "column"]
        )
        at = self.chance.randint(self.top, max(self.top, high - 1))
        rows = {"sheetId": self.sheet_id, "dimension": "ROWS", "startIndex": at, "endIndex": at + 1}
        match what:
            case "sort":
                column, order = self.chance.randrange(wide), self.chance.choice(["ASCENDING", "DESCENDING"])
                spec = [{"dimensionIndex": column, "sortOrder": order}]
                self.batch(
                    {"sortRange": {"range": {**area, "startColumnIndex": 0, "endColumnIndex": wide}, "sortSpecs": spec}}
                )
            case "insert":
                self.batch({"insertDimension": {"range": rows, "inheritFromBefore": False}})
            case "move":
                self.batch({"moveDimension": {"source": rows, "destinationIndex": self.top}})
            case "delete" if self.chance.random() < 0.2 and at < high:
                cells = dict(zip(header, grid[at], strict=False))
                if cells.get("Order No"):
                    self.deleted.add(str(cells["Order No"]))
                self.batch({"deleteDimension": {"range": rows}})
            case "append":
                self.append(self.chance.choice(["Ready", "Ready", "", "Finalized", "on hold"]))
            case "type" if at < high:
                self._write(header, grid[at], at, "Remarks", f"seen {self.chance.randint(1, 99)}")
            case "ready" if at < high:
                cells = dict(zip(header, grid[at], strict=False))
                order = str(cells.get("Order No", ""))
                if order in self.rows and order not in self.ready and self.rows[order]["said"] in ("", "on hold"):
                    self._write(header, grid[at], at, "Task_Status", "Ready")
            case "column" if self.chance.random() < 0.1:
                side = {"sheetId": self.sheet_id, "dimension": "COLUMNS", "startIndex": 1, "endIndex": 2}
                self.batch({"insertDimension": {"range": side, "inheritFromBefore": False}})
            case _:
                return "nothing"
        return what

    def _write(self, header: list[Any], cells: list[Any], at: int, name: str, text: str) -> None:
        order = str(dict(zip(header, cells, strict=False)).get("Order No", ""))
        if order not in self.rows:
            return
        column = header.index(name)
        self.put(f"{'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[column]}{at + 1}", text)
        if name == "Task_Status":
            self.ready.add(order)
            self.rows[order]["said"] = text
        else:
            self.rows[order][name] = text
