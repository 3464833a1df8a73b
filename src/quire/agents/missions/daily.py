"""What missions spend in a day, over a whole ledger: for limits of a day, which no mission can keep by itself.

One setting of the ledger per day and mission, in which every conversation of the mission has a figure of its own: what
it has cost on that day so far. A figure only grows, so one that is written again after a crash changes nothing.

Figures are one more write for each answer of a model, so they are kept on days on which somebody has a limit. The first
mission that has one marks the day; from then on all missions enter theirs, and what was spent before is gathered from
the receipts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from quire.agents.missions import story as stories
from quire.agents.missions import tried
from quire.agents.spend import Spend
from quire.ledger.base import Ledger
from quire.ledger.engine import definitions
from quire.model.change import Query
from quire.model.codec import dump, parse
from quire.model.record import Record, Status
from quire.model.side import Setting
from quire.run.run import Run, behind

#: Limits of a day, and what of a spend each counts.
WORDS = {"tokens_per_day": "tokens", "usd_per_day": "usd", "calls_per_day": "calls"}
#: Records are looked through so many at a time, and twice as many where these are not enough.
PAGE = 500
_UNDER_WAY = tuple(status for status in Status if status not in (Status.DONE, Status.ERROR, Status.CANCELLED))


def day_of(moment: float) -> str:
    """The day of this moment, in UTC."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def until_tomorrow(moment: float) -> float:
    """Seconds from this moment until its day, in UTC, is over."""
    here = datetime.fromtimestamp(moment, UTC)
    next_day = (here + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(1.0, (next_day - here).total_seconds())


def limits_of(limits: Mapping[str, Any]) -> dict[str, float]:
    """Those of the limits that are of a day."""
    return {word: limits[word] for word in WORDS if limits.get(word) is not None}


def midnight(day: str) -> float:
    """The moment at which this day begins."""
    return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()


#: Days of which this process knows that their figures are kept.
_marked: WeakKeyDictionary[Ledger, set[str]] = WeakKeyDictionary()


class Daybook:
    """The figures of one ledger, as one mission writes and reads them."""

    def __init__(self, ledger: Ledger, now: Callable[[], float], mission_id: str) -> None:
        self._ledger = ledger
        self.now = now
        self._mission = mission_id

    @classmethod
    def of(cls, run: Run[Any, Any], mission_id: str) -> Daybook:
        """Return the daybook of the ledger in which this run is."""
        host = behind(run)
        return cls(host.ledger, host.now, mission_id)

    async def today(self, *, gather: bool = False) -> dict[str, Any]:
        """What all missions have spent today. ``gather``: look at the receipts of all, too."""
        day = day_of(self.now())
        if gather or not await self.is_kept(day):
            await self._gather(day)
        found = Spend()
        for row in await self._ledger.settings(f"spend/{day}/"):
            for figure in parse(row.value).values():
                found = found.plus(Spend.model_validate(figure))
        return found.model_dump()

    async def is_kept(self, day: str) -> bool:
        """Whether figures are kept on this day."""
        known = _marked.setdefault(self._ledger, set())
        if day not in known and await self._ledger.setting(f"spend/{day}") is not None:
            known.add(day)
        return day in known

    async def enter(self, name: str, day: str, spent: Spend) -> None:
        """This conversation has cost so much on this day."""
        await self._enter(self._mission, day, {name: spent})

    async def _gather(self, day: str) -> None:
        """Have all missions enter what they spend on this day, then enter what they have spent by now.

        In this order: an answer is in a receipt before its mission asks whether to enter it, or will be entered.
        """
        await self._ledger.keep(Setting(f"spend/{day}", dump({"kept": True}), 0))
        for mission, figures in (await spent_on(self._ledger, day)).items():
            await self._enter(mission, day, figures)

    async def _enter(self, mission: str, day: str, spent: Mapping[str, Spend]) -> None:
        place = f"spend/{day}/{mission}"
        while True:
            kept = await self._ledger.setting(place)
            figures = parse(kept.value) if kept is not None else {}
            known = {name: Spend.model_validate(figure) for name, figure in figures.items()}
            more = {name: one for name, one in spent.items() if name not in known or known[name].calls < one.calls}
            if not more:
                return
            text = dump({**figures, **{name: one.model_dump() for name, one in more.items()}})
            if await self._ledger.keep(Setting(place, text, kept.version if kept is not None else 0)):
                return


async def spent_on(ledger: Ledger, day: str) -> dict[str, dict[str, Spend]]:
    """Return mission → conversation → what it cost on this day, from the receipts and the what-ifs."""
    found: dict[str, dict[str, Spend]] = {}
    async for records in _touched(ledger, midnight(day)):
        whose = {record.record_id: stories.mission_of(record) for record in records}
        for call in stories.calls_of(await ledger.receipts(record_ids=list(whose)), records):
            if call.day == day and call.spent.calls:
                figures = found.setdefault(whose[call.record_id], {})
                name = conversation(call.record_id, call.visit, call.name.rpartition(" ")[0])
                figures[name] = figures.get(name, Spend()).plus(call.spent)
    for one in await tried.tried(ledger):
        for call in one.calls:
            if call.day == day:
                found.setdefault(one.mission, {})[_of_what_if(one.number, call.name)] = call.spent
    return found


async def spent_by_day(ledger: Ledger) -> dict[str, dict[str, Spend]]:
    """Return day → mission → what was spent, over all missions and what-ifs of this ledger."""
    found: dict[str, dict[str, Spend]] = {}
    missions = [made["name"] for made in await definitions(ledger) if "mission" in (made.get("about") or {})]
    for workflow in missions:
        after = ""
        while records := await ledger.find(Query(workflow=workflow, after=after, limit=500)):
            after = records[-1].record_id
            whose = {record.record_id: stories.mission_of(record) for record in records}
            for call in stories.calls_of(await ledger.receipts(record_ids=list(whose)), records):
                day, mission = found.setdefault(call.day, {}), whose[call.record_id]
                day[mission] = day.get(mission, Spend()).plus(call.spent)
    for one in await tried.tried(ledger):
        for call in one.calls:
            day, name = found.setdefault(call.day, {}), f"{one.mission}, what-if {one.number}"
            day[name] = day.get(name, Spend()).plus(call.spent)
    return dict(sorted(found.items()))


def counting(ledger: Ledger, mission_id: str, number: int) -> Callable[[str, str, Spend], Awaitable[None]]:
    """Return what counts the calls of a what-if for their day, on days on which somebody has a limit."""
    book = Daybook(ledger, float, mission_id)

    async def counted(name: str, day: str, spent: Spend) -> None:
        if await book.is_kept(day):
            await book.enter(_of_what_if(number, name), day, spent)

    return counted


def _of_what_if(number: int, name: str) -> str:
    return f"what-if {number} {name}"


async def _touched(ledger: Ledger, since: float) -> AsyncIterator[list[Record]]:
    """Records of missions that are under way or have changed since then."""
    for made in await definitions(ledger):
        if "mission" not in (made.get("about") or {}):
            continue
        seen: set[str] = set()
        for status in (_UNDER_WAY, ()):
            limit = PAGE
            while True:
                query = Query(workflow=made["name"], status=status, order="updated", limit=limit)
                records = await ledger.find(query)
                if len(records) < limit or (not status and records[-1].updated_at < since):
                    break
                limit *= 2
            new = [record for record in records if record.record_id not in seen]
            seen |= {record.record_id for record in new}
            if chosen := [record for record in new if status or record.updated_at >= since]:
                yield chosen


def conversation(record_id: str, visit: int, name: str) -> str:
    """What a conversation's figure is called: another visit of the step is another conversation."""
    return f"{record_id} {visit} {name}"


def reached(limits: Mapping[str, float], spent: Spend) -> str | None:
    """The first limit of a day that this reaches."""
    for word, limit in limits.items():
        if getattr(spent, WORDS[word]) >= limit:
            return word
    return None
