"""What starts records by itself: schedules, and the rows of an inbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from quire.errors import DefinitionError
from quire.workflows import declared


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule in cron's five fields, in a time zone; right at both clock changes.

    ``catch_up`` says what happens with moments that passed while no worker ran: ``"last"`` starts one record for the
    newest of them, ``"all"`` one for each (at most 1,000), ``"none"`` lets them go.
    """

    spec: str
    tz: str = field(default="UTC", kw_only=True)
    catch_up: Literal["last", "all", "none"] = field(default="last", kw_only=True)

    def __post_init__(self) -> None:
        from cronsim import CronSim, CronSimError

        try:
            zone = self._zone()
        except (KeyError, ValueError, TypeError, AttributeError, OSError) as error:
            raise DefinitionError(f"{self.tz!r} is no time zone; write it like 'Europe/Berlin'") from error
        if not isinstance(self.spec, str):
            raise DefinitionError(f"{self.spec!r} is no cron schedule; write it like '0 2 * * *'")
        try:
            CronSim(self.spec, datetime(2026, 1, 1, tzinfo=zone))
        except CronSimError as error:
            raise DefinitionError(f"{self.spec!r} is no cron schedule ({error}); write it like '0 2 * * *'") from error
        declared.word(self.catch_up, ("last", "all", "none"), f"catch_up of Cron({self.spec!r})")

    def _zone(self) -> tzinfo:
        from zoneinfo import ZoneInfo

        return ZoneInfo(self.tz)

    def between(self, start: float, end: float, most: int = 1000) -> list[float]:
        """The moments of the schedule after ``start`` up to ``end``; the newest ``most`` of them."""
        from cronsim import CronSim

        zone = self._zone()
        moments: list[float] = []
        for moment in CronSim(self.spec, datetime.fromtimestamp(start, UTC).astimezone(zone)):
            if moment.timestamp() > end:
                break
            moments.append(moment.timestamp())
            if len(moments) > most:
                del moments[0]
        return moments

    def told(self) -> dict[str, Any]:
        return {"kind": "cron", "spec": self.spec, "tz": self.tz, "catch_up": self.catch_up}


@dataclass(frozen=True, slots=True)
class Inbox:
    """A tab whose rows start records, once each; with ``at``, only looked at by that schedule."""

    tab: str
    at: Cron | None = field(default=None, kw_only=True)
    write_back: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not declared.is_text(self.tab):
            raise DefinitionError(f"{self.tab!r} is no tab; write it like Inbox('Leads')")
        if self.at is not None and not isinstance(self.at, Cron):
            raise DefinitionError(f"at of Inbox({self.tab!r}) is {self.at!r}; write it as at=Cron('0 2 * * *')")
        if isinstance(self.write_back, str):
            raise DefinitionError(f"write_back of Inbox({self.tab!r}) is a list: write_back=[{self.write_back!r}]")
        declared.names(self.write_back, f"write_back of Inbox({self.tab!r})")

    def told(self) -> dict[str, Any]:
        at = self.at.told() if self.at is not None else None
        return {"kind": "inbox", "tab": self.tab, "at": at, "write_back": list(self.write_back)}
