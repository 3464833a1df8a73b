"""Many processes at one row; a process that is killed at each write; rows that come from everywhere while people sort.

The full scale: ``QUIRE_RACE=1000`` (rounds of 20 processes on one row), ``QUIRE_KILLS=all``, ``QUIRE_ROUNDS=500``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quire import open as open_client
from quire.clock import SYSTEM
from quire.model.codec import parse
from quire.surfaces.panel.cells import letters
from tests.panel.conftest import Sheet
from tests.panel.people import sheets_api
from tests.panel.test_bound import by_id, fill, opened, orders, records, say, settled, table

RACE = int(os.environ.get("QUIRE_RACE", "4"))
#: So many rows are raced for at the same time.
RACE_ROWS = int(os.environ.get("QUIRE_RACE_ROWS", "1"))
RACERS = int(os.environ.get("QUIRE_RACERS", "20" if RACE > 100 else "4"))
ALL_KILLS = os.environ.get("QUIRE_KILLS") == "all"
ROUNDS = int(os.environ.get("QUIRE_ROUNDS", "14"))
ROOT = Path(__file__).parents[2]


@contextmanager
def racers(sheet: Sheet, folder: Path, count: int, **given: Any) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that keep the panel and work, all ready."""
    for old in folder.glob("ready-*"):
        old.unlink()
    (folder / "stop").unlink(missing_ok=True)
    given = {"url": sheet.url, "ledger": f"sqlite:///{folder}/ledger.db", "folder": str(folder), **given}
    command = [sys.executable, "-m", "tests.panel.racer", json.dumps(given)]
    processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        until(lambda: len(list(folder.glob("ready-*"))) >= count)
        yield processes
    finally:
        (folder / "stop").touch()
        for process in processes:
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def say_figure(text: str) -> None:
    """For whoever runs the full scale, with ``-s``."""
    sys.stdout.write(f"{text}\n")


def until(holds: Any, what: Any = "") -> None:
    ends = SYSTEM.boottime() + 300
    while not holds():
        assert SYSTEM.boottime() < ends, f"it does not come to that: {what() if callable(what) else what}"
        threading.Event().wait(0.02)


@pytest.mark.parametrize("lease", [True, False], ids=["one keeps the panel", "all believe that they do"])
def test_many_processes_at_one_row_and_one_starts_each_time(sheet: Sheet, tmp_path: Path, lease: bool) -> None:
    orders_ = [f"A-{number}" for number in range(RACE_ROWS)]
    fill(sheet, [[order, f"c{order}", "1", "", "Ready", ""] for order in orders_])
    runs, rounds = tmp_path / "runs", RACE // RACE_ROWS
    with racers(sheet, tmp_path, RACERS, lease=lease):
        for number in range(1, rounds + 1):
            if number > 1:
                again = [["Run again"]] * RACE_ROWS
                sheet.person("edit", "Orders", range=f"E4:E{3 + RACE_ROWS}", values=again)
            wanted = number * RACE_ROWS
            until(lambda wanted=wanted: len(lines_of(runs)) >= wanted and ended(sheet), lambda: table(sheet))
    ids = [
        f"orders-{order}" + (f"_run{number}" if number > 1 else "")
        for order in orders_
        for number in range(1, rounds + 1)
    ]
    assert Counter(line.split()[1] for line in lines_of(runs)) == Counter(ids)
    with open_client(f"sqlite:///{tmp_path}/ledger.db") as client:
        assert {record.record_id for record in client.find(limit=10_000)} == set(ids)
    many = len({line.split()[2] for line in lines_of(runs)})
    say_figure(f"{len(ids)} races of {RACERS} processes, {RACE_ROWS} rows; {many} of the processes ran some")


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def ended(sheet: Sheet) -> bool:
    return {row["Task_Status"] for row in table(sheet)} == {"Finalized"}


ROWS = [
    ["A-1", "plain", "1", "", "Ready", ""],
    ["A-2", "broken", "2", "", "Ready", ""],
    ["A-3", "asks", "3", "", "Ready", ""],
]


def test_a_process_is_killed_before_and_after_each_of_its_writes(sheet: Sheet, tmp_path: Path) -> None:
    """Real SIGKILLs. Afterwards the cells say what the records say, and nothing was started twice."""
    nth, kills = 0, 0
    while True:
        nth += 1
        if not ALL_KILLS and nth > 1:
            nth += 4
        died = [killed_once(sheet, tmp_path / f"{nth}-{when}", nth, when) for when in ("before", "after")]
        kills += sum(died)
        if not any(died):
            break
    assert kills >= 3, kills
    say_figure(f"{kills} kills")


def killed_once(sheet: Sheet, folder: Path, nth: int, when: str) -> bool:
    """Whether the process came to its nth write at all, and died there."""
    folder.mkdir()
    for tab in ("Orders", "state_table", "panel", "quire_state", "quire_tables"):
        if any(each["properties"]["title"] == tab for each in sheet.meta("sheets.properties")["sheets"]):
            sheet.person("delete_sheet", tab)
    fill(sheet, ROWS)
    with racers(sheet, folder, 1, die_at=[nth, when]) as [mortal]:
        until(lambda: mortal.poll() is not None or played(sheet), lambda: table(sheet))
        died = mortal.poll() == -signal.SIGKILL
    if died:
        with racers(sheet, folder, 1):
            until(lambda: played(sheet), lambda: table(sheet))
    runs = Counter(line.split()[0] for line in lines_of(folder / "runs"))
    assert runs == {"plain": 1, "broken": 1, "asks": 1}, (nth, when, runs)
    with open_client(f"sqlite:///{folder}/ledger.db") as client:
        assert {record.record_id: str(record.status) for record in client.find()} == {
            "orders-A-1": "DONE",
            "orders-A-2": "ERROR",
            "orders-A-3": "DONE",
        }
    return died


