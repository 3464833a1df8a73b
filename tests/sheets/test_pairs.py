"""Pairs of verbs on one book, one held by the emulator between its plan and its landing while the other lands (4).

The first is refused then, reads, and is planned anew: answers and rows must be what the memory ledger has after one of
the two orders. All pairs step on the databases; these are those that promises rest on.
"""

from __future__ import annotations

import asyncio

import pytest

from quire.clock import SYSTEM
from quire.ledger.sheets.ledger import SheetsLedger
from quire.ledger.sheets.takeover import Witness
from quire.model.row import replace
from quire.model.side import Worker
from quire.testing import ToldClock
from quire.testing.conformance.pairs import Seen, after_all, answer_of, difference, in_order, told_later
from quire.testing.conformance.situations import SITUATIONS, Make, Scene
from tests.sheets.conftest import Google
from tests.sheets.test_faults import BATCH, opened

NAMED = {make.__name__: make for make in SITUATIONS}
CHOSEN = [
    ("nothing_there", "start", "start with other data"),
    ("nothing_there", "start", "halt"),
    ("due", "claim", "claim of another"),
    ("due", "claim", "cancel"),
    ("running", "done", "takeover"),
    ("running", "intend", "halt"),
    ("running", "wait", "send"),
    ("acting", "receipt", "takeover"),
    ("asking", "yes", "no"),
    ("doubtful", "it did not", "late receipt"),
    ("family", "one ends", "the other ends"),
    ("capped", "claim", "claim of another"),
]


def _plain(seen: Seen) -> Seen:
    """Without the ends of leases: on a book every commit of a worker is a beat of it (protocol 9)."""
    one, two, rows = seen
    return one, two, [replace(row, expires_at=0.0) if isinstance(row, Worker) else row for row in rows]


async def torn(google: Google, make: Make, first: str, second: str) -> str:
    """How the two, as they met on a new book, are unlike one after the other; empty: they are not."""
    clock = ToldClock()
    book = f"sheets://{google.new_book()}?endpoint={google.url}"
    ledger, twin = SheetsLedger(f"{book}&user=held", clock), SheetsLedger(book, clock)
    async with opened(ledger, twin):
        start = clock.now()
        situation = await make(Scene(ledger, clock))
        await twin.standing()
        google.fault("barrier", kind=BATCH, contains="insertDimension", user="held", parties=2, timeout_seconds=60)
        held = asyncio.ensure_future(answer_of(situation.verb(first)(ledger)))
        while not (held.done() or google("GET", "/emulator/faults")["faults"][0]["hits"]):
            await SYSTEM.sleep(0.005)
        two = await told_later(situation.verb(second), twin)
        google.calm()
        one = await held
        seen = _plain((one, two, await after_all(twin, one, two)))
    orders = [_plain(await in_order(make, start, first, second, swapped=swapped)) for swapped in (False, True)]
    return "" if seen in orders else f"{first!r} held while {second!r} comes: {difference(seen, orders)}"


@pytest.mark.parametrize(("situation", "first", "second"), CHOSEN, ids=[" ".join(pair) for pair in CHOSEN])
async def test_two_verbs_that_meet_on_a_book_are_as_if_one_came_after_the_other(
    google: Google, situation: str, first: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # When silence is death is another matter (protocol 9): here whoever's lease ran out is dead.
    monkeypatch.setattr(Witness, "judge", lambda self, now, troubled_at: lambda worker: True)
    assert await torn(google, NAMED[situation], first, second) == ""
