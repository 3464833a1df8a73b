"""How long steps take, as far as a worker must know it whose time ends: what cannot end in a slice is not begun in it.

A slice of ``quire tick`` is a short life of a worker. A step that does not end within it is given back, and the next
slice would begin it again, and the one after that, for ever. So the ledger keeps of the longer steps how long they
took, or for how long they ran before a slice ended under them. A slice begins only what fits into the time that is
left. What a step has done so far counts: a step whose answers are kept goes on from them, so it is the longest stretch
between two answers that must fit.

What is known is forgotten after an hour: then the step is tried again, for what was slow once may be quick now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quire.ledger.base import Ledger
from quire.model.change import Slot
from quire.model.codec import dump, parse
from quire.model.side import Setting

STEP_TIMES = "step_times"
VALID_SECONDS = 3600.0
#: A step must fit with so much to spare.
MARGIN = 1.15
#: Steps that take less than this part of a slice are not kept.
LEAST_PART = 0.05
MOST_STEPS = 300
#: At the end of its budget a worker needs this long to give back what it holds.
FAREWELL_SECONDS = 0.5

Place = tuple[str, str]


class StepTime(NamedTuple):
    """What is known of one step."""

    #: Its longest stretch. If no try has ended, it takes longer than this.
    seconds: float
    ended: bool
    #: How often a slice ended under it.
    cuts: int
    #: When this became known, and the length of the slice that found it out.
    at: float
    slice: float

    def fits(self, left: float) -> bool:
        return self.seconds * MARGIN <= left

    def words(self) -> str:
        """Say how long the step takes, and in which slice it would fit."""
        took = f"took {self.seconds:.2g} s" if self.ended else f"ran for {self.seconds:.2g} s and did not end"
        times = "once" if self.cuts == 1 else f"{self.cuts} times"
        return took + (f" (a slice ended under it {times})" if self.cuts else "")

    @property
    def fitting(self) -> int:
        """The seconds of a slice in which it may end. How long a step takes that never ended can only be guessed."""
        return int(self.seconds * MARGIN * (1.2 if self.ended else 2.5) + FAREWELL_SECONDS) + 1


class StepTimes:
    """The step times of a ledger, as a worker in one slice knows them and adds to them."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.known: dict[Place, StepTime] = {}
        self._new: dict[Place, StepTime] = {}

    async def load(self, ledger: Ledger, now: float) -> None:
        self.known = await step_times(ledger, now)

    def fitting(self, slots: Iterable[Slot], left: float) -> list[Slot]:
        """Return the slots whose steps may end within the time that is left."""
        return [slot for slot in slots if self.fits(slot.workflow, slot.step, left)]

    def fits(self, workflow: str, step: str, left: float) -> bool:
        known = self.known.get((workflow, step))
        return known is None or known.fits(left)

    def took(self, place: Place, seconds: float, now: float, *, ended: bool) -> StepTime | None:
        """Keep how long a step took. Returns what is known of it now if no slice of this length is enough for it."""
        known = self._new.get(place)
        before = self.known.get(place)
        cuts = (before.cuts if before is not None else 0) + (not ended)
        if known is not None:
            seconds, ended = max(seconds, known.seconds), ended or known.ended
        if before is not None and known is None and not ended:
            seconds, ended = max(seconds, before.seconds), before.ended
        made = StepTime(seconds, ended, cuts, now, self.budget)
        self.known[place] = self._new[place] = made
        return None if ended or made.fits(self.budget - FAREWELL_SECONDS) else made

    async def save(self, ledger: Ledger) -> None:
        """Keep what is new for the slices after this one. Another slice may keep its own at the same time."""
        least = LEAST_PART * self.budget
        if not any(time.seconds >= least or time.cuts for time in self._new.values()):
            return
        for _ in range(5):
            kept = await ledger.setting(STEP_TIMES)
            held = _parsed(kept)
            new = {place: time for place, time in self._new.items() if time.seconds >= least or place in held}
            if not any(_differs(time, held.get(place)) for place, time in new.items()):
                return
            latest = sorted((held | new).items(), key=lambda pair: pair[1].at, reverse=True)[:MOST_STEPS]
            text = dump([[*place, *time] for place, time in latest])
            if await ledger.keep(Setting(STEP_TIMES, text, kept.version if kept is not None else 0)):
                return


def _differs(time: StepTime, held: StepTime | None) -> bool:
    """Small differences are not worth a write."""
    if held is None or time.cuts != held.cuts or time.ended != held.ended:
        return True
    return abs(time.seconds - held.seconds) > 0.25 * held.seconds or time.at - held.at > VALID_SECONDS / 2


def _parsed(kept: Setting | None) -> dict[Place, StepTime]:
    if kept is None:
        return {}
    return {(row[0], row[1]): StepTime(*row[2:]) for row in parse(kept.value)}


async def step_times(ledger: Ledger, now: float) -> dict[Place, StepTime]:
    """Return what is known of the longer steps and is not out of date."""
    found = _parsed(await ledger.setting(STEP_TIMES))
    return {place: time for place, time in found.items() if now - time.at < VALID_SECONDS}


def too_long(times: Mapping[Place, StepTime]) -> dict[Place, StepTime]:
    """Return the steps that do not fit into the slice that measured them."""
    return {place: time for place, time in times.items() if not time.fits(time.slice - FAREWELL_SECONDS)}
