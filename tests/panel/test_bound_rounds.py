"""People at a table while its rows run: nothing of theirs is lost, no record stands beside a wrong row, nothing twice.

``QUIRE_ROUNDS=500`` runs the rounds at their full scale.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quire.model.codec import parse
from quire.testing import ToldClock
from tests.panel.conftest import Sheet
from tests.panel.people import Person, sheets_api
from tests.panel.test_bound import fill, opened, orders, records, settled, table
from tests.panel.test_inbox import until_held

ROUNDS = int(os.environ.get("QUIRE_ROUNDS", "14"))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("own_id", [False, True], ids=["their ids", "our ids"])
async def test_rounds_of_people_between_our_reads_and_our_writes(sheet: Sheet, seed: int, own_id: bool) -> None:
    fill(sheet, [])
    with sheets_api(sheet.emulator) as api:
        person = Person(api, sheet.book_id, "Orders", top=3, seed=seed)
        for _ in range(4):
            person.append("Ready")
        async with opened(sheet, orders(**({"id": None} if own_id else {}))) as panel:
            write = panel.book.write

            async def meanwhile(*args: Any, **kwargs: Any) -> Any:
                for _ in range(person.chance.randint(0, 2)):
                    person.act()
                return await write(*args, **kwargs)

            panel.book.write = meanwhile  # type: ignore[method-assign]
            for _ in range(ROUNDS):
                person.act()
                await panel.look()
                await panel.client.work()
            panel.book.write = write  # type: ignore[method-assign]
            await settled(panel, 4)
            await judge(sheet, panel, person)


async def judge(sheet: Sheet, panel: Any, person: Person) -> None:
    """When it is quiet."""
    rows = {row["Order No"]: row for row in table(sheet)}
    there = person.rows.keys() - person.deleted
    assert there <= rows.keys(), there - rows.keys()
    assert rows.keys() <= person.rows.keys() | {""}, rows.keys() - person.rows.keys()
    started = await records(panel)
    by_client: dict[str, list[str]] = {}
    for record in started.values():
        by_client.setdefault(parse(record.data)["client"], []).append(record.record_id)
    assert all(len(same) == 1 for same in by_client.values()), by_client
    for order in there:
        row, mine = rows[order], person.rows[order]
        assert {name: row[name] for name in ("Client", "Amount", "Remarks")} == {
            n: v for n, v in mine.items() if n != "said"
        }
        if order in person.ready:
            assert row["Task_Status"] == "Finalized", (row, mine)
            assert row["confirmation"] == f"C-{mine['Client']}-{mine['Amount']}", (row, mine)
            assert mine["Client"] in by_client
        else:
            assert row["Task_Status"] == mine["said"] and row["confirmation"] == "", (row, mine)
            assert mine["Client"] not in by_client
    plain = {row["Order No"]: row for row in table(sheet, render="FORMULA")}
    for order in there - person.ready:
        assert plain[order]["Task_Status"] == person.rows[order]["said"]
        assert plain[order]["confirmation"] == "", plain[order]


FLOWS = """
from pydantic import BaseModel
from quire import Run, Table, workflow


class Order(BaseModel):
    client: str
    amount: int
    confirmation: str | None = None


@workflow(name="process", on=[Table("Orders", status="Task_Status", id="Order No", write_back=["confirmation"])])
async def process(run: Run[Order]) -> None:
    run.data.confirmation = f"C-{run.data.client}-{run.data.amount}"
