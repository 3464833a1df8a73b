"""What starts records by itself: schedules, the rows of an inbox, and the rows of a table that people have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from quire.errors import DefinitionError, did_you_mean
from quire.workflows import declared, words


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
            raise DefinitionError(f"{self.tz!r} is not a time zone; write it like 'Europe/Berlin'") from error
        if not isinstance(self.spec, str):
            raise DefinitionError(f"{self.spec!r} is not a cron schedule; write it like '0 2 * * *'")
        try:
            CronSim(self.spec, datetime(2026, 1, 1, tzinfo=zone))
        except CronSimError as error:
            problem = f"{self.spec!r} is not a cron schedule ({error})"
            raise DefinitionError(f"{problem}; write it like '0 2 * * *'") from error
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

    def as_json(self) -> dict[str, Any]:
        return {"kind": "cron", "spec": self.spec, "tz": self.tz, "catch_up": self.catch_up}


@dataclass(frozen=True, slots=True)
class Inbox:
    """A tab whose rows start records, once each; with ``at``, only looked at by that schedule."""

    tab: str
    at: Cron | None = field(default=None, kw_only=True)
    write_back: Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not declared.is_text(self.tab):
            raise DefinitionError(f"{self.tab!r} is not a tab; write it like Inbox('Leads')")
        if self.at is not None and not isinstance(self.at, Cron):
            raise DefinitionError(f"at of Inbox({self.tab!r}) is {self.at!r}; write it as at=Cron('0 2 * * *')")
        if isinstance(self.write_back, str):
            raise DefinitionError(f"write_back of Inbox({self.tab!r}) is a list: write_back=[{self.write_back!r}]")
        declared.names(self.write_back, f"write_back of Inbox({self.tab!r})")

    def as_json(self) -> dict[str, Any]:
        at = self.at.as_json() if self.at is not None else None
        return {"kind": "inbox", "tab": self.tab, "at": at, "write_back": list(self.write_back)}


#: What a column of people's may show of a record.
SHOWN = ("attempts", "updated_at", "error", "why", "asks", "record_id", "link")


@dataclass(frozen=True, slots=True)
class Table:
    """A tab that people have: rows that say *Ready* in its status column go through the workflow, in their place.

    ``status``, ``id``, ``context`` and the keys of ``columns`` name a column by its header, by a named range or by its
    letter (``"F:F"``). ``columns`` maps such a column to a field of the data; the others are found by their names.
    ``words`` says what the status column says: READY, AGENT, QUEUE, DRIVE, or a dict of one's own. ``show`` maps what
    is to be seen (``attempts``, ``updated_at``, ``error``, ``why``, ``asks``, ``record_id``, ``link``) to a column.
    ``blank="start"`` starts complete rows that say nothing. With ``at``, rows that are ready start by that schedule.
    ``yes`` starts more than 25 rows at the first look unasked.
    """

    tab: str
    status: str = field(kw_only=True)
    words: Mapping[str, str] | str = field(default_factory=lambda: dict(words.READY), kw_only=True)
    id: str | None = field(default=None, kw_only=True)
    header: int | None = field(default=None, kw_only=True)
    columns: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    show: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    write_back: Sequence[str] = field(default=(), kw_only=True)
    context: str | None = field(default=None, kw_only=True)
    at: Cron | None = field(default=None, kw_only=True)
    blank: Literal["ignore", "start"] = field(default="ignore", kw_only=True)
    yes: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not declared.is_text(self.tab):
            raise DefinitionError(f"{self.tab!r} is not a tab; write it like Table('Orders', status='Task_Status')")
        whose = f"Table({self.tab!r})"
        named: dict[str, object] = {"status": self.status, "id": self.id, "context": self.context}
        for name, value in named.items():
            if value is None and name != "status":
                continue
            if not declared.is_text(value):
                raise DefinitionError(
                    f"{name} of {whose} is {value!r}; it must name a column, like {name}='Task_Status'"
                )
        if self.header is not None:
            declared.whole(self.header, f"header of {whose}")
        mappings: dict[str, object] = {"columns": self.columns, "show": self.show}
        for what, given in mappings.items():
            if not isinstance(given, Mapping) or not all(map(declared.is_text, [*given, *given.values()])):
                raise DefinitionError(f"{what} of {whose} is {given!r}; it must be a dict of names")
        for name in self.show:
            if name not in SHOWN:
                raise DefinitionError(
                    f"show of {whose} has {name!r}{did_you_mean(name, SHOWN)}; it may have {', '.join(SHOWN)}"
                )
        if isinstance(self.write_back, str):
            raise DefinitionError(f"write_back of {whose} is a list: write_back=[{self.write_back!r}]")
        declared.names(self.write_back, f"write_back of {whose}")
        if len(self.write_back) > 16:
            raise DefinitionError(f"write_back of {whose} names {len(self.write_back)} fields; it may name 16")
        if self.at is not None and not isinstance(self.at, Cron):
            raise DefinitionError(f"at of {whose} is {self.at!r}; write it as at=Cron('0 2 * * *')")
        declared.word(self.blank, ("ignore", "start"), f"blank of {whose}")
        declared.word(self.yes, (True, False), f"yes of {whose}")
        words.checked(self.words, whose)

    def as_json(self) -> dict[str, Any]:
        vocabulary = words.checked(self.words, "")
        return {
            "kind": "table",
            "tab": self.tab,
            "status": self.status,
            "words": vocabulary,
            "agent": vocabulary == words.AGENT,
            "id": self.id,
            "header": self.header,
            "columns": dict(self.columns),
            "show": dict(self.show),
            "write_back": list(self.write_back),
            "context": self.context,
            **({"at": self.at.as_json()} if self.at is not None else {}),
            "blank": self.blank,
            "yes": self.yes,
        }
