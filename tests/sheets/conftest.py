"""One emulator for the session, one book per test; each ledger is another process on that book."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hectograph import Emulator
from quire.google.drive import SPREADSHEET
from quire.ledger.sheets.ledger import SheetsLedger
from quire.testing import ToldClock

MakeLedger = Callable[[], SheetsLedger]


@pytest.fixture(scope="session")
def running_emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture(scope="session", autouse=True)
def emulator_before_tests(running_emulator: Emulator) -> None:
    """Start it before the first test: nothing that a test starts may outlive it."""


class Google:
    """The emulator as a test tells it what to do."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.url = emulator.url

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.emulator.call(method, path, body)
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def fault(self, fault: str, **given: Any) -> None:
        self("POST", "/emulator/faults", {"fault": fault, **given})

    def calm(self) -> None:
        self("DELETE", "/emulator/faults")

    def person(self, book: str, do: str, **given: Any) -> Any:
        return self("POST", "/emulator/person", {"book": book, "do": do, **given})

    def counters(self) -> dict[str, int]:
        found: dict[str, int] = self("GET", "/emulator/counters")["counters"]
        return found

    def forget_counters(self) -> None:
        self("DELETE", "/emulator/counters")

    def new_book(self, title: str = "Book") -> str:
        made: str = self("POST", "/drive/v3/files", {"name": title, "mimeType": SPREADSHEET})["id"]
        return made


@pytest.fixture
def google(running_emulator: Emulator) -> Iterator[Google]:
    google = Google(running_emulator)
    yield google
    google.calm()
    google("POST", "/emulator/settings", {"quotas": False})


@pytest.fixture
def clock() -> ToldClock:
    return ToldClock()


@pytest.fixture
def book(google: Google) -> str:
    return google.new_book()


@pytest.fixture
def make_ledger(google: Google, book: str, clock: ToldClock) -> MakeLedger:
    """Each call gives another process on the one book."""
    return lambda: SheetsLedger(f"sheets://{book}?endpoint={google.url}", clock)


@pytest.fixture
def ledger(make_ledger: MakeLedger) -> SheetsLedger:
    return make_ledger()


@pytest.fixture
def twin(make_ledger: MakeLedger) -> SheetsLedger:
    return make_ledger()