"""


@pytest.mark.parametrize(
    "held",
    [
        {"contains": "insertDimension"},
        {"contains": "insertDimension", "skip": 1},
        {"contains": "setDataValidation"},
    ],
    ids=["while it is bound", "after the start", "after the end"],
)
async def test_a_process_that_is_killed_before_or_after_a_write_leaves_the_cells_as_the_records_are(
    sheet: Sheet, tmp_path: Path, held: dict[str, Any]
) -> None:
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    (tmp_path / "flows.py").write_text(FLOWS, encoding="utf-8")
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "2", "", "Ready"]])
    async with opened(sheet, orders(), ledger=ledger) as panel:
        await panel.look()  # the tabs are made
        await panel.lease.release()
    sheet.fault("barrier", parties=2, timeout_seconds=60, id="held", kind="batchUpdate", **held)
    process = started(sheet, ledger, tmp_path)
    try:
        await until_held(sheet)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        sheet.calm()  # what it had sent arrives now, late
    async with opened(sheet, orders(), ledger=ledger) as panel:
        await settled(panel, 4)
        assert [row["Task_Status"] for row in table(sheet)] == ["Finalized", "Finalized"]
        assert [row["confirmation"] for row in table(sheet)] == ["C-Acme-1", "C-Umbra-2"]
        assert len(await records(panel)) == 2


def started(sheet: Sheet, ledger: str, folder: Path) -> subprocess.Popen[bytes]:
    words = ["up", "flows.py", "--panel", sheet.url, "--port", "0", "--ledger", ledger]
    return subprocess.Popen([sys.executable, "-m", "quire.surfaces.cli", *words], cwd=folder, stdout=subprocess.DEVNULL)


ROWS = int(os.environ.get("QUIRE_ROWS", "240"))
STATES = ("Ready", "Processing", "Finalized", "Failed", "Cancelled", "", "on hold", "ready ")


async def test_of_many_rows_in_all_states_exactly_the_ready_ones_run_once(sheet: Sheet, clock: ToldClock) -> None:
    rows = [[f"A-{n}", f"c{n}", str(n), "", STATES[n % len(STATES)]] for n in range(ROWS)]
    fill(sheet, rows)
    ready = {f"orders-A-{n}" for n in range(ROWS) if STATES[n % len(STATES)].strip().casefold() == "ready"}
    async with opened(sheet, orders(yes=True), ledger=sheet.url, clock=clock) as panel:
        await panel.look()
        sheet.forget_counters()
        await panel.look()
        bound = sum(sheet.counters().values())
        await settled(panel, 2 + len(ready) // 400)
        assert (await records(panel)).keys() == ready
        for n, row in enumerate(table(sheet)):
            word = STATES[n % len(STATES)]
            assert row["Task_Status"] == ("Finalized" if word.strip().casefold() == "ready" else word.strip()), row
        assert bound <= 24 + len(ready) // 25, bound  # binding and starting cost no call for each row


async def test_people_act_while_three_processes_run_and_one_is_killed(sheet: Sheet, tmp_path: Path) -> None:
    """The processes keep the panel in turns: one draws, and another goes on when that one is dead."""
    ledger = f"sqlite:///{tmp_path}/ledger.db"
    (tmp_path / "flows.py").write_text(FLOWS, encoding="utf-8")
    fill(sheet, [])
    processes: list[subprocess.Popen[bytes]] = []
    with sheets_api(sheet.emulator) as api:
        person = Person(api, sheet.book_id, "Orders", top=3, seed=5)
        for _ in range(4):
            person.append("Ready")
        try:
            processes += [started(sheet, ledger, tmp_path) for _ in range(3)]
            await until_shown(sheet, lambda: any(row["Task_Status"] == "Finalized" for row in table(sheet)))
            for number in range(3 * ROUNDS):
                person.act()
                threading.Event().wait(0.1)
                if number == ROUNDS:
                    os.kill(processes[0].pid, signal.SIGKILL)
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)
        async with opened(sheet, orders(), ledger=ledger) as panel:
            await settled(panel, 5)
            await judge(sheet, panel, person)


async def until_shown(sheet: Sheet, holds: Callable[[], bool]) -> None:
    for _ in range(900):
        if holds():
            return
        threading.Event().wait(0.1)
    pytest.fail(f"it does not come to that: {sheet.grid('Orders')}")
