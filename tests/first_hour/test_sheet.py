"""A sheet without a Google account, by a newcomer."""

from __future__ import annotations

import re
from pathlib import Path

from tests.first_hour.newcomer import Newcomer


def test_one_command_leads_from_nothing_to_a_running_sheet(newcomer: Newcomer) -> None:
    running = newcomer.beside("quire init --emulate shop")
    running.until("wrote shop/quire.toml")
    said = running.until("the sheet: http://127.0.0.1:")
    newcomer.tells("cd shop && quire start greet name=Ann --id hello --follow", "Send this?", code=7)
    assert running.stop() == 0

    again = newcomer.beside("quire init --emulate shop")
    again.until("left shop/quire.toml as it is")
    assert again.until("the sheet: ") == said
    newcomer.tells("cd shop && quire list --needs-me", "hello", "Send this?")
    assert again.stop() == 0

    newcomer.type("quire init other")
    newcomer.tells("quire init --emulate other", "other/quire.toml names another ledger", "an empty directory", code=2)


def test_the_emulator_prints_a_book_and_ends_with_its_command(newcomer: Newcomer) -> None:
    emulator = newcomer.beside("quire emulate --port 0 --file books.json")
    url = emulator.until("listening on ").split()[-1].rstrip("/")
    address = emulator.until("a book for a ledger: ").split()[-1]
    assert re.fullmatch(rf"sheets://[\w-]+\?endpoint={re.escape(url)}", address)
    newcomer.tells(f"quire init '{address}'", "wrote quire.toml")
    newcomer.tells("quire start greet name=Ann --id hello", "started hello")

    pid = emulator.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    assert children == ""  # `kill -TERM` reaches all there is
    assert emulator.stop() == 0

    kept = newcomer.beside("quire emulate --port 0 --file books.json")
    assert kept.until("a book for a ledger: ").split("?")[0].endswith(address.split("?")[0])
    assert kept.stop() == 0
