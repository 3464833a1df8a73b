"""All calendars, who may do what on them, and the copies of an event that its guests have."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hectograph.calendar import recurrence
from hectograph.calendar.event import OWN, Event, Fields, lasts, moment, zone
from hectograph.core.clock import Now

#: The roles on a calendar, from the least to the most.
ROLES = ("none", "freeBusyReader", "reader", "writerWithoutPrivateAccess", "writer", "owner")

#: The holidays of the country whose time zone an account has.
_HOLIDAYS = {
    "Europe/London": ("en.uk#holiday@group.v.calendar.google.com", "United Kingdom"),
    "America/New_York": ("en.usa#holiday@group.v.calendar.google.com", "United States"),
    "Europe/Berlin": ("en.german#holiday@group.v.calendar.google.com", "Germany"),
}

_MEET = {"allowedConferenceSolutionTypes": ["hangoutsMeet"]}


@dataclass
class Calendar:
    calendar_id: str
    owner: str
    summary: str
    time_zone: str
    updated: datetime
    description: str = ""
    location: str = ""
    events: dict[str, Event] = field(default_factory=dict)
    #: Who else may do what: the id of a rule, ``user:ann@example.com``, and the role.
    rules: dict[str, str] = field(default_factory=dict)
    #: What each account has on its list: colour, name, hidden. An account without an entry does not list it.
    listed: dict[str, Fields] = field(default_factory=dict)

    @property
    def primary(self) -> bool:
        return self.calendar_id == self.owner

    @property
    def zone(self) -> Any:
        return zone(self.time_zone) or UTC

    def role(self, account: str) -> str:
        if account == self.owner:
            return "owner"
        names = (f"user:{account}", f"domain:{account.rpartition('@')[2]}", "default")
        return max((self.rules.get(name, "none") for name in names), key=ROLES.index)

    def exceptions(self, series: str) -> dict[str, Event]:
        return {one.event_id: one for one in self.events.values() if one.series == series}

    def instances(self, event: Event, until: datetime | None = None) -> Iterator[Event]:
        """Yield the instances of a recurring event in order, with the exceptions in their places."""
        exceptions = self.exceptions(event.event_id)
        local = zone(event.fields["start"].get("timeZone", self.time_zone)) or UTC
        first, long = moment(event.fields["start"], self.time_zone), lasts(event.fields)
        rules = recurrence.read(event.fields.get("recurrence", ()), local)
        for start in recurrence.starts(rules, first, local):
            if until is not None and start >= until:
                return
            made = self._instance(event, start, long, local)
            yield exceptions.get(made.event_id, made)

    def _instance(self, event: Event, start: datetime, long: timedelta, local: Any) -> Event:
        out = event.fork()
        out.fields.pop("recurrence", None)
        if "date" in event.fields["start"]:
            day = start.astimezone(local).date()
            suffix, end = day.strftime("%Y%m%d"), day + timedelta(days=max(1, round(long / timedelta(days=1))))
            times: list[Fields] = [{"date": day.isoformat()}, {"date": end.isoformat()}]
        else:
            suffix = start.strftime("%Y%m%dT%H%M%SZ")
            times = [
                {**event.fields[name], "dateTime": at.isoformat()}
                for name, at in (("start", start), ("end", start + long))
            ]
        out.event_id, out.series, out.original = f"{event.event_id}_{suffix}", event.event_id, dict(times[0])
        out.fields["start"], out.fields["end"] = times
        return out

    def find(self, event_id: str) -> Event | None:
        """Return an event, an exception, or an instance that nobody changed yet."""
        found = self.events.get(event_id)
        if found is not None:
            return found
        head, _, tail = event_id.rpartition("_")
        series = self.events.get(head)
        if series is None or not series.fields.get("recurrence"):
            return None
        found = next((one for one in self.instances(series) if one.event_id >= event_id), None) if tail else None
        return found if found is not None and found.event_id == event_id else None

    def dump(self) -> Fields:
        return {
            **self.__dict__,
            "updated": self.updated.isoformat(),
            "events": [one.dump() for one in self.events.values()],
        }

    @classmethod
    def load(cls, held: Fields) -> Calendar:
        events = {one["event_id"]: Event.load(one) for one in held["events"]}
        return cls(**{**held, "updated": datetime.fromisoformat(held["updated"]), "events": events})


class Calendars:
    """Every calendar by its id. An account's primary calendar is there as soon as somebody names it."""

    def __init__(self, now: Now, home: str) -> None:
        self.now = now
        #: The time zone of an account's calendars, unless the account changes it.
        self.home = home
        self.held: dict[str, Calendar] = {}
        self.changes = 0
        self._last = datetime.fromtimestamp(0, UTC)
        self._random = random.Random(0)

    def moment(self) -> datetime:
        """Return the time of a change: later than that of every change before, because etags are made of it."""
        self._last = max(self.now().astimezone(UTC), self._last + timedelta(microseconds=1))
        return self._last

    def mint(self, size: int = 26) -> str:
        return "".join(self._random.choices("0123456789abcdefghijklmnopqrstuv", k=size))

    def primary(self, account: str) -> Calendar:
        account = account.lower()
        found = self.held.get(account)
        if found is None:
            found = Calendar(account, account, account, self.home, self.moment())
            found.listed[account] = {}
            self.held[account] = found
        return found

    def add(self, owner: str, given: Fields) -> Calendar:
        key = "c_" + hashlib.sha256(self.mint().encode()).hexdigest() + "@group.calendar.google.com"
        made = Calendar(key, owner, given["summary"], given.get("timeZone") or "UTC", self.moment())
        made.description, made.location = given.get("description", ""), given.get("location", "")
        made.listed[owner] = {}
        self.held[key] = made
        return made

    def find(self, calendar_id: str, account: str) -> Calendar | None:
        """Return a calendar that the account may see in any way."""
        if calendar_id == "primary" or calendar_id.lower() == account:
            return self.primary(account)
        found = self.held.get(calendar_id)
        if found is None:
            return self.holidays(self.primary(account).time_zone, calendar_id)
        return found if found.role(account) != "none" else None

    def holidays(self, home: str, calendar_id: str = "") -> Calendar | None:
        """Return the calendar with the holidays of a country. The emulator knows none of the days."""
        key, country = _HOLIDAYS.get(home, ("", ""))
        if not key or (calendar_id and calendar_id != key):
            return None
        made = Calendar(key, key, f"Holidays in {country}", home, datetime(2021, 4, 1, tzinfo=UTC))
        made.description = f"Holidays and Observances in {country}"
        made.rules["default"] = "reader"
        return made

    def listed(self, account: str) -> list[Calendar]:
        """Return the calendars on an account's list: holidays, its own, and last the primary one."""
        primary = self.primary(account)
        own = [one for one in self.held.values() if account in one.listed and one is not primary]
        holidays = self.holidays(primary.time_zone)
        return [*([holidays] if holidays else []), *own, primary]

    def title(self, organizer: str) -> str:
        """Return the name that an organizer has, where it is a secondary calendar."""
        found = self.held.get(organizer)
        return found.summary if found is not None and not found.primary else ""

    # Changes of events.

    def put(self, calendar: Calendar, event: Event) -> None:
        """Store a changed event, with a new time and number of its change."""
        self.changes += 1
        event.updated, event.change = self.moment(), self.changes
        calendar.events[event.event_id] = event
        calendar.updated = event.updated

    def organizing(self, event: Event) -> Calendar | None:
        """Return the calendar that decides about an event, where it is one of the emulator."""
        found = self.held.get(event.organizer)
        return found if found is not None and event.event_id in found.events else None

    def share(self, calendar: Calendar, event: Event) -> None:
        """Give the guests of an event their copies as they must be now, and take them from those who left."""
        wanted = {one["email"] for one in event.attendees} - {calendar.calendar_id}
        had = {key for key, other in self.held.items() if other.primary and event.event_id in other.events}
        for email in sorted(wanted | had - {calendar.calendar_id}):
            other = self.primary(email)
            held = other.events.get(event.event_id)
            if held is not None and held.organizer != event.organizer:
                continue
            if email not in wanted and (held is None or held.status == "cancelled"):
                continue
            made = event.fork()
            kept = held.fields if held is not None else {}
            made.fields = {k: v for k, v in made.fields.items() if k not in OWN and k != "extendedProperties"}
            made.fields |= {k: v for k, v in kept.items() if k in OWN}
            properties = {
                "shared": event.fields.get("extendedProperties", {}).get("shared"),
                "private": kept.get("extendedProperties", {}).get("private"),
            }
            if any(properties.values()):
                made.fields["extendedProperties"] = {k: v for k, v in properties.items() if v}
            if email not in wanted:
                made.status = "cancelled"
            self.put(other, made)

    def dump(self) -> Any:
        return {"home": self.home, "changes": self.changes, "calendars": [one.dump() for one in self.held.values()]}

    def load(self, held: Any) -> None:
        self.home, self.changes = held["home"], held["changes"]
        self.held = {one["calendar_id"]: Calendar.load(one) for one in held["calendars"]}


