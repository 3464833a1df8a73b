"""``quire table``: from the address of a book that people have to its first row finalized, in three commands."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quire import open as open_client
from quire.clock import SYSTEM
from quire.surfaces.cli import cli
from tests.panel.conftest import Sheet
from tests.panel.test_bound import by_id, fill

HEADER = ["Order No", "Client", "Amount", "Due", "Task_Status", "confirmation"]
ROWS = [
    ["A-1", "Acme", "$12.50", "12/24/2026", "Ready", ""],
    ["A-2", "Initech", "$7.00", "", "Processing", ""],
    ["A-3", "Hooli", "$1.00", "12/24/2026", "Finalized", "C-old"],
    ["A-4", "Umbra", "$2.25", "12/24/2026", "", ""],
    ["A-5", "Pied", "$3.00", "12/24/2026", "ready ", ""],
    ["A-6", "Raviga", "$3.00", "12/24/2026", "Finalized", "C-older"],
    ["A-3", "Twice", "$3.00", "12/24/2026", "Ready", ""],
]


def quire(*words: str, code: int = 0) -> str:
    result: Result = CliRunner().invoke(cli, words)
    assert result.exit_code == code, result.output
    return result.output


def test_look_says_what_a_tab_is_taken_for_and_writes_nothing(sheet: Sheet) -> None:
    fill(sheet, ROWS, header=HEADER)
    before = sheet.grid("Orders", "FORMULA")

    assert quire("table", "look", sheet.url, "--tab", "orders").splitlines() == [
        "Orders: header in row 3 (rows 1–2 are a title); 7 rows",
        (
            '  status     column E "Task_Status", in the words of READY     '
            'Ready 2 · Finalized 2 · Processing 1 · blank 1 · "ready " 1'
        ),
        "  identity   column A \"Order No\", 6 different ones; rows 6 and 10 share 'A-3'",
        "  fields     client ← B 'Client' · amount ← C 'Amount' (money) · due ← D 'Due' (dates)",
        '  results    column F "confirmation"',
        (
            "  would start 2 rows · leave 2 · ask about 1 (Processing, by whom is not known) · name 1 (same Order No)"
            " · 1 blank, ignored"
        ),
        "nothing was written",
    ]
    assert sheet.grid("Orders", "FORMULA") == before and len(sheet.meta("sheets.properties")["sheets"]) == 2
    assert "no tab 'Order' in this book; did you mean 'Orders'?" in quire(
        "table", "look", sheet.url, "--tab", "Order", code=2
    )
    assert "has no row that is a header" in quire("table", "look", sheet.url, "--tab", "Sheet1", code=2)


def test_init_writes_a_model_the_table_line_and_a_step(sheet: Sheet) -> None:
    fill(sheet, ROWS, header=HEADER)
    assert quire("table", "init", sheet.url, "--tab", "Orders").splitlines()[2:] == [
        "from datetime import date",
        "from decimal import Decimal",
        "",
        "from pydantic import BaseModel",
        "",
        "from quire import Run, Table, workflow",
        "",
        "",
        "class Orders(BaseModel):",
        "    client: str",
        "    amount: Decimal",
        "    due: date",
        "    confirmation: str | None = None",
        "",
        "",
        "@workflow(on=[Table('Orders', status='Task_Status', id='Order No', write_back=['confirmation'])])",
        "async def orders(run: Run[Orders]) -> None:",
        "    # What is to be done for a row goes here. An act that must not happen twice: await run.once(act, ...)",
        '    run.data.confirmation = f"done: {run.data.client}"',
    ]
    assert quire("table", "init", sheet.url, "--tab", "Orders", "--states").splitlines() == [
        "[states.orders]",
        'tab = "Orders"',
        'status = "Task_Status"',
        'id = "Order No"',
        '# A guess: correct which state may follow which. who = ["finance"] lets only them make a move.',
        "moves = [",
        '  { from = "Ready", to = ["Processing", "Finalized"] },',
        '  { from = "Processing", to = ["Finalized"] },',
        "]",
    ]


@pytest.mark.parametrize("states", [False, True], ids=["steps", "states"])
def test_from_the_address_of_a_book_to_the_first_row_finalized(sheet: Sheet, tmp_path: Path, states: bool) -> None:
    fill(sheet, ROWS, header=HEADER)
    command = [sys.executable, "-m", "quire.surfaces.cli"]
    subprocess.run([*command, "table", "look", sheet.url], cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / ("quire.toml" if states else "flows.py")).open("w") as file:
        words = ["--states"] if states else []
        subprocess.run([*command, "table", "init", sheet.url, *words], cwd=tmp_path, check=True, stdout=file)
    words = [
        "up",
        *([] if states else ["flows.py"]),
        "--panel",
        sheet.url,
        "--port",
        "0",
        "--ledger",
        f"sqlite:///{tmp_path}/ledger.db",
    ]
    process = subprocess.Popen([*command, *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        deadline = SYSTEM.boottime() + 60
        wanted = "Ready" if states else "Finalized"
        while (
            by_id(sheet, render="FORMULA")["A-1"]["Task_Status"] == "Ready"
            or by_id(sheet)["A-1"]["Task_Status"] != wanted
        ):
            assert SYSTEM.boottime() < deadline, by_id(sheet)
            threading.Event().wait(0.2)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    if not states:
        assert by_id(sheet)["A-1"]["confirmation"] == "done: Acme"
        with open_client(f"sqlite:///{tmp_path}/ledger.db") as client:
            assert sorted(record.record_id for record in client.find()) == ["orders-A-1", "orders-A-5"]
        take(sheet, tmp_path)


def take(sheet: Sheet, tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    said = quire("table", "take", "5", "--panel", sheet.url, "--ledger", ledger)
    assert said == "1 row starts at the next look\n"
    for row, why in (("6", "shares its id"), ("7", "says ''"), ("4", "is Quire's already")):
        assert re.search(why, quire("table", "take", row, "--panel", sheet.url, "--ledger", ledger, code=2))
    assert quire("table", "go", "--panel", sheet.url, "--ledger", ledger) == "nothing waits for that\n"
