"""A trip is booked in three places; when one of them is full, what was booked is taken back, newest first.

quire up examples/saga.py
quire start trip to=Lisbon --follow
quire start trip to=Faro --follow     # exit 6: no car is left, so flight and hotel are taken back
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quire import Act, Fail, NotDone, Run, effect, workflow


@dataclass
class Agency:
    """Stands for three services."""

    booked: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    full: set[str] = field(default_factory=set)

    def book(self, what: str) -> str:
        if what in self.full:
            raise NotDone(f"no {what} left")
        self.booked.append(what)
        self.log.append(f"+ {what}")
        return what

    def take_back(self, what: str) -> None:
        self.booked.remove(what)
        self.log.append(f"- {what}")


def make_deps() -> Agency:
    return Agency(full={"car to Faro"})


async def take_back(act: Act[Agency], what: str) -> None:
    act.deps.take_back(what)


@effect(undo=take_back)
async def book(act: Act[Agency], what: str) -> str:
    return act.deps.book(what)


@workflow(deps=make_deps, on_failure="undo")
async def trip(run: Run[dict[str, Any], Agency]) -> list[str]:
    booked = []
    for what in ("flight", "hotel", "car"):
        try:
            booked.append(await run.once(book.named(what), f"{what} to {run.data['to']}"))
        except NotDone as error:
            raise Fail(str(error)) from error
    return booked
