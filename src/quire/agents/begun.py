"""Which calls of models were begun.

Before each call a *permit* is committed: an effect that does nothing, which a halt refuses and a rate delays. The
answer is a receipt of its own. A process that dies between the two has perhaps made a call that its provider bills, and
nobody will ever know the answer. The next process finds the permit, commits another one, and counts the first call as
*lost*: it was begun, and its cost is not known.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from quire.model.change import Rate
from quire.model.receipt import Receipt, Stage
from quire.model.record import Record, Status
from quire.run.run import Run, intended_before
from quire.workflows.effect import Effect

#: The functions of the receipts of an answer, and of a permit.
REPLY = "quire.agents.receipts:Reply"
PERMIT = "quire.agents.receipts:_permit"
#: A worker whose time ends sooner than this begins no call. Within a lease, so that no beat is needed for it.
TIME_FOR_A_CALL = 20.0
_MAY, _AGAIN = "may ", " again "


def _named(call: str, begun: int) -> str:
    return f"{_MAY}{call}{_AGAIN}{begun}" if begun else f"{_MAY}{call}"


def call_of_permit(name: str) -> str:
    """Return the name of the call that this permit allows: ``may ceo/2 1.1 again 1`` is for ``ceo/2 1.1``."""
    return name.removeprefix(_MAY).partition(_AGAIN)[0]


async def begin(
    run: Run[Any, Any], call: str, permit: Callable[[], Awaitable[None]], timeout: float, rate: Rate | None
) -> int:
    """Commit a permit for this call, and return how many times it was begun before without an answer."""
    lost = 0
    while intended_before(run, _named(call, lost)):
        await run.once(_effect(_named(call, lost), permit, timeout, None))  # no intent of an earlier pass stays open
        lost += 1
    await run.once(_effect(_named(call, lost), permit, timeout, rate))
    return lost


def _effect(name: str, permit: Callable[[], Awaitable[None]], timeout: float, rate: Rate | None) -> Any:
    return Effect(
        act=permit,  # type: ignore[arg-type]  # bare: it takes its arguments only
        name=name,
        repeat=True,
        bare=True,
        timeout=min(timeout, TIME_FOR_A_CALL),
        rate=rate,
    )


def without_answer(receipts: Sequence[Receipt], records: Iterable[Record]) -> list[Receipt]:
    """Return the permits of calls that were begun, have no answer, and are not under way any more.

    Calls that were answered at last are left out: their own receipts say how often they were lost before.
    """
    answered = {_place(one, one.name) for one in receipts if one.fn == REPLY and one.stage is Stage.DONE}
    holders = {one.record_id: one.worker for one in records if one.status is Status.RUNNING}
    found: dict[tuple[str, str, int, str], list[Receipt]] = {}
    for one in receipts:
        if one.fn == PERMIT and one.stage in (Stage.INTENDED, Stage.DONE):
            place = _place(one, call_of_permit(one.name))
            if place not in answered:
                found.setdefault(place, []).append(one)
    return [one for permits in found.values() for one in _lost(permits, holders)]


def _place(receipt: Receipt, call: str) -> tuple[str, str, int, str]:
    return receipt.record_id, receipt.step, receipt.visit, call


def _lost(permits: list[Receipt], holders: dict[str, str | None]) -> list[Receipt]:
    """Leave out the last one if the worker that it belongs to still holds the record: its call is under way."""
    last = max(permits, key=lambda one: one.at)
    return [one for one in permits if one is not last or holders.get(one.record_id) != one.worker]
