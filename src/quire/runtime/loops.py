"""``run.each``: a loop over many items that keeps its place and the working copy together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from quire.clock import Span, seconds
from quire.errors import DefinitionError, LeaseLost
from quire.machine.outcome import Saved, Yielded
from quire.model.change import Applied
from quire.model.codec import dump, parse
from quire.model.receipt import Kind
from quire.model.record import Status
from quire.runtime.hold import Hold

if TYPE_CHECKING:
    from quire.runtime.run import Run

T = TypeVar("T")


async def each(
    hold: Hold,
    run: Run[Any, Any],
    key: str,
    items: Sequence[T],
    name: Callable[[T], str] | None,
    every: int | Span,
) -> AsyncIterator[T]:
    done, outer = 0, hold.scope
    if isinstance(every, int) and every < 1:
        raise DefinitionError(f"run.each(every={every}) would never save; the least is 1")
    known = hold.known.get(key)
    if known is not None:
        saved = parse(known.value)
        done = saved["done"]
        run.data = hold.workflow.data.decode(dump(saved["data"]), f"the saved data of {run.record_id!r}")
    last, last_at = done, hold.host.now()
    try:
        for place in range(done, len(items)):
            hold.check()
            item = items[place]
            hold.scope = (*outer, f"{key}{name(item) if name is not None else place}")
            yield item
            count = place + 1
            due = count - last >= every if isinstance(every, int) else hold.host.now() - last_at >= seconds(every)
            if (due or hold.host.budget_end is not None) and count < len(items):
                if due or _out_of_time(hold):
                    await _save(hold, run, key, count)
                    last, last_at = count, hold.host.now()
                if _out_of_time(hold):
                    hold.halt(Yielded("the worker's time ends"))
                    raise asyncio.CancelledError
    finally:
        hold.scope = outer
    await _save(hold, run, key, len(items))


def _out_of_time(hold: Hold) -> bool:
    return hold.host.budget_end is not None and hold.host.now() >= hold.host.budget_end


async def _save(hold: Hold, run: Run[Any, Any], key: str, done: int) -> None:
    data = run._encoded()
    hold.answer(hold.receipt(Kind.EACH, key, "each", dump({"done": done, "data": parse(data)})))
    run_id = hold.record.run_id
    with hold.flight():
        verdict = await hold.move(Saved(data))
    if not isinstance(verdict, Applied):
        raise LeaseLost(f"another worker holds {run.record_id!r} now")
    if verdict.record.status is not Status.RUNNING or verdict.record.run_id != run_id:
        hold.lost = True
        raise asyncio.CancelledError
