"""What the process of a worker is told when it begins, and how it opens its ledger."""

from __future__ import annotations

from typing import NamedTuple

import quire.ledger.sheets.ledger as sheets
from quire.clock import Clock
from quire.ledger.base import Ledger
from quire.ledger.finding import open_ledger
from tests.simulation.plan import Fault

#: A journal of a few records is compacted, too.
COMPACT_CHARACTERS = 60_000


class Setup(NamedTuple):
    name: str
    ledger: str
    target: str
    version: int
    lease: float
    speed: float
    beginning: float
    #: It says that it is on a machine of its own: then nobody can see whether it is dead.
    elsewhere: bool
    #: Suspects run in processes of their own, not alone in the worker.
    apart: bool
    #: By so much its wall clock is wrong, and so fast it runs.
    skew: float
    rate: float
    faults: tuple[Fault, ...]
    #: Records, and the places of their scripts, at which they end their process.
    poisons: tuple[tuple[str, str], ...]
    log: str


class PacedSheets(sheets.SheetsLedger):
    """Its pauses between two tries pass on the clock that it was given, too."""

    def _connect(self) -> None:
        super()._connect()
        self.transport.clock = self.clock


def ledger_at(url: str, clock: Clock) -> Ledger:
    if not url.startswith("sheets:"):
        return open_ledger(url, clock)
    sheets.COMPACT_CHARACTERS = COMPACT_CHARACTERS
    return PacedSheets(url, clock)
