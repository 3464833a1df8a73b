"""A book that somebody restores to an earlier version while records run: a world of its own.

Acknowledged commits are gone then, so the specification does not hold. What is promised instead: everybody who works on
the book notices and stops, also a process that comes later and knows nothing; and no effect is done twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from quire.errors import LedgerError
from tests.simulation.check import Violation
from tests.simulation.history import History
from tests.simulation.plan import BUSY_SECONDS, Plan
from tests.simulation.real.sheets import Sheets
from tests.simulation.real.system import System
from tests.simulation.script import Do, How, Script, Word

#: After so many seconds nobody acts any more: each process reads every minute what others have noticed, and then some.
NOTICED_SECONDS = 90.0


RESTORES = "somebody restores the book"


class Restored(System):
    """``versions``: so far back goes the book."""

    def __init__(self, plan: Plan, store: Sheets, folder: Path, versions: int) -> None:
        super().__init__(plan, store, folder)
        self.book = store
        self.versions = versions

    async def busy(self, lives: Sequence[asyncio.Future[None]]) -> None:
        await self.clock.sleep(BUSY_SECONDS / 2)
        await self.book.calm()
        await self.book.person(do="restore", versions=self.versions)
        self.strikes(f"{RESTORES} of {self.versions} versions ago")
        await self.clock.sleep(NOTICED_SECONDS + BUSY_SECONDS / 2)

    async def come_to_its_end(self) -> None:
        self.history.ended_at = self.now


async def history_of(plan: Plan, store: Sheets, folder: Path) -> History:
    await store.begin(plan.seed)
    system = Restored(plan, store, folder, versions=1 + plan.seed % 6)
    try:
        return await system.run()
    except LedgerError:  # a person who notices it, too
        return system.history


def check(plan: Plan, history: History) -> list[Violation]:
    """What went wrong when the book was restored."""
    hows = {do.name: do.how for root in plan.roots for do in _acts(root.script)}
    acts = [one for one in history.happenings if one.kind == "acts"]
    times = Counter((one.key, one.name) for one in acts)
    found = [
        Violation("twice", f"{name} was done {count} times")
        for (_, name), count in times.items()
        if count > 1 and hows[name] is not How.REPEATED
    ]
    [restored_at] = [at for at, what in history.faults if what.startswith(RESTORES)] or [history.ended_at]
    late = [one for one in acts if one.at > restored_at + NOTICED_SECONDS]
    return found + [
        Violation("goes on", f"{one.record} did {one.name} long after the book was restored") for one in late
    ]


def _acts(script: Script) -> list[Do]:
    own = [do for do in script.every() if do.word is Word.ACT]
    return own + [one for do in script.every() for child in do.children for one in _acts(child)]
