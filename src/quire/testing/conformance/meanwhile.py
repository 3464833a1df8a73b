"""What may happen to a record between the intent of an effect and its receipt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quire.ledger.base import Ledger
from quire.model.record import Status
from quire.rules.outcome import Done
from quire.testing.clock import ToldClock
from quire.testing.conformance.asking import (
    applied,
    ask_to_cancel,
    beat,
    claimed,
    lose_worker,
    order,
    settle,
    the,
)


async def nothing(ledger: Ledger, clock: ToldClock) -> None:
    pass


async def takeover(ledger: Ledger, clock: ToldClock) -> None:
    await lose_worker(ledger, clock)


async def another_runs_it(ledger: Ledger, clock: ToldClock) -> None:
    await lose_worker(ledger, clock)
    await beat(ledger, "w2")
    assert await claimed(ledger, worker="w2") == ["r"]


async def in_doubt(ledger: Ledger, clock: ToldClock) -> None:
    await another_runs_it(ledger, clock)
    applied(await settle(ledger, await the(ledger), Done("1", "{}")))
    assert (await the(ledger)).status is Status.NEEDS_APPROVAL


async def cancel_asked(ledger: Ledger, clock: ToldClock) -> None:
    applied(await ask_to_cancel(ledger))


async def halt(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "halt")


async def halt_and_takeover(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "halt")
    await lose_worker(ledger, clock)


async def pause(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "pause")


async def seal(ledger: Ledger, clock: ToldClock) -> None:
    await order(ledger, "seal", target="postgresql://elsewhere")


Meanwhile = Callable[[Ledger, ToldClock], Awaitable[None]]
MEANWHILE: list[Meanwhile] = [
    nothing,
    takeover,
    another_runs_it,
    in_doubt,
    cancel_asked,
    halt,
    halt_and_takeover,
    pause,
    seal,
]
