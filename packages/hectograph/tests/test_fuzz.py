"""Requests made at random from Google's own field tables: whatever comes, the emulator answers and stays whole."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from hectograph import Emulator
from hectograph.core.discovery import api

_WORDS = ["a", "=A1+1", "x", "1", "Sheet1", "2020-01-01", ""]
_MASKS = ["*", "note", "userEnteredValue", "userEnteredFormat", "title", "range", "pixelSize", "x", ""]


class Maker:
    """Makes messages; ranges are mostly ones that exist, so that much of it is accepted."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.schema = api("sheets.v4").schema

    def value(self, kind: str, name: str = "", depth: int = 0) -> Any:
        pick = self.chance.choice
        match kind[0]:
            case "s":
                return pick(_MASKS if name == "fields" else _WORDS)
            case "i" | "l":
                return pick([0, 0, 0, 7]) if name == "sheetId" else pick([0, 0, 1, 2, 3, 5, 1000, -1])
            case "d":
                return pick([0, 1, 0.5, -3])
            case "b":
                return pick([True, False])
            case "*":
                return pick([1, "x", None])
            case "=":
                return pick(sorted(self.schema.enums[kind[1:]]))
            case "[":
                return [self.value(kind[1:], name, depth + 1) for _ in range(pick([0, 1, 1, 2]))]
            case "{":
                return {str(pick([0, 1, 2])): self.value(kind[1:], name, depth + 1)}
            case _:
                return self.message(kind[1:], depth)

    def message(self, name: str, depth: int) -> dict[str, Any]:
        whole = self.chance.random() < 0.8
        if name == "GridRange" and whole:
            top, left = self.chance.randint(0, 3), self.chance.randint(0, 2)
            end = {"endRowIndex": top + 2, "endColumnIndex": left + 2}
            return {"sheetId": 0, "startRowIndex": top, "startColumnIndex": left, **end}
        if name == "DimensionRange" and whole:
            start = self.chance.randint(0, 2)
            dimension = self.chance.choice(["ROWS", "COLUMNS"])
            return {"sheetId": 0, "dimension": dimension, "startIndex": start, "endIndex": start + 2}
        if depth > 6:
            return {}
        likely = 0.75 if depth < 4 else 0.35
        fields = self.schema.messages[name].items()
        return {f: self.value(k, f, depth + 1) for f, k in fields if self.chance.random() < likely}


@pytest.mark.parametrize("seed", range(4))
def test_no_request_makes_the_emulator_fail(seed: int) -> None:
    emulator, maker = Emulator(), Maker(seed)
    kinds = sorted(maker.schema.messages["Request"].items())
    book = json.loads(emulator.call("POST", "/v4/spreadsheets", {}).body)["spreadsheetId"]
    path = f"/v4/spreadsheets/{book}"
    rows = [[1, "a", "=A1*2"], ["b", 2, "=SUM(A1:B2)"], [True, "2020-01-01", "=C1"]]
    emulator.call("PUT", f"{path}/values/A1?valueInputOption=USER_ENTERED", {"values": rows})
    accepted = 0
    for _ in range(150):
        kind, message = maker.chance.choice(kinds)
        body = {"requests": [{kind: maker.value(message, depth=1)}]}
        answer = emulator.call("POST", f"{path}:batchUpdate", body)
        assert answer.status in (200, 400), (body, answer.body)
        accepted += answer.status == 200

    assert accepted > 5
    for target in ("?ranges=A1:H12&includeGridData=true", "/values/A1:H12", "/values/A1:H12?valueRenderOption=FORMULA"):
        assert emulator.call("GET", path + target).status == 200
