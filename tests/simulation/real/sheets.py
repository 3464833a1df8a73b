"""A Google spreadsheet in the emulator: Google that answers badly, and people who do as they like in the book."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from hectograph import Emulator
from quire.clock import SYSTEM
from quire.google.drive import SPREADSHEET
from quire.ledger.sheets.book import JOURNAL_ID, STATE_ID
from tests.simulation.plan import BUSY_SECONDS, Fault, Plan
from tests.simulation.real.clock import SwiftClock
from tests.simulation.real.machine import CONTEXT
from tests.simulation.real.stores import Store

#: What Google does badly: its name, and the rules of the emulator for it.
BADLY: dict[str, dict[str, Any]] = {
    "answers 429 to most": {"fault": "rate_limit", "probability": 0.7, "count": None},
    "loses answers": {"fault": "lost_answer", "probability": 0.3, "count": None},
    "resets connections": {"fault": "reset", "probability": 0.3, "count": None},
    "does things and answers 500": {"fault": "error_after", "status": 500, "probability": 0.3, "count": None},
    "answers 503": {"fault": "error", "status": 503, "probability": 0.4, "count": None},
    "answers late": {"fault": "late_answer", "seconds": 0.1, "jitter": 0.3, "probability": 0.3, "count": None},
    "shows an older version": {"fault": "stale_read", "versions": 1, "probability": 0.3, "count": None},
    "accepts two commits at once": {"fault": "race", "kind": "batchUpdate", "count": 2},
}
#: What people do, and in which tab.
PEOPLE: dict[str, dict[str, Any]] = {
    "renames the tab of the journal": {"do": "rename_sheet", "sheet": JOURNAL_ID, "title": "old journal"},
    "makes a tab named journal": {"do": "add_sheet", "title": "journal"},
    "sorts and inserts in the journal": {
        "sheet": JOURNAL_ID,
        "only": ["insert_rows", "sort", "move_rows", "paste_rows"],
        "rounds": 2,
        "keep_rows": 1,
    },
    "types, deletes and sorts in the tab state": {
        "sheet": STATE_ID,
        "only": ["edit", "delete_rows", "insert_rows", "sort", "clear"],
        "rounds": 3,
    },
    "works in a tab of their own": {"sheet": "Sheet1", "rounds": 5},
}


def run_google(speed: float, beginning: float, told: Connection) -> None:
    """Be the emulator, in a process of its own."""
    clock = SwiftClock(speed, beginning)
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    with Emulator(clock=lambda: datetime.fromtimestamp(clock.now(), UTC)) as emulator:
        told.send(emulator.port)
        done.wait()


class Sheets(Store):
    speed = 10.0
    lease = 60.0
    workers = 3

    def __init__(self) -> None:
        self.beginning = SYSTEM.now()
        self.clock = SwiftClock(self.speed, self.beginning)
        self._book = ""
        self._rules: set[int] = set()

    def __enter__(self) -> Self:
        here, there = CONTEXT.Pipe()
        self._google = CONTEXT.Process(target=run_google, args=(self.speed, self.beginning, there), daemon=True)
        self._google.start()
        there.close()
        self.port = here.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._google.terminate()
        self._google.join()

    async def begin(self, seed: int) -> None:
        self._book = (await self._call("POST", "drive/v3/files", {"name": f"{seed}", "mimeType": SPREADSHEET}))["id"]

    async def end(self) -> None:
        await self._call("POST", "emulator/reset", {})

    def address(self, port: int) -> str:
        return f"sheets://{self._book}?endpoint=http://127.0.0.1:{port}/"

    def faults(self, dice: random.Random, plan: Plan) -> list[Fault]:
        found = []
        for _ in range(dice.randint(2, 5)):
            kind, span = dice.choice(list(BADLY)), dice.choice((3.0, 8.0, 20.0))
            found.append(Fault("Google", kind, at=dice.uniform(3.0, BUSY_SECONDS), span=span))
        for number in range(dice.randint(2, 6)):
            kind = dice.choice(list(PEOPLE))
            found.append(Fault("somebody", kind, at=dice.uniform(3.0, BUSY_SECONDS), nth=0, span=float(number)))
        return found

    async def strike(self, fault: Fault) -> None:
        if fault.process == "somebody":
            seed = int(fault.at * 1000)
            await self.person(**{"do": "random", "seed": seed, **PEOPLE[fault.kind]})
            return
        [rule] = (await self._call("POST", "emulator/faults", {**BADLY[fault.kind], "seed": int(fault.at)}))["faults"]
        await self.clock.sleep(fault.span)
        await self._call("DELETE", f"emulator/faults/{rule['id']}")

    async def person(self, **given: Any) -> None:
        """Somebody does this in the book. What Google does not let them do is not done."""
        with suppress(urllib.error.HTTPError):
            await self._call("POST", "emulator/person", {"book": self._book, **given})

    async def calm(self) -> None:
        await self._call("DELETE", "emulator/faults")

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        return await asyncio.to_thread(self._called, method, path, body)

    def _called(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")
