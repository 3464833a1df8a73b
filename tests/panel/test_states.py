"""States without Python: in ``quire.toml``, or in a tab of the book (``from | to | who``)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from quire.clock import SYSTEM
from quire.errors import DefinitionError, IllegalMove
from quire.surfaces.cli import cli
from quire.surfaces.cli.flows import load_file
from quire.workflows import states
from tests.panel.conftest import Sheet
from tests.panel.test_bound import by_id, fill, opened, records, say, settled

BOUND = '[states.claims]\ntab = "Orders"\nstatus = "Task_Status"\nid = "Order No"\n'
MOVES = """moves = [
  { from = "Neu", to = "Geprüft" },
  { from = "Geprüft", to = "Bezahlt", who = ["finance"] },
  { from = "Geprüft", to = ["Abgelehnt", "Neu"], who = "sheet" },
]
"""
GROUPS = '[groups]\nfinance = ["ann"]\n'


def toml(folder: Path, text: str) -> Path:
    path = folder / "quire.toml"
    path.write_text(text, encoding="utf-8")
    return path


async def test_states_of_the_configuration_move_rows_and_say_who_may(sheet: Sheet, tmp_path: Path) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Neu"], ["A-2", "Umbra", "1", "", "Bezahlt"]])
    [flow] = load_file(str(toml(tmp_path, BOUND + MOVES)))
    async with opened(sheet, flow) as panel:
        await settled(panel)
        assert list(await records(panel)) == ["orders-A-1"]
        say(sheet, "A-1", "geprüft")
        await settled(panel)
        assert by_id(sheet)["A-1"]["Task_Status"] == "Geprüft"
        say(sheet, "A-1", "Bezahlt")
        await settled(panel)
        row = by_id(sheet)["A-1"]
        assert row["Task_Status"] == "Geprüft"
        assert row["Quire_Note"].startswith("Invalid state transition: Cannot move from Geprüft to Bezahlt. (this move")
        with pytest.raises(IllegalMove, match="this move is for finance, and it was asked by tester"):
            await panel.client.move("orders-A-1", "Bezahlt")
        assert [line.kind for line in await panel.client.events("orders-A-1")][-2:] == ["refused", "refused"]
        panel.client.link.groups["finance"] = ["ann"]
        await panel.client.move("orders-A-1", "Bezahlt", by="ann")
        await settled(panel)
        assert {name: each["Task_Status"] for name, each in by_id(sheet).items()} == {
            "A-1": "Bezahlt",
            "A-2": "Bezahlt",
        }


@contextmanager
def up(folder: Path, *words: str) -> Iterator[None]:
    command = [sys.executable, "-m", "quire.surfaces.cli", "up", "--port", "0", *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def test_a_tab_of_the_book_says_the_moves_and_the_command_line_and_cells_obey_it(sheet: Sheet, tmp_path: Path) -> None:
    fill(sheet, [["A-1", "Acme", "1", "", "Ready"], ["A-2", "Umbra", "1", "", "Processing"]])
    file = toml(tmp_path, f'panel = "{sheet.url}"\nledger = "sqlite:///ledger.db"\n{GROUPS}')
    quire = CliRunner()
    made = quire.invoke(
        cli, ["--config", str(file), "table", "init", "--tab", "Orders", "--states", "--moves-to", "Moves"]
    )
    assert made.exit_code == 0, made.output
    assert sheet.grid("Moves") == [["from", "to", "who"], ["Ready", "Processing"]]
    again = quire.invoke(
        cli, ["--config", str(file), "table", "init", "--tab", "Orders", "--states", "--moves-to", "moves"]
    )
    assert again.exit_code == 2 and "there is a tab 'moves' already" in again.output
    sheet.person("edit", "Moves", range="A3:C3", values=[["Processing", "Finalized, Rejected", "finance"]])
    file.write_text(file.read_text(encoding="utf-8") + made.output, encoding="utf-8")
    with up(tmp_path):
        until(lambda: str(by_id(sheet, render="FORMULA")["A-1"]["Task_Status"]).startswith("="))
        say(sheet, "A-1", "Finalized")
        until(lambda: "Cannot move from Ready to Finalized." in by_id(sheet)["A-1"]["Quire_Note"])
        say(sheet, "A-1", "Processing")
        until(lambda: by_id(sheet)["A-1"]["Task_Status"] == "Processing" and not by_id(sheet)["A-1"]["Quire_Note"])
        refused = quire.invoke(
            cli, ["--config", str(file), "move", "orders-A-1", "Finalized"], env={"QUIRE_WHO": "bob"}
        )
        assert refused.exit_code != 0 and "Cannot move from Processing to Finalized." in refused.output, refused.output
        done = quire.invoke(cli, ["--config", str(file), "move", "orders-A-1", "Finalized"], env={"QUIRE_WHO": "ann"})
        assert done.exit_code == 0, done.output
        until(lambda: by_id(sheet)["A-1"]["Task_Status"] == "Finalized")


def until(holds: object) -> None:
    ends = SYSTEM.boottime() + 90
    while not holds():  # type: ignore[operator]
        assert SYSTEM.boottime() < ends, "it does not come to that"
        threading.Event().wait(0.2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[states]\nclaims = 3\n", "must be a table of tables, like"),
        ("[states.claims]\n", "must be the title of a tab, or a list like"),
        ('[states.claims]\nmoves = [{ from = "a" }]\n', "to of [states.claims]"),
        ('[states.claims]\nmoves = [{ from = "a", too = "b" }]\n', "takes no option 'too'; did you mean 'to'"),
        ('[states.claims]\nstatus = "S"\nmoves = [{ from = "a", to = "b" }]\n', "names no tab"),
        ('[states.claims]\ntab = "S"\nmoves = [{ from = "a", to = "b" }]\n', "names no status column"),
        ('[states.claims]\nmoves = [{ from = "a", to = "a" }]\n', "is a trap"),
        ('[states.claims]\nmoves = "Moves"\n', "name the sheet"),
        ("ledger = 'memory:'\n", "holds no states"),
    ],
)
def test_what_is_wrong_with_states_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    from quire.errors import QuireError

    with pytest.raises(QuireError) as refused:
        load_file(str(toml(tmp_path, text)))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ([["a", "b"]], "has no header"),
        ([["from", "to", "To"]], "has two columns 'to'"),
        ([["from", "to"], ["a", ""]], "row 2 of the tab 'M' says only one of from and to"),
        ([["from", "to"]], "has no row that says from and to"),
    ],
)
def test_what_is_wrong_with_a_tab_of_moves_is_one_sentence(grid: list[list[str]], said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        states.moves_in(grid, "the tab 'M'")
    assert said in str(refused.value)
