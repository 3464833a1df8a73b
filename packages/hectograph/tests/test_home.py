"""Formulas that follow their row read the same as formulas that are rewritten at every step."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from hectograph import Emulator
from hectograph.sheets import book
from hectograph.sheets.cell import Formula

FORMULAS = [
    "=A{r}&B{r}",
    '=IFERROR(VLOOKUP($A{r},other!$A:$B,2,FALSE),"none")',
    "=SUM(B$1:B{r})",
    "=B{r}+other!B{r}",
    "=$B$2*2",
    "=SUM(B:B)-B{r}",
    "=Sheet1!A{r}",
    "=A{q}",
    "=COUNTA(A{r}:B{r})",
]


def steps(seed: int) -> list[dict[str, Any]]:
    """A person's random afternoon, the same for everybody who has the seed."""
    chance = random.Random(seed)
    out: list[dict[str, Any]] = []
    for _ in range(20):
        at, to = chance.randint(2, 10), chance.randint(2, 10)
        out.append(
            chance.choice(
                [
                    {"do": "insert_rows", "at": at},
                    {"do": "delete_rows", "at": at},
                    {"do": "move_rows", "at": at, "to": to},
                    {"do": "paste_rows", "at": at, "to": to},
                    {"do": "sort", "range": "A2:F12", "column": chance.randint(1, 2), "descending": at > to},
                    {"do": "insert_columns", "at": chance.randint(1, 4)},
                    {"do": "delete_columns", "at": chance.randint(3, 5)},
                    {"do": "insert_rows", "at": at, "sheet": "other"},
                    {"do": "rename_sheet", "sheet": 0, "title": f"T{at}"},
                ]
            )
        )
    return out


def afternoon(seed: int) -> list[Any]:
    emulator, chance = Emulator(), random.Random(seed)
    sheets = [{"properties": {"sheetId": n, "title": title}} for n, title in enumerate(["Sheet1", "other"])]
    made = json.loads(emulator.call("POST", "/v4/spreadsheets", {"sheets": sheets}).body)
    path = f"/v4/spreadsheets/{made['spreadsheetId']}"
    rows: list[list[Any]] = [["id", "n"]]
    for r in range(2, 12):
        texts = [text.format(r=r, q=chance.randint(1, 12)) for text in chance.sample(FORMULAS, 4)]
        rows.append([f"k{chance.randint(0, 20)}", chance.randint(0, 50), *texts])
    option = "valueInputOption=USER_ENTERED"
    emulator.call("PUT", f"{path}/values/Sheet1!A1?{option}", {"values": rows})
    emulator.call("PUT", f"{path}/values/other!A1?{option}", {"values": [[f"k{n}", n] for n in range(20)]})
    seen: list[Any] = []
    for step in steps(seed):
        given = {"book": made["spreadsheetId"], "sheet": 0, **step}
        assert emulator.call("POST", "/emulator/person", given).status in (200, 400)
        title = json.loads(emulator.call("GET", path).body)["sheets"][0]["properties"]["title"]
        for render in ("FORMULA", "UNFORMATTED_VALUE"):
            answer = emulator.call("GET", f"{path}/values/'{title}'?valueRenderOption={render}")
            seen.append((step, json.loads(answer.body)["values"]))
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_bound_and_rewritten_formulas_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = afternoon(seed)

    def unbound(value: Formula, row: int, title: str) -> Formula:
        return value

    monkeypatch.setattr(book, "homed", unbound)
    assert afternoon(seed) == bound
