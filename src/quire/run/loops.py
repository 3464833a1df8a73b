"""``run.each``: a loop over many items that keeps its place and the working copy together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from quire.clock import Span, seconds
from quire.errors import DefinitionError, LeaseLost
from quire.model.change import Applied
from quire.model.codec import dump, parse
from quire.model.receipt import Kind
from quire.model.record import Status
from quire.rules.outcome import Saved, Yielded
from quire.run import settling
from quire.run.keys import SCOPE
from quire.run.passes import Pass

if TYPE_CHECKING:
    from quire.run.run import Run

T = TypeVar("T")


class Each(AsyncIterator[T]):
    """What the loop's body asks for is kept under the item that it is at.

    Not a generator: one that is left by a ``break`` ends some time later, and what comes after the loop would still be
    asked for under its last item, or not, as it happens. This one is gone with the loop.
    """

    def __init__(
        self,
        pass_: Pass,
        run: Run[Any, Any],
        key: str,
        items: Sequence[T],
        name: Callable[[T], str] | None,
        every: int | Span,
    ) -> None:
        self._pass = pass_
        self._run = run
        self._key = key
        self._items = items
        self._name = name
        self._every = every
        self._begun = False
        #: So many items are done, and so many were when the place was saved; -1: it never was.
        self._done = 0
        self._saved = -1
        self._saved_at = 0.0
        self._outer: tuple[str, ...] = ()
        #: Where the body is: in the item that it was given last.
        self.scope: tuple[str, ...] = ()

    async def __anext__(self) -> T:
        if not self._begun:
            self._begin()
        elif self._done < len(self._items):
            await self._passed()
        if self._done >= len(self._items):
            self._leave()
            if self._saved < len(self._items):
                await self._save()
            raise StopAsyncIteration
        self._pass.check()
        item = self._items[self._done]
        place = self._name(item) if self._name is not None else self._done
        self.scope = (*self._outer, f"{self._key}{place}")
        SCOPE.set(self.scope)
        return item

    def __del__(self) -> None:
        self._leave()

    def _leave(self) -> None:
        """Leave the loop: what is asked for from now on is asked by the code around it."""
        if self.scope is not self._outer and SCOPE.get() is self.scope:
            SCOPE.set(self._outer)

    def _begin(self) -> None:
        if isinstance(self._every, int) and self._every < 1:
            raise DefinitionError(f"run.each(every={self._every}) would never save; the least is 1")
        self._begun = True
        self._outer = self.scope = SCOPE.get()
        self._saved_at = self._pass.host.now()
        known = self._pass.known.get(self._key)
        if known is not None:
            saved = parse(known.value)
            self._done = self._saved = saved["done"]
            what = f"the saved data of {self._run.record_id!r}"
            self._run.data = self._pass.workflow.data.decode(dump(saved["data"]), what)

    async def _passed(self) -> None:
        """Note that the body is through with an item. Decide whether it is time to save, or to end."""
        self._done += 1
        host, every = self._pass.host, self._every
        if isinstance(every, int):
            due = self._done - max(self._saved, 0) >= every
        else:
            due = host.now() - self._saved_at >= seconds(every)
        ends = host.budget_end is not None and host.now() >= host.budget_end
        if (due or ends) and self._done < len(self._items):
            await self._save()
            if host.budget_end is not None and host.now() >= host.budget_end:
                self._pass.halt(Yielded("the worker's time ends"))
                raise asyncio.CancelledError

    async def _save(self) -> None:
        pass_, run = self._pass, self._run
        data = run._encoded()
        pass_.answer(pass_.receipt(Kind.EACH, self._key, "each", dump({"done": self._done, "data": parse(data)})))
        run_id = pass_.record.run_id
        with pass_.flight():
            verdict = await settling.move(pass_, Saved(data))
        if not isinstance(verdict, Applied):
            raise LeaseLost(f"another worker holds {run.record_id!r} now")
        if verdict.record.status is not Status.RUNNING or verdict.record.run_id != run_id:
            pass_.lost = True
            raise asyncio.CancelledError
        self._saved, self._saved_at = self._done, pass_.host.now()