def played(sheet: Sheet) -> bool:
    """A person's part; and whether the rows are as they are in the end."""
    try:
        rows = by_id(sheet)
    except IndexError:
        return False
    if rows["A-3"]["Task_Status"] == "Needs approval":
        say(sheet, "A-3", "Approved")
    said = [(rows[name]["Task_Status"], rows[name]["confirmation"]) for name in ("A-1", "A-2", "A-3")]
    return said == [("Finalized", "C-plain-1"), ("Failed", ""), ("Finalized", "C-asks-3")]


FORM = ["Timestamp", "Client", "Amount", "Task_Status", "confirmation"]


class Arrivals:
    """A form, a program and a person who all bring rows, and people who sort, insert and move meanwhile."""

    def __init__(self, api: Any, sheet: Sheet, seed: int) -> None:
        self.api, self.sheet, self.chance = api, sheet, random.Random(seed)
        self.came: dict[str, str] = {}
        #: Cells that the person has still to type, one at a time, in a row of their own.
        self._typing: list[tuple[str, str]] = []

    def act(self) -> None:
        do = self.chance.choice(["form", "program", "person", "person", "person", "sort", "sort", "insert", "move"])
        getattr(self, f"_{do}")()

    def begin(self) -> None:
        self._form()
        self._program()

    def finish(self) -> None:
        while self._typing:
            self._person()

    def _new(self, way: str) -> tuple[str, str]:
        number = len(self.came) + 1
        self.came[f"{way}{number}"] = str(number)
        return f"{way}{number}", str(number)

    def _append(self, row: list[str]) -> None:
        self.api.values().append(
            spreadsheetId=self.sheet.book_id,
            range="Orders!A1",
            valueInputOption="USER_ENTERED",
            insertDataOption="INSERT_ROWS",
            body={"values": [row]},
        ).execute()

    def _form(self) -> None:
        client, amount = self._new("form")
        self._append([f"1/2/2026 10:{len(self.came) % 60:02}:00", client, amount])

    def _program(self) -> None:
        client, amount = self._new("program")
        self._append(["", client, amount, "Ready"])

    def _person(self) -> None:
        """Type one cell of the row at hand, wherever sorting has brought it: found by what stands in it."""
        if not self._typing:
            client, _ = self._new("person")
            self._append(["", client])
            self._typing = [(client, "Amount"), (client, "Task_Status")]
            return
        client, column = self._typing.pop(0)
        grid = self.sheet.grid("Orders")
        row = next(number for number, cells in enumerate(grid, 1) if client in cells)
        text = self.came[client] if column == "Amount" else "Ready"
        if column == "Task_Status" and len(grid[row - 1]) > 3 and grid[row - 1][grid[0].index(column)]:
            return  # it was complete, and has started
        self.sheet.person("edit", "Orders", cell=f"{letters(grid[0].index(column))}{row}", text=text)

    def _area(self) -> dict[str, Any]:
        tabs = self.sheet.meta("sheets.properties")["sheets"]
        own = next(each["properties"] for each in tabs if each["properties"]["title"] == "Orders")
        return {"sheetId": own["sheetId"], "startRowIndex": 1, "endRowIndex": max(2, len(self.sheet.grid("Orders")))}

    def _batch(self, request: dict[str, Any]) -> None:
        self.api.batchUpdate(spreadsheetId=self.sheet.book_id, body={"requests": [request]}).execute()

    def _sort(self) -> None:
        order = self.chance.choice(["ASCENDING", "DESCENDING"])
        spec = [{"dimensionIndex": self.chance.randrange(6), "sortOrder": order}]
        self._batch({"sortRange": {"range": self._area(), "sortSpecs": spec}})

    def _rows(self) -> dict[str, Any]:
        area = self._area()
        at = self.chance.randint(1, area["endRowIndex"] - 1)
        return {"sheetId": area["sheetId"], "dimension": "ROWS", "startIndex": at, "endIndex": at + 1}

    def _insert(self) -> None:
        self._batch({"insertDimension": {"range": self._rows(), "inheritFromBefore": False}})

    def _move(self) -> None:
        self._batch({"moveDimension": {"source": self._rows(), "destinationIndex": 1}})


@pytest.mark.parametrize("seed", [1, 2])
async def test_rows_of_a_form_a_program_and_a_person_become_records_once_while_people_sort(
    sheet: Sheet, seed: int
) -> None:
    fill(sheet, [], top=1, header=FORM)
    with sheets_api(sheet.emulator) as api:
        people = Arrivals(api, sheet, seed)
        flow = orders(id=None, blank="start", yes=True)
        async with opened(sheet, flow) as panel:
            write = panel.book.write

            async def meanwhile(*args: Any, **kwargs: Any) -> Any:
                for _ in range(people.chance.randint(0, 2)):
                    people.act()
                return await write(*args, **kwargs)

            panel.book.write = meanwhile  # type: ignore[method-assign]
            people.begin()
            for _ in range(ROUNDS):
                people.act()
                await panel.look()
                await panel.client.work()
            panel.book.write = write  # type: ignore[method-assign]
            people.finish()
            await settled(panel, 5)
            started = await records(panel)
    found = Counter(parse(record.data)["client"] for record in started.values())
    assert found == Counter(people.came.keys()), (found, people.came)
    rows = {row["Client"]: row for row in table(sheet, top=1)}
    for client, amount in people.came.items():
        assert (rows[client]["Task_Status"], rows[client]["confirmation"]) == ("Finalized", f"C-{client}-{amount}")
    ways = {"".join(letter for letter in client if letter.isalpha()) for client in people.came}
    assert ways == {"form", "program", "person"}, ways
