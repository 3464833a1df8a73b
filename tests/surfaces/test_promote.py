"""A promotion is killed at any moment, started twice or to two targets, and taken back: never do two ledgers run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import TypeVar

import pytest

from quire.errors import IllegalMove, LedgerError, LedgerUnavailable, Moved, QuireError
from quire.ledger.base import Ledger
from quire.ledger.memory.ledger import MemoryLedger
from quire.model.codec import parse
from quire.model.event import Event, Line
from quire.model.side import Setting
from quire.testing.conformance.asking import commit, new_facts, order, start, the
from quire.testing.faults import Fault, HoldingLedger, LossyLedger, PassingLedger, lose_nth
from quire.upkeep import promote as promoting
from quire.upkeep.promote import OPENED, abort, carry_late, promote, summaries

T = TypeVar("T")


def named(name: str) -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.url = f"sqlite:////there/{name}.db"
    return ledger


async def filled(name: str = "a") -> MemoryLedger:
    ledger = named(name)
    await start(ledger, "r")
    await start(ledger, "s")
    await ledger.keep(Setting("cursor", "{}", 0))
    return ledger


async def runs(ledger: MemoryLedger) -> bool:
    """Whether its records may be worked on."""
    return bool(ledger.tables.all_records) and not ledger.tables.sealed


def opened(ledger: MemoryLedger) -> bool:
    mark = ledger.tables.all_settings.get(OPENED)
    return mark is not None and "last_seq" in parse(mark.value)


def cut_short(target: Ledger, verb: str = "restore") -> Ledger:
    """The target is lost when it is filled, or opened: after its mark was set."""
    return LossyLedger(target, lambda asked, number: "write-lost" if asked == verb and number > 1 else None)


async def moved(source: Ledger, target: Ledger) -> None:
    await promote(source, target, by="ann", wait=0.0)


async def test_a_ledger_that_was_promoted_is_promoted_again() -> None:
    a, b, c = await filled(), named("b"), named("c")
    await moved(a, b)

    await moved(b, c)
    await moved(b, c)

    assert [await runs(ledger) for ledger in (a, b, c)] == [False, False, True]
    assert await summaries(c) == await summaries(a)
    assert (a.tables.sealed, b.tables.sealed) == (b.url, c.url)


@pytest.mark.parametrize("way", ["on", "back"])
async def test_a_mark_that_was_copied_along_opens_nothing(way: str) -> None:
    """As an earlier version left two ledgers behind, both sealed."""
    a, b, c = await filled(), named("b"), named("c")
    await moved(a, b)
    await order(b, "seal", target=f"(on their way to) {c.url}")
    await order(c, "seal", target=f"(being filled from) {b.url}")
    await c.restore(Setting, await b.dump(Setting), 1)

    if way == "on":
        await moved(b, c)
    else:
        await abort(b, c, by="ann")

    assert [await runs(ledger) for ledger in (b, c)] == [way == "back", way == "on"]


async def test_a_moved_ledger_goes_nowhere_else_and_is_not_taken_back() -> None:
    a, b, c = await filled(), named("b"), named("c")
    await moved(a, b)

    for ask in (moved(a, c), abort(a, c, by="ann"), carry_late(a, c)):
        with pytest.raises(Moved, match="are at sqlite:////there/b"):
            await ask
    with pytest.raises(IllegalMove, match="was opened already"):
        await abort(a, b, by="ann")

    assert a.tables.sealed == b.url
    assert (c.tables.sealed, c.tables.all_settings) == ("", {})


async def test_a_ledger_on_its_way_goes_nowhere_else_until_it_is_taken_back() -> None:
    a, b, c = await filled(), named("b"), named("c")
    with pytest.raises(LedgerUnavailable):
        await moved(a, cut_short(b))

    for ask in (moved(a, c), abort(a, c, by="ann"), carry_late(a, c)):
        with pytest.raises(IllegalMove, match=r"quire promote sqlite:////there/a.db sqlite:////there/b.db --abort"):
            await ask
    with pytest.raises(IllegalMove, match="holds part of a copy only"):
        await moved(b, c)
    with pytest.raises(IllegalMove, match="were not moved to"):
        await carry_late(a, b)
    await abort(a, b, by="ann")
    with pytest.raises(IllegalMove, match="is not sealed"):
        await abort(a, b, by="ann")
    await moved(a, c)

    assert [await runs(ledger) for ledger in (a, b, c)] == [False, False, True]


async def test_a_target_that_lost_the_records_is_not_filled_with_old_ones() -> None:
    a = await filled()
    await moved(a, named("b"))

    with pytest.raises(Moved, match="was not opened with them"):
        await moved(a, named("b"))


async def test_a_refused_promotion_leaves_the_source_as_it_was() -> None:
    a, other, grave, half, doctored = await filled(), await filled("o"), named("g"), named("h"), named("d")
    await order(grave, "seal", target="postgresql://ann:secret@host/db")
    await order(half, "seal", target="(being filled from) sqlite:////there/z.db")
    await doctored.keep(Setting("own", "1", 0))

    for target, what in (
        (other, "has records of its own"),
        (grave, "is sealed: its records are at postgresql://ann:…@host/db"),
        (half, "holds part of a copy of sqlite:////there/z.db"),
        (doctored, "has settings of its own"),
    ):
        with pytest.raises(IllegalMove, match=what):
            await moved(a, target)
        assert a.tables.sealed == ""


async def test_a_ledger_under_two_names_is_not_moved_into_itself() -> None:
    a = named("a")
    twin = PassingLedger(a)
    twin.url = "postgresql://another/name"

    with pytest.raises(QuireError, match="are the same ledger"):
        await moved(a, twin)

    assert a.tables.sealed == ""


async def test_no_password_is_told_nor_kept() -> None:
    a, b, told = await filled(), named("b"), list[str]()
    a.url, b.url = "postgresql://ann:secret@host/a", "postgresql://ann:secret@host/b"

    with pytest.raises(LedgerUnavailable):
        await promote(a, cut_short(b), by="ann", tell=told.append)
    assert told[-1].endswith("quire promote 'postgresql://ann:…@host/a' 'postgresql://ann:…@host/b' --abort")
    b.url = "postgresql://ann@host/b"
    await promote(a, b, by="ann", tell=told.append)

    kept = [*told, a.tables.sealed, *(row.value for row in b.tables.all_settings.values())]
    assert not [text for text in kept if "secret" in text]


async def test_a_copy_that_was_cut_short_is_made_again_without_lines_that_were_archived_since() -> None:
    a, b = await filled(), named("b")
    with pytest.raises(LedgerUnavailable):
        await moved(a, cut_short(b, "keep"))
    await abort(a, b, by="ann")
    await commit(a, new_facts(await the(a, "r"), lines=(Line("noted"),)))
    await a.forget((await a.dump(Event))[:1])

    await moved(a, b)

    assert await summaries(b) == await summaries(a)


async def test_a_promotion_that_is_taken_back_while_it_copies_opens_nothing() -> None:
    a, b = await filled(), named("b")
    held = HoldingLedger(b)
    copies = held.hold("restore")
    first = asyncio.ensure_future(moved(a, held))
    await copies.arrived()

    await abort(a, b, by="ann")
    copies.release()

    with pytest.raises(IllegalMove, match="came between"):
        await first
    assert (await runs(a), await runs(b), opened(b)) == (True, False, False)


async def test_whoever_takes_back_late_does_not_open_the_source_under_a_new_attempt() -> None:
    a, b = await filled(), named("b")
    with pytest.raises(LedgerUnavailable):
        await moved(a, cut_short(b))
    slow, held = HoldingLedger(a), HoldingLedger(b)
    unseals, copies = slow.hold("order"), held.hold("restore")
    back = asyncio.ensure_future(abort(slow, b, by="ann"))
    await unseals.arrived()
    again = asyncio.ensure_future(moved(a, held))
    await copies.arrived()

    unseals.release()
    await back
    copies.release()

    with pytest.raises(IllegalMove, match="came between"):
        await again
    assert (await runs(a), await runs(b), opened(b)) == (True, False, False)


async def test_a_promotion_that_died_when_it_had_opened_the_target_is_finished_and_not_taken_back() -> None:
    a, b = await filled(), named("b")
    with pytest.raises(LedgerUnavailable):
        await moved(a, LossyLedger(b, lambda verb, number: "answer-lost" if verb == "keep" and number > 1 else None))

    with pytest.raises(IllegalMove, match="was opened already"):
        await abort(a, b, by="ann")
    await moved(a, b)

    assert (await runs(a), await runs(b)) == (False, True)


async def test_two_promotions_to_two_targets_at_the_same_moment_are_one() -> None:
    a, b, c = await filled(), named("b"), named("c")
    slow = HoldingLedger(a)
    seals = slow.hold("order")
    first = asyncio.ensure_future(moved(slow, b))
    await seals.arrived()

    await moved(a, c)
    seals.release()

    with pytest.raises(IllegalMove, match="came between"):
        await first
    assert [await runs(ledger) for ledger in (a, b, c)] == [False, False, True]


async def test_a_double_that_is_late_does_not_open_a_target_that_another_fills() -> None:
    a, b = await filled(), named("b")
    slow, held = HoldingLedger(b), HoldingLedger(b)
    looks, copies = [slow.hold("counts") for _ in range(3)], [held.hold_answer("restore") for _ in range(2)]
    for barrier in (*looks[:2], copies[0]):
        barrier.release()
    first = asyncio.ensure_future(moved(a, slow))
    await looks[2].arrived()
    second = asyncio.ensure_future(moved(a, held))
    await copies[1].arrived()
    assert b.tables.all_records

    looks[2].release()

    with pytest.raises(IllegalMove, match="came between"):
        await first
    assert b.tables.sealed
    copies[1].release()
    await second
    assert (await runs(a), await runs(b)) == (False, True)


# -- any moment ----------------------------------------------------------------------------------------------------


class Fleet:
    """A source and two targets of which, at every moment, at most one may be worked on."""

    def __init__(self, source: MemoryLedger) -> None:
        self.a, self.b, self.c = source, named("b"), named("c")

    def check(self) -> None:
        live = [not self.a.tables.sealed, opened(self.b), opened(self.c)]
        assert live.count(True) <= 1, f"two ledgers run: {live}, {self.a.tables.sealed!r}"
        for ledger in (self.b, self.c):
            assert opened(ledger) or not ledger.tables.all_records or ledger.tables.sealed

    async def end(self, on: bool) -> None:
        """However it stands: to go on, or to take it back, is possible, and ends with one ledger that runs."""
        for target in (self.b, self.c):
            with suppress(QuireError):
                way = await promoting.way(self.a, target.url)
                if way is promoting.Way.LEAVING and not on and not opened(target):
                    await abort(self.a, target, by="ann")
                elif way is not promoting.Way.OPEN:
                    await moved(self.a, target)
        self.check()
        assert [await runs(ledger) for ledger in (self.a, self.b, self.c)].count(True) == 1
        for ledger in (self.b, self.c):
            if opened(ledger):
                assert await summaries(ledger) == await summaries(self.a)


@pytest.mark.parametrize("on", [True, False], ids=["goes-on", "goes-back"])
@pytest.mark.parametrize("fault", ["write-lost", "answer-lost"])
@pytest.mark.parametrize("which", ["source", "target"])
async def test_losing_any_one_write_leaves_one_ledger_that_runs(which: str, fault: Fault, on: bool) -> None:
    for nth in range(1, 30):
        fleet = Fleet(await filled())
        lossy = LossyLedger(fleet.a if which == "source" else fleet.b, lose_nth(nth, fault))
        try:
            await moved(lossy if which == "source" else fleet.a, fleet.b if which == "source" else lossy)
        except LedgerUnavailable:
            fleet.check()
            await fleet.end(on)
        else:
            assert nth > 2
            return
    raise AssertionError("a promotion has fewer writes than that")


class Turn:
    """Awaited: it is the turn of the others."""

    def __await__(self) -> Generator[None]:
        yield


class Halting(PassingLedger):
    """Stops at times before a verb, for so long that the others end; or dies there; and looks after each verb."""

    def __init__(self, ledger: Ledger, chance: random.Random, often: float, check: Callable[[], None]) -> None:
        super().__init__(ledger)
        self.chance = chance
        self.often = often
        self.check = check

    async def _pass(self, verb: str, call: Callable[[], Awaitable[T]]) -> T:
        if self.chance.random() < self.often:
            for _ in range(self.chance.choice((1, 2, 5, 20))):
                await Turn()
            if self.chance.random() < 0.2:
                raise LedgerUnavailable("it was killed")
        answer = await call()
        self.check()
        return answer


@pytest.mark.parametrize("seed", range(100))
async def test_whatever_meets_never_do_two_ledgers_run(seed: int) -> None:
    chance = random.Random(seed)
    fleet = Fleet(await filled())

    async def one() -> None:
        often = chance.choice((0.03, 0.1, 0.3))
        a, b, c = (Halting(ledger, chance, often, fleet.check) for ledger in (fleet.a, fleet.b, fleet.c))
        target = chance.choice((b, b, b, c))
        for _ in range(chance.randrange(3)):
            await Turn()
        with suppress(IllegalMove, LedgerError):
            await (abort(a, target, by="ann") if chance.random() < 0.4 else moved(a, target))

    await asyncio.gather(*(one() for _ in range(5)))

    await fleet.end(on=bool(seed % 2))
