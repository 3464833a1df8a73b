"""Every pair of verbs that may meet, on two instances of one store, one held between its locks and its decision (4).

Whatever the interleaving, the answers and every row must be what the memory ledger has after one of the two orders:
so versions are raised by the winners alone, logs are whole, and no receipt, signal or count is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from quire.ledger.base import Ledger, Recovered
from quire.ledger.columns import key_of
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.change import Applied, Beaten, Claimed, Conflict, Refused, Standing
from quire.model.event import Event
from quire.model.row import replace
from quire.testing.clock import ToldClock
from quire.testing.conformance.copies import TABLES
from quire.testing.conformance.situations import SITUATIONS, Make, Scene, Verb
from quire.testing.conformance.suite import Suite, Together

#: What two verbs answered, and all rows after them.
Seen = tuple[Any, Any, list[Any]]


async def answer_of(call: Awaitable[Any]) -> Any:
    """What was answered, without what depends on the moment of asking."""
    try:
        answer = await call
    except Exception as error:  # noqa: BLE001 - the two orders say which errors may come
        return type(error).__name__
    return _told(answer)


def _told(answer: Any) -> Any:
    match answer:
        case list():
            return [_told(one) for one in answer]
        case Applied():
            return ("applied", answer.record, answer.again)
        case Conflict():
            return ("conflict", answer.record)
        case Refused():
            return ("refused", answer.code)
        case Claimed():
            return ("claimed", answer.records)
        case Beaten():
            return ("beaten", sorted(answer.lost), sorted(answer.cancelled))
        case Recovered():
            return "recovered"
        case Standing():
            return "ordered"
    return answer


async def rows_of(ledger: Ledger) -> list[Any]:
    """Every row of the ledger; of the log's order only what each record sees of it."""
    rows: list[Any] = []
    for type_ in TABLES:
        if type_ is not Event:
            rows += sorted(await ledger.dump(type_), key=key_of)
    events = sorted(await ledger.dump(Event), key=lambda event: (event.record_id, event.n))
    standing = await ledger.standing()
    return [*rows, *(replace(event, seq=0) for event in events), standing.epoch, standing.sealed]


async def in_order(make: Make, start: float, first: str, second: str, *, swapped: bool = False) -> Seen:
    """What the memory ledger says when one verb comes after the other, or before it."""
    clock = ToldClock(start)
    ledger = MemoryLedger(clock)
    situation = await make(Scene(ledger, clock))
    if swapped:
        two = await told_later(situation.verb(second), ledger)
        one = await answer_of(situation.verb(first)(ledger))
    else:
        one = await answer_of(situation.verb(first)(ledger))
        two = await told_later(situation.verb(second), ledger)
    return one, two, await after_all(ledger, one, two)


async def told_later(verb: Verb, ledger: Ledger) -> Any:
    """The answer of the second verb. When an order is acknowledged, whatever goes before it is in the log (15)."""
    answer = await answer_of(verb(ledger))
    return (answer, len(await ledger.events())) if answer == "ordered" else answer


async def after_all(ledger: Ledger, *answers: Any) -> list[Any]:
    """All rows, in the end: a sweep may leave to the next one what came while it looked."""
    if "recovered" in answers:
        await ledger.recover()
    return await rows_of(ledger)


class Pairs(Suite):
    """Each outcome is as if one verb had come after the other (4, 5, 6, 8, 15)."""

    @pytest.mark.parametrize("make", SITUATIONS, ids=lambda make: make.__name__)
    async def test_two_verbs_that_meet_are_as_if_one_came_after_the_other(
        self,
        ledger: Ledger,
        twin: Ledger,
        clock: ToldClock,
        emptied: Callable[[], object],
        together: Together,
        make: Make,
    ) -> None:
        pairs = (await make(Scene(MemoryLedger(at := ToldClock()), at))).pairs()
        torn: list[str] = []
        for first, second in pairs:
            emptied()
            start = clock.now()
            situation = await make(Scene(ledger, clock))
            one, two = situation.verb(first), situation.verb(second)

            answers = await together(ledger, answer_of(one(ledger)), twin, told_later(two, twin))

            # A claim passes over what another holds at this moment; the worker asks again.
            told = [
                await answer_of(verb(store)) if answer == ("claimed", ()) else answer
                for answer, verb, store in zip(answers, (one, two), (ledger, twin), strict=True)
            ]
            seen = (told[0], told[1], await after_all(twin, *told))
            orders = [await in_order(make, start, first, second, swapped=swapped) for swapped in (False, True)]
            if seen not in orders:
                torn.append(f"{first!r} held while {second!r} comes: {difference(seen, orders)}")

        assert not torn, f"{len(torn)} of {len(pairs)} pairs\n" + "\n".join(torn)


def difference(seen: Seen, orders: Sequence[Seen]) -> str:
    """How it is unlike each of the two orders."""
    lines = []
    for name, order in zip(("one, two", "two, one"), orders, strict=True):
        unlike = [f"{a} is not {b}" for a, b in zip(seen[:2], order[:2], strict=True) if a != b]
        extra = [f"has {row}" for row in seen[2] if row not in order[2]]
        lacking = [f"lacks {row}" for row in order[2] if row not in seen[2]]
        lines.append(f"  not {name}: " + "; ".join((unlike + extra + lacking)[:4]))
    return "\n" + "\n".join(lines)
