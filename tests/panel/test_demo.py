"""``quire demo sheet``, and the pictures of its guide: a team's rows are confirmed while a browser shows the grid."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quire.clock import SYSTEM
from quire.surfaces.panel import demo

ROOT = Path(__file__).parents[2]


def test_the_demo_writes_what_the_examples_hold() -> None:
    for name, text in demo.files().items():
        assert (ROOT / "examples" / "orders" / name).read_text(encoding="utf-8") == text
    assert len((ROOT / "examples" / "orders" / "flows.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_the_rows_of_the_demo_are_confirmed_and_one_asks(tmp_path: Path) -> None:
    import httpx2

    command = [sys.executable, "-m", "quire.surfaces.cli", "demo", "sheet", "--dir", str(tmp_path / "demo")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"(http://\S+?/)book/(\w[^,\s]*)", process.stdout.readline())
        assert found is not None
        url, book = found[1], found[2]
        with httpx2.Client(base_url=url, headers={"Authorization": "Bearer person"}) as client:

            def rows() -> dict[str, dict[str, str]]:
                grid = json.loads(client.get(f"/v4/spreadsheets/{book}/values/Orders").text)["values"]
                return {row[0]: dict(zip(grid[2], [*row, *[""] * 12], strict=False)) for row in grid[3:]}

            until(lambda: rows()["A-1043"]["Task_Status"] == "Needs approval" and said(rows()) >= 3)
            before = rows()
            assert before["A-1041"]["confirmation"] == "ACM-120" and before["A-1044"]["Task_Status"] == "Processing"
            assert before["A-1047"]["Quire_Note"] == "needed, but blank: amount"
            row = 1 + next(number for number, name in enumerate(rows(), 3) if name == "A-1043")
            body: dict[str, Any] = {
                "book": book,
                "sheet": "Orders",
                "do": "edit",
                "cell": f"E{row}",
                "text": "Approved",
            }
            assert client.post("/emulator/person", json=body).status_code == 200
            until(lambda: rows()["A-1043"]["confirmation"] == "HOO-2400")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def said(rows: dict[str, dict[str, str]]) -> int:
    return sum(row["Task_Status"] == "Finalized" for row in rows.values())


def until(holds: Callable[[], bool]) -> None:
    ends = SYSTEM.boottime() + 90
    while not holds():
        assert SYSTEM.boottime() < ends, "it does not come to that"
        threading.Event().wait(0.2)
