"""What-ifs that were tried: what changed, what was asked anew and paid for, and what the copy came to.

A what-if runs on a copy in memory. What it costs and its result are kept as settings of the mission's own ledger: one
for the what-if, and one for each call, which is written before the call begins and again when it is answered. So a
what-if whose process dies has its cost in the ledger, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from quire.agents.missions.report import Report
from quire.agents.missions.story import Call, place
from quire.agents.spend import LOST, Spend, of_row
from quire.errors import NotFound
from quire.ledger.base import Ledger
from quire.model.codec import dump, parse
from quire.model.side import Setting

_PLACE = "what-if/"
#: What is kept of an answer: its words are in the result.
_COSTS = ("began", "ended", "usage", "usd", "model", "error")


class Tried(NamedTuple):
    """One what-if of a mission."""

    mission: str
    number: int
    at: float
    #: ``turn``, ``agent``, ``prompt``, ``model``: what was changed.
    changed: dict[str, Any]
    calls: list[Call]
    report: Report | None
    #: Why there is no result. Empty also while it goes on, and if its process died.
    error: str

    @property
    def spent(self) -> Spend:
        found = Spend()
        for call in self.calls:
            found = found.plus(call.spent)
        return found

    @property
    def status(self) -> str:
        """Return ``done``, ``failed`` or ``unfinished``."""
        return "done" if self.report is not None else "failed" if self.error else "unfinished"

    def in_words(self) -> str:
        """Return one line: ``what-if 1, turn 2, another prompt: done; 5 calls, …``."""
        whose = f" of {self.changed['agent']}" if self.changed.get("agent") else ""
        what = [f"another {word}" for word in ("prompt", "model") if self.changed.get(word) is not None]
        about = f"what-if {self.number}, turn {self.changed['turn']}{whose}, {' and '.join(what)}"
        return f"{about}: {self.status}; {self.spent.in_words()}"

    def as_json(self) -> dict[str, Any]:
        report = self.report.model_dump(mode="json") if self.report is not None else None
        about = {"number": self.number, "at": self.at, "changed": self.changed, "status": self.status}
        return {**about, "spent": self.spent.model_dump(), "report": report, "error": self.error or None}


class Keeper:
    """Writes down one what-if while it runs."""

    def __init__(self, ledger: Ledger, mission_id: str, number: int) -> None:
        self._ledger = ledger
        self._mission = mission_id
        self.number = number
        #: Called after each answer with the call's name, the day on which it began, and its cost.
        self.counted: Callable[[str, str, Spend], Awaitable[None]] | None = None

    async def begins(self, name: str, at: float) -> None:
        """Write down that this call begins: from now on it may be billed."""
        await self._keep(name, {"began": at})

    async def answers(self, name: str, row: Mapping[str, Any]) -> None:
        """Write down what a call cost."""
        await self._keep(name, {word: row[word] for word in _COSTS if word in row} | {"answered": True})
        if self.counted is not None:
            await self.counted(name, _day(row["began"]), of_row({"reply": True, **row}))

    async def ends(self, report: Report | None, error: str) -> None:
        """Write down what the copy came to."""
        kept = await self._ledger.setting(_name(self._mission, self.number))
        assert kept is not None
        result = report.model_dump(mode="json") if report is not None else None
        await self._ledger.keep(
            Setting(kept.name, dump({**parse(kept.value), "report": result, "error": error}), kept.version)
        )

    async def _keep(self, name: str, row: dict[str, Any]) -> None:
        setting = f"{_name(self._mission, self.number)}/{name}"
        known = await self._ledger.setting(setting)
        value = dump({"mission": self._mission, "number": self.number, "call": name, **row})
        await self._ledger.keep(Setting(setting, value, known.version if known is not None else 0))


def _name(mission_id: str, number: int) -> str:
    return f"{_PLACE}{mission_id}/{number}"


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


async def begin(ledger: Ledger, mission_id: str, changed: Mapping[str, Any]) -> Keeper:
    """Write down that a what-if begins, under the next number that is free."""
    number = len(await tried(ledger, mission_id))
    value = {"mission": mission_id, "at": await ledger.now(), "changed": dict(changed), "report": None, "error": ""}
    while True:
        number += 1
        if await ledger.keep(Setting(_name(mission_id, number), dump({**value, "number": number}), 0)):
            return Keeper(ledger, mission_id, number)


async def tried(ledger: Ledger, mission_id: str = "") -> list[Tried]:
    """Return the what-ifs of this mission, or of all missions, in the order of their numbers."""
    prefix = f"{_PLACE}{mission_id}/" if mission_id else _PLACE
    rows = [parse(setting.value) for setting in await ledger.settings(prefix)]
    calls: dict[tuple[str, int], list[Call]] = {}
    for row in rows:
        if "call" in row:
            calls.setdefault((row["mission"], row["number"]), []).append(_call(row))
    found = [_tried(row, calls) for row in rows if "call" not in row]
    return sorted((one for one in found if mission_id in ("", one.mission)), key=lambda one: (one.mission, one.number))


async def one_of(ledger: Ledger, mission_id: str, number: int) -> Tried:
    """Return this what-if of the mission."""
    found = await tried(ledger, mission_id)
    for one in found:
        if one.number == number:
            return one
    known = ", ".join(str(one.number) for one in found)
    raise NotFound(f"{mission_id!r} has no what-if {number}; {f'it has {known}' if known else 'none was tried'}")


def _tried(row: dict[str, Any], calls: Mapping[tuple[str, int], list[Call]]) -> Tried:
    report = Report.model_validate(row["report"]) if row["report"] is not None else None
    made = sorted(calls.get((row["mission"], row["number"]), []), key=lambda call: call.began)
    return Tried(row["mission"], row["number"], row["at"], row["changed"], made, report, row["error"])


def _call(row: dict[str, Any]) -> Call:
    spent = of_row({"reply": True, **row}) if row.get("answered") else LOST
    error = row.get("error")
    words = f"{error['kind']}: {error['type']}: {error['text']}" if error else ""
    agent, turn = place(row["call"])
    return Call(agent, turn, row["call"], row["began"], row.get("ended", row["began"]), spent, words, row["mission"], 1)
