"""What missions spend in a day, over a whole ledger: for limits of a day, which no mission can keep by itself.

One setting of the ledger per day and mission, in which every conversation of the mission has a figure of its own: what
it has cost on that day so far. Figures are replaced and never added to, so one that is written again after a crash
changes nothing. Only missions that have such a limit keep them: they are one more write for each answer of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from quire.agents.spend import Spend
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting
from quire.runtime.run import Run, behind

#: Limits of a day, and what of a spend each counts.
WORDS = {"tokens_per_day": "tokens", "usd_per_day": "usd"}


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


class Daybook:
    """The figures of one ledger, as one mission writes and reads them."""

    def __init__(self, run: Run[Any, Any], mission_id: str) -> None:
        host = behind(run)
        self._ledger: Ledger = host.ledger
        self.now = host.now
        self._mission = mission_id

    async def today(self) -> dict[str, Any]:
        """What all missions that have a limit of a day have spent today."""
        found = Spend()
        for row in await self._ledger.settings(f"spend/{day_of(self.now())}/"):
            for figure in parse(row.value).values():
                found = found.plus(Spend.model_validate(figure))
        return found.model_dump()

    async def enter(self, name: str, day: str, spent: Spend) -> None:
        """This conversation has cost so much on this day."""
        place, figure = f"spend/{day}/{self._mission}", spent.model_dump()
        while True:
            kept = await self._ledger.setting(place)
            figures = parse(kept.value) if kept is not None else {}
            if figures.get(name) == figure:
                return
            version = kept.version if kept is not None else 0
            if await self._ledger.keep(Setting(place, dump({**figures, name: figure}), version)):
                return


def reached(limits: Mapping[str, float], spent: Spend) -> str | None:
    """The first limit of a day that this reaches."""
    for word, limit in limits.items():
        if getattr(spent, WORDS[word]) >= limit:
            return word
    return None
