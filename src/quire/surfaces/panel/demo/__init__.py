"""The book of a team, as data, and the workflow of its rows: ``quire demo sheet`` and ``examples/orders``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files as resources
from typing import Any

#: Calls an API of Google: method, path, body; answers what it answers.
Call = Callable[[str, str, Any], Any]

_TAB_ID = 7


def files() -> dict[str, str]:
    """The files of the demo by their names: the same as in ``examples/orders``."""
    here = resources(__name__)
    found = {"flows.py": "flows.py.txt", "book.json": "book.json"}
    return {name: here.joinpath(file).read_text(encoding="utf-8") for name, file in found.items()}


def load(call: Call, data: dict[str, Any]) -> str:
    """Make the book that these data describe, as a person would have made it. Answers its id."""
    tab = {"properties": {"sheetId": _TAB_ID, "title": data["tab"]}}
    made = call("POST", "/v4/spreadsheets", {"properties": {"title": data["title"]}, "sheets": [tab]})
    book: str = made["spreadsheetId"]
    where = f"{data['tab']}!A1"
    call(
        "PUT",
        f"/v4/spreadsheets/{book}/values/{where}?valueInputOption=USER_ENTERED",
        {"range": where, "values": data["rows"]},
    )
    call("POST", f"/v4/spreadsheets/{book}:batchUpdate", {"requests": data["requests"]})
    return book


def orders_book(call: Call) -> str:
    return load(call, json.loads(files()["book.json"]))