def calendar_json(calendar: Calendar, owned: bool = False) -> Fields:
    """Return a calendar as ``calendars.get`` shows it; with ``owned``, whose data a secondary one is."""
    out: Fields = {"kind": "calendar#calendar", "etag": digest(calendar), "id": calendar.calendar_id}
    out |= {"summary": calendar.summary, "timeZone": calendar.time_zone}
    out |= {k: v for k in ("description", "location") if (v := getattr(calendar, k))}
    if owned and not calendar.primary:
        out["dataOwner"] = calendar.owner
    return out | {"conferenceProperties": dict(_MEET)}


def digest(calendar: Calendar, *more: Any) -> str:
    text = repr((calendar.calendar_id, calendar.summary, calendar.description, calendar.time_zone, *more))
    return '"' + base64.urlsafe_b64encode(hashlib.sha1(text.encode()).digest()).decode().rstrip("=") + '"'


def entry_json(calendar: Calendar, account: str, owned: bool = False) -> Fields:
    """Return a calendar as an account's list shows it."""
    own = calendar.listed.get(account, {})
    color = "8" if "#holiday@" in calendar.calendar_id else "14" if calendar.primary else "5"
    background = {"14": "#9fe1e7", "8": "#16a765", "5": "#ff7537"}[color]
    out: Fields = {"kind": "calendar#calendarListEntry", "id": calendar.calendar_id}
    out["etag"] = f'"{int(calendar.updated.timestamp()) * 2_000_000 + calendar.updated.microsecond * 2}"'
    out |= {k: v for k in ("summary", "description", "location") if (v := getattr(calendar, k))}
    out |= {"timeZone": calendar.time_zone, "colorId": color, "backgroundColor": background}
    if owned and not calendar.primary:
        out["dataOwner"] = calendar.owner
    out |= {"foregroundColor": "#000000", "selected": True, "accessRole": calendar.role(account)}
    out["defaultReminders"] = reminders(calendar, account)
    if calendar.primary and calendar.owner == account:
        kinds = ("eventCreation", "eventChange", "eventCancellation", "eventResponse")
        out["notificationSettings"] = {"notifications": [{"type": kind, "method": "email"} for kind in kinds]}
        out["primary"] = True
    return out | own | {"conferenceProperties": dict(_MEET)}


def reminders(calendar: Calendar, account: str) -> list[Fields]:
    found = calendar.listed.get(account, {}).get("defaultReminders")
    if found is not None:
        return list(found)
    return [{"method": "popup", "minutes": 30}] if calendar.calendar_id == account else []
