"""Group commit: what goes together, what side by side, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from quire.clock import SYSTEM
from quire.errors import LedgerUnavailable
from quire.ledger.base import Traits
from quire.model.change import Applied, Change, Refused, Verdict
from quire.model.record import new_record
from quire.testing import ToldClock
from quire.worker.committer import FILLED, Committer


async def others() -> None:
    for _ in range(5):
        await asyncio.sleep(0)  # noqa: TID251 - lets the others run


class SlowLedger:
    """Commits when it is told to; keeps what it was given."""

    def __init__(self, *, side_by_side: bool) -> None:
        self.traits = Traits(durable=True, shared=True, side_by_side=side_by_side)
        self.begun: list[list[str]] = []
        self.landed: list[str] = []
        self._gates: list[asyncio.Event] = []

    async def commit(self, changes: Sequence[Change]) -> list[Verdict]:
        if changes[0].change_id == "bad":
            raise RuntimeError("nobody expected this")
        gate = asyncio.Event()
        self._gates.append(gate)
        self.begun.append([change.change_id for change in changes])
        await gate.wait()
        self.landed += [change.change_id for change in changes]
        row = new_record(record_id="r", workflow="w", step="s", data="{}", now=1.0)
        return [Applied(row, 1.0) for _ in changes]

    async def land(self, number: int) -> None:
        self._gates[number].set()
        await others()


def made(side_by_side: bool) -> tuple[Committer, SlowLedger]:
    ledger: Any = SlowLedger(side_by_side=side_by_side)
    return Committer(ledger, SYSTEM), ledger


def change(record_id: str, change_id: str = "") -> Change:
    return Change(change_id or record_id, record_id, 1, None, "w_1")


async def put(committer: Committer, *changes: Change) -> list[asyncio.Future[Verdict]]:
    futures = [committer.submit(one) for one in changes]
    await others()
    return futures


async def test_a_batch_that_has_filled_does_not_wait_for_the_one_under_way() -> None:
    committer, ledger = made(side_by_side=True)
    await put(committer, change("first"))
    await put(committer, *[change(f"r{number}") for number in range(FILLED - 1)])
    assert ledger.begun == [["first"]]

    await put(committer, change("last"))
    await put(committer, change("more"))

    assert [len(batch) for batch in ledger.begun] == [1, FILLED]
    await ledger.land(1)
    assert len(ledger.begun) == 2, "what is left over is for the commit that is still under way"
    await ledger.land(0)
    assert ledger.begun[2] == ["more"]
    await ledger.land(2)
    assert not committer.busy


async def test_where_commits_go_one_by_one_a_batch_waits_however_full() -> None:
    committer, ledger = made(side_by_side=False)
    await put(committer, change("first"))
    futures = await put(committer, *[change(f"r{number}") for number in range(2 * FILLED)])

    assert ledger.begun == [["first"]]
    await ledger.land(0)
    await ledger.land(1)
    assert all(future.done() for future in futures)


async def test_of_one_record_no_two_changes_are_under_way_and_their_order_stands() -> None:
    committer, ledger = made(side_by_side=True)
    await put(committer, change("a", "a1"), change("b", "b1"))
    await put(committer, change("a", "a2"), *[change(f"r{number}") for number in range(FILLED)], change("a", "a3"))

    assert [len(batch) for batch in ledger.begun] == [2, FILLED]
    assert not {"a2", "a3"} & set(ledger.begun[1])
    await ledger.land(1)
    assert len(ledger.begun) == 2
    await ledger.land(0)
    await ledger.land(2)
    assert [landed for landed in ledger.landed if landed.startswith("a")] == ["a1", "a2", "a3"]
    assert not committer.busy


async def test_many_changes_of_one_record_ask_for_no_second_commit() -> None:
    committer, ledger = made(side_by_side=True)
    await put(committer, change("a", "a1"))
    await put(committer, *[change("a", f"a{number}") for number in range(2, 3 * FILLED)])

    assert ledger.begun == [["a1"]]
    await ledger.land(0)
    await ledger.land(1)
    assert ledger.landed == [f"a{number}" for number in range(1, 3 * FILLED)]


async def test_closing_waits_for_both() -> None:
    committer, ledger = made(side_by_side=True)
    await put(committer, change("first"))
    await put(committer, *[change(f"r{number}") for number in range(FILLED)])
    closing = asyncio.ensure_future(committer.close())

    await ledger.land(1)
    assert not closing.done()
    await ledger.land(0)
    assert closing.done()
    assert len(ledger.landed) == FILLED + 1


async def test_a_commit_that_fails_as_nobody_expected_stops_no_other() -> None:
    committer, ledger = made(side_by_side=True)
    [bad] = await put(committer, change("bad"))
    assert isinstance(bad.exception(), RuntimeError)
    assert not committer.busy

    [good] = await put(committer, change("good"))
    await ledger.land(0)
    assert good.done()
    assert not committer.busy


async def test_a_value_that_the_store_cannot_write_spoils_no_other_change() -> None:
    committer, ledger = made(side_by_side=False)
    commit = ledger.commit

    async def picky(changes: Sequence[Change]) -> list[Verdict]:
        if any(one.change_id == "odd" for one in changes):
            "\udce9".encode()
        landing = asyncio.ensure_future(commit(changes))
        await others()
        await ledger.land(-1)
        return await landing

    ledger.commit = picky  # type: ignore[method-assign]
    good, odd = await put(committer, change("good"), change("odd"))
    await committer.close()

    assert isinstance(await good, Applied) and ledger.landed == ["good"]
    verdict = await odd
    assert isinstance(verdict, Refused) and verdict.code == "value" and "surrogates" in verdict.reason


async def test_a_ledger_that_does_not_answer_is_told_of_and_not_waited_for_by_who_has_no_patience(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ToldClock()
    ledger: Any = SlowLedger(side_by_side=False)
    committer = Committer(ledger, clock)

    async def full(changes: Sequence[Change]) -> list[Verdict]:
        raise LedgerUnavailable("the disk is full; make room")

    ledger.commit = full
    [future] = await put(committer, change("a"))
    assert "the disk is full; make room; committing again" in caplog.text
    assert not future.done()

    committer.patience = 0.0
    clock.advance(5)
    await others()
    assert isinstance(future.exception(), LedgerUnavailable)
